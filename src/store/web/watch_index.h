/*
 * watch_index.h: who watches which name, and which of them are to be told, for stores whose watch
 * covers all names at once (a prefix, a label). Any thread; a lock is held for a few instructions.
 *
 * The watch is live or not. When it becomes live, and when a name is added while it is, a hint is
 * due: subscribe, then look.
 */
#ifndef BATON_WEB_WATCH_INDEX_H
#define BATON_WEB_WATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct baton_leadership;
struct web_index;

/* note_size: of what a driver keeps with a name, a struct of its own; 0: nothing. */
struct web_index *web_index_new(size_t note_size);
void web_index_free(struct web_index *h);

/* False: no memory. */
bool web_index_add(struct web_index *h, const char *name, uint64_t cookie);
void web_index_remove(struct web_index *h, const char *name, uint64_t cookie);
void web_index_set_live(struct web_index *h, bool is_live);
/* Something about that name, or about any of them, may have changed. */
void web_index_hint(struct web_index *h, const char *name);
void web_index_hint_all(struct web_index *h);
/* Takes those that are due; 0: none. */
size_t web_index_take(struct web_index *h, uint64_t *cookies, size_t max);
/* Whatever happens to that name from now on will be hinted at. */
bool web_index_is_watched(struct web_index *h, const char *name);
bool web_index_is_live(struct web_index *h);
/* Whether somebody watches that name, now or when it is live; and the only one that is, if it is
 * one: of no more than `size` bytes with its end. */
bool web_index_has(struct web_index *h, const char *name);
bool web_index_only(struct web_index *h, char *name, size_t size);

/* What a driver keeps with a name, as long as the name is watched; zeros at first, and for a name
 * that isn't watched. False: it isn't. */
bool web_index_get(struct web_index *h, const char *name, void *note);
bool web_index_set(struct web_index *h, const char *name, const void *note);

/* Which leadership of another program was last seen, as long as the name is watched and nobody of
 * ours has led since: the next of ours writes it down. NULL: none. Whoever finds no memory for it
 * forgets it. */
void web_index_set_foreign(struct web_index *h, const char *name,
			   const struct baton_leadership *foreign);
/* False: none is known. */
bool web_index_get_foreign(struct web_index *h, const char *name, struct baton_leadership *out);

#pragma GCC visibility pop

#endif
