/*
 * execute.c: steps the cores and carries out what they decide: calls go to the lanes, news to the
 * application, and what other threads may ask for to the cells. Runs on the loop's thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/runtime.h"

static void execute_calls(struct executor *c, struct baton_election *e, const struct actions *out);

struct executor *executor_new(struct baton *b)
{
	struct executor *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->refs = 1; /* the loop's */
	c->handle = b;
	c->deadline_cell = fork_cells_new(b);
	if (c->deadline_cell == NULL) {
		free(c);
		return NULL;
	}
	lease_init(&c->core, &b->timing, b->traits->own_leases);
	c->number = b->n_numbered++;
	b->n_executors++;
	c->publish_ns = NEVER;
	c->job.executor = c;
	c->claims_job.executor = c;
	return c;
}

/*
 * Another lease may get the cell. Who still holds an election of this one may read the cell, but
 * finds that the election has no term.
 */
void executor_let_go(struct executor *c)
{
	c->handle->n_executors--;
	heap_set(&c->handle->heap, &c->timer, NEVER);
	fork_cells_free(c->handle, c->deadline_cell);
	executor_unref(c);
}

struct executor *executor_ref(struct executor *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void executor_unref(struct executor *c)
{
	if (c != NULL && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		free(c);
}

/* xorshift64*: jitter needs no more, and the core wants its bits with each event. */
static uint64_t next_random(struct baton *b)
{
	b->random |= b->random == 0;
	b->random ^= b->random >> 12;
	b->random ^= b->random << 25;
	b->random ^= b->random >> 27;
	return b->random * 2685821657736338717u;
}

/*
 * Moves the timers of running work: its descriptors become readable at the deadline, even if no
 * thread is left to say so.
 */
static void move_contexts(struct executor *c, struct baton_election *only)
{
	struct app *app = &c->handle->app;

	if (atomic_load(&c->n_contexts) == 0)
		return;
	(void)pthread_mutex_lock(&app->lock);
	for (struct baton_election *e = c->elections; e != NULL; e = e->executor_next)
		if (only == NULL || only == e)
			contexts_move(e);
	(void)pthread_mutex_unlock(&app->lock);
}

static void show_lease(struct executor *c)
{
	bool open = c->core.state != LEASE_CLOSED && !lease_is_left(&c->core);
	uint64_t was_ns = atomic_exchange(c->deadline_cell, c->core.deadline_ns);

	if (was_ns != c->core.deadline_ns)
		move_contexts(c, NULL);
	if (c->core.state == LEASE_LIVE) {
		atomic_store(&c->end_epoch, c->core.epoch);
		atomic_store(&c->end_ns, c->core.end_ns);
	}
	if (atomic_exchange_explicit(&c->is_open, open, memory_order_relaxed) == open)
		return;
	(void)pthread_mutex_lock(&c->handle->app.lock); /* baton_close() waits for it */
	(void)pthread_cond_broadcast(&c->handle->app.changed);
	(void)pthread_mutex_unlock(&c->handle->app.lock);
}

/*
 * The order matters (S5): the term cell is set last when a leadership begins, and cleared first
 * when it ends.
 */
static void show_election(struct baton_election *e)
{
	bool leads = e->core.state == ELECTION_LEADING;

	if (!leads)
		atomic_store_explicit(&e->term_cell, 0, memory_order_release);
	show_lease(e->executor);
	atomic_store_explicit(&e->overdue_cell,
			      e->core.state == ELECTION_RESIGNING ? e->core.overdue_ns : NEVER,
			      memory_order_release);
	if (leads) {
		atomic_store_explicit(&e->work_epoch, e->core.epoch, memory_order_release);
		uint64_t was_ns = atomic_exchange(&e->work_cell, e->core.work_ns);

		atomic_store_explicit(&e->term_cell, e->core.term, memory_order_release);
		if (was_ns != e->core.work_ns)
			move_contexts(e->executor, e);
	}
}

static void set_lease_timer(struct executor *c)
{
	heap_set(&c->handle->heap, &c->timer, lease_wake_ns(&c->core));
}

void executor_step(struct executor *c, struct event *ev)
{
	struct actions out;

	out.n = 0;
	ev->now_ns = clock_boot_ns();
	ev->random = next_random(c->handle);
	lease_step(&c->core, ev, &out);
	if (c->handle->trace != NULL)
		trace_step(c->handle, NULL, ev, &out);
	show_lease(c);
	execute_calls(c, NULL, &out);
	set_lease_timer(c);
	if (c->core.own && c->elections != NULL) /* it can leave if its lease has ended */
		loop_try_leave(c->elections);
}

/*
 * If the application takes no events, and no work runs by our functions, the work counts as ended
 * once it had its time.
 */
static void auto_drain(struct baton_election *e, uint64_t now_ns)
{
	struct app *app = &e->handle->app;

	if (now_ns < e->auto_drain_ns)
		return;
	e->auto_drain_ns = NEVER;
	(void)pthread_mutex_lock(&app->lock);
	(void)events_tell(e, &(struct audience_event){.kind = AUDIENCE_TIMER, .now_ns = now_ns});
	(void)pthread_mutex_unlock(&app->lock);
}

static void set_election_timer(struct baton_election *e)
{
	heap_set(&e->handle->heap, &e->timer,
		 min_ns(election_wake_ns(&e->core, &e->executor->core),
			min_ns(e->auto_drain_ns, e->executor->publish_ns)));
}

/* Where nothing is renewed, a profile that couldn't be shown is shown after a while. */
static void publish_late(struct baton_election *e, uint64_t now_ns)
{
	if (now_ns < e->executor->publish_ns)
		return;
	e->executor->publish_ns = NEVER;
	if (e->publish_due)
		executor_publish(e);
}

void executor_step_election(struct baton_election *e, struct event *ev)
{
	struct actions out;

	out.n = 0;
	ev->now_ns = clock_boot_ns();
	ev->random = next_random(e->handle);
	auto_drain(e, ev->now_ns);
	publish_late(e, ev->now_ns);
	election_step(&e->core, &e->executor->core, ev, &out);
	if (e->handle->trace != NULL)
		trace_step(e->handle, e, ev, &out);
	show_election(e);
	events_seen(e);
	execute_calls(e->executor, e, &out);
	set_lease_timer(e->executor);
	set_election_timer(e);
	if (e->detached)
		loop_try_leave(e);
}

/* ---- actions ---- */

static void lease_job(struct executor *c, const struct action *a, struct job *job, uint8_t kind,
		      int lane)
{
	job->call = a->call;
	job->limit_ns = a->limit_ns;
	job->epoch = a->epoch;
	job->kind = kind;
	job->is_last = a->ended;
	lane_put(&c->handle->lanes[lane], job, false);
}

static void election_job(struct baton_election *e, const struct action *a, uint8_t kind)
{
	struct job *job = &e->job;

	job->call = a->call;
	job->limit_ns = a->limit_ns;
	job->epoch = kind == JOB_OBSERVE ? e->executor->core.epoch : a->epoch;
	job->kind = kind;
	e->arg_nonce = a->nonce;
	e->arg_term = kind == JOB_CAMPAIGN ? a->floor : a->term;
	e->arg_hold_ns = a->hold_ns;
	e->arg_target = a->target;
	e->arg_why = a->why;
	if (a->why == WHY_OVERDUE)
		events_overdue(e);
	lane_put(&e->handle->lanes[BATON_LANE_CAMPAIGN], job, kind == JOB_RELEASE);
}

static void tell_all(struct executor *c, uint8_t kind)
{
	for (struct baton_election *e = c->elections, *next; e != NULL; e = next) {
		struct event ev = {.kind = kind};

		next = e->executor_next;
		executor_step_election(e, &ev);
		if (kind == EV_LEASE_UP)
			executor_publish(e);
	}
}

static void lease_error(struct executor *c, uint8_t why)
{
	for (struct baton_election *e = c->elections; e != NULL; e = e->executor_next)
		if (e->core.wanted)
			events_error(e, FAILURE_LEASE, why, 0);
}

static void execute_lease(struct executor *c, const struct action *a)
{
	switch (a->kind) {
	case ACT_OPEN: lease_job(c, a, &c->job, JOB_OPEN, BATON_LANE_RENEW); break;
	case ACT_RENEW: lease_job(c, a, &c->job, JOB_RENEW, BATON_LANE_RENEW); break;
	case ACT_CLOSE: lease_job(c, a, &c->job, JOB_CLOSE, BATON_LANE_RENEW); break;
	case ACT_CLAIMS: lease_job(c, a, &c->claims_job, JOB_CLAIMS, BATON_LANE_CAMPAIGN); break;
	case ACT_LEASE_UP: tell_all(c, EV_LEASE_UP); break;
	case ACT_LEASE_DOWN: tell_all(c, EV_LEASE_DOWN); break;
	default: lease_error(c, a->why); break;
	}
}

static void execute_election(struct baton_election *e, const struct action *a)
{
	switch (a->kind) {
	case ACT_CAMPAIGN: election_job(e, a, JOB_CAMPAIGN); break;
	case ACT_OBSERVE: election_job(e, a, JOB_OBSERVE); break;
	case ACT_RELEASE: election_job(e, a, JOB_RELEASE); break;
	case ACT_ORDER: election_job(e, a, JOB_ORDER); break;
	default: events_note(e, a); break;
	}
}

/* What the lease wants done (e: NULL), or one of its elections. */
static void execute_calls(struct executor *c, struct baton_election *e, const struct actions *out)
{
	for (uint64_t i = 0; i < out->n; i++) {
		if (e == NULL)
			execute_lease(c, &out->list[i]);
		else
			execute_election(e, &out->list[i]);
	}
}

/* True: no election needs the lease any longer. The lease is closed, and all that hangs on it goes,
 * too. */
static bool goes_with_lease(const struct baton_election *e)
{
	const struct lease *l = &e->executor->core;

	return !l->own && !l->keep && (l->n_started == 0 || atomic_load(&e->handle->is_closing));
}

/*
 * What failed is repeated with the next renewal. A lease that carries one election may see no
 * renewal, so a timer is set there.
 */
static void publish_later(struct baton_election *e)
{
	if (!e->executor->core.own)
		return;
	e->executor->publish_ns = clock_boot_ns() + e->executor->core.timing.retry_max_ns;
	set_election_timer(e);
}

/* Shows us among the candidates; repeated with the next renewal if it fails. */
void executor_publish(struct baton_election *e)
{
	bool show = e->core.wanted && !e->core.options.observe_only;

	if (!e->publish_due) {
		e->publish_due = true;
		e->executor->n_publish_due++;
	}
	if (e->publish_job != NULL || e->executor->core.epoch == 0)
		return;
	if (!show && !e->published) {
		e->publish_due = false;
		e->executor->n_publish_due--;
		return;
	}
	if (!show && goes_with_lease(e))
		return; /* if the lease stays after all, the next renewal makes up for this */
	e->publish_job = calloc(1, sizeof(*e->publish_job));
	if (e->publish_job == NULL) {
		publish_later(e);
		return;
	}
	e->publish_due = false;
	e->executor->n_publish_due--;
	e->publish_job->election = e;
	e->publish_job->executor = e->executor;
	e->publish_job->kind = show ? JOB_PUBLISH : JOB_WITHDRAW;
	e->publish_job->epoch = e->executor->core.epoch;
	lane_put(&e->handle->lanes[BATON_LANE_CAMPAIGN], e->publish_job, false);
}

/* ---- what comes back from the lanes ---- */

static void publish_again(struct executor *c)
{
	if (c->n_publish_due == 0)
		return;
	for (struct baton_election *e = c->elections; e != NULL; e = e->executor_next)
		if (e->publish_due)
			executor_publish(e);
}

static void lease_done(struct executor *c, const struct job *job)
{
	struct event ev = {.call = job->call, .outcome = job->outcome, .n_held = c->n_held};
	bool renewed = job->outcome == BATON_OUTCOME_OK && job->kind != JOB_CLOSE;
	uint64_t sent_ns = job->sent_ns;
	uint64_t epoch = job->epoch;

	ev.kind = job->kind == JOB_OPEN    ? EV_OPENED
		  : job->kind == JOB_RENEW ? EV_RENEWED
					   : EV_CLOSED;
	executor_step(c, &ev); /* the job may be with its lane again after this */
	if (renewed) {
		atomic_store(&c->renewed_boot_ns, sent_ns);
		atomic_store(&c->renewed_wall_ms, clock_wall_ms());
		for (struct baton_election *e = c->elections; e != NULL; e = e->executor_next) {
			events_works(e, FAILURE_LEASE);
			/* The time of an earlier incarnation's work, which may drain, stands. */
			if (atomic_load(&e->work_epoch) == epoch)
				events_renewed(e);
		}
		publish_again(c);
	}
}

/* Gives back a claim whose election was freed (L3). False: no memory, so try again later. */
static bool release_stray(struct executor *c, struct claim_found *claim, uint64_t epoch)
{
	struct stray *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return false;
	s->claim = claim;
	s->job.executor = c;
	s->job.epoch = epoch;
	s->job.kind = JOB_STRAY;
	lane_put(&c->handle->lanes[BATON_LANE_CAMPAIGN], &s->job, true);
	return true;
}

/* Tells each election on the lease whether it is among those found. */
static void tell_claims(struct executor *c, struct claim_found *list, uint64_t call)
{
	for (struct claim_found *f = list; f != NULL; f = f->next) {
		struct baton_election *e = loop_find(c->handle, f->name);

		if (e != NULL && e->executor == c)
			e->claim = f;
	}
	for (struct baton_election *e = c->elections, *next; e != NULL; e = next) {
		struct event told = {.kind = EV_CLAIM, .call = call};

		next = e->executor_next;
		if (e->claim != NULL) {
			told.view.held = true;
			told.view.mine = true;
			told.view.nonce = e->claim->nonce;
			told.view.term = e->claim->term;
		}
		e->claim = NULL;
		executor_step_election(e, &told);
	}
}

static void claims_done(struct executor *c, const struct job *job)
{
	struct event ev = {.kind = EV_CLAIMS, .call = job->call, .outcome = job->outcome};
	bool ok = job->outcome == BATON_OUTCOME_OK;
	uint64_t epoch = job->epoch;
	struct claim_found *list = c->claims;

	c->claims = NULL;
	executor_step(c, &ev); /* the job may be with its lane again after this */
	if (ok)
		tell_claims(c, list, ev.call);
	while (list != NULL) {
		struct claim_found *f = list;

		list = f->next;
		if (!ok || loop_find(c->handle, f->name) != NULL || !release_stray(c, f, epoch))
			free(f);
	}
}

/*
 * Which sources of failures work if this was answered. While another candidate leads, or the
 * election is paused, no campaign is needed.
 */
static unsigned works_with(const struct baton_election *e, unsigned source)
{
	unsigned works = FAILURE_OBSERVE | source;

	if (e->view.held || e->view.paused)
		works |= FAILURE_CAMPAIGN;
	return e->twin ? works : works | FAILURE_TWIN;
}

static void election_done(struct baton_election *e, struct job *job)
{
	static const uint8_t kinds[] = {
		[JOB_RELEASE] = EV_RELEASED,
		[JOB_CAMPAIGN] = EV_CAMPAIGNED,
		[JOB_OBSERVE] = EV_OBSERVED,
		[JOB_ORDER] = EV_ORDERED,
	};
	struct event ev = {.kind = kinds[job->kind],
			   .call = job->call,
			   .outcome = job->outcome,
			   .view = e->view};

	/* An own lease is granted with the claim, also if only the answer was lost. */
	if (job->kind == JOB_CAMPAIGN && e->executor->core.own &&
	    (job->outcome == BATON_OUTCOME_OK || job->outcome == BATON_OUTCOME_UNKNOWN)) {
		atomic_store(&e->executor->renewed_boot_ns, job->sent_ns);
		atomic_store(&e->executor->renewed_wall_ms, clock_wall_ms());
	}
	if (e->twin) /* written by the lane before it gave the job back */
		events_error(e, FAILURE_TWIN, WHY_NONE, BATON_E_DUPLICATE_ID);
	bool is_answered =
		job->outcome == BATON_OUTCOME_OK || job->outcome == BATON_OUTCOME_REFUSED;
	unsigned source = job->kind == JOB_OBSERVE ? FAILURE_OBSERVE : FAILURE_CAMPAIGN;
	bool is_due = e->hint_ns != 0 && (!is_answered || job->sent_ns < e->hint_ns);

	e->hint_ns = 0;
	if (is_answered)
		events_works(e, works_with(e, source));
	e->trying = (uint8_t)(is_answered ? 0 : source);
	executor_step_election(e, &ev); /* the job may be with its lane again after this */
	e->trying = 0;
	if (is_due)
		executor_hint(e);
}

/*
 * If a campaign or a look is under way, the hint waits for it: a call that is sent after the hint
 * sees the change by itself, and no other look is needed.
 */
void executor_hint(struct baton_election *e)
{
	struct event ev = {.kind = EV_HINT};

	if (e->job.busy && (e->job.kind == JOB_CAMPAIGN || e->job.kind == JOB_OBSERVE))
		e->hint_ns = clock_boot_ns();
	else
		executor_step_election(e, &ev);
}

static void publish_done(struct baton_election *e, struct job *job)
{
	bool is_done = job->outcome == BATON_OUTCOME_OK;

	if (job->kind == JOB_WITHDRAW) /* refused: the profile went with its lease */
		is_done = is_done || job->outcome == BATON_OUTCOME_REFUSED;
	e->published = job->kind == JOB_PUBLISH || (e->published && !is_done);
	e->publish_job = NULL;
	free(job);
	if (!is_done && !e->publish_due) {
		e->publish_due = true;
		e->executor->n_publish_due++;
		publish_later(e);
	} else if (e->publish_due) {
		executor_publish(e);
	}
	loop_try_leave(e);
}

void executor_done(struct baton *b, struct job *job)
{
	(void)b;
	job->busy = false;
	switch (job->kind) {
	case JOB_OPEN:
	case JOB_RENEW:
	case JOB_CLOSE: lease_done(job->executor, job); break;
	case JOB_CLAIMS: claims_done(job->executor, job); break;
	case JOB_PUBLISH:
	case JOB_WITHDRAW: publish_done(job->election, job); break;
	case JOB_STRAY:
		free(((struct stray *)(void *)job)->claim);
		free(job);
		break;
	default: election_done(job->election, job); break;
	}
}
