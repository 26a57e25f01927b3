/*
 * observe.c: the verb observe, and reading the record of an election. campaign.c needs that, too: a
 * campaign that is refused is told who leads.
 */
#include <stdio.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* ---- records ---- */

static uint64_t record_number(const struct resp *list, size_t i)
{
	uint64_t n = 0;

	return resp_get_u64(list, i, &n) ? n : 0;
}

static void record_text(char *to, size_t size, const struct resp *list, size_t i)
{
	(void)snprintf(to, size, "%s", resp_get(list, i));
}

static void record_read_claim(const struct resp *list, size_t at, struct baton_record *out)
{
	int64_t since = 0;
	int64_t priority = 0;

	(void)resp_get_i64(list, at + 7, &since);
	(void)resp_get_i64(list, at + 8, &priority);
	record_text(out->lease_id, sizeof(out->lease_id), list, at + 5);
	out->nonce = record_number(list, at + 6);
	out->since_ms = since;
	out->priority = (int32_t)priority;
	out->score_permille = (uint32_t)record_number(list, at + 9);
	record_text(out->metadata, sizeof(out->metadata), list, at + 10);
	record_text(out->leader, sizeof(out->leader), list, at + 11);
	record_text(out->address, sizeof(out->address), list, at + 12);
	out->n_candidates = (uint32_t)record_number(list, at + 18);
	out->order.id = record_number(list, at + 13);
	if (out->order.id == 0)
		return;
	out->order.kind = (int)record_number(list, at + 14);
	out->order.quiet_ms = record_number(list, at + 15);
	record_text(out->order.target, sizeof(out->order.target), list, at + 16);
	out->order.target_ok = resp_is(list, at + 17, "1");
	out->order.term = out->term;
}

/* No candidate can win yet: writes what a user may want to know (waits() in prelude.lua). */
static void record_read_wait(const struct redis_lane *lane, const struct resp *list, size_t at,
			     struct baton_record *out)
{
	const struct redis_options *o = &lane->store->options;
	uint64_t up_s = record_number(list, at + 5);

	if (resp_is(list, at + 6, "1"))
		(void)snprintf(out->wait, sizeof(out->wait),
			       "this Redis has followed another server and may not know of all its "
			       "leases");
	else if (up_s > o->max_lease_ms / 1000 + 1)
		(void)snprintf(out->wait, sizeof(out->wait),
			       "this Redis is another server than before and may not know of all "
			       "leases");
	else
		(void)snprintf(out->wait, sizeof(out->wait),
			       "this Redis started %llu s ago and may have lost leases%s",
			       (unsigned long long)up_s,
			       o->mode == REDIS_SINGLE ? "; durable=1 if it keeps them" : "");
}

void redis_record(struct redis_lane *lane, const char *name, const struct resp *list, size_t at,
		  struct baton_record *out)
{
	int64_t free_ms = -1;

	(void)resp_get_i64(list, at + 3, &free_ms);
	*out = (struct baton_record){
		.held = resp_is(list, at, "1"),
		.term = record_number(list, at + 1),
		.paused = resp_is(list, at + 2, "1"),
		.reserved = resp_is(list, at + 4, "1"),
		.free_in_ns = BATON_STORE_NEVER,
	};
	/* -2: the lease has ended just now. */
	if (free_ms == -2)
		free_ms = 0;
	if (free_ms >= 0 && free_ms < INT32_MAX)
		out->free_in_ns = (uint64_t)free_ms * CLOCK_NS_PER_MS;
	if (out->held)
		record_read_claim(list, at, out);
	else if (list->n > at + 5)
		record_read_wait(lane, list, at, out);
	out->watched = redis_index_seen(lane->store->index, name, out->held ? out->lease_id : "",
					out->free_in_ns);
}

/* ---- the verb ---- */

static int observe_part(struct redis_lane *lane, struct baton_call *call,
			struct baton_observation *list, size_t n)
{
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_OBSERVE, 2 * n);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	for (size_t i = 0; i < n; i++) {
		resp_text(&lane->wire.out, list[i].name);
		resp_text(&lane->wire.out, list[i].id);
	}
	outcome = redis_call_end(lane, call, REDIS_OBSERVE, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY || reply->n != n)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < n; i++) {
		if (reply->items[i].n < 5)
			return redis_call_strange(lane, call);
		redis_record(lane, list[i].name, &reply->items[i], 0, list[i].record);
		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
	}
	return BATON_OUTCOME_OK;
}

void redis_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = redis_part(n, done);
		int outcome = observe_part(l, call, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome = outcome;
			list[i].code = call->error.code;
			*list[i].record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
		}
		done += k;
	}
}
