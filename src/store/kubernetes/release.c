/*
 * release.c: giving claims back. A claim is given back by one patch, which tests that it is still
 * the one that was made (S6).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* S6: lease, nonce and term are in the claim; the holder shows that it is the one that counts. */
static void release_put(const struct kube_store *s, struct kube_call *call, const char *name,
			const struct kube_lease *l, const struct baton_release *r)
{
	struct bytes *b = &call->body;
	char object[KUBE_NAME_MAX + 1];
	char now[KUBE_TIME_MAX];
	char time[KUBE_TIME_MAX + 2];
	struct bytes holder = {0};

	kube_object_name(name, object);
	kube_put_text(&holder, l->holder);
	kube_now(now);
	(void)snprintf(time, sizeof(time), "\"%s\"", now);
	*call = (struct kube_call){.method = "PATCH", .type = KUBE_PATCH};
	kube_path(s, call, object, "?fieldManager=baton&for=release");
	bytes_print(b, "[");
	kube_put_annotation(b, "test", "claim", l->claim);
	kube_put_op(b, "test", "/spec/holderIdentity", holder.at != NULL ? holder.at : "\"\"");
	kube_put_annotation(b, "add", "claim", "");
	kube_put_annotation(b, "add", "order", "");
	if (r->reserve_for != NULL && r->reserve_for[0] != '\0') {
		json_t *value = web_reserve_make(r);

		/* The term makes it another one than the last. */
		(void)json_object_set_new(value, "term", json_integer((json_int_t)l->term));
		char *text = json_dumps(value, JSON_COMPACT);

		b->has_failed = b->has_failed || text == NULL;
		kube_put_annotation(b, "add", "reserved", text != NULL ? text : "");
		free(text);
		json_decref(value);
	}
	kube_put_op(b, "replace", "/spec/holderIdentity", "\"\"");
	kube_put_op(b, "replace", "/spec/leaseDurationSeconds", "1"); /* as client-go does */
	kube_put_op(b, "replace", "/spec/renewTime", time);
	bytes_print(b, "]");
	b->has_failed = b->has_failed || holder.has_failed;
	bytes_done(&holder);
}

static bool release_is_it(const struct kube_lease *l, const struct baton_release *r)
{
	return l->is_ours && strcmp(l->lease_id, r->lease_id) == 0 &&
	       (r->nonce == 0 || (l->nonce == r->nonce && l->term == r->term));
}

int kube_let_go(struct kube_lane *lane, struct baton_call *call, const struct baton_release *r)
{
	struct kube_lease l;
	bool is_known = kube_expiry_recall(lane->store, r->name, &l) && release_is_it(&l, r);
	int outcome = BATON_OUTCOME_FAILED;

	for (int round = 0; round < KUBE_ROUNDS; round++) {
		struct kube_call c;

		if (!is_known) {
			outcome = kube_fetch_lease(lane, call, r->name, &l);
			if (outcome == BATON_OUTCOME_OK && !release_is_it(&l, r))
				outcome = BATON_OUTCOME_REFUSED;
			if (outcome != BATON_OUTCOME_OK)
				break;
		}
		release_put(lane->store, &c, r->name, &l, r);
		outcome = kube_call(lane, call, &c);
		if (outcome == BATON_OUTCOME_OK)
			(void)kube_note_answer(lane->store, r->name, &c);
		kube_call_done(&c);
		if (outcome != BATON_OUTCOME_REFUSED)
			break;
		is_known = false; /* look whether it is still there */
		outcome = BATON_OUTCOME_FAILED;
	}
	kube_lease_done(&l);
	return outcome;
}

void kube_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct kube_lane *lane = l;

	for (size_t i = 0; i < n; i++) {
		struct baton_release *r = &list[i];

		r->outcome = kube_let_go(lane, call, r);
		r->code = r->outcome == BATON_OUTCOME_OK || r->outcome == BATON_OUTCOME_REFUSED
				  ? 0
				  : call->error.code;
		if (r->outcome == BATON_OUTCOME_OK && lane->store->options.process_lease)
			kube_count_claim(lane->store, r->lease_id, -1);
	}
}
