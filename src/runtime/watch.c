/*
 * watch.c: the watch lane. Turns the driver's hints into messages. A watch that breaks is tried
 * again after a while, and everything is looked at when it works again: hints may come late or
 * too often, but none is missed for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "runtime/runtime.h"

#define HINTS_MAX 256
#define WAIT_NS (30 * CLOCK_NS_PER_S)
#define RETRY_NS CLOCK_NS_PER_S
/* Full jitter may be next to nothing. */
#define BACKOFF_MIN_NS (100 * CLOCK_NS_PER_MS)

static struct baton_election *election_of(struct message *w)
{
	size_t at = w->kind == MSG_WATCH ? offsetof(struct baton_election, watch[0])
					 : offsetof(struct baton_election, watch[1]);

	return (struct baton_election *)(void *)((char *)w - at);
}

static void watch_list_add(struct lane *lane, struct message *w)
{
	const struct baton_driver *d = lane->handle->driver;
	struct baton_election *e = election_of(w);

	if (d->watch_add(lane->driver_lane, e->name, (uint64_t)(uintptr_t)e) == BATON_OK)
		return;
	w->next = lane->unadded;
	lane->unadded = w;
}

/* What the driver couldn't add (no memory) is added again with every round. */
static void add_again(struct lane *lane)
{
	struct message *list = lane->unadded;

	lane->unadded = NULL;
	while (list != NULL) {
		struct message *w = list;

		list = w->next;
		watch_list_add(lane, w);
	}
}

static void take_back(struct lane *lane, const struct message *added)
{
	struct message **p = &lane->unadded;

	while (*p != NULL && *p != added)
		p = &(*p)->next;
	if (*p != NULL)
		*p = added->next;
}

/* Carries out the changes; returns how many are watched then. */
static size_t watch_list_change(struct lane *lane, struct message *list, size_t n)
{
	const struct baton_driver *d = lane->handle->driver;

	while (list != NULL) {
		struct message *w = list;

		list = w->next;
		if (w->kind == MSG_WATCH) {
			watch_list_add(lane, w);
			n++;
		} else {
			struct baton_election *e = election_of(w);

			take_back(lane, &e->watch[0]);
			d->watch_remove(lane->driver_lane, e->name, (uint64_t)(uintptr_t)e);
			loop_post_message(lane->handle, w);
			n--;
		}
	}
	return n;
}

/*
 * Nothing to watch, or the watch is broken: waits until there are changes, or a while has passed.
 */
static void rest(struct lane *lane, uint64_t ns)
{
	(void)pthread_mutex_lock(&lane->lock);
	while (!lane->quit && lane->changes == NULL)
		if (lane_wait(lane, ns) == ETIMEDOUT)
			break;
	(void)pthread_mutex_unlock(&lane->lock);
}

static void post_hints(struct lane *lane, const uint64_t *cookies, int n)
{
	struct message *first = NULL;
	struct message *last = NULL;
	struct message **at = &first;
	int done = 0;

	for (; done < n; done++) {
		struct post *p = calloc(1, sizeof(*p));

		if (p == NULL)
			break;
		p->m.kind = MSG_HINT;
		p->cookie = cookies[done];
		last = *at = &p->m;
		at = &p->m.next;
	}
	if (last != NULL)
		loop_post_list(lane->handle, first, last);
	/* No memory: then everything is looked at, so that no hint gets lost. */
	if (done < n && !atomic_exchange(&lane->spare_busy, true))
		loop_post_message(lane->handle, &lane->spare.m);
}

/* An application that relies on hints must know that none will come for a while. */
static void watch_tell_failure(struct lane *lane, const struct baton_error *err)
{
	struct app *app = &lane->handle->app;

	/* Before the event, so that its handler finds the store failing, too. But a limit of this
	 * machine says nothing about the store. */
	if (err->code != BATON_E_SYSTEM)
		events_store(lane->handle, err);
	(void)pthread_mutex_lock(&app->lock);
	app->watch_error = *err;
	(void)pthread_mutex_unlock(&app->lock);
	if (err->code == 0 || atomic_exchange(&lane->failed_busy, true))
		return;
	lane->failed.kind = MSG_WATCH_FAILED;
	loop_post_message(lane->handle, &lane->failed);
}

/* L4: a store that is down is not asked more often by a watch than by a campaign. */
static void back_off(struct lane *lane, unsigned attempt)
{
	uint64_t random = clock_boot_ns() * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	rest(lane,
	     max_ns(timing_backoff_ns(&lane->handle->timing, attempt, random), BACKOFF_MIN_NS));
}

void *watch_main(void *arg)
{
	struct lane *lane = arg;
	uint64_t cookies[HINTS_MAX];
	size_t n_watched = 0;
	unsigned n_failed = 0;
	bool quit = false;

	while (!quit) {
		add_again(lane);
		(void)pthread_mutex_lock(&lane->lock);
		struct message *list = lane->changes;

		lane->changes = NULL;
		lane->changes_last = &lane->changes;
		quit = lane->quit;
		(void)pthread_mutex_unlock(&lane->lock);
		n_watched = watch_list_change(lane, list, n_watched);
		if (quit)
			break;
		/* A process that only asks or orders needs no watch, and the store is spared
		 * one. */
		if (n_watched == 0) {
			rest(lane, WAIT_NS);
			continue;
		}
		struct baton_call call = {.deadline_ns =
						  clock_boot_ns() +
						  (lane->unadded != NULL ? RETRY_NS : WAIT_NS)};

		atomic_store(&lane->call_until_ns, call.deadline_ns);
		int n = lane->handle->driver->watch_wait(lane->driver_lane, &call, cookies,
							 HINTS_MAX);

		atomic_store(&lane->call_until_ns, 0);
		if (n < 0) {
			watch_tell_failure(lane, &call.error);
			back_off(lane, n_failed++);
		} else {
			n_failed = 0;
			post_hints(lane, cookies, n);
		}
	}
	return NULL;
}
