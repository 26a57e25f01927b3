/*
 * memory.h: what a test does to the native locks of memory+record:NAME?locks=..., as other programs
 * and administrators would.
 */
#ifndef BATON_RECORD_MEMORY_H
#define BATON_RECORD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Another program takes the lock of that election; false: somebody has it. */
bool memory_lock_take(const char *store, const char *name);
/* Whoever is refused is told that it is free in so long. */
void memory_lock_free_in(const char *store, const char *name, uint64_t ns);
/* Whoever has the lock loses it: its time is over, or somebody has ended its session. */
void memory_lock_end(const char *store, const char *name);
/* Whether anybody has it. */
bool memory_lock_is_taken(const char *store, const char *name);

#endif
