// Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
"use strict";
(() => {
	const SAMPLES = 240;
	const FIGURES = [
		["messages", ["ready", "delayed", "unacked"]],
		["rejected messages", ["rejected"]],
		["age of the oldest", ["age"]],
		["messages a second", ["in/s", "out/s"]],
	];
	const SERIES = FIGURES.flatMap(([, titles]) => titles);
	const PLOTTED = ["ready", "age", "in/s", "out/s"];
	// Places of numbers in a note; a rate needs two notes.
	const NOTED = {ready: 1, delayed: 2, unacked: 3, rejected: 4, age: 6,
		"in/s": 7, "out/s": 8};
	const COLUMNS = {
		queues: ["queue", "ready", "delayed", "unacked", "rejected", "consumers", "age",
			"in/s", "out/s", "note"],
		running: ["queue", "id", "attempt", "host", "pid", "seconds", "script", "text"],
		batches: ["queue", "batch", "total", "open", "done", "rejected", "expired",
			"purged", "pushed", "unknown"],
		reasons: ["queue", "count", "oldest", "newest", "reason"],
		newest: ["queue", "id", "age", "attempts", "reason"],
		connections: ["connection", "state", "heartbeat on", "host", "pid", "queue",
			"queue on", "unacked", "consumers"],
	};
	const AGES = ["age", "oldest", "newest"];
	// Columns that are hidden while all of their cells are empty.
	const SPARSE = ["note", "heartbeat on", "queue on"];
	const TEXTS = ["queue", "batch", "id", "host", "script", "text", "reason", "connection", "state",
		...SPARSE];
	const HOUR = 3600000, TWO_DAYS = 48 * HOUR;
	const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
	const store = "mq-stats series " + location.pathname;
	const refresh = Number(document.body.dataset.refresh);
	const served = "served" in document.body.dataset; // by mq-stats --http
	const collator = new Intl.Collator(undefined, {numeric: true});
	const all = (selector, root = document) => [...root.querySelectorAll(selector)];
	// A browser may forbid storage, or have no room.
	const attempt = (f) => {
		try {
			f();
		} catch (e) { /* the page works without */ }
	};
	const make = (tag, properties, ...children) => {
		const e = Object.assign(document.createElement(tag), properties);
		e.append(...children);
		return e;
	};
	const press = (textContent, onclick) =>
		make("button", {type: "button", textContent, onclick});
	// A link to the view of a message, or of the messages of a queue.
	const link = (path, address, text, why) => make("a", {href:
		"#show=" + encodeURIComponent(path + address) +
		(why === undefined ? "" : "&reason=" + encodeURIComponent(why))}, text);
	const draw = (tag, attributes) => {
		const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
		for (const [name, value] of Object.entries(attributes))
			e.setAttribute(name, value);
		return e;
	};

	/* --- text ---------------------------------------------------------------------- */

	// Characters that are invisible or mislead.
	const ODD = /[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;
	const visible = (text, kept = "") => String(text).replace(ODD, (c) =>
		kept.includes(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`);

	const dated = (t) => new Date(t).toISOString().slice(0, 19).replace("T", " ");
	const time = (t) => dated(t).slice(11);
	const ageOf = (s) => {
		const [size, unit] = UNITS.find(([n]) => s >= n) || UNITS[3];
		return Math.floor(s / size) + unit;
	};

	// A value as a cell shows it; undefined: no value; null: not known.
	const shownAs = (title, v) =>
		TEXTS.includes(title) ? visible(v ?? (SPARSE.includes(title) ? "" : "-")) :
		v === undefined ? "-" :
		v === null ? "?" :
		AGES.includes(title) ? ageOf(v) :
		title === "pid" ? String(v) :
		title.endsWith("/s") && v < 9.95 ? v.toFixed(1) : Math.round(v).toLocaleString("en");

	/* --- the address has what was chosen ---------------------------------------- */

	const sorts = new Map(); // column -> "asc" or "desc"
	let data, samples = [], past = [], drawn = [], paused = false;
	let queue, filter, span, shown, reason, home = "#"; // without a view, home is the address

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

	// A name as a part of a URL; a byte of it that is not UTF-8 is \xNN in JSON.
	const addressOf = (name) =>
		encodeURIComponent(name).replace(/%5Cx([\da-f]{2})/gi, "%$1");

	// A part of a URL as a word for any shell.
	const wordOf = (address) => {
		let text = "\n";
		attempt(() => text = decodeURIComponent(address));
		if (/^[\w.,:/@%+=-]+$/.test(text))
			return text;
		if (text.search(ODD) === -1)
			return "'" + text.replaceAll("'", "'\\''") + "'";
		return `"$(printf '` + address.replace(/%(..)|\W/g, (c, hex) => "\\" +
			(hex ? parseInt(hex, 16) : c.charCodeAt(0)).toString(8)
				.padStart(3, "0")) + `')"`;
	};

	// A reason has N and ID for what differs, and ? for a byte that is not UTF-8.
	const patternOf = (reason) => "^" + reason
		.replace(ODD, "\n").replace(/ID|N|\?/g, "\n")
		.replace(/['"$()*+.[\\\]^`{|}]/g, ".").replaceAll("\n", ".*");

	const COMMANDS = {
		resumed: ["mq-pause"],
		paused: ["mq-pause --resume"],
		ready: ["mq-purge --ready"],
		delayed: ["mq-return --from delayed", "mq-purge --delayed"],
		running: ["mq-return --running", "mq-purge --running"],
		rejected: ["mq-return", "mq-purge --rejected"],
	};

	const commandsFor = (states, name, which = "") => {
		const address = addressOf(name);
		// Only Go programs take such names: control characters, [ ] { } and ::.
		if (/%([01].|5[BD]|7[BDF]|3A%3A)/.test(address))
			return [];
		const words = which + (name.startsWith("-") ? " -- " : " ") + wordOf(address);
		return states.flatMap((state) => COMMANDS[state] || []).map(
			(command) => command + words);
	};

	const ofMessage = (id) => " --id " + wordOf(encodeURIComponent(id));

	const commandsOf = (section, row) =>
		section === "queues" ? commandsFor([row.paused ? "paused" : "resumed",
			...["rejected", "ready"].filter((state) => row[state] > 0)], row.queue) :
		row.pattern ? commandsFor(["rejected"], row.queue, ` --reason '${row.pattern}'`) :
		row.id ? commandsFor([section === "running" ? section : "rejected"], row.queue,
			ofMessage(row.id)) : [];

	const commandLine = (command) => make("p", {className: "command"},
		make("code", {}, command), navigator.clipboard ? press("Copy", async (e) => {
			await navigator.clipboard.writeText(command);
			e.target.textContent = "Copied";
		}) : "");

	const box = make("div", {id: "commands", popover: "auto"});

	/* --- a message, or those of a queue ------------------------------------------ */

	const view = make("section", {id: "view"});

	const ago = (ms) => ageOf(Math.abs(Date.now() - ms) / 1000);
	const valueOf = (name, v) =>
		!name.endsWith("_ms") || !(Math.abs(v) < 1e15) ? visible(v, "\n\t") :
			dated(v) + " UTC, " + (v > Date.now() ? "in " + ago(v) : ago(v) + " ago");

	const tableOf = (titles, rows) => {
		const rowOf = (tag, contents) => make("tr", {}, ...contents.map((content, i) =>
			cellOf(tag, titles[i], content)));
		return make("div", {className: "card"}, make("table", {},
			...titles.length > 0 ? [make("thead", {}, rowOf("th", titles))] : [],
			make("tbody", {}, ...rows.map((row) => rowOf("td", row)))));
	};

	const factsOf = (o) => tableOf([], Object.entries(o)
		.filter(([, v]) => v !== null)
		.map(([name, v]) => Array.isArray(v) ? [visible(name), visible(v)] : // a header
			[name.replace(/_ms$/, "").replaceAll("_", " "),
				v instanceof Node ? v : valueOf(name, v)]));

	// A text of a run, behind a bar if it says how far the run is.
	const barred = (percent, text) => percent === undefined ? text :
		make("span", {}, make("progress", {max: 100, value: percent}), text);

	const text = (s) => make("pre", {className: "card t"}, visible(s, "\n\t"));

	const attemptOf = (a) => [
		make("p", {}, visible([a.attempt, a.at_ms && valueOf("at_ms", a.at_ms), a.host,
			a.signal ? "signal " + a.signal : a.status >= 0 && "exit " + a.status,
			a.text].filter(Boolean).join(" \u00b7 "))),
		...a.stderr ? [text(a.stderr)] : [],
	];

	const showMessage = (m) => {
		const {history, headers, running, payload, payload_base64, output, result,
			result_base64, id, ...facts} = m;
		const body = payload ?? payload_base64;
		const given = result ?? result_base64;
		const part = (title, ...content) =>
			view.append(make("h3", {}, title), ...content);
		view.append(make("h2", {}, visible(id)), factsOf(facts));
		if (running) {
			const {queue, id, connection, percent, text, ...run} = running;
			part("Running", factsOf({...run,
				...text && {text: barred(percent, visible(text))}}));
		}
		if (given !== undefined)
			part(result === undefined ? "Result, in base64" : "Result", text(given));
		if (output) {
			part("End of the output", text(output));
			view.lastChild.scrollTop = view.lastChild.scrollHeight;
		}
		if (history)
			part("Attempts", ...history.flatMap(attemptOf));
		if (Object.keys(headers || {}).length > 0)
			part("Headers", factsOf(headers));
		if (body !== undefined)
			part(payload === undefined ? "Payload, in base64" : "Payload", text(body));
		// Without a state, only the output is left of the message.
		const commands = m.state ?
			commandsFor([running ? "running" : m.state], m.queue, ofMessage(id)) : [];
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

	const since = (ms) => ms ? Math.max(0, (data.time_ms - ms) / 1000) : undefined;

	const noteOf = (q) => {
		const left = (ms) => ms ? " for " + ageOf((ms - data.time_ms) / 1000) : "";
		return [
			q.paused && "paused" + left(q.paused_until_ms),
			q.all_paused && "all queues paused" + left(q.all_paused_until_ms),
			q.dead_consumers > 0 && q.dead_consumers + " dead consumer" +
				(q.dead_consumers === 1 ? "" : "s"),
			q.leaving > 0 && q.leaving + " on the way to another queue",
		].filter(Boolean).join(", ");
	};

	// Without a message there is no age.
	const rowOfQueue = (q) => ({...q, key: q.name, queue: q.name, note: noteOf(q),
		age: q.oldest_age_s ?? (q.ready === 0 ? undefined : null),
		"in/s": q.in_per_s ?? undefined, "out/s": q.out_per_s ?? undefined});

	// The rows of each section, with a unique key, and members named as the columns.
	const ROWS = {
		queues: () => data.queues.map((q) => ({...rowOfQueue(q),
			alone: q.ready > 0 && q.consumers === 0})),
		running: () => data.running.map((r) => ({...r, key: r.id})),
		batches: () => data.batches.map((b) => ({...b, key: b.queue + "\0" + b.batch})),
		reasons: () => data.rejected.flatMap(({queue, reasons, others}) => [
			...reasons.map((r) => ({...r, queue, key: queue + "\0" + r.reason,
				oldest: since(r.oldest_ms), newest: since(r.newest_ms),
				why: r.reason ?? "", pattern: r.reason && patternOf(r.reason)})),
			...others > 0 ?
				[{queue, key: queue, count: others, reason: "(other reasons)"}] : [],
		]),
		newest: () => data.rejected.flatMap(({queue, newest}) => newest.map((m) =>
			({...m, queue, key: queue + "\0" + m.id, age: since(m.since_ms)}))),
		connections: () => data.connections.flatMap((c) =>
			(c.queues.length > 0 ? c.queues : [{}]).map((q) => ({...q,
				key: c.name + "\0" + q.queue, connection: c.name,
				state: c.live === null ? "?" : c.live ? "live" : "dead", host: c.host,
				pid: c.pid ?? undefined, "heartbeat on": c.node, "queue on": q.node}))),
	};

	// No queue has the key of a sum.
	const sumRows = () => [
		...data.others ? [{...rowOfQueue(data.others), key: "\0",
			queue: data.others.queues + " more"}] : [],
		{...rowOfQueue(data.totals), key: "", queue: "TOTAL"},
	];

	const classOf = (title, row, text) =>
		TEXTS.includes(title) ?
			"t" + (title === "state" && text === "dead" ? " bad" :
				title === "state" && text === "?" || title === "note" ||
				title === "queue" && (row.paused || row.all_paused) ? " warn" : "") :
			"n" + (!/[1-9?]/.test(text) && !(AGES.includes(title) && text !== "-") ? " zero" :
				title === "rejected" && text !== "?" ? " bad" :
				text === "?" && title !== "age" ? " warn" : "");

	const contentOf = (section, title, row, text) =>
		section === "queues" && title === "queue" ? press(text, () => chooseQueue(row.queue)) :
		served && title === "id" && row.id ?
			link("message/", encodeURIComponent(row.id), text) :
		served && title === "reason" && row.why !== undefined ?
			link("queue/", addressOf(row.queue), text, row.why) :
		section === "running" && title === "text" ? barred(row.percent, text) : text;

	const cellOf = (tag, title, content = "") => {
		const cell = make(tag, {className: !title || TEXTS.includes(title) ? "t" : "n"}, content);
		if (title)
			cell.dataset.l = title;
		return cell;
	};

	const makeRow = (section) => {
		const e = make("tr", {}, ...COLUMNS[section].map((title, i) =>
			Object.assign(cellOf(i === 0 ? "th" : "td", title), i === 0 && {scope: "row"})));
		const more = press("\u22ef", () => {
			box.replaceChildren(...commandsOf(section, e.row).map(commandLine));
			box.showPopover();
		});
		more.title = "commands";
		e.append(make("td", {className: "do"}, more));
		return e;
	};

	// Shows rows in a part of a table.  Elements that stay keep focus and selection.
	const fill = (part, section, rows) => {
		const old = Map.groupBy(part.rows, (e) => e.row.key);
		rows.forEach((row, i) => {
			const e = old.get(row.key)?.shift() ?? makeRow(section);
			e.row = row;
			e.classList.toggle("alone", !!row.alone);
			COLUMNS[section].forEach((title, k) => {
				const cell = e.cells[k], text = shownAs(title, row[title]);
				cell.className = classOf(title, row, text);
				if (cell.shown !== text)
					cell.replaceChildren(part.tagName === "TFOOT" ? text :
						contentOf(section, title, row, text));
				cell.shown = text;
			});
			e.querySelector(".do button").hidden = part.tagName === "TFOOT" ||
				commandsOf(section, row).length === 0;
			if (part.rows[i] !== e)
				part.insertBefore(e, part.rows[i]);
		});
		[...part.rows].slice(rows.length).forEach((e) => e.remove());
	};

	// Columns of queues are named by their titles; others by section and title.
	const nameOf = (section, title) => (section === "queues" ? "" : section + ".") + title;

	const sortRows = (section, rows) => {
		rows.sort((a, b) => b.alone - a.alone);
		for (const title of COLUMNS[section]) {
			const order = sorts.get(nameOf(section, title));
			const sign = {asc: 1, desc: -1}[order];
			if (sign)
				rows.sort((a, b) => sign * (TEXTS.includes(title) ?
					collator.compare(a[title] ?? "-", b[title] ?? "-") :
					(a[title] || 0) - (b[title] || 0)));
		}
	};

	const chooseSort = (section, title) => {
		const name = nameOf(section, title);
		const was = sorts.get(name);
		const down = was ? was === "asc" : !TEXTS.includes(title);
		COLUMNS[section].forEach((other) => sorts.delete(nameOf(section, other)));
		sorts.set(name, down ? "desc" : "asc");
		show();
	};

	const chooseQueue = (name) => {
		queue = name === queue ? null : name;
		show();
		if (queue !== null)
			panel.scrollIntoView({block: "nearest"});
	};

	const matches = (section, row) =>
		(section === "queues" || queue === null || row.queue === queue) &&
		COLUMNS[section].some((title) => TEXTS.includes(title) &&
			shownAs(title, row[title]).toLowerCase().includes(filter.toLowerCase()));

	const makeTable = (section) => {
		const head = make("tr", {}, ...COLUMNS[section].map((title) => cellOf("th", title,
			press(title, () => chooseSort(section, title)))), make("th", {className: "do"}));
		document.querySelector(`#${section} pre`).replaceWith(make("div", {className: "card"},
			make("table", {}, make("thead", {}, head), make("tbody"), make("tfoot"))));
	};

	const showTable = (section) => {
		const e = document.getElementById(section), table = e.querySelector("table");
		const every = ROWS[section]();
		const rows = every.filter((row) => matches(section, row));
		const sums = section === "queues" && every.length + !!data.others > 1 ? sumRows() : [];
		sortRows(section, rows);
		fill(table.tBodies[0], section, rows);
		fill(table.tFoot, section, sums);
		COLUMNS[section].forEach((title, i) => {
			const empty = SPARSE.includes(title) && ![...every, ...sums].some((r) => r[title]);
			for (const row of table.rows)
				row.cells[i].hidden = empty;
			table.rows[0].cells[i].ariaSort = {asc: "ascending", desc: "descending"}[
				sorts.get(nameOf(section, title))];
		});
		e.hidden = (section === "queues" ? every : rows).length === 0;
		e.querySelector("small").textContent = rows.length === every.length ?
			rows.length.toLocaleString("en") : `${rows.length} of ${every.length}`;
	};

	/* --- samples and plots ------------------------------------------------------- */

	// A number of a row for a plot; NaN: not known.
	const numberIn = (row, title) =>
		title === "age" && row.age === undefined ? 0 : row[title] ?? NaN;

	// A sample has a series of numbers for each queue, and for all as "".
	const takeSample = () => {
		const t = data.time_ms;
		if (data.queues.length === 0 || samples.at(-1)?.t === t)
			return;
		const rows = [...ROWS.queues(), ...sumRows()];
		samples.push({t, rows: new Map(rows.map((row) =>
			[row.key, SERIES.map((title) => numberIn(row, title))]))});
		// Every second sample goes, so that memory is bounded and the oldest stays.
		if (samples.length > Math.max(24, Math.min(SAMPLES, 60000 / rows.length)))
			samples = samples.filter((s, i) =>
				i === 0 || (samples.length - 1 - i) % 2 === 0);
	};

	const keepSamples = () => attempt(() => sessionStorage.setItem(store,
		JSON.stringify(samples.map((s) => [s.t, [...s.rows]]))));

	const restoreSamples = () => attempt(() => {
		samples = JSON.parse(sessionStorage.getItem(store) || "[]").map(
			([t, rows]) => ({t, rows: new Map(rows.map(([key, numbers]) =>
				[key, numbers.map((n) => n ?? NaN)]))}));
	});

	// A number of a note, or the rate since the previous note, if there is no gap.
	const noted = (title, n, before, unit) => {
		const at = NOTED[title];
		const [from, to, s] = [before?.[at], n[at], n[0] - before?.[0]];
		return !title.endsWith("/s") ? (to < 0 ? NaN : to) :
			s < 2 * unit && from >= 0 && to >= from ? (to - from) / s : NaN;
	};

	const addUp = (sum, title, v) => title === "age" ? Math.max(sum || 0, v || 0) :
		title.endsWith("/s") && Number.isNaN(v) ? sum : (sum || 0) + v;

	// Notes become samples of a minute or an hour each, which hold until the next but one.
	// An element of queues: whether another queue counts its messages, minutes, hours.
	const readPast = (queues) => {
		for (const [kind, unit] of [[0, 60], [1, 3600]]) {
			const slots = new Map();
			queues.forEach(([counted, ...kinds], i) => kinds[kind].forEach((n, k, notes) => {
				const slot = Math.floor(n[0] / unit);
				const s = slots.get(slot) ||
					{t: 0, holds: 2000 * unit, rows: new Map([["", []]])};
				const sum = s.rows.get("");
				const numbers = SERIES.map((title) => noted(title, n, notes[k - 1], unit));
				SERIES.forEach((title, at) => {
					if (!counted || title === "rejected" || title.endsWith("/s"))
						sum[at] = addUp(sum[at], title, numbers[at]);
				});
				s.t = Math.max(s.t, n[0] * 1000);
				if (i < data.queues.length)
					s.rows.set(data.queues[i].name, numbers);
				slots.set(slot, s);
			}));
			// Notes of hours are used only before those of minutes begin.
			past.push(...[...slots.values()].filter((s) =>
				unit === 60 || s.t < data.time_ms - HOUR));
		}
	};

	// A sample made of notes may lack this queue.
	const seriesOf = (key, title) => drawn.filter((s) => !s.holds || s.rows.has(key)).map(
		(s) => ({t: s.t, v: s.rows.get(key)?.[SERIES.indexOf(title)] ?? NaN, holds: s.holds}));

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

	const showSparks = () => {
		const [head, ...rows] = document.querySelector("#queues table").rows;
		for (const title of PLOTTED) {
			const at = COLUMNS.queues.indexOf(title);
			head.cells[at].classList.add("plot");
			for (const e of rows) {
				const values = seriesOf(e.row.key, title);
				e.cells[at].classList.add("plot");
				e.cells[at].querySelector("svg")?.remove();
				if (values.some((p) => p.v > 0))
					e.cells[at].append(plot([values], 48, 14));
			}
		}
	};

	const figure = (key, caption, titles) => {
		const text = (title, v) => Number.isNaN(v) ? "\u2013" : shownAs(title, v);
		const lines = titles.map((title) => seriesOf(key, title));
		const most = drawn.length > 1 && maximum(lines);
		const f = make("figure", {className: drawn.length > 1 ? "live" : ""},
			make("figcaption", {}, caption, make("span", {},
				most ? "at most " + text(titles[0], most) : "")),
			make("dl", {}, ...titles.map((title, i) => make("div",
				{className: "line" + i},
				make("dt", {}, titles.length > 1 ? title : ""),
				make("dd", {}, text(title, lines[i].at(-1)?.v ?? NaN))))));
		if (drawn.length > 1)
			f.append(plot(lines, 320, 80));
		return f;
	};

	const panel = make("section", {id: "plots"});

	const showPanel = () => {
		const now = samples.at(-1);
		panel.hidden = !now;
		if (panel.hidden)
			return;
		panel.className = queue === null ? "" : "chosen";
		const head = make("h2", {}, visible(queue ?? "All queues"));
		if (queue !== null)
			head.append(press("show all", () => chooseQueue(queue)));
		if (queue !== null && served)
			head.append(link("queue/", addressOf(queue), "messages"));
		if (past.some((s) => s.t < now.t - HOUR))
			head.append(press(span === HOUR ? "two days" : "one hour", () => {
				span = span === HOUR ? TWO_DAYS : HOUR;
				show();
			}));
		if (drawn.length > 1)
			head.append(make("small", {}, [drawn[0].t, now.t]
				.map(span === HOUR ? time : dated).join(" to ") + " UTC"));
		panel.replaceChildren(head, make("div", {className: "figures"},
			...FIGURES.map(([caption, titles]) => figure(queue ?? "", caption, titles))));
	};

	/* --- refresh ----------------------------------------------------------------- */

	const renew = (page) => {
		const policy = (d) => d.querySelector("meta[http-equiv]").content;
		const fresh = page.getElementById("data");
		if (!fresh)
			throw new Error("something else is there");
		// Another version of mq-stats has another script.
		if (policy(page) !== policy(document))
			location.reload();
		data = JSON.parse(fresh.textContent)[0];
		for (const section of all("main > section", page)) {
			const old = document.getElementById(section.id);
			all(".note", old).forEach((note) => note.remove());
			old.append(...all(".note", section));
		}
		document.querySelector("time").replaceWith(page.querySelector("time"));
		takeSample();
		show();
	};

	const state = make("span", {className: "state", role: "status"});

	const readAgain = async () => {
		// A file cannot be fetched; samples survive its reload.
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
			state.textContent = `not read since ${time(data.time_ms)} UTC: ` +
				`${e.message}; trying again`;
		}
		setTimeout(readAgain, refresh * 1000);
	};

	const show = () => {
		const focused = document.activeElement;
		Object.keys(COLUMNS).forEach(showTable);
		drawn = [...past, ...samples].filter((s) => s.t >= data.time_ms - span).sort(
			(a, b) => a.t - b.t);
		if (drawn.length > 1)
			showSparks();
		for (const e of document.querySelector("#queues tbody").rows)
			e.querySelector("button").ariaPressed = e.row.queue === queue;
		showPanel();
		(focused.isConnected ? focused : panel.querySelector("button"))?.focus(
			{preventScroll: true});
		writeAddress();
	};

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
	Object.keys(COLUMNS).forEach(makeTable);
	const [first, notes] = JSON.parse(document.getElementById("data").textContent);
	data = first;
	readPast(notes);
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
