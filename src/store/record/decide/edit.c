/*
 * edit.c: what changes an election's record without claiming the election: giving a claim back
 * (R6), a leader's new profile, an order for the leader of one term (rule 10), a pause.
 *
 * Each of them reads the record fresh, changes its part, and writes the record from the version
 * that it has read. If another write came between, it begins again. A release and a profile need
 * not read first if they know the version of their claim. What this must never do: change a claim
 * whose lease, nonce and term are not all three those of the release or profile (S6).
 */
#include "store/record/decide/parts.h"

static int edit_change(struct record_edit *d, struct record_turn *t, int why);
static int edit_written(struct record_edit *d, struct record_turn *t);

int record_edit_step(struct record_edit *d, struct record_turn *t)
{
	switch (d->task.phase) {
	case PHASE_BEGIN:
		d->task.version = d->known;
		if (d->known.n != 0)
			return edit_change(d, t, RECORD_WHY_BEGUN);
		return record_task_ask(&d->task, PHASE_READ, RECORD_READ_FRESH, RECORD_WHY_BEGUN);
	case PHASE_READ:
		if (t->outcome != BATON_OUTCOME_OK)
			return record_task_fail(&d->task, RECORD_WHY_FAILED);
		d->task.version = t->version;
		return edit_change(d, t, d->task.why);
	default: return edit_written(d, t);
	}
}

void record_edit_give_up(struct record_edit *d)
{
	(void)record_task_fail(&d->task, RECORD_WHY_TIME);
}

static int edit_written(struct record_edit *d, struct record_turn *t)
{
	switch (t->outcome) {
	case BATON_OUTCOME_OK:
		d->task.version = t->version;
		return record_task_end(&d->task, BATON_OUTCOME_OK, RECORD_WHY_WRITTEN);
	case BATON_OUTCOME_REFUSED:
		d->task.was_refused = true;
		d->task.version = t->version;
		if (t->is_told)
			return edit_change(d, t, RECORD_WHY_CONFLICT);
		return record_task_ask(&d->task, PHASE_READ, RECORD_READ_FRESH,
				       RECORD_WHY_CONFLICT);
	case BATON_OUTCOME_FAILED: return record_task_fail(&d->task, RECORD_WHY_FAILED);
	default: return record_task_end(&d->task, BATON_OUTCOME_UNKNOWN, RECORD_WHY_UNKNOWN);
	}
}

/* ---- what is changed ---- */

static bool is_claim_of(const struct record_election *e, const char *lease_id, uint64_t nonce,
			uint64_t term)
{
	return record_same_text(e->lease, lease_id) && e->nonce == nonce && e->term == term;
}

/* A candidate that has a claim touches no other claim. */
static bool is_foreign(const struct record_edit *d, const struct record_election *e)
{
	const struct baton_release *r = d->release;
	const struct record_show *s = d->show;

	if (r != NULL)
		return !is_claim_of(e, r->lease_id, r->nonce, r->term);
	return s != NULL && !is_claim_of(e, s->lease_id, s->nonce, s->term);
}

static bool leads(const struct record_election *e, const struct record_sight *sight, uint64_t term)
{
	if (e->lease[0] == '\0' || e->term != term)
		return false;
	return sight == NULL || !record_sight_is_dead(sight);
}

static void put_order(struct record_election *e, const struct baton_order *order)
{
	e->order_id = order->id;
	e->order_term = order->term;
	e->order_kind = (uint32_t)order->kind;
	e->order_quiet_ms = order->quiet_ms;
	record_copy_text(e->order_target, sizeof(e->order_target), order->target);
	record_copy_text(e->order_note, sizeof(e->order_note), order->note);
}

/* Whether the change stands there already, because an earlier try or a copy of it has landed. */
static bool is_done(const struct record_edit *d, const struct record_election *e)
{
	if (d->order != NULL)
		return e->order_id == d->order->id;
	if (d->show != NULL)
		return record_election_shows(e, d->show->profile);
	return d->release == NULL && e->paused == d->pause;
}

static int edit_change(struct record_edit *d, struct record_turn *t, int why)
{
	struct record_election *e = t->election;

	if (is_foreign(d, e))
		return record_task_end(&d->task, BATON_OUTCOME_REFUSED, RECORD_WHY_FOREIGN);
	if (is_done(d, e))
		return record_task_end(&d->task, BATON_OUTCOME_OK, RECORD_WHY_WRITTEN);
	if (d->order != NULL && !leads(e, t->sight, d->order->term))
		return record_task_end(&d->task, BATON_OUTCOME_REFUSED, RECORD_WHY_ENDED);
	if (d->release != NULL)
		record_election_free(e, d->release, t);
	else if (d->show != NULL)
		record_election_show(e, d->show->profile);
	else if (d->order != NULL)
		put_order(e, d->order);
	else
		e->paused = d->pause;
	e->w = t->random;
	return record_task_ask(&d->task, PHASE_WRITE, RECORD_WRITE, why);
}
