/*
 * orders.c: the verbs order and pause. People give orders to a leader, and so do standbys that
 * preempt it.
 */
#include "store/redis/redis.h"

int redis_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct redis_lane *lane = l;
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_ORDER, 7);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(out, name);
	resp_number(out, order->term);
	resp_number(out, order->id);
	resp_signed(out, order->kind);
	resp_number(out, order->quiet_ms);
	resp_text(out, order->target);
	resp_text(out, order->note);
	outcome = redis_call_end(lane, call, REDIS_ORDER, &reply);
	if (outcome == BATON_OUTCOME_OK && !resp_is(reply, 0, "1"))
		return BATON_OUTCOME_REFUSED;
	return outcome;
}

int redis_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_PAUSE, 2);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, name);
	resp_text(&lane->wire.out, paused ? "1" : "0");
	return redis_call_end(lane, call, REDIS_PAUSE, &reply);
}
