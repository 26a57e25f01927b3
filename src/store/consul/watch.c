/*
 * watch.c: the watch lane: one long poll on the prefix, which covers all elections; or on one
 * election if only one is watched. Watch, then look: all names get a hint when the first answer has
 * come, and again whenever the watch begins anew. Expiry needs no timer: a session that ends
 * unlocks its keys, and that is a change like any other.
 *
 * An answer has all keys, each with the index at which it was last written. Keys whose index is
 * above the one that we had are news. A key that was deleted is not there, but then there are fewer
 * keys than there should be, and all names get a hint.
 *
 * So the length of an answer grows with the number of elections. If reading an answer takes long,
 * the next poll waits twice as long as that took. So the first change is heard at once, and a storm
 * of changes costs a third of a processor at most.
 *
 * A frozen server is silent. But then renewals fail there, too, the lanes move on to another
 * server, and the watch moves with them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* An answer that takes longer to read than this is a long one. */
#define LONG_NS CLOCK_NS_PER_MS
#define WAIT "300s"
/* Consul answers at most a sixteenth later than WAIT. */
#define SILENCE_NS (340 * CLOCK_NS_PER_S)

static void watch_break(void *l)
{
	struct consul_lane *lane = l;

	web_watch_break(&lane->web);
	lane->index = 0;
}

bool consul_put_path(const char *key, char *out, size_t size)
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

static int watch_open(void *l, struct baton_call *call)
{
	struct consul_lane *lane = l;
	struct consul_key tree = consul_tree_key(lane->store, lane->only);
	char path[3 * CONSUL_KEY_MAX + 128];
	char wait[64] = "";

	if (!consul_put_path(tree.text, path, sizeof(path) - 100))
		return store_fail(&call->error, BATON_E_URL, "the prefix is too long for Consul");
	if (lane->index != 0)
		(void)snprintf(wait, sizeof(wait), "&index=%" PRIu64 "&wait=" WAIT, lane->index);
	size_t n = strlen(path);

	(void)snprintf(path + n, sizeof(path) - n, "?recurse%s", wait);
	return consul_poll(lane, call, path);
}

/* Whether the key is our own claim, which we know or are about to be told of: it needs no hint. */
static bool watch_is_own(struct consul_store *s, const json_t *kv, const char *name,
			 uint64_t written)
{
	const char *session = js_text(kv, "Session");
	struct consul_known k;

	if (session[0] == '\0' || !web_lease_is_ours(&s->web, 0, session))
		return false;
	consul_known_get(s, name, &k);
	return k.claim_index == written || store_is_asked(&s->web.base, name);
}

/* Gives hints for keys that are news. Returns how many keys are new. */
static size_t watch_hear_keys(struct consul_lane *lane, const json_t *list)
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
		    consul_key_read(lane->store, js_text(kv, "Key"), name) != 0 &&
		    !watch_is_own(lane->store, kv, name, written))
			web_index_hint(lane->store->web.watches, name);
	}
	return n_new;
}

static int watch_hear(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct consul_lane *lane = l;
	struct web_index *watches = lane->store->web.watches;
	uint64_t began_ns = clock_boot_ns();
	json_t *list = js_parse(reply->body, reply->body_size);
	char text[32];
	bool is_sure;
	uint64_t index =
		strtoull(http_header(reply, "X-Consul-Index", text, sizeof(text)), NULL, 10);

	/* 404: there is no key yet. */
	if ((reply->status != 404 && (reply->status != 200 || !json_is_array(list))) ||
	    index == 0) {
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
	size_t n_new = watch_hear_keys(lane, list);

	json_decref(list);
	/* The index went back (another cluster, or an older state of this one), or a key was
	 * deleted. */
	if (lane->index != 0 && (index < lane->index || lane->n_keys + n_new != n_keys))
		web_index_hint_all(watches);
	lane->n_keys = n_keys;
	lane->index = index;
	web_index_set_live(watches, true);
	uint64_t now_ns = clock_boot_ns();

	lane->web.rest_ns = now_ns - began_ns > LONG_NS ? now_ns + 2 * (now_ns - began_ns) : 0;
	return 0;
}

int consul_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	static const struct web_watch watch = {.service = "Consul",
					       .silence_ns = SILENCE_NS,
					       .open = watch_open,
					       .hear = watch_hear,
					       .lost = watch_break};
	struct consul_lane *lane = l;

	return web_watch_wait(&lane->web, &watch, call, cookies, max);
}

/* ---- what is watched ---- */

/* If only one election is watched, the poll is for that one alone, so that changes of others don't
 * end it. */
int consul_watch_add(void *l, const char *name, uint64_t cookie)
{
	struct consul_lane *lane = l;

	if (lane->n_names == 0) {
		watch_break(lane);
		(void)snprintf(lane->only, sizeof(lane->only), "%s", name);
	} else if (lane->only[0] != '\0' && strcmp(lane->only, name) != 0) {
		watch_break(lane);
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
