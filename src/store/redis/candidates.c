/*
 * candidates.c: the verbs publish, withdraw and candidates: how a process shows itself in each
 * election that it takes part in.
 */
#include <stdio.h>

#include "store/redis/redis.h"

static int publish_part(struct redis_lane *lane, struct baton_call *call,
			const struct baton_lease *lease, struct baton_publication *list, size_t n)
{
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_PUBLISH, 1 + 5 * n);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(out, lease->id);
	for (size_t i = 0; i < n; i++) {
		resp_text(out, list[i].name);
		resp_signed(out, list[i].profile.priority);
		resp_number(out, list[i].profile.score_permille);
		resp_text(out, list[i].profile.is_healthy ? "1" : "0");
		resp_text(out, list[i].profile.metadata);
	}
	outcome = redis_call_end(lane, call, REDIS_PUBLISH, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY || reply->n != n)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < n; i++) {
		list[i].code = 0;
		list[i].outcome = resp_is(reply, i, "1") ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		if (list[i].outcome == BATON_OUTCOME_OK)
			redis_own_show(lane->store->own, lease->id, list[i].name, &list[i].profile);
	}
	return BATON_OUTCOME_OK;
}

void redis_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_publication *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = redis_part(n, done);
		int outcome = publish_part(l, call, lease, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome = outcome;
			list[i].code = call->error.code;
		}
		done += k;
	}
}

int redis_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		   const char *name)
{
	struct redis_lane *lane = l;
	const struct resp *reply;

	redis_own_show(lane->store->own, lease->id, name, NULL);
	int outcome = redis_call_begin(lane, call, REDIS_WITHDRAW, 2);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, lease->id);
	resp_text(&lane->wire.out, name);
	return redis_call_end(lane, call, REDIS_WITHDRAW, &reply);
}

static bool candidate_read(const struct resp *r, struct baton_candidate *c)
{
	int64_t updated_ms, priority, score;

	*c = (struct baton_candidate){.is_leader = resp_is(r, 2, "1"),
				      .is_healthy = resp_is(r, 6, "1")};
	if (r->n != 8 || !resp_get_i64(r, 3, &updated_ms) || !resp_get_i64(r, 4, &priority) ||
	    !resp_get_i64(r, 5, &score))
		return false;
	c->updated_ms = updated_ms;
	c->priority = (int32_t)priority;
	c->score_permille = (uint32_t)score;
	(void)snprintf(c->id, sizeof(c->id), "%s", resp_get(r, 0));
	(void)snprintf(c->address, sizeof(c->address), "%s", resp_get(r, 1));
	(void)snprintf(c->metadata, sizeof(c->metadata), "%s", resp_get(r, 7));
	return true;
}

/* Reads all candidates; and the record, unless it is NULL. */
static int candidates_read(struct redis_lane *lane, struct baton_call *call, const char *name,
			   struct baton_record *record,
			   void (*found)(void *arg, const struct baton_candidate *candidate),
			   void *arg)
{
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_CANDIDATES, 1);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, name);
	outcome = redis_call_end(lane, call, REDIS_CANDIDATES, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY || reply->n == 0 || reply->items[0].n < 5)
		return redis_call_strange(lane, call);
	if (record != NULL)
		redis_record(lane, name, &reply->items[0], 0, record);
	for (size_t i = 1; i < reply->n; i++) {
		struct baton_candidate c;

		if (!candidate_read(&reply->items[i], &c))
			return redis_call_strange(lane, call);
		found(arg, &c);
	}
	return BATON_OUTCOME_OK;
}

int redis_candidates(void *l, struct baton_call *call, const char *name,
		     void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	return candidates_read(l, call, name, NULL, found, arg);
}

int redis_survey(void *l, struct baton_call *call, struct baton_observation *o,
		 void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	o->outcome = candidates_read(l, call, o->name, o->record, found, arg);
	o->code = call->error.code;
	return o->outcome;
}
