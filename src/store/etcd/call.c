/*
 * call.c: one request to etcd, carried out once. Which member, who we are there, and what its
 * answer means. A member that can't be reached, or that has lost its cluster, is left for the next
 * one; a request that may have been carried out is never repeated: that is UNKNOWN.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* Of gRPC, as etcd uses them. */
enum {
	GRPC_INVALID = 3,
	GRPC_NOT_FOUND = 5,
	GRPC_DENIED = 7,
	GRPC_EXHAUSTED = 8,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

int etcd_strange(struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "etcd answers in a way that it never does; is something else there?");
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- what answers mean ---- */

static bool says(const char *text, const char *words)
{
	return strstr(text, words) != NULL;
}

/* Of an error as the gateway writes it; in a stream it is wrapped once more. */
static const char *words_of(const json_t *error, uint64_t *grpc)
{
	const json_t *inner = js_get(error, "error");

	if (json_is_object(inner))
		error = inner;
	if (!js_u64(error, "code", grpc))
		(void)js_u64(error, "grpc_code", grpc);
	const char *text = js_text(error, "message");

	return text[0] != '\0' ? text : js_text(error, "error");
}

/* They come before anything is proposed to the cluster; but for its space: a transaction that has
 * gone beyond it is carried out all the same. */
static bool is_refusal(uint64_t grpc, const char *text)
{
	if (says(text, "space exceeded"))
		return false;
	return grpc == GRPC_INVALID || grpc == GRPC_NOT_FOUND || grpc == GRPC_DENIED ||
	       grpc == GRPC_UNAUTHENTICATED || grpc == GRPC_EXHAUSTED || says(text, "no leader") ||
	       says(text, "not capable");
}

int etcd_judge(struct baton_call *call, const json_t *error, bool *is_sure)
{
	uint64_t grpc = 0;
	const char *text = words_of(error, &grpc);
	int code = BATON_E_UNAVAILABLE;

	*is_sure = is_refusal(grpc, text);
	if (grpc == GRPC_DENIED || grpc == GRPC_UNAUTHENTICATED || says(text, "authenti") ||
	    says(text, "user name is empty"))
		code = BATON_E_DENIED;
	else if (grpc == GRPC_INVALID || grpc == GRPC_NOT_FOUND)
		code = BATON_E_CORRUPT;
	(void)store_fail(&call->error, code, "etcd says: %.180s",
			 text[0] != '\0' ? text : "an error without words");
	return code;
}

/* The token has ended, or rights have changed since: a new one does. */
static bool is_stale_token(const json_t *error)
{
	uint64_t grpc = 0;
	const char *text = words_of(error, &grpc);

	return grpc == GRPC_UNAUTHENTICATED || says(text, "invalid auth token") ||
	       says(text, "revision of auth store is old") || says(text, "user name is empty");
}

static bool is_lost_lease(const json_t *error)
{
	uint64_t grpc = 0;

	return says(words_of(error, &grpc), "lease not found") && grpc == GRPC_NOT_FOUND;
}

static void unreachable(struct baton_call *call, const struct http_reply *reply)
{
	(void)store_fail(&call->error, web_code_of(reply->result), "can't ask etcd: %.180s",
			 reply->text);
}

/* 404 and a page: that is no etcd, one without a gateway, or one that is too old. */
static int no_gateway(struct baton_call *call, int status)
{
	(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
			 "that is no etcd 3.4 or later, or its gateway is switched off "
			 "(--enable-grpc-gateway): it answers with HTTP status %d",
			 status);
	return BATON_OUTCOME_FAILED;
}

/* ---- who we are ---- */

static void post(struct etcd_lane *lane, struct baton_call *call, const struct http_host *host,
		 const char *path, const struct bytes *body, struct http_reply *reply)
{
	char token[sizeof(lane->token) + 32];
	const char *headers[] = {"Content-Type: application/json",
				 lane->token[0] != '\0' ? token : NULL, NULL};
	struct http_request request = {.method = "POST",
				       .host = host,
				       .path = path,
				       .headers = headers,
				       .body = body->at,
				       .body_size = body->n};

	(void)snprintf(token, sizeof(token), "Authorization: %s", lane->token);
	(void)http_call(lane->web.http, &request, call->deadline_ns, reply);
	explicit_bzero(token, sizeof(token));
}

static int login_body(const struct etcd_options *o, struct baton_call *call, struct bytes *body)
{
	char reason[HTTP_TEXT_MAX];
	char password[WEB_PATH_MAX];

	(void)snprintf(password, sizeof(password), "%s", o->password);
	if (o->password_file[0] != '\0' &&
	    http_secret(o->password_file, password, sizeof(password), reason) != 0)
		return store_fail(&call->error, BATON_E_DENIED, "%s", reason);
	json_t *login = json_pack("{s:s,s:s}", "name", o->user, "password", password);
	char *text = json_dumps(login, JSON_COMPACT);

	explicit_bzero(password, sizeof(password));
	json_decref(login);
	if (text == NULL)
		return store_fail(&call->error, BATON_E_MEMORY,
				  "no memory, or the password is no text");
	bytes_print(body, "%s", text);
	explicit_bzero(text, strlen(text));
	free(text);
	return 0;
}

/* One login does for all lanes: etcd makes it expensive. */
static bool share_token(struct etcd_lane *lane)
{
	struct etcd_store *s = lane->store;

	store_lock(&s->web.base);
	(void)memcpy(lane->token, s->token, sizeof(lane->token));
	store_unlock(&s->web.base);
	return lane->token[0] != '\0';
}

static void keep_token(struct etcd_lane *lane, const char *token)
{
	struct etcd_store *s = lane->store;

	(void)snprintf(lane->token, sizeof(lane->token), "%s", token);
	store_lock(&s->web.base);
	(void)memcpy(s->token, lane->token, sizeof(s->token));
	store_unlock(&s->web.base);
}

void etcd_drop_token(struct etcd_lane *lane)
{
	struct etcd_store *s = lane->store;

	store_lock(&s->web.base);
	if (strcmp(s->token, lane->token) == 0)
		s->token[0] = '\0';
	store_unlock(&s->web.base);
	lane->token[0] = '\0';
}

/* A token, if there is a user and none yet. 0 or -1; reply tells whether to try elsewhere. */
static int log_in(struct etcd_lane *lane, struct baton_call *call, const struct http_host *host,
		  struct http_reply *reply)
{
	const struct etcd_options *o = &lane->store->options;
	struct bytes body = {0};

	*reply = (struct http_reply){.result = HTTP_OK};
	if (o->user[0] == '\0' || lane->token[0] != '\0' || share_token(lane))
		return 0;
	if (login_body(o, call, &body) != 0) {
		bytes_done(&body);
		return -1;
	}
	post(lane, call, host, "/v3/auth/authenticate", &body, reply);
	explicit_bzero(body.at, body.n);
	bytes_done(&body);
	if (reply->result != HTTP_OK) {
		unreachable(call, reply);
		return -1;
	}
	json_t *answer = js_parse(reply->body, reply->body_size);
	const char *token = js_text(answer, "token");
	bool is_sure;

	if (token[0] != '\0' && strlen(token) < sizeof(lane->token))
		keep_token(lane, token);
	else if (answer != NULL)
		(void)etcd_judge(call, answer, &is_sure);
	else
		(void)no_gateway(call, reply->status);
	json_decref(answer);
	return lane->token[0] != '\0' ? 0 : -1;
}

/* ---- calls ---- */

/* Every answer tells where the cluster is. */
static void note_header(struct etcd_lane *lane, const json_t *answer)
{
	const json_t *result = js_get(answer, "result");
	const json_t *header = js_get(result != NULL ? result : answer, "header");
	uint64_t revision;

	if (js_u64(header, "revision", &revision) && revision > 0)
		lane->revision = revision;
	(void)js_u64(header, "raft_term", &lane->raft_term);
}

enum next { NEXT_MEMBER, SAME_MEMBER, NOBODY };

/* An answer that is an error: what to do then, or the outcome. */
static enum next hear_error(struct etcd_lane *lane, struct baton_call *call,
			    const struct http_reply *reply, int *outcome)
{
	json_t *error = js_parse(reply->body, reply->body_size);
	enum next next = NOBODY;
	bool is_sure = false;

	if (!json_is_object(error) && reply->status >= 500) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "etcd, or what stands in front of it, answers with HTTP status %d",
				 reply->status);
		web_move_on(&lane->store->web, atomic_load(&lane->store->web.turn));
		*outcome = BATON_OUTCOME_UNKNOWN;
	} else if (!json_is_object(error)) {
		*outcome = no_gateway(call, reply->status);
	} else if (is_lost_lease(error)) {
		(void)etcd_judge(call, error, &is_sure);
		*outcome = BATON_OUTCOME_REFUSED;
	} else {
		int code = etcd_judge(call, error, &is_sure);

		*outcome = is_sure ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
		if (lane->token[0] != '\0' && is_stale_token(error)) {
			etcd_drop_token(lane);
			next = SAME_MEMBER;
		} else if (code == BATON_E_UNAVAILABLE) {
			next = is_sure ? NEXT_MEMBER : NOBODY;
			web_move_on(&lane->store->web, atomic_load(&lane->store->web.turn));
		}
	}
	json_decref(error);
	return next;
}

static enum next ask(struct etcd_lane *lane, struct baton_call *call, const char *path,
		     json_t **answer, int *outcome)
{
	struct etcd_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	const struct http_host *host = web_host(&s->web, turn);
	struct http_reply reply;

	*outcome = BATON_OUTCOME_FAILED;
	if (log_in(lane, call, host, &reply) != 0) {
		if (reply.result == HTTP_OK)
			return NOBODY;
		web_move_on(&s->web, turn);
		return NEXT_MEMBER;
	}
	post(lane, call, host, path, &lane->web.body, &reply);
	if (reply.result != HTTP_OK) {
		unreachable(call, &reply);
		web_move_on(&s->web, turn);
		*outcome = reply.sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
		return reply.sent ? NOBODY : NEXT_MEMBER;
	}
	if (reply.status != 200)
		return hear_error(lane, call, &reply, outcome);
	*answer = js_parse(reply.body, reply.body_size);
	*outcome = *answer != NULL ? BATON_OUTCOME_OK : etcd_strange(call);
	note_header(lane, *answer);
	return NOBODY;
}

int etcd_call(struct etcd_lane *lane, struct baton_call *call, const char *path, json_t **answer)
{
	size_t n_members = lane->store->options.web.n_hosts;
	int outcome = BATON_OUTCOME_FAILED;
	bool has_logged_in = false;

	*answer = NULL;
	if (lane->web.body.has_failed) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return outcome;
	}
	for (size_t i = 0; i < n_members; i++) {
		enum next next = ask(lane, call, path, answer, &outcome);

		if (next == SAME_MEMBER && !has_logged_in) {
			has_logged_in = true;
			next = ask(lane, call, path, answer, &outcome);
		}
		if (next != NEXT_MEMBER || clock_boot_ns() >= call->deadline_ns)
			break;
	}
	return outcome;
}

int etcd_listen(struct etcd_lane *lane, struct baton_call *call)
{
	struct etcd_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	const struct http_host *host = web_host(&s->web, turn);
	char token[sizeof(lane->token) + 32];
	struct http_reply reply;
	/* A member without a leader hears nothing: it is to say so. */
	const char *headers[] = {"Content-Type: application/json", "Grpc-Metadata-hasleader: true",
				 NULL, NULL};

	if (log_in(lane, call, host, &reply) != 0) {
		if (reply.result != HTTP_OK)
			web_move_on(&s->web, turn);
		return -1;
	}
	(void)snprintf(token, sizeof(token), "Authorization: %s", lane->token);
	if (lane->token[0] != '\0')
		headers[2] = token;
	struct http_request request = {.method = "POST",
				       .host = host,
				       .path = "/v3/watch",
				       .headers = headers,
				       .body = lane->web.body.at,
				       .body_size = lane->web.body.n};
	int result = http_stream_open(lane->web.http, &request, false, call->deadline_ns, &reply);

	explicit_bzero(token, sizeof(token));
	lane->web.stream = turn;
	if (result == HTTP_OK)
		return 0;
	unreachable(call, &reply);
	web_move_on(&s->web, turn);
	return -1;
}

/* ---- transactions ---- */

const json_t *etcd_response(const json_t *txn, size_t i, const char *kind)
{
	return js_get(json_array_get(js_get(txn, "responses"), i), kind);
}

const json_t *etcd_kvs(const json_t *txn, size_t i)
{
	return js_get(etcd_response(txn, i, "response_range"), "kvs");
}

const json_t *etcd_kv(const json_t *txn, size_t i)
{
	return json_array_get(etcd_kvs(txn, i), 0);
}
