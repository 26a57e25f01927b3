/*
 * list.c: the verb list: names from the sorted set that campaigns and pauses keep.
 */
#include "store/redis/redis.h"

int redis_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	       void (*found)(void *arg, const char *name), void *arg)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = max > 0 ? redis_call_begin(lane, call, REDIS_LIST, 3) : 0;

	if (outcome != BATON_OUTCOME_OK)
		return max > 0 ? outcome : BATON_OUTCOME_OK;
	resp_text(&lane->wire.out, prefix);
	resp_text(&lane->wire.out, after);
	resp_number(&lane->wire.out, max < REDIS_LIST_MAX ? max : REDIS_LIST_MAX);
	outcome = redis_call_end(lane, call, REDIS_LIST, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < reply->n; i++)
		found(arg, resp_get(reply, i));
	return BATON_OUTCOME_OK;
}
