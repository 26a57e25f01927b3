/*
 * candidates.c: candidates, orders, pauses and history: what people and other candidates look at.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* ---- candidates ---- */

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
			redis_mine_show(lane->store->mine, lease->id, list[i].name,
					&list[i].profile);
	}
	return BATON_OUTCOME_OK;
}

void redis_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_publication *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = n - done < REDIS_CHUNK ? n - done : REDIS_CHUNK;
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

	redis_mine_show(lane->store->mine, lease->id, name, NULL);
	int outcome = redis_call_begin(lane, call, REDIS_WITHDRAW, 2);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, lease->id);
	resp_text(&lane->wire.out, name);
	return redis_call_end(lane, call, REDIS_WITHDRAW, &reply);
}

static bool read_candidate(const struct resp *r, struct baton_candidate *c)
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

int redis_candidates(void *l, struct baton_call *call, const char *name,
		     void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_CANDIDATES, 1);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, name);
	outcome = redis_call_end(lane, call, REDIS_CANDIDATES, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->type != RESP_ARRAY)
		return redis_call_strange(lane, call);
	for (size_t i = 0; i < reply->n; i++) {
		struct baton_candidate c;

		if (!read_candidate(&reply->items[i], &c))
			return redis_call_strange(lane, call);
		found(arg, &c);
	}
	return BATON_OUTCOME_OK;
}

/* ---- orders ---- */

int redis_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct redis_lane *lane = l;
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_ORDER, 6);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(out, name);
	resp_number(out, order->term);
	resp_number(out, order->id);
	resp_signed(out, order->kind);
	resp_number(out, order->quiet_ms);
	resp_text(out, order->target);
	outcome = redis_call_end(lane, call, REDIS_ORDER, &reply);
	if (outcome == BATON_OUTCOME_OK && !resp_is(reply, 0, "1"))
		return BATON_OUTCOME_REFUSED;
	return outcome;
}

int redis_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = redis_call_begin(lane, call, REDIS_PAUSE, 2);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(&lane->wire.out, name);
	resp_text(&lane->wire.out, paused ? "1" : "0");
	return redis_call_end(lane, call, REDIS_PAUSE, &reply);
}

/* ---- history ---- */

/* Takes a field off a line; false: there is none. */
static bool field(const char **at, char *out, size_t size)
{
	size_t n = strcspn(*at, "\t");

	if (n >= size || (*at)[n] != '\t')
		return false;
	(void)memcpy(out, *at, n);
	out[n] = '\0';
	*at += n + 1;
	return true;
}

/* "term since until ended server leader", times in microseconds of that server's clock. */
static bool read_leadership(const char *line, struct baton_leadership *out)
{
	char term[24], since[24], until[24], server[48];

	*out = (struct baton_leadership){0};
	if (!field(&line, term, sizeof(term)) || !field(&line, since, sizeof(since)) ||
	    !field(&line, until, sizeof(until)) || !field(&line, out->ended, sizeof(out->ended)) ||
	    !field(&line, server, sizeof(server)))
		return false;
	uint64_t since_us = strtoull(since, NULL, 10);
	uint64_t until_us = strtoull(until, NULL, 10);

	out->term = strtoull(term, NULL, 10);
	out->since_ms = (int64_t)(since_us / 1000);
	out->until_ms = (int64_t)(until_us / 1000);
	out->since_ns = since_us * 1000;
	out->until_ns = until_us * 1000;
	(void)snprintf(out->clock, sizeof(out->clock), "redis %s", server);
	(void)snprintf(out->leader, sizeof(out->leader), "%s", line);
	return true;
}

int redis_history(void *l, struct baton_call *call, const char *name, size_t max,
		  void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = max > 0 ? redis_call_begin(lane, call, REDIS_HISTORY, 2) : 0;

	if (outcome != BATON_OUTCOME_OK)
		return max > 0 ? outcome : BATON_OUTCOME_OK;
	resp_text(&lane->wire.out, name);
	resp_number(&lane->wire.out, max < 10000 ? max : 10000);
	outcome = redis_call_end(lane, call, REDIS_HISTORY, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	for (size_t i = 0; i < reply->n; i++) {
		struct baton_leadership row;

		if (!read_leadership(resp_get(reply, i), &row))
			return redis_call_strange(lane, call);
		found(arg, &row);
	}
	return BATON_OUTCOME_OK;
}
