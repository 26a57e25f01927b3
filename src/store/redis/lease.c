/*
 * lease.c: the one key that a process keeps alive, and the claims on it.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* Redis counts whole milliseconds, and rounds the time of the start down. So the result is rounded
 * up, and has one more. */
static uint64_t lease_ttl_ms(const struct baton_lease *lease)
{
	return (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS + 1;
}

/* Refuses a lease that is longer than the others wait after a restart: the guard would not cover
 * it. */
static int lease_too_long(const struct redis_lane *lane, struct baton_call *call,
			  const struct baton_lease *lease)
{
	uint64_t max_ms = lane->store->options.max_lease_ms;

	if (lease->ttl_ns <= max_ms * CLOCK_NS_PER_MS)
		return 0;
	uint64_t ms = (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;

	return store_fail(&call->error, BATON_E_TIMING,
			  "a lease of %llu ms is longer than max_lease, which is %llu ms; write "
			  "max_lease=%llu in the URL of every candidate, or make the lease shorter",
			  (unsigned long long)ms, (unsigned long long)max_ms,
			  (unsigned long long)ms);
}

/* All candidates must use the same values for the guard: else it guards nothing. */
static int lease_disagree(const struct redis_lane *lane, struct baton_call *call,
			  const struct resp *reply)
{
	const struct redis_options *o = &lane->store->options;

	if (resp_is(reply, 0, "max"))
		(void)store_fail(&call->error, BATON_E_TIMING,
				 "other candidates use max_lease=%.20s on %.80s, and this one "
				 "%llu: they have to agree",
				 resp_get(reply, 1), o->prefix,
				 (unsigned long long)o->max_lease_ms);
	else
		(void)store_fail(&call->error, BATON_E_TIMING,
				 "other candidates use durable=%.20s on %.80s, and this one %d: "
				 "they have to agree",
				 resp_get(reply, 1), o->prefix, o->durable ? 1 : 0);
	return BATON_OUTCOME_FAILED;
}

int redis_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct redis_lane *lane = l;
	struct resp_out *out = &lane->wire.out;
	const struct resp *reply;

	if (lease_too_long(lane, call, lease) != 0)
		return BATON_OUTCOME_FAILED;
	int outcome = redis_call_begin(lane, call, REDIS_LEASE_OPEN, 6);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_text(out, lease->id);
	resp_text(out, lease->owner);
	resp_text(out, lease->address);
	resp_number(out, lease_ttl_ms(lease));
	resp_number(out, lane->store->options.max_lease_ms);
	resp_text(out, lane->store->options.durable ? "1" : "0");
	outcome = redis_call_end(lane, call, REDIS_LEASE_OPEN, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (resp_is(reply, 0, "ok")) {
		redis_own_open(lane->store->own, lease, lease_ttl_ms(lease), &lane->server);
		return outcome;
	}
	if (!resp_is(reply, 0, "max") && !resp_is(reply, 0, "durable"))
		return redis_call_strange(lane, call);
	return lease_disagree(lane, call, reply);
}

/* Where the last renewal stopped checking this lease's claims. */
static const char *lease_cursor(struct redis_lane *lane, const char *id)
{
	if (strcmp(lane->cursor_lease, id) != 0 || lane->cursor[0] == '\0')
		(void)snprintf(lane->cursor, sizeof(lane->cursor), "0");
	(void)snprintf(lane->cursor_lease, sizeof(lane->cursor_lease), "%s", id);
	return lane->cursor;
}

/* Notes how much time the leases of leaders that we wait for have left. The time counts from now,
 * which is after the answer (rule 1). */
static void lease_note_others(struct redis_lane *lane, char (*ids)[BATON_LEASE_ID_MAX + 1],
			      size_t n, const struct resp *reply)
{
	for (size_t i = 0; i < n; i++) {
		int64_t left_ms;

		if (resp_get_i64(reply, 3 + i, &left_ms) && left_ms != -1)
			redis_index_left(lane->store->index, ids[i],
					 left_ms > 0 ? (uint64_t)left_ms * CLOCK_NS_PER_MS : 0);
	}
}

/* Renews while the cluster moves our slot: the lease has gone to the new node already. */
static int lease_keep(struct redis_lane *lane, struct baton_call *call,
		      const struct baton_lease *lease, uint32_t *n_held)
{
	const struct resp *reply;
	uint64_t held = 0;
	int outcome = BATON_OUTCOME_FAILED;

	if (redis_connect_asked(lane, call) == 0)
		outcome = redis_call_begin_lease(lane, call, REDIS_LEASE_KEEP, lease->id, 1);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_number(&lane->wire.out, lease_ttl_ms(lease));
	outcome = redis_call_end(lane, call, REDIS_LEASE_KEEP, &reply);
	if (outcome == BATON_OUTCOME_OK && resp_is(reply, 0, "gone"))
		outcome = BATON_OUTCOME_REFUSED;
	else if (outcome == BATON_OUTCOME_OK &&
		 !(resp_is(reply, 0, "ok") && resp_get_u64(reply, 1, &held)))
		outcome = redis_call_strange(lane, call);
	*n_held = (uint32_t)held;
	redis_disconnect(lane);
	return outcome;
}

int redis_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		      uint32_t *n_held)
{
	struct redis_lane *lane = l;
	char ids[REDIS_SEEN_MAX][BATON_LEASE_ID_MAX + 1];
	size_t n = redis_index_leases(lane->store->index, ids, REDIS_SEEN_MAX);
	const struct resp *reply;
	uint64_t held;
	int outcome = redis_call_begin_lease(lane, call, REDIS_LEASE_RENEW, lease->id, 2 + n);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	resp_number(&lane->wire.out, lease_ttl_ms(lease));
	resp_text(&lane->wire.out, lease_cursor(lane, lease->id));
	for (size_t i = 0; i < n; i++)
		resp_text(&lane->wire.out, ids[i]);
	outcome = redis_call_end(lane, call, REDIS_LEASE_RENEW, &reply);
	if (outcome == BATON_OUTCOME_FAILED && lane->asked.name[0] != '\0')
		return lease_keep(lane, call, lease, n_held);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (resp_is(reply, 0, "gone"))
		return BATON_OUTCOME_REFUSED;
	if (!resp_is(reply, 0, "ok") || !resp_get_u64(reply, 1, &held) || reply->n != 3 + n)
		return redis_call_strange(lane, call);
	(void)snprintf(lane->cursor, sizeof(lane->cursor), "%s", resp_get(reply, 2));
	lease_note_others(lane, ids, n, reply);
	*n_held = (uint32_t)held;
	return BATON_OUTCOME_OK;
}

/* Runs one script, which gives some claims back, and removes some of our candidacies. *n: how many
 * of the latter. */
static int lease_close_part(struct redis_lane *lane, struct baton_call *call, const char *id,
			    char cursor[24], size_t *n)
{
	struct resp_out names = {0};
	const struct resp *reply;

	*n = redis_own_put_shown(lane->store->own, id, &names);
	int outcome = redis_call_begin(lane, call, REDIS_LEASE_CLOSE, 2 + *n);

	if (outcome == BATON_OUTCOME_OK) {
		resp_text(&lane->wire.out, id);
		resp_text(&lane->wire.out, cursor);
		resp_words(&lane->wire.out, &names);
		outcome = redis_call_end(lane, call, REDIS_LEASE_CLOSE, &reply);
	}
	resp_out_done(&names);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (reply->n != 1 || resp_get(reply, 0)[0] == '\0')
		return redis_call_strange(lane, call);
	(void)snprintf(cursor, 24, "%s", resp_get(reply, 0));
	redis_own_drop_shown(lane->store->own, id);
	return BATON_OUTCOME_OK;
}

/* Gives claims back in batches, so that the server serves others in between. */
int redis_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct redis_lane *lane = l;
	int outcome = BATON_OUTCOME_OK;
	char cursor[24] = "0";
	size_t n = 0;

	redis_own_close(lane->store->own, lease->id);
	do
		outcome = lease_close_part(lane, call, lease->id, cursor, &n);
	while (outcome == BATON_OUTCOME_OK && (strcmp(cursor, "0") != 0 || n > 0));
	return outcome;
}

int redis_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		 void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		 void *arg)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	char cursor[24] = "0";

	redis_own_list(lane->store->own, lease->id, false);
	do {
		int outcome = redis_call_begin(lane, call, REDIS_CLAIMS, 2);

		if (outcome == BATON_OUTCOME_OK) {
			resp_text(&lane->wire.out, lease->id);
			resp_text(&lane->wire.out, cursor);
			outcome = redis_call_end(lane, call, REDIS_CLAIMS, &reply);
		}
		if (outcome != BATON_OUTCOME_OK)
			return outcome;
		if (reply->n % 3 != 1)
			return redis_call_strange(lane, call);
		(void)snprintf(cursor, sizeof(cursor), "%s", resp_get(reply, 0));
		for (size_t i = 1; i < reply->n; i += 3) {
			uint64_t nonce, term;

			if (!resp_get_u64(reply, i + 1, &nonce) ||
			    !resp_get_u64(reply, i + 2, &term))
				return redis_call_strange(lane, call);
			redis_own_claim(lane->store->own, lease->id, resp_get(reply, i), nonce,
					term, NULL);
			found(arg, resp_get(reply, i), nonce, term);
		}
	} while (strcmp(cursor, "0") != 0);
	redis_own_list(lane->store->own, lease->id, true);
	return BATON_OUTCOME_OK;
}
