// web_service.ts [--once] [STORE] - a background job inside a web service: every instance answers
// requests, and one of them runs the job. --once asks itself one question, and ends.
import { once as happens } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Store } from 'baton-election';

const once = process.argv.includes('--once');
const url = process.argv.find((word) => word.includes(':')) ?? 'file:/tmp/baton-examples';

const store = new Store(url);
const election = store.election('background-job');
const job = election.run(async (lead) => {
  console.log(`the job begins in term ${lead.term}`);
  while (lead.leads) await sleep(1000, null, { signal: lead.signal }).catch(() => {});
  console.log('the job has ended');
});

const server = createServer((_, response) => {
  response.end(JSON.stringify({ leads: election.leads, term: String(election.term) }));
});
server.listen(once ? 0 : 8080, '127.0.0.1');
await happens(server, 'listening');
if (once) {
  if (!election.leads) await happens(election, 'became');
  const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  console.log(await (await fetch(page, { headers: { connection: 'close' } })).text());
  server.close();
  await store.close();
}
await job;
