/*
 * list.c: the names of elections.
 */
#include "store/memory/memory.h"
#include "store/names.h"

/* Lists elections that have had a leader, or are paused: those that a server would keep. */
static void list_elections(const struct memory *m, struct store_names *names)
{
	for (struct name_node *node = name_table_next(&m->elections, NULL); node != NULL;
	     node = name_table_next(&m->elections, node)) {
		const struct memory_election *e = (struct memory_election *)node;

		if (e->term != 0 || e->paused)
			store_names_add(names, e->name);
	}
}

int memory_list(void *lane, struct baton_call *call, const char *prefix, const char *after,
		size_t max, void (*found)(void *arg, const char *name), void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct store_names names = {.prefix = prefix, .after = after, .max = max};
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_LIST, &fault);

	if (outcome == 0) {
		list_elections(m, &names);
		outcome = names.failed ? memory_no_memory(call) : BATON_OUTCOME_OK;
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	if (outcome == BATON_OUTCOME_OK)
		(void)store_names_tell(&names, found, arg);
	store_names_done(&names);
	return outcome;
}
