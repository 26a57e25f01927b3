/*
 * doctor.c: examines a Consul cluster: which server answers, its version, how many servers there
 * are, how short a session may be, and whether our token has the rights that are needed. It writes
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"
#include "store/doctor.h"

struct visit {
	struct consul_lane *lane;
	struct baton_call *call;
	struct doctor doctor;
	bool is_unfit;
};

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)

/* Asks one question; NULL: it was refused, or has failed. */
static json_t *doctor_ask(struct visit *v, const char *path)
{
	struct baton_call quiet = {.deadline_ns = v->call->deadline_ns};
	struct consul_answer answer;

	(void)web_begin(&v->lane->web);
	if (consul_call(v->lane, &quiet, path, &answer) == BATON_OUTCOME_OK && answer.status == 200)
		return answer.json;
	json_decref(answer.json);
	return NULL;
}

/* ---- the cluster ---- */

static int examine_leader(struct visit *v)
{
	struct consul_store *s = v->lane->store;
	const struct http_host *host = web_host(&s->web, atomic_load(&s->web.turn));
	struct consul_answer answer;

	(void)web_begin(&v->lane->web);
	int outcome = consul_call(v->lane, v->call, "/v1/status/leader", &answer);
	bool has_leader = strchr(answer.text, ':') != NULL;

	json_decref(answer.json);
	if (outcome != BATON_OUTCOME_OK)
		return -1;
	TELL(v, OK, "reachability", NULL, "Consul answers at %s:%s.", host->name, host->port);
	if (!has_leader) {
		v->is_unfit = true;
		TELL(v, ERROR, "leader", "Bring back a majority of its servers.",
		     "The cluster has no leader: no candidate can win or renew.");
	}
	return 0;
}

static void judge_version(struct visit *v, const char *version)
{
	char *end;
	long major = strtol(version, &end, 10);
	long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

	if (version[0] == '\0')
		TELL(v, NOTE, "version", NULL, "This token may not ask for the server's version.");
	else if (major == 0 || (major == 1 && minor < 7))
		TELL(v, WARNING, "version", "Upgrade it.",
		     "The version is %.30s; baton needs 1.7 or later.", version);
	else
		TELL(v, OK, "version", NULL, "The version is %.30s.", version);
}

/* An agent that isn't a server doesn't know the servers' settings. */
static void judge_ttl(struct visit *v, const json_t *config)
{
	const char *text = js_text(config, "SessionTTLMin");
	double most_s = text[0] != '\0' ? strtod(text, NULL) : 0;
	uint64_t told_ms = v->lane->store->options.ttl_min_ms;

	if (strstr(text, "ms") != NULL)
		most_s /= 1000;
	else if (strchr(text, 'm') != NULL)
		most_s *= 60;
	if (most_s * 1000 > (double)told_ms)
		TELL(v, WARNING, "session ttl", "Say the same in session_ttl_min=.",
		     "Its servers want sessions of %.20s at least, and the URL speaks of %llu ms.",
		     text, (unsigned long long)told_ms);
}

static void examine_agent(struct visit *v)
{
	json_t *self = doctor_ask(v, "/v1/agent/self");

	judge_version(v, js_text(js_get(self, "Config"), "Version"));
	judge_ttl(v, js_get(self, "DebugConfig"));
	json_decref(self);
}

static void examine_servers(struct visit *v)
{
	json_t *peers = doctor_ask(v, "/v1/status/peers");
	size_t n = json_array_size(peers);

	json_decref(peers);
	if (n > 0 && n < 3)
		TELL(v, NOTE, "servers", "Run three or five servers.",
		     "Number of servers: %zu. While one is down, no candidate can win or renew.",
		     n);
	else if (n > 0)
		TELL(v, OK, "servers", NULL,
		     "Number of servers: %zu, and the URL names %zu agents.", n,
		     v->lane->store->options.web.n_hosts);
}

static void examine_encryption(struct visit *v)
{
	const struct consul_options *o = &v->lane->store->options;
	bool has_secret = o->token[0] != '\0' || o->token_file[0] != '\0';

	doctor_tell_encryption(&v->doctor, o->web.tls, web_is_local(&o->web),
			       has_secret ? "token" : NULL, "Use consuls://.");
}

static void examine_session(struct visit *v)
{
	const struct consul_options *o = &v->lane->store->options;

	if (o->node[0] != '\0')
		TELL(v, OK, "sessions", NULL,
		     "Sessions belong to the node %.60s, which stays when an agent leaves.",
		     o->node);
	else
		TELL(v, NOTE, "sessions",
		     "Leave out checks= if a crash need not be noticed sooner than by the lease.",
		     "Sessions end with the checks %.60s of the agent's node; a lock delay as "
		     "long as the lease follows.",
		     o->checks);
}

/* ---- our rights ---- */

/* Sends a write whose condition can't hold. Consul checks the rights before the condition. */
static int examine_rights(struct visit *v)
{
	struct consul_store *s = v->lane->store;
	struct consul_key keys[] = {consul_state_key(s, "doctor"),
				    consul_candidate_key(s, "doctor", "none"),
				    consul_count_key(s, "none")};
	struct consul_answer answer;
	bool is_denied = false;

	consul_begin(v->lane);
	for (size_t i = 0; i < 3; i++) {
		struct consul_op op = {.verb = "cas",
				       .key = &keys[i],
				       .value = "",
				       .index = TERM_MAX,
				       .has_index = true};

		consul_op(v->lane, &op);
	}
	int outcome = consul_txn(v->lane, v->call, "rights", &answer);

	for (size_t i = 0; i < consul_n_errors(&answer) && outcome == BATON_OUTCOME_OK; i++) {
		size_t op;

		is_denied = is_denied || consul_error(v->call, &answer, i, &op) == CONSUL_DENIED;
	}
	json_decref(answer.json);
	is_denied =
		is_denied || (outcome != BATON_OUTCOME_OK && v->call->error.code == BATON_E_DENIED);
	if (outcome != BATON_OUTCOME_OK && !is_denied)
		return -1;
	v->is_unfit = v->is_unfit || is_denied;
	if (is_denied)
		TELL(v, ERROR, "rights", "Give it the policy that stands in baton-consul(7).", "%s",
		     v->call->error.text);
	else
		TELL(v, OK, "rights", NULL,
		     "This token may read and write the keys below %s/ and baton's other keys.",
		     s->options.prefix);
	return 0;
}

static int examine_speed(struct visit *v)
{
	struct consul_key key = consul_count_key(v->lane->store, "none");
	struct doctor_trips trips = {.n = 0};

	for (int i = 0; i < DOCTOR_TRIPS && !v->is_unfit; i++) {
		struct consul_op op = {.verb = "get-tree", .key = &key};
		struct consul_answer answer;
		uint64_t began_ns = clock_boot_ns();

		consul_begin(v->lane);
		consul_op(v->lane, &op);
		int outcome = consul_read(v->lane, v->call, "speed", &answer);

		json_decref(answer.json);
		if (outcome != BATON_OUTCOME_OK)
			return -1;
		doctor_trip(&trips, began_ns, clock_boot_ns());
	}
	if (trips.n > 0)
		doctor_tell_trips(&v->doctor, &trips, "A read through the cluster");
	return 0;
}

int consul_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct visit v = {.lane = l, .call = call, .doctor = {.found = found, .arg = arg}};

	if (examine_leader(&v) != 0)
		return BATON_OUTCOME_FAILED;
	examine_encryption(&v);
	if (!v.is_unfit) {
		if (examine_rights(&v) != 0)
			return BATON_OUTCOME_FAILED;
		examine_agent(&v);
		examine_servers(&v);
		examine_session(&v);
		if (examine_speed(&v) != 0)
			return BATON_OUTCOME_FAILED;
	}
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
