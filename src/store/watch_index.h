/*
 * watch_index.h: which names are watched, by whom, and who is to be told: one for every driver that
 * gives hints. A driver's own struct for a name begins with struct watched, and has whatever else
 * the driver keeps with it.
 *
 * Nothing here locks: a driver has a lock already, or one thread alone.
 */
#ifndef BATON_STORE_WATCH_INDEX_H
#define BATON_STORE_WATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/name_table.h"

#pragma GCC visibility push(hidden)

struct watcher;

LIST_HEAD(watchers, watcher);
TAILQ_HEAD(watchers_due, watcher);

/* The first member of what a driver knows of a name. The name is node.key. */
struct watched {
	struct name_node node;
	struct watchers watchers; /* empty: it is known, but nobody watches it */
};

struct watch_index {
	struct name_table names; /* of struct watched */
	struct watchers_due due;
	size_t size;
};

/* size: of the driver's struct. 0, or -1: no memory. */
int watch_index_init(struct watch_index *x, size_t size);
/* Frees the names, too, and nothing that they point to. */
void watch_index_done(struct watch_index *x);

/* NULL: it isn't known. */
struct watched *watch_index_find(const struct watch_index *x, const char *name);
/* Makes one, where there is none: all zeros behind struct watched. NULL: no memory. */
struct watched *watch_index_get(struct watch_index *x, const char *name);
/* The one after `w`, the first after NULL; NULL at the end. `w` may be dropped after that. */
struct watched *watch_index_next(const struct watch_index *x, const struct watched *w);
/* Nobody may watch it. */
void watch_index_drop(struct watch_index *x, struct watched *w);

/* is_due: a hint is to be given at once. False: no memory. */
bool watch_index_watch(struct watch_index *x, struct watched *w, uint64_t cookie, bool is_due);
/* False: nobody watches it with that cookie. */
bool watch_index_unwatch(struct watch_index *x, struct watched *w, uint64_t cookie);
bool watch_index_is_watched(const struct watched *w);
/* Finds or makes the name, and watches it; NULL: no memory. */
struct watched *watch_index_add(struct watch_index *x, const char *name, uint64_t cookie,
				bool is_due);

/* Something about that name, or about any of them, may have changed. */
void watch_index_hint(struct watch_index *x, const struct watched *w);
void watch_index_hint_all(struct watch_index *x);
bool watch_index_has_hints(const struct watch_index *x);
/* Takes those that are due, in the order in which they became so; 0: none. Each cookie stands there
 * once, however many hints there were. */
size_t watch_index_take(struct watch_index *x, uint64_t *cookies, size_t max);
/* All are told by something else. */
void watch_index_forget_hints(struct watch_index *x);

#pragma GCC visibility pop

#endif
