/*
 * lease.c: the session that a process keeps alive, and the claims on it. A key of the session
 * counts the claims.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* Sends a PUT without a body that matters, with the session at the end of its path. */
static int session_put(struct consul_lane *lane, struct baton_call *call, const char *what,
		       const char *session, struct consul_answer *answer)
{
	char path[96];

	bytes_print(web_begin(&lane->web), "{}");
	(void)snprintf(path, sizeof(path), "/v1/session/%s/%s", what, session);
	return consul_call(lane, call, path, answer);
}

/* ---- open ---- */

/*
 * How long a lock stays locked after its session has ended. If the session can end with a node,
 * before its time, no other candidate may lead until we have surely noticed.
 */
static uint64_t session_lock_delay_ms(const struct consul_options *o, uint64_t ttl_ms)
{
	return o->node[0] == '\0' && o->lock_delay_ms < ttl_ms ? ttl_ms : o->lock_delay_ms;
}

static json_t *session_checks(const struct consul_options *o)
{
	json_t *list = json_array();

	for (const char *at = o->checks; *at != '\0';) {
		size_t n = strcspn(at, ",");

		if (n > 0)
			(void)json_array_append_new(list, json_stringn(at, n));
		at += n + (at[n] == ',');
	}
	return list;
}

static int session_describe(struct consul_lane *lane, struct baton_call *call,
			    const struct baton_lease *lease)
{
	const struct consul_options *o = &lane->store->options;
	uint64_t ttl_ms = (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
	uint64_t delay_ms = session_lock_delay_ms(o, ttl_ms);
	char ttl[32], delay[32];

	if (delay_ms > CONSUL_LOCK_DELAY_MAX_MS)
		return store_fail(
			&call->error, BATON_E_TIMING,
			"with checks= a lease has 60 s at most: Consul's lock delay, which "
			"has to be as long, ends there");
	(void)snprintf(ttl, sizeof(ttl), "%" PRIu64 "ms", ttl_ms);
	(void)snprintf(delay, sizeof(delay), "%" PRIu64 "ms", delay_ms);
	json_t *session =
		json_pack("{s:s,s:s,s:s,s:s,s:o}", "Name", lease->owner, "TTL", ttl, "LockDelay",
			  delay, "Behavior", "release", "NodeChecks", session_checks(o));

	if (o->node[0] != '\0')
		(void)json_object_set_new(session, "Node", json_string(o->node));
	char *text = json_dumps(session, JSON_COMPACT);

	json_decref(session);
	bytes_print(web_begin(&lane->web), "%s", text != NULL ? text : "");
	lane->web.body.has_failed = lane->web.body.has_failed || text == NULL;
	free(text);
	return 0;
}

/* Makes a node that belongs to no agent: the node only carries sessions, and stays when agents
 * leave. */
static int session_make_node(struct consul_lane *lane, struct baton_call *call)
{
	json_t *node =
		json_pack("{s:s,s:s}", "Node", lane->store->options.node, "Address", "127.0.0.1");
	char *text = json_dumps(node, JSON_COMPACT);
	struct consul_answer answer;

	json_decref(node);
	bytes_print(web_begin(&lane->web), "%s", text != NULL ? text : "");
	lane->web.body.has_failed = lane->web.body.has_failed || text == NULL;
	free(text);
	int outcome = consul_call(lane, call, "/v1/catalog/register", &answer);

	json_decref(answer.json);
	return outcome;
}

static int session_create(struct consul_lane *lane, struct baton_call *call,
			  const struct baton_lease *lease, struct web_lease *out)
{
	int outcome = BATON_OUTCOME_FAILED;

	for (int round = 0; round < 2; round++) {
		struct consul_answer answer;

		if (session_describe(lane, call, lease) != 0)
			return BATON_OUTCOME_FAILED;
		outcome = consul_call(lane, call, "/v1/session/create", &answer);
		const char *id = js_text(answer.json, "ID");

		if (outcome == BATON_OUTCOME_OK &&
		    (id[0] == '\0' || strlen(id) >= sizeof(out->name) ||
		     strlen(id) > CONSUL_SESSION_MAX))
			outcome = consul_strange(call);
		else if (outcome == BATON_OUTCOME_OK)
			(void)snprintf(out->name, sizeof(out->name), "%s", id);
		json_decref(answer.json);
		if (outcome != BATON_OUTCOME_REFUSED || round > 0)
			break;
		outcome = session_make_node(lane, call);
		if (outcome != BATON_OUTCOME_OK)
			break;
	}
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}

void consul_sweep(struct consul_lane *lane, const struct baton_call *call,
		  const struct consul_answer *seen)
{
	const json_t *results = consul_results(seen);
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct consul_answer answer;

	consul_begin(lane);
	for (size_t i = 0; i < json_array_size(results) && lane->n_ops < CONSUL_CHUNK; i++) {
		const json_t *kv = js_get(json_array_get(results, i), "KV");
		struct consul_key key;
		struct consul_op op = {.verb = "delete-cas", .key = &key, .has_index = true};

		const char *at = js_text(kv, "Key");
		size_t n = strlen(lane->store->options.prefix);

		/* Keys below the prefix are claims, which stay. */
		if (js_text(kv, "Session")[0] != '\0' || !js_u64(kv, "ModifyIndex", &op.index) ||
		    strlen(at) <= n || at[n] != '.')
			continue;
		(void)snprintf(key.text, sizeof(key.text), "%s", at);
		consul_op(lane, &op);
	}
	if (lane->n_ops == 0)
		return;
	(void)consul_txn(lane, &quiet, "sweep", &answer);
	json_decref(answer.json);
}

/* Makes the key that counts the session's claims: 0. It is locked while the session lives. */
static int count_begin(struct consul_lane *lane, struct baton_call *call, struct web_lease *lease)
{
	struct consul_key key = consul_count_key(lane->store, lease->name);
	struct consul_key all = consul_count_key(lane->store, "");
	struct consul_op lock = {.verb = "lock", .key = &key, .value = "0", .session = lease->name};
	struct consul_op list = {.verb = "get-tree", .key = &all};
	struct consul_answer answer;
	size_t op;

	consul_begin(lane);
	consul_op(lane, &lock);
	consul_op(lane, &list);
	int outcome = consul_txn(lane, call, "count", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 409) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the new session has ended before it could be used");
		(void)consul_error(call, &answer, 0, &op);
		outcome = BATON_OUTCOME_FAILED;
	} else if (outcome == BATON_OUTCOME_OK &&
		   !js_u64(consul_find(&answer, key.text), "ModifyIndex", &lease->index)) {
		outcome = consul_strange(call);
	} else if (outcome == BATON_OUTCOME_OK) {
		consul_sweep(lane, call, &answer);
	}
	json_decref(answer.json);
	return outcome;
}

/* ---- close ---- */

/* OK also if the session was gone. */
static int session_destroy(struct consul_lane *lane, struct baton_call *call, const char *session)
{
	struct consul_key key = consul_count_key(lane->store, session);
	struct consul_op op = {.verb = "delete", .key = &key};
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct consul_answer answer;
	int outcome = session_put(lane, call, "destroy", session, &answer);

	json_decref(answer.json);
	if (outcome != BATON_OUTCOME_OK && outcome != BATON_OUTCOME_REFUSED)
		return outcome;
	consul_begin(lane);
	consul_op(lane, &op);
	(void)consul_txn(lane, &quiet, "close", &answer); /* if this fails, it is swept later */
	json_decref(answer.json);
	consul_shown_clear(lane, call->deadline_ns, session);
	return BATON_OUTCOME_OK;
}

int consul_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct consul_lane *lane = l;
	struct web_lease own = {.n_claims = 0};
	struct web_lease older;

	if (web_lease_take_older(&lane->store->web, lease->id, &older)) {
		struct baton_call quiet = {.deadline_ns = call->deadline_ns};

		(void)session_destroy(lane, &quiet, older.name); /* else it expires by itself */
	}
	(void)snprintf(own.id, sizeof(own.id), "%s", lease->id);
	int outcome = session_create(lane, call, lease, &own);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	outcome = count_begin(lane, call, &own);
	if (outcome == BATON_OUTCOME_OK && web_lease_note(&lane->store->web, &own))
		return BATON_OUTCOME_OK;
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
		outcome = BATON_OUTCOME_FAILED;
	/* The new session would stay until it expires. */
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	(void)session_destroy(lane, &quiet, own.name);
	return outcome;
}

int consul_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct consul_lane *lane = l;
	struct web_lease own;

	if (!web_lease_get(&lane->store->web, lease->id, &own))
		return BATON_OUTCOME_OK;
	int outcome = session_destroy(lane, call, own.name);

	if (outcome == BATON_OUTCOME_OK || call->is_last)
		web_lease_forget(&lane->store->web, lease->id);
	return outcome;
}

/* ---- renew ---- */

int consul_read_count(struct consul_lane *lane, struct baton_call *call, const char *id,
		      struct web_lease *lease)
{
	struct consul_key key = consul_count_key(lane->store, lease->name);
	struct consul_op op = {.verb = "get-tree", .key = &key};
	struct consul_answer answer;
	char value[32];

	consul_begin(lane);
	consul_op(lane, &op);
	int outcome = consul_read(lane, call, "count", &answer);
	const json_t *count = consul_find(&answer, key.text);

	if (outcome == BATON_OUTCOME_OK && strcmp(js_text(count, "Session"), lease->name) != 0)
		outcome = BATON_OUTCOME_REFUSED;
	if (outcome == BATON_OUTCOME_OK && (!js_u64(count, "ModifyIndex", &lease->index) ||
					    !js_base64(count, "Value", value, sizeof(value))))
		outcome = consul_strange(call);
	if (outcome == BATON_OUTCOME_OK) {
		lease->n_claims = strtoull(value, NULL, 10);
		web_lease_count(&lane->store->web, id, lease->n_claims, lease->index);
	}
	json_decref(answer.json);
	return outcome;
}

/*
 * A server that believes to lead the cluster renews sessions out of its memory, even if it leads no
 * more, or doesn't know all yet. So a renewal counts only if a read through the whole cluster, sent
 * after it, still finds the session. The session is lost only if that read doesn't find it.
 */
int consul_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held)
{
	struct consul_lane *lane = l;
	struct consul_answer answer;
	struct web_lease own;

	*n_held = 0;
	if (!web_lease_get(&lane->store->web, lease->id, &own))
		return BATON_OUTCOME_REFUSED;
	int outcome = session_put(lane, call, "renew", own.name, &answer);
	bool is_renewed = outcome == BATON_OUTCOME_OK && answer.status == 200;
	const char *id = js_text(json_array_get(answer.json, 0), "ID");

	if (is_renewed && strcmp(id, own.name) != 0)
		outcome = consul_strange(call);
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
		outcome = consul_read_count(lane, call, lease->id, &own);
	if (outcome == BATON_OUTCOME_OK && !is_renewed) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "a server of the Consul cluster doesn't know our session, and "
				 "others do");
		outcome = BATON_OUTCOME_UNKNOWN;
	}
	*n_held = outcome == BATON_OUTCOME_OK ? (uint32_t)own.n_claims : 0;
	return outcome;
}

/* ---- the claims on a session ---- */

/* Whom to tell of the claims, and their count. */
struct inventory {
	struct consul_lane *lane;
	struct baton_call *call;
	struct web_lease own;
	void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term);
	void *arg;
	uint64_t n;
};

/* A lock of our session that has no valid claim of ours in it is given back. */
static int claims_drop(struct inventory *v, const char *name, const json_t *kv)
{
	struct consul_answer answer;
	uint64_t index = 0;

	(void)js_u64(kv, "ModifyIndex", &index);
	consul_begin(v->lane);
	consul_op_unlock(v->lane, name, v->own.name, index);
	int outcome = consul_txn(v->lane, v->call, "drop", &answer);

	json_decref(answer.json);
	return outcome;
}

static int claims_read(struct inventory *v, const json_t *kv, const struct consul_answer *all,
		       const char *lease_id)
{
	struct baton_record record = {.nonce = 0};
	char name[BATON_NAME_MAX + 1];
	uint64_t offset = 0;
	bool is_foreign;

	if (strcmp(js_text(kv, "Session"), v->own.name) != 0 ||
	    consul_key_read(v->lane->store, js_text(kv, "Key"), name) != 'l')
		return BATON_OUTCOME_OK;
	(void)consul_read_claim(kv, &record, &is_foreign);
	if (strcmp(record.lease_id, lease_id) != 0)
		return claims_drop(v, name, kv);
	json_t *state = consul_state(v->lane->store, name, all);

	(void)js_u64(state, "offset", &offset);
	json_decref(state);
	v->found(v->arg, name, record.nonce, consul_native(kv) + offset);
	v->n++;
	return BATON_OUTCOME_OK;
}

/* Corrects the count, unless it was written since. */
static int claims_correct_count(struct inventory *v)
{
	struct consul_answer answer;

	consul_begin(v->lane);
	consul_op_count(v->lane, &v->own, v->n);
	int outcome = consul_txn(v->lane, v->call, "count", &answer);

	json_decref(answer.json);
	return outcome == BATON_OUTCOME_OK ? consul_read_count(v->lane, v->call, v->own.id, &v->own)
					   : outcome;
}

/*
 * Consul can't tell what a session has locked, so all elections are read. This is hardly ever
 * asked, unless something went wrong.
 */
int consul_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg)
{
	struct inventory v = {.lane = l, .call = call, .found = found, .arg = arg};
	struct consul_answer answer;

	if (!web_lease_get(&v.lane->store->web, lease->id, &v.own))
		return BATON_OUTCOME_OK;
	int outcome = consul_read_count(v.lane, call, lease->id, &v.own);

	if (outcome == BATON_OUTCOME_REFUSED)
		return BATON_OUTCOME_OK; /* the session has ended, so it has no claims */
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	consul_begin(v.lane);
	consul_op_read(v.lane, "");
	outcome = consul_read(v.lane, call, "claims", &answer);
	const json_t *results = consul_results(&answer);

	for (size_t i = 0; i < json_array_size(results) && outcome == BATON_OUTCOME_OK; i++)
		outcome = claims_read(&v, js_get(json_array_get(results, i), "KV"), &answer,
				      lease->id);
	json_decref(answer.json);
	return outcome == BATON_OUTCOME_OK && v.n != v.own.n_claims ? claims_correct_count(&v)
								    : outcome;
}
