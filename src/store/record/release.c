/*
 * release.c: gives claims back (R6), in batches: one write for each claim, from the version that we
 * wrote. What this must never do: count a claim as given back that may still stand.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

static void release_job(struct record_job *j, struct record_store *s, const struct baton_release *r)
{
	record_job_init(j, s, RECORD_JOB_EDIT, r->name);
	j->u.edit = (struct record_edit){.release = r};
	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, j->key.text);

	if (k != NULL && record_known_claimed(k, &j->election))
		j->u.edit.known = k->version;
	store_unlock(&s->base);
}

/*
 * The lock is dropped before the record is freed. The work has ended (S7), and a candidate that
 * sees the free record then finds the lock free, too, and need not try again.
 */
static void release_lock(struct record_lane *lane, const struct baton_call *call,
			 const struct record_job *j, const char *lease_id)
{
	struct record_store *s = lane->store;

	if (!record_has_locks(s))
		return;
	store_lock(&s->base);
	struct record_known *k = record_known_find(s, j->key.text);
	bool is_locked = k != NULL && k->lock_ns != 0 && strcmp(k->ours->id, lease_id) == 0;

	if (is_locked)
		k->lock_ns = 0;
	store_unlock(&s->base);
	if (is_locked)
		record_lock_drop(lane, call, j->name, lease_id);
}

static void release_batch(struct record_lane *lane, struct baton_call *call,
			  struct record_job *jobs, struct baton_release *list, size_t n)
{
	bool is_heard = false;

	for (size_t i = 0; i < n; i++) {
		release_job(&jobs[i], lane->store, &list[i]);
		release_lock(lane, call, &jobs[i], list[i].lease_id);
	}
	record_jobs_run(lane, call, jobs, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = record_job_task(&jobs[i])->outcome;
		list[i].code = jobs[i].code;
		is_heard = is_heard || list[i].outcome == BATON_OUTCOME_OK;
		if (list[i].outcome == BATON_OUTCOME_OK || list[i].outcome == BATON_OUTCOME_REFUSED)
			record_held_set(lane->store, list[i].lease_id, list[i].name, NULL);
	}
	if (is_heard)
		record_watch_ring(lane->store, true);
}

void record_driver_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	size_t max = n < RECORD_JOBS_MAX ? n : RECORD_JOBS_MAX;
	struct record_job *jobs = record_jobs_new(call, max);

	for (size_t i = 0; i < n && jobs == NULL; i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
	}
	for (size_t done = 0; done < n && jobs != NULL; done += max)
		release_batch(l, call, jobs, list + done, record_least(n - done, max));
	record_locks_drop(l, call);
	free(jobs);
}

/* Takes half of the time at most. The other half is for closing the lease, which frees all claims
 * as well. */
void record_release_all(struct record_lane *lane, const struct baton_call *call,
			const char *lease_id)
{
	uint64_t now_ns = clock_boot_ns();
	struct baton_call quiet = {.deadline_ns = now_ns};
	size_t n;
	struct record_held *held =
		record_held_copy(lane->store, &quiet, lease_id, RECORD_STANDS, &n);
	struct baton_release *list = calloc(n > 0 ? n : 1, sizeof(*list));

	if (now_ns < call->deadline_ns)
		quiet.deadline_ns = now_ns + (call->deadline_ns - now_ns) / 2;
	for (size_t i = 0; i < n && list != NULL; i++)
		list[i] = (struct baton_release){.name = held[i].name,
						 .lease_id = lease_id,
						 .nonce = held[i].claim.nonce,
						 .term = held[i].claim.term,
						 .reason = "closed"};
	if (list != NULL && n > 0)
		record_driver_release(lane, &quiet, list, n);
	free(list);
	free(held);
}
