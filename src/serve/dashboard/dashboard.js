// The dashboard of baton serve: takes over the table that the server has written, follows the stream
// of events, and gives orders with the term that is shown. All text goes in by textContent: names and
// metadata come from anybody who may write to the store.
const $ = (id) => document.getElementById(id);
const rows = new Map(), logs = new Map(), sparks = [];
let info = null, selected = 0, filter = "", wanted = "all", alive = 0, source = null, shown = [];

function el(tag, props, ...kids) {
	const e = document.createElement(tag);
	for (const [k, v] of Object.entries(props || {})) {
		if (k === "class") e.className = v;
		else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
		else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
	}
	e.append(...kids.filter((k) => k !== null && k !== undefined).map((k) => k instanceof Node ? k : String(k)));
	return e;
}
function svg(tag, props, text) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
	if (text !== undefined) e.textContent = text;
	return e;
}
const now = () => performance.now();
function span(ms) {
	const s = Math.max(0, ms) / 1000;
	if (s < 1) return Math.round(ms) + " ms";
	if (s < 60) return s.toFixed(s < 10 ? 1 : 0) + " s";
	if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
	if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60 % 60) + " min";
	return Math.floor(s / 86400) + " d " + Math.floor(s / 3600 % 24) + " h";
}
const clock = (t) => t ? new Date(t).toLocaleTimeString() : "";
const us = (n) => n < 1000 ? n + " µs" : n < 1e6 ? (n / 1000).toFixed(0) + " ms" : (n / 1e6).toFixed(1) + " s";
function stateOf(r) {
	if (r.paused) return ["paused", "‖"];
	if (r.health === "unhealthy") return ["unknown", "?"];
	return r.leader ? ["led", "●"] : ["leaderless", "▲"];
}
const tag = (r) => { const [w, s] = stateOf(r); return el("span", {class: "tag " + w}, s, " ", w); };
const rank = (r) => ({leaderless: 0, unknown: 1, paused: 2, led: 3})[stateOf(r)[0]];

// ---- what comes in ----
function keep(r) {
	r.at = now();
	const old = rows.get(r.election);
	rows.set(r.election, r);
	if (old && old.leader !== r.leader) $("said").textContent = r.election + ": " + (r.leader || "nobody") + " leads";
}
function connect() {
	source = new EventSource("v1/events");
	const heard = () => { alive = now(); $("live").className = "chip live on"; document.body.classList.remove("lost"); $("banner").hidden = true; $("table").classList.remove("stale"); };
	source.addEventListener("snapshot", (m) => { info = JSON.parse(m.data); rows.clear(); info.elections.forEach(keep); heard(); head(); draw(); });
	for (const kind of ["became", "lost", "changed", "error", "waits", "stopped"])
		source.addEventListener(kind, (m) => {
			const e = JSON.parse(m.data); heard(); keep(e.row);
			const list = logs.get(e.election) || []; list.unshift(e); list.length = Math.min(list.length, 100); logs.set(e.election, list);
			later();
		});
	source.addEventListener("row", (m) => { heard(); keep(JSON.parse(m.data)); later(); });
	source.addEventListener("lease", (m) => {
		const l = JSON.parse(m.data); heard();
		for (const r of rows.values()) if (r.me.leads) { r.time_left_ms = l.time_left_ms; r.at = now(); }
		info.store.renew_p50_us = l.renew_p50_us; info.store.renew_p99_us = l.renew_p99_us;
		sparks.push(l.renew_p99_us); if (sparks.length > 40) sparks.shift(); head();
	});
	source.onerror = () => {
		$("live").className = "chip live lost"; $("live").lastChild.textContent = "no news";
		document.body.classList.add("lost"); $("table").classList.add("stale");
		$("banner").hidden = false; $("banner").textContent = "The stream is lost: this is as of " + new Date().toLocaleTimeString() + ". Trying again.";
	};
}
let due = false;
function later() { if (!due) { due = true; requestAnimationFrame(() => { due = false; draw(); }); } }
function head() {
	$("store").textContent = info.store.kind + " store";
	$("latency").textContent = info.store.renew_p99_us ? "renewals p50 " + us(info.store.renew_p50_us) + ", p99 " + us(info.store.renew_p99_us) : "";
	$("me").textContent = info.id; $("me").title = info.id;
	$("mode").textContent = info.capabilities.includes("operate") ? "operator" : "read only";
	const most = Math.max(1, ...sparks);
	$("spark").replaceChildren(svg("polyline", {fill: "none", stroke: "currentColor", "stroke-width": 1.5, points: sparks.map((v, i) => (i * 2.1).toFixed(1) + "," + (20 - 18 * v / most).toFixed(1)).join(" ")}));
}

// ---- the overview ----
const filters = [["all", "elections", () => true], ["led", "led", (r) => r.leader], ["leaderless", "leaderless", (r) => !r.leader && !r.paused], ["paused", "paused", (r) => r.paused], ["lonely", "without standby", (r) => r.leader && r.n_candidates === 1], ["changed", "changed in the last hour", (r) => r.changes_hour > 0]];
function drawStrip() {
	const all = [...rows.values()];
	$("strip").replaceChildren(...filters.map(([key, words, test]) => {
		const n = key === "changed" ? all.reduce((s, r) => s + r.changes_hour, 0) : all.filter(test).length;
		return el("button", {"aria-pressed": String(wanted === key), "data-key": key, class: key === "leaderless" && n ? "alarm" : "", onclick: () => { wanted = wanted === key ? "all" : key; draw(); }}, el("b", {}, n), key === "changed" ? "changes in the last hour" : words);
	}));
}
function bar(r) {
	const b = el("div", {class: "bar", role: "img", "data-bar": r.election, "aria-label": "lease"}, el("i")); return b;
}
function dots(r) {
	if (r.n_candidates < 0) return el("span", {class: "dots"}, "…");
	const n = Math.min(r.n_candidates, 12), h = Math.min(r.n_healthy, n);
	return el("span", {class: "dots", title: r.n_healthy + " of " + r.n_candidates + " healthy"}, el("b", {}, "●".repeat(h)), "○".repeat(n - h), r.n_candidates > 12 ? "+" + (r.n_candidates - 12) : "");
}
function line(r, i) {
	const can = info && info.capabilities.includes("operate");
	return el("tr", {tabindex: 0, "data-i": i, "data-name": r.election, onclick: () => { location.hash = "#/e/" + encodeURIComponent(r.election); }},
		el("td", {}, tag(r)), el("th", {scope: "row", class: "name", title: r.election}, r.election),
		el("td", {class: "who", title: r.leader}, r.leader || "—", r.me.leads ? " (this one)" : ""),
		el("td", {"data-since": r.since || ""}, r.since ? span(Date.now() - Date.parse(r.since)) : ""),
		el("td", {}, bar(r)), el("td", {}, r.term), el("td", {}, dots(r)), el("td", {}, r.changes_day), el("td", {}, r.error || r.reason || ""),
		el("td", {}, can ? el("button", {onclick: (e) => { e.stopPropagation(); r.paused ? ask(r, "resume") : ask(r, "resign"); }}, r.paused ? "resume" : "resign") : ""));
}
const HEIGHT = 47;
function draw() {
	const m = location.hash.match(/^#\/e\/(.+)$/);
	$("overview").hidden = !!m; $("detail").hidden = !m;
	if (m) { detail(decodeURIComponent(m[1])); return; }
	drawStrip();
	const test = filters.find((f) => f[0] === wanted)[2];
	shown = [...rows.values()].filter((r) => test(r) && (r.election + " " + r.leader).includes(filter))
		.sort((a, b) => rank(a) - rank(b) || (a.election < b.election ? -1 : 1));
	const table = $("table");
	if (table.tHead.rows[0].cells.length < 10)
		table.tHead.replaceChildren(el("tr", {}, ...["state", "election", "leader", "since", "lease", "term", "candidates", "in 24 h", "last reason", "action"].map((t) => el("th", {scope: "col"}, t))));
	table.setAttribute("aria-rowcount", shown.length);
	drawRows(); drawEmpty();
}
// Only what can be seen is there: 10,000 rows stay smooth.
function drawRows() {
	const body = $("table").tBodies[0], focus = document.activeElement && document.activeElement.dataset.i;
	let from = 0, to = shown.length;
	if (shown.length > 200) {
		const top = -$("table").getBoundingClientRect().top;
		from = Math.max(0, Math.floor(top / HEIGHT) - 20); to = Math.min(shown.length, from + Math.ceil(innerHeight / HEIGHT) + 40);
	}
	const pad = (n) => { const td = el("td", {colspan: 10}); td.style.height = n * HEIGHT + "px"; return el("tr", {class: "spacer", "aria-hidden": "true"}, td); };
	body.replaceChildren(...(from ? [pad(from)] : []), ...shown.slice(from, to).map((r, i) => line(r, from + i)), ...(to < shown.length ? [pad(shown.length - to)] : []));
	if (focus !== undefined) { const r = body.querySelector('[data-i="' + focus + '"]'); if (r) r.focus({preventScroll: true}); }
	bars();
}
function drawEmpty() {
	const e = $("empty"); e.hidden = rows.size > 0;
	if (!e.hidden) e.replaceChildren(el("h2", {}, "No election yet"), el("p", {}, "Make one:"), el("pre", {}, "baton run hello -- sleep 1000\nbaton status hello\nbaton serve --observe='*'"));
}
// The lease runs down between renewals, and stops when there is no news.
function bars() {
	if (!info || document.body.classList.contains("lost")) return;
	const t = info.timings;
	for (const b of document.querySelectorAll("[data-bar]")) {
		const r = rows.get(b.dataset.bar);
		if (!r) continue;
		const mine = r.me.leads, full = mine ? t.renew_ms + t.grace_ms : t.lease_ms;
		const left = r.time_left_ms === null ? 0 : Math.max(0, r.time_left_ms - (now() - r.at));
		b.firstChild.style.transform = "scaleX(" + Math.min(1, left / full).toFixed(3) + ")";
		b.className = "bar" + (r.me.draining_term !== "0" ? " drain" : left < full - t.renew_ms - 200 && r.leader ? " grace" : "");
		b.title = r.leader ? span(left) + " left" : "nobody leads";
	}
}
setInterval(() => {
	bars();
	if (info && !document.body.classList.contains("lost")) $("live").lastChild.textContent = "live, " + span(now() - alive) + " ago";
}, 200);

// ---- one election ----
let seen = {name: "", history: null, candidates: [], loaded: 0}, zoom = 3600e3;
async function load(name) {
	const base = "v1/elections/" + encodeURIComponent(name);
	const [s, h] = await Promise.all([fetch(base).then((r) => r.json()), fetch(base + "/history?check=1").then((r) => r.json())]);
	seen = {name, history: h.leaderships ? h : {leaderships: [], proven: null, finding: h.detail}, candidates: s.candidates || [], metadata: s.metadata, loaded: now()};
	if (s.election) keep(s);
	later();
}
function detail(name) {
	const r = rows.get(name), d = $("detail");
	if (!r) { d.replaceChildren(el("p", {}, "There is no election of this name."), el("a", {href: "#/"}, "all elections")); return; }
	if (seen.name !== name || now() - seen.loaded > 2000) { if (seen.name !== name) seen = {name, history: null, candidates: [], loaded: now()}; else seen.loaded = now(); load(name); }
	const can = info.capabilities.includes("operate");
	const act = (what, words) => el("button", {"data-act": what, disabled: what !== "resume" && what !== "pause" && !r.leader, onclick: () => ask(r, what)}, words);
	d.replaceChildren(
		el("div", {class: "row head"}, el("a", {href: "#/", "aria-label": "all elections"}, "← all"), el("h1", {}, r.election), tag(r), el("span", {class: "grow"}),
			...(can ? [act("resign", "Resign…"), act("transfer", "Transfer…"), r.paused ? act("resume", "Resume…") : act("pause", "Pause…")] : [])),
		el("div", {class: "card"}, el("h2", {}, "now"), el("dl", {class: "facts"},
			...[["leader", r.leader || "nobody"], ["term", r.term], ["since", r.since ? clock(r.since) + " (" + span(Date.now() - Date.parse(r.since)) + ")" : ""], ["lease", bar(r)], ["address", r.address || "—"], ["this candidate", r.me.state + (r.me.attached ? ", " + r.me.attached + " attached" : "")], ["last reason", r.reason || "—"], ["waits", r.wait || "—"], ["store", r.error || "answers"]]
				.flatMap(([k, v]) => [el("div", {}, el("dt", {}, k), el("dd", {}, v))]))),
		el("div", {class: "card"}, el("h2", {}, "leaderships"), zooms(), gantt(), proof()),
		el("div", {class: "card"}, el("h2", {}, "candidates"), candidates()),
		el("div", {class: "card"}, el("h2", {}, "timings"), timings()),
		el("div", {class: "card"}, el("h2", {}, "events"), el("ul", {class: "log"}, ...(logs.get(name) || []).map((e) =>
			el("li", {}, el("time", {}, clock(e.time)), e.kind + " " + [e.leader, e.term !== "0" ? "term " + e.term : "", e.reason, e.text].filter(Boolean).join(" · "))), (logs.get(name) || []).length ? null : el("li", {}, "none since this page was opened"))));
	bars();
}
const zooms = () => el("div", {class: "row", style: undefined}, el("span", {class: "off"}, "zoom"), ...[["1 h", 3600e3], ["24 h", 86400e3], ["7 d", 604800e3], ["all", 0]].map(([w, z]) => el("button", {"aria-pressed": String(zoom === z), class: zoom === z ? "main" : "", onclick: () => { zoom = z; draw(); }}, w)));
const ends = {"": "var(--good)", released: "var(--accent)", resigned: "var(--accent)", transferred: "var(--accent)", ordered: "var(--accent)", stopped: "var(--accent)"};
function gantt() {
	const list = seen.history ? seen.history.leaderships.slice().reverse() : [];
	if (!list.length) return el("p", {class: "proof not"}, seen.history ? seen.history.finding || "No leadership yet." : "…");
	const end = Date.now(), begin = zoom ? Math.max(end - zoom, Math.min(Date.parse(list[0].since), end - 10e3)) : Date.parse(list[0].since);
	const names = [...new Set(list.map((l) => l.leader))].slice(-12), W = 1000, left = 150, lane = 26, h = names.length * lane + 24;
	const x = (t) => left + (W - left - 8) * Math.min(1, Math.max(0, (t - begin) / Math.max(1, end - begin)));
	const s = svg("svg", {class: "gantt", viewBox: "0 0 " + W + " " + h, role: "img", "aria-label": list.length + " leaderships"});
	const p = svg("pattern", {id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"});
	p.append(svg("rect", {width: 2, height: 6, fill: "var(--bad)"})); s.append(p);
	names.forEach((n, i) => { const t = svg("text", {x: 0, y: i * lane + 17}, n.length > 20 ? n.slice(0, 19) + "…" : n); t.append(svg("title", {}, n)); s.append(t, svg("line", {x1: left, x2: W - 8, y1: i * lane + 24, y2: i * lane + 24, stroke: "var(--line)"})); });
	list.forEach((l, i) => {
		const a = Date.parse(l.since), b = l.until ? Date.parse(l.until) : l.ended ? a : end, y = names.indexOf(l.leader) * lane;
		if (b < begin || y < 0) return;
		const bar = svg("rect", {x: x(a), y: y + 4, width: Math.max(2, x(b) - x(a)), height: 16, rx: 3, fill: ends[l.ended] || "var(--warn)"});
		bar.append(svg("title", {}, "term " + l.term + ", " + l.leader + ", " + span(b - a) + (l.ended ? ", " + l.ended : ", leads") + (l.note ? ": " + l.note : "")));
		s.append(bar);
		const next = list[i + 1];
		if (next && l.until && Date.parse(next.since) > b) {
			const gap = svg("rect", {x: x(b), y: 0, width: Math.max(1, x(Date.parse(next.since)) - x(b)), height: names.length * lane, fill: "url(#hatch)", opacity: .6});
			gap.append(svg("title", {}, "nobody led for " + span(Date.parse(next.since) - b))); s.append(gap);
		}
	});
	s.append(svg("text", {x: left, y: h - 4}, new Date(begin).toLocaleString()), svg("text", {x: W - 8, y: h - 4, "text-anchor": "end"}, "now"));
	return s;
}
function proof() {
	const h = seen.history;
	if (!h || h.proven === null) return "";
	const n = h.leaderships.length;
	return el("p", {class: "proof" + (h.proven ? "" : " not")}, h.proven ? "✓ no two overlapped: proven for the last " + n + (h.by_terms ? ", " + h.by_terms + " of them by their terms" : " by the clock of the store") : "✗ " + h.finding);
}
function candidates() {
	return el("table", {}, el("thead", {}, el("tr", {}, ...["candidate", "role", "health", "priority", "last seen", "address", "metadata"].map((t) => el("th", {scope: "col"}, t)))),
		el("tbody", {}, ...seen.candidates.map((c) => el("tr", {}, el("th", {scope: "row", class: "name", title: c.id}, c.id), el("td", {}, c.leader ? "● leader" : "○ standby"), el("td", {}, (c.healthy ? "✓ " : "✗ ") + c.score), el("td", {}, c.priority), el("td", {}, c.updated ? span(Date.now() - Date.parse(c.updated)) + " ago" : ""), el("td", {}, c.address), el("td", {class: "who", title: c.metadata}, c.metadata)))));
}
function timings() {
	const t = info.timings, W = 1000, x = (ms) => 8 + (W - 16) * ms / t.gone_ms;
	const s = svg("svg", {class: "gantt", viewBox: "0 0 " + W + " 66", role: "img", "aria-label": "renew " + t.renew_ms + " ms, grace " + t.grace_ms + " ms, lease " + t.lease_ms + " ms"});
	const part = (a, b, fill, words) => { const r = svg("rect", {x: x(a), y: 8, width: Math.max(0, x(b) - x(a)), height: 22, fill, rx: 3}); r.append(svg("title", {}, words)); s.append(r, svg("text", {x: x(a) + 4, y: 46}, words)); };
	part(0, t.renew_ms, "var(--good)", "renewed after " + span(t.renew_ms));
	part(t.renew_ms, t.renew_ms + t.grace_ms, "var(--warn)", "grace " + span(t.grace_ms));
	part(t.renew_ms + t.grace_ms, t.end_ms, "var(--bad)", "drain " + span(t.drain_ms));
	part(t.end_ms, t.gone_ms, "var(--soft)", "others wait to " + span(t.gone_ms));
	const p99 = info.store.renew_p99_us / 1000;
	if (p99) s.append(svg("line", {x1: x(p99), x2: x(p99), y1: 2, y2: 36, stroke: "currentColor", "stroke-width": 2}), svg("text", {x: x(p99) + 4, y: 62}, "p99 of renewals: " + us(info.store.renew_p99_us)));
	return s;
}

// ---- orders ----
function words(r, what) {
	const t = info.timings, standby = Math.max(0, (r.n_healthy < 0 ? 1 : r.n_healthy) - 1), gaps = [];
	const list = seen.name === r.election && seen.history ? seen.history.leaderships : [];
	list.forEach((l, i) => { if (i && l.until) gaps.push(Date.parse(list[i - 1].since) - Date.parse(l.until)); });
	const took = gaps.filter((g) => g >= 0).slice(0, 5);
	const past = took.length ? " The last handovers took " + span(Math.min(...took)) + " to " + span(Math.max(...took)) + "." : "";
	if (what === "resign") return r.leader + " stops its work within " + span(t.drain_ms) + "; " + (standby ? "one of " + standby + " healthy standby" + (standby > 1 ? "s" : "") + " takes over." : "nobody stands by: it may lead again after a while.") + past;
	if (what === "transfer") return r.leader + " stops its work within " + span(t.drain_ms) + ", and the candidate that you choose takes over." + past;
	if (what === "pause") return (r.leader || "Whoever leads") + " stops its work, and nobody leads until somebody resumes the election.";
	return "The pause ends: candidates campaign again.";
}
function command(r, what, to) { return "baton " + what + " " + JSON.stringify(r.election) + (what === "transfer" ? " --to " + JSON.stringify(to || "ID") : ""); }
async function ask(r, what) {
	if (seen.name !== r.election) await load(r.election);
	const d = $("dialog"), note = el("input", {id: "note", maxlength: 200}), sure = el("input", {id: "sure", autocomplete: "off"});
	const to = el("select", {id: "to"}, ...seen.candidates.filter((c) => !c.leader && c.healthy).map((c) => el("option", {value: c.id}, c.id)));
	const go = el("button", {class: "main", id: "go", disabled: what === "pause" || (what === "transfer" && !to.length)}, what), steps = el("div", {class: "steps"}), error = el("p", {class: "error", role: "alert"});
	sure.addEventListener("input", () => { go.disabled = sure.value !== r.election; });
	go.addEventListener("click", () => order(r, what, {note: note.value, to: to.value}, {go, steps, error}));
	d.replaceChildren(el("h2", {}, what[0].toUpperCase() + what.slice(1) + " " + r.election), el("p", {}, words(r, what)),
		...(what === "transfer" ? [el("label", {for: "to"}, "to"), to] : []),
		...(what === "pause" ? [el("label", {for: "sure"}, "type the name of the election"), sure] : []),
		...(what === "resign" || what === "transfer" ? [el("label", {for: "note"}, "note: who, and why"), note] : []),
		el("p", {}, el("code", {}, command(r, what, to.value)), " ", el("button", {onclick: () => navigator.clipboard && navigator.clipboard.writeText(command(r, what, to.value))}, "copy as command")), steps, error,
		el("div", {class: "row"}, el("button", {onclick: () => d.close()}, "close"), go));
	d.showModal();
}
async function order(r, what, body, ui) {
	ui.go.disabled = true;
	const began = now(), step = (w) => ui.steps.append(el("span", {class: "on"}, "✓ " + w + " " + span(now() - began)));
	const base = "v1/elections/" + encodeURIComponent(r.election), headers = {"Content-Type": "application/json", "Baton-Request": "1", "If-Match": '"' + r.term + '"'};
	const method = what === "pause" ? "PUT" : what === "resume" ? "DELETE" : "POST";
	const target = base + (method === "POST" ? "/" + what : "/paused");
	const send = method === "POST" ? JSON.stringify(what === "transfer" ? {to: body.to, note: body.note} : {note: body.note}) : undefined;
	if (method !== "POST") delete headers["If-Match"];
	try {
		const a = await fetch(target, {method, headers, body: send});
		if (!a.ok) { ui.error.textContent = (await a.json()).detail; ui.go.disabled = false; return; }
		step("ordered");
		const until = now() + 60e3;
		let told = "";
		for (;;) {
			const n = rows.get(r.election), phase = what === "pause" ? (n.leader ? "" : "paused") : what === "resume" ? (n.paused ? "" : "resumed") : n.leader && n.term !== r.term ? "elected" : !n.leader ? "released" : n.me.draining_term !== "0" ? "stopping" : "";
			if (phase && phase !== told) { step(phase + (phase === "elected" ? ": " + n.leader : "")); told = phase; }
			if (["elected", "paused", "resumed"].includes(phase) || now() > until) return;
			await new Promise((done) => setTimeout(done, 30));
		}
	} catch (e) { ui.error.textContent = "no answer: " + e.message; ui.go.disabled = false; }
}

// ---- keys ----
function move(n) {
	selected = Math.min(shown.length - 1, Math.max(0, selected + n));
	let r = $("table").querySelector('[data-i="' + selected + '"]');
	if (!r) { scrollTo(0, selected * HEIGHT); drawRows(); r = $("table").querySelector('[data-i="' + selected + '"]'); }
	if (r) r.focus();
}
function help() {
	$("dialog").replaceChildren(el("h2", {}, "Keys"), el("p", {}, "j and k move, Enter opens, Esc goes back, / filters, ? shows this."), el("div", {class: "row"}, el("button", {onclick: () => $("dialog").close()}, "close")));
	$("dialog").showModal();
}
addEventListener("keydown", (e) => {
	if ($("dialog").open || e.ctrlKey || e.metaKey || e.altKey) return;
	if (e.target.id === "filter") { if (e.key === "Escape" || e.key === "Enter") { e.target.blur(); move(0); e.preventDefault(); } return; }
	if (e.key === "j") move(document.activeElement.dataset.i === undefined ? 0 : 1);
	else if (e.key === "k") move(-1);
	else if (e.key === "Enter" && e.target.dataset.name) location.hash = "#/e/" + encodeURIComponent(e.target.dataset.name);
	else if (e.key === "Escape") location.hash = "#/";
	else if (e.key === "/") { e.preventDefault(); $("filter").focus(); }
	else if (e.key === "?") help();
});
$("filter").addEventListener("input", (e) => { filter = e.target.value; draw(); });
addEventListener("hashchange", () => { if (info) draw(); });
addEventListener("scroll", () => { if (shown.length > 200 && !$("overview").hidden) drawRows(); }, {passive: true});
connect();
