/*
 * reclaim.c: what this process has claimed and shows on its lease, and claiming it again on a
 * server that has lost it.
 *
 * After a restart without its data, or when another server takes over, a server lets no candidate
 * win for max_lease (guard() in prelude.lua). Meanwhile only the candidate that leads by its own
 * clock can be the leader. So it may claim its place again, and goes on leading. reclaim.lua has
 * the rule: only while the guard is on, and only in a term that is not below the one that the
 * server still knows. A claim that was deleted on a running server is not claimed again: the
 * deletion may have been on purpose, and another candidate may have won.
 *
 * So this list may have only claims that are surely ours. An entry is dropped before a release is
 * sent, when the lease is closed or another one is opened, and when the store no longer lists the
 * claim. Dropping too much only costs a leadership. The renew lane and the campaign lane
 * share the list. Its lock is never held during a call.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "store/redis/redis.h"

TAILQ_HEAD(own_entries, own_entry);

struct own_entry {
	const char *name; /* text */
	TAILQ_ENTRY(own_entry) of_entries;
	uint64_t nonce;
	uint64_t term; /* 0: not our claim */
	uint32_t round;
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy;
	bool is_shown; /* the owner is shown as a candidate */
	bool is_listed;
	char *metadata; /* NULL: none */
	char text[];
};

struct redis_own {
	pthread_mutex_t lock;
	struct store_turn turn; /* one lane at a time claims again */
	void *by_name;
	struct own_entries entries;
	uint32_t round;
	struct redis_server server; /* the server that knows all of this */
	char lease[BATON_LEASE_ID_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	uint64_t ttl_ms;
};

struct redis_own *redis_own_new(void)
{
	struct redis_own *own = calloc(1, sizeof(*own));

	if (own == NULL || store_turn_init(&own->turn) != 0) {
		free(own);
		return NULL;
	}
	(void)pthread_mutex_init(&own->lock, NULL);
	TAILQ_INIT(&own->entries);
	return own;
}

static int entry_compare(const void *a, const void *b)
{
	return strcmp(((const struct own_entry *)a)->name, ((const struct own_entry *)b)->name);
}

static void entry_free(struct redis_own *own, struct own_entry *entry)
{
	(void)tdelete(entry, &own->by_name, entry_compare);
	TAILQ_REMOVE(&own->entries, entry, of_entries);
	free(entry->metadata);
	free(entry);
}

static void own_clear(struct redis_own *own)
{
	while (!TAILQ_EMPTY(&own->entries))
		entry_free(own, TAILQ_FIRST(&own->entries));
	own->lease[0] = '\0';
}

/* In a child of fork() another thread may have held a lock, so locks are left as they are. */
void redis_own_free(struct redis_own *own, bool is_forked)
{
	if (own == NULL)
		return;
	own_clear(own);
	if (!is_forked) {
		store_turn_done(&own->turn);
		(void)pthread_mutex_destroy(&own->lock);
	}
	free(own);
}

/* ---- the list; with the lock held ---- */

static struct own_entry *own_find(struct redis_own *own, const char *lease, const char *name)
{
	struct own_entry key = {.name = name};
	void *found =
		strcmp(own->lease, lease) == 0 ? tfind(&key, &own->by_name, entry_compare) : NULL;

	return found != NULL ? *(struct own_entry **)found : NULL;
}

/* NULL: another lease's, or no memory; then the claim is not claimed again if it gets lost. */
static struct own_entry *own_get(struct redis_own *own, const char *lease, const char *name)
{
	struct own_entry *entry = own_find(own, lease, name);
	size_t size = strlen(name) + 1;

	if (entry != NULL || strcmp(own->lease, lease) != 0)
		return entry;
	entry = calloc(1, sizeof(*entry) + size);
	if (entry == NULL)
		return NULL;
	entry->name = memcpy(entry->text, name, size);
	if (tsearch(entry, &own->by_name, entry_compare) == NULL) {
		free(entry);
		return NULL;
	}
	entry->round = own->round - 1;
	TAILQ_INSERT_HEAD(&own->entries, entry, of_entries);
	return entry;
}

static void entry_set_profile(struct own_entry *entry, const struct baton_profile *profile)
{
	entry->priority = profile->priority;
	entry->score_permille = profile->score_permille;
	entry->is_healthy = profile->is_healthy;
	free(entry->metadata);
	entry->metadata = profile->metadata[0] != '\0' ? strdup(profile->metadata) : NULL;
}

/* ---- for the verbs ---- */

void redis_own_open(struct redis_own *own, const struct baton_lease *lease, uint64_t ttl_ms,
		    const struct redis_server *server)
{
	(void)pthread_mutex_lock(&own->lock);
	own_clear(own);
	(void)snprintf(own->lease, sizeof(own->lease), "%s", lease->id);
	(void)snprintf(own->owner, sizeof(own->owner), "%s", lease->owner);
	(void)snprintf(own->address, sizeof(own->address), "%s", lease->address);
	own->server = *server;
	own->ttl_ms = ttl_ms;
	(void)pthread_mutex_unlock(&own->lock);
}

static void own_unclaim(struct redis_own *own, struct own_entry *entry)
{
	entry->term = 0;
	if (!entry->is_shown)
		entry_free(own, entry);
}

/* The candidacies stay in the list until the store has removed them. */
void redis_own_close(struct redis_own *own, const char *lease)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	while (entry != NULL) {
		struct own_entry *next = TAILQ_NEXT(entry, of_entries);

		own_unclaim(own, entry);
		entry = next;
	}
	(void)pthread_mutex_unlock(&own->lock);
}

size_t redis_own_put_shown(struct redis_own *own, const char *lease, struct resp_out *out)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	own->round++;
	for (; n < REDIS_PART && entry != NULL; entry = TAILQ_NEXT(entry, of_entries)) {
		if (!entry->is_shown)
			continue;
		resp_text(out, entry->name);
		entry->round = own->round;
		n++;
	}
	(void)pthread_mutex_unlock(&own->lock);
	return n;
}

void redis_own_drop_shown(struct redis_own *own, const char *lease)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	while (entry != NULL) {
		struct own_entry *next = TAILQ_NEXT(entry, of_entries);

		if (entry->is_shown && entry->round == own->round) {
			entry->is_shown = false;
			own_unclaim(own, entry);
		}
		entry = next;
	}
	(void)pthread_mutex_unlock(&own->lock);
}

bool redis_own_knows(struct redis_own *own, const char *lease, const char *name, uint64_t term,
		     bool is_asked)
{
	(void)pthread_mutex_lock(&own->lock);
	const struct own_entry *entry = own_find(own, lease, name);
	bool knows = strcmp(own->lease, lease) == 0 &&
		     (is_asked || (entry != NULL && entry->term == term));

	(void)pthread_mutex_unlock(&own->lock);
	return knows;
}

void redis_own_claim(struct redis_own *own, const char *lease, const char *name, uint64_t nonce,
		     uint64_t term, const struct baton_profile *profile)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry = own_get(own, lease, name);

	if (entry != NULL) {
		entry->nonce = nonce;
		entry->term = term;
		entry->is_listed = true;
		if (profile != NULL)
			entry_set_profile(entry, profile);
	}
	(void)pthread_mutex_unlock(&own->lock);
}

void redis_own_drop(struct redis_own *own, const char *lease, const char *name)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry = own_find(own, lease, name);

	if (entry != NULL)
		own_unclaim(own, entry);
	(void)pthread_mutex_unlock(&own->lock);
}

void redis_own_show(struct redis_own *own, const char *lease, const char *name,
		    const struct baton_profile *profile)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		profile != NULL ? own_get(own, lease, name) : own_find(own, lease, name);

	if (entry != NULL) {
		entry->is_shown = profile != NULL;
		if (profile != NULL)
			entry_set_profile(entry, profile);
		else if (entry->term == 0)
			entry_free(own, entry);
	}
	(void)pthread_mutex_unlock(&own->lock);
}

/* The store is about to list its claims; is_done: it has listed all. */
void redis_own_list(struct redis_own *own, const char *lease, bool is_done)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	while (entry != NULL) {
		struct own_entry *next = TAILQ_NEXT(entry, of_entries);

		if (!is_done)
			entry->is_listed = false;
		else if (entry->term != 0 && !entry->is_listed)
			own_unclaim(own, entry);
		entry = next;
	}
	(void)pthread_mutex_unlock(&own->lock);
}

/* ---- claiming again ---- */

#define ENTRY_WORDS 8

static void reclaim_put_entry(struct resp_out *out, const struct own_entry *entry)
{
	resp_text(out, entry->name);
	resp_number(out, entry->nonce);
	resp_number(out, entry->term);
	resp_signed(out, entry->priority);
	resp_number(out, entry->score_permille);
	resp_text(out, entry->is_healthy ? "1" : "0");
	resp_text(out, entry->metadata != NULL ? entry->metadata : "");
	resp_text(out, entry->is_shown ? "1" : "0");
}

/* Writes the arguments for some entries that this round has not served yet, and moves these to the
 * end of the list. Returns how many. */
static size_t reclaim_put_some(struct redis_lane *lane, const char *lease, struct resp_out *out)
{
	const struct redis_options *o = &lane->store->options;
	struct redis_own *own = lane->store->own;
	size_t n = 0;

	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	resp_text(out, own->lease);
	resp_text(out, own->owner);
	resp_text(out, own->address);
	resp_number(out, own->ttl_ms);
	resp_number(out, o->max_lease_ms);
	resp_number(out, o->history);
	for (; n < REDIS_PART && entry != NULL && entry->round != own->round; n++) {
		reclaim_put_entry(out, entry);
		entry->round = own->round;
		TAILQ_REMOVE(&own->entries, entry, of_entries);
		TAILQ_INSERT_TAIL(&own->entries, entry, of_entries);
		entry = TAILQ_FIRST(&own->entries);
	}
	(void)pthread_mutex_unlock(&own->lock);
	return n;
}

/* Runs one script; *n: how many entries it serves. */
static int reclaim_some(struct redis_lane *lane, struct baton_call *call, const char *lease,
			size_t *n, bool *is_late)
{
	struct resp_out arguments = {0};
	const struct resp *reply;

	*n = reclaim_put_some(lane, lease, &arguments);
	int outcome = *n > 0 ? redis_call_begin(lane, call, REDIS_RECLAIM, 6 + ENTRY_WORDS * *n)
			     : BATON_OUTCOME_FAILED;

	if (outcome == BATON_OUTCOME_OK) {
		resp_words(&lane->wire.out, &arguments);
		outcome = redis_call_end(lane, call, REDIS_RECLAIM, &reply);
	}
	resp_out_done(&arguments);
	if (outcome == BATON_OUTCOME_OK)
		*is_late = !resp_is(reply, 0, "ok");
	return outcome == BATON_OUTCOME_OK || *n == 0 ? 0 : -1;
}

/* A server that never followed another one gives its stream a new name when its first replica
 * comes, and when the last replica has been gone for long. Lanes that met it before and after that
 * have met the same server. */
bool redis_is_same_server(const struct redis_server *then, const struct redis_server *now)
{
	return strcmp(then->run, now->run) == 0 &&
	       (strcmp(then->replid, now->replid) == 0 || !now->has_followed);
}

/* Which lease has claims that this server may not know; false: there is none. */
static bool reclaim_is_due(struct redis_own *own, const struct redis_server *server, char *lease)
{
	(void)pthread_mutex_lock(&own->lock);
	const struct own_entry *entry = TAILQ_FIRST(&own->entries);
	bool is_new = own->lease[0] != '\0' && !redis_is_same_server(&own->server, server);

	while (entry != NULL && entry->term == 0)
		entry = TAILQ_NEXT(entry, of_entries);
	if (is_new && entry == NULL) /* nothing to claim: a new lease shows all candidates again */
		own->server = *server;
	(void)memcpy(lease, own->lease, sizeof(own->lease));
	(void)pthread_mutex_unlock(&own->lock);
	return is_new && entry != NULL;
}

/* Ends a round. is_late: what was not claimed again now never is. */
static void reclaim_end_round(struct redis_own *own, const struct redis_server *server,
			      const char *lease, bool is_done, bool is_late)
{
	(void)pthread_mutex_lock(&own->lock);
	struct own_entry *entry =
		strcmp(own->lease, lease) == 0 ? TAILQ_FIRST(&own->entries) : NULL;

	if (entry != NULL && is_done)
		own->server = *server;
	while (entry != NULL && is_late) {
		struct own_entry *next = TAILQ_NEXT(entry, of_entries);

		if (entry->term != 0)
			own_unclaim(own, entry);
		entry = next;
	}
	(void)pthread_mutex_unlock(&own->lock);
}

static int reclaim_all(struct redis_lane *lane, struct baton_call *call,
		       const struct redis_server *server, const char *lease)
{
	struct redis_own *own = lane->store->own;
	bool is_late = lane->store->options.durable; /* it has lost nothing */
	size_t n = 1;
	int rc = 0;

	(void)pthread_mutex_lock(&own->lock);
	own->round++;
	(void)pthread_mutex_unlock(&own->lock);
	while (rc == 0 && n > 0 && !is_late)
		rc = reclaim_some(lane, call, lease, &n, &is_late);
	/* If the server has changed again meanwhile, the next call begins with the new one. */
	if (rc == 0 && !redis_is_same_server(server, &lane->server))
		rc = store_fail(&call->error, BATON_E_UNAVAILABLE, "the Redis server changes");
	reclaim_end_round(own, server, lease, rc == 0, is_late);
	return rc;
}

int redis_reclaim(struct redis_lane *lane, struct baton_call *call)
{
	struct redis_own *own = lane->store->own;
	struct redis_server server = lane->server;
	char lease[BATON_LEASE_ID_MAX + 1];
	int rc = 0;

	if (!reclaim_is_due(own, &server, lease))
		return 0;
	if (!store_turn_take(&own->turn, call->deadline_ns, false))
		return store_fail(&call->error, BATON_E_UNAVAILABLE,
				  "Redis does not answer in time (to give back what we hold)");
	if (reclaim_is_due(own, &server, lease)) /* else another lane has done it meanwhile */
		rc = reclaim_all(lane, call, &server, lease);
	store_turn_give(&own->turn);
	return rc;
}
