/*
 * backend_etcd.c: an etcd server, as its administrator with etcdctl treats it, and the network in
 * front of it (proxy.h). Each case has a prefix and a user of its own, who may use just that.
 *
 * It knows the keys that baton-etcd(7) describes, and uses nothing of the driver; only the HTTP
 * client is the same.
 */
#include "backend.h"

#ifdef WITH_ETCD /* libcurl and jansson are there */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"

#define ROOT_PASSWORD "root"
#define BODY_SIZE 16384
#define KEY_SIZE 1200

/* The requests by the header that says what they are for. */
static const char *const words[N_VERBS] = {
	[VERB_OPEN] = "baton:open",         [VERB_RENEW] = "baton:renew",
	[VERB_CAMPAIGN] = "baton:campaign", [VERB_RELEASE] = "baton:release",
	[VERB_OBSERVE] = "baton:observe",
};

/* ---- a small client ---- */

/* The answer, of any status; NULL: none. */
static json_t *ask(struct admin *a, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static json_t *ask(struct admin *a, const char *path, const char *format, ...)
{
	static _Thread_local char body[BODY_SIZE];
	json_t *answer = NULL;
	va_list args;

	va_start(args, format);
	size_t n = (size_t)vsnprintf(body, sizeof(body), format, args);

	va_end(args);
	/* Other cases make users at the same time: then etcd wants to be asked again. */
	for (int try = 0; try < 20; try++) {
		json_decref(answer);
		answer = admin_send(a, "POST", path, body, n);
		if (strstr(js_text(answer, "message"), "revision of auth store is old") == NULL)
			break;
	}
	return answer;
}

/* It was done, or had been. */
static bool is_done(json_t *answer)
{
	const char *why = js_text(answer, "message");
	bool done = answer != NULL && (why[0] == '\0' || strstr(why, "already") != NULL);

	if (!done)
		fprintf(stderr, "conformance: etcd: %s\n", answer != NULL ? why : "no answer");
	json_decref(answer);
	return done;
}

static const char *b64(const char *text)
{
	static _Thread_local char out[4][BASE64_SIZE(KEY_SIZE)];
	static _Thread_local unsigned turn;
	char *to = out[turn++ % 4];

	base64_encode(text, strlen(text), to);
	return to;
}

/* ---- keys ---- */

/* The case's own, with NAME as baton-etcd(7) writes it. */
static const char *key(const struct hand *h, const char *kind, const char *name, const char *rest)
{
	static _Thread_local char out[4][KEY_SIZE];
	static _Thread_local unsigned turn;
	char *to = out[turn++ % 4];
	size_t n = (size_t)snprintf(to, KEY_SIZE, "%s%s", h->label, kind);

	for (const char *c = name; *c != '\0'; c++) {
		bool is_plain = *c != '/' && *c != '%' && (*c != '.' || c != name);

		n += (size_t)snprintf(to + n, KEY_SIZE - n, is_plain ? "%c" : "%%%02X",
				      (unsigned char)*c);
	}
	snprintf(to + n, KEY_SIZE - n, "/%s", rest);
	return to;
}

/* The end of all keys that begin like this one, which ends with a '/'. */
static const char *end_of(const char *prefix)
{
	static _Thread_local char out[KEY_SIZE];

	snprintf(out, sizeof(out), "%s", prefix);
	out[strlen(out) - 1]++;
	return b64(out);
}

/* All keys of the case, as the members of a request. */
static const char *all_of(const struct hand *h)
{
	static _Thread_local char out[400];
	char from[80], to[80];

	snprintf(from, sizeof(from), "%s.", h->label);
	snprintf(to, sizeof(to), "%s0", h->label);
	snprintf(out, sizeof(out), "\"key\":\"%s\",\"range_end\":\"%s\"", b64(from), b64(to));
	return out;
}

static json_t *range(struct hand *h, const char *prefix, const char *more)
{
	return ask(&h->admin, "/v3/kv/range", "{\"key\":\"%s\",\"range_end\":\"%s\"%s}",
		   b64(prefix), end_of(prefix), more);
}

static bool put(struct hand *h, const char *at, const char *value, const char *lease)
{
	return is_done(ask(&h->admin, "/v3/kv/put",
			   "{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%s\"}", b64(at),
			   b64(value), lease));
}

/* ---- places ---- */

static bool log_in(struct admin *a)
{
	json_t *answer = ask(a, "/v3/auth/authenticate",
			     "{\"name\":\"root\",\"password\":\"" ROOT_PASSWORD "\"}");

	const char *token = js_text(answer, "token");

	a->header[0] = '\0';
	if (token[0] != '\0')
		snprintf(a->header, sizeof(a->header), "Authorization: %s", token);
	json_decref(answer);
	return a->header[0] != '\0';
}

/* Without users there are no rights: the first case of a server makes the administrator. */
static bool root_open(struct admin *a, unsigned port)
{
	if (!admin_open(a, port))
		return false;
	if (log_in(a))
		return true;
	json_decref(ask(a, "/v3/auth/user/add",
			"{\"name\":\"root\",\"password\":\"" ROOT_PASSWORD "\"}"));
	json_decref(ask(a, "/v3/auth/role/add", "{\"name\":\"root\"}"));
	json_decref(ask(a, "/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}"));
	json_decref(ask(a, "/v3/auth/enable", "{}"));
	return log_in(a);
}

static bool allow(struct hand *h)
{
	return is_done(ask(&h->admin, "/v3/auth/role/grant",
			   "{\"name\":\"%s\",\"perm\":{\"permType\":\"READWRITE\",%s}}", h->label,
			   all_of(h)));
}

static bool make_user(struct hand *h)
{
	return is_done(ask(&h->admin, "/v3/auth/user/add",
			   "{\"name\":\"%s\",\"password\":\"" PASSWORD "\"}", h->label)) &&
	       is_done(ask(&h->admin, "/v3/auth/role/add", "{\"name\":\"%s\"}", h->label)) &&
	       is_done(ask(&h->admin, "/v3/auth/user/grant", "{\"user\":\"%s\",\"role\":\"%s\"}",
			   h->label, h->label)) &&
	       allow(h);
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	unsigned port = admin_port_of(base_url);

	if (h == NULL)
		return false;
	t->hand = h;
	snprintf(h->label, sizeof(h->label), "%s", label);
	if (!root_open(&h->admin, port) || !make_user(h))
		return false;
	h->proxy = proxy_new(port, &protocol_h2, words);
	if (h->proxy == NULL || !root_open(&h->pulse, proxy_clear_port(h->proxy)))
		return false;
	snprintf(t->url, sizeof(t->url), "etcd://%s:%s@127.0.0.1:%u?prefix=%s", label, PASSWORD,
		 proxy_port(h->proxy), label);
	return true;
}

static bool forget_keys(struct hand *h)
{
	return is_done(ask(&h->admin, "/v3/kv/deleterange", "{%s}", all_of(h)));
}

static void clean(const char *base_url, const char *label)
{
	struct hand h = {0};

	snprintf(h.label, sizeof(h.label), "%s", label);
	if (root_open(&h.admin, admin_port_of(base_url))) {
		forget_keys(&h);
		json_decref(ask(&h.admin, "/v3/auth/user/delete", "{\"name\":\"%s\"}", label));
		json_decref(ask(&h.admin, "/v3/auth/role/delete", "{\"role\":\"%s\"}", label));
	}
	admin_close(&h.admin);
}

/* A write that goes through the whole cluster. */
static void pulse(struct testcase *t)
{
	struct hand *h = admin_hand(t);
	char at[80];

	snprintf(at, sizeof(at), "%s-pulse", h->label);
	json_decref(ask(&h->pulse, "/v3/kv/put", "{\"key\":\"%s\"}", b64(at)));
}

/* ---- claims that end ---- */

/* The first claim of the election; to be given back. */
static json_t *claim_of(struct hand *h, const char *name, const json_t **kv)
{
	json_t *answer =
		range(h, key(h, "/", name, ""),
		      ",\"limit\":\"1\",\"sort_order\":\"ASCEND\",\"sort_target\":\"CREATE\"");

	*kv = json_array_get(js_get(answer, "kvs"), 0);
	return answer;
}

/* Somebody else is the first in line. */
static bool overwrite(struct testcase *t, struct hand *h, const char *name, const char *old)
{
	json_t *lease = ask(&h->admin, "/v3/lease/grant", "{\"TTL\":\"%" PRIu64 "\"}",
			    t->lease_ms / 1000 + 1);
	uint64_t number = 0;
	char hex[24];

	js_u64(lease, "ID", &number);
	snprintf(hex, sizeof(hex), "%" PRIx64, number);
	bool done = number != 0 &&
		    put(h, key(h, "/", name, hex), "somebody-else", js_text(lease, "ID")) &&
		    is_done(ask(&h->admin, "/v3/kv/deleterange", "{\"key\":\"%s\"}", old));

	json_decref(lease);
	return done;
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	struct hand *h = admin_hand(t);
	const json_t *kv;
	json_t *claim = claim_of(h, name, &kv);
	const char *old = js_text(kv, "key"); /* in base64 */
	const char *lease = js_text(kv, "lease");
	bool done = false;

	switch (way) {
	case WAY_DELETED:
		done = is_done(ask(&h->admin, "/v3/kv/deleterange", "{\"key\":\"%s\"}", old));
		break;
	case WAY_OVERWRITTEN: done = overwrite(t, h, name, old); break;
	case WAY_SESSION:
		done = is_done(ask(&h->admin, "/v3/lease/revoke", "{\"ID\":\"%s\"}", lease));
		break;
	case WAY_DAMAGED:
		done = is_done(ask(&h->admin, "/v3/kv/put",
				   "{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%s\"}", old,
				   b64("rubbish"), lease));
		break;
	default: break;
	}
	json_decref(claim);
	return done;
}

static bool unlock(struct testcase *t, const char *name)
{
	return destroy(t, name, WAY_DELETED);
}

/* ---- faults ---- */

static bool forget(struct testcase *t)
{
	return forget_keys(admin_hand(t));
}

static bool deny(struct testcase *t, bool is_denied)
{
	struct hand *h = admin_hand(t);

	if (!is_denied)
		return allow(h);
	return is_done(ask(&h->admin, "/v3/auth/role/revoke", "{\"role\":\"%s\",%s}", h->label,
			   all_of(h)));
}

/* The last term is the revision in which it was last written, and the offset. */
static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct hand *h = admin_hand(t);
	const char *at = key(h, "/.election/", name, "term");
	const char *offset = key(h, "/.election/", name, "offset");
	char value[24];
	uint64_t revision = 0;

	if (!put(h, at, "somebody", "0"))
		return false;
	json_t *answer = ask(&h->admin, "/v3/kv/range", "{\"key\":\"%s\"}", b64(at));

	js_u64(json_array_get(js_get(answer, "kvs"), 0), "mod_revision", &revision);
	json_decref(answer);
	if (term <= revision) /* as high as it can't help being */
		return is_done(
			ask(&h->admin, "/v3/kv/deleterange", "{\"key\":\"%s\"}", b64(offset)));
	snprintf(value, sizeof(value), "%" PRIu64, term - revision);
	return revision > 0 && put(h, offset, value, "0");
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct hand *h = admin_hand(t);
	const char *wanted = key(h, "/", name, "");
	char all[80];
	int n = 0;

	if (strlen(name) != length)
		return -1;
	snprintf(all, sizeof(all), "%s/", h->label);
	json_t *answer = range(h, all, "");
	const json_t *kvs = js_get(answer, "kvs");

	for (size_t i = 0; i < json_array_size(kvs); i++) {
		char at[KEY_SIZE];

		if (!js_base64(json_array_get(kvs, i), "key", at, sizeof(at)))
			continue;
		at[strlen(at) - strlen(strrchr(at, '/')) + 1] = '\0';
		n += strcmp(at, wanted) == 0;
	}
	json_decref(answer);
	return n;
}

const struct backend backend_etcd = {
	.scheme = "etcd",
	.has_processes = true,
	.has_network = true,
	.pushes = true,
	.shares_leases = true,
	.is_durable = true,
	.keeps_history = true,
	.place = place,
	.leave = admin_leave,
	.clean = clean,
	.pulse = pulse,
	.destroy = destroy,
	.ways = {[WAY_DELETED] = true,
		 [WAY_OVERWRITTEN] = true,
		 [WAY_SESSION] = true,
		 [WAY_DAMAGED] = true},
	.unlock = unlock,
	.down = proxy_down,
	.hole = proxy_hole,
	.fail = proxy_fail,
	.mute = proxy_mute,
	.late = proxy_late,
	.forget = forget,
	.deny = deny,
	.set_term = set_term,
	.count_name = count_name,
	.calls = proxy_calls,
};

#endif
