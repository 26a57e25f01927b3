/*
 * send.c: the thread of the exporter: takes what is queued, encodes it, sends it. Only answers that
 * mean "not now" (429, 502, 503, 504) are tried again, a few times; all else is counted and left
 * out. At the end it stops in time whatever the collector does: nothing here waits without a limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/clock.h"
#include "telemetry/otlp/otlp.h"

#define TRIES_MAX 5
#define PAUSE_MS 1000
#define POLL_MS 1000

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Milliseconds until it has to stop, at most `ms`. */
static long time_left_ms(struct otlp *x, long ms)
{
	(void)pthread_mutex_lock(&x->lock);
	uint64_t end_ns = x->is_ending ? x->end_ns : UINT64_MAX;

	(void)pthread_mutex_unlock(&x->lock);
	uint64_t now = now_ns();
	uint64_t left_ms = now < end_ns ? (end_ns - now) / CLOCK_NS_PER_MS : 0;

	return left_ms < (uint64_t)ms ? (long)left_ms : ms;
}

static size_t ignore_answer(const char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

/* False: it can't be compressed, and is sent as it is. */
static bool compress_body(const struct bytes *from, struct bytes *to)
{
	z_stream z = {0};

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	uLong room = deflateBound(&z, (uLong)from->n);

	to->at = malloc(room);
	z.next_in = (Bytef *)from->at;
	z.avail_in = (uInt)from->n;
	z.next_out = (Bytef *)to->at;
	z.avail_out = (uInt)room;
	bool is_done = to->at != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END;

	to->n = z.total_out;
	to->room = room;
	(void)deflateEnd(&z);
	return is_done;
}

static CURL *make_request(const struct otlp_signal *s, const struct bytes *body)
{
	CURL *easy = curl_easy_init();

	if (easy == NULL)
		return NULL;
	(void)curl_easy_setopt(easy, CURLOPT_URL, s->url);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, s->timeout_ms);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->n);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->at);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, s->headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_answer);
	if (s->ca != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, s->ca);
	if (s->certificate != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_SSLCERT, s->certificate);
	if (s->key != NULL)
		(void)curl_easy_setopt(easy, CURLOPT_SSLKEY, s->key);
	return easy;
}

/* The code of the answer; 0: there was none, and why. */
static long post_once(struct otlp *x, const struct otlp_signal *s, const struct bytes *body,
		      const char **why)
{
	CURL *easy = make_request(s, body);
	long code = 0;
	int n_running = 1;

	*why = "no memory";
	if (easy == NULL || curl_multi_add_handle(x->multi, easy) != CURLM_OK) {
		curl_easy_cleanup(easy);
		return 0;
	}
	*why = "there was no time left";
	while (n_running > 0 && time_left_ms(x, POLL_MS) > 0) {
		(void)curl_multi_perform(x->multi, &n_running);
		if (n_running > 0)
			(void)curl_multi_poll(x->multi, NULL, 0, (int)time_left_ms(x, POLL_MS),
					      NULL);
	}
	int n_left;

	for (CURLMsg *m; (m = curl_multi_info_read(x->multi, &n_left)) != NULL;) {
		if (m->msg == CURLMSG_DONE && m->data.result == CURLE_OK)
			(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
		else if (m->msg == CURLMSG_DONE)
			*why = curl_easy_strerror(m->data.result);
	}
	(void)curl_multi_remove_handle(x->multi, easy);
	curl_easy_cleanup(easy);
	return code;
}

static void say_result(struct otlp *x, bool is_ok, long code, const char *why)
{
	char text[256];

	if (is_ok == !x->is_failing)
		return;
	x->is_failing = !is_ok;
	if (is_ok)
		(void)snprintf(text, sizeof(text), "the collector takes telemetry again");
	else if (code != 0)
		(void)snprintf(text, sizeof(text),
			       "the collector refuses telemetry with %ld; it is left out", code);
	else
		(void)snprintf(text, sizeof(text),
			       "the collector can't be reached: %.120s; telemetry is left out",
			       why);
	x->say(is_ok ? BATON_LOG_INFO : BATON_LOG_WARN, text);
}

static bool is_not_now(long code)
{
	return code == 429 || code == 502 || code == 503 || code == 504;
}

/* Waits for the pause, or until it is time to end. */
static void wait_a_while(struct otlp *x, long ms)
{
	uint64_t until = now_ns() + (uint64_t)ms * CLOCK_NS_PER_MS;

	for (uint64_t now; (now = now_ns()) < until && time_left_ms(x, 1) > 0;) {
		long left = (long)((until - now) / CLOCK_NS_PER_MS) + 1;

		(void)curl_multi_poll(x->multi, NULL, 0, (int)time_left_ms(x, left), NULL);
	}
}

static bool post_body(struct otlp *x, int kind, const struct bytes *body)
{
	const struct otlp_signal *s = &x->settings.signals[kind];
	struct bytes small = {0};
	bool is_small = s->gzip && compress_body(body, &small);
	const char *why = "";
	long code = 0;

	for (int i = 0; i < TRIES_MAX; i++) {
		code = post_once(x, s, is_small ? &small : body, &why);
		if (!is_not_now(code) || time_left_ms(x, 1) == 0)
			break;
		wait_a_while(x, PAUSE_MS << i);
	}
	bytes_done(&small);
	bool is_ok = code >= 200 && code < 300;

	say_result(x, is_ok, code, why);
	return is_ok;
}

/* Takes up to BATCH_MAX spans off the queue. With the lock. */
static struct otlp_item *take_spans(struct otlp *x, size_t *n)
{
	struct otlp_item *items = x->first;
	struct otlp_item **end = &x->first;

	for (*n = 0; *end != NULL && *n < BATCH_MAX; (*n)++)
		end = &(*end)->next;
	x->first = *end;
	*end = NULL;
	if (x->first == NULL)
		x->end = &x->first;
	x->n_items -= *n;
	return items;
}

static void send_spans(struct otlp *x, struct otlp_item *items, size_t n)
{
	struct bytes body = {0};

	if (items == NULL)
		return;
	if (x->settings.signals[SIGNAL_TRACES].json)
		otlp_encode_spans_json(x, items, &body);
	else
		otlp_encode_spans(x, items, &body);
	bool is_sent = !body.has_failed && post_body(x, SIGNAL_TRACES, &body);

	bytes_done(&body);
	while (items != NULL) {
		struct otlp_item *next = items->next;

		free(items);
		items = next;
	}
	(void)pthread_mutex_lock(&x->lock);
	x->n_dropped += is_sent ? 0 : n;
	(void)pthread_mutex_unlock(&x->lock);
}

void *otlp_send(void *arg)
{
	struct otlp *x = arg;
	size_t n;

	(void)pthread_mutex_lock(&x->lock);
	for (;;) {
		while (x->first == NULL && x->metrics.n == 0 && !x->is_ending)
			(void)pthread_cond_wait(&x->changed, &x->lock);
		bool is_late = x->is_ending && now_ns() >= x->end_ns;

		if ((x->first == NULL && x->metrics.n == 0) || is_late)
			break;
		struct otlp_item *items = take_spans(x, &n);
		struct bytes metrics = x->metrics;

		x->metrics = (struct bytes){0};
		(void)pthread_mutex_unlock(&x->lock);
		send_spans(x, items, n);
		if (metrics.n > 0)
			(void)post_body(x, SIGNAL_METRICS, &metrics);
		bytes_done(&metrics);
		(void)pthread_mutex_lock(&x->lock);
	}
	x->has_ended = true;
	(void)pthread_cond_broadcast(&x->changed);
	(void)pthread_mutex_unlock(&x->lock);
	return NULL;
}
