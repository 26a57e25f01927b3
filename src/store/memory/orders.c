/*
 * orders.c: orders for a leader, and the pause of an election.
 */
#include "store/memory/memory.h"

#include <stdlib.h>

int memory_order(void *lane, struct baton_call *call, const char *name,
		 const struct baton_order *given)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_ORDER, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e == NULL || e->holder == NULL || e->term != given->term) {
			outcome = BATON_OUTCOME_REFUSED; /* rule 10 */
		} else if (e->order == NULL && (e->order = malloc(sizeof(*e->order))) == NULL) {
			outcome = memory_no_memory(call);
		} else {
			*e->order = *given;
			memory_hint(e);
		}
	}
	return memory_leave(lane, call, &fault, outcome);
}

int memory_pause(void *lane, struct baton_call *call, const char *name, bool paused)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_PAUSE, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_get(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e == NULL) {
			outcome = memory_no_memory(call);
		} else {
			if (e->paused != paused)
				memory_hint(e);
			e->paused = paused;
			memory_election_tidy(m, e);
		}
	}
	return memory_leave(lane, call, &fault, outcome);
}
