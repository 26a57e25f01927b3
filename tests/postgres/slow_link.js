'use strict';
// slow_link.js FILE - the class of that file (examples/sql/leader-election.ts, compiled), on a
// database that answers late: a stop gives the leadership back all the same. And a leader whose work
// can't begin gives it back. No server is asked.
const assert = require('node:assert');
const { setTimeout: pause } = require('node:timers/promises');
const { LeaderElection } = require(process.argv[2]);

const LATE_MS = 300;
const ANSWERS = { try_become_leader_term: '7', leader_heartbeat: true, step_down: true };

class SlowLink {
  answered = [];
  steppedDown = new Promise((resolve) => { this.stepped = resolve; });

  async query(text) {
    const name = /baton\.(\w+)/.exec(text)[1];
    await pause(LATE_MS);
    this.answered.push(name);
    if (name === 'step_down') this.stepped();
    return { rows: [{ answer: ANSWERS[name] }] };
  }
}

const config = { serviceName: 'e', candidateId: 'worker' };

async function stops() {
  const link = new SlowLink();
  const election = new LeaderElection(link, config);
  await election.start();
  assert(election.isCurrentLeader() && election.term === 7n);
  await election.stop();
  assert.deepStrictEqual(link.answered, ['try_become_leader_term', 'step_down']);
}

async function cannotBegin() {
  const link = new SlowLink();
  let ended = 0;
  const election = new LeaderElection(link, {
    ...config,
    onBecomeLeader: () => { throw new Error('there is no work'); },
    onLoseLeadership: () => { ended++; },
  });
  await election.start();
  assert(!election.isCurrentLeader(), 'it leads without work');
  await link.steppedDown;
  await election.stop();
  assert.deepStrictEqual([link.answered, ended], [['try_become_leader_term', 'step_down'], 1]);
}

stops().then(cannotBegin).catch((error) => {
  console.error(error);
  process.exit(1);
});
