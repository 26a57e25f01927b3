// queue_consumer.ts [--once] [STORE] - consumes a queue in order, on one instance. A message whose
// work is cancelled, because the leadership is lost, is put back. --once gives the leadership away
// in the middle of a message, and ends when the queue is empty.
import { setTimeout as sleep } from 'node:timers/promises';
import { Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';
const queue = ['message 1', 'message 2', 'message 3']; // stands for your broker

const store = new Store(url);
const election = store.election('queue');
await election.run(async (lead) => {
  console.log(`leads in term ${lead.term}`);
  for (let message; (message = queue.shift()) !== undefined;) {
    try {
      if (once && message === 'message 2' && lead.term === 1n) {
        election.resign();
        await sleep(3_600_000, null, { signal: lead.signal }); // long work: it is cancelled
      }
      lead.check();
      console.log(`${message}: done`);
    } catch (error) {
      queue.unshift(message);
      console.log(`${message}: leadership lost, put back`);
      throw error;
    }
  }
  console.log('the queue is empty');
  await election.stop(0);
});
await store.close();
