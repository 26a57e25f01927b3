/*
 * release.c: giving claims back. A claim is given back by one patch, which tests that the claim is
 * still the one that was made (S6). A batch of releases is sent like campaigns, some at a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* S6: lease, nonce and term are in the claim; the holder shows that the claim still counts. */
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
	char *history = kube_history_ended(l, r->reason);

	b->has_failed = b->has_failed || history == NULL;
	kube_put_annotation(b, "add", "history", history != NULL ? history : "");
	free(history);
	if (r->reserve_for != NULL && r->reserve_for[0] != '\0') {
		json_t *value = web_reserve_make(r);

		/* With the term, this reservation differs from the one before. */
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

/* One release of a batch, on its way. */
struct back {
	const struct baton_release *r;
	struct kube_lease l;
	bool is_known; /* `l` has the claim, as far as we know */
	int outcome;   /* 0: not decided yet */
	int code;
};

static void back_end(struct back *b, int outcome, int code)
{
	b->outcome = outcome;
	b->code = outcome == BATON_OUTCOME_REFUSED ? 0 : code;
}

/* Asks for all Leases that we don't know, at once. */
static void release_ask(struct kube_lane *lane, struct baton_call *call, struct back *list,
			struct kube_call *calls, size_t n)
{
	char object[KUBE_NAME_MAX + 1];
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].outcome != 0 || list[i].is_known)
			continue;
		kube_object_name(list[i].r->name, object);
		kube_ask_lease(lane->store, &calls[k++], object, "look");
	}
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		struct back *b = &list[i];

		if (b->outcome != 0 || b->is_known)
			continue;
		kube_lease_done(&b->l);
		int outcome = kube_take_lease(lane, call, &calls[k], b->r->name, &b->l);

		kube_call_done(&calls[k++]);
		if (outcome != BATON_OUTCOME_OK)
			back_end(b, outcome, call->error.code);
		else if (!release_is_it(&b->l, b->r))
			back_end(b, BATON_OUTCOME_REFUSED, 0);
		else
			b->is_known = true;
	}
}

/* Sends all releases that are left, at once, too. */
static void release_send(struct kube_lane *lane, struct baton_call *call, struct back *list,
			 struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i].outcome == 0)
			release_put(lane->store, &calls[k++], list[i].r->name, &list[i].l,
				    list[i].r);
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		struct back *b = &list[i];

		if (b->outcome != 0)
			continue;
		struct kube_call *c = &calls[k++];

		if (c->outcome == BATON_OUTCOME_OK)
			(void)kube_note_answer(lane->store, b->r->name, c);
		if (c->outcome == BATON_OUTCOME_REFUSED)
			b->is_known = false; /* look whether the claim is still there */
		else
			back_end(b, c->outcome, c->outcome == BATON_OUTCOME_OK ? 0 : c->code);
		kube_call_done(c);
	}
}

/* Carries out all of them; each has its own outcome. */
static void release_all(struct kube_lane *lane, struct baton_call *call, struct back *list,
			struct kube_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct back *b = &list[i];

		b->is_known = kube_expiry_recall(lane->store, b->r->name, &b->l) &&
			      release_is_it(&b->l, b->r);
	}
	for (int round = 0; round < KUBE_ROUNDS; round++) {
		release_ask(lane, call, list, calls, n);
		release_send(lane, call, list, calls, n);
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i].outcome == 0) /* the Lease changes all the time */
			back_end(&list[i], BATON_OUTCOME_FAILED, call->error.code);
		kube_lease_done(&list[i].l);
	}
}

int kube_let_go(struct kube_lane *lane, struct baton_call *call, const struct baton_release *r)
{
	struct back back = {.r = r};
	struct kube_call c = {.method = NULL};

	release_all(lane, call, &back, &c, 1);
	return back.outcome;
}

void kube_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct kube_lane *lane = l;
	struct back *backs = calloc(n, sizeof(*backs));
	struct kube_call *calls = calloc(n, sizeof(*calls));
	bool is_ready = backs != NULL && calls != NULL;

	if (!is_ready)
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a release");
	for (size_t i = 0; i < n && is_ready; i++) {
		backs[i].r = &list[i];
		kube_expiry_leave(lane->store, list[i].name, list[i].term);
	}
	kube_unlabel_pod(lane, call->deadline_ns);
	if (is_ready)
		release_all(lane, call, backs, calls, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = is_ready ? backs[i].outcome : BATON_OUTCOME_FAILED;
		list[i].code = is_ready ? backs[i].code : BATON_E_MEMORY;
		if (list[i].outcome == BATON_OUTCOME_OK && lane->store->options.process_lease)
			kube_count_claim(lane->store, list[i].lease_id, -1);
	}
	free(backs);
	free(calls);
}
