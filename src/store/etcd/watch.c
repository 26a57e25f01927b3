/*
 * watch.c: the watch lane: one watch on the prefix, which covers all elections. Watch, then look:
 * all are hinted at when the watch stands, and again whenever it stands anew. Expiry needs no
 * timer: a lease that ends deletes its keys, and that is pushed.
 *
 * A member that is frozen pushes nothing and says nothing. But then renewals fail there, too, and
 * the lanes move on to another member: the watch goes along.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

#define OPEN_NS (5 * CLOCK_NS_PER_S)
/* An idle watch is told every ten minutes that it is alive. */
#define SILENCE_NS (25 * 60 * CLOCK_NS_PER_S)

static void broken(struct etcd_lane *lane)
{
	http_stream_close(lane->web.http);
	hints_set_live(lane->store->web.hints, false);
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int open_watch(struct etcd_lane *lane, struct baton_call *call)
{
	struct baton_call open = {.deadline_ns =
					  min_ns(call->deadline_ns, clock_boot_ns() + OPEN_NS)};
	struct etcd_key all;
	struct bytes *b = web_begin(&lane->web);

	(void)snprintf(all.text, sizeof(all.text), "%s/", lane->store->options.prefix);
	struct etcd_key end = etcd_key_end(&all);

	bytes_print(b, "{\"create_request\":{\"progress_notify\":true,");
	etcd_put_key(b, "key", &all);
	bytes_print(b, ",");
	etcd_put_key(b, "range_end", &end);
	bytes_print(b, "}}");
	lane->heard_ns = clock_boot_ns();
	lane->is_made = false;
	if (etcd_listen(lane, &open) == 0)
		return 0;
	call->error = open.error;
	return -1;
}

/* Not the term: that comes with a claim. */
static void hear_event(struct etcd_store *s, const json_t *event)
{
	char key[ETCD_KEY_MAX];
	char name[BATON_NAME_MAX + 1];

	if (!js_base64(js_get(event, "kv"), "key", key, sizeof(key)))
		return;
	int kind = etcd_key_read(s, key, name);
	size_t n = strlen(key);

	if (kind == 'c' || (kind == 's' && (n < 5 || strcmp(key + n - 5, "/term") != 0)))
		hints_name(s->web.hints, name);
}

/* 0, or -1: it is over. */
static int hear(struct etcd_lane *lane, struct baton_call *call, const struct http_reply *reply)
{
	json_t *line = js_parse(reply->body, reply->body_size);
	const json_t *result = js_get(line, "result");
	const json_t *events = js_get(result, "events");
	bool is_sure;
	int rc = 0;

	lane->heard_ns = clock_boot_ns();
	for (size_t i = 0; i < json_array_size(events); i++)
		hear_event(lane->store, json_array_get(events, i));
	if (json_is_true(js_get(result, "created")) && !json_is_true(js_get(result, "canceled"))) {
		hints_set_live(lane->store->web.hints, true);
		lane->is_made = true;
	} else if (result == NULL) {
		etcd_drop_token(lane); /* perhaps it is that */
		(void)etcd_judge(call, line, &is_sure);
		rc = -1;
	} else if (json_is_true(js_get(result, "canceled"))) {
		const char *why = js_text(result, "cancel_reason");

		etcd_drop_token(lane);
		/* Rights have changed: with a new token it goes on, and nobody need know. */
		bool goes_on =
			lane->is_made && strstr(why, "revision of auth store is old") != NULL;

		if (goes_on)
			broken(lane);
		else
			(void)store_fail(&call->error,
					 strstr(why, "permission") != NULL ? BATON_E_DENIED
									   : BATON_E_UNAVAILABLE,
					 "etcd has ended the watch: %.150s", why);
		rc = goes_on ? 0 : -1;
	}
	json_decref(line);
	return rc;
}

static int listen_for(struct etcd_lane *lane, struct baton_call *call)
{
	struct http_reply reply;
	uint64_t until_ns = min_ns(call->deadline_ns, lane->heard_ns + SILENCE_NS);
	int result = http_stream_next(lane->web.http, until_ns, &reply);

	if (result == HTTP_OK)
		return hear(lane, call, &reply);
	if (result == HTTP_WOKEN)
		return 1;
	if (result == HTTP_LATE && clock_boot_ns() < lane->heard_ns + SILENCE_NS)
		return 0;
	web_move_on(&lane->store->web, lane->web.stream);
	return store_fail(&call->error, BATON_E_UNAVAILABLE, "the watch on etcd is broken: %.150s",
			  reply.text);
}

int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct etcd_lane *lane = l;
	struct etcd_store *s = lane->store;

	for (;;) {
		size_t n = hints_take(s->web.hints, cookies, max);

		if (n > 0 || clock_boot_ns() >= call->deadline_ns)
			return (int)n;
		if (http_stream_is_open(lane->web.http) && web_has_moved(&lane->web))
			broken(lane);
		if (!http_stream_is_open(lane->web.http) && open_watch(lane, call) != 0) {
			broken(lane);
			return web_take_wake(&s->web) ? 0 : call->error.code;
		}
		int rc = listen_for(lane, call);

		if (rc < 0) {
			broken(lane);
			return call->error.code;
		}
		if (rc > 0 && web_take_wake(&s->web))
			return (int)hints_take(s->web.hints, cookies, max);
	}
}
