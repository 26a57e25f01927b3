# words.py - the sentences of the pages of docs/evidence: what was measured, and how. No figure
# stands here: figures come from the record.

HANDOFF = """\
A clean handoff: from the leader's resignation until the standby says yes. Beside it stands the
cheapest equally durable request to the same store in the same run, and what users of that store
would have without baton: the same handoff by another library or program, with its own settings
(`bench/peers`). Each dot is a handoff, and the line is the median. The axis is logarithmic. With
fewer than 20 samples there is no p99."""

WAYS = """\
Four candidates of one election, each with a handle of its own. The leader is stopped, ordered to
resign, or ordered to hand over to another; or the election was paused, and is resumed. The time is
from that word until another candidate says yes. An order goes to the leader by the store first."""

FAILOVER = """\
The leader is killed with `kill -9`. The time is from the kill until another candidate says yes.
Where the store keeps a lease, the rest of that lease has to pass first; the name of a row says how
long the lease was. On the file store and with PostgreSQL's `fast=1` the end of the process is
enough. Locks of a connection (`pg_advisory_lock`, `GET_LOCK`) and flock(1) have no lease: the end
of the process frees them, and nothing frees them from a holder that is frozen."""

ABOVE = """\
From the moment at which the store itself ends the lease until another candidate says yes. The
store's own delay is part of it."""

STANDBYS = """\
One election with the number of standbys that the row names. Each standby has a handle and
connections of its own. The handoff is by stop.
*Requests* are those of the handoff that one standby asks of the server: without renewals, and
without those of the leader that steps down. *Idle* is what one of them costs while nothing happens,
with its renewals."""

ELECTIONS = """\
One process starts the number of elections that the row names. The time until the process leads all
of them, divided by their number."""

BUDGETS = """\
Every row of `make bench` in this run, with the budget that the row is held against. *over* marks a
row above its budget. Budgets are for quiet machines."""

SIMULATORS = """\
Random worlds with drifting, pausing and crashing candidates and a store with every weakness. All
invariants are checked after every event. `sim` runs the core, `sim-record` the layer of the record
stores."""

SEARCH = """\
Every state that can be reached within the bounds of a world. `model` searches the core,
`model-record` the rules of the record stores, `model-file` the protocol of the file store.
A world that is not complete was searched to a depth. [Long runs](long-runs.md) has the sizes that
take hours, and says what the words mean."""

CHAOS = """\
`make chaos`: real processes of `baton run`, killed and frozen at random on real clocks. Where a
row names a server, the server and the network have faults, too. Every process of every command
stamps a file, and no two terms may overlap in that file.
[tests/chaos](../../tests/chaos/README.md) says what is done, and what counts."""

INDEX = """\
What was measured, when, at which commit and on which machine. A figure in another document is a
link to one of these pages. `make evidence` writes them anew, on quiet cores; `QUICK=1` is the short
form. [long-runs.md](long-runs.md) is kept by hand."""
