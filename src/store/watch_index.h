/*
 * watch_index.h: which names are watched, who watches them, and which watchers are to get a hint.
 * Every driver that gives hints uses it. A driver's own struct for a name begins with struct
 * watched, and also holds whatever the driver keeps with the name.
 *
 * Nothing here locks: a driver has a lock already, or uses one thread only.
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
	struct watchers watchers; /* empty: the name is known, but not watched */
};

struct watch_index {
	struct name_table names; /* of struct watched */
	struct watchers_due due;
	size_t size;
};

/* size: that of the driver's struct. 0, or -1: no memory. */
int watch_index_init(struct watch_index *x, size_t size);
/* Frees the names as well, but nothing that they point to. */
void watch_index_done(struct watch_index *x);

/* NULL: the name isn't known. */
struct watched *watch_index_find(const struct watch_index *x, const char *name);
/* Finds or makes the name. In a new one everything behind struct watched is zero. NULL: no
 * memory. */
struct watched *watch_index_get(struct watch_index *x, const char *name);
/* The name after `w`, or the first one if `w` is NULL; NULL at the end. The caller may drop `w`
 * then. */
struct watched *watch_index_next(const struct watch_index *x, const struct watched *w);
/* Only for a name without watchers. */
void watch_index_drop(struct watch_index *x, struct watched *w);

/* is_due: the new watcher gets a hint at once. False: no memory. */
bool watch_index_watch(struct watch_index *x, struct watched *w, uint64_t cookie, bool is_due);
/* False: the name has no watcher with that cookie. */
bool watch_index_unwatch(struct watch_index *x, struct watched *w, uint64_t cookie);
bool watch_index_is_watched(const struct watched *w);
/* Finds or makes the name, and watches it; NULL: no memory. */
struct watched *watch_index_add(struct watch_index *x, const char *name, uint64_t cookie,
				bool is_due);

/* Something about that name, or about any name, may have changed. */
void watch_index_hint(struct watch_index *x, const struct watched *w);
void watch_index_hint_all(struct watch_index *x);
bool watch_index_has_hints(const struct watch_index *x);
/* Takes the cookies of watchers with a hint, in the order in which the hints came; 0: there is
 * none. Each cookie comes once, however many hints there were. */
size_t watch_index_take(struct watch_index *x, uint64_t *cookies, size_t max);
/* Drops all hints: the watchers learn of the changes in another way. */
void watch_index_forget_hints(struct watch_index *x);

#pragma GCC visibility pop

#endif
