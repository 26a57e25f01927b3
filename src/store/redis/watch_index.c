/*
 * watch_index.c: what is watched, and who leads it. For a name that is subscribed to, the server
 * tells us of all that is done to it. But a leader that dies does nothing. So the index also has
 * the lease of each leader, and when it ends unless we learn otherwise (by an observation, or with
 * our own renewal). When that time has come, the names on that lease get a hint.
 *
 * One lock protects all of it, and is held for a few instructions. The watch lane takes hints and
 * subscribes; the other lanes note what they have seen.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"
#include "store/watch_index.h"

LIST_HEAD(names, name);
TAILQ_HEAD(wanted, name);

struct name {
	struct watched watched;
	LIST_ENTRY(name) of_lease;
	TAILQ_ENTRY(name) of_wanted;
	struct lease *lease; /* NULL: none, or not known */
	bool is_wanted;      /* to be subscribed to */
	bool is_asked;       /* ... and that is under way */
	bool is_subscribed;
};

/* A lease that holds watched names. */
struct lease {
	struct name_node node; /* by its id */
	struct names names;
	uint64_t ends_ns;
	char id[BATON_LEASE_ID_MAX + 1];
};

struct redis_index {
	pthread_mutex_t lock;
	struct watch_index names; /* of struct name */
	struct name_table leases; /* of struct lease */
	struct wanted wanted;
	uint64_t earliest_ns; /* no lease ends before this */
	uint64_t sleeps_ns;   /* when the watch lane means to wake up */
	int wake;
};

/* ---- small steps, with the lock held ---- */

static struct name *index_find_name(const struct redis_index *index, const char *name)
{
	return (struct name *)watch_index_find(&index->names, name);
}

static struct lease *index_find_lease(const struct redis_index *index, const char *id)
{
	return (struct lease *)name_table_find(&index->leases, id);
}

static void index_want(struct redis_index *index, struct name *n)
{
	n->is_subscribed = false;
	n->is_asked = false;
	if (!n->is_wanted)
		TAILQ_INSERT_TAIL(&index->wanted, n, of_wanted);
	n->is_wanted = true;
}

static void index_detach(struct redis_index *index, struct name *n)
{
	struct lease *l = n->lease;

	if (l == NULL)
		return;
	LIST_REMOVE(n, of_lease);
	n->lease = NULL;
	if (!LIST_EMPTY(&l->names))
		return;
	name_table_remove(&index->leases, &l->node);
	free(l);
}

/* Wakes the watch lane if it would sleep too long. */
static void index_hurry(struct redis_index *index, uint64_t ns)
{
	uint64_t one = 1;

	if (ns < index->earliest_ns)
		index->earliest_ns = ns;
	if (ns >= index->sleeps_ns)
		return;
	index->sleeps_ns = ns;
	if (write(index->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the lane wakes anyhow */
}

static bool index_attach(struct redis_index *index, struct name *n, const char *id)
{
	struct lease *l = index_find_lease(index, id);

	if (n->lease != NULL && n->lease == l)
		return true;
	index_detach(index, n);
	if (l == NULL) {
		l = calloc(1, sizeof(*l));
		if (l == NULL)
			return false;
		(void)strncpy(l->id, id, sizeof(l->id) - 1);
		name_table_add(&index->leases, &l->node, l->id);
	}
	LIST_INSERT_HEAD(&l->names, n, of_lease);
	n->lease = l;
	return true;
}

/* Gives hints for the names on leases whose time has come. */
static void index_sweep(struct redis_index *index, uint64_t now_ns)
{
	if (now_ns < index->earliest_ns)
		return;
	index->earliest_ns = BATON_STORE_NEVER;
	for (struct name_node *node = name_table_next(&index->leases, NULL), *after; node != NULL;
	     node = after) {
		const struct lease *l = (const struct lease *)node;
		bool is_over = l->ends_ns <= now_ns;

		after = name_table_next(&index->leases, node);
		if (!is_over && l->ends_ns < index->earliest_ns)
			index->earliest_ns = l->ends_ns;
		/* Detaching the last name frees the lease. */
		for (struct name *n = is_over ? LIST_FIRST(&l->names) : NULL, *next; n != NULL;
		     n = next) {
			next = LIST_NEXT(n, of_lease);
			watch_index_hint(&index->names, &n->watched);
			index_detach(index, n);
		}
	}
}

/* ---- for all lanes ---- */

struct redis_index *redis_index_new(int wake)
{
	struct redis_index *index = calloc(1, sizeof(*index));

	if (index == NULL || pthread_mutex_init(&index->lock, NULL) != 0) {
		free(index);
		return NULL;
	}
	TAILQ_INIT(&index->wanted);
	index->earliest_ns = BATON_STORE_NEVER;
	index->wake = wake;
	if (watch_index_init(&index->names, sizeof(struct name)) == 0 &&
	    name_table_init(&index->leases) == 0)
		return index;
	redis_index_free(index);
	return NULL;
}

void redis_index_free(struct redis_index *index)
{
	struct name_node *lease;

	if (index == NULL)
		return;
	watch_index_done(&index->names);
	while ((lease = name_table_pop(&index->leases)) != NULL)
		free(lease);
	name_table_done(&index->leases);
	(void)pthread_mutex_destroy(&index->lock);
	free(index);
}

int redis_index_add(struct redis_index *index, const char *name, uint64_t cookie)
{
	(void)pthread_mutex_lock(&index->lock);
	const struct name *known = index_find_name(index, name);
	/* If the name is subscribed to already, the watcher gets a hint now. */
	struct name *n = (struct name *)watch_index_add(&index->names, name, cookie,
							known != NULL && known->is_subscribed);

	if (known == NULL && n != NULL)
		index_want(index, n);
	(void)pthread_mutex_unlock(&index->lock);
	return n != NULL ? BATON_OK : BATON_E_MEMORY;
}

bool redis_index_remove(struct redis_index *index, const char *name, uint64_t cookie)
{
	bool is_last = false;

	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);

	if (n != NULL && watch_index_unwatch(&index->names, &n->watched, cookie))
		is_last = !watch_index_is_watched(&n->watched);
	if (is_last) {
		if (n->is_wanted)
			TAILQ_REMOVE(&index->wanted, n, of_wanted);
		index_detach(index, n);
		watch_index_drop(&index->names, &n->watched);
	}
	(void)pthread_mutex_unlock(&index->lock);
	return is_last;
}

bool redis_index_seen(struct redis_index *index, const char *name, const char *lease,
		      uint64_t left_ns)
{
	bool is_watched = false;

	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);

	if (n != NULL && lease[0] == '\0') {
		index_detach(index, n);
		is_watched = n->is_subscribed;
	} else if (n != NULL && left_ns != BATON_STORE_NEVER && index_attach(index, n, lease)) {
		n->lease->ends_ns = clock_boot_ns() + left_ns;
		index_hurry(index, n->lease->ends_ns);
		is_watched = n->is_subscribed;
	}
	(void)pthread_mutex_unlock(&index->lock);
	return is_watched;
}

size_t redis_index_leases(struct redis_index *index, char (*ids)[BATON_LEASE_ID_MAX + 1],
			  size_t max)
{
	uint64_t ends_ns[REDIS_SEEN_MAX];
	size_t n = 0;

	if (max > REDIS_SEEN_MAX)
		max = REDIS_SEEN_MAX;
	(void)pthread_mutex_lock(&index->lock);
	for (const struct name_node *node = name_table_next(&index->leases, NULL);
	     node != NULL && max > 0; node = name_table_next(&index->leases, node)) {
		const struct lease *l = (const struct lease *)node;
		size_t at = n < max ? n : max - 1;

		/* Inserts it in order. What is beyond the end is dropped. */
		if (n == max && ends_ns[at] <= l->ends_ns)
			continue;
		while (at > 0 && ends_ns[at - 1] > l->ends_ns) {
			ends_ns[at] = ends_ns[at - 1];
			(void)memcpy(ids[at], ids[at - 1], sizeof(ids[0]));
			at--;
		}
		ends_ns[at] = l->ends_ns;
		(void)memcpy(ids[at], l->id, sizeof(ids[0]));
		n += n < max;
	}
	(void)pthread_mutex_unlock(&index->lock);
	return n;
}

void redis_index_left(struct redis_index *index, const char *lease, uint64_t left_ns)
{
	(void)pthread_mutex_lock(&index->lock);
	struct lease *l = index_find_lease(index, lease);

	if (l != NULL) {
		l->ends_ns = clock_boot_ns() + left_ns;
		index_hurry(index, l->ends_ns);
	}
	(void)pthread_mutex_unlock(&index->lock);
}

/* ---- for the watch lane ---- */

bool redis_index_next(struct redis_index *index, char *name)
{
	(void)pthread_mutex_lock(&index->lock);
	struct name *n = TAILQ_FIRST(&index->wanted);

	if (n != NULL) {
		TAILQ_REMOVE(&index->wanted, n, of_wanted);
		n->is_wanted = false;
		n->is_asked = true;
		(void)memcpy(name, n->watched.node.key, strlen(n->watched.node.key) + 1);
	}
	(void)pthread_mutex_unlock(&index->lock);
	return n != NULL;
}

void redis_index_subscribed(struct redis_index *index, const char *name)
{
	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);

	if (n != NULL && n->is_asked) {
		n->is_asked = false;
		n->is_subscribed = true;
		watch_index_hint(&index->names, &n->watched);
	}
	(void)pthread_mutex_unlock(&index->lock);
}

void redis_index_hint(struct redis_index *index, const char *name)
{
	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);

	if (n != NULL)
		watch_index_hint(&index->names, &n->watched);
	(void)pthread_mutex_unlock(&index->lock);
}

void redis_index_broken(struct redis_index *index)
{
	(void)pthread_mutex_lock(&index->lock);
	for (struct watched *w = watch_index_next(&index->names, NULL); w != NULL;
	     w = watch_index_next(&index->names, w))
		index_want(index, (struct name *)w);
	(void)pthread_mutex_unlock(&index->lock);
}

size_t redis_index_take(struct redis_index *index, uint64_t *cookies, size_t max, uint64_t *next_ns)
{
	(void)pthread_mutex_lock(&index->lock);
	index_sweep(index, clock_boot_ns());
	size_t n = watch_index_take(&index->names, cookies, max);

	index->sleeps_ns = n > 0 ? 0 : index->earliest_ns;
	*next_ns = index->earliest_ns;
	(void)pthread_mutex_unlock(&index->lock);
	return n;
}
