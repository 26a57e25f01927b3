// health_based.ts [--once] [STORE] - only an instance that is well may lead. One that falls ill
// steps down by itself, and leads again when it has recovered. --once falls ill once.
import { once as happens } from 'node:events';
import { LostError, Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';

const store = new Store(url);
const election = store.election('healthy', { minScore: 0.8 });
await election.run(async (lead) => {
  console.log(`leads in term ${lead.term}`);
  for (const one of await store.candidates('healthy')) {
    console.log(`candidate ${one.id}: healthy ${one.healthy}, score ${one.score}`);
  }
  if (once && lead.term === 1n) election.reportHealth(0.2); // below minScore: it steps down
  else if (once) await election.stop(0);
  if (!lead.signal.aborted) await happens(lead.signal, 'abort');
  console.log(`leads no more: ${(lead.signal.reason as LostError).reason}`);
  election.reportHealth(1);
});
await store.close();
