/* election.c: candidates: making, starting, stopping, asking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "lib/lib.h"
#include "lib/messages.h"

static int check_options(struct baton *b, const struct baton_election_options *o,
			 struct options *core, struct baton_error *err);
static int election_attach(struct baton *b, struct baton_election *e, struct baton_error *err);

void baton_election_options_init_sized(struct baton_election_options *options, size_t size)
{
	struct baton_election_options o = {
		.size = size,
		.release_on_stop = true,
		.check_health = true,
		.step_down_unhealthy = true,
		.min_score_permille = 800,
	};

	lib_init_sized(options, size, &o, sizeof(o));
}

int baton_election_new(struct baton *b, const char *name,
		       const struct baton_election_options *options, struct baton_election **out,
		       struct baton_error *err)
{
	struct baton_election_options o;
	struct options core;
	int code = lib_check(b);

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	if (out == NULL || name == NULL || !text_is_name(name, BATON_NAME_MAX))
		return lib_fail(err, BATON_E_INVALID,
				"not a valid name of an election; expected 1 to %d bytes of UTF-8 "
				"without control characters",
				BATON_NAME_MAX);
	*out = NULL;
	baton_election_options_init(&o);
	if (options != NULL)
		code = lib_take_sized(&o, sizeof(o), FIRST_ELECTION_OPTIONS, options, options->size,
				      err);
	if (code != 0)
		return code;
	code = check_options(b, &o, &core, err);
	if (code == 0) {
		struct baton_error mine = {0};

		code = lib_start(b, err != NULL ? err : &mine);
	}
	if (code != 0)
		return code;
	size_t size = strlen(name) + 1;
	struct baton_election *e = calloc(1, sizeof(*e) + size);

	if (e == NULL || (o.metadata != NULL && (e->metadata = strdup(o.metadata)) == NULL)) {
		free(e);
		return lib_fail(err, BATON_E_MEMORY, "out of memory");
	}
	memcpy(e->name, name, size);
	e->handle = b;
	e->handler = o.handler;
	e->handler_arg = o.handler_arg;
	audience_init(&e->audience, o.handler != NULL, o.drain_by_hand, o.tell_renewals);
	election_init(&e->core, SELF, &core);
	code = election_attach(b, e, err);
	if (code == 0)
		*out = e;
	return code;
}

/*
 * A store that may forget leases waits for the longest one, so that is the same for all candidates.
 */
static int check_longest(const struct baton *b, struct baton_error *err)
{
	const struct baton_traits *t = b->traits;
	unsigned long long ms = (b->timing.lease_ns + NS_PER_MS - 1) / NS_PER_MS;

	if (t->max_lease_ns == 0 || b->timing.lease_ns <= t->max_lease_ns)
		return 0;
	if (t->max_lease_option == NULL)
		return lib_fail(err, BATON_E_TIMING,
				"a lease of %llu ms is longer than the %llu ms that this store "
				"allows; make the lease shorter",
				ms, (unsigned long long)(t->max_lease_ns / NS_PER_MS));
	return lib_fail(err, BATON_E_TIMING,
			"a lease of %llu ms is longer than the %llu ms that this store allows; "
			"write %s=%llu in the URL of every candidate, or make the lease shorter",
			ms, (unsigned long long)(t->max_lease_ns / NS_PER_MS), t->max_lease_option,
			ms);
}

static int check_options(struct baton *b, const struct baton_election_options *o,
			 struct options *core, struct baton_error *err)
{
	if (o->metadata != NULL && !text_is_metadata(o->metadata))
		return lib_fail(
			err, BATON_E_INVALID,
			"not valid metadata; expected up to %d bytes of UTF-8 without control "
			"characters",
			BATON_METADATA_MAX);
	int code = o->observe_only ? 0 : check_longest(b, err);

	if (code != 0)
		return code;
	*core = (struct options){
		.work_timeout_ns = o->work_timeout_ms * NS_PER_MS,
		.preempt_ns = o->preempt_ms * NS_PER_MS,
		.priority = o->priority,
		.min_score = (uint16_t)(o->min_score_permille > UINT16_MAX ? UINT16_MAX
									   : o->min_score_permille),
		.check_health = o->check_health,
		.step_down_unhealthy = o->step_down_unhealthy,
		.release_on_stop = o->release_on_stop,
		.observe_only = o->observe_only,
		.manual = o->manual,
	};
	enum timing_fault fault = options_check(core, &b->timing);

	if (o->work_timeout_ms > NEVER / NS_PER_MS)
		fault = TIMING_WORK_TIMEOUT;
	if (o->preempt_ms > NEVER / NS_PER_MS)
		fault = TIMING_PREEMPT;
	return fault == TIMING_OK ? 0 : lib_fail(err, BATON_E_TIMING, "%s", text_timing(fault));
}

static int election_attach(struct baton *b, struct baton_election *e, struct baton_error *err)
{
	int code = 0;

	e->refs = 1; /* the application's */
	e->auto_drain_ns = NEVER;
	e->poke.kind = MSG_POKE;
	e->score = SCORE_MAX;
	e->job.election = e;
	e->attach_code = 1; /* not yet */
	code = loop_post(b, MSG_ATTACH, e, NULL);
	(void)pthread_mutex_lock(&b->app.lock);
	while (code == 0 && e->attach_code > 0)
		(void)events_wait(b, NEVER);
	if (code == 0)
		code = e->attach_code;
	(void)pthread_mutex_unlock(&b->app.lock);
	if (code == 0)
		return 0;
	(void)lib_fail(err, code,
		       code == BATON_E_EXISTS ? "this handle already has an election named %.100s"
					      : "no memory for the election %.100s",
		       e->name);
	election_unref(e);
	return code;
}

int lib_post(struct baton_election *e, uint8_t kind)
{
	struct event ev = {.kind = kind};
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	return code != 0 ? code : loop_post(e->handle, MSG_EVENT, e, &ev);
}

int baton_election_start(struct baton_election *e)
{
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	struct app *app = &e->handle->app;

	/* With the lock: a stop that the loop reports before it hears of this start is not about
	 * it. */
	(void)pthread_mutex_lock(&app->lock);
	code = lib_post(e, EV_START);
	if (code == 0)
		(void)events_say(e, AUDIENCE_START);
	(void)pthread_mutex_unlock(&app->lock);
	return code;
}

/*
 * app.lock is held. A function that runs on this thread ends after the stop. What this thread has
 * entered by baton_enter() may be left by another thread meanwhile, but nothing says that it will.
 */
static bool waits_for_itself(const struct baton_election *e, int64_t timeout_ms)
{
	for (const struct baton_context *c = e->contexts; c != NULL; c = c->next)
		if (c->thread == thread_number() && (c->is_run || timeout_ms < 0))
			return true;
	return false;
}

int baton_election_stop(struct baton_election *e, int64_t timeout_ms)
{
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	struct baton *b = e->handle;
	uint64_t until_ns = events_until_ns(events_on_dispatcher(b) ? 0 : timeout_ms);

	(void)pthread_mutex_lock(&b->app.lock);
	if (waits_for_itself(e, timeout_ms))
		until_ns = 0;
	(void)events_say(e, AUDIENCE_STOP);
	(void)pthread_mutex_unlock(&b->app.lock);
	code = loop_tell(e, &(struct event){.kind = EV_STOP});
	if (code != 0)
		return code;
	(void)pthread_mutex_lock(&b->app.lock);
	/* Another thread may start it again meanwhile: this stop is over all the same. */
	const struct audience *a = &e->audience;
	uint16_t due = a->stops_due;

	/* S8: no handler is called after this has returned, also if the election had stopped
	 * before. */
	while ((!audience_has_stopped(a, due) || (a->stopped && audience_is_busy(a))) &&
	       events_wait(b, until_ns))
		;
	code = audience_has_stopped(a, due) ? 0 : BATON_E_TIMEOUT;
	(void)pthread_mutex_unlock(&b->app.lock);
	return code;
}

void baton_election_free(struct baton_election *e)
{
	if (e == NULL || fork_cells_forked(e->handle))
		return;
	struct baton *b = e->handle;
	int64_t patience_ms = (int64_t)(timing_gone_ns(&b->timing) / NS_PER_MS);
	uint64_t until_ns = events_until_ns(events_on_dispatcher(b) ? 0 : patience_ms);

	(void)baton_election_stop(e, patience_ms);
	(void)pthread_mutex_lock(&b->app.lock);
	(void)events_say(e, AUDIENCE_FREE);
	loop_poke(e, POKE_DETACH);
	while (!e->left && events_wait(b, until_ns)) /* then its name is free again */
		;
	events_mute(e);
	while (e->handler != NULL && e->audience.token != 0 && !events_on_dispatcher(b))
		(void)events_wait(b, NEVER);
	(void)pthread_mutex_unlock(&b->app.lock);
	election_unref(e);
}

/* ---- questions ---- */

/*
 * Wait-free. The deadline is read before the term: a leadership's term is taken away before a
 * new incarnation of the lease gets a deadline, so the two always belong to the same incarnation.
 */
bool lib_leads(const struct baton_election *e, uint64_t *term)
{
	uint64_t deadline_ns =
		atomic_load_explicit(e->executor->deadline_cell, memory_order_acquire);
	uint64_t t = atomic_load_explicit(&e->term_cell, memory_order_acquire);
	uint64_t work_ns = atomic_load_explicit(&e->work_cell, memory_order_relaxed);

	*term = t;
	return t != 0 && clock_boot_ns() < min_ns(deadline_ns, work_ns);
}

bool baton_is_leader(const struct baton_election *e)
{
	uint64_t term;

	return lib_leads(e, &term);
}

uint64_t baton_term(const struct baton_election *e)
{
	uint64_t term;

	return lib_leads(e, &term) ? term : 0;
}

int64_t baton_time_left_ms(const struct baton_election *e)
{
	uint64_t term;

	if (!lib_leads(e, &term))
		return 0;
	uint64_t end_ns = deadline_of(e);
	uint64_t now_ns = clock_boot_ns();

	return end_ns > now_ns ? (int64_t)((end_ns - now_ns) / NS_PER_MS) : 0;
}

const char *baton_election_name(const struct baton_election *e)
{
	return e->name;
}

static int public_state(uint8_t state)
{
	switch (state) {
	case ELECTION_STOPPED: return BATON_STATE_STOPPED;
	case ELECTION_STANDBY: return BATON_STATE_STANDBY;
	case ELECTION_CAMPAIGNING:
	case ELECTION_SEEKING: return BATON_STATE_CAMPAIGNING;
	case ELECTION_LEADING: return BATON_STATE_LEADING;
	default: return BATON_STATE_RESIGNING;
	}
}

int baton_get_deadline(const struct baton_election *e, int64_t *deadline_boot_ns,
		       int64_t *work_end_boot_ns)
{
	uint64_t term = 0;
	bool leads = e != NULL && lib_leads(e, &term);

	if (deadline_boot_ns != NULL)
		*deadline_boot_ns = leads ? (int64_t)deadline_of(e) : 0;
	if (work_end_boot_ns != NULL)
		*work_end_boot_ns = e != NULL ? (int64_t)work_end_of(e) : 0;
	return leads;
}

int baton_get_status_sized(const struct baton_election *e, struct baton_status *status, size_t size)
{
	int code = e != NULL && status != NULL && size >= sizeof(status->size)
			   ? lib_check(e->handle)
			   : BATON_E_INVALID;

	if (code != 0)
		return code;
	struct baton *b = e->handle;
	struct baton_status all = {0};

	(void)pthread_mutex_lock(&b->app.lock);
	all.state = public_state(e->seen_state);
	all.paused = e->seen_paused;
	all.term = e->seen_term;
	all.leader_since_ms = e->seen_leader != NOBODY ? e->leader_since_ms : 0;
	all.score_permille = e->score;
	uint32_t leader = e->seen_leader;
	uint64_t now_ns = clock_boot_ns();

	if (e->wait != NULL && e->wait->until_ns > now_ns) {
		all.wait_ms = (int64_t)((e->wait->until_ns - now_ns) / NS_PER_MS);
		(void)snprintf(all.wait, sizeof(all.wait), "%s", e->wait->text);
	}
	if (leader != NOBODY && e->leader_metadata != NULL)
		(void)snprintf(all.leader_metadata, sizeof(all.leader_metadata), "%s",
			       e->leader_metadata);
	(void)pthread_mutex_unlock(&b->app.lock);
	peers_name(b, leader, all.leader, all.leader_address);
	all.is_leader = baton_is_leader(e);
	all.time_left_ms = baton_time_left_ms(e);
	all.last_renewal_ms = atomic_load(&e->executor->renewed_wall_ms);
	all.last_renewal_boot_ns = (int64_t)atomic_load(&e->executor->renewed_boot_ns);
	all.work_end_boot_ns = (int64_t)work_end_of(e);
	lib_give_sized(status, size, &all, sizeof(all));
	return 0;
}

int baton_election_condition(const struct baton_election *e, struct baton_error *err)
{
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	if (err != NULL)
		*err = (struct baton_error){0};
	if (baton_is_leader(e))
		return BATON_CONDITION_HEALTHY;
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	int condition =
		e->seen_leader != NOBODY ? BATON_CONDITION_HEALTHY : BATON_CONDITION_DEGRADED;

	if (atomic_load(&app->store_fails) != 0) {
		condition = BATON_CONDITION_UNHEALTHY;
		if (err != NULL)
			*err = app->store_error;
	}
	(void)pthread_mutex_unlock(&app->lock);
	return condition;
}

int baton_report_health(struct baton_election *e, uint32_t score_permille, const char *metadata)
{
	struct event ev = {.kind = EV_HEALTH, .score = (uint16_t)score_permille};
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	if (score_permille > SCORE_MAX || (metadata != NULL && !text_is_metadata(metadata)))
		return BATON_E_INVALID;
	char *copy = metadata != NULL ? strdup(metadata) : NULL;

	if (metadata != NULL && copy == NULL)
		return BATON_E_MEMORY;
	(void)pthread_mutex_lock(&e->handle->app.lock);
	e->score = score_permille;
	if (copy != NULL) {
		free(e->metadata);
		e->metadata = copy;
	}
	(void)pthread_mutex_unlock(&e->handle->app.lock);
	return loop_tell(e, &ev);
}
