/*
 * others.c: what others do: an administrator pauses, resumes and orders, by the layer's verbs, and
 * deletes the records of living leases by hand; other programs take native locks, and somebody
 * ends them; a weak store begins anew, or loses a record.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_done[ELECTIONS]; /* resumed, after all faults */

static struct baton_call call_of(const struct cand *me)
{
	return (struct baton_call){.deadline_ns = cand_clock_ns(me, world.now_ns) +
						  world.params.ttl_ns / 6};
}

static int pause_election(struct cand *me, int e, bool paused)
{
	struct baton_call call = call_of(me);

	tell("somebody %s %s", paused ? "pauses" : "resumes", election_names[e]);
	return record_driver_pause(me->lanes[0], &call, election_names[e], paused);
}

static void order(struct cand *me, int e)
{
	struct baton_call call = call_of(me);
	struct baton_order order = {.id = 1 + world_random(NEVER - 1),
				    .term = elections[e].term,
				    .kind = world_random(2) == 0 ? BATON_ORDER_RESIGN
								 : BATON_ORDER_TRANSFER};

	if (order.term == 0)
		return;
	if (order.kind == BATON_ORDER_TRANSFER)
		order.target[0] = (char)('a' + (int)world_random(CANDS));
	(void)record_driver_order(me->lanes[0], &call, election_names[e], &order);
}

static void delete_lease(void)
{
	const struct cand *cand = world.cands[world_random(CANDS)];
	char key[RECORD_KEY_ROOM];

	if (cand == NULL || !cand->is_live)
		return;
	(void)snprintf(key, sizeof(key), "l/%s", cand->lease.id);
	tell("somebody deletes %s", key);
	world.n_faults += store_delete(key);
}

static void evict(int e)
{
	char key[RECORD_KEY_ROOM];

	(void)snprintf(key, sizeof(key), "e/%s", election_names[e]);
	tell("the store loses %s", key);
	world.n_faults += store_delete(key);
}

static void meddle_locks(int e)
{
	if (locks[e].is_foreign) {
		tell("another program gives the lock of %s back", election_names[e]);
		locks[e].is_foreign = false;
	} else if (!lock_is_taken(e)) {
		tell("another program takes the lock of %s", election_names[e]);
		locks[e].is_foreign = true;
		locks[e].lease[0] = '\0';
	} else if (world.params.breaks) {
		tell("somebody breaks the lock of %s", election_names[e]);
		(void)memcpy(locks[e].broken[locks[e].lease[0] - 'a'], locks[e].lease,
			     sizeof(locks[e].lease));
		locks[e].broken_ns[locks[e].lease[0] - 'a'] = world.now_ns;
		locks[e].lease[0] = '\0';
		world.n_faults++;
	}
}

static void meddle(struct cand *me)
{
	const struct params *p = &world.params;
	int e = (int)world_random(ELECTIONS);

	switch (world_random(6)) {
	case 0:
		if (p->pauses)
			(void)pause_election(me, e, world_random(2) == 0);
		break;
	case 1:
		if (p->orders)
			order(me, e);
		break;
	case 2:
		if (p->deletes)
			delete_lease();
		break;
	case 3:
		if (p->locks)
			meddle_locks(e);
		break;
	case 4:
		if (p->forgets && world_random(8) == 0) {
			tell("the store begins anew");
			world.n_faults++;
			store_forget();
		}
		break;
	default:
		if (p->evicts)
			evict(e);
		break;
	}
}

/* Faults are over: what people have stopped goes on. */
static void tidy(struct cand *me)
{
	for (int e = 0; e < ELECTIONS; e++) {
		locks[e].is_foreign = false;
		if (!is_done[e] && elections[e].paused)
			is_done[e] = pause_election(me, e, false) == BATON_OUTCOME_OK;
	}
}

static void run_others(struct cand *me)
{
	world.current->errand = (struct errand){.verb = VERB_OTHER, .cand = CANDS};
	while (!me->has_ended) {
		if (world.is_quiet)
			tidy(me);
		else
			meddle(me);
		sleep_until(world.now_ns + 1000 + world_random(2 * world.params.ttl_ns));
	}
}

void others_start(void)
{
	struct cand *me = calloc(1, sizeof(*me));
	const struct baton_store_config config = {.size = sizeof(config), .url = "sim:"};
	struct baton_error err;

	if (me == NULL || record_driver_open(&sim_adapter, &config, &me->store, &err) != BATON_OK ||
	    record_driver_lane_open(me->store, BATON_LANE_CAMPAIGN, &me->lanes[0], &err) !=
		    BATON_OK)
		abort();
	me->number = CANDS;
	me->rate = 1000;
	(void)snprintf(me->id, sizeof(me->id), "others");
	(void)memset(is_done, 0, sizeof(is_done));
	world.cands[CANDS] = me;
	me->coroutines[0] = coroutine_start(me, run_others);
}
