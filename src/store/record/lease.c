/*
 * lease.c: the lease that a process keeps alive, and the claims on it (R1, R7, R12). A renewal is
 * one write, whatever the lease carries.
 *
 * A lease may be closed while another lane looks at its claims. So what a request needs is copied
 * before the request, and looked up again after it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

static int claims_settle(struct record_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, uint32_t standing);

/* ---- open, renew, close ---- */

static void lease_job(struct record_job *j, const struct record_store *s, uint32_t intent,
		      const struct baton_lease *lease, struct record_own *own)
{
	record_job_init(j, s, RECORD_JOB_KEEP, NULL);
	j->key = record_key_of(s, RECORD_LEASES, lease->id);
	j->u.keep = (struct record_keep){.intent = intent, .lease = lease, .own = own};
}

/* Copies what we know of the lease's record. False: the lease is not ours. */
static bool lease_own(struct record_store *s, const char *id, struct record_own *own)
{
	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, id);

	if (ours != NULL)
		*own = ours->own;
	store_unlock(&s->base);
	return ours != NULL;
}

static void lease_keep_own(struct record_store *s, const char *id, const struct record_own *own,
			   uint32_t *n_held)
{
	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, id);

	if (ours != NULL)
		ours->own = *own;
	if (ours != NULL && n_held != NULL)
		*n_held = ours->n_stand;
	store_unlock(&s->base);
}

static void lease_forget(struct record_store *s, const char *id)
{
	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, id);

	if (ours != NULL)
		record_ours_remove(s, ours);
	store_unlock(&s->base);
}

/* Whether id names another lease with the same "who-which", which is the id up to its last '-'. */
static bool lease_is_older(const char *id, const char *newer)
{
	const char *end = strrchr(newer, '-');

	return end != NULL && strcmp(id, newer) != 0 && strrchr(id, '-') != NULL &&
	       strrchr(id, '-') - id == end - newer &&
	       memcmp(id, newer, (size_t)(end - newer)) == 0;
}

/* A copy of some lease that this one replaces. False: there is none. */
static bool lease_older(struct record_store *s, const char *newer, struct record_ours *out)
{
	store_lock(&s->base);
	const struct record_ours *ours = s->ours;

	while (ours != NULL && !lease_is_older(ours->id, newer))
		ours = ours->next;
	if (ours != NULL)
		*out = *ours;
	store_unlock(&s->base);
	return ours != NULL;
}

/* The second job, if there is one, ends an older lease (R12). */
static int lease_open(struct record_lane *lane, struct baton_call *call, struct record_job *jobs,
		      const struct baton_lease *lease)
{
	struct record_store *s = lane->store;
	struct record_ours older = {.next = NULL};
	struct record_own own = {.beat = 0};
	bool has_older = lease_older(s, lease->id, &older);
	struct baton_lease old = {
		.ttl_ns = older.ttl_ns, .owner = older.owner, .address = older.address};

	(void)lease_own(s, lease->id, &own);
	lease_job(&jobs[0], s, RECORD_OPEN, lease, &own);
	if (has_older) {
		(void)memcpy(old.id, older.id, sizeof(old.id));
		lease_job(&jobs[1], s, RECORD_CLOSE, &old, &older.own);
		jobs[1].u.keep.death = RECORD_REPLACED;
	}
	record_jobs_run(lane, call, jobs, has_older ? 2 : 1);
	int outcome = record_job_task(&jobs[0])->outcome;

	if (outcome == BATON_OUTCOME_OK && has_older) {
		lease_forget(s, old.id); /* its claims are over, or will expire */
		record_locks_drop(lane, call);
	}
	lease_keep_own(s, lease->id, &own, NULL);
	if (outcome == BATON_OUTCOME_FAILED || outcome == BATON_OUTCOME_REFUSED)
		lease_forget(s, lease->id);
	return outcome;
}

int record_driver_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct record_lane *lane = l;
	struct record_store *s = lane->store;
	struct record_job *jobs = record_jobs_new(call, 2);
	int outcome = BATON_OUTCOME_FAILED;

	store_lock(&s->base);
	bool is_there = jobs != NULL && record_ours_add(s, lease) != NULL;

	store_unlock(&s->base);
	if (!is_there)
		(void)record_no_memory(call);
	else if (record_try(lane, call))
		outcome = lease_open(lane, call, jobs, lease);
	else
		lease_forget(s, lease->id);
	free(jobs);
	return outcome;
}

int record_driver_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
			      uint32_t *n_held)
{
	struct record_lane *lane = l;
	struct record_job *job = record_jobs_new(call, 1);
	struct record_own own;
	bool is_ours = lease_own(lane->store, lease->id, &own);
	size_t n_locks;
	struct record_held *locks = NULL;

	if (job != NULL && is_ours)
		locks = record_locks_keep(lane, call, lease, &n_locks);
	if (locks == NULL) {
		free(job);
		return is_ours ? BATON_OUTCOME_FAILED : BATON_OUTCOME_REFUSED;
	}
	lease_job(job, lane->store, RECORD_RENEW, lease, &own);
	record_jobs_run(lane, call, job, 1);
	int outcome = record_locks_judge(lane->store, call, lease, locks, n_locks,
					 record_job_task(job)->outcome);

	lease_keep_own(lane->store, lease->id, &own, outcome == BATON_OUTCOME_OK ? n_held : NULL);
	if (record_locks_were_lost(lane->store, lease))
		(void)claims_settle(lane, &(struct baton_call){.deadline_ns = call->deadline_ns},
				    lease, RECORD_FORFEIT);
	free(job);
	return outcome;
}

/* Deletes the tombstone of a lease that has never carried a claim: no election names the lease, so
 * no candidate looks for it (R10). The doctor's lease, above all, is one. */
static void lease_drop(struct record_lane *lane, const struct baton_call *call, const char *id,
		       const struct record_own *own)
{
	struct record_store *s = lane->store;
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct record_key key = record_key_of(s, RECORD_LEASES, id);
	struct record_item item = {.key = key.text, .version = own->version};

	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, id);
	bool is_unused = ours != NULL && !ours->was_claimed_on && own->version.n > 0;

	store_unlock(&s->base);
	if (is_unused)
		record_drop(lane, &quiet, &item, 1);
}

int record_driver_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct record_lane *lane = l;
	struct record_job *job = record_jobs_new(call, 1);
	struct record_own own;

	if (job == NULL)
		return BATON_OUTCOME_FAILED;
	if (!lease_own(lane->store, lease->id, &own)) {
		free(job);
		return BATON_OUTCOME_OK;
	}
	record_release_all(lane, call, lease->id);
	(void)lease_own(lane->store, lease->id, &own);
	lease_job(job, lane->store, RECORD_CLOSE, lease, &own);
	job->u.keep.death = RECORD_CLOSED;
	record_jobs_run(lane, call, job, 1);
	int outcome = record_job_task(job)->outcome;

	free(job);
	if (outcome == BATON_OUTCOME_OK || call->is_last) {
		record_shown_drop(lane, call, lease->id);
		if (outcome == BATON_OUTCOME_OK)
			lease_drop(lane, call, lease->id, &own);
		lease_forget(lane->store, lease->id);
		record_locks_drop(lane, call);
	} else {
		lease_keep_own(lane->store, lease->id, &own, NULL);
	}
	return outcome;
}

/* ---- claims ---- */

struct record_held *record_held_copy(struct record_store *s, struct baton_call *call,
				     const char *lease_id, uint32_t standing, size_t *n)
{
	const struct record_known *k;
	size_t room = 1;

	*n = 0;
	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, lease_id);

	for (k = ours != NULL ? LIST_FIRST(&ours->claims) : NULL; k != NULL;
	     k = LIST_NEXT(k, of_ours))
		room += standing == RECORD_NO_CLAIM || k->claim.standing == standing;
	struct record_held *list = calloc(room, sizeof(*list));

	for (k = (ours != NULL && list != NULL) ? LIST_FIRST(&ours->claims) : NULL; k != NULL;
	     k = LIST_NEXT(k, of_ours)) {
		if (standing != RECORD_NO_CLAIM && k->claim.standing != standing)
			continue;
		(void)memcpy(list[*n].name, k->name, strlen(k->name) + 1);
		list[*n].lock_ns = k->lock_ns;
		list[(*n)++].claim = k->claim;
	}
	store_unlock(&s->base);
	if (list == NULL)
		(void)record_no_memory(call);
	return list;
}

void record_held_set(struct record_store *s, const char *lease_id, const char *name,
		     const struct record_claim *claim)
{
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, name);

	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease_id);
	struct record_known *k = record_known_find(s, key.text);

	/* If the lease was closed meanwhile, its claims are over with it, and nothing is noted. */
	if (k == NULL && ours != NULL && claim != NULL && claim->standing != RECORD_NO_CLAIM)
		k = record_known_get(s, key.text, name);
	if (k != NULL && (k->ours == NULL || k->ours == ours)) {
		record_known_claim(s, k, ours, claim);
		record_known_tidy(s, k);
	}
	store_unlock(&s->base);
}

/* R7: settles the claims with that standing. OK: it is known now what has become of all of them. */
static int claims_settle(struct record_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, uint32_t standing)
{
	size_t n;
	struct record_held *list = record_held_copy(lane->store, call, lease->id, standing, &n);
	struct record_job *jobs =
		list != NULL ? record_jobs_new(call, n < RECORD_JOBS_MAX ? n : RECORD_JOBS_MAX)
			     : NULL;
	int outcome = jobs != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;

	for (size_t done = 0; jobs != NULL && done < n; done += RECORD_JOBS_MAX) {
		size_t k = record_least(n - done, RECORD_JOBS_MAX);

		for (size_t i = 0; i < k; i++) {
			record_job_init(&jobs[i], lane->store, RECORD_JOB_CAMPAIGN,
					list[done + i].name);
			record_settle_begin(&jobs[i].u.campaign, lease, &list[done + i].claim,
					    record_has_locks(lane->store));
		}
		record_jobs_run(lane, call, jobs, k);
		for (size_t i = 0; i < k; i++) {
			struct record_claim claim;
			int result = record_job_task(&jobs[i])->outcome;

			record_campaign_book(&jobs[i].u.campaign, &claim);
			record_held_set(lane->store, lease->id, list[done + i].name, &claim);
			if (!record_lock_book(lane->store, &jobs[i], lease->id, &claim))
				result = BATON_OUTCOME_FAILED;
			if (result != BATON_OUTCOME_OK && result != BATON_OUTCOME_REFUSED)
				outcome = BATON_OUTCOME_FAILED;
		}
	}
	free(jobs);
	free(list);
	return outcome;
}

/* Compares a list of all elections with the versions of our claims. */
struct claims_listing {
	struct record_store *s;
	const char *lease_id;
	uint64_t begun_ns;
};

static void claims_listed(void *arg, const struct record_item *item)
{
	const struct claims_listing *a = arg;

	store_lock(&a->s->base);
	struct record_known *k = record_known_find(a->s, item->key);

	if (k != NULL && k->ours != NULL && strcmp(k->ours->id, a->lease_id) == 0 &&
	    record_same_version(&k->claim.version, &item->version))
		k->confirmed_ns = a->begun_ns;
	store_unlock(&a->s->base);
}

static bool claims_is_confirmed(const struct claims_listing *a, const char *key)
{
	store_lock(&a->s->base);
	const struct record_known *k = record_known_find(a->s, key);
	bool is_confirmed = k != NULL && k->confirmed_ns == a->begun_ns;

	store_unlock(&a->s->base);
	return is_confirmed;
}

/* Checks which of these claims still stand, and drops those that don't. */
static int claims_check(struct record_lane *lane, struct baton_call *call,
			const struct claims_listing *listing, struct record_held *list, size_t n)
{
	struct record_key *keys = calloc(n, sizeof(*keys));
	struct record_item *items = record_items_new(call, n);
	size_t *which = calloc(n, sizeof(*which));
	bool has_room = keys != NULL && items != NULL && which != NULL;
	int outcome = has_room ? BATON_OUTCOME_OK : record_no_memory(call);
	size_t n_items = 0;

	for (size_t i = 0; i < n && has_room; i++) {
		keys[i] = record_key_of(lane->store, RECORD_ELECTIONS, list[i].name);
		list[i].stands = claims_is_confirmed(listing, keys[i].text);
		if (list[i].stands)
			continue;
		items[n_items].key = keys[i].text;
		which[n_items++] = i;
	}
	record_get(lane, call, items, n_items, true);
	for (size_t i = 0; i < n_items; i++) {
		struct record_held *held = &list[which[i]];
		struct record_election e;

		if (items[i].outcome != BATON_OUTCOME_OK) {
			outcome = BATON_OUTCOME_FAILED;
			continue;
		}
		held->stands = record_read_election(call, &items[i], held->name, &e) &&
			       strcmp(e.lease, listing->lease_id) == 0 &&
			       e.nonce == held->claim.nonce && e.term == held->claim.term;
		held->claim.version = items[i].version;
		record_held_set(lane->store, listing->lease_id, held->name,
				held->stands ? &held->claim : NULL);
	}
	record_items_free(items, n);
	free(which);
	free(keys);
	return outcome;
}

/*
 * For many claims that are known to stand, a list is good enough, even if it is old: the watch
 * tells a leader that has lost one of them. A request for each claim would not fit into one call.
 */
int record_driver_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
			 void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
			 void *arg)
{
	struct record_lane *lane = l;
	const struct record_adapter *adapter = lane->store->adapter;
	struct claims_listing listing = {lane->store, lease->id, clock_boot_ns()};
	int outcome = claims_settle(lane, call, lease, RECORD_IN_DOUBT);
	size_t n;
	struct record_held *list =
		record_held_copy(lane->store, call, lease->id, RECORD_STANDS, &n);

	if (list == NULL)
		outcome = BATON_OUTCOME_FAILED;
	if (outcome == BATON_OUTCOME_OK && n > adapter->get_max && n > RECORD_FEW)
		outcome = adapter->list(lane->lane, call, "e/", false, claims_listed, &listing);
	for (size_t done = 0; done < n && outcome == BATON_OUTCOME_OK; done += RECORD_JOBS_MAX)
		outcome = claims_check(lane, call, &listing, list + done,
				       n - done < RECORD_JOBS_MAX ? n - done : RECORD_JOBS_MAX);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		if (list[i].stands)
			found(arg, list[i].name, list[i].claim.nonce, list[i].claim.term);
	if (outcome == BATON_OUTCOME_OK)
		record_locks_told(lane->store, lease);
	record_locks_drop(lane, call);
	free(list);
	return outcome;
}
