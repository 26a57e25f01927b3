/*
 * events.c: between the loop and the application. The loop leaves news with an election; a
 * dispatcher thread calls its handler, or the application pulls it. core/audience.h decides what is
 * told when, and when the work of a lost leadership has ended (S7, S8). This file carries out what
 * it says, and puts its news into sentences.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "runtime/messages.h"
#include "runtime/runtime.h"

/* If two reads of a wait differ by no more than this, it is the same wait. */
#define SAME_WAIT_NS CLOCK_NS_PER_S

static void *dispatch_main(void *arg);
static void tell_news(struct baton_election *e, uint8_t news);
static void tell_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		       const char *detail);
static void log_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		      const char *detail);

int events_init(struct baton *b, struct baton_error *err)
{
	for (int i = 0; i < N_QUEUES; i++) {
		TAILQ_INIT(&b->app.handled[i]);
		TAILQ_INIT(&b->app.pulled[i]);
	}
	TAILQ_INIT(&b->app.pulling);
	b->app.events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return b->app.events_fd < 0 ? text_fail_limits(err) : 0;
}

int events_start(struct baton *b, struct baton_error *err)
{
	while (b->n_dispatchers_started < b->n_dispatchers) {
		if (!thread_start(&b->dispatchers[b->n_dispatchers_started], dispatch_main, b))
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

struct numbers *events_numbers(struct baton_election *e)
{
	struct numbers *numbers = atomic_load(&e->numbers);

	if (numbers == NULL) {
		numbers = calloc(1, sizeof(*numbers));
		atomic_store(&e->numbers, numbers);
	}
	return numbers;
}

bool events_overruns(const struct baton_election *e)
{
	if (e->audience.work != WORK_DRAINS || e->overran)
		return false;
	/* A lease that work stands on is closed when the work's time is up; then another lease
	 * follows. */
	bool is_closed = atomic_load(&e->executor->end_epoch) != atomic_load(&e->work_epoch);

	return is_closed || clock_boot_ns() > work_end_of(e);
}

void events_overdue(struct baton_election *e)
{
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	struct numbers *numbers = events_numbers(e);

	if (numbers != NULL && !e->overran)
		atomic_fetch_add(&numbers->overruns, 1);
	e->overran = true;
	(void)pthread_mutex_unlock(&app->lock);
}

static void note_lost(struct baton_election *e, const struct action *a)
{
	struct baton *b = e->handle;

	e->lost_why = a->why;
	contexts_cancel(e);
	atomic_fetch_sub(&b->counters.leading, 1);
	atomic_fetch_add(&b->counters.lost, 1);
	e->vacant_ns = clock_boot_ns();
	uint64_t tenure_ms = (e->vacant_ns - e->became_ns) / CLOCK_NS_PER_MS;
	struct numbers *numbers = events_numbers(e);

	count_into(&b->counters.tenure, tenure_ms);
	if (numbers == NULL)
		return;
	count_into(&numbers->tenure, tenure_ms);
	atomic_fetch_add(&numbers->lost[reason_of_why(a->why)], 1);
}

/*
 * A handover is counted from when, as far as we know, no candidate led, or from when we set out to
 * replace the leader. If the store doesn't say how the last leadership ended, the reason of our
 * campaign does: we have waited for the end of a lease, or were told of a release.
 */
static void count_handover(struct baton_election *e)
{
	bool is_first = e->vacant_ns == 0 && e->events.leader == NOBODY;
	uint64_t since_ns = e->vacant_ns != 0 ? e->vacant_ns : e->core.call_ns;
	struct numbers *numbers = is_first ? NULL : events_numbers(e);
	int end = e->before != BATON_END_UNTOLD ? e->before
		  : e->arg_why == WHY_DUE       ? BATON_END_EXPIRED
						: BATON_END_RELEASED;

	if (numbers != NULL)
		count_into(&numbers->handover[end], (e->became_ns - since_ns) / 1000);
	e->vacant_ns = 0;
}

static void note_became(struct baton_election *e)
{
	e->became_ns = clock_boot_ns();
	e->overran = false;
	count_handover(e);
	atomic_fetch_add(&e->handle->counters.leading, 1);
}

static void note_changed(struct baton_election *e, const struct action *a)
{
	if ((e->audience.pending & NEWS_CHANGED) == 0) {
		e->events.old_leader = e->events.leader;
		e->events.changed_old_term = e->events.changed_term;
	}
	e->vacant_ns = a->target == NOBODY ? clock_boot_ns() : 0;
	e->events.leader = a->target;
	e->events.changed_term = a->term;
	tell_news(e, NEWS_CHANGED);
	atomic_fetch_add(&e->handle->counters.transitions, a->target != NOBODY);
	atomic_fetch_add(&e->n_changes, a->target != NOBODY);
}

static void note_acquired(struct baton_election *e, const struct action *a)
{
	e->acquire_answered = e->acquire_id;
	e->acquire_obstacle =
		a->note == NOTE_ACQUIRED ? BATON_OBSTACLE_NONE : obstacle_of_why(a->why);
	if (a->note == NOTE_ACQUIRED)
		e->acquire_answer = 1;
	else if (a->why == WHY_NOT_STARTED)
		e->acquire_answer = BATON_E_NOT_STARTED;
	else if (a->why == WHY_FAILED || a->why == WHY_LATE)
		e->acquire_answer = BATON_E_UNAVAILABLE;
	else
		e->acquire_answer = 0;
}

/* What the audience has to know: the beginning, the end, and the stop. */
static void tell_note(struct baton_election *e, const struct action *a)
{
	struct baton *b = e->handle;
	struct audience_event ev = {.kind = AUDIENCE_NOTE,
				    .note = a->note,
				    .term = a->term,
				    .why = a->why,
				    .now_ns = clock_boot_ns(),
				    .drain_ns = timing_drain_ns(&b->timing),
				    .wanted = e->core.wanted,
				    .has_puller = b->app.has_puller};

	e->auto_drain_ns = events_tell(e, &ev).wake_ns;
}

static void failure_forget(struct baton_election *e)
{
	free(e->failure);
	e->failure = NULL;
}

void events_note(struct baton_election *e, const struct action *a)
{
	struct baton *b = e->handle;

	if (a->note == NOTE_ERROR) {
		events_error(e, e->trying, a->why, 0);
		return;
	}
	if (a->note == NOTE_STOPPED)
		failure_forget(e);
	(void)pthread_mutex_lock(&b->app.lock);
	switch (a->note) {
	case NOTE_BECAME:
		note_became(e);
		tell_note(e, a);
		break;
	case NOTE_LOST:
		note_lost(e, a);
		tell_note(e, a);
		break;
	case NOTE_STOPPED: tell_note(e, a); break;
	case NOTE_CHANGED: note_changed(e, a); break;
	default: note_acquired(e, a); break;
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	/* Not under the lock: the threads would wake up only to wait for it. */
	(void)pthread_cond_broadcast(&b->app.changed);
	if (a->note == NOTE_BECAME || a->note == NOTE_LOST)
		log_put(b, BATON_LOG_INFO, 0, e->name, a->term, text_of_why(a->why),
			a->note == NOTE_BECAME ? "became leader" : "lost leadership");
	if (a->note == NOTE_STOPPED)
		executor_publish(e);
}

void events_renewed(struct baton_election *e)
{
	struct app *app = &e->handle->app;

	if (!e->audience.tells_renewals) /* never changes */
		return;
	(void)pthread_mutex_lock(&app->lock);
	tell_news(e, NEWS_RENEWED);
	(void)pthread_mutex_unlock(&app->lock);
}

void events_let_go(struct baton_election *e)
{
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	if (!events_say(e, AUDIENCE_LET_GO).refused && app->n_kept > 0 && --app->n_kept == 0)
		(void)pthread_cond_broadcast(&app->changed);
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
	bool is_told = !e->audience.stopped; /* S8: nothing after stop */
	bool repeated = is_told && is_repeated(e, code);

	if (is_told && !repeated) {
		e->events.error_code = code;
		e->events.error_why = why;
		if (e->events.error != NULL)
			(void)snprintf(e->events.error->detail, sizeof(e->events.error->detail),
				       "%s", detail);
		tell_news(e, NEWS_ERROR);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	if (source != 0 || !repeated)
		log_error(e, source, why, code, detail);
}

/* An application that takes events may want each of them; the reader of a log wants what is new. */
static void log_error(struct baton_election *e, unsigned source, uint8_t why, int code,
		      const char *detail)
{
	enum failure_news news = FAILURE_BEGINS;

	if (e->failure == NULL && source != 0)
		e->failure = calloc(1, sizeof(*e->failure));
	if (e->failure != NULL && source != 0) /* no memory: rather twice than never */
		news = failure_add(e->failure, source, code, clock_boot_ns());

	if (news == FAILURE_BEGINS)
		log_put(e->handle, BATON_LOG_WARN, code, e->name, e->core.term, detail, "%s",
			text_of_error(code, why));
	else if (news == FAILURE_GOES_ON)
		log_put(e->handle, BATON_LOG_WARN, code, e->name, e->core.term, detail,
			"%s, for %llu s now", text_of_error(code, why),
			(unsigned long long)failure_seconds(e->failure));
}

void events_works(struct baton_election *e, unsigned sources)
{
	struct failure *f = e->failure;

	if (f != NULL && failure_remove(f, sources, clock_boot_ns()))
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

/* A wait is told once. If it is read again with the same end, it is the same wait. */
void events_waits(struct baton_election *e, const struct baton_record *r)
{
	struct app *app = &e->handle->app;
	bool waits = r->wait[0] != '\0' && r->free_in_ns != BATON_STORE_NEVER;

	if (!waits && e->wait == NULL)
		return;
	uint64_t until_ns = waits ? after_ns(clock_boot_ns(), r->free_in_ns) : 0;

	(void)pthread_mutex_lock(&app->lock);
	if (e->wait == NULL)
		e->wait = calloc(1, sizeof(*e->wait));
	if (e->wait == NULL) { /* the wait is told when there is memory again */
		(void)pthread_mutex_unlock(&app->lock);
		return;
	}
	bool is_news = waits && until_ns > e->wait->until_ns + SAME_WAIT_NS && !e->audience.stopped;

	e->wait->until_ns = until_ns;
	if (waits)
		(void)snprintf(e->wait->text, sizeof(e->wait->text), "%s", r->wait);
	if (is_news)
		tell_news(e, NEWS_WAITS);
	(void)pthread_mutex_unlock(&app->lock);
	if (is_news)
		log_put(e->handle, BATON_LOG_INFO, 0, e->name, 0, r->wait, "waits %llu ms",
			(unsigned long long)(r->free_in_ns / NS_PER_MS));
}

void events_store(struct baton *b, const struct baton_error *err)
{
	if (err->code == 0)
		atomic_store_explicit(&b->counters.store_ok_ms, clock_wall_ms(),
				      memory_order_relaxed);
	if (err->code == 0 && atomic_load_explicit(&b->app.store_fails, memory_order_relaxed) == 0)
		return;
	(void)pthread_mutex_lock(&b->app.lock);
	if (err->code != 0) { /* its words outlive the call: the loop may not have told them yet */
		b->app.store_error = *err;
		b->app.store_said_ns = clock_boot_ns();
	}
	atomic_store(&b->app.store_fails, err->code != 0);
	if (err->code != 0)
		atomic_fetch_add(&b->counters.errors[(unsigned)-err->code % CODES], 1);
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* ---- queues; app.lock is held ---- */

static struct events_queue *queue_of(const struct baton_election *e)
{
	struct app *app = &e->handle->app;
	int i = e->events.is_urgent ? URGENT : USUAL;

	return e->handler != NULL ? &app->handled[i] : &app->pulled[i];
}

static void calm_events_fd(struct app *app);

/* The election stands in its queue if and only if there is something to deliver. */
static void queue_election(struct baton_election *e, bool deliver)
{
	static const uint64_t one = 1;
	struct app *app = &e->handle->app;
	bool is_urgent = (e->audience.pending & NEWS_LOST) != 0;

	if (!deliver && !e->events.queued)
		return;
	if (deliver && e->events.queued && (!is_urgent || e->events.is_urgent))
		return;
	if (e->events.queued)
		TAILQ_REMOVE(queue_of(e), e, events.link);
	else
		(void)election_ref(e);
	e->events.queued = deliver;
	if (!deliver) {
		calm_events_fd(app);
		election_unref(e); /* never the last reference: the caller has one, too */
		return;
	}
	e->events.is_urgent = is_urgent;
	TAILQ_INSERT_TAIL(queue_of(e), e, events.link);
	if (e->handler != NULL) {
		(void)pthread_cond_signal(&app->dispatch);
	} else {
		(void)!write(app->events_fd, &one, sizeof(one));
		(void)pthread_cond_broadcast(&app->changed);
	}
}

struct audience_result events_tell(struct baton_election *e, const struct audience_event *ev)
{
	bool overruns = events_overruns(e);
	struct audience_result r = audience_step(&e->audience, ev);

	if (r.drained) {
		struct numbers *numbers = atomic_load(&e->numbers);

		if (numbers != NULL) {
			count_into(&numbers->drain,
				   (clock_boot_ns() - e->vacant_ns) / CLOCK_NS_PER_MS);
			atomic_fetch_add(&numbers->overruns, overruns);
		}
		loop_poke(e, POKE_DRAINED);
	}
	queue_election(e, r.deliver);
	return r;
}

struct audience_result events_say(struct baton_election *e, uint8_t kind)
{
	return events_tell(e, &(struct audience_event){.kind = kind});
}

static void tell_news(struct baton_election *e, uint8_t news)
{
	(void)events_tell(e, &(struct audience_event){.kind = AUDIENCE_NEWS, .news = news});
}

static struct baton_election *first_of(const struct events_queue queues[N_QUEUES])
{
	struct baton_election *e = TAILQ_FIRST(&queues[URGENT]);

	return e != NULL ? e : TAILQ_FIRST(&queues[USUAL]);
}

/* If there is nothing more to pull, the descriptor must not be readable. */
static void calm_events_fd(struct app *app)
{
	uint64_t count;

	if (first_of(app->pulled) == NULL)
		(void)!read(app->events_fd, &count, sizeof(count));
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
	if (e->wait->until_ns > now_ns) /* the wait was made before its news */
		out->wait_ms = (int64_t)((e->wait->until_ns - now_ns) / NS_PER_MS);
	(void)snprintf(out->text, sizeof(out->text), "%s", e->wait->text);
}

/* A leadership that is over has no deadline; its work may have time left. */
static void fill_deadline(const struct baton_election *e, struct baton_event *out)
{
	if (atomic_load(&e->term_cell) != 0)
		out->deadline_boot_ns = (int64_t)deadline_of(e);
	out->work_end_boot_ns = (int64_t)work_end_of(e);
}

static void fill_error(const struct baton_election *e, struct baton_event *out)
{
	out->kind = BATON_EVENT_ERROR;
	out->code = e->events.error_code;
	(void)snprintf(out->text, sizeof(out->text), "%s",
		       text_of_error(e->events.error_code, e->events.error_why));
	if (e->events.error != NULL)
		(void)snprintf(out->detail, sizeof(out->detail), "%s", e->events.error->detail);
}

/* Takes the next piece of news off and puts it into words; the reference of the queue stays. */
static void take_event(struct baton_election *e, struct baton_event *out)
{
	struct audience_event ev = {.kind = AUDIENCE_TAKE, .token = ++e->handle->app.tokens};

	TAILQ_REMOVE(queue_of(e), e, events.link);
	e->events.queued = false;
	e->events.puller = thread_number();
	struct audience_result r = events_tell(e, &ev);

	*out = (struct baton_event){
		.size = sizeof(*out), .election = e, .token = ev.token, .term = r.term};
	switch (r.news) {
	case NEWS_BECAME:
		out->kind = BATON_EVENT_BECAME;
		fill_deadline(e, out);
		(void)snprintf(out->leader, sizeof(out->leader), "%s", e->handle->id);
		break;
	case NEWS_LOST:
		out->kind = BATON_EVENT_LOST;
		out->reason = reason_of_why(r.why);
		(void)snprintf(out->text, sizeof(out->text), "%s", text_of_why(r.why));
		break;
	case NEWS_CHANGED: fill_changed(e, out); break;
	case NEWS_ERROR: fill_error(e, out); break;
	case NEWS_WAITS: fill_waits(e, out); break;
	case NEWS_RENEWED:
		out->kind = BATON_EVENT_RENEWED;
		out->term = e->audience.led;
		fill_deadline(e, out);
		break;
	default: out->kind = BATON_EVENT_STOPPED; break;
	}
}

/* The application has dealt with what take_event() gave it. */
static void finish_event(struct baton_election *e)
{
	(void)events_tell(
		e, &(struct audience_event){.kind = AUDIENCE_DONE, .token = e->audience.token});
	(void)pthread_cond_broadcast(&e->handle->app.changed);
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
		ev.token = 0; /* the handler's return says that it is dealt with */
		bool is_muted = e->audience.muted;

		(void)pthread_mutex_unlock(&b->app.lock);
		if (!is_muted) {
			uint64_t began_ns = clock_boot_ns();

			e->handler(e->handler_arg, &ev);
			count_into(&b->counters.handlers, (clock_boot_ns() - began_ns) / 1000);
		}
		(void)pthread_mutex_lock(&b->app.lock);
		finish_event(e);
		election_unref(e);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	return NULL;
}

static void finish_pulled_one(struct baton *b, struct baton_election *e)
{
	TAILQ_REMOVE(&b->app.pulling, e, events.link);
	finish_event(e);
	election_unref(e);
}

/* Asking for the next event says that the last one is dealt with. */
static void finish_pulled(struct baton *b)
{
	struct baton_election *next;

	for (struct baton_election *e = TAILQ_FIRST(&b->app.pulling); e != NULL; e = next) {
		next = TAILQ_NEXT(e, events.link);
		if (e->events.puller == thread_number())
			finish_pulled_one(b, e);
	}
}

int events_finish(struct baton *b, uint64_t token)
{
	struct baton_election *e;

	(void)pthread_mutex_lock(&b->app.lock);
	for (e = TAILQ_FIRST(&b->app.pulling); e != NULL; e = TAILQ_NEXT(e, events.link))
		if (e->audience.token == token)
			break;
	if (e != NULL)
		finish_pulled_one(b, e);
	(void)pthread_mutex_unlock(&b->app.lock);
	return e != NULL ? 0 : BATON_E_STALE;
}

/*
 * The application frees the election. After this, what its handler works with may be gone (S8), and
 * baton_wait() must no longer hand out the election. The election's waiting news are dropped, so
 * nothing is kept for a program that never takes events.
 */
void events_mute(struct baton_election *e)
{
	bool is_pulled = e->handler == NULL && e->audience.token != 0;

	if (is_pulled)
		TAILQ_REMOVE(&e->handle->app.pulling, e, events.link);
	(void)events_say(e, AUDIENCE_MUTE);
	(void)pthread_cond_broadcast(&e->handle->app.changed);
	if (is_pulled)
		election_unref(e);
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
	/* The condition's clock stands still in suspend, so one wait lasts a second at most. */
	uint64_t wait_ns = min_ns(until_ns - now_ns, CLOCK_NS_PER_S);

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	wait_ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(wait_ns / CLOCK_NS_PER_S);
	at.tv_nsec = (long)(wait_ns % CLOCK_NS_PER_S);
	(void)pthread_cond_timedwait(&b->app.changed, &b->app.lock, &at);
	return true;
}

void count_into(struct histogram *h, uint64_t value)
{
	unsigned bucket = value == 0 ? 0 : 64u - (unsigned)__builtin_clzll(value);

	if (bucket >= BATON_HISTOGRAM_BUCKETS)
		bucket = BATON_HISTOGRAM_BUCKETS - 1;
	atomic_fetch_add_explicit(&h->buckets[bucket], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}
