/*
 * watch_index.c: see watch_index.h. A table of names; of each, who watches it; and a queue of who
 * is told.
 */
#include "store/web/watch_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define FIRST_BUCKETS 64

TAILQ_HEAD(queue, watcher);
LIST_HEAD(watchers, watcher);

struct watcher {
	LIST_ENTRY(watcher) of_name;
	TAILQ_ENTRY(watcher) of_queue;
	uint64_t cookie;
	bool is_due;
};

struct name {
	struct name *next; /* in its bucket */
	struct watchers watchers;
	uint64_t hash;
	char *text;
	uint64_t note[]; /* of note_size bytes; the text stands behind it */
};

struct watch_index {
	pthread_mutex_t lock;
	struct name **buckets;
	size_t n_buckets;
	size_t n_names;
	size_t note_size;
	struct queue due;
	bool is_live;
};

struct watch_index *watch_index_new(size_t note_size)
{
	struct watch_index *h = calloc(1, sizeof(*h));

	if (h != NULL)
		h->buckets = calloc(FIRST_BUCKETS, sizeof(struct name *));
	if (h == NULL || h->buckets == NULL || pthread_mutex_init(&h->lock, NULL) != 0) {
		if (h != NULL)
			free(h->buckets);
		free(h);
		return NULL;
	}
	h->n_buckets = FIRST_BUCKETS;
	h->note_size = note_size;
	TAILQ_INIT(&h->due);
	return h;
}

static void name_free(struct name *n)
{
	struct watcher *next;

	for (struct watcher *w = LIST_FIRST(&n->watchers); w != NULL; w = next) {
		next = LIST_NEXT(w, of_name);
		free(w);
	}
	free(n);
}

void watch_index_free(struct watch_index *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->n_buckets; i++) {
		for (struct name *n = h->buckets[i], *next; n != NULL; n = next) {
			next = n->next;
			name_free(n);
		}
	}
	free(h->buckets);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

/* ---- with the lock held ---- */

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 5381;

	for (; *text != '\0'; text++)
		hash = hash * 33 + (unsigned char)*text;
	return hash;
}

static struct name **name_find(struct watch_index *h, const char *text)
{
	uint64_t hash = hash_of(text);
	struct name **at = &h->buckets[hash & (h->n_buckets - 1)];

	while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->text, text) != 0))
		at = &(*at)->next;
	return at;
}

/* No memory for it: then it gets slower, that is all. */
static void index_grow(struct watch_index *h)
{
	size_t size = 2 * h->n_buckets;
	struct name **buckets = h->n_names >= h->n_buckets ? calloc(size, sizeof(*buckets)) : NULL;

	if (buckets == NULL)
		return;
	for (size_t i = 0; i < h->n_buckets; i++) {
		for (struct name *n = h->buckets[i], *next; n != NULL; n = next) {
			struct name **to = &buckets[n->hash & (size - 1)];

			next = n->next;
			n->next = *to;
			*to = n;
		}
	}
	free(h->buckets);
	h->buckets = buckets;
	h->n_buckets = size;
}

static struct name *name_get(struct watch_index *h, const char *text)
{
	struct name *n = *name_find(h, text);
	size_t size = strlen(text) + 1;

	if (n != NULL)
		return n;
	index_grow(h);
	n = calloc(1, sizeof(*n) + h->note_size + size);
	if (n == NULL)
		return NULL;
	n->text = (char *)n->note + h->note_size;
	(void)memcpy(n->text, text, size);
	n->hash = hash_of(text);
	struct name **at = name_find(h, text);

	*at = n;
	h->n_names++;
	return n;
}

static void watcher_tell(struct watch_index *h, struct watcher *w)
{
	if (!w->is_due)
		TAILQ_INSERT_TAIL(&h->due, w, of_queue);
	w->is_due = true;
}

static void name_tell(struct watch_index *h, const struct name *n)
{
	for (struct watcher *w = LIST_FIRST(&n->watchers); w != NULL; w = LIST_NEXT(w, of_name))
		watcher_tell(h, w);
}

static void index_tell_all(struct watch_index *h)
{
	for (size_t i = 0; i < h->n_buckets; i++)
		for (const struct name *n = h->buckets[i]; n != NULL; n = n->next)
			name_tell(h, n);
}

/* ---- the functions ---- */

bool watch_index_add(struct watch_index *h, const char *name, uint64_t cookie)
{
	struct watcher *w = calloc(1, sizeof(*w));

	(void)pthread_mutex_lock(&h->lock);
	struct name *n = w != NULL ? name_get(h, name) : NULL;

	if (n != NULL) {
		w->cookie = cookie;
		LIST_INSERT_HEAD(&n->watchers, w, of_name);
		if (h->is_live)
			watcher_tell(h, w);
	}
	(void)pthread_mutex_unlock(&h->lock);
	if (n == NULL)
		free(w);
	return n != NULL;
}

void watch_index_remove(struct watch_index *h, const char *name, uint64_t cookie)
{
	(void)pthread_mutex_lock(&h->lock);
	struct name **at = name_find(h, name);
	struct name *n = *at;
	struct watcher *w = n != NULL ? LIST_FIRST(&n->watchers) : NULL;

	while (w != NULL && w->cookie != cookie)
		w = LIST_NEXT(w, of_name);
	if (w != NULL) {
		if (w->is_due)
			TAILQ_REMOVE(&h->due, w, of_queue);
		LIST_REMOVE(w, of_name);
		free(w);
		if (LIST_EMPTY(&n->watchers)) {
			*at = n->next;
			h->n_names--;
			free(n);
		}
	}
	(void)pthread_mutex_unlock(&h->lock);
}

void watch_index_set_live(struct watch_index *h, bool is_live)
{
	(void)pthread_mutex_lock(&h->lock);
	if (is_live && !h->is_live)
		index_tell_all(h);
	h->is_live = is_live;
	(void)pthread_mutex_unlock(&h->lock);
}

void watch_index_name(struct watch_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct name *n = *name_find(h, name);

	if (n != NULL)
		name_tell(h, n);
	(void)pthread_mutex_unlock(&h->lock);
}

void watch_index_all(struct watch_index *h)
{
	(void)pthread_mutex_lock(&h->lock);
	index_tell_all(h);
	(void)pthread_mutex_unlock(&h->lock);
}

size_t watch_index_take(struct watch_index *h, uint64_t *cookies, size_t max)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&h->lock);
	while (n < max && !TAILQ_EMPTY(&h->due)) {
		struct watcher *w = TAILQ_FIRST(&h->due);

		TAILQ_REMOVE(&h->due, w, of_queue);
		w->is_due = false;
		cookies[n++] = w->cookie;
	}
	(void)pthread_mutex_unlock(&h->lock);
	return n;
}

bool watch_index_is_watched(struct watch_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	bool is_watched = h->is_live && *name_find(h, name) != NULL;

	(void)pthread_mutex_unlock(&h->lock);
	return is_watched;
}

bool watch_index_is_live(struct watch_index *h)
{
	(void)pthread_mutex_lock(&h->lock);
	bool is_live = h->is_live;

	(void)pthread_mutex_unlock(&h->lock);
	return is_live;
}

bool watch_index_has(struct watch_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	bool has = *name_find(h, name) != NULL;

	(void)pthread_mutex_unlock(&h->lock);
	return has;
}

bool watch_index_only(struct watch_index *h, char *name, size_t size)
{
	const struct name *only = NULL;

	(void)pthread_mutex_lock(&h->lock);
	for (size_t i = 0; h->n_names == 1 && i < h->n_buckets && only == NULL; i++)
		only = h->buckets[i];
	size_t n = only != NULL ? strlen(only->text) + 1 : size + 1;

	if (n <= size)
		(void)memcpy(name, only->text, n);
	(void)pthread_mutex_unlock(&h->lock);
	return n <= size;
}

bool watch_index_get(struct watch_index *h, const char *name, void *note)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct name *n = *name_find(h, name);

	if (n != NULL)
		(void)memcpy(note, n->note, h->note_size);
	else
		(void)memset(note, 0, h->note_size);
	(void)pthread_mutex_unlock(&h->lock);
	return n != NULL;
}

bool watch_index_set(struct watch_index *h, const char *name, const void *note)
{
	(void)pthread_mutex_lock(&h->lock);
	struct name *n = *name_find(h, name);

	if (n != NULL)
		(void)memcpy(n->note, note, h->note_size);
	(void)pthread_mutex_unlock(&h->lock);
	return n != NULL;
}
