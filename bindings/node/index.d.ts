// index.d.ts - the types of baton-election. Times are milliseconds; terms are 64 bits wide.
/// <reference types="node" />
import { EventEmitter } from 'node:events';

/** What the library refused or could not do. */
export class BatonError extends Error {
  /** As in baton.h: `constants.BATON_E_TIMEOUT`. */
  readonly code: number;
  /** The code in one word: "timeout". */
  readonly codeName: string;
}

/** The leadership that work was bound to is over: the reason of `lead.signal`. */
export class LostError extends BatonError {
  readonly term: bigint;
  /** "expired", "resigned", ...; empty if only the clock said so. */
  readonly reason: string;
}

export interface StoreOptions {
  id?: string;
  address?: string;
  lease?: number;
  renew?: number;
  grace?: number;
  retry?: number;
  outlive?: boolean;
}

export interface ElectionOptions {
  metadata?: string;
  priority?: number;
  preempt?: number;
  observeOnly?: boolean;
  manual?: boolean;
  /** True: a stop gives the leadership back. Else the lease runs out. */
  releaseOnStop?: boolean;
  checkHealth?: boolean;
  stepDownUnhealthy?: boolean;
  /** 0 to 1. */
  minScore?: number;
  workTimeout?: number;
}

export interface ElectionEvent {
  kind: 'became' | 'lost' | 'changed' | 'error' | 'stopped' | 'waits' | 'renewed';
  reason: string;
  code: number;
  term: bigint;
  oldTerm: bigint;
  wait: number;
  leader: string;
  oldLeader: string;
  text: string;
  detail: string;
}

export interface Status {
  state: 'stopped' | 'standby' | 'campaigning' | 'leading' | 'resigning';
  isLeader: boolean;
  paused: boolean;
  term: bigint;
  leader: string;
  leaderAddress: string;
  leaderMetadata: string;
  timeLeft: number;
  wait: number;
  waitReason: string;
}

export interface Observed {
  hasLeader: boolean;
  paused: boolean;
  term: bigint;
  leader: string;
  address: string;
  metadata: string;
  since: number;
  leaseLeft: number;
}

/** A candidate as the store knows it. */
export interface Candidate {
  id: string;
  address: string;
  metadata: string;
  leads: boolean;
  /** It may lead. */
  healthy: boolean;
  /** 0 to 1. */
  score: number;
  priority: number;
  updated: number;
}

/** Work that is bound to one leadership. Leaving it says that the work has ended. */
export class Lead {
  readonly election: Election;
  readonly term: bigint;
  /** Asks the clock on every call. */
  readonly leads: boolean;
  readonly timeLeft: number;
  /** Aborted when the leadership is lost. A courtesy: `leads` is the truth. */
  readonly signal: AbortSignal;
  /** The term; throws LostError if the leadership is over. */
  check(): bigint;
  leave(): void;
  /** As leave(), at the end of a scope: `using lead = election.enter()`. */
  [Symbol.dispose](): void;
}

/** This process' candidate in one election. */
export class Election extends EventEmitter implements AsyncIterable<Lead> {
  readonly store: Store;
  readonly name: string;
  readonly leads: boolean;
  readonly term: bigint;
  readonly timeLeft: number;
  status(): Status;
  start(): this;
  stop(timeout?: number): Promise<void>;
  tryAcquire(timeout?: number): Promise<{ leads: boolean; obstacle: string }>;
  resign(quiet?: number): void;
  transfer(candidate: string): void;
  /** 0 to 1; without metadata, those that others see stay. */
  reportHealth(score: number, metadata?: string): void;
  alive(): void;
  enter(): Lead;
  acquire(options?: { timeout?: number; signal?: AbortSignal }): Promise<Lead>;
  run(body: (lead: Lead) => unknown | Promise<unknown>): Promise<void>;
  [Symbol.asyncIterator](): AsyncGenerator<Lead, void, undefined>;
  /** The error of the store is called "failed": an event "error" without a listener would end the program. */
  on(event: 'became' | 'lost' | 'changed' | 'failed' | 'stopped' | 'waits', listener: (event: ElectionEvent) => void): this;
  on(event: string | symbol, listener: (...args: any[]) => void): this;
}

/** A handle on the store that the URL names. Opening does no I/O. */
export class Store {
  constructor(url: string, options?: StoreOptions);
  readonly id: string;
  readonly promises: string;
  election(name: string, options?: ElectionOptions): Election;
  observe(name: string): Promise<Observed>;
  candidates(name: string): Promise<Candidate[]>;
  orderResign(name: string, options?: { term?: bigint; quiet?: number; note?: string }): Promise<void>;
  orderTransfer(name: string, candidate: string, options?: { term?: bigint; note?: string }): Promise<void>;
  pause(name: string): Promise<void>;
  resume(name: string): Promise<void>;
  close(timeout?: number): Promise<void>;
  /** As close(), at the end of a scope: `await using store = new Store(url)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The constants of baton.h by their names there. */
export const constants: Readonly<Record<string, number>>;
export const version: string;
export const versionNumber: number;
