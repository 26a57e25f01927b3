/*
 * watch_index.c: what is watched, and who leads it. The server hints at a name that is subscribed
 * to for whatever somebody does to it. A leader that dies does nothing. So the index has the
 * lease of each leader, too, with the time at which it ends unless we learn otherwise (by an
 * observation, or with our own renewal). When that time has come, the names on that lease are
 * hinted at.
 *
 * One lock for all of it, held for a few instructions. The watch lane takes hints out and
 * subscribes; the other lanes write down what they have seen.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"

#define FIRST_BUCKETS 64

LIST_HEAD(watchers, watcher);
LIST_HEAD(names, name);
TAILQ_HEAD(wanted, name);
TAILQ_HEAD(pending, watcher);

struct watcher {
	LIST_ENTRY(watcher) of_name;
	TAILQ_ENTRY(watcher) of_queue;
	uint64_t cookie;
	bool is_pending;
};

struct entry {
	struct entry *next; /* in its bucket */
	uint64_t hash;
};

/* A watched name. */
struct name {
	struct entry entry;
	struct watchers watchers;
	LIST_ENTRY(name) of_lease;
	TAILQ_ENTRY(name) of_wanted;
	struct lease *lease; /* NULL: nobody's, or nobody knows whose */
	bool is_wanted;      /* to be subscribed to */
	bool is_asked;       /* ... and that is under way */
	bool is_subscribed;
	char text[];
};

/* A lease on which watched names are led. */
struct lease {
	struct entry entry;
	struct names names;
	uint64_t ends_ns;
	char id[BATON_LEASE_ID_MAX + 1];
};

struct table {
	struct entry **buckets;
	size_t n_buckets;
	size_t n;
};

struct redis_index {
	pthread_mutex_t lock;
	struct table names;
	struct table leases;
	struct wanted wanted;
	struct pending pending;
	uint64_t earliest_ns; /* no lease ends before this */
	uint64_t sleeps_ns;   /* until when the watch lane means to wait */
	int wake;
};

/* ---- tables ---- */

static uint64_t hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h;
}

/* Makes room for one more. */
static bool table_grow(struct table *t)
{
	size_t size = t->n_buckets == 0 ? FIRST_BUCKETS : 2 * t->n_buckets;

	if (t->n < t->n_buckets)
		return true;
	struct entry **buckets = calloc(size, sizeof(*buckets));

	if (buckets == NULL)
		return t->n_buckets > 0; /* it gets slower, that is all */
	for (size_t i = 0; i < t->n_buckets; i++) {
		struct entry *e = t->buckets[i];

		while (e != NULL) {
			struct entry *next = e->next;
			struct entry **to = &buckets[e->hash & (size - 1)];

			e->next = *to;
			*to = e;
			e = next;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = size;
	return true;
}

static void table_add(struct table *t, struct entry *e, const char *key)
{
	e->hash = hash_of(key);
	struct entry **to = &t->buckets[e->hash & (t->n_buckets - 1)];

	e->next = *to;
	*to = e;
	t->n++;
}

static void table_remove(struct table *t, struct entry *e)
{
	struct entry **at = &t->buckets[e->hash & (t->n_buckets - 1)];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	t->n--;
}

static struct entry *table_first(const struct table *t, uint64_t hash)
{
	return t->n_buckets == 0 ? NULL : t->buckets[hash & (t->n_buckets - 1)];
}

static struct name *index_find_name(const struct redis_index *index, const char *text)
{
	for (struct entry *e = table_first(&index->names, hash_of(text)); e != NULL; e = e->next)
		if (strcmp(((struct name *)e)->text, text) == 0)
			return (struct name *)e;
	return NULL;
}

static struct lease *index_find_lease(const struct redis_index *index, const char *id)
{
	for (struct entry *e = table_first(&index->leases, hash_of(id)); e != NULL; e = e->next)
		if (strcmp(((struct lease *)e)->id, id) == 0)
			return (struct lease *)e;
	return NULL;
}

/* ---- small steps, with the lock held ---- */

static void index_queue(struct redis_index *index, struct name *n)
{
	struct watcher *w;

	for (w = LIST_FIRST(&n->watchers); w != NULL; w = LIST_NEXT(w, of_name)) {
		if (w->is_pending)
			continue;
		w->is_pending = true;
		TAILQ_INSERT_TAIL(&index->pending, w, of_queue);
	}
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
	table_remove(&index->leases, &l->entry);
	free(l);
}

/* The watch lane sleeps for too long. */
static void index_hurry(struct redis_index *index, uint64_t ns)
{
	uint64_t one = 1;

	if (ns < index->earliest_ns)
		index->earliest_ns = ns;
	if (ns >= index->sleeps_ns)
		return;
	index->sleeps_ns = ns;
	if (write(index->wake, &one, sizeof(one)) < 0)
		return; /* it is full: so it wakes anyhow */
}

static bool index_attach(struct redis_index *index, struct name *n, const char *id)
{
	struct lease *l = index_find_lease(index, id);

	if (n->lease != NULL && n->lease == l)
		return true;
	index_detach(index, n);
	if (l == NULL) {
		l = table_grow(&index->leases) ? calloc(1, sizeof(*l)) : NULL;
		if (l == NULL)
			return false;
		(void)strncpy(l->id, id, sizeof(l->id) - 1);
		table_add(&index->leases, &l->entry, l->id);
	}
	LIST_INSERT_HEAD(&l->names, n, of_lease);
	n->lease = l;
	return true;
}

/* Leases whose time has come: somebody should look at what they held. */
static void index_sweep(struct redis_index *index, uint64_t now_ns)
{
	if (now_ns < index->earliest_ns)
		return;
	index->earliest_ns = BATON_STORE_NEVER;
	for (size_t i = 0; i < index->leases.n_buckets; i++) {
		struct entry *e = index->leases.buckets[i];

		while (e != NULL) {
			struct lease *l = (struct lease *)e;
			struct name *n = LIST_FIRST(&l->names);

			e = e->next;
			if (l->ends_ns > now_ns && l->ends_ns < index->earliest_ns)
				index->earliest_ns = l->ends_ns;
			while (l->ends_ns <= now_ns && n != NULL) {
				struct name *next = LIST_NEXT(n, of_lease);

				index_queue(index, n);
				index_detach(index, n);
				n = next;
				if (n == NULL)
					break; /* the last one took the lease with it */
			}
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
	TAILQ_INIT(&index->pending);
	index->earliest_ns = BATON_STORE_NEVER;
	index->wake = wake;
	return index;
}

static void index_free_name(struct redis_index *index, struct name *n)
{
	if (n->is_wanted)
		TAILQ_REMOVE(&index->wanted, n, of_wanted);
	index_detach(index, n);
	table_remove(&index->names, &n->entry);
	free(n);
}

static void index_free_watcher(struct redis_index *index, struct watcher *w)
{
	if (w->is_pending)
		TAILQ_REMOVE(&index->pending, w, of_queue);
	LIST_REMOVE(w, of_name);
	free(w);
}

static void index_free_watchers(struct redis_index *index, struct name *n)
{
	struct watcher *w = LIST_FIRST(&n->watchers);

	while (w != NULL) {
		struct watcher *next = LIST_NEXT(w, of_name);

		index_free_watcher(index, w);
		w = next;
	}
}

void redis_index_free(struct redis_index *index)
{
	if (index == NULL)
		return;
	for (size_t i = 0; i < index->names.n_buckets; i++) {
		struct entry *e = index->names.buckets[i];

		while (e != NULL) {
			struct name *n = (struct name *)e;

			e = e->next;
			index_free_watchers(index, n);
			index_free_name(index, n);
		}
	}
	free(index->names.buckets);
	free(index->leases.buckets);
	(void)pthread_mutex_destroy(&index->lock);
	free(index);
}

static struct name *index_get_name(struct redis_index *index, const char *text)
{
	struct name *n = index_find_name(index, text);
	size_t size = strlen(text) + 1;

	if (n != NULL)
		return n;
	n = table_grow(&index->names) ? calloc(1, sizeof(*n) + size) : NULL;
	if (n == NULL)
		return NULL;
	(void)memcpy(n->text, text, size);
	LIST_INIT(&n->watchers);
	table_add(&index->names, &n->entry, n->text);
	index_want(index, n);
	return n;
}

int redis_index_add(struct redis_index *index, const char *name, uint64_t cookie)
{
	struct watcher *w = calloc(1, sizeof(*w));

	(void)pthread_mutex_lock(&index->lock);
	struct name *n = w != NULL ? index_get_name(index, name) : NULL;

	if (n != NULL) {
		w->cookie = cookie;
		LIST_INSERT_HEAD(&n->watchers, w, of_name);
		if (n->is_subscribed) /* it is watched already: so that is hinted at now */
			index_queue(index, n);
	}
	(void)pthread_mutex_unlock(&index->lock);
	if (n == NULL)
		free(w);
	return n != NULL ? BATON_OK : BATON_E_MEMORY;
}

bool redis_index_remove(struct redis_index *index, const char *name, uint64_t cookie)
{
	bool is_last = false;

	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);
	struct watcher *w = n != NULL ? LIST_FIRST(&n->watchers) : NULL;

	while (w != NULL && w->cookie != cookie)
		w = LIST_NEXT(w, of_name);
	if (w != NULL) {
		index_free_watcher(index, w);
		is_last = LIST_EMPTY(&n->watchers);
		if (is_last)
			index_free_name(index, n);
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
	for (size_t i = 0; i < index->leases.n_buckets && max > 0; i++) {
		for (struct entry *e = index->leases.buckets[i]; e != NULL; e = e->next) {
			const struct lease *l = (const struct lease *)e;
			size_t at = n < max ? n : max - 1;

			/* Sorted as they come; what is beyond the end falls off. */
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
		(void)memcpy(name, n->text, strlen(n->text) + 1);
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
		index_queue(index, n);
	}
	(void)pthread_mutex_unlock(&index->lock);
}

void redis_index_hint(struct redis_index *index, const char *name)
{
	(void)pthread_mutex_lock(&index->lock);
	struct name *n = index_find_name(index, name);

	if (n != NULL)
		index_queue(index, n);
	(void)pthread_mutex_unlock(&index->lock);
}

void redis_index_broken(struct redis_index *index)
{
	(void)pthread_mutex_lock(&index->lock);
	for (size_t i = 0; i < index->names.n_buckets; i++)
		for (struct entry *e = index->names.buckets[i]; e != NULL; e = e->next)
			index_want(index, (struct name *)e);
	(void)pthread_mutex_unlock(&index->lock);
}

size_t redis_index_take(struct redis_index *index, uint64_t *cookies, size_t max, uint64_t *next_ns)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&index->lock);
	index_sweep(index, clock_boot_ns());
	while (n < max && !TAILQ_EMPTY(&index->pending)) {
		struct watcher *w = TAILQ_FIRST(&index->pending);

		TAILQ_REMOVE(&index->pending, w, of_queue);
		w->is_pending = false;
		cookies[n++] = w->cookie;
	}
	index->sleeps_ns = n > 0 ? 0 : index->earliest_ns;
	*next_ns = index->earliest_ns;
	(void)pthread_mutex_unlock(&index->lock);
	return n;
}
