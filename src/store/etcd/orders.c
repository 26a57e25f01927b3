/*
 * orders.c: orders to a leader, and pauses: what people and other candidates ask for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* Only if that leadership still stands. */
static int order_leave(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const struct etcd_key *claim, uint64_t revision,
		       const struct baton_order *order)
{
	struct etcd_key key = etcd_state_key(lane->store, name, "order");
	json_t *value = web_order_make(order);
	char *text = json_dumps(value, JSON_COMPACT);
	struct bytes *b = etcd_begin(lane);
	struct proto answer;

	etcd_compare(b, claim, false, ETCD_IS_CREATE, revision);
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, ETCD_THEN, &key, text != NULL ? text : "", 0);
	free(text);
	json_decref(value);
	int outcome = etcd_call(lane, call, &etcd_txn, &answer);

	if (outcome == BATON_OUTCOME_OK && proto_number(answer, ETCD_TXN_SUCCEEDED) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	etcd_done(&answer);
	return outcome;
}

int etcd_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct baton_record record;
	struct etcd_lane *lane = l;
	struct etcd_known known;
	struct etcd_key claim;
	struct proto answer;
	uint64_t revision = 0;

	etcd_get_election(etcd_begin(lane), ETCD_THEN, lane->store, name);
	int outcome = etcd_call(lane, call, &etcd_txn, &answer);

	if (outcome == BATON_OUTCOME_OK) {
		struct proto kv = etcd_kv(answer, 0);

		etcd_known_get(lane->store, name, &known);
		etcd_record(lane, name, "", answer, 0, &known, &record);
		revision = proto_number(kv, ETCD_KV_CREATE);
		if (!record.held || record.term != order->term ||
		    !proto_text(kv, ETCD_KV_KEY, claim.text, sizeof(claim.text)))
			outcome = BATON_OUTCOME_REFUSED;
	}
	etcd_done(&answer);
	return outcome == BATON_OUTCOME_OK ? order_leave(lane, call, name, &claim, revision, order)
					   : outcome;
}

int etcd_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct etcd_lane *lane = l;
	struct etcd_key key = etcd_state_key(lane->store, name, "paused");
	struct bytes *b = etcd_begin(lane);

	if (paused)
		etcd_put(b, ETCD_THEN, &key, "1", 0);
	else
		etcd_delete(b, ETCD_THEN, &key);
	return etcd_tell(lane, call, &etcd_txn);
}
