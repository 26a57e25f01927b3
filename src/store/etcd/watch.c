/*
 * watch.c: the watch lane: one watch on the prefix, which covers all elections. Watch, then look:
 * all are hinted at when the watch stands, and again whenever it stands anew. Expiry needs no
 * timer: a lease that ends deletes its keys, and that is pushed.
 *
 * A member that is frozen pushes nothing and says nothing. But then renewals fail there, too, and
 * the lanes move on to another member: the watch goes along. Where the URL names only one, that may
 * stand for several (a name with many addresses, a load balancer): then renewals can be well while
 * the watch is deaf, so after some silence it is asked for anew, from where it has heard all: what
 * it has missed comes then, and who has missed nothing need not look.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* An idle watch is told every ten minutes that it is alive. */
#define SILENCE_NS (25 * 60 * CLOCK_NS_PER_S)
/* Where there is only one host: so many leases. */
#define ONE_SILENCE 4
/* It says at once that it stands. */
#define ANSWER_NS (10 * CLOCK_NS_PER_S)

static int watch_open(void *l, struct baton_call *call)
{
	struct etcd_lane *lane = l;
	struct etcd_key all;
	struct bytes *b = etcd_begin(lane);

	(void)snprintf(all.text, sizeof(all.text), "%s/", lane->store->options.prefix);
	struct etcd_key end = etcd_key_end(&all);
	size_t create = proto_begin(b, ETCD_WATCH_CREATE);

	etcd_ask_range(b, &all, &end, 0, false);
	if (lane->heard != 0)
		proto_put_number(b, ETCD_WATCH_START, lane->heard + 1);
	proto_put_number(b, ETCD_WATCH_PROGRESS, 1);
	proto_end(b, create);
	lane->is_made = false;
	return etcd_listen(lane, call);
}

/* A claim that we have won, or are about to hear that we have: no news. */
static bool watch_is_own(struct etcd_store *s, struct proto event, const char *name)
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

/* Not those that come with a claim, or go with it. */
static bool is_news(const char *key)
{
	const char *what = strrchr(key, '/');

	return what == NULL ||
	       (strcmp(what + 1, "term") != 0 && strcmp(what + 1, ETCD_UNRELEASED) != 0);
}

static void watch_hear_event(struct etcd_store *s, struct proto event)
{
	char key[ETCD_KEY_MAX];
	char name[BATON_NAME_MAX + 1];

	if (!proto_text(proto_get(event, ETCD_EVENT_KV), ETCD_KV_KEY, key, sizeof(key)))
		return;
	int kind = etcd_key_read(s, key, name);

	if ((kind == 'c' && !watch_is_own(s, event, name)) || (kind == 's' && is_news(key)))
		web_index_hint(s->web.watches, name);
}

static void watch_lost(void *l)
{
	struct etcd_lane *lane = l;

	lane->heard = 0;
	web_watch_break(&lane->web);
}

/* A watch that goes on where it was first says that it stands, and then what was missed. */
static void watch_note(struct etcd_lane *lane, struct proto message)
{
	uint64_t revision = proto_number(proto_get(message, ETCD_HEADER), ETCD_HEADER_REVISION);
	bool has_events = proto_count(message, ETCD_WATCH_EVENTS) > 0;
	struct proto rest = message;

	if (!has_events && (lane->heard == 0 || proto_number(message, ETCD_WATCH_CREATED) == 0))
		lane->heard = revision;
	for (struct proto event; proto_next(&rest, ETCD_WATCH_EVENTS, &event);) {
		revision = proto_number(proto_get(event, ETCD_EVENT_KV), ETCD_KV_MOD);
		lane->heard = revision > lane->heard ? revision : lane->heard;
	}
}

/* The watch is over, but perhaps not what it is listened on. 0: it is begun anew, or -1. */
static int watch_hear_end(struct etcd_lane *lane, struct baton_call *call, struct proto message)
{
	char why[HTTP_TEXT_MAX];

	(void)proto_text(message, ETCD_WATCH_REASON, why, sizeof(why));
	etcd_drop_token(lane);
	/* Rights have changed: with a new token it goes on, and nobody need know. Or what was
	 * missed isn't kept any more: then all are looked at. */
	if (lane->is_made && (strstr(why, "revision of auth store is old") != NULL ||
			      proto_number(message, ETCD_WATCH_COMPACTED) != 0)) {
		watch_lost(lane);
		return 0;
	}
	return store_fail(&call->error,
			  strstr(why, "permission") != NULL ? BATON_E_DENIED : BATON_E_UNAVAILABLE,
			  "etcd has ended the watch: %.150s", why);
}

/* 0, or -1: it is over. */
static int watch_hear(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct etcd_lane *lane = l;
	struct proto message = {reply->body, reply->body_size};
	struct proto rest = message;

	if (!proto_fits(message, etcd_watch.answer)) {
		(void)etcd_strange(call);
		return -1;
	}
	for (struct proto event; proto_next(&rest, ETCD_WATCH_EVENTS, &event);)
		watch_hear_event(lane->store, event);
	if (proto_number(message, ETCD_WATCH_CANCELED) == 0)
		watch_note(lane, message);
	if (proto_number(message, ETCD_WATCH_CANCELED) != 0)
		return watch_hear_end(lane, call, message);
	if (proto_number(message, ETCD_WATCH_CREATED) != 0) {
		web_index_set_live(lane->store->web.watches, true);
		lane->is_made = true;
	}
	return 0;
}

/* With a status: it has no leader, it stops, or it doesn't like our token. */
static void watch_ended(void *l, struct baton_call *call, const struct http_reply *reply)
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

int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct etcd_lane *lane = l;
	struct web_watch watch = {.service = "etcd",
				  .silence_ns = SILENCE_NS,
				  .answer_ns = ANSWER_NS,
				  .open = watch_open,
				  .hear = watch_hear,
				  .ended = watch_ended,
				  .lost = watch_lost};
	uint64_t lease_ns = web_longest_lease(&lane->store->web);

	if (lane->store->options.web.n_hosts == 1 && lease_ns != 0) {
		watch.silence_ns = ONE_SILENCE * lease_ns;
		watch.may_be_silent = true;
	}
	return web_watch_wait(&lane->web, &watch, call, cookies, max);
}
