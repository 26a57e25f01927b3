/*
 * http.c: calls and streams: see http.h. libcurl's multi interface does the work on our thread,
 * whenever we ask it to, and never waits by itself; so deadlines are ours, on our clock.
 */
#include "base/web/http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/request.h"

#define BODY_MAX ((size_t)16 << 20)
#define STREAM_CONNECT_MS 5000

/* ---- the client ---- */

static bool copy(char **to, const char *from)
{
	*to = from != NULL && from[0] != '\0' ? strdup(from) : NULL;
	return from == NULL || from[0] == '\0' || *to != NULL;
}

static bool new_multi(struct http *h)
{
	h->multi = curl_multi_init();
	return h->multi != NULL &&
	       curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)HTTP_PARALLEL) == CURLM_OK &&
	       curl_multi_setopt(h->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK;
}

bool http_knows_h2(void)
{
	return (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) != 0;
}

struct http *http_new(const struct http_config *config)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(h);
		return NULL;
	}
	for (size_t i = 0; i < HTTP_SOCKETS_MAX; i++)
		h->sockets[i] = -1;
	for (size_t i = 0; i < HTTP_PARALLEL; i++)
		h->requests[i].http = h;
	h->body_max = config->body_max > 0 ? config->body_max : BODY_MAX;
	h->wake = config->wake > 0 ? config->wake : -1;
	h->h2 = config->h2;
	h->probe = config->probe != NULL ? config->probe : "/";
	h->is_7_88 = curl_version_info(CURLVERSION_NOW)->version_num >> 8 == 0x0758;
	if (new_multi(h) && copy(&h->ca, config->ca) && copy(&h->ca_text, config->ca_text) &&
	    copy(&h->cert, config->cert) && copy(&h->cert_text, config->cert_text) &&
	    copy(&h->key, config->key) && copy(&h->key_text, config->key_text) &&
	    copy(&h->server_name, config->server_name))
		return h;
	http_free(h);
	return NULL;
}

static void take_out(struct request *s)
{
	if (s->is_added)
		(void)curl_multi_remove_handle(s->http->multi, s->easy);
	s->is_added = false;
}

/* All connections, dead or not: the next call has a fresh one. */
static void drop_connections(struct http *h)
{
	for (size_t i = 0; i < HTTP_PARALLEL; i++)
		take_out(&h->requests[i]);
	if (h->multi != NULL)
		(void)curl_multi_cleanup(h->multi);
	h->multi = NULL;
}

static void free_answers(struct http *h)
{
	for (size_t i = 0; i < h->n_answers; i++) {
		bytes_done(&h->answers[i].head);
		bytes_done(&h->answers[i].body);
	}
	free(h->answers);
	h->answers = NULL;
	h->n_answers = 0;
}

void http_free(struct http *h)
{
	if (h == NULL)
		return;
	/* libcurl would say goodbye on the parent's connections: what it has is left. */
	if (!h->is_forgotten) {
		drop_connections(h);
		for (size_t i = 0; i < HTTP_PARALLEL; i++) {
			request_clear(&h->requests[i]);
			curl_easy_cleanup(h->requests[i].easy);
		}
		addresses_free(h);
		curl_global_cleanup();
	}
	free_answers(h);
	free(h->ca);
	free(h->ca_text);
	free(h->cert);
	free(h->cert_text);
	free(h->key);
	if (h->key_text != NULL)
		explicit_bzero(h->key_text, strlen(h->key_text));
	free(h->key_text);
	free(h->server_name);
	free(h);
}

void http_forget(struct http *h)
{
	h->is_forgotten = true;
	for (size_t i = 0; i < HTTP_SOCKETS_MAX; i++) {
		if (h->sockets[i] >= 0)
			(void)close(h->sockets[i]);
		h->sockets[i] = -1;
	}
}

/* ---- what is under way ---- */

static uint64_t ms_until(uint64_t deadline_ns)
{
	uint64_t now_ns = clock_boot_ns();

	return now_ns < deadline_ns ? (deadline_ns - now_ns) / CLOCK_NS_PER_MS + 1 : 0;
}

static int http_fail(struct http_reply *reply, int result, const char *text)
{
	reply->result = result;
	(void)snprintf(reply->text, sizeof(reply->text), "%s", text);
	return result;
}

static int http_begin(struct http *h, struct request *s, const struct http_request *request,
		      uint64_t deadline_ns, uint64_t connect_ms, bool fresh)
{
	struct name *name;
	struct http_reply *reply = s->reply;

	/* A request that is out of time isn't sent: it would be carried out all the same. */
	if (ms_until(deadline_ns) == 0)
		return http_fail(reply, HTTP_LATE, "no time was left for it");
	if (h->multi == NULL && !new_multi(h))
		return http_fail(reply, HTTP_MEMORY, "no memory for a connection");
	if (addresses_find(h, request->host, deadline_ns, &name, reply) != HTTP_OK)
		return reply->result;
	if (request_fill(s, request, name, connect_ms, fresh) != 0 ||
	    curl_multi_add_handle(h->multi, s->easy) != CURLM_OK)
		return http_fail(reply, HTTP_MEMORY, "no memory for a request");
	s->is_added = true;
	return HTTP_OK;
}

/* HTTP/2 sends a request in two frames at least: sent together, they wake the server once. */
static void cork_sockets(const struct http *h, int is_corked)
{
	for (size_t i = 0; h->h2 && i < HTTP_SOCKETS_MAX; i++)
		if (h->sockets[i] >= 0)
			(void)setsockopt(h->sockets[i], IPPROTO_TCP, TCP_CORK, &is_corked,
					 sizeof(is_corked));
}

/* Whether a request is still to be sent: its first part, at least. */
static bool is_sending(const struct http *h)
{
	bool is = false;

	for (size_t i = 0; i < HTTP_PARALLEL; i++)
		is = is || (h->requests[i].is_added && h->requests[i].n_sent == 0);
	return is;
}

/* Does what can be done now. */
static void http_work(struct http *h)
{
	bool is_corked = is_sending(h);
	int n;

	if (is_corked)
		cork_sockets(h, true);
	(void)curl_multi_perform(h->multi, &n);
	if (is_corked)
		cork_sockets(h, false);
	for (const CURLMsg *m; (m = curl_multi_info_read(h->multi, &n)) != NULL;) {
		for (size_t i = 0; m->msg == CURLMSG_DONE && i < HTTP_PARALLEL; i++) {
			if (h->requests[i].easy != m->easy_handle)
				continue;
			h->requests[i].code = m->data.result;
			h->requests[i].is_done = true;
		}
	}
}

/* Waits until there is something to do, or for the deadline, or until we are woken (true). */
static bool http_await(struct http *h, uint64_t deadline_ns, bool may_wake)
{
	struct curl_waitfd wake = {.fd = h->wake, .events = CURL_WAIT_POLLIN};
	uint64_t ms = ms_until(deadline_ns);
	unsigned n = may_wake && h->wake >= 0 ? 1 : 0;

	(void)curl_multi_poll(h->multi, n > 0 ? &wake : NULL, n, ms < 1000000 ? (int)ms : 1000000,
			      NULL);
	return n > 0 && wake.revents != 0;
}

/* True: we are woken, and heed that. */
static bool http_await_call(struct http *h, uint64_t deadline_ns)
{
	bool may_wake = h->heed_ns != 0 && clock_boot_ns() >= h->heed_ns;
	bool is_later = h->heed_ns != 0 && !may_wake && h->heed_ns < deadline_ns;

	return http_await(h, is_later ? h->heed_ns : deadline_ns, may_wake);
}

/* ---- who answers ---- */

static bool need_answers(struct http *h, size_t n)
{
	if (n <= h->n_answers)
		return true;
	struct answer *more = realloc(h->answers, n * sizeof(*more));

	if (more == NULL)
		return false;
	(void)memset(more + h->n_answers, 0, (n - h->n_answers) * sizeof(*more));
	h->answers = more;
	h->n_answers = n;
	return true;
}

/*
 * At first, the share of one address is no more than this: a distant server answers by then, too.
 */
#define SHARE_NS CLOCK_NS_PER_S

/* One request that does no harm: HTTP_OK if there is a reply, whatever it says. */
static int http_probe(struct http *h, const struct http_host *host, uint64_t until_ns,
		      bool is_stream, struct http_reply *reply)
{
	static const char message[HTTP_FRAME] = {0};
	static const char *const headers[] = {"Content-Type: application/grpc", "TE: trailers",
					      NULL};
	struct http_request probe = {.method = "GET", .host = host, .path = h->probe};
	struct request *s = &h->requests[0];
	bool is_woken = false;

	if (h->h2) {
		probe.method = "POST";
		probe.headers = headers;
		probe.body = message;
		probe.body_size = sizeof(message);
	}
	*reply = (struct http_reply){.body = ""};
	s->reply = reply;
	s->answer = &h->answers[0];
	int result = http_begin(h, s, &probe, until_ns, ms_until(until_ns), true);

	while (result == HTTP_OK && !s->is_done && !is_woken && ms_until(until_ns) > 0) {
		http_work(h);
		if (!s->is_done)
			is_woken = is_stream ? http_await(h, until_ns, true)
					     : http_await_call(h, until_ns);
	}
	if (result == HTTP_OK && s->is_done)
		request_judge(s, host, reply);
	else if (result == HTTP_OK)
		(void)http_fail(reply, is_woken ? HTTP_WOKEN : HTTP_LATE, "no reply in time");
	take_out(s);
	request_clear(s);
	if (reply->result != HTTP_OK)
		drop_connections(h);
	return reply->result;
}

/*
 * Tries all addresses in turn, each with a share of the time; the rest is for the request itself.
 */
static int http_prove_once(struct http *h, const struct http_host *host, struct name *name,
			   uint64_t end_ns, uint64_t share_ns, bool is_stream,
			   struct http_reply *reply)
{
	bool is_late = false;
	int result = HTTP_LATE;

	for (size_t left = name->n > 0 ? name->n : 1; left > 0 && ms_until(end_ns) > 0; left--) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t one_ns = (end_ns - now_ns) / (left + 1);

		result = http_probe(h, host, now_ns + (one_ns < share_ns ? one_ns : share_ns),
				    is_stream, reply);
		name->is_proven = result == HTTP_OK;
		if (result == HTTP_OK || result == HTTP_WOKEN)
			return result;
		is_late = is_late || result == HTTP_LATE;
		addresses_next(name);
	}
	return is_late ? HTTP_LATE : result;
}

/* Makes sure that the address whose turn it is answers, if there is another one. HTTP_OK, or why
 * none can be asked. */
static int http_prove(struct http *h, const struct http_request *request, uint64_t deadline_ns,
		      bool is_stream, struct http_reply *reply)
{
	uint64_t end_ns = request->prove_ns != 0 ? request->prove_ns : deadline_ns;
	struct name *name;
	int result = addresses_find(h, request->host, deadline_ns, &name, reply);

	if (result != HTTP_OK || name->is_proven || (name->n < 2 && request->prove_ns == 0))
		return result;
	if (!need_answers(h, 1))
		return http_fail(reply, HTTP_MEMORY, "no memory for a reply");
	(void)http_fail(reply, HTTP_LATE, "no time was left for it");
	result = http_prove_once(h, request->host, name, end_ns, SHARE_NS, is_stream, reply);
	if (result == HTTP_LATE && ms_until(end_ns) > 0) /* the servers may be far away, or busy */
		result = http_prove_once(h, request->host, name, end_ns, UINT64_MAX, is_stream,
					 reply);
	reply->sent = false; /* nothing of the request itself */
	reply->result = result == HTTP_WOKEN ? HTTP_LATE : result;
	return reply->result;
}

/* ---- calls ---- */

/* A batch: which request is next, and how many are under way. */
struct batch {
	const struct http_request *requests;
	struct http_reply *replies;
	size_t n;
	size_t next;
	size_t n_under_way;
	uint64_t deadline_ns;
	bool is_ok;
};

static const struct http_host *batch_host(const struct batch *b, const struct request *s)
{
	return b->requests[s->reply - b->replies].host;
}

/*
 * Begins a request again that was for a connection that had ended by then: nothing of it was sent.
 */
static bool batch_begin_fresh(struct http *h, const struct batch *b, struct request *s)
{
	struct http_reply *reply = s->reply;

	if (!s->is_again || s->code == CURLE_OK || s->n_sent > 0 || ms_until(b->deadline_ns) == 0)
		return false;
	take_out(s);
	request_clear(s);
	s->reply = reply;
	return http_begin(h, s, &b->requests[reply - b->replies], b->deadline_ns,
			  ms_until(b->deadline_ns), true) == HTTP_OK;
}

static void batch_finish(struct http *h, struct batch *b, struct request *s)
{
	if (batch_begin_fresh(h, b, s))
		return;
	request_judge(s, batch_host(b, s), s->reply);
	if (s->reply->result != HTTP_OK) {
		b->is_ok = false;
		addresses_doubt(h, batch_host(b, s));
	}
	take_out(s);
	request_clear(s);
	b->n_under_way--;
}

/* Takes out the requests that are done, and puts the next ones into the free places. */
static void batch_turn(struct http *h, struct batch *b)
{
	for (size_t i = 0; i < HTTP_PARALLEL; i++) {
		struct request *s = &h->requests[i];

		if (s->reply != NULL && s->is_done)
			batch_finish(h, b, s);
		while (s->reply == NULL && b->next < b->n) {
			size_t k = b->next++;

			s->reply = &b->replies[k];
			s->answer = &h->answers[k];
			if (http_begin(h, s, &b->requests[k], b->deadline_ns,
				       ms_until(b->deadline_ns), false) == HTTP_OK) {
				b->n_under_way++;
			} else {
				b->is_ok = false;
				request_clear(s);
			}
		}
	}
}

/* The deadline has passed: requests that are not done are late. */
static void batch_give_up(struct http *h, struct batch *b)
{
	for (size_t i = 0; i < HTTP_PARALLEL; i++) {
		struct request *s = &h->requests[i];

		if (s->reply == NULL)
			continue;
		if (!s->is_done) {
			s->code = CURLE_OPERATION_TIMEDOUT;
			(void)snprintf(s->error, sizeof(s->error), "no reply in time");
		}
		batch_finish(h, b, s);
	}
	for (; b->next < b->n; b->next++)
		(void)http_fail(&b->replies[b->next], HTTP_LATE, "no time was left for it");
	b->is_ok = false;
}

bool http_call_all(struct http *h, const struct http_request *requests, size_t n,
		   uint64_t deadline_ns, struct http_reply *replies)
{
	struct batch b = {.requests = requests,
			  .replies = replies,
			  .n = n,
			  .deadline_ns = deadline_ns,
			  .is_ok = true};

	for (size_t i = 0; i < n; i++)
		replies[i] = (struct http_reply){.body = "", .result = HTTP_MEMORY};
	http_stream_close(h);
	if (!need_answers(h, n)) {
		for (size_t i = 0; i < n; i++)
			(void)http_fail(&replies[i], HTTP_MEMORY, "no memory for a reply");
		return false;
	}
	struct http_reply first = {.body = ""};

	if (n > 0 && http_prove(h, requests, deadline_ns, false, &first) != HTTP_OK) {
		for (size_t i = 0; i < n; i++)
			replies[i] = first;
		return false;
	}
	for (;;) {
		batch_turn(h, &b);
		if (b.n_under_way == 0 && b.next == b.n)
			break;
		http_work(h);
		batch_turn(h, &b);
		if (b.n_under_way == 0 && b.next == b.n)
			break;
		if (ms_until(deadline_ns) == 0 || http_await_call(h, deadline_ns)) {
			batch_give_up(h, &b);
			break;
		}
	}
	if (!b.is_ok)
		drop_connections(h);
	return b.is_ok;
}

void http_heed_wake(struct http *h, uint64_t from_ns)
{
	h->heed_ns = from_ns;
}

int http_call(struct http *h, const struct http_request *request, uint64_t deadline_ns,
	      struct http_reply *reply)
{
	(void)http_call_all(h, request, 1, deadline_ns, reply);
	return reply->result;
}

/* ---- streams ---- */

bool http_stream_is_open(const struct http *h)
{
	return h->is_stream;
}

void http_stream_close(struct http *h)
{
	struct request *s = &h->requests[0];

	if (!h->is_stream)
		return;
	h->is_stream = false;
	take_out(s);
	request_clear(s);
}

int http_stream_open(struct http *h, const struct http_request *request, enum http_pieces pieces,
		     uint64_t deadline_ns, struct http_reply *reply)
{
	struct request *s = &h->requests[0];

	*reply = (struct http_reply){.body = ""};
	http_stream_close(h);
	if (http_prove(h, request, deadline_ns, true, reply) != HTTP_OK)
		return reply->result;
	if (h->h2)
		drop_connections(h); /* a stream has a connection of its own */
	if (!need_answers(h, 1))
		return http_fail(reply, HTTP_MEMORY, "no memory for a reply");
	s->answer = &h->answers[0];
	s->reply = reply;
	int result = http_begin(h, s, request, deadline_ns, STREAM_CONNECT_MS, true);

	s->reply = NULL;
	if (result != HTTP_OK) {
		request_clear(s);
		return result;
	}
	h->is_stream = true;
	h->pieces = pieces;
	h->piece = 0;
	h->stream_host = *request->host;
	return HTTP_OK;
}

size_t http_frame(const char *data, size_t n)
{
	const unsigned char *at = (const unsigned char *)data;

	if (n > 0 && at[0] != 0)
		return SIZE_MAX;
	if (n < HTTP_FRAME)
		return 0;
	size_t size = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];

	return n - HTTP_FRAME >= size ? HTTP_FRAME + size : 0;
}

/* The size of the next piece of what has come, with what frames it; 0: it isn't all there yet. */
static size_t stream_next_piece(const struct http *h)
{
	const struct request *s = &h->requests[0];
	const struct bytes *b = &s->answer->body;
	bool is_end = s->is_done && s->code == CURLE_OK;

	if (h->pieces == HTTP_FRAMES)
		return b->n > 0 ? http_frame(b->at, b->n) : 0;
	const char *end = b->n > 0 && h->pieces == HTTP_LINES ? memchr(b->at, '\n', b->n) : NULL;

	/* At the end of the body, a line needs no newline. */
	return end != NULL ? (size_t)(end - b->at) + 1 : is_end ? b->n : 0;
}

/* True: there is a piece, or the whole body, which may be empty. */
static bool stream_take_piece(struct http *h, struct http_reply *reply)
{
	struct request *s = &h->requests[0];
	struct bytes *b = &s->answer->body;

	if (h->piece > 0) { /* the last one has been read by now */
		(void)memmove(b->at, b->at + h->piece, b->n - h->piece + 1);
		b->n -= h->piece;
		h->piece = 0;
	}
	size_t n = stream_next_piece(h);
	bool is_empty = h->pieces == HTTP_WHOLE && s->is_done && s->code == CURLE_OK;

	if ((n == 0 && !is_empty) || n == SIZE_MAX)
		return false;
	request_judge(s, &h->stream_host, reply);
	reply->result = HTTP_OK;
	reply->body_size = n;
	h->piece = n;
	if (h->pieces == HTTP_FRAMES) {
		reply->body += HTTP_FRAME;
		reply->body_size -= HTTP_FRAME;
	} else if (h->pieces == HTTP_LINES && b->at[n - 1] == '\n') {
		b->at[--reply->body_size] = '\0';
	}
	return true;
}

static int stream_end(struct http *h, struct http_reply *reply)
{
	struct request *s = &h->requests[0];

	if (stream_next_piece(h) == SIZE_MAX)
		(void)http_fail(reply, HTTP_STRANGE, "the reply is not a valid message");
	else
		request_judge(s, &h->stream_host, reply);
	if (reply->result == HTTP_OK) {
		http_stream_close(h);
		return http_fail(reply, HTTP_END, "the server has ended the stream");
	}
	addresses_doubt(h, &h->stream_host);
	http_stream_close(h);
	drop_connections(h);
	return reply->result;
}

int http_stream_next(struct http *h, uint64_t deadline_ns, struct http_reply *reply)
{
	struct request *s = &h->requests[0];

	*reply = (struct http_reply){.body = ""};
	if (!h->is_stream)
		return http_fail(reply, HTTP_END, "there is no stream");
	for (;;) {
		if (stream_take_piece(h, reply)) {
			if (h->pieces == HTTP_WHOLE)
				http_stream_close(h);
			return HTTP_OK;
		}
		if (s->is_done || stream_next_piece(h) == SIZE_MAX)
			return stream_end(h, reply);
		http_work(h);
		if (s->is_done || stream_next_piece(h) != 0)
			continue;
		if (ms_until(deadline_ns) == 0)
			return http_fail(reply, HTTP_LATE, "nothing has come yet");
		if (http_await(h, deadline_ns, true))
			return http_fail(reply, HTTP_WOKEN, "woken");
	}
}
