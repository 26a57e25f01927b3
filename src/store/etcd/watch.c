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

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* An idle watch is told every ten minutes that it is alive. */
#define SILENCE_NS (25 * 60 * CLOCK_NS_PER_S)

static int open_watch(void *l, struct baton_call *call)
{
	struct etcd_lane *lane = l;
	struct etcd_key all;
	struct bytes *b = web_begin(&lane->web);

	(void)snprintf(all.text, sizeof(all.text), "%s/", lane->store->options.prefix);
	struct etcd_key end = etcd_key_end(&all);

	bytes_print(b, "{\"create_request\":{\"progress_notify\":true,");
	etcd_put_key(b, "key", &all);
	bytes_print(b, ",");
	etcd_put_key(b, "range_end", &end);
	bytes_print(b, "}}");
	lane->is_made = false;
	return etcd_listen(lane, call);
}

/* A claim that we have won, or are about to hear that we have: no news. */
static bool is_our_own(struct etcd_store *s, const json_t *event, const char *name)
{
	const json_t *kv = js_get(event, "kv");
	struct etcd_known k;
	uint64_t lease = 0;
	uint64_t mod = 0;

	(void)js_u64(kv, "lease", &lease);
	(void)js_u64(kv, "mod_revision", &mod);
	if (lease == 0 || strcmp(js_text(event, "type"), "DELETE") == 0 ||
	    !web_lease_is_ours(&s->web, lease, ""))
		return false;
	etcd_known_get(s, name, &k);
	return k.claim_mod == mod || store_is_asked(&s->web.base, name);
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

	if ((kind == 'c' && !is_our_own(s, event, name)) ||
	    (kind == 's' && (n < 5 || strcmp(key + n - 5, "/term") != 0)))
		hints_name(s->web.hints, name);
}

/* 0, or -1: it is over. */
static int hear(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct etcd_lane *lane = l;
	json_t *line = js_parse(reply->body, reply->body_size);
	const json_t *result = js_get(line, "result");
	const json_t *events = js_get(result, "events");
	bool is_sure;
	int rc = 0;

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
			web_watch_break(&lane->web);
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

static void lost(void *l)
{
	struct etcd_lane *lane = l;

	web_watch_break(&lane->web);
}

int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	static const struct web_watch watch = {.service = "etcd",
					       .silence_ns = SILENCE_NS,
					       .open = open_watch,
					       .hear = hear,
					       .lost = lost};
	struct etcd_lane *lane = l;

	return web_watch_wait(&lane->web, &watch, call, cookies, max);
}
