/*
 * orders.c: orders to a leader, and pauses. People and other candidates ask for them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* The order is written only if that leadership still stands. */
int kube_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct kube_lane *lane = l;
	struct kube_call c = {.method = "PATCH", .type = KUBE_PATCH};
	struct kube_lease now = {.object = NULL};
	char object[KUBE_NAME_MAX + 1];
	int outcome = kube_fetch_lease(lane, call, name, &now);

	if (outcome == BATON_OUTCOME_OK && (now.holder[0] == '\0' || now.term != order->term)) {
		outcome = BATON_OUTCOME_REFUSED;
	} else if (outcome == BATON_OUTCOME_OK && !now.is_ours) {
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "the leader, \"%.80s\", isn't baton's, and takes no orders",
				 now.holder);
		outcome = BATON_OUTCOME_FAILED;
	}
	if (outcome == BATON_OUTCOME_OK) {
		json_t *value = web_order_make(order);
		char *text = json_dumps(value, JSON_COMPACT);

		kube_object_name(name, object);
		kube_path(lane->store, &c, object, "?fieldManager=baton&for=order");
		bytes_print(&c.body, "[");
		kube_put_annotation(&c.body, "test", "claim", now.claim);
		kube_put_annotation(&c.body, "add", "order", text != NULL ? text : "");
		bytes_print(&c.body, "]");
		c.body.has_failed = c.body.has_failed || text == NULL;
		free(text);
		json_decref(value);
		outcome = kube_call(lane, call, &c);
	}
	kube_call_done(&c);
	kube_lease_done(&now);
	return outcome;
}

/* An election that was never led can be paused, too: the pause makes its Lease. */
static void pause_put(const struct kube_store *s, struct kube_call *c, const char *name,
		      const struct kube_lease *l, bool paused)
{
	char object[KUBE_NAME_MAX + 1];

	if (l->object == NULL) {
		kube_put_new(s, c, name, paused);
		return;
	}
	kube_object_name(name, object);
	*c = (struct kube_call){.method = "PATCH", .type = KUBE_MERGE};
	kube_path(s, c, object, "?fieldManager=baton&for=pause");
	bytes_print(&c->body, "{\"metadata\":{\"annotations\":{\"baton/paused\":%s}}}",
		    paused ? "\"1\"" : "null");
}

int kube_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct kube_lane *lane = l;
	struct kube_lease now = {.object = NULL};
	int outcome = BATON_OUTCOME_REFUSED;

	for (int round = 0; round < KUBE_ROUNDS && outcome == BATON_OUTCOME_REFUSED; round++) {
		struct kube_call c;

		outcome = kube_fetch_lease(lane, call, name, &now);
		if (outcome != BATON_OUTCOME_OK || (now.object == NULL && !paused))
			break;
		pause_put(lane->store, &c, name, &now, paused);
		outcome = kube_call(lane, call, &c);
		kube_call_done(&c);
	}
	kube_lease_done(&now);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}
