/*
 * loop.c: the thread that owns all cores of a handle. It takes messages, runs timers, and never
 * blocks on anything else: no call of a driver, no handler, no log.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "runtime/messages.h"
#include "runtime/runtime.h"

enum { TIMER_ELECTION = 1, TIMER_EXECUTOR = 2 };

/* The struct of the given type that has the member at this address. */
#define PART_OF(type, member, at) ((type *)(void *)((char *)(at)-offsetof(type, member)))

static void *loop_main(void *arg);
static int loop_post_one(struct baton *b, uint8_t message, struct baton_election *e,
			 const struct event *ev, bool *done);
static bool loop_handle_message(struct baton *b, struct message *m);
static void tell_watch_failed(struct baton *b);
static void run_timers(struct baton *b);
static void let_leave(struct baton *b);
static void wait_for_more(struct baton *b);

int loop_start(struct baton *b, struct baton_error *err)
{
	if (b->loop_running)
		return 0;
	if (b->mail.event_fd < 0)
		b->mail.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->timer_fd < 0)
		b->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (getrandom(&b->random, sizeof(b->random), 0) != (ssize_t)sizeof(b->random))
		b->random = clock_boot_ns();
	if (b->mail.event_fd < 0 || b->timer_fd < 0 || !thread_start(&b->loop_thread, loop_main, b))
		return text_fail_limits(err);
	b->loop_running = true;
	return 0;
}

void loop_stop(struct baton *b)
{
	static const uint64_t one = 1;
	struct message quit = {.kind = MSG_QUIT};

	if (b->loop_running) {
		loop_post_message(b, &quit);
		(void)!write(b->mail.event_fd, &one, sizeof(one));
		(void)pthread_join(b->loop_thread, NULL);
	}
	b->loop_running = false;
	if (b->mail.event_fd >= 0)
		(void)close(b->mail.event_fd);
	if (b->timer_fd >= 0)
		(void)close(b->timer_fd);
	free(b->table);
	heap_done(&b->heap);
}

/* ---- posting, from any thread ---- */

void loop_post_message(struct baton *b, struct message *m)
{
	loop_post_list(b, m, m);
}

void loop_post_list(struct baton *b, struct message *first, struct message *last)
{
	static const uint64_t one = 1;

	last->next = NULL;
	(void)pthread_mutex_lock(&b->mail.lock);
	bool was_empty = b->mail.first == NULL;

	*b->mail.last = first;
	b->mail.last = &last->next;
	(void)pthread_mutex_unlock(&b->mail.lock);
	if (was_empty) /* else the loop is awake already, and will see these, too */
		(void)!write(b->mail.event_fd, &one, sizeof(one));
}

int loop_tell(struct baton_election *e, const struct event *ev)
{
	struct app *app = &e->handle->app;
	bool done = false;
	int code = loop_post_one(e->handle, MSG_EVENT, e, ev, &done);

	(void)pthread_mutex_lock(&app->lock);
	while (code == 0 && !done)
		(void)pthread_cond_wait(&app->changed, &app->lock);
	(void)pthread_mutex_unlock(&app->lock);
	return code;
}

int loop_post(struct baton *b, uint8_t message, struct baton_election *e, const struct event *ev)
{
	return loop_post_one(b, message, e, ev, NULL);
}

static int loop_post_one(struct baton *b, uint8_t message, struct baton_election *e,
			 const struct event *ev, bool *done)
{
	struct post *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return BATON_E_MEMORY;
	p->m.kind = message;
	p->done = done;
	p->election = e != NULL ? election_ref(e) : NULL;
	if (ev != NULL)
		p->event = *ev;
	loop_post_message(b, &p->m);
	return 0;
}

void loop_poke(struct baton_election *e, uint32_t poke)
{
	uint32_t was = atomic_fetch_or(&e->pokes, poke | POKE_QUEUED);

	if ((was & POKE_QUEUED) == 0)
		loop_post_message(e->handle, &election_ref(e)->poke);
}

/* ---- the loop ---- */

static struct message *take_mail(struct baton *b)
{
	(void)pthread_mutex_lock(&b->mail.lock);
	struct message *m = b->mail.first;

	b->mail.first = NULL;
	b->mail.last = &b->mail.first;
	(void)pthread_mutex_unlock(&b->mail.lock);
	return m;
}

/* For the threads that watch over the loop: one more step begins. */
static void note_step(struct baton *b)
{
	atomic_store_explicit(&b->step_ns, clock_boot_ns(), memory_order_relaxed);
}

static void *loop_main(void *arg)
{
	struct baton *b = arg;
	bool quit = false;

	while (!quit) {
		struct message *m = take_mail(b);

		while (m != NULL) {
			struct message *next = m->next;

			note_step(b);
			quit = loop_handle_message(b, m) || quit;
			let_leave(b);
			m = next;
		}
		run_timers(b);
		if (!quit)
			wait_for_more(b);
	}
	atomic_store(&b->wake_ns, 0);
	atomic_store(&b->step_ns, 0);
	return NULL;
}

static void wait_for_more(struct baton *b)
{
	struct heap_item *first = heap_first(&b->heap);
	struct itimerspec at = {0};
	struct pollfd fds[2] = {{.fd = b->mail.event_fd, .events = POLLIN},
				{.fd = b->timer_fd, .events = POLLIN}};
	uint64_t count;

	if (first != NULL) { /* a time in the past fires at once; all zero would disarm */
		uint64_t when_ns = max_ns(first->when_ns, 1);

		at.it_value.tv_sec = (time_t)(when_ns / CLOCK_NS_PER_S);
		at.it_value.tv_nsec = (long)(when_ns % CLOCK_NS_PER_S);
	}
	(void)timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	atomic_store(&b->wake_ns, first != NULL ? max_ns(first->when_ns, clock_boot_ns()) : 0);
	atomic_store(&b->step_ns, 0);
	bool has_mail = poll(fds, 2, -1) > 0 && (fds[0].revents & POLLIN) != 0;

	note_step(b);
	if (has_mail)
		(void)!read(b->mail.event_fd, &count, sizeof(count));
}

static void run_timers(struct baton *b)
{
	uint64_t now_ns = clock_boot_ns();
	struct heap_item *item;

	while ((item = heap_first(&b->heap)) != NULL && item->when_ns <= now_ns) {
		struct event ev = {.kind = EV_TIMER};

		note_step(b);
		count_into(&b->counters.loop_delay, (now_ns - item->when_ns) / 1000);
		if (item->kind == TIMER_EXECUTOR) {
			executor_step(PART_OF(struct executor, timer, item), &ev);
		} else {
			executor_step_election(PART_OF(struct baton_election, timer, item), &ev);
		}
		let_leave(b);
	}
}

/* ---- elections come and go ---- */

static uint32_t hash_name(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s != '\0')
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

static bool grow_table(struct baton *b)
{
	uint32_t room = b->table_room != 0 ? b->table_room * 2 : 64;
	struct baton_election **table = calloc(room, sizeof(*table));

	if (table == NULL)
		return b->table_room != 0; /* the old one does, slower */
	for (uint32_t i = 0; i < b->table_room; i++) {
		for (struct baton_election *e = b->table[i], *next; e != NULL; e = next) {
			uint32_t h = hash_name(e->name) & (room - 1);

			next = e->hash_next;
			e->hash_next = table[h];
			table[h] = e;
		}
	}
	free(b->table);
	b->table = table;
	b->table_room = room;
	return true;
}

static int loop_attach(struct baton *b, struct baton_election *e)
{
	if ((b->n_attached >= b->table_room && !grow_table(b)) ||
	    !heap_reserve(&b->heap, b->n_attached + b->n_executors + 4))
		return BATON_E_MEMORY;
	struct executor *own = b->traits->own_leases ? executor_new(b) : NULL;

	if (b->traits->own_leases && own == NULL)
		return BATON_E_MEMORY;
	e->executor = executor_ref(own != NULL ? own : b->shared);
	uint32_t h = hash_name(e->name) & (b->table_room - 1);

	e->hash_next = b->table[h];
	b->table[h] = e;
	e->executor_next = e->executor->elections;
	e->executor->elections = e;
	e->job.executor = e->executor;
	e->timer.kind = TIMER_ELECTION;
	e->executor->timer.kind = TIMER_EXECUTOR;
	b->n_attached++;
	(void)election_ref(e);
	atomic_fetch_add(&b->counters.elections, 1);
	return 0;
}

static bool can_go(const struct executor *c)
{
	return c->core.state == LEASE_CLOSED && !c->job.busy && !c->claims_job.busy;
}

/* An own lease that was left to end by itself must still be closed after its election has left. */
static void leave_executor(struct baton *b, struct executor *c)
{
	if (can_go(c)) {
		executor_let_go(c);
		return;
	}
	c->left_next = b->left;
	b->left = c;
}

static void unlink_election(struct baton *b, struct baton_election *e)
{
	struct baton_election **p = &b->table[hash_name(e->name) & (b->table_room - 1)];

	while (*p != e)
		p = &(*p)->hash_next;
	*p = e->hash_next;
	for (p = &e->executor->elections; *p != e; p = &(*p)->executor_next)
		;
	*p = e->executor_next;
	e->executor->n_publish_due -= e->publish_due;
	heap_set(&b->heap, &e->timer, NEVER);
	b->n_attached--;
	if (b->traits->own_leases)
		leave_executor(b, e->executor);
	(void)pthread_mutex_lock(&b->app.lock);
	for (p = &b->app.all; *p != e; p = &(*p)->all_next)
		;
	*p = e->all_next;
	e->left = true;
	(void)pthread_cond_broadcast(&b->app.changed);
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* Nothing in the loop or in the lanes refers to it, nor to a lease of its own. */
static bool can_leave(const struct baton_election *e)
{
	const struct executor *c = e->executor;

	return e->detached && e->core.state == ELECTION_STOPPED && !e->job.busy &&
	       e->publish_job == NULL && e->unwatched == e->watched &&
	       (!c->core.own || can_go(c) ||
		(lease_is_left(&c->core) && !c->job.busy && !c->claims_job.busy));
}

void loop_try_leave(struct baton_election *e)
{
	if (!e->detached || e->core.state != ELECTION_STOPPED || e->job.busy ||
	    e->publish_job != NULL)
		return;
	if (e->watched && !e->unwatching) /* the last thing that can name it is a hint */
		lane_watch(&e->handle->lanes[BATON_LANE_WATCH], e, false);
	e->unwatching = true;
	if (e->leaving || !can_leave(e))
		return;
	e->leaving = true;
	e->leaving_next = e->handle->leaving;
	e->handle->leaving = e;
}

/* After each step, not in it: the functions of a step go on using the election and its lease. */
static void let_leave(struct baton *b)
{
	while (b->leaving != NULL) {
		struct baton_election *e = b->leaving;

		b->leaving = e->leaving_next;
		e->leaving = false;
		if (!can_leave(e)) /* it has begun something; the end of that tries again */
			continue;
		unlink_election(b, e);
		atomic_fetch_sub(&b->counters.elections, 1);
		election_unref(e);
	}
	for (struct executor **at = &b->left; *at != NULL;) {
		struct executor *c = *at;

		if (can_go(c)) {
			*at = c->left_next;
			executor_let_go(c);
		} else {
			at = &c->left_next;
		}
	}
}

struct baton_election *election_ref(struct baton_election *e)
{
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
	return e;
}

void election_unref(struct baton_election *e)
{
	if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(e->events.error);
	free(e->failure);
	free(e->publish_job); /* a job that its lane didn't get to before it ended */
	free(atomic_load(&e->numbers));
	free(e->metadata);
	free(e->leader_metadata);
	free(e->wait);
	executor_unref(e->executor);
	free(e);
}

struct baton_election *loop_find(struct baton *b, const char *name)
{
	struct baton_election *e =
		b->table_room != 0 ? b->table[hash_name(name) & (b->table_room - 1)] : NULL;

	while (e != NULL && strcmp(e->name, name) != 0)
		e = e->hash_next;
	return e;
}

/* ---- messages ---- */

static void handle_attach(struct baton *b, struct baton_election *e)
{
	/* Rule 8: a second election of one name on one handle is refused. */
	int code = loop_find(b, e->name) != NULL ? BATON_E_EXISTS : loop_attach(b, e);

	(void)pthread_mutex_lock(&b->app.lock);
	e->attach_code = code;
	if (code == 0) {
		e->all_next = b->app.all;
		b->app.all = e;
	}
	(void)pthread_cond_broadcast(&b->app.changed);
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* The core has heard of a start or a stop that was asked for. */
static void note_asked(struct baton_election *e, uint8_t kind)
{
	struct app *app = &e->handle->app;

	if (kind != EV_START && kind != EV_STOP)
		return;
	(void)pthread_mutex_lock(&app->lock);
	(void)events_tell(e,
			  &(struct audience_event){.kind = kind == EV_START ? AUDIENCE_START_HEARD
									    : AUDIENCE_STOP_HEARD,
						   .stopping = e->core.stopping});
	(void)pthread_mutex_unlock(&app->lock);
}

static void handle_event(struct baton_election *e, struct event *ev)
{
	if (ev->kind == EV_START && !e->watched) {
		e->watched = true;
		lane_watch(&e->handle->lanes[BATON_LANE_WATCH], e, true);
	}
	executor_step_election(e, ev);
	note_asked(e, ev->kind);
	if (e->handle->watch_untold)
		tell_watch_failed(e->handle);
	/* An own lease lives only while its election leads; a standby is shown all the same. */
	if ((ev->kind == EV_START || ev->kind == EV_HEALTH) &&
	    (e->executor->core.deadline_ns != 0 || e->executor->core.state == LEASE_READY))
		executor_publish(e);
}

static void handle_poke(struct baton_election *e)
{
	uint32_t pokes = atomic_exchange(&e->pokes, 0);
	struct event ev = {0};

	if (e->left) /* let go of twice: when it was freed, and when the handle was closed */
		pokes = 0;
	if ((pokes & POKE_ALIVE) != 0) {
		ev.kind = EV_ALIVE;
		executor_step_election(e, &ev);
	}
	if ((pokes & POKE_DRAINED) != 0) {
		e->auto_drain_ns = NEVER;
		ev.kind = EV_DRAINED;
		executor_step_election(e, &ev);
	}
	if ((pokes & POKE_DETACH) != 0) {
		e->detached = true;
		ev.kind = EV_STOP;
		executor_step_election(e, &ev);
		events_let_go(e);
	}
	election_unref(e);
}

static void handle_hint(struct baton *b, uint64_t cookie)
{
	struct event ev = {.kind = EV_HINT};

	atomic_fetch_add(&b->counters.hints, 1);
	if (cookie != BATON_HINT_ALL) {
		executor_hint((struct baton_election *)(uintptr_t)cookie);
		return;
	}
	for (uint32_t i = 0; i < b->table_room; i++) {
		for (struct baton_election *e = b->table[i]; e != NULL; e = e->hash_next) {
			if (e->executor->core.own)
				executor_step(e->executor, &(struct event){.kind = EV_HINT});
			executor_hint(e);
		}
	}
	if (b->shared != NULL)
		executor_step(b->shared, &ev);
}

/*
 * A driver may say once that its watch is broken, and then live with it. So an election that starts
 * later is told, too.
 */
static void tell_watch_failed(struct baton *b)
{
	(void)pthread_mutex_lock(&b->app.lock);
	struct baton_error said = b->app.watch_error;

	(void)pthread_mutex_unlock(&b->app.lock);
	b->watch_untold = true;
	for (uint32_t i = 0; i < b->table_room; i++) {
		for (struct baton_election *e = b->table[i]; e != NULL; e = e->hash_next) {
			if (!e->core.wanted)
				continue;
			events_watch(e, &said);
			b->watch_untold = false;
		}
	}
}

static void handle_unwatched(struct message *m)
{
	struct baton_election *e = PART_OF(struct baton_election, watch[1], m);

	e->unwatched = true;
	loop_try_leave(e);
}

/* True: the loop is to end. */
static bool loop_handle_message(struct baton *b, struct message *m)
{
	struct post *p = (struct post *)m;

	switch (m->kind) {
	case MSG_POKE: handle_poke(PART_OF(struct baton_election, poke, m)); return false;
	case MSG_DONE: executor_done(b, (struct job *)m); return false;
	case MSG_UNWATCHED: handle_unwatched(m); return false;
	case MSG_WATCH_FAILED:
		atomic_store(&b->lanes[BATON_LANE_WATCH].failed_busy, false);
		tell_watch_failed(b);
		return false;
	case MSG_QUIT: return true;
	case MSG_ATTACH: handle_attach(b, p->election); break;
	case MSG_HINT_SPARE:
		atomic_store(&b->lanes[BATON_LANE_WATCH].spare_busy, false);
		handle_hint(b, BATON_HINT_ALL);
		return false;
	case MSG_HINT: handle_hint(b, p->cookie); break;
	default: handle_event(p->election, &p->event); break;
	}
	if (p->done != NULL) {
		(void)pthread_mutex_lock(&b->app.lock);
		*p->done = true;
		(void)pthread_cond_broadcast(&b->app.changed);
		(void)pthread_mutex_unlock(&b->app.lock);
	}
	if (p->election != NULL)
		election_unref(p->election);
	free(p);
	return false;
}
