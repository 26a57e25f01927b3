/*
 * others.c: what happens to records from elsewhere: sweepers, people; and what a crash leaves.
 */
#include "model/record/host.h"

void host_crash(struct world *w, int c)
{
	w->cands[c] = (struct cand){0};
}

static bool is_named(const struct world *w, int slot)
{
	for (int e = 0; e < setup->elections; e++)
		if (w->store.elections[e].lease == slot)
			return true;
	return false;
}

/* R10, with the shortest wait that is safe. */
void host_sweep(struct world *w, int c, int e)
{
	struct seat *s = &w->cands[c].seats[e];
	int slot = s->seen;
	struct put p = {.act = ACT_BURY, .slot = (uint8_t)slot, .expected = s->seen_version};
	uint8_t fate = FATE_OK;

	show_sight(s, slot);
	if (record_sweep_lease(&sight, is_named(w, slot), setup->ttl * TICK_NS, NOW_NS) ==
	    RECORD_END) {
		record_tombstone(&lease, RECORD_IDLE, sight.ttl_ns, "", FRESH);
		p.l = (struct lrec){.w = small(lease.w), .dead = lease.death != 0};
		(void)carry_out(w, &p, &fate);
	}
	sight = (struct record_sight){0};
	take_sight(s, slot);
}

/* A sweeper notes a lease that nobody names. */
void host_watch(struct world *w, int c, int e, int slot)
{
	struct seat *s = &w->cands[c].seats[e];
	struct record_version version = version_of(w->store.leases[slot].w);

	show_sight(s, slot);
	show_lease(&w->store.leases[slot]);
	record_sight_note(&sight, &version, &lease, 0, false, NOW_NS);
	take_sight(s, slot);
}

void host_drop(struct world *w, int slot)
{
	struct record_version version = version_of(w->store.leases[slot].w);
	/* An old list may not name it yet. */
	bool named = is_named(w, slot) && !setup->old_reads;

	sight = (struct record_sight){0};
	show_lease(&w->store.leases[slot]);
	record_sight_note(&sight, &version, &lease, 0, false, NOW_NS);
	if (record_sweep_lease(&sight, named, setup->ttl * TICK_NS, NOW_NS) == RECORD_DROP)
		w->store.leases[slot] = (struct lrec){0};
}

/* Somebody's order, or pause. */
void host_edit(struct world *w, int e, bool pause)
{
	const struct erec *r = &w->store.elections[e];
	struct baton_order order = {.id = 1, .term = r->term, .kind = BATON_ORDER_RESIGN};
	struct record_edit task = {.order = pause ? NULL : &order, .pause = !r->paused};
	struct put p = {.act = ACT_AGAIN, .slot = (uint8_t)e};
	uint8_t fate = FATE_OK;
	struct record_turn t;

	begin_turn(&t, w, NULL, e);
	t.sight = NULL;
	for (int op = record_edit_step(&task, &t); op != RECORD_DONE;
	     op = record_edit_step(&task, &t)) {
		if (op == RECORD_WRITE) {
			p.expected = id_of(&task.task.version);
			take_election(&p.e);
			answer(&t, carry_out(w, &p, &fate), r->w);
		} else {
			show_election(r);
			answer(&t, BATON_OUTCOME_OK, r->w);
		}
	}
}
