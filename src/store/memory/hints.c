/*
 * hints.c: see memory.h. The watches on elections, and hints. A hint is queued on each lane that
 * watches the name, once however many hints there are. It is never lost: it stays in the queue
 * until it is taken. The verbs that release, claim, order, pause and close give hints for what they
 * do. For a lease that just expires no verb does that. So lanes that wait wake up at its expiry,
 * sweep, and give themselves the hint. That is why a record can promise that its end causes a hint.
 */
#include "store/memory/memory.h"

#include <stdlib.h>

#include "base/clock.h"

static struct memory_watch *watch_find(const struct memory_lane *lane,
				       const struct memory_election *e, uint64_t cookie);
static void watch_free(struct memory_watch *w);
static void queue(struct memory_watch *w);
static uint64_t next_look_ns(const struct memory *m, uint64_t deadline_ns);

void memory_hint(struct memory_election *e)
{
	struct memory_watch *w;

	for (w = LIST_FIRST(&e->watches); w != NULL; w = LIST_NEXT(w, of_election))
		queue(w);
}

void memory_hint_sooner(struct memory *m)
{
	struct memory_lane *lane;

	for (lane = LIST_FIRST(&m->lanes); lane != NULL; lane = LIST_NEXT(lane, all))
		pthread_cond_signal(&lane->wake);
}

int memory_watches_take(struct memory_lane *lane, const struct baton_call *call, uint64_t *cookies,
			size_t max)
{
	struct memory *m = lane->handle->memory;
	struct memory_watch *w;
	size_t n = 0;

	while (TAILQ_EMPTY(&lane->pending) && !lane->broken && !lane->woken &&
	       clock_boot_ns() < call->deadline_ns) {
		memory_wait(m, &lane->wake, next_look_ns(m, call->deadline_ns));
		memory_sweep(m);
	}
	lane->woken = false;
	if (lane->broken && max > 0) {
		lane->broken = false;
		cookies[n++] = BATON_HINT_ALL;
		max = SIZE_MAX; /* BATON_HINT_ALL stands for all others */
	}
	while (n < max && !TAILQ_EMPTY(&lane->pending)) {
		w = TAILQ_FIRST(&lane->pending);
		TAILQ_REMOVE(&lane->pending, w, pending_next);
		w->pending = false;
		if (max != SIZE_MAX)
			cookies[n++] = w->cookie;
	}
	return (int)n;
}

int memory_watches_add(struct memory_lane *lane, const char *name, uint64_t cookie)
{
	struct memory *m = lane->handle->memory;
	struct memory_election *e = memory_election_get(m, name);
	struct memory_watch *w = e != NULL ? watch_find(lane, e, cookie) : NULL;

	if (e != NULL && w == NULL) {
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			memory_election_tidy(m, e);
	}
	if (w == NULL)
		return BATON_E_MEMORY;
	if (w->lane == NULL) {
		w->lane = lane;
		w->election = e;
		w->cookie = cookie;
		LIST_INSERT_HEAD(&lane->watches, w, of_lane);
		LIST_INSERT_HEAD(&e->watches, w, of_election);
	}
	queue(w);
	return 0;
}

void memory_watches_remove(struct memory_lane *lane, const char *name, uint64_t cookie)
{
	struct memory *m = lane->handle->memory;
	struct memory_election *e = memory_election_find(m, name);
	struct memory_watch *w = e != NULL ? watch_find(lane, e, cookie) : NULL;

	if (w == NULL)
		return;
	watch_free(w);
	memory_election_tidy(m, e);
}

void memory_watches_clear(struct memory_lane *lane)
{
	struct memory_watch *w, *next;

	for (w = LIST_FIRST(&lane->watches); w != NULL; w = next) {
		struct memory_election *e = w->election;

		next = LIST_NEXT(w, of_lane);
		watch_free(w);
		memory_election_tidy(lane->handle->memory, e);
	}
}

static struct memory_watch *watch_find(const struct memory_lane *lane,
				       const struct memory_election *e, uint64_t cookie)
{
	struct memory_watch *w;

	for (w = LIST_FIRST(&e->watches); w != NULL; w = LIST_NEXT(w, of_election))
		if (w->lane == lane && w->cookie == cookie)
			break;
	return w;
}

static void watch_free(struct memory_watch *w)
{
	if (w->pending)
		TAILQ_REMOVE(&w->lane->pending, w, pending_next);
	LIST_REMOVE(w, of_lane);
	LIST_REMOVE(w, of_election);
	free(w);
}

static void queue(struct memory_watch *w)
{
	if (w->pending)
		return;
	w->pending = true;
	TAILQ_INSERT_TAIL(&w->lane->pending, w, pending_next);
	pthread_cond_signal(&w->lane->wake);
}

/* When to wake up, on the boot clock: at the deadline, or at the end of a lease if the store's
 * clock runs. */
static uint64_t next_look_ns(const struct memory *m, uint64_t deadline_ns)
{
	uint64_t left_ns;
	uint64_t now_ns = memory_now_ns(m);

	if (m->is_held || m->earliest_ns == BATON_STORE_NEVER)
		return deadline_ns;
	left_ns = m->earliest_ns > now_ns ? m->earliest_ns - now_ns : 0;
	now_ns = clock_boot_ns();
	if (now_ns >= deadline_ns || left_ns >= deadline_ns - now_ns)
		return deadline_ns;
	return now_ns + left_ns;
}
