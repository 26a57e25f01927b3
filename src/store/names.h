/*
 * names.h: one page of names in the order of their bytes, taken from names in any order: for stores
 * that tell what they have and can't sort it. However many there are, it keeps two pages at most.
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
	bool failed; /* there was no memory: what it would tell is not the page */
};

/* Whether a name belongs to what is asked for. */
bool store_names_want(const struct store_names *names, const char *name);
/* Takes a name if it is wanted. */
void store_names_add(struct store_names *names, const char *name);
/* Sorts what was taken, without doubles, and cuts it to the page. */
void store_names_sort(struct store_names *names);
/* Calls found() for each of the page. 0, or -1: there was no memory for it. */
int store_names_tell(struct store_names *names, void (*found)(void *arg, const char *name),
		     void *arg);
void store_names_done(struct store_names *names);

#pragma GCC visibility pop

#endif
