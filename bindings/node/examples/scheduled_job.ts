// scheduled_job.ts [--once] [STORE] - a job at each full minute, on one instance; with --once at
// the next full second, and then it ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { Lead, Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';
const period = once ? 1000 : 60_000;

/** Work in steps: each asks whether this instance still leads. */
async function job(number: number, lead: Lead): Promise<void> {
  console.log(`run ${number} begins in term ${lead.term}`);
  for (let step = 0; step < 3; step++) lead.check(); // LostError ends the job
  console.log(`run ${number} is done`);
}

const store = new Store(url);
const election = store.election('minutely');
await election.run(async (lead) => {
  while (lead.leads) {
    const number = Math.floor(Date.now() / period) + 1;
    await sleep(number * period - Date.now(), null, { signal: lead.signal });
    await job(number, lead);
    if (once) return election.stop(0);
  }
});
await store.close();
