// leader-election.ts - leader election by the SQL functions of baton ("baton schema postgres
// --functions"), for a program in TypeScript with a database connection.
//
//   node leader-election.js URL SERVICE [CANDIDATE [INTERVAL_MS TIMEOUT_SECONDS]]
//
// Copy the class. `db` is anything with pg's query(); a client that calls functions over HTTP is
// wrapped in a few lines. The server decides who leads; the class keeps the other half of the
// promise: a deadline on the boot clock, counted from before a call is sent, so that a leader stops
// in time when no answer comes, or when it was frozen itself. It must never say "leader" because of
// an old answer.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Pool } from "pg";

export interface Database {
	query(text: string, values: unknown[]): Promise<{ rows: { answer: unknown }[] }>;
}

export interface LeaderElectionConfig {
	serviceName: string;
	candidateId: string;
	heartbeatIntervalMs?: number; // 10000; less than a third of the timeout
	heartbeatTimeoutSeconds?: number; // 30: the length of our own lease
	onBecomeLeader?: () => void | Promise<void>; // starts the work
	onLoseLeadership?: () => void | Promise<void>; // returns when the work has ended
}

// Of the timeout: from there on isCurrentLeader() says no. The work has until 0.9 of it to end; the
// rest is for clocks that run at different rates.
const LEADS = 2 / 3;
const TICK_MS = 10; // of that clock

/** Goes on while the machine is suspended, and is never set. */
function bootMs(): number {
	return parseFloat(readFileSync("/proc/uptime", "latin1")) * 1000;
}

export class LeaderElection {
	/** Two processes with one id would both lead: so it is made up anew by each. */
	readonly candidateId: string;
	/** 64 bits: hand it to whatever you write to. */
	term: bigint | null = null;
	private readonly config: Required<LeaderElectionConfig>;
	private until = 0;
	private stopping = false;
	private wake: () => void = () => {};
	private running: Promise<void> | null = null;
	private tried: () => void = () => {};
	private firstTry: Promise<void> = Promise.resolve();
	private readonly work = new Set<Promise<unknown>>();

	constructor(private readonly db: Database, config: LeaderElectionConfig) {
		this.config = {
			heartbeatIntervalMs: 10000,
			heartbeatTimeoutSeconds: 30,
			onBecomeLeader: () => {},
			onLoseLeadership: () => {},
			...config,
		};
		this.candidateId = `${config.candidateId}-${randomBytes(6).toString("hex")}`;
	}

	/** Asks the clock. Ask it before each piece of work. */
	isCurrentLeader(): boolean {
		return bootMs() + TICK_MS < this.until;
	}

	/** Contends from now on. Ends after the first try: isCurrentLeader() says how that went. */
	async start(): Promise<void> {
		this.stopping = false;
		if (this.running === null) {
			this.firstTry = new Promise((resolve) => (this.tried = resolve));
			this.running = this.run();
		}
		await this.firstTry;
	}

	/** What the work returns; null without a call of it if this candidate doesn't lead. The
	 * leadership is not given back before the work has ended. It must not call stop(). */
	async runIfLeader<T>(work: () => Promise<T>): Promise<T | null> {
		if (!this.isCurrentLeader()) return null;
		const works = work();
		this.work.add(works);
		try {
			return await works;
		} finally {
			this.work.delete(works);
		}
	}

	/** Lets the work end, then gives the leadership back. */
	async stop(): Promise<void> {
		this.stopping = true;
		this.wake();
		await this.running;
		this.running = null;
	}

	private async call(name: string, ...more: unknown[]): Promise<unknown> {
		const values = [this.config.serviceName, this.candidateId, ...more];
		const places = values.map((_, n) => `$${n + 1}`).join(", ");
		// Without a lease there is nothing to be late for.
		const left = this.until === 0 ? Infinity : Math.max(this.until - bootMs(), 100);
		const limit = Math.min(this.config.heartbeatIntervalMs, left);
		let timer: NodeJS.Timeout | undefined;
		const late = new Promise<never>((_, reject) => {
			timer = setTimeout(() => reject(new Error(`no answer to ${name} in time`)), limit);
		});
		const asked = this.db.query(`SELECT baton.${name}(${places}) AS answer`, values);
		asked.catch(() => {}); // also when nobody waits for it any more
		try {
			return (await Promise.race([asked, late])).rows[0]?.answer;
		} finally {
			clearTimeout(timer);
		}
	}

	private async campaign(): Promise<void> {
		const began = bootMs(); // before the send: the lease may be that old when the answer is here
		const timeout = this.config.heartbeatTimeoutSeconds;
		const term = await this.call("try_become_leader_term", timeout);
		if (term === null || term === undefined) return;
		this.term = BigInt(term as string);
		this.until = began + timeout * 1000 * LEADS;
		if (!this.isCurrentLeader()) return;
		try {
			await this.config.onBecomeLeader();
		} catch (error) {
			this.until = 0; // nobody works: run() gives the leadership back
			throw error;
		}
	}

	private async renew(): Promise<void> {
		const began = bootMs();
		const leads = (await this.call("leader_heartbeat", this.term)) === true;
		this.until = leads ? began + this.config.heartbeatTimeoutSeconds * 1000 * LEADS : 0;
	}

	private async lose(): Promise<void> {
		this.until = 0;
		await this.config.onLoseLeadership();
		await Promise.allSettled(this.work);
		// Of a lease that is another's by now this does nothing.
		await this.call("step_down", this.term).catch(() => {});
		this.term = null;
	}

	private pause(ms: number): Promise<void> {
		return new Promise((resolve) => {
			const timer = setTimeout(resolve, Math.max(ms, 10));
			this.wake = () => {
				clearTimeout(timer);
				resolve();
			};
		});
	}

	private async run(): Promise<void> {
		while (!this.stopping) {
			const next = bootMs() + this.config.heartbeatIntervalMs;
			try {
				await (this.term === null ? this.campaign() : this.renew());
			} catch (error) { // whatever the client of the database throws: try again
				console.error(`leader election: ${error}`);
			}
			this.tried();
			if (this.term !== null && !this.isCurrentLeader()) await this.lose();
			const wakes = this.term === null ? next : Math.min(next, this.until - TICK_MS);
			if (!this.stopping) await this.pause(wakes - bootMs());
		}
		if (this.term !== null) await this.lose();
	}
}

export async function runIfLeader<T>(
	election: LeaderElection, work: () => Promise<T>,
): Promise<T | null> {
	return election.runIfLeader(work);
}

// ---- a program that uses it ----

async function main(words: string[]): Promise<void> {
	const [url, service, candidate = "worker", interval = "10000", timeout = "30"] = words;
	const pool = new Pool({ connectionString: url, max: 2 });
	let work: Promise<void> = Promise.resolve();

	pool.on("error", (error) => console.error(`database: ${error.message}`));
	const report = async (): Promise<void> => {
		for (;;) {
			const now = Date.now(); // before the look: what is shown was surely so
			if (!election.isCurrentLeader()) return;
			console.log(`at work in term ${election.term} at ${now}`);
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
	};
	const election = new LeaderElection(pool, {
		serviceName: service ?? "",
		candidateId: candidate,
		heartbeatIntervalMs: Number(interval),
		heartbeatTimeoutSeconds: Number(timeout),
		onBecomeLeader: () => {
			console.log(`leads ${service} in term ${election.term}`);
			work = report();
		},
		onLoseLeadership: async () => {
			await work;
			console.log(`leads ${service} no more`);
		},
	});
	await election.start();
	const did = await runIfLeader(election, async () => `works in term ${election.term}`);
	console.log(`after the start: ${did ?? "waits"}`);
	await new Promise((resolve) => {
		process.once("SIGTERM", resolve);
		process.once("SIGINT", resolve);
	});
	await election.stop();
	await pool.end();
}

if (require.main === module) void main(process.argv.slice(2));
