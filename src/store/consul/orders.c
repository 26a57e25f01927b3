/*
 * orders.c: orders for a leader, and pauses. People and other candidates give them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* A change of an election's state. */
struct state_change {
	struct consul_lane *lane;
	struct baton_call *call;
	const char *name;
	const struct baton_order *order; /* NULL: a pause, or its end */
	bool paused;
};

/* Writes the order's note beside the leadership that the order is meant to end. */
static void order_put_note(const struct state_change *c, const struct baton_record *record,
			   const json_t *lock)
{
	struct consul_key key = consul_history_key(
		c->lane->store, c->name, js_text(lock, "Session"), record->nonce, ".note");
	struct consul_op op = {.verb = "set", .key = &key, .value = c->order->note};

	if (c->order->note[0] != '\0')
		consul_op(c->lane, &op);
}

/* Makes the change. OK; REFUSED: that term no longer leads; 0: try again. */
static int state_change(const struct state_change *c, const struct consul_answer *seen)
{
	struct consul_key key = consul_state_key(c->lane->store, c->name);
	struct consul_key lock = consul_lock_key(c->lane->store, c->name);
	json_t *state = consul_state(c->lane->store, c->name, seen);
	struct baton_record record;
	struct consul_answer answer;
	struct consul_known known;
	size_t op;

	consul_known_get(c->lane->store, c->name, &known);
	consul_record(c->lane->store, c->name, "", seen, &known, &record);
	consul_begin(c->lane);
	if (c->order != NULL) {
		order_put_note(c, &record, consul_find(seen, lock.text));
		(void)json_object_set_new(state, "order", web_order_make(c->order));
		consul_op_check(c->lane, &lock, known.claim_index);
	} else if (c->paused) {
		(void)json_object_set_new(state, "paused", json_true());
	} else {
		(void)json_object_del(state, "paused");
	}
	consul_op_state(c->lane, &key, state, known.state_index);
	json_decref(state);
	if (c->order != NULL && (!record.held || record.term != c->order->term))
		return BATON_OUTCOME_REFUSED;
	int outcome = consul_txn(c->lane, c->call, "change", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 409)
		outcome = consul_error(c->call, &answer, 0, &op) == CONSUL_DENIED
				  ? BATON_OUTCOME_FAILED
				  : 0;
	json_decref(answer.json);
	return outcome;
}

static int order_or_pause(const struct state_change *c)
{
	for (int round = 0; round < CONSUL_ROUNDS; round++) {
		struct consul_answer seen;

		consul_begin(c->lane);
		consul_op_read(c->lane, c->name);
		int outcome = consul_read(c->lane, c->call, "state", &seen);

		if (outcome == BATON_OUTCOME_OK)
			outcome = state_change(c, &seen);
		json_decref(seen.json);
		if (outcome != 0)
			return outcome;
	}
	(void)store_fail(&c->call->error, BATON_E_UNAVAILABLE, "the election changes all the time");
	return BATON_OUTCOME_FAILED;
}

int consul_order(void *l, struct baton_call *call, const char *name,
		 const struct baton_order *order)
{
	struct state_change c = {.lane = l, .call = call, .name = name, .order = order};

	return order_or_pause(&c);
}

int consul_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct state_change c = {.lane = l, .call = call, .name = name, .paused = paused};

	return order_or_pause(&c);
}
