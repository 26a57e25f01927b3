/*
 * history.c: the last leaderships of an election. They stand in its record.
 */
#include <stdlib.h>
#include <string.h>

#include "store/record/layer.h"

int record_driver_history(void *l, struct baton_call *call, const char *name, size_t max,
			  void (*found)(void *arg, const struct baton_leadership *leadership),
			  void *arg)
{
	struct record_lane *lane = l;
	struct record_key key = record_key_of(lane->store, RECORD_ELECTIONS, name);
	struct record_item item = {.key = key.text};
	struct record_election e = {.term = 0};

	record_get(lane, call, &item, 1, false);
	if (item.outcome == BATON_OUTCOME_OK)
		(void)record_read_election(call, &item, name, &e);
	for (size_t i = 0; i < e.n_past && i < max && item.outcome == BATON_OUTCOME_OK; i++) {
		const struct record_past *p = &e.past[i];
		struct baton_leadership row = {
			.size = sizeof(row),
			.term = p->term,
			.since_ms = p->since_ms,
			.until_ms = p->until_ms,
		};

		(void)memcpy(row.leader, p->leader, sizeof(row.leader));
		(void)memcpy(row.ended, p->ended, sizeof(p->ended));
		(void)memcpy(row.note, p->note, sizeof(row.note));
		found(arg, &row);
	}
	bytes_done(&item.value);
	return item.outcome;
}
