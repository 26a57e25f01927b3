/*
 * names.c: see names.h.
 */
#include "store/names.h"

#include <stdlib.h>
#include <string.h>

bool store_names_want(const struct store_names *names, const char *name)
{
	return strncmp(name, names->prefix, strlen(names->prefix)) == 0 &&
	       strcmp(name, names->after) > 0;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void store_names_sort(struct store_names *names)
{
	size_t n = 0;

	if (names->n > 1)
		qsort(names->list, names->n, sizeof(names->list[0]), by_bytes);
	for (size_t i = 0; i < names->n; i++) {
		if (n == names->max || (n > 0 && strcmp(names->list[n - 1], names->list[i]) == 0))
			free(names->list[i]);
		else
			names->list[n++] = names->list[i];
	}
	names->n = n;
}

void store_names_add(struct store_names *names, const char *name)
{
	if (names->failed || names->max == 0 || !store_names_want(names, name))
		return;
	if (names->list == NULL)
		names->list = calloc(names->max, 2 * sizeof(names->list[0]));
	char *copy = names->list != NULL ? strdup(name) : NULL;

	if (copy == NULL) {
		names->failed = true;
		return;
	}
	names->list[names->n++] = copy;
	if (names->n == 2 * names->max)
		store_names_sort(names);
}

int store_names_tell(struct store_names *names, void (*found)(void *arg, const char *name),
		     void *arg)
{
	if (names->failed)
		return -1;
	store_names_sort(names);
	for (size_t i = 0; i < names->n; i++)
		found(arg, names->list[i]);
	return 0;
}

void store_names_done(struct store_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
	names->list = NULL;
	names->n = 0;
}
