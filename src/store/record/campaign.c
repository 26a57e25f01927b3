/*
 * campaign.c: campaigns (R2 to R5). A claim that was sent is noted before the call returns, even if
 * it is unknown whether it has landed: claims() settles it later (R7).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* Fills in the record for the caller, as it was when the campaign ended. */
static void campaign_record(struct record_store *s, const struct record_job *j, const char *id,
			    struct baton_record *out)
{
	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, j->key.text);
	struct record_seen *seen = record_seen_other(s, j->election.lease);

	record_observe(&j->election, seen != NULL ? &seen->sight : NULL,
		       k != NULL ? &k->hold : &j->hold, id, clock_boot_ns(), out);
	out->watched = record_known_is_watched(s, k);
	store_unlock(&s->base);
}

/* Sets the code; also the sentence, if the campaign has failed because of its term and not because
 * of the store. */
static void campaign_explain(struct baton_call *call, const struct record_job *j,
			     struct baton_campaign *c)
{
	switch (record_job_task(j)->why) {
	case RECORD_WHY_TERM_END: (void)store_fail_term(call, c, TERM_END); break;
	case RECORD_WHY_FLOOR_JUMP: (void)store_fail_term(call, c, TERM_JUMP); break;
	default: c->code = j->code;
	}
}

/* Another has the lock. No hint comes when the lock is free, so the election is not `watched`. */
static void campaign_locked_out(const struct record_job *j, struct baton_record *record)
{
	record->held = true;
	record->reserved = false;
	record->watched = false;
	record->free_in_ns = j->lock_free_in_ns;
	(void)snprintf(record->leader, sizeof(record->leader), "another program");
}

/* Notes the claim, and its lock with it. Returns the outcome of the campaign. */
static int campaign_book(struct record_lane *lane, const struct baton_lease *lease,
			 const struct record_job *j, const char *name)
{
	struct record_claim claim;

	record_campaign_book(&j->u.campaign, &claim);
	if (claim.standing != RECORD_NO_CLAIM || j->u.campaign.settles)
		record_held_set(lane->store, lease->id, name, &claim);
	return record_lock_book(lane->store, j, lease->id, &claim) ? record_job_task(j)->outcome
								   : BATON_OUTCOME_UNKNOWN;
}

static void campaign_end(struct record_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, const struct record_job *j,
			 struct baton_campaign *c)
{
	const struct record_task *task = record_job_task(j);

	c->outcome = campaign_book(lane, lease, j, c->name);
	if (task->why == RECORD_WHY_YOUNG)
		c->outcome = BATON_OUTCOME_REFUSED;
	c->code = 0;
	c->term = c->outcome == BATON_OUTCOME_OK ? j->u.campaign.term : 0;
	if (c->outcome == BATON_OUTCOME_FAILED || c->outcome == BATON_OUTCOME_UNKNOWN)
		campaign_explain(call, j, c);
	else
		campaign_record(lane->store, j, lease->owner, c->record);
	if (j->election.term > 1 && j->u.campaign.rival[0] == '\0')
		c->record->before = BATON_END_RELEASED;
	if (task->why == RECORD_WHY_LOCKED)
		campaign_locked_out(j, c->record);
	if (task->why != RECORD_WHY_YOUNG)
		return;
	/* A wait whose end is known is not a failure. */
	c->record->free_in_ns = j->young_ns;
	(void)snprintf(c->record->wait, sizeof(c->record->wait),
		       "the store has just started, and may have forgotten a lease");
}

/* Our claim on that election, as it stands in the book. */
static struct record_claim campaign_claim(struct record_store *s, const char *key)
{
	struct record_claim claim = {.standing = RECORD_NO_CLAIM};

	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, key);

	if (k != NULL && k->ours != NULL)
		claim = k->claim;
	store_unlock(&s->base);
	return claim;
}

/*
 * The record names our own lease, but we don't know that claim, or have only read it. If the claim
 * can be written again, it is ours; else the read was an old one (R8). A forfeit claim is given
 * back: a candidate that campaigns has no work left on it. In the last two cases the campaign fails
 * to win, and is tried again soon.
 */
static void campaign_confirm(struct record_lane *lane, struct baton_call *call,
			     const struct baton_lease *lease, struct record_job *j,
			     struct baton_campaign *c)
{
	struct record_claim claim = {.nonce = c->record->nonce,
				     .term = c->record->term,
				     .version = record_job_task(j)->version,
				     .standing = campaign_claim(lane->store, j->key.text).standing};

	record_settle_begin(&j->u.campaign, lease, &claim, record_has_locks(lane->store));
	record_jobs_run(lane, call, j, 1);
	int outcome = campaign_book(lane, lease, j, c->name);

	if (outcome == BATON_OUTCOME_OK)
		return;
	(void)memset(c->record, 0, sizeof(*c->record));
	c->outcome = outcome;
	c->code = j->code;
}

/* Keeps the election in the table while the campaign lasts. So what is written is remembered, and a
 * release needs no read. */
static void campaign_keep(struct record_store *s, const struct record_job *j, bool is_kept)
{
	store_lock(&s->base);
	struct record_known *k = is_kept ? record_known_get(s, j->key.text, j->name)
					 : record_known_find(s, j->key.text);

	if (k != NULL && !is_kept)
		record_known_tidy(s, k);
	store_unlock(&s->base);
}

/*
 * Begins a new claim; or, if a forfeit claim is still there, settles that one first. A read may be
 * too old to show the forfeit claim, and the book has room for one claim only (L3). The campaign is
 * then tried again soon.
 */
static void campaign_begin(struct record_store *s, const struct baton_lease *lease,
			   const struct baton_campaign *c, struct record_job *j)
{
	record_job_init(j, s, RECORD_JOB_CAMPAIGN, c->name);
	struct record_claim claim = campaign_claim(s, j->key.text);

	if (claim.standing == RECORD_FORFEIT)
		record_settle_begin(&j->u.campaign, lease, &claim, true);
	else
		j->u.campaign = (struct record_campaign){.lease = lease,
							 .profile = &c->profile,
							 .nonce = c->nonce,
							 .floor = c->floor,
							 .locks = record_has_locks(s)};
	campaign_keep(s, j, true);
}

static void campaign_batch(struct record_lane *lane, struct baton_call *call,
			   const struct baton_lease *lease, struct record_job *jobs,
			   struct baton_campaign *list, size_t n)
{
	bool has_won = false;

	for (size_t i = 0; i < n; i++)
		campaign_begin(lane->store, lease, &list[i], &jobs[i]);
	record_jobs_run(lane, call, jobs, n);
	for (size_t i = 0; i < n; i++) {
		campaign_end(lane, call, lease, &jobs[i], &list[i]);
		if (record_job_task(&jobs[i])->why == RECORD_WHY_MINE &&
		    campaign_claim(lane->store, jobs[i].key.text).standing != RECORD_STANDS)
			campaign_confirm(lane, call, lease, &jobs[i], &list[i]);
		campaign_keep(lane->store, &jobs[i], false);
		has_won = has_won || list[i].outcome == BATON_OUTCOME_OK;
	}
	if (has_won)
		record_watch_ring(lane->store, false);
}

void record_driver_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
			    struct baton_campaign *list, size_t n)
{
	size_t max = n < RECORD_JOBS_MAX ? n : RECORD_JOBS_MAX;
	struct record_job *jobs = record_jobs_new(call, max);

	record_locks_drop(l, call); /* first: a spent lock must not be taken and then dropped */
	for (size_t i = 0; i < n && jobs == NULL; i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
	}
	for (size_t done = 0; done < n && jobs != NULL; done += max)
		campaign_batch(l, call, lease, jobs, list + done, record_least(n - done, max));
	record_locks_drop(l, call);
	free(jobs);
}
