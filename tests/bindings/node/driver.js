'use strict';
// driver.js - the Node binding, driven by lines (tests/bindings/README.md): what a scenario asks for
// is done as a user of the binding would do it. Bodies are async functions. It must never decide
// anything by itself: the scenarios do.
const { spawn } = require('node:child_process');
const readline = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const baton = require('baton-election');

const stores = new Map(), elections = new Map(), leads = new Map(), finish = new Map();
const heard = new Map();
let nLeads = 0;

const SAFE = new Set(Buffer.from('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/=,?&@+'));
const quoted = (word) => [...Buffer.from(String(word))].map((byte) => SAFE.has(byte)
  ? String.fromCharCode(byte) : '%' + byte.toString(16).toUpperCase().padStart(2, '0')).join('') || '%';
const unquoted = (word) => (word === '%' ? '' : decodeURIComponent(word));
// Node has CLOCK_MONOTONIC only.
const offset = BigInt(process.env.BATON_TEST_BOOT_OFFSET_NS);
const nowNs = () => process.hrtime.bigint() + offset;

function say(first, ...words) {
  require('node:fs').writeSync(1, [first, ...words.map(quoted)].join(' ') + '\n');
}

class Skip extends Error {}

function named(lead) {
  const name = `L${++nLeads}`;
  leads.set(name, lead);
  return name;
}

const lost = (lead) => lead.signal.aborted ? Promise.resolve()
  : new Promise((resolve) => lead.signal.addEventListener('abort', resolve, { once: true }));

async function play(e, mode, lead, name) {
  if (mode === 'raise') throw new Error('the body failed');
  if (mode === 'stop') await lead.election.stop(0);
  for (; mode === 'spin' && !lead.signal.aborted; await pause(1)) {
    const t0 = nowNs();
    if (!lead.leads) break;
    say('!', 'yes', e, lead.term, t0, nowNs());
  }
  if (mode === 'until') {
    await Promise.race([lost(lead), finish.get(e).promise]);
    if (!lead.signal.aborted) return 'returned';
  }
  await lost(lead);
  say('!', 'lost', e, name, nowNs());
  if (mode !== 'stubborn') return 'cancelled';
  await finish.get(e).promise;
  return 'returned';
}

/** A handler of its events, which is slow to deal with the beginning: nothing else runs meanwhile. */
function hearing(e, store, ms, inside) {
  heard.set(e, []);
  for (const kind of ['became', 'lost', 'stopped']) {
    elections.get(e).on(kind, async function () {
      if (kind === 'became') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      if (kind === 'became' && inside === 'stop') await this.stop();
      if (kind === 'became' && inside === 'close') await store.close();
    });
    elections.get(e).on(kind, () => { heard.get(e).push(kind); });
  }
}

function newFinish(e) {
  let now;
  const promise = new Promise((resolve) => { now = resolve; });
  finish.set(e, { promise, now });
}

async function body(e, mode, lead) {
  const name = named(lead);
  let how = 'raised';
  say('!', 'enter', e, name, lead.term, nowNs());
  try {
    how = await play(e, mode, lead, name);
  } finally {
    newFinish(e);
    say('!', 'leave', e, name, how, nowNs());
  }
}

async function loop(e, mode) {
  try {
    await elections.get(e).run((lead) => body(e, mode, lead));
    say('!', 'end', e, 'stopped');
  } catch (error) {
    if (error instanceof baton.BatonError) say('!', 'end', e, 'error', error.codeName, error.code, error.message);
    else say('!', 'end', e, 'raised', error.message);
  }
}

const FLAGS = { manual: 'manual', observe_only: 'observeOnly', release_on_stop: 'releaseOnStop',
  step_down_unhealthy: 'stepDownUnhealthy', outlive: 'outlive' };
const options = (pairs) => Object.fromEntries(pairs.map((pair) => {
  const [key, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
  if (key in FLAGS) return [FLAGS[key], value === '1'];
  if (key === 'work_timeout_ms') return ['workTimeout', Number(value)];
  return key.endsWith('_ms') || key === 'priority' ? [key.replace('_ms', ''), Number(value)] : [key, value];
}));
const found = (name) => leads.get(name) ?? elections.get(name);

function forget(s) {
  for (const [name, e] of elections) if (e.store === stores.get(s)) elections.delete(name);
  stores.delete(s);
}

const verbs = {
  hello: () => ['node', baton.version, baton.versionNumber],
  open(s, url, ...pairs) {
    stores.set(s, new baton.Store(url, options(pairs)));
    return [stores.get(s).id];
  },
  election(e, s, name, ...pairs) {
    const { hear, inside, ...rest } = options(pairs);
    elections.set(e, stores.get(s).election(name, rest));
    newFinish(e);
    if (hear !== undefined) hearing(e, stores.get(s), hear, inside);
    return [elections.get(e).name];
  },
  promises: (s) => [stores.get(s).promises],
  condition() { throw new Skip('no condition'); },
  alive: (e) => { elections.get(e).alive(); },
  heard: (e) => heard.get(e),
  start: (e) => { elections.get(e).start(); },
  run: (e, mode) => { loop(e, mode); },
  finish: (e) => { finish.get(e).now(); },
  async await(e, ms) {
    const lead = await elections.get(e).acquire({ timeout: Number(ms) });
    lead.leave();
    return [lead.term];
  },
  enter(e) {
    const lead = elections.get(e).enter();
    return [named(lead), lead.term];
  },
  leave: (l) => { leads.get(l).leave(); },
  leads: (name) => [Number(found(name).leads)],
  lost: (l) => [Number(leads.get(l).signal.aborted)],
  async awaitlost(l, ms) {
    const late = new AbortController();
    await Promise.race([lost(leads.get(l)), pause(Number(ms), null, { signal: late.signal }).catch(() => {})]);
    late.abort();
    if (!leads.get(l).signal.aborted) throw new baton.BatonError(-9, 'it is not lost');
    return [nowNs()];
  },
  term: (name) => [found(name).term],
  left: (name) => [found(name).timeLeft],
  status(e) {
    const status = elections.get(e).status();
    return [status.state, status.leader, status.term];
  },
  candidates: async (s, name) => (await stores.get(s).candidates(name)).map(
    (c) => `${c.id}=${Number(c.leads)},${Number(c.healthy)},${Math.round(c.score * 1000)},${c.metadata}`),
  observe(s, name) {
    stores.get(s).observe(name)
      .then(({ leader, term }) => say('!', 'observed', s, 'leader', leader, term))
      .catch((error) => say('!', 'observed', s, 'error', error.codeName, error.code, error.message));
  },
  try: async (e, ms) => [Number((await elections.get(e).tryAcquire(Number(ms))).leads)],
  resign: (e, ms) => { elections.get(e).resign(Number(ms)); },
  transfer: (e, candidate) => { elections.get(e).transfer(candidate); },
  health: (e, score, ...metadata) => { elections.get(e).reportHealth(Number(score) / 1000, ...metadata); },
  order: async (s, what, name, candidate) => {
    const verbs = { resign: 'orderResign', transfer: 'orderTransfer' };
    await stores.get(s)[verbs[what] ?? what](name, candidate);
  },
  stop: async (e, ms) => { await elections.get(e).stop(Number(ms)); },
  close: async (s) => { await stores.get(s).close(); },
  constants: () => Object.entries(baton.constants).map(([name, value]) => `${name}=${value}`),
  lose() { throw new Skip('an election keeps its leads'); },
  fork() { throw new Skip('Node cannot fork without exec'); },
  child: () => [spawn('cat', { stdio: ['pipe', 'inherit', 'inherit'] }).pid],
  bench(l, n) {
    const lead = leads.get(l), native = require(process.env.BATON_ADDON);
    const nothing = new (class {
      #context = native.open('memory:bench', {});
      get leads() { return this.#context !== null && native.empty(this.#context); }
    })();
    const best = (thing) => Math.min(...Array.from({ length: 5 }, () => {
      const began = process.hrtime.bigint();
      for (let i = 0; i < Number(n); i++) thing.leads;
      return Number(process.hrtime.bigint() - began) / Number(n);
    }));
    return [best(lead), best(nothing)].map(Math.round);
  },
  async drop(s) {
    forget(s); // here, the store would be a variable of a function that waits
    await this.gc();
  },
  async gc() {
    for (let i = 0; i < 20; i++) { // the collector runs when it likes, and its callbacks later
      global.gc();
      await pause(5);
    }
  },
  async cycle(n, url) {
    for (let i = 0; i < Number(n); i++) {
      const store = new baton.Store(url);
      store.election(`cycle-${i % 10}`).start();
      await store.close();
    }
  },
};

async function serve(line) {
  const [verb, ...words] = line.split(' ').map(unquoted);
  if (verb === 'exit') process.exit(Number(words[0]));
  try {
    say('ok', ...((await verbs[verb](...words)) ?? []));
  } catch (error) {
    if (error instanceof Skip) say('skip', error.message);
    else if (error instanceof baton.BatonError) say('error', error.codeName, error.code, error.message);
    else say('error', 'other', 0, error.stack);
  }
}

async function end(code) {
  for (const { now } of finish.values()) now();
  for (const store of stores.values()) await store.close();
  process.exit(code);
}

process.on('SIGINT', () => end(130));
// A request may take long: bodies run meanwhile, and the next request waits.
let last = Promise.resolve();
readline.createInterface({ input: process.stdin })
  .on('line', (line) => { last = last.then(() => serve(line)); })
  .on('close', () => { last.then(() => end(0)); });
