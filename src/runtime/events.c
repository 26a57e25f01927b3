/*
 * events.c: between the loop and the application. The loop leaves news with an election; a
 * dispatcher thread calls its handler, or the application pulls it. LOST comes before all else
 * that waits, except the BECAME that it belongs to (S8). When the application has dealt with LOST
 * and no work of ours runs any more, the loop is told that the work has drained (S7).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/messages.h"
#include "runtime/runtime.h"

/* What is read of a wait at two moments may differ by so much: it is the same wait. */
#define SAME_WAIT_NS CLOCK_NS_PER_S

static void *dispatch_main(void *arg);
static void queue_election(struct baton_election *e);
static void tell_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		       const char *detail);
static void log_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		      const char *detail);

int events_start(struct baton *b, struct baton_error *err)
{
	for (int i = 0; i < N_QUEUES; i++) {
		TAILQ_INIT(&b->app.handled[i]);
		TAILQ_INIT(&b->app.pulled[i]);
	}
	TAILQ_INIT(&b->app.pulling);
	b->app.events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->app.events_fd < 0)
		return text_fail_limits(err);
	while (b->n_dispatchers_started < b->n_dispatchers) {
		if (pthread_create(&b->dispatchers[b->n_dispatchers_started], NULL, dispatch_main,
				   b) != 0)
			return text_fail_limits(err);
		b->n_dispatchers_started++;
	}
	return 0;
}

void events_stop(struct baton *b)
{
	(void)pthread_mutex_lock(&b->app.lock);
	b->app.quit = true;
	(void)pthread_cond_broadcast(&b->app.dispatch);
	(void)pthread_mutex_unlock(&b->app.lock);
	for (uint32_t i = 0; i < b->n_dispatchers_started; i++)
		(void)pthread_join(b->dispatchers[i], NULL);
	b->n_dispatchers_started = 0;
}

static void drop_queue(struct events_queue *q)
{
	while (!TAILQ_EMPTY(q)) {
		struct baton_election *e = TAILQ_FIRST(q);

		TAILQ_REMOVE(q, e, events.link);
		election_unref(e);
	}
}

void events_done(struct baton *b)
{
	drop_queue(&b->app.pulling);
	for (int i = 0; i < N_QUEUES; i++) {
		drop_queue(&b->app.pulled[i]);
		drop_queue(&b->app.handled[i]);
	}
	if (b->app.events_fd >= 0)
		(void)close(b->app.events_fd);
}

bool events_on_dispatcher(const struct baton *b)
{
	for (uint32_t i = 0; i < b->n_dispatchers_started; i++)
		if (pthread_equal(b->dispatchers[i], pthread_self()))
			return true;
	return false;
}

/* ---- from the loop ---- */

static void cancel_contexts(struct baton_election *e)
{
	static const uint64_t one = 1;

	for (struct baton_context *c = e->contexts; c != NULL; c = c->next) {
		c->cancelled = true;
		(void)!write(c->fd, &one, sizeof(one));
	}
}

/*
 * S8: who has ended its work without waiting for LOST, or by another thread, may lead again before
 * the news of the last leadership were heard. A leadership of which nothing was heard is left out.
 */
static void note_became(struct baton_election *e, uint64_t term)
{
	static const uint8_t both = EVENT_BECAME | EVENT_LOST;

	if ((e->events.pending & both) == both)
		e->events.pending &= (uint8_t)~both;
	e->events.became_term = term;
	e->events.pending |= EVENT_BECAME;
}

static void note_lost_term(struct baton_election *e, const struct action *a)
{
	bool is_unheard =
		(e->events.pending & EVENT_BECAME) != 0 && e->events.became_term == a->term;

	if ((e->events.pending & EVENT_LOST) != 0 && is_unheard) {
		e->events.pending &=
			(uint8_t)~EVENT_BECAME; /* the LOST before it is still to come */
		return;
	}
	e->events.is_past = true;
	e->events.lost_term = a->term;
	e->events.lost_why = a->why;
	e->events.pending |= EVENT_LOST;
}

static void note_lost(struct baton_election *e, const struct action *a)
{
	struct baton *b = e->handle;

	note_lost_term(e, a);
	e->lost_why = a->why;
	e->draining = true;
	e->lost_done =
		e->handler == NULL && (e->n_runners > 0 || e->contexts != NULL || e->self_stop);
	/* Nobody listens: the work gets the time that it has after any loss. */
	if (e->handler == NULL && !e->lost_done && !b->app.has_puller)
		e->auto_drain_ns = clock_boot_ns() + timing_drain_ns(&b->timing);
	cancel_contexts(e);
	events_check_drained(e);
	atomic_fetch_sub(&b->counters.leading, 1);
	atomic_fetch_add(&b->counters.lost, 1);
	count_into(b->counters.tenure, (clock_boot_ns() - e->became_ns) / CLOCK_NS_PER_MS);
}

static void note_changed(struct baton_election *e, const struct action *a)
{
	if ((e->events.pending & EVENT_CHANGED) == 0) {
		e->events.old_leader = e->events.leader;
		e->events.changed_old_term = e->events.changed_term;
	}
	e->events.leader = a->target;
	e->events.changed_term = a->term;
	e->events.pending |= EVENT_CHANGED;
	atomic_fetch_add(&e->handle->counters.transitions, a->target != NOBODY);
}

static void note_acquired(struct baton_election *e, const struct action *a)
{
	e->acquire_answered = e->acquire_id;
	if (a->note == NOTE_ACQUIRED)
		e->acquire_answer = 1;
	else if (a->why == WHY_NOT_STARTED)
		e->acquire_answer = BATON_E_NOT_STARTED;
	else if (a->why == WHY_FAILED || a->why == WHY_LATE)
		e->acquire_answer = BATON_E_UNAVAILABLE;
	else
		e->acquire_answer = 0;
}

void events_note(struct baton_election *e, const struct action *a)
{
	struct baton *b = e->handle;

	if (a->note == NOTE_ERROR) {
		events_error(e, e->trying, a->why, 0);
		return;
	}
	if (a->note == NOTE_STOPPED)
		e->failure = (struct failure){0};
	(void)pthread_mutex_lock(&b->app.lock);
	switch (a->note) {
	case NOTE_BECAME:
		note_became(e, a->term);
		e->became_ns = clock_boot_ns();
		atomic_fetch_add(&b->counters.leading, 1);
		break;
	case NOTE_LOST: note_lost(e, a); break;
	case NOTE_CHANGED: note_changed(e, a); break;
	case NOTE_STOPPED:
		/* Who was told to start meanwhile has done so in the same step, or is about to. */
		e->is_stopped = !e->core.wanted && e->n_starts == 0;
		e->n_stops++;
		e->events.pending |= EVENT_STOPPED;
		break;
	default: note_acquired(e, a); break;
	}
	queue_election(e);
	(void)pthread_mutex_unlock(&b->app.lock);
	/* Or they would wake up only to wait for the lock. */
	(void)pthread_cond_broadcast(&b->app.changed);
	if (a->note == NOTE_BECAME || a->note == NOTE_LOST)
		log_put(b, BATON_LOG_INFO, 0, e->name, a->term, text_of_why(a->why),
			a->note == NOTE_BECAME ? "became leader" : "lost leadership");
	if (a->note == NOTE_STOPPED)
		executor_publish(e);
}

void events_let_go(struct baton_election *e)
{
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	if (!e->let_go && app->n_kept > 0 && --app->n_kept == 0)
		(void)pthread_cond_broadcast(&app->changed);
	e->let_go = true;
	(void)pthread_mutex_unlock(&app->lock);
}

/* C26: at most one a second for one cause. app.lock is held. */
static bool is_repeated(struct baton_election *e, int code)
{
	uint64_t now_ns = clock_boot_ns();
	struct error_event *error = e->events.error;

	if (error == NULL)
		error = e->events.error = calloc(1, sizeof(*error));
	if (error == NULL)
		return false; /* rather twice than never */
	uint64_t *told_ns = &error->told_ns[(unsigned)-code % 32];

	if (*told_ns != 0 && now_ns - *told_ns < CLOCK_NS_PER_S)
		return true;
	*told_ns = now_ns;
	return false;
}

/* app.lock is held: the store's words, if they are new enough to be about what just failed. */
static void last_words(const struct app *app, struct baton_error *out)
{
	*out = (struct baton_error){0};
	if (atomic_load(&app->store_fails) != 0 ||
	    (app->store_error.code != 0 && clock_boot_ns() - app->store_said_ns < CLOCK_NS_PER_S))
		*out = app->store_error;
}

void events_error(struct baton_election *e, unsigned source, uint8_t why, int code)
{
	struct app *app = &e->handle->app;
	struct baton_error said;

	(void)pthread_mutex_lock(&app->lock);
	last_words(app, &said);
	(void)pthread_mutex_unlock(&app->lock);
	if (code == 0)
		code = code_of_why(why);
	if (code == BATON_E_UNAVAILABLE && said.code != 0)
		code = said.code;
	tell_error(e, source, why, code, said.code == code ? said.text : "");
}

void events_watch(struct baton_election *e, const struct baton_error *said)
{
	tell_error(e, FAILURE_WATCH, WHY_NONE, said->code, said->text);
}

static void tell_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		       const char *detail)
{
	struct baton *b = e->handle;

	(void)pthread_mutex_lock(&b->app.lock);
	bool is_told = !e->is_stopped; /* S8: nothing after stop */
	bool repeated = is_told && is_repeated(e, code);

	if (is_told && !repeated) {
		e->events.error_code = code;
		e->events.error_why = why;
		if (e->events.error != NULL)
			(void)snprintf(e->events.error->detail, sizeof(e->events.error->detail),
				       "%s", detail);
		e->events.pending |= EVENT_ERROR;
		queue_election(e);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	if (source != 0 || !repeated)
		log_error(e, source, why, code, detail);
}

/* Whoever hears events may want each; whoever reads a log wants what is new. */
static void log_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		      const char *detail)
{
	enum failure_news news = source != 0
					 ? failure_add(&e->failure, source, code, clock_boot_ns())
					 : FAILURE_BEGINS;

	if (news == FAILURE_BEGINS)
		log_put(e->handle, BATON_LOG_WARN, code, e->name, e->core.term, detail, "%s",
			text_of_error(code, why));
	else if (news == FAILURE_GOES_ON)
		log_put(e->handle, BATON_LOG_WARN, code, e->name, e->core.term, detail,
			"%s, for %llu s now", text_of_error(code, why),
			(unsigned long long)failure_seconds(&e->failure));
}

void events_works(struct baton_election *e, unsigned sources)
{
	struct failure *f = &e->failure;

	if (f->since_ns != 0 && failure_remove(f, sources, clock_boot_ns()))
		log_put(e->handle, BATON_LOG_WARN, 0, e->name, e->core.term, NULL,
			"works again after %llu s", (unsigned long long)failure_seconds(f));
}

void events_seen(struct baton_election *e)
{
	struct app *app = &e->handle->app;
	bool leading = e->core.state == ELECTION_LEADING;
	uint32_t leader = leading ? SELF : e->core.leader;
	uint64_t term = leading ? e->core.term : e->core.leader_term;

	/* The loop alone writes these: it may compare without the lock. */
	if (e->seen_state == e->core.state && e->seen_leader == leader && e->seen_term == term &&
	    e->seen_paused == e->core.paused)
		return;
	(void)pthread_mutex_lock(&app->lock);
	e->seen_state = e->core.state;
	e->seen_leader = leader;
	e->seen_term = term;
	e->seen_paused = e->core.paused;
	(void)pthread_mutex_unlock(&app->lock);
}

/* Told once: a wait that is heard of again ends when it was said to. */
void events_waits(struct baton_election *e, const struct baton_record *r)
{
	struct app *app = &e->handle->app;
	bool waits = r->wait[0] != '\0' && r->free_in_ns != BATON_STORE_NEVER;

	if (!waits && e->wait_until_ns == 0)
		return;
	uint64_t until_ns = waits ? after_ns(clock_boot_ns(), r->free_in_ns) : 0;
	char *text = waits ? strdup(r->wait) : NULL;

	(void)pthread_mutex_lock(&app->lock);
	bool is_news = waits && until_ns > e->wait_until_ns + SAME_WAIT_NS && !e->is_stopped;

	e->wait_until_ns = until_ns;
	if (text != NULL) {
		free(e->wait);
		e->wait = text;
	}
	if (is_news) {
		e->events.pending |= EVENT_WAITS;
		queue_election(e);
	}
	(void)pthread_mutex_unlock(&app->lock);
	if (is_news)
		log_put(e->handle, BATON_LOG_INFO, 0, e->name, 0, r->wait, "waits %llu ms",
			(unsigned long long)(r->free_in_ns / NS_PER_MS));
}

void events_store(struct baton *b, const struct baton_error *err)
{
	if (err->code == 0 && atomic_load_explicit(&b->app.store_fails, memory_order_relaxed) == 0)
		return;
	(void)pthread_mutex_lock(&b->app.lock);
	if (err->code != 0) { /* its words outlive it: the loop may not have told them yet */
		b->app.store_error = *err;
		b->app.store_said_ns = clock_boot_ns();
	}
	atomic_store(&b->app.store_fails, err->code != 0);
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* ---- queues; app.lock is held ---- */

static struct events_queue *queue_of(const struct baton_election *e)
{
	struct app *app = &e->handle->app;
	int i = e->events.is_urgent ? URGENT : USUAL;

	return e->handler != NULL ? &app->handled[i] : &app->pulled[i];
}

static void queue_election(struct baton_election *e)
{
	static const uint64_t one = 1;
	struct app *app = &e->handle->app;
	bool is_urgent = (e->events.pending & EVENT_LOST) != 0;

	if (e->is_muted && e->handler == NULL)
		e->events.pending = 0; /* nobody may be handed what was freed */
	if (e->events.delivering != 0 || e->events.pending == 0 ||
	    (e->events.queued && (!is_urgent || e->events.is_urgent)))
		return;
	if (e->events.queued)
		TAILQ_REMOVE(queue_of(e), e, events.link);
	else
		(void)election_ref(e);
	e->events.queued = true;
	e->events.is_urgent = is_urgent;
	TAILQ_INSERT_TAIL(queue_of(e), e, events.link);
	if (e->handler != NULL) {
		(void)pthread_cond_signal(&app->dispatch);
	} else {
		(void)!write(app->events_fd, &one, sizeof(one));
		(void)pthread_cond_broadcast(&app->changed);
	}
}

static struct baton_election *first_of(const struct events_queue queues[N_QUEUES])
{
	struct baton_election *e = TAILQ_FIRST(&queues[URGENT]);

	return e != NULL ? e : TAILQ_FIRST(&queues[USUAL]);
}

/* Nothing more to read: the descriptor must not say otherwise. */
static void calm_events_fd(struct app *app)
{
	uint64_t count;

	if (first_of(app->pulled) == NULL)
		(void)!read(app->events_fd, &count, sizeof(count));
}

static uint8_t next_kind(const struct events *n)
{
	static const uint8_t order[] = {EVENT_BECAME, EVENT_LOST,  EVENT_CHANGED,
					EVENT_ERROR,  EVENT_WAITS, EVENT_STOPPED};

	/* LOST waits for the BECAME that it belongs to, and not for the one after it; nor does
	 * STOPPED, which belongs to neither. */
	bool is_lost = (n->pending & EVENT_LOST) != 0;
	bool is_later =
		(n->pending & EVENT_BECAME) != 0 && !(is_lost && n->became_term == n->lost_term);

	if (is_later && is_lost)
		return EVENT_LOST;
	if (is_later && (n->pending & EVENT_STOPPED) != 0)
		return EVENT_STOPPED;
	for (size_t i = 0; i < sizeof(order); i++)
		if ((n->pending & order[i]) != 0)
			return order[i];
	return 0;
}

static void fill_changed(struct baton_election *e, struct baton_event *out)
{
	out->kind = BATON_EVENT_CHANGED;
	out->term = e->events.changed_term;
	out->old_term = e->events.changed_old_term;
	peers_name(e->handle, e->events.leader, out->leader, NULL);
	peers_name(e->handle, e->events.old_leader, out->old_leader, NULL);
}

static void fill_waits(const struct baton_election *e, struct baton_event *out)
{
	uint64_t now_ns = clock_boot_ns();

	out->kind = BATON_EVENT_WAITS;
	if (e->wait_until_ns > now_ns)
		out->wait_ms = (int64_t)((e->wait_until_ns - now_ns) / NS_PER_MS);
	(void)snprintf(out->text, sizeof(out->text), "%s", e->wait != NULL ? e->wait : "");
}

/* Takes the next piece of news off and puts it into words; the election is then delivering. */
static void take_event(struct baton_election *e, struct baton_event *out)
{
	struct events *n = &e->events;
	uint8_t kind = next_kind(n);

	*out = (struct baton_event){.election = e};
	TAILQ_REMOVE(queue_of(e), e, events.link);
	n->queued = false;
	n->delivering = kind;
	n->puller = pthread_self();
	n->pending &= (uint8_t)~kind;
	switch (kind) {
	case EVENT_BECAME:
		out->kind = BATON_EVENT_BECAME;
		out->term = n->became_term;
		(void)snprintf(out->leader, sizeof(out->leader), "%s", e->handle->id);
		break;
	case EVENT_LOST:
		out->kind = BATON_EVENT_LOST;
		out->term = n->lost_term;
		n->is_past = false;
		out->reason = reason_of_why(n->lost_why);
		(void)snprintf(out->text, sizeof(out->text), "%s", text_of_why(n->lost_why));
		break;
	case EVENT_CHANGED: fill_changed(e, out); break;
	case EVENT_ERROR:
		out->kind = BATON_EVENT_ERROR;
		out->code = n->error_code;
		(void)snprintf(out->text, sizeof(out->text), "%s",
			       text_of_error(n->error_code, n->error_why));
		if (n->error != NULL)
			(void)snprintf(out->detail, sizeof(out->detail), "%s", n->error->detail);
		break;
	case EVENT_WAITS: fill_waits(e, out); break;
	default: out->kind = BATON_EVENT_STOPPED; break;
	}
}

/* The application has dealt with what take_event() gave it. */
static void handled(struct baton_election *e)
{
	/* Not of an earlier leadership, while the last one's work goes on. */
	bool lost = e->events.delivering == EVENT_LOST && !e->events.is_past;

	e->events.delivering = 0;
	if (lost) {
		e->lost_done = true;
		events_check_drained(e);
	}
	queue_election(e);
	(void)pthread_cond_broadcast(&e->handle->app.changed);
}

void events_check_drained(struct baton_election *e)
{
	if (!e->draining || !e->lost_done || e->contexts != NULL)
		return;
	e->draining = false;
	loop_poke(e, POKE_DRAINED);
}

/* ---- dispatchers and pullers ---- */

static void *dispatch_main(void *arg)
{
	struct baton *b = arg;
	struct baton_event ev;

	(void)pthread_mutex_lock(&b->app.lock);
	while (true) {
		struct baton_election *e = first_of(b->app.handled);

		if (e == NULL && b->app.quit)
			break;
		if (e == NULL) {
			(void)pthread_cond_wait(&b->app.dispatch, &b->app.lock);
			continue;
		}
		take_event(e, &ev);
		bool is_muted = e->is_muted;

		(void)pthread_mutex_unlock(&b->app.lock);
		if (!is_muted)
			e->handler(e->handler_arg, &ev);
		(void)pthread_mutex_lock(&b->app.lock);
		handled(e);
		election_unref(e);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	return NULL;
}

/* Asking for the next event says that the last one is dealt with. */
static void finish_pulled(struct baton *b)
{
	struct baton_election *next;

	for (struct baton_election *e = TAILQ_FIRST(&b->app.pulling); e != NULL; e = next) {
		next = TAILQ_NEXT(e, events.link);
		if (!pthread_equal(e->events.puller, pthread_self()))
			continue;
		TAILQ_REMOVE(&b->app.pulling, e, events.link);
		handled(e);
		election_unref(e);
	}
}

/*
 * The application frees the election. What its handler works with may be gone after this (S8), and
 * what baton_wait() hands out must be an election that can be used. A program that never takes
 * events loses nothing by it: all that waits for it goes.
 */
void events_mute(struct baton_election *e)
{
	struct app *app = &e->handle->app;

	e->is_muted = true;
	if (e->handler != NULL) /* a dispatcher takes what is queued, and tells nobody */
		return;
	e->events.pending = 0;
	if (e->events.queued) {
		TAILQ_REMOVE(queue_of(e), e, events.link);
		e->events.queued = false;
		election_unref(e);
		calm_events_fd(app);
	} else if (e->events.delivering != 0) {
		TAILQ_REMOVE(&app->pulling, e, events.link);
		handled(e);
		election_unref(e);
	}
}

int events_pull(struct baton *b, int64_t timeout_ms, struct baton_event *out)
{
	uint64_t until_ns = events_until_ns(timeout_ms);

	(void)pthread_mutex_lock(&b->app.lock);
	b->app.has_puller = true;
	finish_pulled(b);
	while (first_of(b->app.pulled) == NULL && events_wait(b, until_ns))
		;
	struct baton_election *e = first_of(b->app.pulled);

	if (e != NULL) {
		take_event(e, out);
		TAILQ_INSERT_HEAD(&b->app.pulling, e, events.link);
	}
	calm_events_fd(&b->app);
	(void)pthread_mutex_unlock(&b->app.lock);
	return e != NULL;
}

uint64_t events_until_ns(int64_t timeout_ms)
{
	if (timeout_ms < 0)
		return NEVER;
	return (uint64_t)timeout_ms > NEVER / NS_PER_MS
		       ? NEVER
		       : after_ns(clock_boot_ns(), (uint64_t)timeout_ms * NS_PER_MS);
}

bool events_wait(struct baton *b, uint64_t until_ns)
{
	struct timespec at;

	if (until_ns == NEVER) {
		(void)pthread_cond_wait(&b->app.changed, &b->app.lock);
		return true;
	}
	uint64_t now_ns = clock_boot_ns();

	if (now_ns >= until_ns)
		return false;
	/* The condition's clock stands still in suspend: a second at most. */
	uint64_t wait_ns = min_ns(until_ns - now_ns, CLOCK_NS_PER_S);

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	wait_ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(wait_ns / CLOCK_NS_PER_S);
	at.tv_nsec = (long)(wait_ns % CLOCK_NS_PER_S);
	(void)pthread_cond_timedwait(&b->app.changed, &b->app.lock, &at);
	return true;
}

void count_into(_Atomic uint64_t *histogram, uint64_t value)
{
	unsigned bucket = value == 0 ? 0 : 64u - (unsigned)__builtin_clzll(value);

	if (bucket >= BATON_HISTOGRAM_BUCKETS)
		bucket = BATON_HISTOGRAM_BUCKETS - 1;
	atomic_fetch_add_explicit(&histogram[bucket], 1, memory_order_relaxed);
}
