/*
 * show.c: a leader whose profile has changed shows the new one in its election's record, too.
 * People read there who leads, and so does a candidate that may preempt the leader (L9). One write
 * for each, from the version of its claim, and none where nothing has changed.
 *
 * What this must never do: touch a record that our claim no longer stands on (S6).
 */
#include <stdlib.h>
#include <string.h>

#include "store/record/layer.h"

/* One leader on its way. */
struct showing {
	struct baton_publication *publication;
	struct record_show show;
};

/* Which of those that are shown lead on that lease. A claim in doubt is shown when it stands: it is
 * published again. */
static size_t show_collect(struct record_store *s, const struct baton_lease *lease,
			   struct baton_publication *list, size_t n, struct showing *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		struct record_key key = record_key_of(s, RECORD_ELECTIONS, list[i].name);

		if (list[i].outcome != BATON_OUTCOME_OK)
			continue;
		store_lock(&s->base);
		const struct record_known *k = record_known_find(s, key.text);
		bool is_ours = k != NULL && k->ours != NULL && strcmp(k->ours->id, lease->id) == 0;

		if (is_ours && k->claim.standing == RECORD_IN_DOUBT)
			list[i].outcome = BATON_OUTCOME_UNKNOWN;
		if (is_ours && k->claim.standing == RECORD_STANDS)
			out[n_out++] = (struct showing){
				&list[i],
				{lease->id, k->claim.nonce, k->claim.term, &list[i].profile}};
		store_unlock(&s->base);
	}
	return n_out;
}

static void show_job(struct record_job *j, struct record_store *s, const struct showing *showing)
{
	record_job_init(j, s, RECORD_JOB_EDIT, showing->publication->name);
	j->u.edit = (struct record_edit){.show = &showing->show};
	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, j->key.text);

	if (k != NULL && record_known_claimed(k, &j->election))
		j->u.edit.known = k->version;
	store_unlock(&s->base);
}

/* A record that is no longer ours is left as it is; the profile was published all the same. */
static void show_end(struct record_store *s, const struct record_job *j, struct showing *showing)
{
	const struct record_task *task = record_job_task(j);
	const struct record_show *show = &showing->show;

	if (task->outcome == BATON_OUTCOME_FAILED || task->outcome == BATON_OUTCOME_UNKNOWN) {
		showing->publication->outcome = task->outcome;
		showing->publication->code = j->code;
	}
	if (task->outcome != BATON_OUTCOME_OK)
		return;
	store_lock(&s->base);
	struct record_known *k = record_known_find(s, j->key.text);

	if (k != NULL && k->ours != NULL && strcmp(k->ours->id, show->lease_id) == 0 &&
	    k->claim.standing == RECORD_STANDS && k->claim.nonce == show->nonce &&
	    k->claim.term == show->term)
		k->claim.version = task->version;
	store_unlock(&s->base);
}

void record_show_leaders(struct record_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_publication *list, size_t n)
{
	struct record_store *s = lane->store;
	struct showing *leaders = calloc(n > 0 ? n : 1, sizeof(*leaders));
	size_t n_leaders = leaders != NULL ? show_collect(s, lease, list, n, leaders) : 0;
	size_t max = record_least(n_leaders, RECORD_JOBS_MAX);
	struct record_job *jobs =
		leaders == NULL || n_leaders > 0 ? record_jobs_new(call, max) : NULL;

	for (size_t i = 0; i < n && (leaders == NULL || (n_leaders > 0 && jobs == NULL)); i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
	}
	for (size_t done = 0; done < n_leaders && jobs != NULL; done += max) {
		size_t k = record_least(n_leaders - done, max);

		for (size_t i = 0; i < k; i++)
			show_job(&jobs[i], s, &leaders[done + i]);
		record_jobs_run(lane, call, jobs, k);
		for (size_t i = 0; i < k; i++)
			show_end(s, &jobs[i], &leaders[done + i]);
	}
	free(jobs);
	free(leaders);
}
