/*
 * fence.h: the fenced resource, as the chaos rig's worker writes to it: each piece of work carries
 * its term, and the resource refuses terms lower than the highest that it has seen. What is written
 * and what is refused the resource itself remembers (world.py makes it, and reads it).
 */
#ifndef BATON_CHAOS_FENCE_H
#define BATON_CHAOS_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "relay/protocols.h"

struct fence {
	int fd; /* -1: there is none */
	const struct protocol *protocol;
	struct protocol_state state;
	char name[64]; /* of the resource */
	bool is_busy;  /* an answer is due */
	uint64_t next_ns;
	char in[4096];
	size_t n;
};

/* "PROTOCOL:ADDRESS:PORT:NAME"; NULL: no resource. What can't be reached is none, either. */
void fence_open(struct fence *f, const char *spec);
/* Lets so much time pass; begins the next write when the last one was answered. */
void fence_work(struct fence *f, uint64_t term, uint32_t seat, int ms);

#endif
