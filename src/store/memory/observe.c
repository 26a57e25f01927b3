/*
 * observe.c: one election as the store shows it.
 */
#include "store/memory/memory.h"

#include <string.h>

void memory_observe(void *lane, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_OBSERVE, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		memory_record(m, memory_election_find(m, list[i].name), list[i].id, list[i].record);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
		if (outcome != BATON_OUTCOME_OK)
			memset(list[i].record, 0, sizeof(*list[i].record));
	}
}
