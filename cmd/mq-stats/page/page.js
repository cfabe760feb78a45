"use strict";
(() => {
	const SAMPLES = 240;
	const PLOTTED = ["ready", "age", "in/s", "out/s"];
	const FIGURES = [
		["messages", ["ready", "delayed", "unacked"]],
		["rejected messages", ["rejected"]],
		["age of the oldest", ["age"]],
		["messages a second", ["in/s", "out/s"]],
	];
	// Of a note: its numbers, and those of which the rates are made.
	const NOTED = {ready: 1, delayed: 2, unacked: 3, rejected: 4, age: 6,
		"in/s": 7, "out/s": 8};
	const HOUR = 3600000, TWO_DAYS = 48 * HOUR;
	const OTHERS = "(other reasons)";
	const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
	const store = "mq-stats " + location.pathname;
	const refresh = Number(document.body.dataset.refresh);
	const served = "served" in document.body.dataset; // by mq-stats --http
	const collator = new Intl.Collator(undefined, {numeric: true});
	const all = (selector, root = document) => [...root.querySelectorAll(selector)];
	// What a browser may forbid, or have no room for, is left out.
	const attempt = (f) => {
		try {
			f();
		} catch (e) { /* as if there was nothing */ }
	};
	const make = (tag, properties, ...children) => {
		const e = Object.assign(document.createElement(tag), properties);
		e.append(...children);
		return e;
	};
	const press = (textContent, onclick) =>
		make("button", {type: "button", textContent, onclick});
	// To the view of a message, or of the messages of a queue.
	const link = (path, address, text, why) => make("a", {href:
		"#show=" + encodeURIComponent(path + address) +
		(why === undefined ? "" : "&reason=" + encodeURIComponent(why))}, text);
	const draw = (tag, attributes) => {
		const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
		for (const [name, value] of Object.entries(attributes))
			e.setAttribute(name, value);
		return e;
	};

	/* --- what was chosen: it is in the address --------------------------------- */

	const sorts = new Map(); // column -> "asc" or "desc"
	let queue, filter, samples = [], past = [], drawn = [], span, paused = false;
	let shown, reason, home = "#"; // the view; without one, home is the address

	const readAddress = () => {
		const chosen = new URLSearchParams(location.hash.slice(1));
		queue = chosen.get("queue");
		filter = chosen.get("filter") || "";
		span = chosen.get("since") === "2d" ? TWO_DAYS : HOUR;
		reason = chosen.get("reason");
		shown = served && chosen.get("show")?.match(/^(queue|message)\/[^/?#]+$/)?.[0];
		sorts.clear();
		for (const [, name, order] of
			(chosen.get("sort") || "").matchAll(/([^,:]+):(asc|desc)/g))
			sorts.set(name, order);
	};

	const writeAddress = () => {
		if (shown)
			return;
		home = "#" + [
			sorts.size > 0 && "sort=" + [...sorts].map((s) => s.join(":")),
			filter !== "" && "filter=" + encodeURIComponent(filter),
			queue !== null && "queue=" + encodeURIComponent(queue),
			span !== HOUR && "since=2d",
		].filter(Boolean).join("&");
		attempt(() => history.replaceState(null, "", home === "#" ? " " : home));
	};

	/* --- commands, to copy ------------------------------------------------------- */

	// What a cell shows, as it is, as a part of a URL.
	const addressOf = (cell) =>
		cell.dataset.name ?? encodeURIComponent(cell.textContent);

	const decode = (address, otherwise) => {
		attempt(() => otherwise = decodeURIComponent(address));
		return otherwise;
	};

	// What is not seen, or misleads.
	const ODD = /[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;
	const visible = (text) => String(text).replace(ODD, (c) =>
		"\n\t".includes(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`);

	// A part of a URL as a word for any shell.
	const wordOf = (address) => {
		const text = decode(address, "\n");
		if (/^[\w.,:/@%+=-]+$/.test(text))
			return text;
		if (text.search(ODD) === -1)
			return "'" + text.replaceAll("'", "'\\''") + "'";
		return `"$(printf '` + address.replace(/%(..)|\W/g, (c, hex) => "\\" +
			(hex ? parseInt(hex, 16) : c.charCodeAt(0)).toString(8)
				.padStart(3, "0")) + `')"`;
	};

	// Reasons have N and ID for what differs.
	const patternOf = (reason) => "^" + reason
		.replace(/\\u....|\\\d{3}|\\.|ID|N/g, "\n")
		.replace(/['"$()*+.?[\\\]^`{|}]/g, ".").replaceAll("\n", ".*");

	const COMMANDS = {
		resumed: ["mq-pause"],
		paused: ["mq-pause --resume"],
		ready: ["mq-purge --ready"],
		delayed: ["mq-return --from delayed", "mq-purge --delayed"],
		running: ["mq-return --running", "mq-purge --running"],
		rejected: ["mq-return", "mq-purge --rejected"],
	};

	const commandsFor = (states, address, which = "") => {
		// Only Go programs take such names: control characters, [ ] { } and ::.
		if (/%([01].|5[BD]|7[BDF]|3A%3A)/.test(address))
			return [];
		const words = which + (/^(-|%2D)/.test(address) ? " -- " : " ") +
			wordOf(address);
		return states.flatMap((state) => COMMANDS[state] || []).map(
			(command) => command + words);
	};

	const commandsOf = (row) => {
		const cell = (title) => row.querySelector(`[data-l=${title}]`);
		const textIn = (title) => cell(title)?.textContent ?? "-";
		const address = addressOf(cell("queue"));
		const section = row.closest("section").id;
		if (section === "queues")
			return commandsFor([
				textIn("note").startsWith("paused") ? "paused" : "resumed",
				...["rejected", "ready"].filter((s) => numberOf(cell(s)) > 0),
			], address);
		if (section === "reasons" && !["-", OTHERS].includes(textIn("reason")))
			return commandsFor(["rejected"], address,
				` --reason '${patternOf(textIn("reason"))}'`);
		return textIn("id") === "-" ? [] : commandsFor(
			[section === "running" ? section : "rejected"], address,
			" --id " + wordOf(addressOf(cell("id"))));
	};

	const commandLine = (command) => make("p", {className: "command"},
		make("code", {}, command), navigator.clipboard ? press("Copy", async (e) => {
			await navigator.clipboard.writeText(command);
			e.target.textContent = "Copied";
		}) : "");

	const box = make("div", {id: "commands", popover: "auto"});

	/* --- a message, or those of a queue ------------------------------------------ */

	const view = make("section", {id: "view"});

	const dated = (t) => new Date(t).toISOString().slice(0, 19).replace("T", " ");
	const time = (t) => dated(t).slice(11);
	const ago = (ms) => ageOf(Math.abs(Date.now() - ms) / 1000);
	const valueOf = (name, v) =>
		!name.endsWith("_ms") || !(Math.abs(v) < 1e15) ? visible(v) :
			dated(v) + " UTC, " + (v > Date.now() ? "in " + ago(v) : ago(v) + " ago");

	const tableOf = (titles, rows) => {
		const cell = (tag, content, title) => make(tag, {className:
			["age", "attempts"].includes(title) ? "n" : "t"}, content);
		const head = make("thead", {}, make("tr", {},
			...titles.map((title) => cell("th", title, title))));
		const body = make("tbody", {}, ...rows.map((row) => make("tr", {},
			...row.map((content, i) => cell("td", content, titles[i])))));
		for (const row of titles.length > 0 ? body.rows : [])
			titles.forEach((title, i) => row.cells[i].dataset.l = title);
		return make("div", {className: "card"}, make("table", {},
			...titles.length > 0 ? [head] : [], body));
	};

	const factsOf = (o) => tableOf([], Object.entries(o)
		.filter(([, v]) => v !== null)
		.map(([name, v]) => Array.isArray(v) ? [visible(name), visible(v)] : // a header
			[name.replace(/_ms$/, "").replaceAll("_", " "), valueOf(name, v)]));

	const text = (s) => make("pre", {className: "card t"}, visible(s));

	const attemptOf = (a) => [
		make("p", {}, visible([a.attempt, a.at_ms && valueOf("at_ms", a.at_ms), a.host,
			a.signal ? "signal " + a.signal : a.status >= 0 && "exit " + a.status,
			a.text].filter(Boolean).join(" \u00b7 "))),
		...a.stderr ? [text(a.stderr)] : [],
	];

	const showMessage = (m) => {
		const {history, headers, running, payload, payload_base64, id, ...facts} = m;
		const body = payload ?? payload_base64;
		const part = (title, ...content) =>
			view.append(make("h3", {}, title), ...content);
		view.append(make("h2", {}, visible(id)), factsOf(facts));
		if (running)
			part("Running", factsOf(running));
		if (history)
			part("Attempts", ...history.flatMap(attemptOf));
		if (Object.keys(headers || {}).length > 0)
			part("Headers", factsOf(headers));
		if (body !== undefined)
			part(payload === undefined ? "Payload, in base64" : "Payload", text(body));
		const commands = commandsFor([running ? "running" : m.state],
			encodeURIComponent(m.queue).replace(/%5Cx([\da-f]{2})/gi, "%$1"),
			" --id " + wordOf(encodeURIComponent(id)));
		if (commands.length > 0)
			part("Commands", ...commands.map(commandLine));
	};

	const showQueue = (q) => {
		view.append(make("h2", {}, visible(q.queue.name)));
		if (reason !== null)
			view.append(make("p", {}, "rejected: " + (visible(reason) || "no reason")));
		for (const state of ["rejected", "unacked", "ready", "delayed"]) {
			const found = q[state].filter((m) =>
				reason === null || m.reason_group === reason);
			if (state === "rejected")
				found.reverse();
			if (found.length > 0)
				view.append(make("h3", {}, `${state} `, make("small", {},
					`${found.length} of ${q.queue[state]}`)),
				tableOf(["id", "age", "attempts", "reason"], found.map((m) => [
					m.id === null ? "-" : link("message/",
						encodeURIComponent(m.id), visible(m.id)),
					m.since_ms ? ago(m.since_ms) : "-", m.attempts,
					visible(m.reason ?? "")])));
		}
	};

	const read = async (url, missing) => {
		const answer = await fetch(url, {cache: "no-store"});
		if (!answer.ok)
			throw new Error(answer.status === 404 && missing ||
				answer.status + " " + answer.statusText);
		return answer;
	};

	const openView = async () => {
		const wanted = shown + reason;
		view.hidden = !shown;
		document.querySelector("main").hidden = !!shown;
		if (!shown)
			return;
		view.replaceChildren(make("p", {}, make("a", {href: home}, "\u2190 all queues")));
		try {
			const found = await (await read(shown, "It is not there any more.")).json();
			if (wanted !== shown + reason)
				return;
			(found.reasons ? showQueue : showMessage)(found);
			view.append(make("p", {}, make("a", {href: shown}, "as JSON")));
		} catch (e) {
			view.append(make("p", {}, e.message));
		}
	};

	/* --- tables ------------------------------------------------------------------ */

	const textOf = (row) => row.cells[0].textContent;

	// NaN: it is not known.  Without a message there is no age.
	const numberOf = (cell) => cell.textContent === "-" &&
		cell.dataset.l === "age" ? 0 :
		Number(cell.dataset.v || cell.textContent.replaceAll(",", "") || NaN);

	const headOf = (table, title) =>
		[...table.tHead.rows[0].cells].find((th) => th.textContent === title);

	// The columns of queues have their titles for names; others, the section's too.
	const nameOf = (th) => {
		const section = th.closest("section").id;
		return (section === "queues" ? "" : section + ".") + th.textContent;
	};

	const orderRows = (table) => {
		const body = table.tBodies[0];
		const isAlone = (row) => row.classList.contains("alone");
		const rows = [...body.rows].sort((a, b) =>
			isAlone(b) - isAlone(a) || a.place - b.place);
		for (const th of table.tHead.rows[0].cells) {
			const order = sorts.get(nameOf(th));
			th.ariaSort = {asc: "ascending", desc: "descending"}[order];
			if (order === undefined)
				continue;
			const sign = order === "asc" ? 1 : -1;
			const at = th.cellIndex;
			const compare = th.classList.contains("n") ?
				(a, b) => (numberOf(a) || 0) - (numberOf(b) || 0) :
				(a, b) => collator.compare(a.textContent, b.textContent);
			rows.sort((a, b) => sign * compare(a.cells[at], b.cells[at]));
		}
		// Only what has another place is moved: the rest keeps focus and selection.
		rows.forEach((row, i) => {
			if (body.rows[i] !== row)
				body.insertBefore(row, body.rows[i]);
		});
	};

	const chooseSort = (th) => {
		const was = sorts.get(nameOf(th));
		const down = was ? was === "asc" : th.classList.contains("n");
		for (const other of th.parentNode.cells)
			sorts.delete(nameOf(other));
		sorts.set(nameOf(th), down ? "desc" : "asc");
		show();
	};

	const chooseQueue = (name) => {
		queue = name === queue ? null : name;
		show();
		if (queue !== null)
			panel.scrollIntoView({block: "nearest"});
	};

	// The rows of the filter and of the chosen queue.
	const showRows = (table) => {
		const section = table.closest("section");
		const at = headOf(table, "queue")?.cellIndex;
		const wanted = filter.toLowerCase();
		const rows = [...table.tBodies[0].rows];
		let n = 0;
		for (const row of rows) {
			const other = section.id !== "queues" && queue !== null &&
				row.cells[at].textContent !== queue;
			row.hidden = other || wanted !== "" && !all(".t", row).some(
				(cell) => cell.textContent.toLowerCase().includes(wanted));
			n += !row.hidden;
		}
		section.hidden = n === 0 && section.id !== "queues";
		section.querySelector("small").textContent = n === rows.length ?
			n.toLocaleString("en") : `${n} of ${rows.length}`;
	};

	const button = (cell, click) => {
		const b = press("", click);
		b.append(...cell.childNodes);
		cell.append(b);
	};

	const prepareRow = (row, place) => {
		row.place = place;
		const ofQueue = row.closest("#queues tbody");
		if (ofQueue && !row.querySelector("button"))
			button(row.cells[0], () => chooseQueue(textOf(row)));
		const value = (name) => numberOf(row.querySelector(`[data-l=${name}]`));
		row.classList.toggle("alone", !!ofQueue && value("ready") > 0 &&
			value("consumers") === 0);
		const id = served && row.querySelector("[data-l=id]");
		if (id && id.textContent !== "-")
			id.replaceChildren(link("message/", addressOf(id), id.textContent));
		const why = served && row.querySelector("#reasons [data-l=reason]");
		if (why && why.textContent !== OTHERS)
			why.replaceChildren(link("queue/", addressOf(row.cells[0]),
				why.textContent, why.textContent === "-" ? "" : decode(addressOf(why))));
		const more = press("\u22ef", () => {
			box.replaceChildren(...commandsOf(row).map(commandLine));
			box.showPopover();
		});
		more.title = "commands";
		if (!row.querySelector(".do") && commandsOf(row).length > 0)
			row.append(make("td", {className: "do"}, more));
	};

	const prepareTable = (table) => {
		for (const th of table.tHead.rows[0].cells)
			button(th, () => chooseSort(th));
		table.tHead.rows[0].append(make("th", {className: "do"}));
		[...table.tBodies[0].rows].forEach(prepareRow);
	};

	/* --- samples and plots ------------------------------------------------------- */

	const lastTime = () => Date.parse(document.querySelector("time").dateTime);

	// Of each queue, and of all as "": a number for each cell.
	const takeSample = () => {
		const table = document.querySelector("#queues table");
		const t = lastTime();
		if (!table || samples.at(-1)?.t === t)
			return;
		const rows = [...table.rows].slice(1);
		const total = table.tFoot.rows.length > 0 ? rows.at(-1) : rows[0];
		const numbersOf = (row) => [...row.cells].map(numberOf);
		samples.push({t, rows: new Map(
			rows.map((row) => [textOf(row), numbersOf(row)]))});
		samples.at(-1).rows.set("", numbersOf(total));
		// Half as dense, so that the oldest stays in a bounded memory.
		if (samples.length > Math.max(24, Math.min(SAMPLES, 60000 / rows.length)))
			samples = samples.filter((s, i) =>
				i === 0 || (samples.length - 1 - i) % 2 === 0);
	};

	const keepSamples = () => attempt(() => sessionStorage.setItem(store,
		JSON.stringify(samples.map((s) => [s.t, [...s.rows]]))));

	const restoreSamples = () => attempt(() => {
		samples = JSON.parse(sessionStorage.getItem(store) || "[]").map(
			([t, rows]) => ({t, rows: new Map(rows.map(([name, numbers]) =>
				[name, numbers.map((n) => n ?? NaN)]))}));
	});

	// A number of a note; of a rate, since the note before, if there is no gap.
	const noted = (title, n, before, unit) => {
		const at = NOTED[title];
		const [from, to, s] = [before?.[at], n[at], n[0] - before?.[0]];
		return !title.endsWith("/s") ? (to < 0 ? NaN : to) :
			s < 2 * unit && from >= 0 && to >= from ? (to - from) / s : NaN;
	};

	const addUp = (sum, title, v) => title === "age" ? Math.max(sum || 0, v || 0) :
		title.endsWith("/s") && Number.isNaN(v) ? sum : (sum || 0) + v;

	// As further samples, of a minute or an hour each, which hold until the next but one.
	const readPast = (table) => {
		const queues = JSON.parse(document.getElementById("past")?.textContent || "[]");
		const names = table ? [...table.tBodies[0].rows].map(textOf) : [];
		for (const [kind, unit] of [[1, 60], [2, 3600]]) {
			const slots = new Map();
			queues.forEach(([counted, ...kinds], i) =>
				kinds[kind - 1].forEach((n, k, notes) => {
					const slot = Math.floor(n[0] / unit);
					const s = slots.get(slot) ||
						{t: 0, holds: 2000 * unit, rows: new Map([["", []]])};
					const row = [], sum = s.rows.get("");
					for (const title of Object.keys(NOTED)) {
						const at = headOf(table, title).cellIndex;
						row[at] = noted(title, n, notes[k - 1], unit);
						if (!counted || title === "rejected" || title.endsWith("/s"))
							sum[at] = addUp(sum[at], title, row[at]);
					}
					s.t = Math.max(s.t, n[0] * 1000);
					if (i < names.length)
						s.rows.set(names[i], row);
					slots.set(slot, s);
				}));
			// Hours are for what no minute tells.
			past.push(...[...slots.values()].filter((s) =>
				unit === 60 || s.t < lastTime() - HOUR));
		}
	};

	const chooseShown = () => {
		const from = lastTime() - span;
		drawn = [...past, ...samples].filter((s) => s.t >= from).sort(
			(a, b) => a.t - b.t);
	};

	// A round of cleaning may know nothing of this queue, but of others.
	const series = (name, at) => drawn.filter((s) => !s.holds || s.rows.has(name)).map(
		(s) => ({t: s.t, v: s.rows.get(name)?.[at] ?? NaN, holds: s.holds}));

	// A line breaks where nothing is known.
	const pathOf = (points, width, height, max) => {
		const [begin, end] = [drawn[0].t, drawn.at(-1).t];
		return points.map(({t, v}, i) => Number.isNaN(v) ? "" :
			(i === 0 || Number.isNaN(points[i - 1].v) ||
				t - points[i - 1].t >= points[i - 1].holds ? "M" : "L") +
			((t - begin) / (end - begin) * width).toFixed(1) + " " +
			(height - v / max * height).toFixed(1)).join("");
	};

	const maximum = (lines) =>
		Math.max(0, ...lines.flat().map((p) => p.v).filter((v) => v > 0));

	const plot = (lines, width, height) => {
		const max = maximum(lines) || 1;
		const svg = draw("svg", {viewBox: `0 -1 ${width} ${height + 2}`,
			preserveAspectRatio: "none", "aria-hidden": "true"});
		lines.forEach((values, i) => svg.append(draw("path",
			{class: "line" + i, d: pathOf(values, width, height, max)})));
		return svg;
	};

	const showSparks = (table) => {
		for (const at of PLOTTED.map((title) => headOf(table, title).cellIndex)) {
			table.tHead.rows[0].cells[at].classList.add("plot");
			for (const row of [...table.rows].slice(1)) {
				const cell = row.cells[at];
				const values = series(textOf(row), at);
				cell.classList.add("plot");
				cell.querySelector("svg")?.remove();
				if (values.some((p) => p.v > 0))
					cell.append(plot([values], 48, 14));
			}
		}
	};

	const ageOf = (s) => {
		const [size, unit] = UNITS.find(([n]) => s >= n) || UNITS[3];
		return Math.floor(s / size) + unit;
	};

	const wordsOf = (title, v) => Number.isNaN(v) ? "\u2013" :
		title === "age" ? ageOf(v) :
		v.toLocaleString("en", {maximumFractionDigits: v < 10 ? 1 : 0});

	const figure = (table, name, caption, titles) => {
		const lines = titles.map((title) =>
			series(name, headOf(table, title).cellIndex));
		const most = drawn.length > 1 && maximum(lines);
		const f = make("figure", {className: drawn.length > 1 ? "live" : ""},
			make("figcaption", {}, caption, make("span", {},
				most ? "at most " + wordsOf(titles[0], most) : "")),
			make("dl", {}, ...titles.map((title, i) => make("div",
				{className: "line" + i},
				make("dt", {}, titles.length > 1 ? title : ""),
				make("dd", {}, wordsOf(title, lines[i].at(-1)?.v ?? NaN))))));
		if (drawn.length > 1)
			f.append(plot(lines, 320, 80));
		return f;
	};

	const panel = make("section", {id: "plots"});

	const showPanel = (table) => {
		const now = samples.at(-1);
		panel.hidden = !table || !now;
		if (panel.hidden)
			return;
		const name = queue ?? "";
		panel.className = name && "chosen";
		const head = make("h2", {}, name || "All queues");
		if (name !== "")
			head.append(press("show all", () => chooseQueue(name)));
		if (name !== "" && served)
			head.append(link("queue/", addressOf([...table.tBodies[0].rows].find(
				(row) => textOf(row) === name)?.cells[0] ??
				make("th", {}, name)), "messages"));
		if (past.some((s) => s.t < now.t - HOUR))
			head.append(press(span === HOUR ? "two days" : "one hour", () => {
				span = span === HOUR ? TWO_DAYS : HOUR;
				show();
			}));
		if (drawn.length > 1)
			head.append(make("small", {}, [drawn[0].t, now.t]
				.map(span === HOUR ? time : dated).join(" to ") + " UTC"));
		panel.replaceChildren(head, make("div", {className: "figures"},
			...FIGURES.map(([caption, titles]) =>
				figure(table, name, caption, titles))));
	};

	/* --- refresh ----------------------------------------------------------------- */

	const renewRows = (old, fresh) => {
		const rows = Map.groupBy(old.rows, textOf);
		[...fresh.rows].forEach((row, i) => {
			const same = rows.get(textOf(row))?.shift();
			if (same) {
				same.cells[0].className = row.cells[0].className;
				[...row.cells].forEach((cell, k) => {
					if (cell.textContent !== same.cells[k].textContent ||
							cell.dataset.v !== same.cells[k].dataset.v)
						same.cells[k].replaceWith(cell);
				});
			} else {
				old.append(row);
			}
			prepareRow(same || row, i);
		});
		for (const row of [...rows.values()].flat())
			row.remove();
	};

	const renewSection = (fresh) => {
		const old = document.getElementById(fresh.id);
		const [a, b] = [old, fresh].map((s) => s.querySelector("table"));
		if (!a || !b || a.tHead.textContent !== b.tHead.textContent) {
			old.replaceWith(fresh);
			all("table", fresh).forEach(prepareTable);
			return;
		}
		renewRows(a.tBodies[0], b.tBodies[0]);
		a.tFoot.replaceWith(b.tFoot);
		all(".note", old).forEach((note) => note.remove());
		old.append(...all(".note", fresh));
	};

	const renew = (page) => {
		const policy = (d) => d.querySelector("meta[http-equiv]").content;
		if (!page.getElementById("queues"))
			throw new Error("something else is there");
		// Made by another version, whose script is another one.
		if (policy(page) !== policy(document))
			location.reload();
		all("main > section", page).forEach(renewSection);
		document.querySelector("time").replaceWith(page.querySelector("time"));
		takeSample();
		show();
	};

	const state = make("span", {className: "state", role: "status"});

	const readAgain = async () => {
		// Nobody can be asked for a file; the samples are kept meanwhile.
		if (location.protocol === "file:" && !paused)
			return location.reload();
		try {
			if (!paused) {
				const answer = await read(location.origin + location.pathname +
					(served ? "again" : "") + location.search);
				renew(new DOMParser().parseFromString(
					await answer.text(), "text/html"));
				state.textContent = "";
			}
		} catch (e) {
			state.textContent = `not read since ${time(lastTime())} UTC: ` +
				`${e.message}; trying again`;
		}
		setTimeout(readAgain, refresh * 1000);
	};

	const show = () => {
		const focused = document.activeElement;
		const table = document.querySelector("#queues table");
		for (const t of all("main table")) {
			orderRows(t);
			showRows(t);
		}
		chooseShown();
		if (table && drawn.length > 1)
			showSparks(table);
		for (const row of table?.tBodies[0].rows || [])
			row.querySelector("button").ariaPressed = textOf(row) === queue;
		showPanel(table);
		(focused.isConnected ? focused : panel.querySelector("button"))?.focus(
			{preventScroll: true});
		writeAddress();
	};

	document.documentElement.classList.add("js");
	readAddress();
	const search = make("input", {type: "search", placeholder: "Filter",
		ariaLabel: "Filter the rows of all tables", value: filter, oninput: () => {
			filter = search.value;
			show();
		}});
	const tools = make("div", {className: "tools"}, search);
	if (refresh > 0) {
		const pause = press("Stop refreshing", () => {
			paused = !paused;
			pause.textContent = paused ? "Refresh again" : "Stop refreshing";
		});
		tools.append(pause, state);
		restoreSamples();
		addEventListener("pagehide", keepSamples);
		setTimeout(readAgain, refresh * 1000);
	}
	document.querySelector("main").prepend(tools, panel);
	document.querySelector("main").after(view, box);
	all("main table").forEach(prepareTable);
	readPast(document.querySelector("#queues table"));
	takeSample();
	show();
	openView();
	addEventListener("hashchange", () => {
		readAddress();
		search.value = filter;
		show();
		openView();
	});
})();
