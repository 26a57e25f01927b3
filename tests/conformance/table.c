/*
 * table.c: see table.h. A line of the file is `scheme case reason...`; # begins a comment. A line
 * for a case that doesn't exist is an error, so that the table can't grow stale.
 */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct entry *const groups[] = {
	cases_basic,  cases_events, cases_work,   cases_crash,   cases_terms,
	cases_orders, cases_names,  cases_faults, cases_losses,  cases_options,
	cases_scale,  cases_oracle, cases_drain,  cases_listing,
};

/* C2 before C10, C27 before N1, words last. */
static int rank(const struct entry *e)
{
	int letter = e->id[0] == 'C' ? 0 : e->id[0] == 'N' ? 1000 : 2000;

	return letter + (int)strtol(e->id + 1, NULL, 10);
}

static int by_rank(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;

	return rank(x) != rank(y) ? rank(x) - rank(y) : strcmp(x->id, y->id);
}

size_t table_cases(const struct entry **list)
{
	size_t n = 0;

	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		for (const struct entry *e = groups[g]; e->id != NULL && n < CASES_MAX; e++)
			list[n++] = e;
	}
	qsort(list, n, sizeof(const struct entry *), by_rank);
	return n;
}

static bool is_case(const char *id)
{
	const struct entry *list[CASES_MAX] = {NULL};
	size_t n = table_cases(list);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i]->id, id) == 0)
			return true;
	}
	return false;
}

static bool read_line(struct exemptions *x, const char *line)
{
	struct exemption *e = &x->list[x->n];

	if (line[strspn(line, " \t\n")] == '\0' || line[0] == '#')
		return true;
	if (x->n == sizeof(x->list) / sizeof(x->list[0]) ||
	    sscanf(line, "%31s %15s %199[^\n]", e->scheme, e->id, e->reason) != 3 ||
	    !is_case(e->id))
		return false;
	x->n++;
	return true;
}

bool table_read(struct exemptions *x, const char *path, char *err, size_t size)
{
	FILE *file = fopen(path, "re");
	char line[400];
	bool ok = true;

	x->n = 0;
	if (file == NULL) {
		snprintf(err, size, "can't read %s: say where it is with --table", path);
		return false;
	}
	while (ok && fgets(line, sizeof(line), file) != NULL)
		ok = read_line(x, line);
	fclose(file);
	if (!ok)
		snprintf(err, size,
			 "%s: not \"scheme case reason\" of a case that there is: %.200s", path,
			 line);
	return ok;
}

const char *table_reason(const struct exemptions *x, const char *scheme, const char *id)
{
	for (size_t i = 0; i < x->n; i++) {
		if (strcmp(x->list[i].scheme, scheme) == 0 && strcmp(x->list[i].id, id) == 0)
			return x->list[i].reason;
	}
	return NULL;
}
