/*
 * driver.c: what mode=advisory&fast=1 promises, and what it refuses: every call that needs a table.
 */
#include "base/clock.h"
#include "store/postgres/tableless/tableless.h"

static const char promises[] =
	"A dead leader is replaced at once, and terms grow, among all processes that use the "
	"same database, as long as the server lives. There is one leader at a time only while "
	"the server keeps its sessions: if it ends a leader's session (pg_terminate_backend, a "
	"restart, a failover), another candidate can lead before the old leader knows. Terms are "
	"the server's transaction ids: they grow through crashes and restarts, and through a "
	"failover that loses nothing. Check them where it matters. Orders, candidates, pauses "
	"and history need tables, and are not there.";

/* As in driver.c. */
const struct baton_traits tableless_traits = {
	.min_lease_ns = 300 * CLOCK_NS_PER_MS,
	.own_leases = true,
	.pushes = true,
	.proves_death = true,
	.promises = promises,
};

bool pg_is_tableless(const struct pg_store *store)
{
	return store->info.advisory && store->info.fast;
}

int tableless_refuse(struct baton_call *call)
{
	store_fail(&call->error, BATON_E_UNSUPPORTED,
		   "mode=advisory&fast=1 keeps no tables, and this needs them: leave fast=1 out");
	return BATON_OUTCOME_FAILED;
}
