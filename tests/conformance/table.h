/*
 * table.h: the list of all cases, and the checked-in table of those that a store can't have.
 */
#ifndef BATON_CONFORMANCE_TABLE_H
#define BATON_CONFORMANCE_TABLE_H

#include "suite.h"

#define CASES_MAX 128

/* All cases, in the order of the list; how many there are. */
size_t table_cases(const struct entry **list);

/* Why the store of that scheme can't have a case; NULL: it can. */
struct exemption {
	char scheme[32];
	char id[16];
	char reason[200];
};

struct exemptions {
	struct exemption list[256];
	size_t n;
};

/* False: the file can't be read, or names a case that there isn't; err says what. */
bool table_read(struct exemptions *x, const char *path, char *err, size_t size);
const char *table_reason(const struct exemptions *x, const char *scheme, const char *id);

#endif
