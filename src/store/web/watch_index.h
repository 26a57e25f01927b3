/*
 * watch_index.h: the watchers of each name, and which watchers are to get a hint. It is for stores
 * whose watch covers all names at once (a prefix, a label). Any thread may call it; its lock is
 * held for a few instructions.
 *
 * The watch is live or not. When it becomes live, all names get a hint; and a name that is added
 * while it is live gets one, too: subscribe, then look.
 */
#ifndef BATON_WEB_WATCH_INDEX_H
#define BATON_WEB_WATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct baton_leadership;
struct web_index;

/* note_size: the size of the struct that a driver keeps with each name; 0: nothing. */
struct web_index *web_index_new(size_t note_size);
void web_index_free(struct web_index *h);

/* False: no memory. */
bool web_index_add(struct web_index *h, const char *name, uint64_t cookie);
void web_index_remove(struct web_index *h, const char *name, uint64_t cookie);
void web_index_set_live(struct web_index *h, bool is_live);
/* Something about that name, or about any name, may have changed. */
void web_index_hint(struct web_index *h, const char *name);
void web_index_hint_all(struct web_index *h);
/* Takes the cookies of watchers with a hint; 0: there is none. */
size_t web_index_take(struct web_index *h, uint64_t *cookies, size_t max);
/* Whether every change of that name from now on causes a hint. */
bool web_index_is_watched(struct web_index *h, const char *name);
bool web_index_is_live(struct web_index *h);
/* Whether that name is watched, even if the watch is not live now. */
bool web_index_has(struct web_index *h, const char *name);
/* If exactly one name is watched, and fits into `size` bytes with its NUL: copies it. */
bool web_index_only(struct web_index *h, char *name, size_t size);

/* What a driver keeps with a name while the name is watched: zeros at first, and zeros for a name
 * that isn't watched. False: the name isn't watched. */
bool web_index_get(struct web_index *h, const char *name, void *note);
bool web_index_set(struct web_index *h, const char *name, const void *note);

/* The leadership of another program that was last seen. It is kept while the name is watched and
 * until a candidate of ours leads, which then writes it down. NULL: none. If there is no memory for
 * it, it is forgotten. */
void web_index_set_foreign(struct web_index *h, const char *name,
			   const struct baton_leadership *foreign);
/* False: no such leadership is known. */
bool web_index_get_foreign(struct web_index *h, const char *name, struct baton_leadership *out);

#pragma GCC visibility pop

#endif
