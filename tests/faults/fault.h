/*
 * fault.h: makes the library's calls of the system fail.
 *
 * The library is linked a second time with its references to malloc(), openat() and their like
 * renamed (symbols.txt, by objcopy), so that they end here. What the tests themselves call is not
 * touched. Nothing fails until a test says so: one call, or a few of all, chosen by a seed.
 */
#ifndef BATON_TEST_FAULT_H
#define BATON_TEST_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
	FAULT_MEMORY,      /* ENOMEM */
	FAULT_DESCRIPTORS, /* EMFILE, ENFILE; and the limits of inotify */
	FAULT_DISK,        /* ENOSPC, EDQUOT, EIO, and EIO of what was done all the same */
	FAULT_SYNC,        /* EIO */
	FAULT_READ,        /* EIO */
	FAULT_THREADS,     /* EAGAIN */
	FAULT_KINDS,
};

extern const char *const fault_names[FAULT_KINDS];

/* From now on the n-th call of that kind fails, once; 0: none does. */
void fault_nth(enum fault_kind kind, uint64_t n);
/* Whether it has, and which call that was. NULL: not yet. */
const char *fault_fired(void);
/* From now on so many of a million calls of all kinds fail; 0: none does. */
void fault_random(uint64_t seed, uint32_t per_million);
/* How many have failed so far. */
uint64_t fault_count(void);

#endif
