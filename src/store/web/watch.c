/* watch.c: the watch lane of a service whose watch is one stream: see struct web_watch in web.h. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/web/web.h"

#define OPEN_NS (5 * CLOCK_NS_PER_S)
/* How long an opening goes on although the lane was woken. After each opening that was ended by a
 * wake, the next one goes on twice as long. */
#define PATIENCE_NS (CLOCK_NS_PER_S / 2)
#define HURRIED_MAX 3

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- waking ---- */

bool web_take_wake(const struct web_store *s)
{
	uint64_t count;

	return read(s->wake, &count, sizeof(count)) > 0;
}

void web_wake(const struct web_store *s)
{
	uint64_t one = 1;

	if (write(s->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the lane wakes anyhow */
}

void web_watch_wake(void *lane)
{
	web_wake(((const struct web_lane *)lane)->store);
}

/* ---- what is watched ---- */

int web_watch_add(void *lane, const char *name, uint64_t cookie)
{
	const struct web_lane *l = lane;

	return web_index_add(l->store->watches, name, cookie) ? BATON_OK : BATON_E_MEMORY;
}

void web_watch_remove(void *lane, const char *name, uint64_t cookie)
{
	const struct web_lane *l = lane;

	web_index_remove(l->store->watches, name, cookie);
}

/* A frozen server says nothing, and only the renewals of a lease notice that. */
bool web_is_watched(struct web_store *s, const char *name)
{
	store_lock(&s->base);
	bool has_lease = s->leases != NULL;

	store_unlock(&s->base);
	return has_lease && web_index_is_watched(s->watches, name);
}

/* ---- listening ---- */

void web_watch_break(struct web_lane *lane)
{
	http_stream_close(lane->http);
	web_index_set_live(lane->store->watches, false);
}

/* 0 or -1. The time for an opening is short: a silent member is not waited for as long as a change
 * is. Closing the store doesn't wait for an opening at all (L7). */
static int watch_open_stream(struct web_lane *lane, const struct web_watch *w,
			     struct baton_call *call)
{
	struct baton_call open = {.deadline_ns =
					  min_ns(call->deadline_ns, clock_boot_ns() + OPEN_NS)};

	lane->heard_ns = clock_boot_ns();
	lane->is_answered = false;
	http_heed_wake(lane->http, clock_boot_ns() + (PATIENCE_NS << lane->n_hurried));
	int rc = w->open(lane, &open);

	http_heed_wake(lane->http, 0);
	if (rc == 0) {
		lane->n_hurried = 0;
		return 0;
	}
	call->error = open.error;
	w->lost(lane);
	return -1;
}

/* 0; 1: woken; -1: the stream is broken. */
static int watch_listen(struct web_lane *lane, const struct web_watch *w, struct baton_call *call)
{
	struct http_reply reply;
	bool is_early = w->answer_ns != 0 && !lane->is_answered;
	uint64_t silence_ns = lane->heard_ns + (is_early ? w->answer_ns : w->silence_ns);
	int result = http_stream_next(lane->http, min_ns(call->deadline_ns, silence_ns), &reply);

	if (result == HTTP_WOKEN)
		return 1;
	if (result == HTTP_LATE && clock_boot_ns() < silence_ns)
		return 0;
	if (result == HTTP_LATE && !is_early && w->may_be_silent) {
		http_stream_close(lane->http);
		return 0;
	}
	if (result == HTTP_OK) {
		lane->heard_ns = clock_boot_ns();
		lane->is_answered = true;
		if (w->hear(lane, call, &reply) == 0)
			return 0;
	} else if (result == HTTP_END && w->ended != NULL) {
		w->ended(lane, call, &reply);
	} else {
		web_move_on(lane->store, lane->stream);
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the watch on %s is broken: %.150s", w->service, reply.text);
	}
	w->lost(lane);
	return -1;
}

/* What the caller is told of an opening that failed: 0 or a code. */
static int watch_end_opening(struct web_lane *lane, const struct baton_call *call)
{
	if (!web_take_wake(lane->store))
		return call->error.code;
	lane->n_hurried += lane->n_hurried < HURRIED_MAX;
	return 0;
}

/* Rests until the stream may be opened again, or something wakes us. False: it may be opened
 * now. */
static bool watch_is_resting(const struct web_lane *lane)
{
	struct pollfd wake = {.fd = lane->store->wake, .events = POLLIN};
	uint64_t now_ns = clock_boot_ns();

	if (now_ns >= lane->rest_ns)
		return false;
	(void)poll(&wake, 1, (int)((lane->rest_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
	return true;
}

int web_watch_wait(struct web_lane *lane, const struct web_watch *w, struct baton_call *call,
		   uint64_t *cookies, size_t max)
{
	struct web_store *s = lane->store;
	int rc = 0;

	for (;;) {
		size_t n = web_index_take(s->watches, cookies, max);

		if (n > 0 || clock_boot_ns() >= call->deadline_ns)
			return (int)n;
		if (http_stream_is_open(lane->http) && web_has_moved(lane))
			w->lost(lane);
		if (http_stream_is_open(lane->http))
			rc = watch_listen(lane, w, call);
		else if (watch_is_resting(lane))
			rc = 1;
		else if (watch_open_stream(lane, w, call) != 0)
			return watch_end_opening(lane, call);
		else
			rc = 0;
		if (rc < 0)
			return call->error.code;
		if (rc > 0 && web_take_wake(s))
			return (int)web_index_take(s->watches, cookies, max);
	}
}
