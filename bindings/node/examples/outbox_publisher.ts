// outbox_publisher.ts [--once] [STORE] - many instances of a service write messages into an outbox;
// one of them publishes what is there, in order. --once ends when the outbox is empty.
import { setTimeout as sleep } from 'node:timers/promises';
import { Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';
const outbox = ['order 1 placed', 'order 1 paid', 'order 1 shipped']; // stands for your database

/** The term goes along, so that a receiver can refuse what an old leader had on its way. */
function publish(message: string, term: bigint): void {
  console.log(`published in term ${term}: ${message}`);
}

const store = new Store(url);
for await (const lead of store.election('outbox')) {
  while (lead.leads && (outbox.length > 0 || !once)) {
    if (outbox.length > 0) {
      publish(outbox[0], lead.check());
      outbox.shift(); // after it was sent: at least once
    } else {
      await sleep(1000, null, { signal: lead.signal }).catch(() => {}); // loss ends it early
    }
  }
  if (once) break;
}
await store.close();
