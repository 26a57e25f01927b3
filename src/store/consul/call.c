/*
 * call.c: carries out one request to Consul, once. It chooses a server or agent, sends the token,
 * and finds out what the answer means. If a server can't be reached, or has lost its cluster, the
 * next one is asked. A request that may have been carried out is never repeated: it is UNKNOWN.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/consul/consul.h"

#define PATH_MAX_BYTES (4 * CONSUL_KEY_MAX + 512)

int consul_strange(struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "the answer is not one of Consul's; another program may listen at this "
			 "address");
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- what answers mean ---- */

static bool says(const char *text, const char *words)
{
	return strcasestr(text, words) != NULL;
}

static bool is_denied(int status, const char *text)
{
	return status == 401 || status == 403 || says(text, "permission denied") ||
	       says(text, "ACL not found") || says(text, "ACL support disabled");
}

int consul_judge(struct baton_call *call, int status, const char *text, bool *is_sure)
{
	int code = BATON_E_UNAVAILABLE;

	/* Without a cluster leader, nothing was even proposed to the cluster. */
	*is_sure = status < 500 || says(text, "no cluster leader") || says(text, "no leader") ||
		   says(text, "rate limit");
	if (is_denied(status, text))
		code = BATON_E_DENIED;
	else if (says(text, "Invalid Session TTL"))
		code = BATON_E_TIMING;
	else if (says(text, "Enterprise feature"))
		code = BATON_E_UNSUPPORTED;
	else if (status == 400 || status == 413)
		code = BATON_E_CORRUPT;
	*is_sure = *is_sure || code != BATON_E_UNAVAILABLE;
	if (text[0] == '\0')
		(void)store_fail(&call->error, code,
				 "Consul, or what stands in front of it, answers with HTTP status "
				 "%d",
				 status);
	else
		(void)store_fail(&call->error, code, "Consul says: %.180s%s", text,
				 code == BATON_E_TIMING
					 ? "; say session_ttl_min= as the servers are set"
					 : "");
	return code;
}

static void unreachable(struct baton_call *call, const struct http_reply *reply)
{
	(void)store_fail(&call->error, web_code_of(reply->result), "can't ask Consul: %.180s",
			 reply->text);
}

/* Keeps the words of an answer that is not JSON, as one line. */
static void keep_text(struct consul_answer *answer, const struct http_reply *reply)
{
	const char *at = reply->body + strspn(reply->body, " \t\r\n\"");

	(void)snprintf(answer->text, sizeof(answer->text), "%.*s", (int)strcspn(at, "\r\n"), at);
	for (char *c = answer->text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

/* ---- requests ---- */

/* Reads the token each time, because it may have been replaced. */
static int call_put_token(const struct consul_options *o, struct baton_call *call, char *header,
			  size_t size)
{
	char reason[HTTP_TEXT_MAX];
	char token[WEB_PATH_MAX];

	header[0] = '\0';
	(void)snprintf(token, sizeof(token), "%s", o->token);
	if (o->token_file[0] != '\0' &&
	    secret_read(o->token_file, token, sizeof(token), reason) != 0)
		return store_fail(&call->error, BATON_E_DENIED, "%s", reason);
	if (token[0] != '\0')
		(void)snprintf(header, size, "X-Consul-Token: %s", token);
	explicit_bzero(token, sizeof(token));
	return 0;
}

/* Every request has the datacenter, the namespace and the partition in its query. */
static void put_path(const struct consul_options *o, const char *path, char *out, size_t size)
{
	const char *joint = strchr(path, '?') != NULL ? "&" : "?";

	(void)snprintf(out, size, "%s%s%s", path, o->query[0] != '\0' ? joint : "", o->query);
}

/* GET without a body, PUT with one. 0, or -1: nothing was sent. */
static int call_send(struct consul_lane *lane, struct baton_call *call,
		     const struct http_host *host, const char *path, bool is_poll,
		     struct http_reply *reply)
{
	const struct bytes *body = &lane->web.body;
	char header[WEB_PATH_MAX + 32];
	char whole[PATH_MAX_BYTES];
	const char *headers[] = {NULL, NULL};
	struct http_request request = {.method = body->n > 0 ? "PUT" : "GET",
				       .host = host,
				       .path = whole,
				       .headers = headers,
				       .body = body->at,
				       .body_size = body->n,
				       .prove_ns = lane->web.prove_ns};

	put_path(&lane->store->options, path, whole, sizeof(whole));
	if (call_put_token(&lane->store->options, call, header, sizeof(header)) != 0)
		return -1;
	if (header[0] != '\0')
		headers[0] = header;
	if (is_poll)
		(void)http_stream_open(lane->web.http, &request, HTTP_WHOLE, call->deadline_ns,
				       reply);
	else
		(void)http_call(lane->web.http, &request, call->deadline_ns, reply);
	explicit_bzero(header, sizeof(header));
	return 0;
}

/* Handles an answer that is an error. True: another server may do better. */
static bool call_hear_error(struct consul_lane *lane, struct baton_call *call,
			    const struct consul_answer *answer, unsigned turn, int *outcome)
{
	bool is_sure;
	int code = consul_judge(call, answer->status, answer->text, &is_sure);

	*outcome = is_sure ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
	if (says(answer->text, "Missing node registration") ||
	    says(answer->text, "invalid session"))
		*outcome = BATON_OUTCOME_REFUSED;
	if (code != BATON_E_UNAVAILABLE)
		return false;
	web_move_on(&lane->store->web, turn);
	return is_sure;
}

/* Asks one server. True: another server may do better. */
static bool call_ask(struct consul_lane *lane, struct baton_call *call, const char *path,
		     struct consul_answer *answer, int *outcome)
{
	struct consul_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	struct http_reply reply;

	*outcome = BATON_OUTCOME_FAILED;
	if (call_send(lane, call, web_host(&s->web, turn), path, false, &reply) != 0)
		return false;
	if (reply.result != HTTP_OK) {
		unreachable(call, &reply);
		web_move_on(&s->web, turn);
		*outcome = reply.sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
		return !reply.sent;
	}
	answer->status = reply.status;
	answer->json = js_parse(reply.body, reply.body_size);
	keep_text(answer, &reply);
	if (reply.status != 200 && reply.status != 404 && reply.status != 409)
		return call_hear_error(lane, call, answer, turn, outcome);
	if (json_is_true(js_get(answer->json, "ResultsFilteredByACLs"))) {
		(void)store_fail(&call->error, BATON_E_DENIED,
				 "Consul says: permission denied; our token may not read all keys "
				 "of ours");
		return false;
	}
	*outcome = BATON_OUTCOME_OK;
	return false;
}

int consul_call(struct consul_lane *lane, struct baton_call *call, const char *path,
		struct consul_answer *answer)
{
	size_t n_hosts = lane->store->options.web.n_hosts;
	int outcome = BATON_OUTCOME_FAILED;

	*answer = (struct consul_answer){.json = NULL};
	if (lane->web.body.has_failed) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return outcome;
	}
	for (size_t i = 0; i < n_hosts; i++) {
		web_share_time(&lane->web, n_hosts - i, call->deadline_ns);
		json_decref(answer->json);
		*answer = (struct consul_answer){.json = NULL};
		if (!call_ask(lane, call, path, answer, &outcome) ||
		    clock_boot_ns() >= call->deadline_ns)
			break;
	}
	return outcome;
}

int consul_poll(struct consul_lane *lane, struct baton_call *call, const char *path)
{
	struct consul_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	struct http_reply reply;

	(void)web_begin(&lane->web);
	lane->web.stream = turn;
	web_share_time(&lane->web, 1, call->deadline_ns);
	if (call_send(lane, call, web_host(&s->web, turn), path, true, &reply) != 0)
		return -1;
	if (reply.result == HTTP_OK)
		return 0;
	unreachable(call, &reply);
	web_move_on(&s->web, turn);
	return -1;
}

/* ---- transactions ---- */

int consul_txn(struct consul_lane *lane, struct baton_call *call, const char *what,
	       struct consul_answer *answer)
{
	char path[64];

	bytes_print(&lane->web.body, "]");
	(void)snprintf(path, sizeof(path), "/v1/txn?%s", what);
	int outcome = consul_call(lane, call, path, answer);

	if (outcome != BATON_OUTCOME_OK || answer->status == 200 || answer->status == 409)
		return outcome == BATON_OUTCOME_OK && !json_is_object(answer->json)
			       ? consul_strange(call)
			       : outcome;
	(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
			 "not a Consul server: it answers with HTTP status %d", answer->status);
	return BATON_OUTCOME_FAILED;
}

int consul_read(struct consul_lane *lane, struct baton_call *call, const char *what,
		struct consul_answer *answer)
{
	char words[48];
	size_t op;

	(void)snprintf(words, sizeof(words), "consistent&%s", what);
	int outcome = consul_txn(lane, call, words, answer);

	if (outcome != BATON_OUTCOME_OK || answer->status == 200)
		return outcome;
	if (consul_n_errors(answer) == 0 || consul_error(call, answer, 0, &op) != CONSUL_DENIED)
		return consul_strange(call);
	return BATON_OUTCOME_FAILED;
}

const json_t *consul_results(const struct consul_answer *answer)
{
	return js_get(answer->json, "Results");
}

const json_t *consul_find(const struct consul_answer *answer, const char *key)
{
	const json_t *results = consul_results(answer);

	for (size_t i = json_array_size(results); i-- > 0;) {
		const json_t *kv = js_get(json_array_get(results, i), "KV");

		if (strcmp(js_text(kv, "Key"), key) == 0)
			return kv;
	}
	return NULL;
}

size_t consul_n_errors(const struct consul_answer *answer)
{
	return json_array_size(js_get(answer->json, "Errors"));
}

enum consul_why consul_error(struct baton_call *call, const struct consul_answer *answer, size_t i,
			     size_t *op)
{
	const json_t *error = json_array_get(js_get(answer->json, "Errors"), i);
	const char *what = js_text(error, "What");
	uint64_t index = 0;
	bool is_sure;

	(void)js_u64(error, "OpIndex", &index);
	*op = (size_t)index;
	if (is_denied(200, what)) {
		(void)consul_judge(call, 403, what, &is_sure);
		return CONSUL_DENIED;
	}
	if (says(what, "lock delay"))
		return CONSUL_DELAYED;
	return says(what, "invalid session") ? CONSUL_NO_SESSION : CONSUL_STALE;
}
