/*
 * call.c: carries out one request to etcd, once. It chooses a member, logs in, and finds out what
 * the answer means. If a member can't be reached, or has lost its cluster, the next one is asked. A
 * request that may have been carried out is never repeated: it is UNKNOWN.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/etcd/etcd.h"

/* New tokens for one request. Each change of any user's rights makes all tokens old, and
 * several people may change them at the same time. */
#define LOGINS_MAX 4

int etcd_strange(struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "the answer is not one of etcd's; another program may listen at this "
			 "address");
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- what answers mean ---- */

static bool says(const char *text, const char *words)
{
	return strstr(text, words) != NULL;
}

/* Whether the error came before anything was proposed to the cluster. "Space exceeded" did not: the
 * transaction that exceeds the space is still carried out. */
static bool is_refusal(int status, const char *text)
{
	if (says(text, "space exceeded"))
		return false;
	return status == GRPC_INVALID || status == GRPC_NOT_FOUND || status == GRPC_DENIED ||
	       status == GRPC_UNAUTHENTICATED || status == GRPC_EXHAUSTED ||
	       says(text, "no leader") || says(text, "not capable") ||
	       says(text, "not supported for learner");
}

int etcd_judge(struct baton_call *call, int status, const char *text, bool *is_sure)
{
	int code = BATON_E_UNAVAILABLE;

	*is_sure = is_refusal(status, text);
	if (status == GRPC_DENIED || status == GRPC_UNAUTHENTICATED || says(text, "authenti") ||
	    says(text, "user name is empty"))
		code = BATON_E_DENIED;
	else if (status == GRPC_INVALID || status == GRPC_NOT_FOUND)
		code = BATON_E_CORRUPT;
	(void)store_fail(&call->error, code, "etcd says: %.180s",
			 text[0] != '\0' ? text : "an error without words");
	return code;
}

/* Whether a new token helps: the old one has ended, or rights have changed since. */
static bool is_stale_token(const struct grpc_reply *reply)
{
	return reply->status == GRPC_UNAUTHENTICATED || says(reply->text, "invalid auth token") ||
	       says(reply->text, "revision of auth store is old") ||
	       says(reply->text, "user name is empty");
}

static bool is_lost_lease(const struct grpc_reply *reply)
{
	return reply->status == GRPC_NOT_FOUND && says(reply->text, "lease not found");
}

static void unreachable(struct baton_call *call, const struct http_reply *reply)
{
	(void)store_fail(&call->error, web_code_of(reply->result), "can't ask etcd: %.180s",
			 reply->text);
}

/* The answer was not gRPC: the server is not etcd, or a proxy answers in its place. */
static int call_no_grpc(struct etcd_lane *lane, struct baton_call *call, unsigned turn, int status)
{
	if (status == 200)
		return etcd_strange(call);
	if (status < 500) {
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "not etcd 3.4 or later, or behind a proxy without gRPC: it "
				 "answers with HTTP status %d",
				 status);
		return BATON_OUTCOME_FAILED;
	}
	(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
			 "etcd, or what stands in front of it, answers with HTTP status %d",
			 status);
	web_move_on(&lane->store->web, turn);
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- logging in ---- */

struct bytes *etcd_begin(struct etcd_lane *lane)
{
	return grpc_begin(&lane->web.body);
}

static void call_post(struct etcd_lane *lane, struct baton_call *call, const struct http_host *host,
		      const struct etcd_method *method, struct bytes *body,
		      struct grpc_reply *reply)
{
	char token[sizeof(lane->token) + 32];
	const char *metadata[GRPC_METADATA_MAX + 1] = {0};
	struct grpc_request request = {.host = host,
				       .path = method->path,
				       .metadata = metadata,
				       .body = body,
				       .prove_ns = lane->web.prove_ns};
	size_t n = 0;

	(void)snprintf(token, sizeof(token), "token: %s", lane->token);
	if (lane->token[0] != '\0')
		metadata[n++] = token;
	if (method->label != NULL)
		metadata[n++] = method->label;
	(void)grpc_call(lane->web.http, &request, call->deadline_ns, reply);
	explicit_bzero(token, sizeof(token));
}

static int login_body(const struct etcd_options *o, struct baton_call *call, struct bytes *body)
{
	char reason[HTTP_TEXT_MAX];
	char password[WEB_PATH_MAX];

	(void)snprintf(password, sizeof(password), "%s", o->password);
	if (o->password_file[0] != '\0' &&
	    secret_read(o->password_file, password, sizeof(password), reason) != 0)
		return store_fail(&call->error, BATON_E_DENIED, "%s", reason);
	(void)grpc_begin(body);
	proto_put_text(body, ETCD_AUTH_NAME, o->user);
	proto_put_text(body, ETCD_AUTH_PASSWORD, password);
	explicit_bzero(password, sizeof(password));
	if (body->has_failed)
		return store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	return 0;
}

/* All lanes share one login, because etcd makes logins expensive. */
static bool share_token(struct etcd_lane *lane)
{
	struct etcd_store *s = lane->store;

	store_lock(&s->web.base);
	(void)memcpy(lane->token, s->token, sizeof(lane->token));
	store_unlock(&s->web.base);
	return lane->token[0] != '\0';
}

/* False: the message has no token, or none that can stand in a header. */
static bool keep_token(struct etcd_lane *lane, struct proto message)
{
	struct etcd_store *s = lane->store;

	if (!proto_fits(message, etcd_authenticate.answer) ||
	    !proto_text(message, ETCD_AUTH_TOKEN, lane->token, sizeof(lane->token)) ||
	    lane->token[0] == '\0' || strpbrk(lane->token, "\r\n") != NULL) {
		lane->token[0] = '\0';
		return false;
	}
	store_lock(&s->web.base);
	(void)memcpy(s->token, lane->token, sizeof(s->token));
	store_unlock(&s->web.base);
	return true;
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

/* Logs in at the member whose turn it is. 0: done; -1: no login is possible; 1: not with this
 * member, and we have moved on. */
static int log_in(struct etcd_lane *lane, struct baton_call *call, unsigned turn)
{
	const struct etcd_options *o = &lane->store->options;
	const struct http_host *host = web_host(&lane->store->web, turn);
	struct grpc_reply reply;
	struct bytes body = {0};
	bool is_sure;

	if (o->user[0] == '\0' || lane->token[0] != '\0' || share_token(lane))
		return 0;
	int rc = login_body(o, call, &body);

	if (rc == 0)
		call_post(lane, call, host, &etcd_authenticate, &body, &reply);
	if (body.at != NULL)
		explicit_bzero(body.at, body.n);
	bytes_done(&body);
	if (rc != 0)
		return -1;
	if (reply.http.result != HTTP_OK)
		unreachable(call, &reply.http);
	else if (reply.status == GRPC_NONE)
		(void)call_no_grpc(lane, call, turn, reply.http.status);
	else if (reply.status != GRPC_OK)
		(void)etcd_judge(call, reply.status, reply.text, &is_sure);
	else if (!keep_token(lane, reply.message))
		(void)etcd_strange(call);
	if (lane->token[0] != '\0')
		return 0;
	/* A member that has lost its cluster, or is only a learner, accepts no login. */
	if (reply.http.result == HTTP_OK && call->error.code != BATON_E_UNAVAILABLE)
		return -1;
	web_move_on(&lane->store->web, turn);
	return 1;
}

/* ---- calls ---- */

void etcd_done(struct proto *answer)
{
	free((void *)(uintptr_t)answer->at);
	*answer = (struct proto){NULL, 0};
}

/* Every answer tells the cluster's revision and raft term. */
static void note_header(struct etcd_lane *lane, struct proto answer)
{
	struct proto header = proto_get(answer, ETCD_HEADER);
	uint64_t revision = proto_number(header, ETCD_HEADER_REVISION);

	if (revision > 0)
		lane->revision = revision;
	lane->raft_term = proto_number(header, ETCD_HEADER_RAFT_TERM);
}

/* S9: no field is read of an answer that hasn't the right shape. The caller frees the answer. */
static int call_hear(struct etcd_lane *lane, struct baton_call *call,
		     const struct etcd_method *method, struct proto message, struct proto *answer)
{
	if (!proto_fits(message, method->answer))
		return etcd_strange(call);
	char *copy = malloc(message.n + 1);

	if (copy == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for an answer");
		return BATON_OUTCOME_UNKNOWN;
	}
	(void)memcpy(copy, message.at, message.n);
	answer->at = copy;
	answer->n = message.n;
	note_header(lane, *answer);
	return BATON_OUTCOME_OK;
}

enum next { NEXT_MEMBER, SAME_MEMBER, NOBODY };

/* Handles an answer that is an error. Returns what to do next, and sets the outcome. */
static enum next call_hear_error(struct etcd_lane *lane, struct baton_call *call, unsigned turn,
				 const struct grpc_reply *reply, int *outcome)
{
	bool is_sure = false;

	if (reply->status == GRPC_NONE) {
		*outcome = call_no_grpc(lane, call, turn, reply->http.status);
		return NOBODY;
	}
	int code = etcd_judge(call, reply->status, reply->text, &is_sure);

	*outcome = is_lost_lease(reply) ? BATON_OUTCOME_REFUSED
		   : is_sure            ? BATON_OUTCOME_FAILED
					: BATON_OUTCOME_UNKNOWN;
	if (is_lost_lease(reply))
		return NOBODY;
	if (lane->token[0] != '\0' && is_stale_token(reply)) {
		etcd_drop_token(lane);
		return SAME_MEMBER;
	}
	if (code != BATON_E_UNAVAILABLE)
		return NOBODY;
	web_move_on(&lane->store->web, turn);
	return is_sure ? NEXT_MEMBER : NOBODY;
}

static enum next call_ask(struct etcd_lane *lane, struct baton_call *call,
			  const struct etcd_method *method, struct proto *answer, int *outcome)
{
	struct etcd_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	const struct http_host *host = web_host(&s->web, turn);
	struct grpc_reply reply;

	*outcome = BATON_OUTCOME_FAILED;
	int rc = log_in(lane, call, turn);

	if (rc != 0)
		return rc < 0 ? NOBODY : NEXT_MEMBER;
	call_post(lane, call, host, method, &lane->web.body, &reply);
	if (reply.http.result != HTTP_OK) {
		unreachable(call, &reply.http);
		web_move_on(&s->web, turn);
		*outcome = reply.http.sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
		return reply.http.sent ? NOBODY : NEXT_MEMBER;
	}
	if (reply.status != GRPC_OK)
		return call_hear_error(lane, call, turn, &reply, outcome);
	*outcome = call_hear(lane, call, method, reply.message, answer);
	return NOBODY;
}

static bool is_late(const struct baton_call *call)
{
	return clock_boot_ns() >= call->deadline_ns;
}

int etcd_call(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method,
	      struct proto *answer)
{
	size_t n_members = lane->store->options.web.n_hosts;
	int outcome = BATON_OUTCOME_FAILED;
	enum next next = NEXT_MEMBER;
	unsigned n_logins = 0;

	*answer = (struct proto){NULL, 0};
	if (lane->web.body.has_failed) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return outcome;
	}
	/* After the deadline nothing is asked, and the member is not to blame. */
	if (is_late(call)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "no time was left to ask etcd");
		return outcome;
	}
	for (size_t i = 0; i < n_members && next == NEXT_MEMBER && !is_late(call); i++) {
		web_share_time(&lane->web, n_members - i, call->deadline_ns);
		next = call_ask(lane, call, method, answer, &outcome);
		while (next == SAME_MEMBER && n_logins++ < LOGINS_MAX && !is_late(call))
			next = call_ask(lane, call, method, answer, &outcome);
	}
	return outcome;
}

int etcd_tell(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method)
{
	struct proto answer;
	int outcome = etcd_call(lane, call, method, &answer);

	etcd_done(&answer);
	return outcome;
}

int etcd_listen(struct etcd_lane *lane, struct baton_call *call)
{
	struct etcd_store *s = lane->store;
	unsigned turn = atomic_load(&s->web.turn);
	const struct http_host *host = web_host(&s->web, turn);
	char token[sizeof(lane->token) + 32];
	struct http_reply reply;
	/* A member without a leader hears of no changes, so it must end the stream. */
	const char *metadata[GRPC_METADATA_MAX + 1] = {"hasleader: true"};
	struct grpc_request request = {.host = host,
				       .path = etcd_watch.path,
				       .metadata = metadata,
				       .body = &lane->web.body};

	if (lane->web.body.has_failed)
		return store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	web_share_time(&lane->web, 1, call->deadline_ns);
	request.prove_ns = lane->web.prove_ns;
	if (log_in(lane, call, turn) != 0)
		return -1;
	(void)snprintf(token, sizeof(token), "token: %s", lane->token);
	if (lane->token[0] != '\0')
		metadata[1] = token;
	int result = grpc_stream_open(lane->web.http, &request, call->deadline_ns, &reply);

	explicit_bzero(token, sizeof(token));
	lane->web.stream = turn;
	if (result == HTTP_OK)
		return 0;
	unreachable(call, &reply);
	web_move_on(&s->web, turn);
	return -1;
}
