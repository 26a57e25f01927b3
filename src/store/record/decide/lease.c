/*
 * lease.c: records that only we write: our lease, and the records that show us as a candidate.
 *
 * Only two things can be in the way: an earlier attempt of ours, or the tombstone of a process that
 * has proved our lease dead. So after a conflict the record is read fresh. If the lease is alive,
 * an earlier attempt has landed, and we go on from there in the same call. If the lease is dead or
 * gone, it is over. What this must never do: make a lease again that is not there; write over a
 * tombstone; or count the renewal of an earlier call as this one, because the core counts from
 * before this call's first send (R1, S2).
 */
#include "store/record/decide/parts.h"

static int keep_found(struct record_keep *k, struct record_turn *t);
static int keep_written(struct record_keep *k, struct record_turn *t);
static int keep_write(struct record_keep *k, struct record_turn *t, int why);

int record_keep_step(struct record_keep *k, struct record_turn *t)
{
	switch (k->task.phase) {
	case PHASE_BEGIN:
		k->task.version = k->own->version;
		k->beat = k->own->beat;
		if (k->intent == RECORD_RENEW && k->task.version.n == 0) /* it never creates */
			return record_task_ask(&k->task, PHASE_READ, RECORD_READ_FRESH,
					       RECORD_WHY_BEGUN);
		return keep_write(k, t, RECORD_WHY_BEGUN);
	case PHASE_READ:
		if (t->outcome != BATON_OUTCOME_OK)
			return record_task_fail(&k->task, RECORD_WHY_FAILED);
		return keep_found(k, t);
	default: return keep_written(k, t);
	}
}

void record_keep_give_up(struct record_keep *k)
{
	(void)record_task_fail(&k->task, RECORD_WHY_TIME);
}

static int keep_write(struct record_keep *k, struct record_turn *t, int why)
{
	if (k->intent != RECORD_PUBLISH) {
		t->lease->w = t->random;
		t->lease->ttl_ns = k->lease->ttl_ns;
		t->lease->beat = ++k->beat;
		t->lease->death = k->intent == RECORD_CLOSE ? k->death : (uint32_t)RECORD_ALIVE;
		record_copy_text(t->lease->owner, sizeof(t->lease->owner), k->lease->owner);
		record_copy_text(t->lease->address, sizeof(t->lease->address), k->lease->address);
	}
	return record_task_ask(&k->task, PHASE_WRITE, RECORD_WRITE, why);
}

static int keep_written(struct record_keep *k, struct record_turn *t)
{
	switch (t->outcome) {
	case BATON_OUTCOME_OK:
		k->own->version = t->version;
		k->own->beat = k->beat;
		return record_task_end(&k->task, BATON_OUTCOME_OK, RECORD_WHY_WRITTEN);
	case BATON_OUTCOME_REFUSED:
		k->task.was_refused = true;
		if (t->is_told)
			return keep_found(k, t);
		return record_task_ask(&k->task, PHASE_READ, RECORD_READ_FRESH,
				       RECORD_WHY_CONFLICT);
	case BATON_OUTCOME_FAILED: return record_task_fail(&k->task, RECORD_WHY_FAILED);
	default: return record_task_end(&k->task, BATON_OUTCOME_UNKNOWN, RECORD_WHY_UNKNOWN);
	}
}

/* The record as it is now. */
static int keep_found(struct record_keep *k, struct record_turn *t)
{
	bool is_over = t->version.n == 0 || t->lease->death != RECORD_ALIVE;

	k->task.version = t->version;
	if (k->intent != RECORD_PUBLISH) {
		if (is_over && k->intent == RECORD_CLOSE)
			return record_task_end(&k->task, BATON_OUTCOME_OK, RECORD_WHY_GONE);
		if (is_over)
			return record_task_end(&k->task, BATON_OUTCOME_REFUSED, RECORD_WHY_GONE);
		k->beat = t->lease->beat;
	}
	return keep_write(k, t, RECORD_WHY_CONFLICT);
}
