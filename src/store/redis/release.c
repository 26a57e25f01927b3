/*
 * release.c: the verb release. A claim is dropped from our own list before the request is sent, so
 * that a claim that may have been given back is never claimed again (reclaim.c).
 */
#include "base/clock.h"
#include "store/redis/redis.h"

static int release_part(struct redis_lane *lane, struct baton_call *call,
			struct baton_release *list, size_t n)
{
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;

	for (size_t i = 0; i < n; i++)
		redis_own_drop(lane->store->own, list[i].lease_id, list[i].name);
	int outcome = redis_call_begin(lane, call, REDIS_RELEASE, 7 * n);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	for (size_t i = 0; i < n; i++) {
		const struct baton_release *r = &list[i];

		resp_text(out, r->name);
		resp_text(out, r->lease_id);
		resp_number(out, r->nonce);
		resp_number(out, r->term);
		resp_text(out, r->reason != NULL && r->reason[0] != '\0' ? r->reason : "released");
		resp_text(out, r->reserve_for != NULL ? r->reserve_for : "");
		resp_number(out, r->hold_ns / CLOCK_NS_PER_MS);
	}
	outcome = redis_call_end(lane, call, REDIS_RELEASE, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY || reply->n != n)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < n; i++) {
		list[i].code = 0;
		list[i].outcome = resp_is(reply, i, "1") ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	}
	return BATON_OUTCOME_OK;
}

void redis_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = redis_part(n, done);
		int outcome = release_part(l, call, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome = outcome;
			list[i].code = call->error.code;
		}
		done += k;
	}
}
