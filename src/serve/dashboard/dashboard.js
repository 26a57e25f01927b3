// The dashboard of baton serve: takes over the table that the server has written, follows the stream
// of events, and gives orders with the term that is shown. It must never make markup of what it was
// told: names, notes and metadata come from anybody who may write to the store. All of it goes in as
// text. And it must never show as present what it has not heard of lately.
const $ = (id) => document.getElementById(id);
const rows = new Map(), logs = new Map(), sparks = [];
let info = null, mode = "reader", token = "", stream = null, heardAt = 0, goodAt = 0, lost = false;
let shown = [], counts = {}, stale = true, wanted = "all", filter = "", selected = -1;
const calm = matchMedia("(prefers-reduced-motion: reduce)"), narrow = matchMedia("(max-width: 860px)");

// ---- small tools ----
function put(e, props, kids) {
	for (const [k, v] of Object.entries(props || {})) {
		if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
		else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
	}
	e.append(...kids.flat().filter((k) => k !== null && k !== undefined && k !== false).map((k) => k instanceof Node ? k : String(k)));
	return e;
}
const el = (tag, props, ...kids) => put(document.createElement(tag), props, kids);
const svg = (tag, props, ...kids) => put(document.createElementNS("http://www.w3.org/2000/svg", tag), props, kids);
const now = () => performance.now();
const known = () => lost ? heardAt : now(); // what is shown stands still when there is no news
const ago = (t) => Date.now() - (now() - known()) - Date.parse(t);
const say = (e, text) => { if (e.textContent !== text) e.textContent = text; };
const style = (e, name) => { if (e.className !== name) e.className = name; };
const many = (n, word) => n + " " + word + (n === 1 ? "" : "s");
function span(ms) {
	const s = Math.max(0, ms) / 1000;
	if (s < 0.01 && ms > 0) return ms.toFixed(1) + " ms";
	if (s < 1) return Math.round(ms) + " ms";
	if (s < 60) return s.toFixed(s < 10 ? 1 : 0) + " s";
	if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
	if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60 % 60) + " min";
	return Math.floor(s / 86400) + " d " + Math.floor(s / 3600 % 24) + " h";
}
const two = (n) => String(n).padStart(2, "0");
const clock = (t) => { const d = new Date(t); return two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds()); };
const day = (t) => { const d = new Date(t); return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()); };
const when = (t) => (day(t) === day(Date.now()) ? "" : day(t) + " ") + clock(t);
const us = (n) => n < 1000 ? n + " µs" : n < 1e6 ? (n / 1000).toFixed(n < 1e4 ? 1 : 0) + " ms" : (n / 1e6).toFixed(1) + " s";
const href = (name) => "#/e/" + encodeURIComponent(name);
const api = (name) => "v1/elections/" + encodeURIComponent(name);
function ask(path, options) {
	const headers = {...(token ? {Authorization: "Bearer " + token} : {}), ...(options && options.headers)};
	return fetch(path, {cache: "no-store", ...options, headers});
}

// ---- what an election is in ----
const states = {leaderless: "no candidate leads", unknown: "the store doesn't answer", paused: "paused by an operator", led: "a candidate leads"};
function stateOf(r) {
	if (r.health === "unhealthy") return "unknown";
	return r.paused ? "paused" : r.leader ? "led" : "leaderless";
}
const rank = (r) => ["leaderless", "unknown", "paused", "led"].indexOf(stateOf(r));
const tag = (r) => { const w = stateOf(r); return el("span", {class: "tag " + w, title: states[w]}, el("i", {class: "shape", "aria-hidden": "true"}), w); };
const filters = [["all", "elections", () => true], ["led", "led", (r) => r.leader], ["leaderless", "leaderless", (r) => !r.leader && !r.paused],
	["paused", "paused", (r) => r.paused], ["lonely", "without standby", (r) => r.leader && r.n_healthy >= 0 && r.n_healthy < 2], ["changed", "changes, last hour", (r) => r.changes_hour > 0]];
const canOrder = () => mode === "operator" && info.capabilities.includes("operate");

// ---- what comes in ----
let news = [];
function announce(text) {
	news.push(text);
	if (news.length === 1) setTimeout(() => { say($("said"), news.length > 4 ? many(news.length, "change") + " of leader" : news.join(". ")); news = []; }, 300);
}
// When renewals came, and how surprising it is that the next one hasn't come yet: phi-accrual, with the normal distribution that
// the last ones show. It only colours: a lease is promised ahead, and no surprise shortens it. The key "" is the lease of all that lead here.
const beats = new Map();
function beat(names) {
	for (const name of names) {
		const b = beats.get(name) || {at: 0, list: []};
		if (b.at) b.list.push(now() - b.at);
		if (b.list.length > 20) b.list.shift();
		b.at = now();
		beats.set(name, b);
	}
}
function phi(name) {
	const b = beats.get(name), n = b ? b.list.length : 0;
	if (n < 3) return 0;
	const mean = b.list.reduce((a, x) => a + x) / n, sd = Math.max(20, mean / 50, Math.sqrt(b.list.reduce((a, x) => a + (x - mean) ** 2, 0) / n));
	const y = (known() - b.at - mean) / sd, e = Math.exp(-y * (1.5976 + 0.070566 * y * y));
	return y > 0 ? -Math.log10(e / (1 + e)) : 0;
}
const isLate = (r) => r.me.leads ? phi(beats.has(r.election) ? r.election : "") > 5 : rows.size <= 25 && phi(r.election) > 5;
// What the list and the strip depend on: the rest only changes the row itself.
const signOf = (r) => [rank(r), r.leader, r.changes_hour, r.n_healthy].join("\n");
function keep(r) {
	const old = rows.get(r.election);
	if (old && old.leader !== r.leader) beats.delete(r.election);
	if (old && !r.me.leads && r.leader === old.leader && r.time_left_ms > old.time_left_ms - (now() - old.at) + 300) beat([r.election]);
	r.at = now();
	r.sign = signOf(r);
	r.drains = r.me.draining_term === "0" ? 0 : old && old.drains || r.at;
	r.past = old && old.term === r.term ? old.past : undefined;
	rows.set(r.election, r);
	if (!old || old.sign !== r.sign) stale = true;
	if (old && old.leader !== r.leader) announce(r.election + ": " + (r.leader ? r.leader + " leads" : "no candidate leads"));
	if (r.health !== "unhealthy") goodAt = Date.now();
	later();
}
function take(kind, data) {
	const m = JSON.parse(data);
	if (kind === "snapshot") {
		const names = new Set(m.elections.map((r) => r.election));
		info = m;
		for (const name of rows.keys()) if (!names.has(name)) rows.delete(name);
		m.elections.forEach(keep);
		if (m.store.renew_p99_us && !sparks.length) sparks.push([m.store.renew_p50_us, m.store.renew_p99_us]);
		stale = true;
		later();
	} else if (kind === "row") keep(m);
	else if (kind === "lease") {
		for (const r of m.elections ? m.elections.map((n) => rows.get(n)) : rows.values()) if (r && r.me.leads) { r.time_left_ms = m.time_left_ms; r.at = now(); }
		beat(m.elections || [""]);
		Object.assign(info.store, {renew_p50_us: m.renew_p50_us, renew_p99_us: m.renew_p99_us, renew_slow: m.renew_slow});
		sparks.push([m.renew_p50_us, m.renew_p99_us]);
		if (sparks.length > 48) sparks.shift();
		goodAt = Date.now();
		drawHead();
	} else if (m.row) {
		const list = logs.get(m.election) || [];
		list.unshift(m);
		list.length = Math.min(list.length, 200);
		logs.set(m.election, list);
		keep(m.row);
		if (m.election === seen.name) load(m.election);
	}
}
function part(block) {
	let kind = "message", data = "";
	for (const line of block.split("\n")) {
		if (line.startsWith("event: ")) kind = line.slice(7);
		else if (line.startsWith("data: ")) data += line.slice(6);
	}
	if (data) take(kind, data);
}
// A fetch and not an EventSource: it sends a token, and sees the comments by which the stream lives.
async function listen() {
	stream = new AbortController();
	const who = await ask("v1", {signal: stream.signal});
	if (who.status === 401) {
		$("banner").hidden = false;
		say($("banner"), "A token is needed to read here.");
		return login((await who.json()).detail);
	}
	if (!who.ok) throw Error((await who.json()).detail);
	mode = (await who.json()).mode;
	const answer = await ask("v1/events", {signal: stream.signal});
	if (!answer.ok) throw Error((await answer.json()).detail);
	const reader = answer.body.getReader(), text = new TextDecoder();
	// A snapshot of 10,000 elections comes in thousands of pieces: they are joined once, at its end.
	for (let pieces = [], last = ""; ;) {
		const {done, value} = await reader.read();
		if (done) throw Error("the server has ended it");
		heard();
		const more = text.decode(value, {stream: true});
		pieces.push(more);
		if ((last + more).includes("\n\n")) {
			const blocks = pieces.join("").split("\n\n");
			pieces = [blocks.pop()];
			blocks.forEach(part);
		}
		last = pieces[pieces.length - 1].slice(-1);
	}
}
function heard() {
	heardAt = now();
	if (!lost) return;
	lost = false;
	later();
}
async function follow() {
	for (let wait = 250; ; wait = Math.min(4000, lost && now() - heardAt > 10e3 ? wait * 2 : 500)) {
		try { if (await listen() === false) return; } catch (e) { lost = lost || new Date(); stream.abort(); later(); }
		await new Promise((done) => setTimeout(done, wait));
	}
}
let due = false;
function later() { if (!due) { due = true; requestAnimationFrame(() => { due = false; draw(); }); } }

// ---- the header ----
function storeState() {
	const all = [...rows.values()], down = all.filter((r) => r.health === "unhealthy");
	if (all.length && down.length === all.length) return ["down", down.find((r) => r.error) || down[0]];
	if (down.length) return ["partly down", down[0]];
	return [info.store.renew_p99_us / 1000 > info.timings.grace_ms / 2 ? "slow" : "up", null];
}
function drawHead() {
	const [state, bad] = storeState(), s = info.store;
	for (const id of ["store", "me"]) $(id).hidden = false;
	say($("store-kind"), s.kind);
	say($("store-state"), state);
	style($("store-shape"), "shape s-" + state.split(" ").pop());
	$("store").title = bad ? bad.error : "the store answers";
	$("renewals").hidden = !s.renew_p99_us;
	say($("latency"), "renewals p50 " + us(s.renew_p50_us) + " · p99 " + us(s.renew_p99_us));
	$("renewals").title = "of the last minutes";
	$("slow").hidden = !s.renew_slow;
	say($("slow"), "In the last hour one of 1,000 renewals took more than " + span(info.timings.call_ms / 2) + ", half of what a call may take: a bad hour may cost a leadership. baton doctor --measure says which timings would fit.");
	const most = Math.max(1, ...sparks.map((p) => p[1])), x = (i) => (96 - (sparks.length - 1 - i) * 2).toFixed(1);
	const line = (n) => sparks.map((p, i) => x(i) + "," + (24 - 20 * p[n] / most).toFixed(1)).join(" ");
	$("spark").replaceChildren(svg("polyline", {class: "p99", points: line(1)}), svg("polyline", {class: "p50", points: line(0)}));
	say($("id"), info.id);
	$("id").title = "this process: " + info.id;
	say($("mode"), canOrder() ? "operator" : "read only");
	const may = !canOrder() && info.capabilities.includes("operate");
	$("mode").disabled = !may;
	$("mode").title = may ? "give a token" : "";
	say($("version"), "baton " + info.version);
	drawBanner(state, bad);
}
function drawBanner(state, bad) {
	const b = $("banner"), down = state === "down";
	document.body.classList.toggle("old", !!lost || down);
	b.hidden = !lost && !down;
	if (lost) say(b, "The stream is lost. This is as of " + clock(lost) + ". Trying again …");
	else if (down) say(b, "The store doesn't answer. This is as of " + clock(goodAt || Date.now()) + ". It says: " + (bad.error || "nothing"));
}
function drawAge() {
	style($("live"), "fact live " + (lost ? "lost" : "on"));
	say($("age"), lost ? "no news for " + span(now() - heardAt) : now() - heardAt < 1500 ? "live" : "live, " + span(now() - heardAt) + " ago");
}

// ---- the overview ----
function pick() {
	if (!stale) return;
	stale = false;
	const words = filter.toLowerCase().split(/\s+/).filter(Boolean), test = filters.find((f) => f[0] === wanted)[2];
	counts = Object.fromEntries(filters.map((f) => [f[0], 0]));
	shown = [];
	for (const r of rows.values()) {
		for (const [key, , is] of filters) if (is(r)) counts[key] += key === "changed" ? r.changes_hour : 1;
		if (test(r) && words.every((w) => (r.election + "\n" + r.leader).toLowerCase().includes(w))) shown.push(r.election);
	}
	const ranks = new Map(shown.map((n) => [n, rank(rows.get(n))]));
	shown.sort((a, b) => ranks.get(a) - ranks.get(b) || (a < b ? -1 : 1));
}
function drawStrip() {
	const strip = $("strip");
	if (!strip.firstChild)
		strip.append(...filters.map(([key, words]) => el("button", {type: "button", "data-key": key, onclick: () => { wanted = wanted === key ? "all" : key; stale = true; scrollTo(0, 0); draw(); }}, el("b"), el("span", {}, words))));
	for (const b of strip.children) {
		const n = counts[b.dataset.key];
		say(b.firstChild, n.toLocaleString("en"));
		b.setAttribute("aria-pressed", String(wanted === b.dataset.key));
		style(b, n && (b.dataset.key === "leaderless" ? "alarm" : b.dataset.key === "lonely" || b.dataset.key === "paused" ? "warn" : ""));
	}
	say($("count"), shown.length === rows.size ? "" : shown.length.toLocaleString("en") + " of " + rows.size.toLocaleString("en"));
}
const bar = () => el("div", {class: "bar", role: "img"}, el("i"));
// The lease of a leader elsewhere is looked at about once a second: what is missing that long is no sign.
function lease(r) {
	const t = info.timings, full = r.me.leads ? t.renew_ms + t.grace_ms : t.lease_ms, left = r.time_left_ms - (known() - r.at);
	if (r.drains) return {part: 1 - (known() - r.drains) / t.drain_ms, kind: "drain", words: "drains: the work here has to end"};
	if (!r.leader || r.time_left_ms === null) return {part: 0, kind: "none", words: r.leader ? "not looked at yet" : "no candidate leads"};
	const late = isLate(r) ? [" late", ", the renewal is late"] : ["", ""];
	if (r.me.leads) return {part: left / full, kind: (left < t.grace_ms - 300 ? "grace" : "") + late[0], words: span(left) + " left" + late[1]};
	if (left < -2000) return {part: 0, kind: "none", words: "not looked at lately"};
	return {part: left / full, kind: (left < t.lease_ms - t.renew_ms - t.grace_ms ? "drain" : left < t.lease_ms - t.renew_ms - 1300 ? "grace" : "") + late[0], words: span(left) + " left" + late[1]};
}
function setBar(b, r) {
	const l = lease(r);
	style(b, "bar " + l.kind);
	b.firstChild.style.transform = "scaleX(" + Math.min(1, Math.max(0, l.part)).toFixed(3) + ")";
	b.title = l.words;
	b.setAttribute("aria-label", "lease: " + l.words);
}
function dots(r) {
	if (r.n_candidates < 0) return el("span", {class: "dim"}, "…");
	const n = Math.min(r.n_candidates, 8), sick = Math.min(r.n_candidates - r.n_healthy, n);
	const words = many(r.n_candidates, "candidate") + ", " + r.n_healthy + " healthy";
	return el("span", {class: "dots", role: "img", title: words, "aria-label": words},
		Array.from({length: n}, (_, i) => el("i", {class: i >= n - sick ? "sick" : i === 0 && r.leader ? "leads" : ""})), r.n_candidates > n ? " +" + (r.n_candidates - n) : "");
}
const actions = (r) => r.paused ? ["resume"] : r.leader ? ["resign", "transfer", "pause"] : ["pause"];
function cells(tr, r) {
	const [state, name, leader, since, , term, candidates, changes, reason, act] = tr.cells, who = r.leader || "no candidate";
	const key = [stateOf(r), who, r.me.leads, r.term, r.n_candidates, r.n_healthy, r.changes_day, r.error, r.reason, r.past, canOrder()].join("\n");
	say(since, r.leader && r.since ? span(ago(r.since)) : "");
	setBar(tr.bar, r);
	if (tr.key === key) return;
	tr.key = key;
	state.replaceChildren(tag(r));
	name.firstChild.textContent = name.title = r.election;
	leader.replaceChildren(el("span", {class: "clip", title: who}, who), r.me.leads ? el("span", {class: "pill"}, "here") : "");
	leader.classList.toggle("dim", !r.leader);
	say(term, r.term === "0" ? "" : r.term);
	candidates.replaceChildren(dots(r));
	say(changes, String(r.changes_day));
	reason.title = r.error || "";
	say(reason, r.error || r.reason || r.past || "");
	act.replaceChildren(...(canOrder() ? actions(r).map((w) => el("button", {type: "button", "data-act": w, "aria-label": w + " " + r.election, onclick: (e) => { e.stopPropagation(); open(r.election, w); }}, w)) : []));
}
function newRow(name) {
	const cell = (c) => el("td", {role: "cell", class: c});
	const tr = el("tr", {role: "row", tabindex: -1, onclick: () => { location.hash = href(name); }}, cell("c-state"), el("th", {role: "rowheader", scope: "row", class: "c-name"}, el("a", {href: href(name), tabindex: -1})),
		cell("c-leader"), cell("c-since"), cell("c-lease"), cell("c-term"), cell("c-dots"), cell("c-day"), cell("c-reason"), cell("c-act"));
	tr.dataset.name = name;
	tr.cells[4].append(tr.bar = bar());
	return tr;
}
// Only what can be seen is there, and what is there stays: 10,000 rows cost as much as 50.
const pool = new Map();
function drawRows() {
	const body = $("table").tBodies[0], height = narrow.matches ? 156 : 50, ahead = 8;
	const top = -body.getBoundingClientRect().top;
	const from = Math.max(0, Math.min(shown.length - 1, Math.floor(top / height) - ahead)), to = Math.min(shown.length, from + Math.ceil(innerHeight / height) + 2 * ahead);
	const names = shown.slice(from, to), here = new Set(names), focus = document.activeElement;
	const list = names.map((name, i) => {
		const tr = pool.get(name) || newRow(name);
		pool.set(name, tr);
		tr.setAttribute("aria-rowindex", from + i + 2);
		tr.tabIndex = from + i === Math.max(0, selected) ? 0 : -1;
		cells(tr, rows.get(name));
		return tr;
	});
	for (const name of pool.keys()) if (!here.has(name)) pool.delete(name);
	const pad = (n) => { const td = el("td", {colspan: 10}), tr = el("tr", {class: "spacer", role: "presentation"}, td); td.style.height = n * height + "px"; return tr; };
	const all = [...(from ? [pad(from)] : []), ...list, ...(to < shown.length ? [pad(shown.length - to)] : [])];
	const same = all.length === body.children.length && all.every((e, i) => e === body.children[i] || (e.className === "spacer" && body.children[i].className === "spacer" && e.firstChild.style.height === body.children[i].firstChild.style.height));
	if (!same) body.replaceChildren(...all);
	if (focus !== document.activeElement && focus.isConnected) focus.focus({preventScroll: true});
	$("table").setAttribute("aria-rowcount", shown.length + 1);
	$("none").hidden = shown.length > 0 || rows.size === 0;
}
function drawEmpty() {
	const e = $("empty"), none = rows.size === 0;
	e.hidden = !none;
	$("strip").hidden = document.querySelector(".tools").hidden = document.querySelector(".list").hidden = none;
	if (none && !e.firstChild)
		e.append(el("h1", {}, "No election yet"), el("p", {}, "An election is there as soon as a candidate takes part. Three commands make one, look at it, and show all of them here:"),
			el("pre", {}, "baton run hello -- sleep 1000\nbaton status hello\nbaton serve --observe='*' --listen=127.0.0.1:8080"));
}
function draw() {
	if (!info) return;
	const m = location.hash.match(/^#\/e\/(.+)$/);
	$("overview").hidden = !!m;
	$("detail").hidden = !m;
	drawHead();
	drawAge();
	pick();
	if (m) { let name = m[1]; try { name = decodeURIComponent(name); } catch (e) { /* as it is */ } return drawDetail(name); }
	document.title = counts.leaderless ? "(" + counts.leaderless + ") baton" : "baton";
	drawEmpty();
	drawStrip();
	drawRows();
}
// What the stream doesn't bring of rows that can be seen: leases of others where there are many elections, and how the last leadership ended.
async function lookUp() {
	if (!info || lost || $("overview").hidden || document.hidden) return;
	const all = [...pool.keys()].map((n) => rows.get(n)).filter(Boolean);
	const old = all.filter((r) => r.leader && !r.me.leads && now() - r.at > 2000 && rows.size > 25).slice(0, 6);
	const bare = all.filter((r) => !r.reason && r.past === undefined && (r.term > 1 || (!r.leader && r.term > 0))).slice(0, 6);
	await Promise.all([...old.map(async (r) => { const a = await ask(api(r.election)); if (a.ok) keep(await a.json()); }),
		...bare.map(async (r) => {
			r.past = "";
			const a = await ask(api(r.election) + "/history?limit=2");
			if (a.ok) { const l = (await a.json()).leaderships.find((x) => x.ended), x = rows.get(r.election); if (x) x.past = l ? l.ended : ""; later(); }
		})]).catch(() => {});
}

// ---- one election ----
let seen = {name: ""}, zoom = 3600e3;
async function load(name) {
	try {
		const [s, h] = await Promise.all([ask(api(name)), ask(api(name) + "/history?check=1&limit=" + (zoom ? 100 : 1000))]);
		const status = await s.json(), history = await h.json();
		if (seen.name !== name) return;
		seen.loaded = now();
		if (s.ok) { seen.candidates = status.candidates; seen.timings = status.timings; keep(status); }
		seen.problem = s.ok ? "" : status.detail;
		seen.history = h.ok ? history : {leaderships: [], proven: null, finding: history.detail};
	} catch (e) { seen.problem = "no answer: " + e.message; }
	seen.drawn = false;
	later();
}
const card = (title, id, ...kids) => el("div", {class: "card", id}, el("h2", {}, title), ...kids);
function drawDetail(name) {
	const r = rows.get(name), d = $("detail");
	if (seen.name !== name) {
		seen = {name, candidates: [], history: null, loaded: now(), drawn: false};
		if (r) load(name);
		d.replaceChildren();
		scrollTo(0, 0);
	}
	document.title = name + " · baton";
	if (!r) return void d.replaceChildren(el("p", {}, "There is no election of this name here. "), el("a", {href: "#/"}, "All elections"));
	if (!d.firstChild || d.key !== name) {
		d.key = name;
		d.replaceChildren(el("div", {class: "head", id: "d-head"}), card("Now", "d-now", el("dl", {class: "facts"})), el("div", {class: "card", id: "d-gantt"}),
			el("div", {class: "card", id: "d-candidates"}), card("Timings", "d-timings", el("div")), card("Events", "d-log", el("ul", {class: "log", tabindex: 0, "aria-label": "events"})));
	}
	const head = [stateOf(r), r.leader, r.paused, canOrder()].join("\n");
	if ($("d-head").key !== head) drawTitle(r, $("d-head"), head);
	drawNow(r);
	if (!seen.drawn) {
		seen.drawn = true;
		$("d-gantt").replaceChildren(el("div", {class: "row"}, el("h2", {}, "Leaderships"), el("span", {class: "grow"}), zooms()), ...gantt(), ...proof());
		$("d-candidates").replaceChildren(el("h2", {}, "Candidates"), candidates());
		$("d-log").lastChild.replaceChildren(...log(name));
	}
	$("d-timings").lastChild.replaceChildren(timings(r));
}
function drawTitle(r, e, key) {
	const first = e.key === undefined;
	e.key = key;
	e.replaceChildren(el("a", {href: "#/", class: "back"}, "← All elections"), el("div", {class: "row"}, el("h1", {tabindex: -1}, r.election), tag(r), el("span", {class: "grow"}),
		canOrder() ? actions(r).map((w) => el("span", {class: "pair"}, el("button", {type: "button", "data-act": w, onclick: () => open(r.election, w)}, w[0].toUpperCase() + w.slice(1) + " …"),
			el("button", {type: "button", class: "copy", "data-copy": w, title: "copy as command: " + command(r, w), "aria-label": "copy " + w + " as command", onclick: (x) => copy(command(r, w), x.currentTarget)}, icon()))) : null));
	if (first) e.querySelector("h1").focus({preventScroll: true});
}
function drawNow(r) {
	const dl = $("d-now").querySelector("dl"), me = r.me.state + (r.me.attached ? ", " + r.me.attached + " attached" : "") + (r.me.overruns ? ", " + many(r.me.overruns, "overrun") : "");
	const facts = [["Leader", r.leader ? r.leader + (r.me.leads ? " (this process)" : "") : "no candidate"], ["Term", r.term === "0" ? "none yet" : r.term], ["Since", r.leader && r.since ? when(r.since) + ", for " + span(ago(r.since)) : "—"],
		["Lease", ""], ["Candidates", r.n_candidates < 0 ? "…" : r.n_candidates + ", " + r.n_healthy + " healthy"], ["Changes", r.changes_hour + " in 1 h, " + r.changes_day + " in 24 h"],
		["Last reason", r.reason || r.past || ended() || "—"], ["Address", r.address || "—"], ["This process", me], ["Waits", r.wait || "—"], ["Store", r.error || seen.problem || "answers"]];
	if (!dl.firstChild) {
		dl.append(...facts.map(([k]) => el("div", {}, el("dt", {}, k), el("dd"))));
		dl.children[3].lastChild.append(bar(), el("span"));
	}
	facts.forEach(([k, v], i) => { if (k !== "Lease") say(dl.children[i].lastChild, String(v)); });
	const [b, words] = dl.children[3].lastChild.children;
	setBar(b, r);
	say(words, lease(r).words);
}
const ended = () => { const l = seen.history && seen.history.leaderships.find((x) => x.ended); return l ? l.ended : ""; };
const zooms = () => el("div", {class: "zoom", role: "group", "aria-label": "zoom"}, ...[["1 h", 3600e3], ["6 h", 21600e3], ["24 h", 86400e3], ["7 d", 604800e3], ["all", 0]].map(([w, z]) =>
	el("button", {type: "button", "aria-pressed": String(zoom === z), onclick: () => { zoom = z; seen.drawn = false; load(seen.name); draw(); document.querySelector('.zoom [aria-pressed="true"]').focus(); }}, w)));
const endings = {leads: "leads", handed: "handed over", sick: "unhealthy or stalled", failed: "failed"};
const kindOf = (l) => !l.ended ? "leads" : ["released", "resigned", "transferred", "ordered", "stopped", "paused", "closed"].includes(l.ended) ? "handed" : ["unhealthy", "stalled"].includes(l.ended) ? "sick" : "failed";
// Of two leaderships, for how long no candidate led between them: by the store's clock where both have it.
function gapOf(l, next) {
	if (l.clock && l.clock === next.clock && l.until_ns !== "0" && next.since_ns !== "0") return Number(BigInt(next.since_ns) - BigInt(l.until_ns)) / 1e6;
	return l.until ? Date.parse(next.since) - Date.parse(l.until) : NaN;
}
function gantt() {
	const list = seen.history ? seen.history.leaderships.slice().reverse() : [];
	if (!list.length) return [el("p", {class: "dim"}, seen.history ? seen.history.finding || "No candidate has led yet." : "…")];
	const end = Date.now(), first = Date.parse(list[0].since), begin = zoom ? Math.max(end - zoom, first - (end - first) * 0.02) : first - (end - first) * 0.02;
	const inside = list.filter((l) => !l.until || Date.parse(l.until) >= begin), names = [...new Set([...inside.map((l) => l.leader), ...seen.candidates.map((c) => c.id)])].sort(), lanes = names.slice(0, 16);
	const wide = $("detail").clientWidth - (narrow.matches ? 34 : 42), small = wide < 620, left = small ? 0 : 170, lane = small ? 44 : 32, base = small ? 18 : 5, H = lanes.length * lane, W = Math.max(280, wide);
	const x = (t) => left + (W - left) * Math.min(1, Math.max(0, (t - begin) / Math.max(1, end - begin)));
	const s = svg("svg", {class: "gantt", width: W, height: H + 26, role: "img", "aria-label": many(inside.length, "leadership") + "; the table below has them all"},
		svg("pattern", {id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"}, svg("rect", {width: 2.5, height: 7, class: "g-gap"})));
	lanes.forEach((n, i) => s.append(svg("rect", {x: left, y: i * lane + base, width: W - left, height: 22, rx: 4, class: "g-lane"})));
	const from = when(begin), free = [left + 8 * from.length + 30, W - 62]; // below, between the times, for the middle of a word
	list.forEach((l, i) => {
		const a = Date.parse(l.since), next = list[i + 1], b = l.until ? Date.parse(l.until) : next ? Date.parse(next.since) : end, at = lanes.indexOf(l.leader);
		if (b < begin || at < 0) return;
		const w = Math.max(3, x(b) - x(a)), words = l.ended || "leads";
		s.append(svg("rect", {x: x(a), y: at * lane + base, width: w, height: 22, rx: 4, class: "g-" + kindOf(l)}, svg("title", {}, "term " + l.term + " · " + l.leader + " · " + span(b - a) + " · " + words + (l.note ? " · " + l.note : ""))));
		if (w > 26 + 7 * words.length) s.append(svg("text", {x: x(a) + 8, y: at * lane + base + 15, class: "g-word"}, words));
		const gap = next ? gapOf(l, next) : l.ended && l.until ? end - b : NaN;
		if (gap > 0) {
			const to = next ? Date.parse(next.since) : end, g = Math.max(2, x(to) - x(b));
			s.append(svg("rect", {x: x(b), y: 0, width: g, height: H, fill: "url(#hatch)"}, svg("title", {}, "no candidate led for " + span(gap))));
			const middle = x(b) + g / 2;
			if (g > 52 && middle > free[0] && middle < free[1]) s.append(svg("text", {x: middle, y: H + 18, "text-anchor": "middle", class: "g-measure"}, span(gap)));
		}
	});
	lanes.forEach((n, i) => s.append(svg("text", {x: 0, y: i * lane + (small ? 13 : 21), class: "g-name"}, n.length > 22 ? n.slice(0, 21) + "…" : n, svg("title", {}, n))));
	s.append(svg("text", {x: left, y: H + 18}, from), svg("text", {x: W, y: H + 18, "text-anchor": "end"}, "now"));
	const key = el("div", {class: "legend"}, ...Object.entries(endings).filter(([k]) => inside.some((l) => kindOf(l) === k)).map(([k, w]) => el("span", {}, el("i", {class: "k-" + k}), w)), el("span", {}, el("i", {class: "k-gap"}), "no candidate led"), names.length > lanes.length ? el("span", {}, "+ " + (names.length - lanes.length) + " more candidates") : null);
	return [s, key];
}
function proof() {
	const h = seen.history;
	if (!h || h.proven === null) return [];
	const list = h.leaderships, gaps = list.slice(0, -1).map((l, i) => gapOf(list[i + 1], l)).filter((g) => g >= 0), n = list.length;
	const by = h.by_terms ? (h.by_terms === n - 1 ? "by their terms" : "by the clock of the store, " + h.by_terms + " by their terms") : "by the clock of the store";
	const text = h.proven ? n > 1 ? "✓ No two overlapped: proven for the last " + n + " " + by + "." : "✓ There was one leadership: nothing to overlap with." : "✗ Not proven: " + h.finding + ".";
	const cell = (t, c) => el("td", {class: c}, t);
	return [el("p", {class: "proof" + (h.proven ? "" : " not")}, text, gaps.length ? el("span", {class: "dim"}, " Handovers took " + span(Math.min(...gaps)) + " to " + span(Math.max(...gaps)) + ".") : ""),
		el("details", {}, el("summary", {}, "As a table"), el("div", {class: "scroll"}, el("table", {class: "plain"}, el("thead", {}, el("tr", {}, ...["Term", "Leader", "Since", "Until", "Ended", "Then no leader for", "Note"].map((t) => el("th", {scope: "col"}, t)))),
			el("tbody", {}, ...list.map((l, i) => el("tr", {}, el("th", {scope: "row"}, l.term), cell(l.leader), cell(when(l.since)), cell(l.until ? when(l.until) : "—"), cell(l.ended || "leads"), cell(i && gapOf(l, list[i - 1]) >= 0 ? span(gapOf(l, list[i - 1])) : "—"), cell(l.note)))))))];
}
// The store doesn't tell what others ask of themselves.
const least = (c) => c.id === info.id && rows.get(seen.name).me.state !== "observing" ? rows.get(seen.name).me.min_score : null;
function candidates() {
	const list = seen.candidates || [];
	if (!list.length) return el("p", {class: "dim"}, "No candidate takes part.");
	return el("div", {class: "scroll"}, el("table", {class: "plain"}, el("thead", {}, el("tr", {}, ...["Candidate", "Role", "Score", "Priority", "Last seen", "Address", "Metadata"].map((t) => el("th", {scope: "col"}, t)))),
		el("tbody", {}, ...list.map((c) => {
			const score = el("span", {class: "score" + (c.healthy ? "" : " low"), title: c.healthy ? "at or above its minimum: it may lead" : "below its minimum: it may not lead"}, el("i", {}, el("b")), c.score.toFixed(2) + (c.healthy ? " ✓" : " ✗ below its minimum") + (least(c) === null ? "" : " (minimum " + least(c).toFixed(2) + ")"));
			score.querySelector("b").style.transform = "scaleX(" + Math.min(1, c.score) + ")";
			return el("tr", {}, el("th", {scope: "row"}, c.id), el("td", {}, el("span", {class: "role" + (c.leader ? " leads" : "")}, c.leader ? "● leader" : "○ standby")), el("td", {}, score), el("td", {}, c.priority), el("td", {}, c.updated ? span(Date.now() - Date.parse(c.updated)) + " ago" : "—"), el("td", {}, c.address || "—"), el("td", {class: "wrap"}, c.metadata || "—"));
		}))));
}
// From the moment before a good renewal was sent: what is due when, and where the lease and the store are now.
function timings(r) {
	const t = seen.timings || info.timings, W = Math.max(280, $("detail").clientWidth - (narrow.matches ? 34 : 42)), x = (ms) => W * Math.min(1, ms / t.gone_ms), p99 = info.store.renew_p99_us / 1000, hold = t.renew_ms + t.grace_ms;
	const parts = [[0, t.renew_ms, "t-renew", "until renewed", t.renew_ms], [t.renew_ms, hold, "t-grace", "grace", t.grace_ms], [hold, t.end_ms, "t-drain", "drain", t.drain_ms], [t.end_ms, t.gone_ms, "t-wait", "clocks may differ", t.gone_ms - t.end_ms]];
	const s = svg("svg", {class: "gantt", width: W, height: 92, role: "img", "aria-label": parts.map((p) => p[3] + " " + span(p[4])).join(", ") + (p99 ? ", p99 of renewals " + span(p99) : "")});
	for (const [a, b, kind, words, ms] of parts) {
		const w = Math.max(0, x(b) - x(a) - 2), text = words + " " + span(ms), fits = w > 7.2 * text.length + 12;
		s.append(svg("rect", {x: x(a), y: 22, width: w, height: 26, rx: 4, class: kind}, svg("title", {}, text)));
		if (fits || w > 54) s.append(svg("text", {x: x(a) + 8, y: 39, class: "t-word"}, fits ? text : span(ms)));
	}
	const spent = r.leader && r.time_left_ms !== null && !lost ? (r.me.leads ? hold : t.lease_ms) - (r.time_left_ms - (known() - r.at)) : -1;
	if (spent >= 0) s.append(svg("line", {x1: x(spent), x2: x(spent), y1: 14, y2: 52, class: "needle"}), svg("text", {x: Math.min(x(spent), W - 30), y: 11, "text-anchor": x(spent) > 30 ? "middle" : "start"}, "now"));
	if (p99) s.append(svg("line", {x1: x(p99) + 1, x2: x(p99) + 1, y1: 22, y2: 66, class: "p99-line"}), svg("text", {x: x(p99) + 6, y: 66}, "renewals: p99 " + span(p99) + " of " + span(t.grace_ms) + " of grace"));
	s.append(svg("text", {x: 0, y: 87}, "0"), svg("text", {x: W, y: 87, "text-anchor": "end"}, "others lead after " + span(t.gone_ms)));
	return s;
}
function log(name) {
	const since = info.since || (info.since = Date.now()), past = (seen.history ? seen.history.leaderships : []).flatMap((l) => [l.ended && l.until ? {time: l.until, kind: "ended", leader: l.leader, term: l.term, reason: l.ended, text: l.note} : null, {time: l.since, kind: "elected", leader: l.leader, term: l.term}]).filter((e) => e && Date.parse(e.time) < since);
	const list = [...(logs.get(name) || []), ...past].sort((a, b) => Date.parse(b.time) - Date.parse(a.time)).slice(0, 200);
	if (!list.length) return [el("li", {class: "dim"}, "Nothing yet.")];
	return list.map((e) => el("li", {}, el("time", {datetime: e.time}, when(e.time)), el("b", {class: "e-" + e.kind}, e.kind), el("span", {}, [e.leader || (e.kind === "changed" ? "no candidate leads" : ""), e.term && e.term !== "0" ? "term " + e.term : "", e.reason, e.text].filter(Boolean).join(" · "))));
}

// ---- orders ----
const quote = (w) => /^[\w.@:/+-]+$/.test(w) ? w : "'" + w.replaceAll("'", "'\\''") + "'";
function command(r, what, to, note) {
	const posts = what === "resign" || what === "transfer";
	return ["baton", what, posts && r.term !== "0" ? "--term=" + r.term : "", note ? "--note=" + quote(note) : "", quote(r.election), what === "transfer" ? "--to " + (to ? quote(to) : "ID") : ""].filter(Boolean).join(" ");
}
const icon = () => svg("svg", {width: 14, height: 14, viewBox: "0 0 14 14", fill: "none", stroke: "currentColor", "stroke-width": 1.5, "aria-hidden": "true"}, svg("rect", {x: 4.75, y: 4.75, width: 8.5, height: 8.5, rx: 2}), svg("path", {d: "M9.5 2.5a2 2 0 0 0-1.7-1.75H2.75a2 2 0 0 0-2 2v5A2 2 0 0 0 2.5 9.5"}));
async function copy(text, button) {
	let words = "copied";
	try { await navigator.clipboard.writeText(text); } catch (e) { words = "not copied: " + e.message; }
	button.replaceChildren(words === "copied" ? "✓" : "✗");
	say($("said"), words);
	setTimeout(() => button.replaceChildren(icon()), 1200);
}
function sentence(r, what) {
	const t = info.timings, standby = Math.max(0, r.n_healthy - (r.leader ? 1 : 0)), list = seen.history && seen.name === r.election ? seen.history.leaderships : [];
	const took = list.slice(0, -1).map((l, i) => [gapOf(list[i + 1], l), kindOf(list[i + 1])]).filter(([g, k]) => g >= 0 && k === "handed").map(([g]) => g).slice(0, 5);
	const past = took.length ? " The last handovers took " + (took.length > 1 ? span(Math.min(...took)) + " to " : "") + span(Math.max(...took)) + "." : "", stops = (r.leader || "The leader") + " stops its work within " + span(t.drain_ms);
	if (what === "resign") return stops + "; " + (r.n_healthy < 0 ? "a standby takes over, if there is one." : standby ? (standby > 1 ? "one of " + standby + " healthy standbys" : "the one healthy standby") + " takes over." : "no candidate stands by: the election has no leader until a candidate campaigns.") + past;
	if (what === "transfer") return stops + "; then the candidate that you choose leads." + past;
	if (what === "pause") return (r.leader ? stops + ". " : "") + "No candidate leads " + r.election + " until an operator resumes it.";
	return "The pause ends: " + (r.n_healthy > 0 ? "one of " + many(r.n_healthy, "healthy candidate") : "the first candidate that campaigns") + " leads.";
}
function dialog(...kids) {
	$("dialog").replaceChildren(...kids);
	if (!$("dialog").open) $("dialog").showModal();
}
const close = (words) => el("button", {type: "button", id: "close", onclick: () => $("dialog").close()}, words);
async function open(name, what) {
	if (seen.name !== name) { seen = {name, candidates: [], history: null, loaded: now(), drawn: false}; }
	await load(name);
	const r = rows.get(name), others = (seen.candidates || []).filter((c) => !c.leader), fit = others.filter((c) => c.healthy);
	const to = el("select", {id: "to"}, ...fit.map((c) => el("option", {value: c.id}, c.id + (c.priority ? " (priority " + c.priority + ")" : "")))), note = el("input", {id: "note", maxlength: 200, autocomplete: "off"}), sure = el("input", {id: "sure", autocomplete: "off", spellcheck: "false"});
	const ui = {go: el("button", {type: "submit", class: "main" + (what === "pause" ? " danger" : ""), id: "go"}, what), text: el("p", {id: "will"}, sentence(r, what)), steps: el("ol", {class: "steps", hidden: true}), error: el("p", {class: "error", role: "alert"}), code: el("code"), r};
	const check = () => { ui.go.disabled = what === "pause" ? sure.value !== name : what === "transfer" && !fit.length; say(ui.code, command(ui.r, what, to.value, note.value)); };
	for (const e of [to, note, sure]) e.addEventListener("input", check);
	const noted = what === "resign" || what === "transfer", field = (id, words, e) => el("div", {class: "field"}, el("label", {for: id}, words), e);
	const form = el("form", {method: "dialog"}, el("h2", {id: "dialog-title"}, what[0].toUpperCase() + what.slice(1) + " " + name), ui.text,
		what === "transfer" ? fit.length ? field("to", "To", to) : el("p", {class: "error"}, "No healthy candidate stands by.") : null, what === "pause" ? field("sure", "Type the name of the election: " + name, sure) : null, noted ? field("note", "Note: who, and why (kept in the history)", note) : null,
		el("div", {class: "command"}, ui.code, el("button", {type: "button", class: "copy", id: "copy", "aria-label": "copy as command", title: "copy as command", onclick: (e) => copy(ui.code.textContent, e.currentTarget)}, icon())), ui.steps, ui.error, el("div", {class: "row end"}, close("Cancel"), ui.go));
	form.addEventListener("submit", (e) => { e.preventDefault(); if (!ui.go.disabled) order(ui, what, {note: note.value, to: to.value}, check); });
	check();
	dialog(form);
	(what === "pause" ? sure : what === "transfer" && fit.length ? to : noted ? note : ui.go).focus();
}
async function order(ui, what, body, check) {
	const r = ui.r, began = now(), posts = what === "resign" || what === "transfer", headers = {"Content-Type": "application/json", "Baton-Request": "1"};
	if (r.term !== "0") headers["If-Match"] = '"' + r.term + '"';
	const names = what === "resume" ? ["ordered", "resumed", "elected"] : what === "pause" ? ["ordered", "stopping", "released"] : ["ordered", "stopping", "released", "elected"];
	const items = Object.fromEntries(names.map((n) => [n, el("li", {}, el("b", {}, n), el("span"))]));
	const step = (n, words) => { const e = items[n]; if (e.className === "on") return; e.className = "on"; say(e.lastChild, (words ? words + " " : "") + span(now() - began)); const next = names[names.indexOf(n) + 1]; if (next && !items[next].className) items[next].className = "next"; };
	ui.go.disabled = true;
	say(ui.error, "");
	try {
		const a = await ask(api(r.election) + (posts ? "/" + what + (r.term === "0" ? "?any=1" : "") : "/paused"), {method: posts ? "POST" : what === "pause" ? "PUT" : "DELETE", headers, body: posts ? JSON.stringify(what === "transfer" ? body : {note: body.note}) : undefined});
		if (!a.ok) return void await refuse(ui, what, a.status, (await a.json()).detail, check);
	} catch (e) { say(ui.error, "No answer: " + e.message + ". Whether the order arrived is not known: look at the table."); check(); return; }
	ui.steps.replaceChildren(...names.map((n) => items[n]));
	ui.steps.hidden = false;
	step("ordered");
	say($("close"), "Close");
	ui.go.hidden = true;
	for (const until = now() + 60e3; now() < until; await new Promise((done) => setTimeout(done, 25))) {
		const n = rows.get(r.election);
		if (!n || !$("dialog").open) return;
		const freed = !n.leader || n.term !== r.term;
		if (what === "resume") { if (!n.paused) step("resumed"); if (n.leader) { step("elected", n.leader); return; } continue; }
		if (n.me.draining_term !== "0" || n.me.state === "resigning" || freed) step("stopping");
		if (freed) step("released");
		if (what === "pause" && freed) return;
		if (n.leader && n.term !== r.term && n.health !== "unhealthy") { step("elected", n.leader); return void took(ui, r); }
	}
	say(ui.error, "It is still under way after a minute: the table and the history will show how it went.");
}
// Another leads by now, or may not be asked: nothing was done, and a new click is needed for what is true now.
async function refuse(ui, what, status, detail, check) {
	if (status === 401) { $("dialog").close(); return login(detail); }
	if (status === 412) { await load(ui.r.election); ui.r = rows.get(ui.r.election); say(ui.text, sentence(ui.r, what)); }
	say(ui.error, "Nothing was done: " + detail + "." + (status === 412 ? " " + (ui.r.leader || "No candidate") + " leads in term " + ui.r.term + ": the button is for this term now." : ""));
	check();
}
async function took(ui, r) {
	await load(r.election);
	const list = seen.history ? seen.history.leaderships : [], i = list.findIndex((l) => l.term === r.term), gap = i > 0 ? gapOf(list[i], list[i - 1]) : NaN;
	if (gap >= 0) ui.steps.after(el("p", {class: "proof"}, "✓ No candidate led for " + span(gap) + (list[i].clock && list[i].clock === list[i - 1].clock ? " by the clock of the store." : ".")));
}
function login(why) {
	const field = el("input", {id: "token", type: "password", autocomplete: "off"}), form = el("form", {method: "dialog"}, el("h2", {id: "dialog-title"}, "Token"), el("p", {}, why ? why[0].toUpperCase() + why.slice(1) + "." : "With the token of operators, orders can be given from here."),
		el("div", {class: "field"}, el("label", {for: "token"}, "Kept in this tab, until it is loaded again"), field), el("div", {class: "row end"}, close("Cancel"), el("button", {type: "submit", class: "main", id: "use"}, "use")));
	form.addEventListener("submit", (e) => { e.preventDefault(); token = field.value.trim(); $("dialog").close(); $("banner").hidden = true; if (stream) stream.abort(); if (!running) run(); });
	dialog(form);
	return false;
}

// ---- keys ----
function move(to) {
	if (!shown.length) return;
	selected = Math.min(shown.length - 1, Math.max(0, to));
	const height = narrow.matches ? 156 : 50, at = $("table").tBodies[0].getBoundingClientRect().top + scrollY + selected * height, bar = document.querySelector("header").offsetHeight;
	if (at < scrollY + bar + 8) scrollTo(0, at - bar - 60);
	else if (at + height > scrollY + innerHeight) scrollTo(0, at + height - innerHeight + 24);
	drawRows();
	const tr = pool.get(shown[selected]);
	if (tr) tr.focus({preventScroll: true});
}
function help() {
	dialog(el("h2", {id: "dialog-title"}, "Keys"), el("dl", {class: "keys"}, ...[["j k", "next and previous election"], ["Enter", "open it"], ["Esc", "back, or close"], ["/", "filter"], ["?", "this"]].map(([k, w]) => el("div", {}, el("dt", {}, ...k.split(" ").map((x) => el("kbd", {}, x))), el("dd", {}, w)))), el("div", {class: "row end"}, close("Close")));
	$("close").focus();
}
function back() {
	const name = seen.name;
	location.hash = "#/";
	draw();
	move(Math.max(0, shown.indexOf(name)));
}
addEventListener("keydown", (e) => {
	if ($("dialog").open || e.ctrlKey || e.metaKey || e.altKey || !info) return;
	const t = e.target, table = !$("overview").hidden;
	if (t.id === "filter") { if (e.key === "Escape" || e.key === "Enter") { e.preventDefault(); if (e.key === "Escape" && filter) { t.value = filter = ""; stale = true; draw(); } else move(0); } return; }
	if (e.key === "j" || e.key === "k") { if (table) move(selected < 0 ? 0 : selected + (e.key === "j" ? 1 : -1)); }
	else if (e.key === "Enter" && t.dataset.name !== undefined) location.hash = href(t.dataset.name);
	else if (e.key === "Escape") { if (!table) back(); else if (wanted !== "all") { wanted = "all"; stale = true; draw(); } }
	else if (e.key === "/" && table) { e.preventDefault(); $("filter").focus(); }
	else if (e.key === "?") help();
});
$("filter").addEventListener("input", (e) => { filter = e.target.value; stale = true; selected = -1; later(); });
$("mode").addEventListener("click", () => login(""));
$("table").addEventListener("focusin", (e) => { const tr = e.target.closest("tr[data-name]"); if (tr) selected = shown.indexOf(tr.dataset.name); });
addEventListener("hashchange", () => { if (info) { if (!$("detail").hidden) { seen = {name: ""}; $("detail").key = null; } draw(); } });
addEventListener("scroll", () => { if (info && !$("overview").hidden) drawRows(); }, {passive: true});
addEventListener("resize", () => { seen.drawn = false; later(); });
let running = false;
async function run() { running = true; await follow(); running = false; }
// Between events: leases run down while there is news, and stop when there is none.
setInterval(() => {
	if (!info) return;
	if (!lost && now() - heardAt > 25e3) { lost = new Date(); stream.abort(); draw(); }
	drawAge();
	if (lost) { drawHead(); return; }
	if (!$("overview").hidden) for (const tr of pool.values()) { const r = rows.get(tr.dataset.name); if (r) cells(tr, r); }
	else if (seen.name) { if (now() - seen.loaded > 3000 && !document.hidden && rows.has(seen.name)) { seen.loaded = now(); load(seen.name); } later(); }
}, calm.matches ? 1000 : 250);
setInterval(lookUp, 1000);
run();
