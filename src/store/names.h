/*
 * names.h: makes one page of names, sorted by their bytes, out of names in any order. It is for
 * stores that list what they have but can't sort it. It keeps two pages of names at most, however
 * many names there are.
 */
#ifndef BATON_STORE_NAMES_H
#define BATON_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

struct store_names {
	const char *prefix; /* only those that begin with it ... */
	const char *after;  /* ... and come after this one */
	size_t max;
	char **list;
	size_t n;
	bool failed; /* there was no memory, so the list is not complete */
};

/* Whether a name has the prefix and comes after `after`. */
bool store_names_want(const struct store_names *names, const char *name);
/* Takes a name if it is wanted; see store_names_want(). */
void store_names_add(struct store_names *names, const char *name);
/* Sorts what was taken, without doubles, and cuts it to the page. */
void store_names_sort(struct store_names *names);
/* Calls found() for each name of the page. 0, or -1: there was no memory for the page. */
int store_names_tell(struct store_names *names, void (*found)(void *arg, const char *name),
		     void *arg);
void store_names_done(struct store_names *names);

#pragma GCC visibility pop

#endif
