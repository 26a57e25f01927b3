/*
 * relay.h: the fault proxy: a network that can be made to fail, between clients and a real server.
 * It listens on a port of its own, passes messages on, and does to them what the rules say
 * (rules.h). Written once for all stores: a protocol is a framing function (protocols.h).
 *
 * It is used inside of a test's process, on a thread of its own, and as a small program (main.c).
 */
#ifndef BATON_RELAY_H
#define BATON_RELAY_H

#include "rules.h"

struct relay;

struct relay_options {
	const struct protocol *protocol;
	const char *address;  /* to listen on; NULL: 127.0.0.1, on any port */
	unsigned server_port; /* of 127.0.0.1 */
	uint64_t seed;
};

struct relay_counts {
	uint64_t requests;  /* that came, whatever became of them */
	uint64_t swallowed; /* pieces that went into the hole */
	uint64_t turned;    /* connections that were refused while it was down */
	uint64_t harmed;    /* messages that a rule was for */
};

/* NULL if it can't; errno says why. */
struct relay *relay_new(const struct relay_options *o);
void relay_free(struct relay *r);
unsigned relay_port(const struct relay *r);
/* The same way through, on which nothing ever fails: its time tells how busy the machine is. */
unsigned relay_clear_port(const struct relay *r);

/* Replaces the rules of a slot. An empty text also lets go what was held back. */
bool relay_rules(struct relay *r, unsigned slot, const char *text, char *why, size_t size);
/* All of it, to be given again. */
void relay_text(struct relay *r, char *to, size_t size);

/* Every connection is reset, and every new one refused. */
void relay_down(struct relay *r, bool is_down);
/* Everything is swallowed, and nobody answers a call. */
void relay_hole(struct relay *r, bool is_hole);

void relay_counts(struct relay *r, struct relay_counts *to);
/* Requests with this label so far. */
uint64_t relay_labelled(struct relay *r, const char *label);

#endif
