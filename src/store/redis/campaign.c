/*
 * campaign.c: the verb campaign. One script serves many elections, and one call may run several
 * scripts. What one script has decided stands, whatever becomes of the next.
 */
#include "base/clock.h"
#include "store/redis/redis.h"

static void campaign_outcome(const struct baton_call *call, struct baton_campaign *list, size_t n,
			     int outcome)
{
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
		list[i].term = 0;
		*list[i].record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	}
}

/* Reads one result. False: the script never returns such a thing. */
static bool campaign_result(struct redis_lane *lane, struct baton_call *call,
			    struct baton_campaign *c, const struct resp *r)
{
	*c->record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	c->term = 0;
	c->code = 0;
	if (resp_is(r, 0, "won")) {
		c->outcome = BATON_OUTCOME_OK;
		c->record->watched = redis_index_seen(lane->store->index, c->name, "", 0);
		return resp_get_u64(r, 1, &c->term) && c->term > c->floor;
	}
	if (resp_is(r, 0, "no")) {
		c->outcome = BATON_OUTCOME_REFUSED;
		redis_record(lane, c->name, r, 1, c->record);
		return true;
	}
	bool is_end = resp_is(r, 0, "end");

	(void)store_fail_term(call, c, is_end ? TERM_END : TERM_JUMP);
	return is_end || resp_is(r, 0, "jump");
}

static int campaign_part(struct redis_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_campaign *list, size_t n)
{
	const struct redis_options *o = &lane->store->options;
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_CAMPAIGN, 5 + 6 * n);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(out, lease->id);
	resp_text(out, lease->owner);
	resp_number(out, o->max_lease_ms);
	resp_text(out, o->durable ? "1" : "0");
	resp_number(out, o->history);
	for (size_t i = 0; i < n; i++) {
		resp_text(out, list[i].name);
		resp_number(out, list[i].nonce);
		resp_number(out, list[i].floor);
		resp_signed(out, list[i].profile.priority);
		resp_number(out, list[i].profile.score_permille);
		resp_text(out, list[i].profile.metadata);
	}
	outcome = redis_call_end(lane, call, REDIS_CAMPAIGN, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY || reply->n != n)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < n; i++) {
		if (!campaign_result(lane, call, &list[i], &reply->items[i]))
			return redis_call_strange(lane, call);
		if (list[i].outcome == BATON_OUTCOME_OK)
			redis_own_claim(lane->store->own, lease->id, list[i].name, list[i].nonce,
					list[i].term, &list[i].profile);
	}
	return BATON_OUTCOME_OK;
}

void redis_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_campaign *list, size_t n)
{
	struct store_base *base = &((struct redis_lane *)l)->store->base;

	for (size_t done = 0; done < n;) {
		size_t k = redis_part(n, done);

		store_ask(base, list + done, k);
		int outcome = campaign_part(l, call, lease, list + done, k);

		store_ask(base, NULL, 0);
		if (outcome != BATON_OUTCOME_OK)
			campaign_outcome(call, list + done, k, outcome);
		done += k;
	}
}
