/*
 * call.c: carries one script out, once. A script that was not sent, or was refused before it ran,
 * is FAILED. A script that was sent and not answered is UNKNOWN.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/redis.h"

static int call_begin(struct redis_lane *lane, struct baton_call *call, int script,
		      const char *kind, const char *id, size_t n)
{
	const struct redis_store *store = lane->store;
	struct resp_out *out = &lane->wire.out;
	char key[sizeof(store->options.prefix) + BATON_LEASE_ID_MAX + 16];

	if (!lane->is_asking)
		lane->asked.name[0] = '\0';
	if (!lane->is_asking && redis_connect(lane, call) != 0)
		return BATON_OUTCOME_FAILED;
	if (!lane->is_asking && script != REDIS_RECLAIM && script != REDIS_LEASE_OPEN &&
	    script != REDIS_LEASE_CLOSE && redis_reclaim(lane, call) != 0)
		return BATON_OUTCOME_FAILED;
	resp_out_clear(out);
	if (lane->is_asking) { /* applies only to the one command behind it */
		resp_begin(out, 1);
		resp_text(out, "ASKING");
	}
	resp_begin(out, 5 + n);
	resp_text(out, "EVALSHA");
	resp_bytes(out, store->scripts[script].sha, 40);
	resp_text(out, "1");
	(void)snprintf(key, sizeof(key), "%s%s%s", store->options.prefix, kind, id);
	resp_text(out, key);
	resp_text(out, store->options.prefix);
	return BATON_OUTCOME_OK;
}

int redis_call_begin(struct redis_lane *lane, struct baton_call *call, int script, size_t n)
{
	return call_begin(lane, call, script, "namespace", "", n);
}

int redis_call_begin_lease(struct redis_lane *lane, struct baton_call *call, int script,
			   const char *id, size_t n)
{
	return call_begin(lane, call, script, "lease:", id, n);
}

/* Whether a script waits for the replicas (wait=). Scripts that only look don't. */
static bool is_awaited(const struct redis_lane *lane, int script)
{
	return lane->store->options.wait > 0 &&
	       (script == REDIS_LEASE_OPEN || script == REDIS_LEASE_RENEW ||
		script == REDIS_LEASE_KEEP || script == REDIS_RECLAIM || script == REDIS_CAMPAIGN ||
		script == REDIS_CLAIMS);
}

/* WAIT behind the script, on the same connection, waits for what the script has written. */
static void replicas_put_wait(struct redis_lane *lane)
{
	struct resp_out *out = &lane->wire.out;
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns =
		now_ns < lane->wire.net.deadline_ns ? lane->wire.net.deadline_ns - now_ns : 0;

	resp_begin(out, 3);
	resp_text(out, "WAIT");
	resp_number(out, lane->store->options.wait);
	resp_number(out, left_ns / CLOCK_NS_PER_MS * 3 / 4 + 1); /* 0 would mean for ever */
}

static int call_failed(struct redis_lane *lane, bool is_sure)
{
	redis_disconnect(lane);
	return is_sure ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
}

/* The server doesn't know the script, or has forgotten it, so it is loaded. */
static int call_load_script(struct redis_lane *lane, int script)
{
	struct resp_out out = {0};
	struct resp_out kept = lane->wire.out;
	const struct redis_text *text = &lane->store->scripts[script];
	const struct resp *reply;

	resp_begin(&out, 3);
	resp_text(&out, "SCRIPT");
	resp_text(&out, "LOAD");
	resp_bytes(&out, text->text, text->size);
	lane->wire.out = out;
	int rc = redis_wire_send(&lane->wire);

	resp_out_done(&lane->wire.out);
	lane->wire.out = kept;
	lane->wire.net.has_sent = false;
	if (rc != 0 || redis_wire_read(&lane->wire, &reply) != 0)
		return -1;
	if (reply->type != RESP_ERROR)
		return 0;
	bool is_sure;
	int code = redis_judge(reply->text, &is_sure);

	return store_fail(lane->wire.error, code, "Redis does not take our script: %.150s",
			  reply->text);
}

/* Whether the error says that another server may be the right one by now. */
static bool is_elsewhere(const struct redis_lane *lane, const char *text)
{
	static const char *const kinds[] = {"READONLY", "MASTERDOWN", "MOVED",      "ASK",
					    "NOAUTH",   "NOPERM",     "CLUSTERDOWN"};
	const char *said = redis_error(text);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(said, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return lane->store->options.mode == REDIS_SENTINEL && strncmp(said, "NOREPLICAS", 10) == 0;
}

static int call_judge(struct redis_lane *lane, struct baton_call *call, const char *text)
{
	bool is_sure;
	int code = redis_judge(text, &is_sure);
	struct redis_host to = lane->target;

	if (redis_redirect(text, "ASK ", &to))
		lane->asked = to;
	if (lane->asked.name[0] != '\0' || strstr(text, "non local key") != NULL)
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the cluster is moving the slot of %.80s to another node: leases "
				 "are renewed meanwhile, all else waits until that is done",
				 lane->store->options.prefix);
	else if (strncmp(redis_error(text), "READONLY", 8) == 0)
		(void)store_fail(
			&call->error, code,
			"this Redis has become a replica; the primary is looked for again");
	else
		(void)store_fail(&call->error, code, "Redis says: %.200s", text);
	if (is_elsewhere(lane, text))
		return call_failed(lane, is_sure);
	return is_sure ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
}

/* Reads the replicas' answer. If too few of them have the write, it may not last. */
static int replicas_hear(struct redis_lane *lane, struct baton_call *call)
{
	uint32_t wanted = lane->store->options.wait;
	const struct resp *reply;

	if (redis_wire_read(&lane->wire, &reply) != 0)
		return call_failed(lane, false);
	if (reply->type == RESP_INTEGER && reply->integer >= (int64_t)wanted)
		return BATON_OUTCOME_OK;
	(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
			 "%lld of the %u replicas that wait= asks for have confirmed it in time",
			 reply->type == RESP_INTEGER ? (long long)reply->integer : 0, wanted);
	if (lane->store->options.mode == REDIS_SENTINEL) /* they may follow another by now */
		return call_failed(lane, false);
	return BATON_OUTCOME_UNKNOWN;
}

/* The script's reply must stay valid while WAIT's is read. So WAIT is sent after the script's reply
 * was read, with buffers of its own. */
static int replicas_await(struct redis_lane *lane, struct baton_call *call)
{
	struct resp_out kept = lane->wire.out;
	struct resp_in heard = lane->wire.in;

	lane->wire.out = (struct resp_out){0};
	lane->wire.in = (struct resp_in){0};
	replicas_put_wait(lane);
	int outcome = redis_wire_send(&lane->wire) == 0 ? replicas_hear(lane, call)
							: call_failed(lane, false);

	resp_out_done(&lane->wire.out);
	resp_in_done(&lane->wire.in);
	lane->wire.out = kept;
	lane->wire.in = heard;
	return outcome;
}

int redis_call_end(struct redis_lane *lane, struct baton_call *call, int script,
		   const struct resp **reply)
{
	for (int try = 0; try < 2; try++) {
		if (redis_wire_send(&lane->wire) != 0)
			return call_failed(lane, !lane->wire.net.has_sent);
		/* The reply to ASKING doesn't matter: if it is a refusal, the script is refused,
		 * too. */
		if ((lane->is_asking && redis_wire_read(&lane->wire, reply) != 0) ||
		    redis_wire_read(&lane->wire, reply) != 0)
			return call_failed(lane, false);
		if ((*reply)->type != RESP_ERROR)
			return is_awaited(lane, script) ? replicas_await(lane, call)
							: BATON_OUTCOME_OK;
		if (try > 0 || strncmp((*reply)->text, "NOSCRIPT", 8) != 0)
			break;
		if (call_load_script(lane, script) != 0)
			return call_failed(lane, true);
	}
	return call_judge(lane, call, (*reply)->text);
}

int redis_call_strange(struct redis_lane *lane, struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "Redis answers a script in a way that it never returns; other "
			 "programs may write to %.80s",
			 lane->store->options.prefix);
	return call_failed(lane, false);
}
