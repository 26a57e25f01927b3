/*
 * watch.c: the watch lane: one watch on the prefix, which covers all elections. Watch, then look:
 * all are hinted at when the watch stands, and again whenever it stands anew. Expiry needs no
 * timer: a lease that ends deletes its keys, and that is pushed.
 *
 * A member that is frozen pushes nothing and says nothing. But then renewals fail there, too, and
 * the lanes move on to another member: the watch goes along. Where the URL names only one, that may
 * stand for several (a name with many addresses, a load balancer): then renewals can be well while
 * the watch is deaf, so after some silence it is begun anew, and all are looked at.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* An idle watch is told every ten minutes that it is alive. */
#define SILENCE_NS (25 * 60 * CLOCK_NS_PER_S)
#define ONE_SILENCE_NS (2 * 60 * CLOCK_NS_PER_S)
/* It says at once that it stands. */
#define ANSWER_NS (10 * CLOCK_NS_PER_S)

static int open_watch(void *l, struct baton_call *call)
{
	struct etcd_lane *lane = l;
	struct etcd_key all;
	struct bytes *b = etcd_begin(lane);

	(void)snprintf(all.text, sizeof(all.text), "%s/", lane->store->options.prefix);
	struct etcd_key end = etcd_key_end(&all);
	size_t create = proto_begin(b, ETCD_WATCH_CREATE);

	etcd_ask_range(b, &all, &end, 0, false);
	proto_put_number(b, ETCD_WATCH_PROGRESS, 1);
	proto_end(b, create);
	lane->is_made = false;
	return etcd_listen(lane, call);
}

/* A claim that we have won, or are about to hear that we have: no news. */
static bool is_our_own(struct etcd_store *s, struct proto event, const char *name)
{
	struct proto kv = proto_get(event, ETCD_EVENT_KV);
	uint64_t lease = proto_number(kv, ETCD_KV_LEASE);
	struct etcd_known k;

	if (lease == 0 || proto_number(event, ETCD_EVENT_TYPE) == ETCD_EVENT_DELETE ||
	    !web_lease_is_ours(&s->web, lease, ""))
		return false;
	etcd_known_get(s, name, &k);
	return k.claim_mod == proto_number(kv, ETCD_KV_MOD) || store_is_asked(&s->web.base, name);
}

/* Not the term: that comes with a claim. */
static void hear_event(struct etcd_store *s, struct proto event)
{
	char key[ETCD_KEY_MAX];
	char name[BATON_NAME_MAX + 1];

	if (!proto_text(proto_get(event, ETCD_EVENT_KV), ETCD_KV_KEY, key, sizeof(key)))
		return;
	int kind = etcd_key_read(s, key, name);
	size_t n = strlen(key);

	if ((kind == 'c' && !is_our_own(s, event, name)) ||
	    (kind == 's' && (n < 5 || strcmp(key + n - 5, "/term") != 0)))
		hints_name(s->web.hints, name);
}

/* The watch is over, but perhaps not what it is listened on. 0: it is begun anew, or -1. */
static int hear_end(struct etcd_lane *lane, struct baton_call *call, struct proto message)
{
	char why[HTTP_TEXT_MAX];

	(void)proto_text(message, ETCD_WATCH_REASON, why, sizeof(why));
	etcd_drop_token(lane);
	/* Rights have changed: with a new token it goes on, and nobody need know. */
	if (lane->is_made && strstr(why, "revision of auth store is old") != NULL) {
		web_watch_break(&lane->web);
		return 0;
	}
	return store_fail(&call->error,
			  strstr(why, "permission") != NULL ? BATON_E_DENIED : BATON_E_UNAVAILABLE,
			  "etcd has ended the watch: %.150s", why);
}

/* 0, or -1: it is over. */
static int hear(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct etcd_lane *lane = l;
	struct proto message = {reply->body, reply->body_size};
	struct proto rest = message;

	if (!proto_fits(message, etcd_watch.answer)) {
		(void)etcd_strange(call);
		return -1;
	}
	for (struct proto event; proto_next(&rest, ETCD_WATCH_EVENTS, &event);)
		hear_event(lane->store, event);
	if (proto_number(message, ETCD_WATCH_CANCELED) != 0)
		return hear_end(lane, call, message);
	if (proto_number(message, ETCD_WATCH_CREATED) != 0) {
		hints_set_live(lane->store->web.hints, true);
		lane->is_made = true;
	}
	return 0;
}

/* With a status: it has no leader, it stops, or it doesn't like our token. */
static void ended(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct etcd_lane *lane = l;
	char text[HTTP_TEXT_MAX];
	bool is_sure;
	int status = grpc_status_of(reply, text);

	etcd_drop_token(lane); /* perhaps it is that */
	if (status == GRPC_NONE)
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "etcd, or what stands in front of it, has ended the watch with "
				 "HTTP status %d",
				 reply->status);
	if (status == GRPC_NONE || etcd_judge(call, status, text, &is_sure) == BATON_E_UNAVAILABLE)
		web_move_on(&lane->store->web, lane->web.stream);
}

static void lost(void *l)
{
	struct etcd_lane *lane = l;

	web_watch_break(&lane->web);
}

int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	static const struct web_watch one = {.service = "etcd",
					     .silence_ns = ONE_SILENCE_NS,
					     .answer_ns = ANSWER_NS,
					     .may_be_silent = true,
					     .open = open_watch,
					     .hear = hear,
					     .ended = ended,
					     .lost = lost};
	static const struct web_watch several = {.service = "etcd",
						 .silence_ns = SILENCE_NS,
						 .answer_ns = ANSWER_NS,
						 .open = open_watch,
						 .hear = hear,
						 .ended = ended,
						 .lost = lost};
	struct etcd_lane *lane = l;
	const struct web_watch *watch = lane->store->options.web.n_hosts == 1 ? &one : &several;

	return web_watch_wait(&lane->web, watch, call, cookies, max);
}
