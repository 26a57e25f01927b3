/*
 * watch.c: the watch lane: one long poll on the prefix, which covers all elections; on one election
 * if there is only one. Watch, then look: all are hinted at when the first answer is there, and
 * again whenever it begins anew. Expiry needs no timer: a session that ends unlocks its keys, and
 * that is a change like any other.
 *
 * An answer has all keys, and each of them the index at which it was last written: those above the
 * index that we had are news. Of one that was deleted nothing is left to see; but that there are
 * fewer than there should be tells that it happened, and then everybody is told.
 *
 * So an answer is as long as there are elections. Where that is long, the next question waits twice
 * as long as it took to read the last answer: what happens first is heard at once, and a storm of
 * changes costs a third of a processor at most.
 *
 * A server that is frozen says nothing. But then renewals fail there, too, and the lanes move on to
 * another one: the watch goes along.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

#define OPEN_NS (5 * CLOCK_NS_PER_S)
/* An answer that takes so long to read is a long one. */
#define LONG_NS CLOCK_NS_PER_MS
#define WAIT "300s"
/* Consul answers a sixteenth after that at the latest. */
#define SILENCE_NS (340 * CLOCK_NS_PER_S)

static void broken(struct consul_lane *lane)
{
	http_stream_close(lane->web.http);
	hints_set_live(lane->store->web.hints, false);
	lane->index = 0;
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A path of several segments: the slashes between them stay. */
static bool put_key_path(const char *key, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "/v1/kv");

	for (bool is_last = false; !is_last; key += strcspn(key, "/") + 1) {
		char segment[CONSUL_KEY_MAX];
		size_t length = strcspn(key, "/");

		is_last = key[length] == '\0';
		(void)snprintf(segment, sizeof(segment), "%.*s", (int)length, key);
		n += (size_t)snprintf(out + n, size - n, "/");
		if (!http_encode(segment, out + n, size - n))
			return false;
		n += strlen(out + n);
	}
	return true;
}

static int open_poll(struct consul_lane *lane, struct baton_call *call)
{
	struct baton_call open = {.deadline_ns =
					  min_ns(call->deadline_ns, clock_boot_ns() + OPEN_NS)};
	struct consul_key tree = consul_tree_key(lane->store, lane->only);
	char path[3 * CONSUL_KEY_MAX + 128];
	char wait[64] = "";

	if (!put_key_path(tree.text, path, sizeof(path) - 100))
		return store_fail(&call->error, BATON_E_URL, "the prefix is too long for Consul");
	if (lane->index != 0)
		(void)snprintf(wait, sizeof(wait), "&index=%" PRIu64 "&wait=" WAIT, lane->index);
	size_t n = strlen(path);

	(void)snprintf(path + n, sizeof(path) - n, "?recurse%s", wait);
	lane->asked_ns = clock_boot_ns();
	if (consul_poll(lane, &open, path) == 0)
		return 0;
	call->error = open.error;
	return -1;
}

/* Who is to be told of what. How many there are that were not there before. */
static size_t hear_keys(struct consul_lane *lane, const json_t *list)
{
	size_t n_new = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *kv = json_array_get(list, i);
		char name[BATON_NAME_MAX + 1];
		uint64_t created = 0;
		uint64_t written = 0;

		(void)js_u64(kv, "CreateIndex", &created);
		(void)js_u64(kv, "ModifyIndex", &written);
		n_new += created > lane->index;
		if (written > lane->index &&
		    consul_key_read(lane->store, js_text(kv, "Key"), name) != 0)
			hints_name(lane->store->web.hints, name);
	}
	return n_new;
}

static int hear(struct consul_lane *lane, struct baton_call *call, const struct http_reply *reply)
{
	struct hints *hints = lane->store->web.hints;
	uint64_t began_ns = clock_boot_ns();
	json_t *list = js_parse(reply->body, reply->body_size);
	char text[32];
	bool is_sure;
	uint64_t index =
		strtoull(http_header(reply, "X-Consul-Index", text, sizeof(text)), NULL, 10);

	/* 404: there is no key yet. */
	if ((reply->status != 200 && reply->status != 404) || index == 0) {
		char words[180];

		(void)snprintf(words, sizeof(words), "%.*s", (int)strcspn(reply->body, "\r\n"),
			       reply->body);
		if (reply->status == 200 || reply->status == 404)
			(void)consul_strange(call);
		else if (consul_judge(call, reply->status, words, &is_sure) == BATON_E_UNAVAILABLE)
			web_move_on(&lane->store->web, lane->web.stream);
		json_decref(list);
		return -1;
	}
	size_t n_keys = json_array_size(list);
	size_t n_new = hear_keys(lane, list);

	json_decref(list);
	/* It went back: another cluster, or an older state of this one. */
	if (lane->index != 0 && (index < lane->index || lane->n_keys + n_new != n_keys))
		hints_all(hints);
	lane->n_keys = n_keys;
	lane->index = index;
	hints_set_live(hints, true);
	uint64_t now_ns = clock_boot_ns();

	lane->rest_ns = now_ns - began_ns > LONG_NS ? now_ns + 2 * (now_ns - began_ns) : 0;
	return 0;
}

/* Waits until it is time for the next question, or something wakes us. */
static void rest(const struct consul_lane *lane, uint64_t now_ns)
{
	struct pollfd wake = {.fd = lane->store->web.wake, .events = POLLIN};

	(void)poll(&wake, 1, (int)((lane->rest_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
}

static int listen_for(struct consul_lane *lane, struct baton_call *call)
{
	struct http_reply reply;
	uint64_t until_ns = min_ns(call->deadline_ns, lane->asked_ns + SILENCE_NS);
	int result = http_stream_next(lane->web.http, until_ns, &reply);

	if (result == HTTP_OK)
		return hear(lane, call, &reply);
	if (result == HTTP_WOKEN)
		return 1;
	if (result == HTTP_LATE && clock_boot_ns() < lane->asked_ns + SILENCE_NS)
		return 0;
	web_move_on(&lane->store->web, lane->web.stream);
	return store_fail(&call->error, BATON_E_UNAVAILABLE,
			  "the watch on Consul is broken: %.150s", reply.text);
}

int consul_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct consul_lane *lane = l;
	struct consul_store *s = lane->store;

	for (;;) {
		size_t n = hints_take(s->web.hints, cookies, max);

		if (n > 0 || clock_boot_ns() >= call->deadline_ns)
			return (int)n;
		if (http_stream_is_open(lane->web.http) && web_has_moved(&lane->web))
			broken(lane);
		uint64_t now_ns = clock_boot_ns();

		if (!http_stream_is_open(lane->web.http) && now_ns < lane->rest_ns) {
			rest(lane, now_ns);
			if (web_take_wake(&s->web))
				return (int)hints_take(s->web.hints, cookies, max);
			continue;
		}
		if (!http_stream_is_open(lane->web.http) && open_poll(lane, call) != 0) {
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

/* ---- what is watched ---- */

/* One election is listened to alone: what happens to others is none of its business. */
int consul_watch_add(void *l, const char *name, uint64_t cookie)
{
	struct consul_lane *lane = l;

	if (lane->n_names == 0) {
		broken(lane);
		(void)snprintf(lane->only, sizeof(lane->only), "%s", name);
	} else if (lane->only[0] != '\0' && strcmp(lane->only, name) != 0) {
		broken(lane);
		lane->only[0] = '\0';
	}
	int code = web_watch_add(l, name, cookie);

	lane->n_names += code == BATON_OK;
	return code;
}

void consul_watch_remove(void *l, const char *name, uint64_t cookie)
{
	struct consul_lane *lane = l;

	lane->n_names -= lane->n_names > 0;
	web_watch_remove(l, name, cookie);
}
