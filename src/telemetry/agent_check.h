/*
 * agent_check.h: answers HAProxy's agent-check: "ready up" while this process leads, else "maint".
 * A thread of its own answers from memory, and never asks the store; one client after the other,
 * none for longer than a moment.
 */
#ifndef BATON_AGENT_CHECK_H
#define BATON_AGENT_CHECK_H

#include <baton.h>

struct agent_check;

/*
 * Listens on "PORT" (loopback only), "ADDRESS:PORT" or "[ADDRESS]:PORT"; port 0 is any. leads() is
 * called on the thread. NULL after filling in err.
 */
struct agent_check *agent_check_new(const char *where, bool (*leads)(void *arg), void *arg,
				    struct baton_error *err);
/* The port that it listens on. */
int agent_check_port(const struct agent_check *a);
/* leads() is never called after this. Takes NULL. */
void agent_check_free(struct agent_check *a);

#endif
