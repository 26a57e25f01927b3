/*
 * watch_index.h: who watches which name, and which of them are to be told, for stores whose watch
 * covers all names at once (a prefix, a label). Any thread; a lock is held for a few instructions.
 *
 * The watch is live or not. When it becomes live, and when a name is added while it is, a hint is
 * due: subscribe, then look.
 */
#ifndef BATON_WATCH_INDEX_H
#define BATON_WATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct watch_index;

/* note_size: of what a driver keeps with a name, a struct of its own; 0: nothing. */
struct watch_index *watch_index_new(size_t note_size);
void watch_index_free(struct watch_index *h);

/* False: no memory. */
bool watch_index_add(struct watch_index *h, const char *name, uint64_t cookie);
void watch_index_remove(struct watch_index *h, const char *name, uint64_t cookie);
void watch_index_set_live(struct watch_index *h, bool is_live);
/* Something about that name, or about any of them, may have changed. */
void watch_index_name(struct watch_index *h, const char *name);
void watch_index_all(struct watch_index *h);
/* Takes those that are due; 0: none. */
size_t watch_index_take(struct watch_index *h, uint64_t *cookies, size_t max);
/* Whatever happens to that name from now on will be hinted at. */
bool watch_index_is_watched(struct watch_index *h, const char *name);
bool watch_index_is_live(struct watch_index *h);
/* Whether somebody watches that name, now or when it is live; and the only one that is, if it is
 * one: of no more than `size` bytes with its end. */
bool watch_index_has(struct watch_index *h, const char *name);
bool watch_index_only(struct watch_index *h, char *name, size_t size);

/* What a driver keeps with a name, as long as the name is watched; zeros at first, and for a name
 * that isn't watched. False: it isn't. */
bool watch_index_get(struct watch_index *h, const char *name, void *note);
bool watch_index_set(struct watch_index *h, const char *name, const void *note);

#pragma GCC visibility pop

#endif
