'use strict';
// index.js - baton for Node: Store, Election and Lead, on the functions of addon.c.
//
// Events are taken on the event loop, when the store's descriptor is readable. No event ends work:
// leaving a Lead does, and nothing leaves a Lead that may still have work. An event loop that is
// blocked delays `lead.signal`, not `lead.leads`, which asks the clock.
const { EventEmitter } = require('node:events');

const native = load();
const constants = constantsOf();
const JOB = { close: 0, try: 1, observe: 2, resign: 3, transfer: 4, pause: 5, resume: 6,
  candidates: 7 };
const EXIT_MS = 1000; // how long the end of the program waits for leaderships to be given back
const LEASE_MS = 15000; // the library's default

function load() {
  const path = process.env.BATON_ADDON;
  if (path) return require(path);
  try {
    return require('./build/Release/baton.node');
  } catch (error) {
    error.message = `the addon of baton-election is not built or libbaton is missing: ${error.message}`;
    throw error;
  }
}

/** What the library refused or could not do: a code of baton.h, its name, and a sentence. */
class BatonError extends Error {
  constructor(code, text) {
    super(text);
    this.name = 'BatonError';
    this.code = code;
    this.codeName = native.codeName(code);
  }
}

/** The leadership that work was bound to is over. It is the reason of `lead.signal`. */
class LostError extends BatonError {
  constructor(term, reason) {
    super(constants.BATON_E_NOT_LEADER,
      `the leadership of term ${term} is over` + (reason ? `: ${reason}` : ''));
    this.name = 'LostError';
    this.term = term;
    this.reason = reason;
  }
}

/** The constants of baton.h, by their names there, as the library that runs has them. */
function constantsOf() {
  const all = { BATON_OK: 0 };
  for (const [prefix, name, first, step] of [['BATON_E_', native.codeName, -1, -1],
    ['BATON_EVENT_', native.eventName, 1, 1], ['BATON_REASON_', native.reasonName, 0, 1]]) {
    for (let n = first, word; (word = name(n)) !== 'unknown'; n += step) {
      all[prefix + word.toUpperCase()] = n;
    }
  }
  return Object.freeze(all);
}

function checked(result) {
  if (typeof result === 'number' && result < 0) throw new BatonError(result, native.lastText());
  return result;
}

async function job(kind, what, options) {
  const done = await checked(native.job(JOB[kind], what, options ?? {}));
  if (done.code < 0) throw new BatonError(done.code, done.text);
  return done;
}

/** Work that is bound to one leadership. Leaving it says that the work has ended. */
class Lead {
  #election;
  #context;
  #watch;
  #controller = new AbortController();

  constructor(election, context, open) {
    this.#election = election;
    this.#context = context;
    this.term = native.leadTerm(context);
    const weak = new WeakRef(this);
    this.#watch = checked(native.watch(context, true, () => weak.deref()?._lose('')));
    open.add(this);
  }

  /** Whether this leadership holds now: asks the clock. False once it is left. */
  get leads() { return this.#context !== null && native.leads(this.#context); }

  /** Milliseconds for which `leads` stays true if nothing more is heard from the store. */
  get timeLeft() { return this.#context === null ? 0 : native.leadTimeLeft(this.#context); }

  /** Aborted when the leadership is lost. A courtesy: `leads` is the truth. */
  get signal() { return this.#controller.signal; }

  get election() { return this.#election; }

  /** The term, for the next piece of work; throws LostError if the leadership is over. */
  check() {
    if (!this.leads) throw this.signal.aborted ? this.signal.reason : new LostError(this.term, '');
    return this.term;
  }

  /** The work has ended. Idempotent. */
  leave() {
    const context = this.#context;
    if (context === null) return;
    this.#context = null;
    native.unwatch(this.#watch);
    native.leave(context);
    this.#election._left(this);
  }

  _lose(reason) {
    if (!this.signal.aborted) this.#controller.abort(new LostError(this.term, reason));
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { this.leave(); }
}

/** This process' candidate in one election. Made by Store.election(). */
class Election extends EventEmitter {
  #store;
  #handle;
  #isOver = false; // stopped, and not started again
  #isStarted = false;
  #waiters = new Set();
  #open = new Set();

  constructor(store, name, handle) {
    super();
    this.#store = store;
    this.#handle = handle;
    this.name = name;
    this.on('newListener', (event) => { if (event !== 'newListener') store._watch(); });
  }

  get store() { return this.#store; }
  get leads() { return this.#handle !== null && native.isLeader(this.#handle); }
  get term() { return this.#handle === null ? 0n : native.term(this.#handle); }
  get timeLeft() { return this.#handle === null ? 0 : native.timeLeft(this.#handle); }

  status() { return checked(native.status(this._handle())); }

  /** Contends from now on. Does no I/O. Keeps the program alive until it is stopped. */
  start() {
    checked(native.start(this._handle()));
    this.#isOver = false;
    this.#isStarted = true;
    this.#store._watch();
    this.#store._ref();
    return this;
  }

  /** Steps down, waits until all leads are left, gives the claim back; then the handlers have heard of
   * all that (S8). Rejects with code BATON_E_TIMEOUT after timeout milliseconds, and goes on in the
   * background. */
  async stop(timeout) {
    this._stopNow();
    if (timeout === 0) return;
    await this.#until(() => this.#handle === null || !this.#isStarted, timeout);
  }

  /** Tries to become leader now: {leads, obstacle}. */
  async tryAcquire(timeout = 10000) {
    const done = await this.#store._job('try', this._handle(), { ms: timeout });
    return { leads: done.code > 0, obstacle: done.obstacle };
  }

  resign(quiet = 0) { checked(native.resign(this._handle(), quiet)); }
  transfer(candidate) { checked(native.transfer(this._handle(), candidate)); }
  /** Our own health, 0 to 1, and what others see beside it; without metadata, those stay. */
  reportHealth(score, metadata) {
    score = Math.max(0, Math.round(score * 1000));
    checked(native.reportHealth(this._handle(), { score, metadata }));
  }
  alive() { native.alive(this._handle()); }

  /** Binds work to the present leadership; throws BATON_E_NOT_LEADER if there is none. */
  enter() {
    const lead = new Lead(this, checked(native.enter(this._handle())), this.#open);
    this.#store._count(1);
    this.#store._watch();
    return lead;
  }

  /** Starts if need be, and resolves to a Lead when this candidate leads. */
  async acquire({ timeout, signal } = {}) {
    for (;;) {
      const lead = await this.#next(timeout, signal);
      if (lead) return lead;
      throw new BatonError(constants.BATON_E_NOT_STARTED, `election ${this.name} was stopped`);
    }
  }

  /** Calls body(lead) whenever elected, until the election is stopped. When it returns while it
   * leads, this candidate resigns and contends again. What it throws is thrown here, after the
   * leadership was given back; but not what it throws because it was cancelled. */
  async run(body) {
    try {
      for (let lead; (lead = await this.#next());) {
        try {
          await body(lead);
        } catch (error) {
          if (!lead.signal.aborted || !isOf(lead.signal, error)) throw error;
        } finally {
          lead.leave();
        }
        this.#handOn(lead);
      }
    } catch (error) {
      if (this.#handle !== null) this._stopNow();
      throw error;
    }
  }

  /** for await (const lead of election): one turn for each leadership; the end of a turn leaves it. */
  async* [Symbol.asyncIterator]() {
    try {
      for (let lead; (lead = await this.#next());) {
        try {
          yield lead;
        } finally {
          lead.leave();
        }
        this.#handOn(lead);
      }
    } finally {
      if (this.#handle !== null) this._stopNow();
    }
  }

  // ---- of this file ----

  _handle() {
    if (this.#handle === null) {
      throw new BatonError(constants.BATON_E_INVALID, `election ${this.name} is closed`);
    }
    return this.#handle;
  }

  get _isActive() { return this.#isStarted; }
  get _open() { return this.#open; }

  _stopNow() {
    this.#isOver = true;
    native.stop(this._handle(), 0);
    this._wake();
  }

  /** On process exit: no JavaScript runs any more, so no work does. */
  _exit(ms) {
    for (const lead of [...this.#open]) lead.leave();
    if (this.#handle !== null) native.stop(this.#handle, ms);
  }

  _take(event) {
    if (event.kind === 'lost') {
      for (const lead of this.#open) if (lead.term === event.term) lead._lose(event.reason);
    }
    try {
      this.emit(event.kind === 'error' ? 'failed' : event.kind, event);
    } finally {
      if (event.kind === 'stopped' && this.#isOver) { // and not started again
        this.#isStarted = false;
        this.#store._ref();
      }
      this._wake();
    }
  }

  _left(lead) {
    this.#open.delete(lead);
    this.#store._count(-1);
    this._wake();
  }

  _wake() { for (const wake of [...this.#waiters]) wake(); }

  _close() {
    this.#handle = null;
    this.#isOver = true;
    this.#isStarted = false;
    this._wake();
  }

  /** The next lead; null when the election was stopped. */
  async #next(timeout, signal) {
    if (!this.#isOver && this.status().state === 'stopped') this.start();
    for (;;) {
      await this.#until(() => this.#isOver || this.leads, timeout, signal);
      if (this.#isOver) return null;
      try {
        return this.enter();
      } catch (error) {
        if (error.code !== constants.BATON_E_NOT_LEADER) throw error;
      }
    }
  }

  #until(isTrue, timeout, signal) {
    return this._until(isTrue, timeout, signal, `${this.name}: not in ${timeout} ms`);
  }

  _until(isTrue, timeout, signal, text) {
    return new Promise((resolve, reject) => {
      let timer;
      const end = (settle, value) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#waiters.delete(look);
        settle(value);
      };
      const look = () => { if (isTrue()) end(resolve); };
      const onAbort = () => end(reject, signal.reason);
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', onAbort);
      this.#waiters.add(look);
      if (timeout !== undefined) {
        timer = setTimeout(() => end(reject,
          new BatonError(constants.BATON_E_TIMEOUT, text)), timeout);
      }
      look();
    });
  }

  /** The work of that leadership has ended, though it may not be lost: others first. */
  #handOn(lead) {
    if (this.#handle !== null && native.term(this.#handle) === lead.term) {
      native.resign(this.#handle, 0);
    }
  }
}

/** Whether the error is only the cancellation, as it was passed on. */
function isOf(signal, error) {
  return error === signal.reason || error?.cause === signal.reason || error?.name === 'AbortError';
}

const stores = new Set(); // of WeakRefs, for the end of the program

/** Stores that were forgotten: never blocks, never leaves a lead. A job keeps its store. */
const forgotten = new FinalizationRegistry(({ state, weak }) => {
  stores.delete(weak);
  process.emitWarning('baton: a store was forgotten, not closed: its elections stop in the background');
  for (const handle of state.handles.values()) native.stop(handle, 0);
  if (state.watch !== null) native.unwatch(state.watch);
  if (state.nOpen === 0) native.job(JOB.close, state.handle, {});
});

/** A handle on the store that the URL names. Opening does no I/O; times are milliseconds. */
class Store {
  #handle;
  #elections = new Map(); // by the key of their events
  #weak = new WeakRef(this);
  #leaseMs;
  #state = { handle: null, handles: new Map(), watch: null, nOpen: 0, nJobs: 0, idle() {} };

  constructor(url, options = {}) {
    this.#handle = this.#state.handle = checked(native.open(String(url), options));
    this.#leaseMs = options.lease ?? LEASE_MS;
    stores.add(this.#weak);
    forgotten.register(this, { state: this.#state, weak: this.#weak }, this.#weak);
  }

  get id() { return native.id(this._handle()); }
  /** What this store promises, and under which faults it doesn't: text for people. */
  get promises() { return native.promises(this._handle()); }

  /** Makes a candidate in the named election. It does nothing until it is started. */
  election(name, { minScore, ...options } = {}) {
    if (minScore !== undefined) options.minScorePermille = Math.round(minScore * 1000);
    const handle = checked(native.election(this._handle(), String(name), options));
    const election = new Election(this, name, handle);
    const key = native.key(handle);
    this.#elections.set(key, election);
    this.#state.handles.set(key, handle);
    return election;
  }

  /** Asks the store who leads. */
  async observe(name) {
    const { code, text, ...observed } = await this._job('observe', this._handle(), { name });
    return observed;
  }

  /** Asks the store who contends. */
  async candidates(name) {
    return (await this._job('candidates', this._handle(), { name })).candidates;
  }

  /** Orders the leader to step down; with a term, only the leader of that term. */
  async orderResign(name, { term, quiet, note } = {}) {
    await this._job('resign', this._handle(), { name, term, ms: quiet, note });
  }

  async orderTransfer(name, candidate, { term, note } = {}) {
    await this._job('transfer', this._handle(), { name, other: candidate, term, note });
  }

  /** No candidate leads until resume(). */
  async pause(name) { await this._job('pause', this._handle(), { name }); }
  async resume(name) { await this._job('resume', this._handle(), { name }); }

  /** Stops all elections, waits until all leads are left, lets handlers hear of the end, waits for
   * what asks the store meanwhile, gives everything back. Rejects with code BATON_E_TIMEOUT if work
   * goes on for longer than timeout milliseconds; then call it again. */
  async close(timeout) {
    if (this.#handle === null) return;
    for (const election of this.#elections.values()) election._stopNow();
    for (const election of this.#elections.values()) {
      await election._until(() => election._open.size === 0, timeout, undefined,
        'work is still bound to a lead: leave it before the store is closed');
    }
    await this.#untilHeard();
    const handle = this.#handle;
    if (handle === null) return; // another call was faster
    this.#handle = null;
    for (const election of this.#elections.values()) election._close();
    if (this.#state.watch !== null) native.unwatch(this.#state.watch);
    this.#state.watch = null;
    stores.delete(this.#weak);
    forgotten.unregister(this.#weak);
    await new Promise((resolve) => {
      this.#state.idle = resolve;
      if (this.#state.nJobs === 0) resolve();
    });
    await job('close', handle);
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { return this.close(); }

  // ---- of this file ----

  _handle() {
    if (this.#handle === null) {
      throw new BatonError(constants.BATON_E_INVALID, 'the store is closed');
    }
    return this.#handle;
  }

  /** The events up to the stops were told (S8); no longer than a lease, as a store may be gone. */
  async #untilHeard() {
    const until = Date.now() + this.#leaseMs;
    for (const election of this.#elections.values()) {
      await election._until(() => !election._isActive, Math.max(0, until - Date.now()), undefined, '')
        .catch(() => {});
    }
  }

  /** Asks the store on another thread. Meanwhile the handle is not closed, nor the store forgotten. */
  async _job(kind, what, options) {
    this.#state.nJobs++;
    try {
      return await job(kind, what, options);
    } finally {
      if (--this.#state.nJobs === 0) this.#state.idle();
    }
  }

  _count(n) { this.#state.nOpen += n; }

  /** The descriptor must not keep the store from being forgotten. */
  _watch() {
    if (this.#state.watch !== null || this.#handle === null) return;
    const weak = this.#weak;
    this.#state.watch = checked(native.watch(this.#handle, false, () => weak.deref()?._takeAll()));
    this._ref();
  }

  _takeAll() {
    for (let event; this.#handle !== null && (event = native.take(this.#handle)) !== null;) {
      const { key, ...rest } = event;
      this.#elections.get(key)?._take(rest);
    }
  }

  /** A started election keeps the program alive, nothing else. */
  _ref() {
    if (this.#state.watch === null) return;
    native.ref(this.#state.watch, [...this.#elections.values()].some((e) => e._isActive));
  }

  _exit(until) {
    for (const election of this.#elections.values()) election._exit(0);
    for (const election of this.#elections.values()) {
      election._exit(Math.max(0, Math.ceil(until - performance.now())));
    }
  }
}

process.on('exit', () => {
  const until = performance.now() + EXIT_MS;
  for (const weak of stores) weak.deref()?._exit(until);
});

module.exports = {
  BatonError, Election, Lead, LostError, Store,
  constants,
  version: native.version,
  versionNumber: native.versionNumber,
};
