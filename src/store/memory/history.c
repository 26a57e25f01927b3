/*
 * history.c: past leaderships.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>

static int list_history(const struct memory_election *e, size_t max, struct memory_rows *rows)
{
	for (uint8_t i = e->past_n; i > 0 && max > 0; i--, max--) {
		const struct memory_past *p = memory_past_at(e, (uint8_t)(i - 1));
		struct baton_leadership *row = memory_rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->size = sizeof(*row);
		row->term = p->term;
		row->since_ms = p->since_ms;
		row->until_ms = p->until_ms;
		row->since_ns = p->since_ns;
		row->until_ns = p->until_ns;
		(void)snprintf(row->clock, sizeof(row->clock), "memory");
		(void)snprintf(row->leader, sizeof(row->leader), "%s", p->leader->text);
		(void)snprintf(row->ended, sizeof(row->ended), "%s",
			       p->ended != NULL ? p->ended->text : "");
		(void)snprintf(row->note, sizeof(row->note), "%s",
			       p->note != NULL ? p->note->text : "");
	}
	return 0;
}

int memory_history(void *lane, struct baton_call *call, const char *name, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct memory_rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_HISTORY, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e != NULL && list_history(e, max, &rows) != 0)
			outcome = memory_no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct baton_leadership))
		found(arg, (struct baton_leadership *)(void *)(rows.data + i));
	free(rows.data);
	return outcome;
}
