/*
 * reclaim.c: what this process holds and shows on its lease, and how it gets that back from a
 * server that has lost it.
 *
 * A server that is restarted without its data, or another one that takes over, lets nobody win for
 * max_lease (guard() in prelude.lua). Whoever leads by its own clock is the only one who can: so it
 * may claim its place again, and leads on. reclaim.lua has the rule: only while that guard is on,
 * and only in a term that is not below the one that the server still knows. What is deleted on a
 * living server is not got back, because somebody may have meant it, and somebody else may have
 * won.
 *
 * So nothing may be in these books that isn't ours for certain. It goes before a release is sent,
 * when a lease is closed or another one is opened, and when the store doesn't list it any more; to
 * drop too much only costs a leadership. They belong to the lanes of renewals and campaigns; one
 * lock, never held during a call.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "store/redis/redis.h"

TAILQ_HEAD(items, item);

struct item {
	const char *name; /* text */
	TAILQ_ENTRY(item) of_items;
	uint64_t nonce;
	uint64_t term; /* 0: not ours */
	uint32_t round;
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy;
	bool is_shown; /* as a candidate */
	bool is_listed;
	char *metadata; /* NULL: none */
	char text[];
};

struct redis_mine {
	pthread_mutex_t lock;
	struct store_turn turn; /* of those who get it back */
	void *by_name;
	struct items items;
	uint32_t round;
	struct redis_server server; /* which one knows of all this */
	char lease[BATON_LEASE_ID_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	uint64_t ttl_ms;
};

struct redis_mine *redis_mine_new(void)
{
	struct redis_mine *m = calloc(1, sizeof(*m));

	if (m == NULL || store_turn_init(&m->turn) != 0) {
		free(m);
		return NULL;
	}
	(void)pthread_mutex_init(&m->lock, NULL);
	TAILQ_INIT(&m->items);
	return m;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static void item_free(struct redis_mine *m, struct item *item)
{
	(void)tdelete(item, &m->by_name, compare);
	TAILQ_REMOVE(&m->items, item, of_items);
	free(item->metadata);
	free(item);
}

static void clear(struct redis_mine *m)
{
	while (!TAILQ_EMPTY(&m->items))
		item_free(m, TAILQ_FIRST(&m->items));
	m->lease[0] = '\0';
}

/* In a child of fork() nobody knows who held a lock: those are left as they are. */
void redis_mine_free(struct redis_mine *m, bool is_forked)
{
	if (m == NULL)
		return;
	clear(m);
	if (!is_forked) {
		store_turn_done(&m->turn);
		(void)pthread_mutex_destroy(&m->lock);
	}
	free(m);
}

/* ---- what is in the books; the lock is held ---- */

static struct item *find(struct redis_mine *m, const char *lease, const char *name)
{
	struct item key = {.name = name};
	void *found = strcmp(m->lease, lease) == 0 ? tfind(&key, &m->by_name, compare) : NULL;

	return found != NULL ? *(struct item **)found : NULL;
}

/* NULL: of another lease, or there is no memory; then it isn't got back. */
static struct item *get(struct redis_mine *m, const char *lease, const char *name)
{
	struct item *item = find(m, lease, name);
	size_t size = strlen(name) + 1;

	if (item != NULL || strcmp(m->lease, lease) != 0)
		return item;
	item = calloc(1, sizeof(*item) + size);
	if (item == NULL)
		return NULL;
	item->name = memcpy(item->text, name, size);
	if (tsearch(item, &m->by_name, compare) == NULL) {
		free(item);
		return NULL;
	}
	item->round = m->round - 1;
	TAILQ_INSERT_HEAD(&m->items, item, of_items);
	return item;
}

static void set_profile(struct item *item, const struct baton_profile *profile)
{
	item->priority = profile->priority;
	item->score_permille = profile->score_permille;
	item->is_healthy = profile->is_healthy;
	free(item->metadata);
	item->metadata = profile->metadata[0] != '\0' ? strdup(profile->metadata) : NULL;
}

/* ---- for the verbs ---- */

void redis_mine_open(struct redis_mine *m, const struct baton_lease *lease, uint64_t ttl_ms,
		     const struct redis_server *server)
{
	(void)pthread_mutex_lock(&m->lock);
	clear(m);
	(void)snprintf(m->lease, sizeof(m->lease), "%s", lease->id);
	(void)snprintf(m->owner, sizeof(m->owner), "%s", lease->owner);
	(void)snprintf(m->address, sizeof(m->address), "%s", lease->address);
	m->server = *server;
	m->ttl_ms = ttl_ms;
	(void)pthread_mutex_unlock(&m->lock);
}

void redis_mine_close(struct redis_mine *m, const char *lease)
{
	(void)pthread_mutex_lock(&m->lock);
	if (strcmp(m->lease, lease) == 0)
		clear(m);
	(void)pthread_mutex_unlock(&m->lock);
}

bool redis_mine_knows(struct redis_mine *m, const char *lease, const char *name, uint64_t term,
		      bool is_asked)
{
	(void)pthread_mutex_lock(&m->lock);
	const struct item *item = find(m, lease, name);
	bool knows =
		strcmp(m->lease, lease) == 0 && (is_asked || (item != NULL && item->term == term));

	(void)pthread_mutex_unlock(&m->lock);
	return knows;
}

void redis_mine_claim(struct redis_mine *m, const char *lease, const char *name, uint64_t nonce,
		      uint64_t term, const struct baton_profile *profile)
{
	(void)pthread_mutex_lock(&m->lock);
	struct item *item = get(m, lease, name);

	if (item != NULL) {
		item->nonce = nonce;
		item->term = term;
		item->is_listed = true;
		if (profile != NULL)
			set_profile(item, profile);
	}
	(void)pthread_mutex_unlock(&m->lock);
}

static void unclaim(struct redis_mine *m, struct item *item)
{
	item->term = 0;
	if (!item->is_shown)
		item_free(m, item);
}

void redis_mine_drop(struct redis_mine *m, const char *lease, const char *name)
{
	(void)pthread_mutex_lock(&m->lock);
	struct item *item = find(m, lease, name);

	if (item != NULL)
		unclaim(m, item);
	(void)pthread_mutex_unlock(&m->lock);
}

void redis_mine_show(struct redis_mine *m, const char *lease, const char *name,
		     const struct baton_profile *profile)
{
	(void)pthread_mutex_lock(&m->lock);
	struct item *item = profile != NULL ? get(m, lease, name) : find(m, lease, name);

	if (item != NULL) {
		item->is_shown = profile != NULL;
		if (profile != NULL)
			set_profile(item, profile);
		else if (item->term == 0)
			item_free(m, item);
	}
	(void)pthread_mutex_unlock(&m->lock);
}

/* The store is about to list what it knows of; and: that was all. */
void redis_mine_list(struct redis_mine *m, const char *lease, bool is_done)
{
	(void)pthread_mutex_lock(&m->lock);
	struct item *item = strcmp(m->lease, lease) == 0 ? TAILQ_FIRST(&m->items) : NULL;

	while (item != NULL) {
		struct item *next = TAILQ_NEXT(item, of_items);

		if (!is_done)
			item->is_listed = false;
		else if (item->term != 0 && !item->is_listed)
			unclaim(m, item);
		item = next;
	}
	(void)pthread_mutex_unlock(&m->lock);
}

/* ---- getting it back ---- */

#define ITEM_WORDS 8

static void put_item(struct resp_out *out, const struct item *item)
{
	resp_text(out, item->name);
	resp_number(out, item->nonce);
	resp_number(out, item->term);
	resp_signed(out, item->priority);
	resp_number(out, item->score_permille);
	resp_text(out, item->is_healthy ? "1" : "0");
	resp_text(out, item->metadata != NULL ? item->metadata : "");
	resp_text(out, item->is_shown ? "1" : "0");
}

/* The words for some that this round has not had yet, which go to the end of the line; how many. */
static size_t put_some(struct redis_lane *lane, const char *lease, struct resp_out *out)
{
	const struct redis_options *o = &lane->store->options;
	struct redis_mine *m = lane->store->mine;
	size_t n = 0;

	(void)pthread_mutex_lock(&m->lock);
	struct item *item = strcmp(m->lease, lease) == 0 ? TAILQ_FIRST(&m->items) : NULL;

	resp_text(out, m->lease);
	resp_text(out, m->owner);
	resp_text(out, m->address);
	resp_number(out, m->ttl_ms);
	resp_number(out, o->max_lease_ms);
	resp_number(out, o->history);
	for (; n < REDIS_CHUNK && item != NULL && item->round != m->round; n++) {
		put_item(out, item);
		item->round = m->round;
		TAILQ_REMOVE(&m->items, item, of_items);
		TAILQ_INSERT_TAIL(&m->items, item, of_items);
		item = TAILQ_FIRST(&m->items);
	}
	(void)pthread_mutex_unlock(&m->lock);
	return n;
}

/* One script; *n: how many it served. */
static int get_some(struct redis_lane *lane, struct baton_call *call, const char *lease, size_t *n,
		    bool *is_late)
{
	struct resp_out words = {0};
	const struct resp *reply;

	*n = put_some(lane, lease, &words);
	int outcome = *n > 0 ? redis_call_begin(lane, call, REDIS_AGAIN, 6 + ITEM_WORDS * *n)
			     : BATON_OUTCOME_FAILED;

	if (outcome == BATON_OUTCOME_OK) {
		resp_words(&lane->wire.out, &words);
		outcome = redis_call_end(lane, call, REDIS_AGAIN, &reply);
	}
	resp_out_done(&words);
	if (outcome == BATON_OUTCOME_OK)
		*is_late = !resp_is(reply, 0, "ok");
	return outcome == BATON_OUTCOME_OK || *n == 0 ? 0 : -1;
}

/* One that never followed another names its stream anew when its first replica comes, and when the
 * last one has long been gone: lanes that met it before and after that met the same server. */
bool redis_is_same_server(const struct redis_server *then, const struct redis_server *now)
{
	return strcmp(then->run, now->run) == 0 &&
	       (strcmp(then->replid, now->replid) == 0 || !now->has_followed);
}

/* Which lease has claims that this server may not know of; false: none. */
static bool is_due(struct redis_mine *m, const struct redis_server *server, char *lease)
{
	(void)pthread_mutex_lock(&m->lock);
	const struct item *item = TAILQ_FIRST(&m->items);
	bool is_new = m->lease[0] != '\0' && !redis_is_same_server(&m->server, server);

	while (item != NULL && item->term == 0)
		item = TAILQ_NEXT(item, of_items);
	if (is_new && item == NULL) /* the lease may go: another is opened, and all shown again */
		m->server = *server;
	(void)memcpy(lease, m->lease, sizeof(m->lease));
	(void)pthread_mutex_unlock(&m->lock);
	return is_new && item != NULL;
}

/* Late: not now, so not ever. */
static void end_round(struct redis_mine *m, const struct redis_server *server, const char *lease,
		      bool is_done, bool is_late)
{
	(void)pthread_mutex_lock(&m->lock);
	struct item *item = strcmp(m->lease, lease) == 0 ? TAILQ_FIRST(&m->items) : NULL;

	if (item != NULL && is_done)
		m->server = *server;
	while (item != NULL && is_late) {
		struct item *next = TAILQ_NEXT(item, of_items);

		if (item->term != 0)
			unclaim(m, item);
		item = next;
	}
	(void)pthread_mutex_unlock(&m->lock);
}

static int get_all(struct redis_lane *lane, struct baton_call *call,
		   const struct redis_server *server, const char *lease)
{
	struct redis_mine *m = lane->store->mine;
	bool is_late = lane->store->options.durable; /* it has kept all that there was */
	size_t n = 1;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	m->round++;
	(void)pthread_mutex_unlock(&m->lock);
	while (rc == 0 && n > 0 && !is_late)
		rc = get_some(lane, call, lease, &n, &is_late);
	/* Another server again, meanwhile: the next call begins with that one. */
	if (rc == 0 && !redis_is_same_server(server, &lane->server))
		rc = store_fail(&call->error, BATON_E_UNAVAILABLE, "the Redis server changes");
	end_round(m, server, lease, rc == 0, is_late);
	return rc;
}

int redis_again(struct redis_lane *lane, struct baton_call *call)
{
	struct redis_mine *m = lane->store->mine;
	struct redis_server server = lane->server;
	char lease[BATON_LEASE_ID_MAX + 1];
	int rc = 0;

	if (!is_due(m, &server, lease))
		return 0;
	if (!store_turn_take(&m->turn, call->deadline_ns, false))
		return store_fail(&call->error, BATON_E_UNAVAILABLE,
				  "Redis does not answer in time (to give back what we hold)");
	if (is_due(m, &server, lease)) /* or another lane has done it meanwhile */
		rc = get_all(lane, call, &server, lease);
	store_turn_give(&m->turn);
	return rc;
}
