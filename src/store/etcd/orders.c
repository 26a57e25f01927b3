/*
 * orders.c: orders for a leader, and pauses. People and other candidates give them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* Writes the order, but only if that leadership still stands. */
static int order_leave(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const struct etcd_claim *claim, uint64_t nonce,
		       const struct baton_order *order)
{
	struct etcd_key note = etcd_history_key(lane->store, name, claim->lease, nonce, ".note");
	struct etcd_key key = etcd_state_key(lane->store, name, "order");
	json_t *value = web_order_make(order);
	char *text = json_dumps(value, JSON_COMPACT);
	struct bytes *b = etcd_begin(lane);
	struct proto answer;

	etcd_compare(b, &claim->key, NULL, ETCD_IS_CREATE, claim->revision);
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, ETCD_THEN, &key, text != NULL ? text : "", 0);
	if (order->note[0] != '\0')
		etcd_put(b, ETCD_THEN, &note, order->note, 0);
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
	struct etcd_lane *lane = l;
	struct baton_record record;
	struct etcd_claim claim;
	int outcome = etcd_read_election(lane, call, name, "", &record, &claim);

	if (outcome == BATON_OUTCOME_OK && (!record.held || record.term != order->term))
		outcome = BATON_OUTCOME_REFUSED;
	return outcome == BATON_OUTCOME_OK
		       ? order_leave(lane, call, name, &claim, record.nonce, order)
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
