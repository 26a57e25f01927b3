/* watch_index.c: see watch_index.h. */
#include "store/watch_index.h"

#include <stdlib.h>
#include <string.h>

struct watcher {
	LIST_ENTRY(watcher) of_name;
	TAILQ_ENTRY(watcher) of_due;
	uint64_t cookie;
	bool is_due;
};

/* ---- names ---- */

int watch_index_init(struct watch_index *x, size_t size)
{
	TAILQ_INIT(&x->due);
	x->size = size;
	return name_table_init(&x->names);
}

void watch_index_done(struct watch_index *x)
{
	struct name_node *node;

	while ((node = name_table_pop(&x->names)) != NULL) {
		struct watched *w = (struct watched *)node;

		for (struct watcher *watcher = LIST_FIRST(&w->watchers), *next; watcher != NULL;
		     watcher = next) {
			next = LIST_NEXT(watcher, of_name);
			free(watcher);
		}
		free(w);
	}
	name_table_done(&x->names);
}

struct watched *watch_index_find(const struct watch_index *x, const char *name)
{
	return (struct watched *)name_table_find(&x->names, name);
}

static struct watched *watched_new(struct watch_index *x, const char *name)
{
	size_t size = strlen(name) + 1;
	struct watched *w = calloc(1, x->size + size);

	if (w == NULL)
		return NULL;
	char *key = (char *)w + x->size;

	(void)memcpy(key, name, size);
	name_table_add(&x->names, &w->node, key);
	return w;
}

struct watched *watch_index_get(struct watch_index *x, const char *name)
{
	struct watched *w = watch_index_find(x, name);

	return w != NULL ? w : watched_new(x, name);
}

struct watched *watch_index_next(const struct watch_index *x, const struct watched *w)
{
	return (struct watched *)name_table_next(&x->names, w != NULL ? &w->node : NULL);
}

void watch_index_drop(struct watch_index *x, struct watched *w)
{
	name_table_remove(&x->names, &w->node);
	free(w);
}

/* ---- who watches them ---- */

static void watcher_tell(struct watch_index *x, struct watcher *watcher)
{
	if (!watcher->is_due)
		TAILQ_INSERT_TAIL(&x->due, watcher, of_due);
	watcher->is_due = true;
}

bool watch_index_watch(struct watch_index *x, struct watched *w, uint64_t cookie, bool is_due)
{
	struct watcher *watcher = calloc(1, sizeof(*watcher));

	if (watcher == NULL)
		return false;
	watcher->cookie = cookie;
	LIST_INSERT_HEAD(&w->watchers, watcher, of_name);
	if (is_due)
		watcher_tell(x, watcher);
	return true;
}

bool watch_index_unwatch(struct watch_index *x, struct watched *w, uint64_t cookie)
{
	struct watcher *watcher = LIST_FIRST(&w->watchers);

	while (watcher != NULL && watcher->cookie != cookie)
		watcher = LIST_NEXT(watcher, of_name);
	if (watcher == NULL)
		return false;
	if (watcher->is_due)
		TAILQ_REMOVE(&x->due, watcher, of_due);
	LIST_REMOVE(watcher, of_name);
	free(watcher);
	return true;
}

bool watch_index_is_watched(const struct watched *w)
{
	return !LIST_EMPTY(&w->watchers);
}

struct watched *watch_index_add(struct watch_index *x, const char *name, uint64_t cookie,
				bool is_due)
{
	struct watched *w = watch_index_find(x, name);
	bool is_new = w == NULL;

	if (is_new)
		w = watched_new(x, name);
	if (w == NULL || watch_index_watch(x, w, cookie, is_due))
		return w;
	if (is_new)
		watch_index_drop(x, w);
	return NULL;
}

/* ---- hints ---- */

void watch_index_hint(struct watch_index *x, const struct watched *w)
{
	for (struct watcher *watcher = LIST_FIRST(&w->watchers); watcher != NULL;
	     watcher = LIST_NEXT(watcher, of_name))
		watcher_tell(x, watcher);
}

void watch_index_hint_all(struct watch_index *x)
{
	for (const struct watched *w = watch_index_next(x, NULL); w != NULL;
	     w = watch_index_next(x, w))
		watch_index_hint(x, w);
}

bool watch_index_has_hints(const struct watch_index *x)
{
	return !TAILQ_EMPTY(&x->due);
}

/* Takes the next watcher that is due off the list of due ones; NULL: none is due. */
static const struct watcher *due_next(struct watch_index *x)
{
	struct watcher *watcher = TAILQ_FIRST(&x->due);

	if (watcher == NULL)
		return NULL;
	TAILQ_REMOVE(&x->due, watcher, of_due);
	watcher->is_due = false;
	return watcher;
}

size_t watch_index_take(struct watch_index *x, uint64_t *cookies, size_t max)
{
	const struct watcher *watcher;
	size_t n = 0;

	while (n < max && (watcher = due_next(x)) != NULL)
		cookies[n++] = watcher->cookie;
	return n;
}

void watch_index_forget_hints(struct watch_index *x)
{
	while (due_next(x) != NULL)
		;
}
