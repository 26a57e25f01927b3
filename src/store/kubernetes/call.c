/*
 * call.c: requests to the API server, each carried out once, and what its answers mean. A request
 * that may have been carried out is never repeated: its outcome is UNKNOWN.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

#define CHUNK 64
#define PATIENCE_NS (250 * CLOCK_NS_PER_MS)

void kube_path(const struct kube_store *s, struct kube_call *c, const char *object,
	       const char *format, ...)
{
	va_list args;
	int n = snprintf(c->path, sizeof(c->path),
			 "%s/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s",
			 s->config.prefix, s->config.space, object != NULL ? "/" : "",
			 object != NULL ? object : "");

	va_start(args, format);
	(void)vsnprintf(c->path + n, sizeof(c->path) - (size_t)n, format, args);
	va_end(args);
}

void kube_call_done(struct kube_call *c)
{
	bytes_done(&c->body);
	json_decref(c->answer);
	c->answer = NULL;
}

int kube_strange(struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "the answer is not one of the API server's; another program may listen "
			 "at this address");
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- what answers mean ---- */

void kube_unreachable(struct baton_call *call, const struct http_reply *reply)
{
	(void)store_fail(&call->error, web_code_of(reply->result),
			 "can't ask the API server: %.180s", reply->text);
}

int kube_judge(struct baton_call *call, int status, const json_t *error)
{
	const char *text = js_text(error, "message");
	int code = status == 401 || status == 403   ? BATON_E_DENIED
		   : status == 429 || status >= 500 ? BATON_E_UNAVAILABLE
						    : BATON_E_CORRUPT;

	if (text[0] != '\0')
		(void)store_fail(&call->error, code, "the API server says: %.180s", text);
	else
		(void)store_fail(&call->error, code,
				 "the API server, or what stands in front of it, answers with HTTP "
				 "status %d",
				 status);
	return code;
}

/* The server has refused the request before it did anything: for want of rights, or too busy to
 * begin. */
static bool is_refusal(int status)
{
	return status >= 400 && status < 500 && status != 408;
}

static int64_t server_time_ms(const struct http_reply *reply)
{
	char date[64];
	struct tm tm = {.tm_sec = 0};

	(void)http_header(reply, "Date", date, sizeof(date));
	return strptime(date, "%a, %d %b %Y %H:%M:%S", &tm) != NULL ? (int64_t)timegm(&tm) * 1000
								    : 0;
}

static void call_hear(struct baton_call *call, struct kube_call *c, const struct http_reply *reply)
{
	json_decref(c->answer);
	c->answer = NULL;
	c->code = 0;
	c->status = reply->status;
	c->read_ns = clock_boot_ns();
	c->outcome = BATON_OUTCOME_OK;
	if (reply->result != HTTP_OK) {
		kube_unreachable(call, reply);
		c->outcome =
			reply->sent && !c->is_read ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
	} else {
		c->answer = js_parse(reply->body, reply->body_size);
		c->server_ms = server_time_ms(reply);
		if (reply->status >= 200 && reply->status < 300) {
			if (!json_is_object(c->answer))
				c->outcome = kube_strange(call);
		} else {
			(void)kube_judge(call, reply->status, c->answer);
			c->outcome = is_refusal(reply->status) || c->is_read
					     ? BATON_OUTCOME_FAILED
					     : BATON_OUTCOME_UNKNOWN;
			if (json_is_object(c->answer) &&
			    (reply->status == 404 || reply->status == 409 || reply->status == 422))
				c->outcome = BATON_OUTCOME_REFUSED;
		}
	}
	if (c->outcome != BATON_OUTCOME_OK)
		c->code = call->error.code;
}

/* ---- sending ---- */

static void call_fail_all(struct baton_call *call, struct kube_call *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = call->error.code;
		list[i].status = 0;
	}
}

struct parcel {
	struct kube_call *calls[CHUNK];
	struct http_request requests[CHUNK];
	struct http_reply replies[CHUNK];
	const char *headers[CHUNK][4];
	char types[CHUNK][64];
	char login[KUBE_HEADER_MAX];
};

static void call_pack(struct kube_lane *lane, struct parcel *p, size_t i, struct kube_call *c)
{
	size_t k = 0;

	if (c->type != NULL) {
		(void)snprintf(p->types[i], sizeof(p->types[i]), "Content-Type: %s", c->type);
		p->headers[i][k++] = p->types[i];
	}
	p->headers[i][k++] = "Accept: application/json";
	if (p->login[0] != '\0')
		p->headers[i][k++] = p->login;
	p->headers[i][k] = NULL;
	p->calls[i] = c;
	p->requests[i] = (struct http_request){.method = c->method,
					       .host = &lane->store->config.host,
					       .path = c->path,
					       .headers = p->headers[i],
					       .body = c->body.at,
					       .body_size = c->body.n};
}

/* Returns how many calls can be sent. S9: a body without its end may be a valid one that says
 * something else. */
static size_t call_pack_whole(struct kube_lane *lane, struct baton_call *call, struct parcel *p,
			      struct kube_call *list, size_t n)
{
	size_t n_packed = 0;

	for (size_t i = 0; i < n; i++) {
		if (list[i].body.has_failed) {
			(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
			call_fail_all(call, &list[i], 1);
		} else {
			call_pack(lane, p, n_packed++, &list[i]);
		}
	}
	return n_packed;
}

/* True: another try is worthwhile, because the server refused our login and may accept the next
 * one. */
static bool call_send(struct kube_lane *lane, struct baton_call *call, struct parcel *p,
		      struct kube_call *list, size_t n)
{
	bool is_unknown = false;

	if (kube_login(lane, call, p->login) != 0) {
		call_fail_all(call, list, n);
		return false;
	}
	size_t n_packed = call_pack_whole(lane, call, p, list, n);
	struct http *http = lane->beat != NULL ? lane->beat : lane->web.http;

	(void)http_call_all(http, p->requests, n_packed, call->deadline_ns, p->replies);
	for (size_t i = 0; i < n_packed; i++) {
		call_hear(call, p->calls[i], &p->replies[i]);
		is_unknown = is_unknown || p->calls[i]->status == 401;
	}
	return is_unknown && n == 1 && kube_login_again(lane, p->login);
}

/* The server answers again: the watch need not wait. */
static void wake_watch(struct kube_store *s)
{
	store_lock(&s->web.base);
	bool is_down = s->is_watch_down;

	s->is_watch_down = false;
	store_unlock(&s->web.base);
	if (is_down)
		web_wake(&s->web);
}

bool kube_call_all(struct kube_lane *lane, struct baton_call *call, struct kube_call *list,
		   size_t n)
{
	struct parcel *p = malloc(sizeof(*p));
	bool is_ok = true;

	if (p == NULL)
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	for (size_t done = 0; done < n; done += CHUNK) {
		size_t k = n - done < CHUNK ? n - done : CHUNK;

		if (p == NULL)
			call_fail_all(call, list + done, k);
		else if (call_send(lane, call, p, list + done, k))
			(void)call_send(lane, call, p, list + done, k);
	}
	for (size_t i = 0; i < n; i++)
		is_ok = is_ok && list[i].outcome == BATON_OUTCOME_OK;
	if (is_ok && n > 0 && lane->beat == NULL)
		wake_watch(lane->store);
	if (p != NULL)
		explicit_bzero(p->login, sizeof(p->login));
	free(p);
	return is_ok;
}

int kube_call(struct kube_lane *lane, struct baton_call *call, struct kube_call *c)
{
	(void)kube_call_all(lane, call, c, 1);
	return c->outcome;
}

void kube_be_patient(struct kube_lane *lane, unsigned n)
{
	http_heed_wake(lane->beat, clock_boot_ns() + (PATIENCE_NS << (n < 5 ? n : 5)));
}

int kube_listen(struct kube_lane *lane, struct baton_call *call, const char *path)
{
	char *login = malloc(KUBE_HEADER_MAX);
	struct http_reply reply;
	int rc = -1;

	if (login == NULL)
		return store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	if (kube_login(lane, call, login) == 0) {
		const char *headers[] = {"Accept: application/json",
					 login[0] != '\0' ? login : NULL, NULL};
		struct http_request request = {.method = "GET",
					       .host = &lane->store->config.host,
					       .path = path,
					       .headers = headers};

		rc = http_stream_open(lane->web.http, &request, HTTP_LINES, call->deadline_ns,
				      &reply) == HTTP_OK
			     ? 0
			     : -1;
		if (rc != 0)
			kube_unreachable(call, &reply);
	}
	explicit_bzero(login, KUBE_HEADER_MAX);
	free(login);
	return rc;
}
