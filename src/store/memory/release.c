/*
 * release.c: giving a claim back, by lease, nonce and term (S6).
 */
#include "store/memory/memory.h"

#include <string.h>

/* Most releases give the same reason as the one before. */
static struct memory_word *reason_word(struct memory *m, const char *reason)
{
	const char *text = reason != NULL && reason[0] != '\0' ? reason : "released";

	if (m->reason == NULL || strcmp(m->reason->text, text) != 0) {
		struct memory_word *w = memory_word_new(text);

		if (w == NULL)
			return NULL;
		memory_word_unref(m->reason);
		m->reason = w;
	}
	return m->reason;
}

static void release_one(struct memory *m, struct baton_call *call, struct baton_release *r)
{
	struct memory_election *e = memory_election_find(m, r->name);
	struct memory_word *reason, *target = NULL;
	uint64_t now_ns = memory_now_ns(m);

	r->code = 0;
	r->outcome = BATON_OUTCOME_REFUSED;
	/* S6: lease, nonce and term. */
	if (e == NULL || e->holder == NULL || strcmp(e->holder->id, r->lease_id) != 0 ||
	    e->nonce != r->nonce || e->term != r->term)
		return;
	reason = reason_word(m, r->reason);
	if (r->reserve_for != NULL)
		target = memory_word_new(r->reserve_for);
	if (reason == NULL || (r->reserve_for != NULL && target == NULL)) {
		memory_word_unref(target);
		r->outcome = memory_no_memory(call);
		r->code = call->error.code;
		return;
	}
	memory_unclaim(m, e, reason);
	e->reserved_for = target;
	e->reserved_until_ns =
		r->hold_ns > BATON_STORE_NEVER - now_ns ? BATON_STORE_NEVER : now_ns + r->hold_ns;
	r->outcome = BATON_OUTCOME_OK;
}

void memory_release(void *lane, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_RELEASE, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		release_one(m, call, &list[i]);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
	}
}
