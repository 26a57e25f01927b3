// several_elections.ts [--once] [STORE] - shards, each led by one instance: many elections in one
// store, for the price of one renewal. --once ends when each shard was worked on.
import { setTimeout as sleep } from 'node:timers/promises';
import { Election, Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';

async function own(election: Election): Promise<void> {
  for await (const lead of election) {
    console.log(`${election.name} is ours in term ${lead.term}`);
    while (lead.leads) {
      console.log(`${election.name}: worked in term ${lead.check()}`);
      if (once) return;
      await sleep(1000, null, { signal: lead.signal }).catch(() => {});
    }
  }
}

await using store = new Store(url); // its end closes it
await Promise.all([0, 1, 2, 3].map((n) => own(store.election(`shard-${n}`))));
