/*
 * backend_consul.c: a Consul server, as its operator with a management token treats it, and the
 * network in front of it (proxy.h). Each case has a prefix and a token of its own, which may use
 * just that: the server is one of the kind consul-acl. A server without ACLs, which lets everybody
 * do everything, is a backend of its own.
 *
 * It knows the keys that baton-consul(7) describes, and uses nothing of the driver; only the HTTP
 * client is the same.
 */
#include "backend.h"

#ifdef WITH_CONSUL

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"

#define TOKEN "BATON_TEST_TOKEN"
#define KEY_SIZE 1200
#define LOCK_BITS 12
/* The flags by which `consul lock` knows its own. */
#define FLAGS ((json_int_t)3304740253564472344)
#define WITH_FLAGS ",\"Flags\":3304740253564472344"

/* The requests by what stands in their path. */
static const char *const words[N_VERBS] = {
	[VERB_OPEN] = "/session/create",   [VERB_RENEW] = "/session/renew",
	[VERB_CAMPAIGN] = "/txn?campaign", [VERB_RELEASE] = "/txn?release",
	[VERB_OBSERVE] = "&observe",
};

/* ---- a small client ---- */

/* tests/servers says which token may do everything, where there are any (consul-acl). */
static bool open_admin(struct admin *a, unsigned port)
{
	const char *token = getenv(TOKEN);

	if (!admin_open(a, port))
		return false;
	if (token != NULL)
		snprintf(a->header, sizeof(a->header), "X-Consul-Token: %s", token);
	return true;
}

static bool is_good(const struct admin *a, json_t *answer)
{
	json_decref(answer);
	if (a->status != 200)
		fprintf(stderr, "conformance: Consul: status %d\n", a->status);
	return a->status == 200;
}

/* One operation of a transaction; more: its further members. */
static bool txn(struct hand *h, const char *verb, const char *key, const char *more)
{
	json_t *text = json_string(key);
	char *quoted = json_dumps(text, JSON_ENCODE_ANY);
	bool done = is_good(&h->admin, admin_ask(&h->admin, "PUT", "/v1/txn",
						 "[{\"KV\":{\"Verb\":\"%s\",\"Key\":%s%s}}]", verb,
						 quoted, more));

	free(quoted);
	json_decref(text);
	return done;
}

/* All keys that begin so; to be given back. */
static json_t *tree(struct hand *h, const char *key)
{
	json_t *ops = json_pack("[{s:{s:s,s:s}}]", "KV", "Verb", "get-tree", "Key", key);
	char *text = json_dumps(ops, JSON_COMPACT);
	json_t *answer = admin_send(&h->admin, "PUT", "/v1/txn?consistent", text, strlen(text));

	free(text);
	json_decref(ops);
	return answer;
}

/* The i-th of them. */
static const json_t *kv_of(const json_t *answer, size_t i)
{
	return js_get(json_array_get(js_get(answer, "Results"), i), "KV");
}

/* ---- keys ---- */

/* The case's own, with NAME as baton-consul(7) writes it. */
static const char *key(const struct hand *h, const char *name, const char *rest)
{
	static _Thread_local char out[4][KEY_SIZE];
	static _Thread_local unsigned turn;
	char *to = out[turn++ % 4];
	size_t n = (size_t)snprintf(to, KEY_SIZE, "%s/", h->label);

	for (const char *c = name; *c != '\0'; c++) {
		bool is_plain = *c != '/' && *c != '%' && (*c != '.' || c != name);

		n += (size_t)snprintf(to + n, KEY_SIZE - n, is_plain ? "%c" : "%%%02X",
				      (unsigned char)*c);
	}
	snprintf(to + n, KEY_SIZE - n, "/%s", rest);
	return to;
}

/* ---- places ---- */

/* What a case's token may do: the policy of baton-consul(7), with its prefix. */
static bool set_policy(struct hand *h, bool is_allowed)
{
	char rules[512] = "";
	char path[128];
	char id[64];
	json_t *policy = admin_ask(&h->admin, "GET", "/v1/acl/policies", "%s", "");

	id[0] = '\0';
	for (size_t i = 0; i < json_array_size(policy); i++)
		if (strcmp(js_text(json_array_get(policy, i), "Name"), h->label) == 0)
			snprintf(id, sizeof(id), "%s", js_text(json_array_get(policy, i), "ID"));
	json_decref(policy);
	if (is_allowed)
		snprintf(rules, sizeof(rules),
			 "key_prefix \\\"%s\\\" { policy = \\\"write\\\" } "
			 "session_prefix \\\"baton\\\" { policy = \\\"write\\\" } "
			 "node_prefix \\\"baton\\\" { policy = \\\"write\\\" }",
			 h->label);
	snprintf(path, sizeof(path), "/v1/acl/policy%s%s", id[0] != '\0' ? "/" : "", id);
	return is_good(&h->admin, admin_ask(&h->admin, "PUT", path,
					    "{\"ID\":\"%s\",\"Name\":\"%s\",\"Rules\":\"%s\"}", id,
					    h->label, rules));
}

static bool make_token(struct hand *h)
{
	json_t *token = admin_ask(&h->admin, "PUT", "/v1/acl/token",
				  "{\"Description\":\"%s\",\"Policies\":[{\"Name\":\"%s\"}]}",
				  h->label, h->label);

	snprintf(h->token, sizeof(h->token), "%s", js_text(token, "SecretID"));
	json_decref(token);
	return h->token[0] != '\0';
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	unsigned port = admin_port_of(base_url);

	if (h == NULL)
		return false;
	t->hand = h;
	snprintf(h->label, sizeof(h->label), "%s", label);
	if (!open_admin(&h->admin, port))
		return false;
	if (h->admin.header[0] != '\0' && (!set_policy(h, true) || !make_token(h)))
		return false;
	h->proxy = proxy_new(port, &protocol_http, words);
	if (h->proxy == NULL || !open_admin(&h->pulse, proxy_clear_port(h->proxy)))
		return false;
	snprintf(t->url, sizeof(t->url),
		 "consul://%s%s%s127.0.0.1:%u?prefix=%s&session_ttl_min=1000",
		 h->token[0] != '\0' ? ":" : "", h->token, h->token[0] != '\0' ? "@" : "",
		 proxy_port(h->proxy), label);
	return true;
}

static bool forget_keys(struct hand *h)
{
	return txn(h, "delete-tree", h->label, "");
}

static void clean(const char *base_url, const char *label)
{
	struct hand h = {0};

	snprintf(h.label, sizeof(h.label), "%s", label);
	if (open_admin(&h.admin, admin_port_of(base_url)))
		forget_keys(&h);
	admin_close(&h.admin);
}

/* A write that goes through the whole cluster. */
static void pulse(struct testcase *t)
{
	struct hand *h = admin_hand(t);
	char path[128];

	snprintf(path, sizeof(path), "/v1/kv/%s-pulse", h->label);
	json_decref(admin_ask(&h->pulse, "PUT", path, "1"));
}

/* ---- claims that end ---- */

/* A session of somebody else's. */
static bool make_session(struct hand *h, char *out, size_t size)
{
	json_t *session = admin_ask(&h->admin, "PUT", "/v1/session/create",
				    "{\"TTL\":\"1s\",\"NodeChecks\":[],\"LockDelay\":\"0s\"}");

	snprintf(out, size, "%s", js_text(session, "ID"));
	json_decref(session);
	return out[0] != '\0';
}

static bool unlock_key(struct hand *h, const char *name, const char *session)
{
	char more[160];

	snprintf(more, sizeof(more), ",\"Session\":\"%s\"" WITH_FLAGS, session);
	return txn(h, "unlock", key(h, name, ".lock"), more);
}

/* In one step: nobody else comes in between. */
static bool overwrite(struct hand *h, const char *name, const char *session)
{
	const char *at = key(h, name, ".lock");
	char other[64];

	if (!make_session(h, other, sizeof(other)))
		return false;
	json_t *ops = json_pack("[{s:{s:s,s:s,s:s,s:I}},{s:{s:s,s:s,s:s,s:I,s:s}}]", "KV", "Verb",
				"unlock", "Key", at, "Session", session, "Flags", FLAGS, "KV",
				"Verb", "lock", "Key", at, "Session", other, "Flags", FLAGS,
				"Value", "c29tZWJvZHktZWxzZQ=="); /* somebody-else */
	char *text = json_dumps(ops, JSON_COMPACT);
	bool done = is_good(&h->admin, admin_send(&h->admin, "PUT", "/v1/txn", text, strlen(text)));

	free(text);
	json_decref(ops);
	return done;
}

static bool destroy_session(struct hand *h, const char *session)
{
	char path[128];

	snprintf(path, sizeof(path), "/v1/session/destroy/%s", session);
	json_decref(admin_ask(&h->admin, "PUT", path, "{}"));
	return h->admin.status == 200;
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	struct hand *h = admin_hand(t);
	json_t *claim = tree(h, key(h, name, ".lock"));
	const char *session = js_text(kv_of(claim, 0), "Session");
	bool done = false;

	switch (way) {
	case WAY_DELETED: done = txn(h, "delete", key(h, name, ".lock"), ""); break;
	case WAY_OVERWRITTEN: done = overwrite(h, name, session); break;
	case WAY_SESSION: done = destroy_session(h, session); break;
	case WAY_DAMAGED:
		done = txn(h, "set", key(h, name, ".lock"),
			   ",\"Value\":\"cnViYmlzaA==\"" WITH_FLAGS);
		break;
	default: break;
	}
	json_decref(claim);
	return done;
}

static bool unlock(struct testcase *t, const char *name)
{
	struct hand *h = admin_hand(t);
	json_t *claim = tree(h, key(h, name, ".lock"));
	bool done = unlock_key(h, name, js_text(kv_of(claim, 0), "Session"));

	json_decref(claim);
	return done;
}

/* ---- faults ---- */

static bool forget(struct testcase *t)
{
	return forget_keys(admin_hand(t));
}

static bool deny(struct testcase *t, bool is_denied)
{
	return set_policy(admin_hand(t), !is_denied);
}

/* The last term is that of the key that is locked, and the offset. */
static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct hand *h = admin_hand(t);
	const char *at = key(h, name, ".lock");
	char state[64];
	char coded[BASE64_SIZE(sizeof(state))];
	char more[160];
	uint64_t created = 0;
	uint64_t locked = 0;

	if (!txn(h, "set", at, ",\"Value\":\"\"" WITH_FLAGS))
		return false;
	json_t *answer = tree(h, at);

	js_u64(kv_of(answer, 0), "CreateIndex", &created);
	js_u64(kv_of(answer, 0), "LockIndex", &locked);
	json_decref(answer);
	uint64_t native = created << LOCK_BITS | locked;

	if (term <= native) /* as high as it can't help being */
		return txn(h, "delete", key(h, name, ".baton"), "");
	snprintf(state, sizeof(state), "{\"offset\":\"%" PRIu64 "\"}", term - native);
	base64_encode(state, strlen(state), coded);
	snprintf(more, sizeof(more), ",\"Value\":\"%s\"", coded);
	return created > 0 && txn(h, "set", key(h, name, ".baton"), more);
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct hand *h = admin_hand(t);
	const char *wanted = key(h, name, ".lock");
	char all[80];
	int n = 0;

	if (strlen(name) != length)
		return -1;
	snprintf(all, sizeof(all), "%s/", h->label);
	json_t *answer = tree(h, all);

	for (size_t i = 0; i < json_array_size(js_get(answer, "Results")); i++)
		n += strcmp(js_text(kv_of(answer, i), "Key"), wanted) == 0;
	json_decref(answer);
	return n;
}

/* A server with ACLs has given us the token of its administrator. */
static bool serves_acl(const char *url)
{
	(void)url;
	return getenv(TOKEN) != NULL;
}

static bool serves_open(const char *url)
{
	return !serves_acl(url);
}

#define COMMON                                                                             \
	.has_processes = true, .has_network = true, .pushes = true, .shares_leases = true, \
	.is_durable = true, .keeps_history = true, .n_leases = 2, .place = place,          \
	.leave = admin_leave, .clean = clean, .pulse = pulse, .destroy = destroy,          \
	.ways = {[WAY_DELETED] = true,                                                     \
		 [WAY_OVERWRITTEN] = true,                                                 \
		 [WAY_SESSION] = true,                                                     \
		 [WAY_DAMAGED] = true},                                                    \
	.unlock = unlock, .down = proxy_down, .hole = proxy_hole, .fail = proxy_fail,      \
	.mute = proxy_mute, .late = proxy_late, .forget = forget, .set_term = set_term,    \
	.count_name = count_name, .calls = proxy_calls

const struct backend backend_consul = {
	.scheme = "consul",
	.serves = serves_acl,
	.deny = deny,
	COMMON,
};

const struct backend backend_consul_open = {
	.scheme = "consul+open",
	.serves = serves_open,
	COMMON,
};

#endif
