// projection.ts [--once] [STORE] [VIEW] - keeps a view of a stream of events in a file, which
// refuses what an older leader writes: fencing. --once ends when the stream is read.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Store } from 'baton-election';

const once = process.argv.includes('--once');
const [url = 'file:/tmp/baton-examples', view = '/tmp/baton-projection'] =
  process.argv.slice(2).filter((word) => word !== '--once');
const events = [1, 2, 3, 4, 5];

/** The view knows the highest term that it was written in. Here a file stands for your database,
 * which compares and writes in one transaction. */
function write(total: number, term: bigint): void {
  const seen = existsSync(view) ? BigInt(/term (\d+)/.exec(readFileSync(view, 'utf8'))![1]) : 0n;
  if (term < seen) throw new Error(`term ${term} is over: the view was written in term ${seen}`);
  writeFileSync(view, `total ${total}, written in term ${term}\n`);
}

const store = new Store(url);
let last = 0n;
for await (const lead of store.election('projection')) {
  console.log(`projects in term ${last = lead.term}`);
  let total = 0;
  for (const [i, event] of events.entries()) {
    write(total += event, lead.check());
    console.log(`event ${i + 1}: total ${total}`);
  }
  while (lead.leads && !once) await sleep(1000, null, { signal: lead.signal }).catch(() => {});
  if (once) break;
}
try {
  write(0, last - 1n); // as an old leader would
} catch (error) {
  console.log(`refused: ${(error as Error).message}`);
}
await store.close();
