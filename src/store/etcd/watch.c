/*
 * watch.c: the watch lane: one watch on the prefix, which covers all elections. Watch, then look:
 * all names get a hint when the watch stands, and again whenever it stands anew. Expiry needs no
 * timer: a lease that ends deletes its keys, and etcd pushes that.
 *
 * A frozen member is silent. But then renewals fail there, too, the lanes move on to another
 * member, and the watch moves with them. If the URL names only one host, that may stand for several
 * members (a name with many addresses, a load balancer). Then renewals can succeed while the watch
 * is deaf. So after some silence the watch is asked for anew, from the revision up to which it has
 * heard all. The changes that it has missed come then, and no other lane need look.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* etcd tells an idle watch every ten minutes that it is alive. */
#define SILENCE_NS (25 * 60 * CLOCK_NS_PER_S)
/* If there is only one host: the allowed silence, in leases. */
#define ONE_SILENCE 4
/* etcd says at once that a watch stands. */
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

/* Whether the event is our own claim, which we know already or are about to be told of. */
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

/* Whether a state key is news: those that are written or deleted with a claim are not. */
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

/* Notes the revision up to which all was heard. A watch that goes on where it was first says that
 * it stands, and then tells what was missed. */
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

/* etcd has ended the watch, but perhaps not the stream. 0: the watch begins anew; else -1. */
static int watch_hear_end(struct etcd_lane *lane, struct baton_call *call, struct proto message)
{
	char why[HTTP_TEXT_MAX];

	(void)proto_text(message, ETCD_WATCH_REASON, why, sizeof(why));
	etcd_drop_token(lane);
	/* Not a failure: rights have changed, so a new token is needed, or etcd no longer
	 * keeps what was missed. The watch begins anew, and all names get a hint. */
	if (lane->is_made && (strstr(why, "revision of auth store is old") != NULL ||
			      proto_number(message, ETCD_WATCH_COMPACTED) != 0)) {
		watch_lost(lane);
		return 0;
	}
	return store_fail(&call->error,
			  strstr(why, "permission") != NULL ? BATON_E_DENIED : BATON_E_UNAVAILABLE,
			  "etcd has ended the watch: %.150s", why);
}

/* 0, or -1: the watch is over. */
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

/* The stream has ended with a status: the member has no leader, stops, or refuses our token. */
static void watch_ended(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct etcd_lane *lane = l;
	char text[HTTP_TEXT_MAX];
	bool is_sure;
	int status = grpc_status_of(reply, text);

	etcd_drop_token(lane); /* perhaps the token is the reason */
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
