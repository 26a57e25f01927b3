/*
 * setup.c: the worlds that are searched, smallest first. Those with a depth are too large to be
 * searched to their end; they say so, and don't count as complete.
 *
 * "2, 1, 3" is two candidates, one election, three leases at once: as many as anybody remembers,
 * or has a record of. A lease that neither is true of is forgotten, and its number is free.
 */
#include "model/record/model.h"

#define SIZE(c, e, l) .cands = (c), .elections = (e), .leases = (l), .ttl = 2, .last = 2
#define CRASH .crashes = true
#define ALL .crashes = true, .closes = true, .orders = true
#define LATE .strays = 1

static const struct setup small_worlds[] = {
	{"2, 1, 3", SIZE(2, 1, 3), ALL},
	{"2, 1, 2, one write at a time is late", SIZE(2, 1, 2), ALL, LATE},
	{"2, 1, 2, with drift", SIZE(2, 1, 2), CRASH, .drifts = true},
	{"2, 1, 2, living leases' records are deleted", SIZE(2, 1, 2), CRASH, .deletes = true},
	{"2, 1, 2, sweepers by their own sight", SIZE(2, 1, 2), CRASH, .sweeps = true},
	{"2, 1, 2, pauses", SIZE(2, 1, 2), CRASH, .pauses = true},
	{"2, 1, 2, leaders have news, one write is late", SIZE(2, 1, 2), CRASH, LATE,
	 .shows = true},
	{"2, 1, 2, reservations", SIZE(2, 1, 2), CRASH, .hold = 1},
	{"2, 1, 2, native locks", SIZE(2, 1, 2), CRASH, .locks = true},
	{"2, 1, 2, native locks that are broken", SIZE(2, 1, 2), .locks = true, .breaks = true,
	 .depth = 12},
	{"2, 1, 2, the store begins anew", SIZE(2, 1, 2), CRASH, .forgets = true},
	{"2, 1, 2, the store loses elections", SIZE(2, 1, 2), CRASH, .evicts = true},
	{"2, 1, 2, writes travel, one is late", SIZE(2, 1, 2), CRASH, LATE, .travels = true},
	{"2, 1, 3, old reads", SIZE(2, 1, 3), CRASH, .old_reads = true, .depth = 11},
	{"2, 1, 2, old reads, living leases' records are deleted", SIZE(2, 1, 2), .old_reads = true,
	 .deletes = true, .depth = 14},
	{"2, 1, 3, two writes late", SIZE(2, 1, 3), ALL, .strays = 2, .depth = 12},
	{"2, 2, 3", SIZE(2, 2, 3), CRASH, .depth = 11},
	{"3, 1, 4", SIZE(3, 1, 4), .depth = 11},
};

static const struct setup test_worlds[] = {
	{"2, 1, 3, one write late", SIZE(2, 1, 3), ALL, LATE},
	{"2, 1, 3, with drift, one write late", SIZE(2, 1, 3), CRASH, LATE, .drifts = true},
	{"2, 1, 3, living leases' records are deleted", SIZE(2, 1, 3), CRASH, .deletes = true},
	{"2, 1, 3, pauses", SIZE(2, 1, 3), CRASH, .pauses = true},
	{"2, 1, 3, leaders have news, orders", SIZE(2, 1, 3), ALL, .shows = true},
	{"2, 1, 3, reservations", SIZE(2, 1, 3), CRASH, .hold = 1},
	{"2, 1, 3, native locks, one write late", SIZE(2, 1, 3), CRASH, LATE, .locks = true,
	 .depth = 11},
	{"2, 1, 3, the store begins anew", SIZE(2, 1, 3), CRASH, .forgets = true},
	{"2, 1, 3, the store loses elections", SIZE(2, 1, 3), CRASH, .evicts = true},
	{"2, 1, 3, old reads", SIZE(2, 1, 3), CRASH, LATE, .old_reads = true, .depth = 14},
	{"2, 2, 3", SIZE(2, 2, 3), ALL, LATE, .depth = 13},
	{"3, 1, 4", SIZE(3, 1, 4), LATE, .depth = 13},
};

static const struct setup large_worlds[] = {
	{"2, 1, 4, one write late", SIZE(2, 1, 4), ALL, LATE},
	{"2, 1, 3, with drift, one write late", SIZE(2, 1, 3), ALL, LATE, .drifts = true},
	{"2, 1, 3, living leases' records are deleted, one write late", SIZE(2, 1, 3), ALL, LATE,
	 .deletes = true},
	{"2, 1, 3, sweepers by their own sight", SIZE(2, 1, 3), CRASH, .sweeps = true},
	{"2, 1, 3, pauses and reservations", SIZE(2, 1, 3), CRASH, .hold = 1, .pauses = true},
	{"2, 1, 3, two writes late", SIZE(2, 1, 3), ALL, .strays = 2},
	{"2, 1, 3, leaders have news, one write late", SIZE(2, 1, 3), ALL, LATE, .shows = true},
	{"2, 1, 3, native locks", SIZE(2, 1, 3), CRASH, .locks = true},
	{"2, 1, 3, old reads", SIZE(2, 1, 3), ALL, LATE, .old_reads = true, .depth = 18},
	{"2, 1, 3, writes travel", SIZE(2, 1, 3), CRASH, .travels = true},
	{"2, 2, 3", SIZE(2, 2, 3), ALL, LATE, .depth = 16},
	{"3, 1, 4", SIZE(3, 1, 4), LATE, .depth = 16},
};

#define LIST(worlds) (*n = sizeof(worlds) / sizeof((worlds)[0]), worlds)

const struct setup *setups_get(enum size size, size_t *n)
{
	switch (size) {
	case SIZE_SMALL: return LIST(small_worlds);
	case SIZE_TEST: return LIST(test_worlds);
	default: return LIST(large_worlds);
	}
}
