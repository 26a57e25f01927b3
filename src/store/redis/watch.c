/*
 * watch.c: the watch lane: a connection that only listens. Subscribe, then look: a name gets a hint
 * when the server has confirmed the subscription, and again when it was renewed after the
 * connection was lost. Now and then the server is asked whether it is still there.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"

#define LINK_NS (5 * CLOCK_NS_PER_S)
#define AT_EASE_NS (100 * CLOCK_NS_PER_MS)
#define ASK_NS (10 * CLOCK_NS_PER_S)
#define ANSWER_NS (3 * CLOCK_NS_PER_S)
#define UNSUBSCRIBE_NS (200 * CLOCK_NS_PER_MS)
#define SUBSCRIBE_MAX 200

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void watch_break(struct redis_lane *lane)
{
	redis_disconnect(lane);
	redis_index_broken(lane->store->index);
}

/*
 * Wakes may come often, perhaps one for each of many names. If each of them broke the attempt off,
 * the server would get one useless connection after the other. So wakes don't count at first. Only
 * an attempt that takes long can be broken off.
 */
static int watch_connect_at_ease(struct redis_lane *lane, struct baton_call *attempt)
{
	uint64_t deadline_ns = attempt->deadline_ns;
	int wake = lane->wire.net.wake;

	attempt->deadline_ns = min_ns(deadline_ns, clock_boot_ns() + AT_EASE_NS);
	lane->wire.net.wake = -1;
	int rc = redis_connect(lane, attempt);

	lane->wire.net.wake = wake;
	if (rc == 0 || clock_boot_ns() < attempt->deadline_ns)
		return rc;
	attempt->deadline_ns = deadline_ns;
	return redis_connect(lane, attempt);
}

static int watch_connect(struct redis_lane *lane, struct baton_call *call)
{
	struct baton_call attempt = {.deadline_ns =
					     min_ns(call->deadline_ns, clock_boot_ns() + LINK_NS)};
	int rc = watch_connect_at_ease(lane, &attempt);

	if (rc != 0) {
		call->error = attempt.error;
		return -1;
	}
	lane->wire.error = &call->error;
	lane->is_subscribed = true;
	lane->heard_ns = clock_boot_ns();
	lane->asked_ns = 0;
	return 0;
}

static void watch_put_channel(struct redis_lane *lane, const char *name)
{
	char channel[sizeof(lane->store->options.prefix) + BATON_NAME_MAX + 8];

	(void)snprintf(channel, sizeof(channel), "%shint:%.*s", lane->store->options.prefix,
		       BATON_NAME_MAX, name);
	resp_text(&lane->wire.out, channel);
}

/* Subscribes to some of the names that are wanted. */
static int watch_subscribe(struct redis_lane *lane)
{
	char names[SUBSCRIBE_MAX][BATON_NAME_MAX + 1];
	size_t n = 0;

	while (n < SUBSCRIBE_MAX && redis_index_next(lane->store->index, names[n]))
		n++;
	if (n == 0)
		return 0;
	resp_out_clear(&lane->wire.out);
	resp_begin(&lane->wire.out, 1 + n);
	resp_text(&lane->wire.out, "SUBSCRIBE");
	for (size_t i = 0; i < n; i++)
		watch_put_channel(lane, names[i]);
	return redis_wire_send(&lane->wire);
}

static int watch_probe(struct redis_lane *lane, uint64_t now_ns)
{
	if (lane->asked_ns == 0 && now_ns - lane->heard_ns >= ASK_NS) {
		lane->asked_ns = now_ns;
		resp_out_clear(&lane->wire.out);
		resp_begin(&lane->wire.out, 1);
		resp_text(&lane->wire.out, "PING");
		return redis_wire_send(&lane->wire);
	}
	if (lane->asked_ns != 0 && now_ns - lane->asked_ns >= ANSWER_NS)
		return store_fail(lane->wire.error, BATON_E_UNAVAILABLE,
				  "Redis does not answer on the connection for hints");
	return 0;
}

/* Whether the message is "held TERM LEASE" about our own claim: the winner needs no hint of
 * that. */
static bool is_our_own(const struct redis_lane *lane, const char *name, const char *text)
{
	char *end;

	if (strncmp(text, "held ", 5) != 0)
		return false;
	uint64_t term = strtoull(text + 5, &end, 10);

	return *end == ' ' && redis_own_knows(lane->store->own, end + 1, name, term,
					      store_is_asked(&lane->store->base, name));
}

static int watch_hear(struct redis_lane *lane, const struct resp *r)
{
	const struct redis_store *store = lane->store;
	size_t n = strlen(store->options.prefix) + strlen("hint:");
	const char *channel = resp_get(r, 1);
	const char *name = strlen(channel) > n ? channel + n : "";

	lane->heard_ns = clock_boot_ns();
	lane->asked_ns = 0;
	if (r->type == RESP_ERROR) {
		bool is_sure;

		return store_fail(lane->wire.error, redis_judge(r->text, &is_sure),
				  "Redis does not let us watch: %.150s", r->text);
	}
	if (resp_is(r, 0, "subscribe"))
		redis_index_subscribed(store->index, name);
	else if (resp_is(r, 0, "message") && !is_our_own(lane, name, resp_get(r, 2)))
		redis_index_hint(store->index, name);
	return 0;
}

/* Listens until a message comes, or it is time for something else. NET_WOKEN: woken. */
static int watch_listen(struct redis_lane *lane, uint64_t until_ns)
{
	const struct resp *reply;
	uint64_t now_ns = clock_boot_ns();
	uint64_t ask_ns =
		lane->asked_ns != 0 ? lane->asked_ns + ANSWER_NS : lane->heard_ns + ASK_NS;

	lane->wire.net.deadline_ns = min_ns(now_ns + CLOCK_NS_PER_S, until_ns);
	if (watch_subscribe(lane) != 0 || watch_probe(lane, now_ns) != 0)
		return -1;
	lane->wire.net.deadline_ns = min_ns(until_ns, ask_ns);
	int rc = redis_wire_listen(&lane->wire, &reply);

	if (rc == 0)
		rc = watch_hear(lane, reply);
	return rc;
}

static bool watch_take_wake(struct redis_lane *lane)
{
	uint64_t count;

	return read(lane->wire.net.wake, &count, sizeof(count)) > 0;
}

int redis_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct redis_lane *lane = l;

	for (;;) {
		uint64_t next_ns;
		size_t n = redis_index_take(lane->store->index, cookies, max, &next_ns);

		if (n > 0 || clock_boot_ns() >= call->deadline_ns)
			return (int)n;
		if (lane->is_subscribed && redis_is_apart(lane))
			watch_break(lane);
		if (!lane->is_subscribed && watch_connect(lane, call) != 0) {
			watch_break(lane);
			return watch_take_wake(lane) ? 0 : call->error.code;
		}
		lane->wire.error = &call->error;
		int rc = watch_listen(lane, min_ns(call->deadline_ns, next_ns));

		if (rc < 0) {
			watch_break(lane);
			return call->error.code;
		}
		if (rc == NET_WOKEN && watch_take_wake(lane)) {
			n = redis_index_take(lane->store->index, cookies, max, &next_ns);
			return (int)n;
		}
	}
}

void redis_watch_wake(void *l)
{
	const struct redis_lane *lane = l;
	uint64_t one = 1;

	if (write(lane->store->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the lane wakes anyhow */
}

int redis_watch_add(void *l, const char *name, uint64_t cookie)
{
	struct redis_lane *lane = l;

	return redis_index_add(lane->store->index, name, cookie);
}

void redis_watch_remove(void *l, const char *name, uint64_t cookie)
{
	struct redis_lane *lane = l;

	if (!redis_index_remove(lane->store->index, name, cookie) || !lane->is_subscribed)
		return;
	struct baton_error error;

	lane->wire.error = &error;
	lane->wire.net.deadline_ns = clock_boot_ns() + UNSUBSCRIBE_NS;
	resp_out_clear(&lane->wire.out);
	resp_begin(&lane->wire.out, 2);
	resp_text(&lane->wire.out, "UNSUBSCRIBE");
	watch_put_channel(lane, name);
	if (redis_wire_send(&lane->wire) != 0)
		watch_break(lane);
}
