/* watch_index.c: see watch_index.h. */
#include "store/web/watch_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "baton-store.h"
#include "store/watch_index.h"

struct web_name {
	struct watched watched;
	struct baton_leadership *foreign; /* NULL: none was seen */
	uint64_t note[];                  /* of note_size bytes */
};

struct web_index {
	pthread_mutex_t lock;
	struct watch_index names; /* of struct web_name */
	size_t note_size;
	bool is_live;
};

struct web_index *web_index_new(size_t note_size)
{
	struct web_index *h = calloc(1, sizeof(*h));

	if (h == NULL || pthread_mutex_init(&h->lock, NULL) != 0) {
		free(h);
		return NULL;
	}
	h->note_size = note_size;
	if (watch_index_init(&h->names, sizeof(struct web_name) + note_size) != 0) {
		web_index_free(h);
		return NULL;
	}
	return h;
}

void web_index_free(struct web_index *h)
{
	if (h == NULL)
		return;
	for (struct watched *w = watch_index_next(&h->names, NULL); w != NULL;
	     w = watch_index_next(&h->names, w))
		free(((struct web_name *)w)->foreign);
	watch_index_done(&h->names);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

bool web_index_add(struct web_index *h, const char *name, uint64_t cookie)
{
	(void)pthread_mutex_lock(&h->lock);
	bool is_added = watch_index_add(&h->names, name, cookie, h->is_live) != NULL;

	(void)pthread_mutex_unlock(&h->lock);
	return is_added;
}

void web_index_remove(struct web_index *h, const char *name, uint64_t cookie)
{
	(void)pthread_mutex_lock(&h->lock);
	struct watched *w = watch_index_find(&h->names, name);

	if (w != NULL && watch_index_unwatch(&h->names, w, cookie) && !watch_index_is_watched(w)) {
		free(((struct web_name *)w)->foreign);
		watch_index_drop(&h->names, w);
	}
	(void)pthread_mutex_unlock(&h->lock);
}

void web_index_set_live(struct web_index *h, bool is_live)
{
	(void)pthread_mutex_lock(&h->lock);
	if (is_live && !h->is_live)
		watch_index_hint_all(&h->names);
	h->is_live = is_live;
	(void)pthread_mutex_unlock(&h->lock);
}

void web_index_hint(struct web_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct watched *w = watch_index_find(&h->names, name);

	if (w != NULL)
		watch_index_hint(&h->names, w);
	(void)pthread_mutex_unlock(&h->lock);
}

void web_index_hint_all(struct web_index *h)
{
	(void)pthread_mutex_lock(&h->lock);
	watch_index_hint_all(&h->names);
	(void)pthread_mutex_unlock(&h->lock);
}

size_t web_index_take(struct web_index *h, uint64_t *cookies, size_t max)
{
	(void)pthread_mutex_lock(&h->lock);
	size_t n = watch_index_take(&h->names, cookies, max);

	(void)pthread_mutex_unlock(&h->lock);
	return n;
}

bool web_index_is_watched(struct web_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	bool is_watched = h->is_live && watch_index_find(&h->names, name) != NULL;

	(void)pthread_mutex_unlock(&h->lock);
	return is_watched;
}

bool web_index_is_live(struct web_index *h)
{
	(void)pthread_mutex_lock(&h->lock);
	bool is_live = h->is_live;

	(void)pthread_mutex_unlock(&h->lock);
	return is_live;
}

bool web_index_has(struct web_index *h, const char *name)
{
	(void)pthread_mutex_lock(&h->lock);
	bool has = watch_index_find(&h->names, name) != NULL;

	(void)pthread_mutex_unlock(&h->lock);
	return has;
}

bool web_index_only(struct web_index *h, char *name, size_t size)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct watched *only =
		h->names.names.n == 1 ? watch_index_next(&h->names, NULL) : NULL;
	bool fits = only != NULL && strlen(only->node.key) < size;

	if (fits)
		(void)memcpy(name, only->node.key, strlen(only->node.key) + 1);
	(void)pthread_mutex_unlock(&h->lock);
	return fits;
}

bool web_index_get(struct web_index *h, const char *name, void *note)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct watched *w = watch_index_find(&h->names, name);

	if (w != NULL)
		(void)memcpy(note, ((const struct web_name *)w)->note, h->note_size);
	else
		(void)memset(note, 0, h->note_size);
	(void)pthread_mutex_unlock(&h->lock);
	return w != NULL;
}

bool web_index_set(struct web_index *h, const char *name, const void *note)
{
	(void)pthread_mutex_lock(&h->lock);
	struct watched *w = watch_index_find(&h->names, name);

	if (w != NULL)
		(void)memcpy(((struct web_name *)w)->note, note, h->note_size);
	(void)pthread_mutex_unlock(&h->lock);
	return w != NULL;
}

void web_index_set_foreign(struct web_index *h, const char *name,
			   const struct baton_leadership *foreign)
{
	(void)pthread_mutex_lock(&h->lock);
	struct web_name *w = (struct web_name *)watch_index_find(&h->names, name);

	if (w != NULL && foreign == NULL) {
		free(w->foreign);
		w->foreign = NULL;
	} else if (w != NULL) {
		if (w->foreign == NULL)
			w->foreign = malloc(sizeof(*w->foreign));
		if (w->foreign != NULL)
			*w->foreign = *foreign;
	}
	(void)pthread_mutex_unlock(&h->lock);
}

bool web_index_get_foreign(struct web_index *h, const char *name, struct baton_leadership *out)
{
	(void)pthread_mutex_lock(&h->lock);
	const struct web_name *w = (const struct web_name *)watch_index_find(&h->names, name);
	bool is_known = w != NULL && w->foreign != NULL;

	if (is_known)
		*out = *w->foreign;
	(void)pthread_mutex_unlock(&h->lock);
	return is_known;
}
