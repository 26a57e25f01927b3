/*
 * hints.h: who watches which name, and which of them are to be told, for stores whose watch covers
 * all names at once (a prefix, a label). Any thread; a lock is held for a few instructions.
 *
 * The watch is live or not. When it becomes live, and when a name is added while it is, a hint is
 * due: subscribe, then look.
 */
#ifndef BATON_HINTS_H
#define BATON_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define HINTS_NOTES 7

struct hints;

struct hints *hints_new(void);
void hints_free(struct hints *h);

/* False: no memory. */
bool hints_add(struct hints *h, const char *name, uint64_t cookie);
void hints_remove(struct hints *h, const char *name, uint64_t cookie);
void hints_set_live(struct hints *h, bool is_live);
/* Something about that name, or about any of them, may have changed. */
void hints_name(struct hints *h, const char *name);
void hints_all(struct hints *h);
/* Takes those that are due; 0: none. */
size_t hints_take(struct hints *h, uint64_t *cookies, size_t max);
/* Whatever happens to that name from now on will be hinted at. */
bool hints_is_watched(struct hints *h, const char *name);
bool hints_is_live(struct hints *h);
/* Whether somebody watches that name, now or when it is live; and the only one that is, if it is
 * one: of no more than `size` bytes with its end. */
bool hints_has(struct hints *h, const char *name);
bool hints_only(struct hints *h, char *name, size_t size);

/* A few numbers that a driver keeps with a name, as long as it is watched; zeros at first. False:
 * it isn't. */
bool hints_get(struct hints *h, const char *name, uint64_t notes[HINTS_NOTES]);
bool hints_set(struct hints *h, const char *name, const uint64_t notes[HINTS_NOTES]);

#pragma GCC visibility pop

#endif
