"use strict";
(() => {
	const store = "mq-stats";
	const collator = new Intl.Collator(undefined, {numeric: true});
	const chosen = new Map(); // table -> [column, "asc" or "desc"]

	const value = (row, at) => {
		const cell = row.cells[at];
		return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
	};

	const sort = (table, head, order) => {
		const sign = order === "asc" ? 1 : -1;
		const at = head.cellIndex;
		const body = table.tBodies[0];
		const rows = [...body.rows].map((row) => [value(row, at), row]);
		rows.sort(([a], [b]) => sign *
			(typeof a === "number" ? a - b : collator.compare(a, b)));
		body.append(...rows.map(([, row]) => row));
		for (const th of table.tHead.rows[0].cells)
			th.removeAttribute("aria-sort");
		head.setAttribute("aria-sort",
			order === "asc" ? "ascending" : "descending");
		chosen.set(table, [head.dataset.k, order]);
	};

	// Kept over a refresh in two places, since each may be forbidden.
	const keep = () => {
		const text = "sort=" +
			[...chosen.values()].map((c) => c.join(":")).join(",");
		try {
			sessionStorage.setItem(store, text);
		} catch (e) { /* not on this page, then */ }
		try {
			history.replaceState(null, "", "#" + text);
		} catch (e) { /* the same */ }
	};

	const kept = () => {
		if (location.hash.startsWith("#sort="))
			return location.hash.slice(1);
		try {
			return sessionStorage.getItem(store) || "";
		} catch (e) {
			return "";
		}
	};

	const restore = () => {
		for (const part of kept().replace("sort=", "").split(",")) {
			const [column, order] = part.split(":");
			for (const th of document.querySelectorAll("th[data-k]"))
				if (th.dataset.k === column)
					sort(th.closest("table"), th,
						order === "asc" ? "asc" : "desc");
		}
	};

	const click = (th) => {
		const numbers = th.classList.contains("n");
		const was = th.getAttribute("aria-sort");
		const down = was ? was === "ascending" : numbers;
		sort(th.closest("table"), th, down ? "desc" : "asc");
		keep();
	};

	document.documentElement.classList.add("js");
	for (const th of document.querySelectorAll("th[data-k]")) {
		const button = document.createElement("button");
		button.type = "button";
		button.append(...th.childNodes);
		button.addEventListener("click", () => click(th));
		th.append(button);
	}
	restore();
	addEventListener("hashchange", restore);

	// A browser does not refresh an address with a fragment by itself.
	const refresh = document.querySelector("meta[http-equiv=refresh]");
	if (refresh)
		setTimeout(() => location.hash && location.reload(),
			refresh.content * 1000);
})();
