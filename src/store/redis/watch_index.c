/*
 * watch_index.c: the books of what is watched. A name that is subscribed to is hinted at by the
 * server for whatever somebody does to it. A leader that dies does nothing: so the lease of each
 * leader is in the books, too, with the time at which it ends unless we learn otherwise (by a
 * look, or with the own renewal), and the names that it holds are hinted at when that time has
 * come.
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

/* A lease that holds watched names. */
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

struct redis_books {
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

static struct name *find_name(const struct redis_books *b, const char *text)
{
	for (struct entry *e = table_first(&b->names, hash_of(text)); e != NULL; e = e->next)
		if (strcmp(((struct name *)e)->text, text) == 0)
			return (struct name *)e;
	return NULL;
}

static struct lease *find_lease(const struct redis_books *b, const char *id)
{
	for (struct entry *e = table_first(&b->leases, hash_of(id)); e != NULL; e = e->next)
		if (strcmp(((struct lease *)e)->id, id) == 0)
			return (struct lease *)e;
	return NULL;
}

/* ---- small steps, with the lock held ---- */

static void queue(struct redis_books *b, struct name *n)
{
	struct watcher *w;

	for (w = LIST_FIRST(&n->watchers); w != NULL; w = LIST_NEXT(w, of_name)) {
		if (w->is_pending)
			continue;
		w->is_pending = true;
		TAILQ_INSERT_TAIL(&b->pending, w, of_queue);
	}
}

static void want(struct redis_books *b, struct name *n)
{
	n->is_subscribed = false;
	n->is_asked = false;
	if (!n->is_wanted)
		TAILQ_INSERT_TAIL(&b->wanted, n, of_wanted);
	n->is_wanted = true;
}

static void detach(struct redis_books *b, struct name *n)
{
	struct lease *l = n->lease;

	if (l == NULL)
		return;
	LIST_REMOVE(n, of_lease);
	n->lease = NULL;
	if (!LIST_EMPTY(&l->names))
		return;
	table_remove(&b->leases, &l->entry);
	free(l);
}

/* The watch lane sleeps for too long. */
static void hurry(struct redis_books *b, uint64_t ns)
{
	uint64_t one = 1;

	if (ns < b->earliest_ns)
		b->earliest_ns = ns;
	if (ns >= b->sleeps_ns)
		return;
	b->sleeps_ns = ns;
	if (write(b->wake, &one, sizeof(one)) < 0)
		return; /* it is full: so it wakes anyhow */
}

static bool attach(struct redis_books *b, struct name *n, const char *id)
{
	struct lease *l = find_lease(b, id);

	if (n->lease != NULL && n->lease == l)
		return true;
	detach(b, n);
	if (l == NULL) {
		l = table_grow(&b->leases) ? calloc(1, sizeof(*l)) : NULL;
		if (l == NULL)
			return false;
		(void)strncpy(l->id, id, sizeof(l->id) - 1);
		table_add(&b->leases, &l->entry, l->id);
	}
	LIST_INSERT_HEAD(&l->names, n, of_lease);
	n->lease = l;
	return true;
}

/* Leases whose time has come: somebody should look at what they held. */
static void sweep(struct redis_books *b, uint64_t now_ns)
{
	if (now_ns < b->earliest_ns)
		return;
	b->earliest_ns = BATON_STORE_NEVER;
	for (size_t i = 0; i < b->leases.n_buckets; i++) {
		struct entry *e = b->leases.buckets[i];

		while (e != NULL) {
			struct lease *l = (struct lease *)e;
			struct name *n = LIST_FIRST(&l->names);

			e = e->next;
			if (l->ends_ns > now_ns && l->ends_ns < b->earliest_ns)
				b->earliest_ns = l->ends_ns;
			while (l->ends_ns <= now_ns && n != NULL) {
				struct name *next = LIST_NEXT(n, of_lease);

				queue(b, n);
				detach(b, n);
				n = next;
				if (n == NULL)
					break; /* the last one took the lease with it */
			}
		}
	}
}

/* ---- for all lanes ---- */

struct redis_books *redis_books_new(int wake)
{
	struct redis_books *b = calloc(1, sizeof(*b));

	if (b == NULL || pthread_mutex_init(&b->lock, NULL) != 0) {
		free(b);
		return NULL;
	}
	TAILQ_INIT(&b->wanted);
	TAILQ_INIT(&b->pending);
	b->earliest_ns = BATON_STORE_NEVER;
	b->wake = wake;
	return b;
}

static void name_free(struct redis_books *b, struct name *n)
{
	if (n->is_wanted)
		TAILQ_REMOVE(&b->wanted, n, of_wanted);
	detach(b, n);
	table_remove(&b->names, &n->entry);
	free(n);
}

static void watcher_free(struct redis_books *b, struct watcher *w)
{
	if (w->is_pending)
		TAILQ_REMOVE(&b->pending, w, of_queue);
	LIST_REMOVE(w, of_name);
	free(w);
}

static void watchers_free(struct redis_books *b, struct name *n)
{
	struct watcher *w = LIST_FIRST(&n->watchers);

	while (w != NULL) {
		struct watcher *next = LIST_NEXT(w, of_name);

		watcher_free(b, w);
		w = next;
	}
}

void redis_books_free(struct redis_books *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->names.n_buckets; i++) {
		struct entry *e = b->names.buckets[i];

		while (e != NULL) {
			struct name *n = (struct name *)e;

			e = e->next;
			watchers_free(b, n);
			name_free(b, n);
		}
	}
	free(b->names.buckets);
	free(b->leases.buckets);
	(void)pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct name *get_name(struct redis_books *b, const char *text)
{
	struct name *n = find_name(b, text);
	size_t size = strlen(text) + 1;

	if (n != NULL)
		return n;
	n = table_grow(&b->names) ? calloc(1, sizeof(*n) + size) : NULL;
	if (n == NULL)
		return NULL;
	(void)memcpy(n->text, text, size);
	LIST_INIT(&n->watchers);
	table_add(&b->names, &n->entry, n->text);
	want(b, n);
	return n;
}

int redis_books_add(struct redis_books *b, const char *name, uint64_t cookie)
{
	struct watcher *w = calloc(1, sizeof(*w));

	(void)pthread_mutex_lock(&b->lock);
	struct name *n = w != NULL ? get_name(b, name) : NULL;

	if (n != NULL) {
		w->cookie = cookie;
		LIST_INSERT_HEAD(&n->watchers, w, of_name);
		if (n->is_subscribed) /* it is watched already: so that is hinted at now */
			queue(b, n);
	}
	(void)pthread_mutex_unlock(&b->lock);
	if (n == NULL)
		free(w);
	return n != NULL ? BATON_OK : BATON_E_MEMORY;
}

bool redis_books_remove(struct redis_books *b, const char *name, uint64_t cookie)
{
	bool is_last = false;

	(void)pthread_mutex_lock(&b->lock);
	struct name *n = find_name(b, name);
	struct watcher *w = n != NULL ? LIST_FIRST(&n->watchers) : NULL;

	while (w != NULL && w->cookie != cookie)
		w = LIST_NEXT(w, of_name);
	if (w != NULL) {
		watcher_free(b, w);
		is_last = LIST_EMPTY(&n->watchers);
		if (is_last)
			name_free(b, n);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return is_last;
}

bool redis_books_seen(struct redis_books *b, const char *name, const char *lease, uint64_t left_ns)
{
	bool is_watched = false;

	(void)pthread_mutex_lock(&b->lock);
	struct name *n = find_name(b, name);

	if (n != NULL && lease[0] == '\0') {
		detach(b, n);
		is_watched = n->is_subscribed;
	} else if (n != NULL && left_ns != BATON_STORE_NEVER && attach(b, n, lease)) {
		n->lease->ends_ns = clock_boot_ns() + left_ns;
		hurry(b, n->lease->ends_ns);
		is_watched = n->is_subscribed;
	}
	(void)pthread_mutex_unlock(&b->lock);
	return is_watched;
}

size_t redis_books_leases(struct redis_books *b, char (*ids)[BATON_LEASE_ID_MAX + 1], size_t max)
{
	uint64_t ends_ns[REDIS_SEEN_MAX];
	size_t n = 0;

	if (max > REDIS_SEEN_MAX)
		max = REDIS_SEEN_MAX;
	(void)pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->leases.n_buckets && max > 0; i++) {
		for (struct entry *e = b->leases.buckets[i]; e != NULL; e = e->next) {
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
	(void)pthread_mutex_unlock(&b->lock);
	return n;
}

void redis_books_left(struct redis_books *b, const char *lease, uint64_t left_ns)
{
	(void)pthread_mutex_lock(&b->lock);
	struct lease *l = find_lease(b, lease);

	if (l != NULL) {
		l->ends_ns = clock_boot_ns() + left_ns;
		hurry(b, l->ends_ns);
	}
	(void)pthread_mutex_unlock(&b->lock);
}

/* ---- for the watch lane ---- */

bool redis_books_next(struct redis_books *b, char *name)
{
	(void)pthread_mutex_lock(&b->lock);
	struct name *n = TAILQ_FIRST(&b->wanted);

	if (n != NULL) {
		TAILQ_REMOVE(&b->wanted, n, of_wanted);
		n->is_wanted = false;
		n->is_asked = true;
		(void)memcpy(name, n->text, strlen(n->text) + 1);
	}
	(void)pthread_mutex_unlock(&b->lock);
	return n != NULL;
}

void redis_books_subscribed(struct redis_books *b, const char *name)
{
	(void)pthread_mutex_lock(&b->lock);
	struct name *n = find_name(b, name);

	if (n != NULL && n->is_asked) {
		n->is_asked = false;
		n->is_subscribed = true;
		queue(b, n);
	}
	(void)pthread_mutex_unlock(&b->lock);
}

void redis_books_hint(struct redis_books *b, const char *name)
{
	(void)pthread_mutex_lock(&b->lock);
	struct name *n = find_name(b, name);

	if (n != NULL)
		queue(b, n);
	(void)pthread_mutex_unlock(&b->lock);
}

void redis_books_broken(struct redis_books *b)
{
	(void)pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->names.n_buckets; i++)
		for (struct entry *e = b->names.buckets[i]; e != NULL; e = e->next)
			want(b, (struct name *)e);
	(void)pthread_mutex_unlock(&b->lock);
}

size_t redis_books_take(struct redis_books *b, uint64_t *cookies, size_t max, uint64_t *next_ns)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&b->lock);
	sweep(b, clock_boot_ns());
	while (n < max && !TAILQ_EMPTY(&b->pending)) {
		struct watcher *w = TAILQ_FIRST(&b->pending);

		TAILQ_REMOVE(&b->pending, w, of_queue);
		w->is_pending = false;
		cookies[n++] = w->cookie;
	}
	b->sleeps_ns = n > 0 ? 0 : b->earliest_ns;
	*next_ns = b->earliest_ns;
	(void)pthread_mutex_unlock(&b->lock);
	return n;
}
