/*
 * driver_calls.c: jobs of one kind for one lease become one call of the driver. The memory for a
 * call stays with the lane, for a few jobs; what a large batch needs in addition is given back. One
 * job can always be served.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "runtime/messages.h"
#include "runtime/pace.h"
#include "runtime/runtime.h"

#define ROOM_KEPT 16 /* 1,000 elections begin in one batch, and then hardly ever have one again */

struct batch {
	struct baton_campaign *campaigns;
	struct baton_release *releases;
	struct baton_observation *observations;
	struct baton_publication *publications;
	struct baton_record *records;
	char (*targets)[BATON_NAME_MAX + 1];
	size_t room;
	struct baton_lease lease;
	struct baton_call call;
	struct pace pace; /* of renewals; their lane's */
};

typedef void verb(struct lane *lane, struct job **jobs, size_t n);

static verb run_lease, run_claims, run_release, run_campaign, run_observe, run_order, run_publish,
	run_withdraw;
static bool calls_reserve(struct batch *t, size_t n);

static verb *const verbs[] = {
	[JOB_OPEN] = run_lease,        [JOB_RENEW] = run_lease,       [JOB_CLOSE] = run_lease,
	[JOB_CLAIMS] = run_claims,     [JOB_RELEASE] = run_release,   [JOB_STRAY] = run_release,
	[JOB_CAMPAIGN] = run_campaign, [JOB_OBSERVE] = run_observe,   [JOB_ORDER] = run_order,
	[JOB_PUBLISH] = run_publish,   [JOB_WITHDRAW] = run_withdraw,
};

struct batch *batch_new(void)
{
	struct batch *t = calloc(1, sizeof(*t));

	if (t != NULL && !calls_reserve(t, 1)) {
		batch_free(t);
		return NULL;
	}
	return t;
}

void batch_free(struct batch *t)
{
	if (t == NULL)
		return;
	free(t->campaigns);
	free(t->releases);
	free(t->observations);
	free(t->publications);
	free(t->records);
	free(t->targets);
	free(t);
}

static bool calls_grow(void **p, size_t n, size_t size)
{
	void *q = realloc(*p, n * size);

	if (q != NULL)
		*p = q;
	return q != NULL;
}

/* Room for so many, which may be fewer than before. False: room is as it was. */
static bool calls_reserve(struct batch *t, size_t n)
{
	if (!calls_grow((void **)&t->campaigns, n, sizeof(*t->campaigns)) ||
	    !calls_grow((void **)&t->releases, n, sizeof(*t->releases)) ||
	    !calls_grow((void **)&t->observations, n, sizeof(*t->observations)) ||
	    !calls_grow((void **)&t->publications, n, sizeof(*t->publications)) ||
	    !calls_grow((void **)&t->records, n, sizeof(*t->records)) ||
	    !calls_grow((void **)&t->targets, n, sizeof(*t->targets)))
		return false;
	t->room = n;
	return true;
}

void lease_id_print(const struct baton *b, uint32_t number, uint64_t epoch,
		    char out[BATON_LEASE_ID_MAX + 1])
{
	(void)snprintf(out, BATON_LEASE_ID_MAX + 1, "%s-%x-%llx", b->incarnation, number,
		       (unsigned long long)epoch);
}

static void name_lease(const struct executor *c, uint64_t epoch, struct baton_lease *out)
{
	lease_id_print(c->handle, c->number, epoch, out->id);
	out->ttl_ns = c->core.timing.lease_ns; /* never changes after it was made */
	out->owner = c->handle->id;
	out->address = c->handle->address;
	out->outlive = c->handle->outlive;
}

void batch_run(struct lane *lane, struct job **jobs, size_t n)
{
	struct batch *t = lane->batch;
	uint64_t now_ns = clock_boot_ns();
	uint64_t call_ns = timing_call_ns(&lane->handle->timing);
	size_t done = 0;
	size_t chunk = n <= t->room || calls_reserve(t, n) ? n : t->room;

	for (size_t i = 0; i < n; i++) {
		jobs[i]->sent_ns = now_ns;
		jobs[i]->outcome = BATON_OUTCOME_FAILED;
		jobs[i]->code = 0;
	}
	while (done < n) {
		size_t k = n - done < chunk ? n - done : chunk;

		t->call = (struct baton_call){.deadline_ns = clock_boot_ns() + call_ns};
		/* A renewal's time runs from when it was due, the others' from now. */
		if (lane->kind == BATON_LANE_RENEW)
			t->call.deadline_ns = jobs[done]->limit_ns;
		name_lease(jobs[done]->executor, jobs[done]->epoch, &t->lease);
		t->call.is_last = jobs[done]->kind == JOB_CLOSE && jobs[done]->is_last;
		atomic_store(&lane->call_until_ns, t->call.deadline_ns);
		verbs[jobs[done]->kind](lane, jobs + done, k);
		atomic_store(&lane->call_until_ns, 0);
		done += k;
	}
	if (t->room > ROOM_KEPT && !calls_reserve(t, ROOM_KEPT))
		t->room = ROOM_KEPT; /* could not shrink: some arrays are larger */
}

/* ---- the verbs ---- */

static void calls_finish(struct lane *lane, struct job *job, int outcome, int code)
{
	struct baton *b = lane->handle;
	const struct baton_error *err = &lane->batch->call.error;

	job->outcome = (uint8_t)outcome;
	job->code = code != 0 ? code : err->code;
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED) {
		if (!lane->batch->call.is_unasked)
			events_store(b, &(struct baton_error){.code = 0});
		return;
	}
	struct baton_error said = *err;

	if (said.code == 0)
		said.code = code != 0 ? code : BATON_E_UNAVAILABLE;
	events_store(b, &said);
}

/* For metrics; and once an hour for the log, if renewals are slow. */
static void count_renewal(struct lane *lane, uint64_t took_ns, int outcome)
{
	struct baton *b = lane->handle;
	uint64_t call_ns = timing_call_ns(&b->timing);
	struct pace last;

	count_into(&b->counters.renew_latency, took_ns / 1000);
	atomic_fetch_add(
		outcome == BATON_OUTCOME_OK ? &b->counters.renewed : &b->counters.renew_failed, 1);
	if (pace_add(&lane->batch->pace, clock_boot_ns(), took_ns, call_ns, &last))
		log_put(b, BATON_LOG_WARN, 0, NULL, 0, NULL,
			"renewals are slow: in the last hour %u of %u took more than %llu ms, half "
			"of what one call may take; see baton doctor --measure for timings",
			last.n_slow, last.n, (unsigned long long)(call_ns / 2 / CLOCK_NS_PER_MS));
}

static void run_lease(struct lane *lane, struct job **jobs, size_t n)
{
	struct baton *b = lane->handle;
	struct batch *t = lane->batch;
	const struct baton_driver *d = b->driver;
	struct job *job = jobs[0];
	int outcome;

	for (size_t i = 1; i < n; i++) /* there is one of these per lease */
		jobs[i]->outcome = BATON_OUTCOME_FAILED;
	if (job->kind == JOB_OPEN) {
		outcome = d->lease_open(lane->driver_lane, &t->call, &t->lease);
	} else if (job->kind == JOB_CLOSE) {
		outcome = d->lease_close(lane->driver_lane, &t->call, &t->lease);
	} else {
		uint64_t began_ns = clock_boot_ns();

		outcome = d->lease_renew(lane->driver_lane, &t->call, &t->lease,
					 &job->executor->n_held);
		count_renewal(lane, clock_boot_ns() - began_ns, outcome);
	}
	calls_finish(lane, job, outcome, 0);
}

static void found_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct executor *c = arg;
	struct claim_found *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		c->claims_short = true;
		return;
	}
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	f->nonce = nonce;
	f->term = term;
	f->next = c->claims;
	c->claims = f;
}

static void run_claims(struct lane *lane, struct job **jobs, size_t n)
{
	struct batch *t = lane->batch;
	struct executor *c = jobs[0]->executor;

	(void)n;
	c->claims_short = false;
	int outcome = lane->handle->driver->claims(lane->driver_lane, &t->call, &t->lease,
						   found_claim, c);

	/* Half a list would make leaders lose what they hold. */
	if (c->claims_short)
		outcome = BATON_OUTCOME_FAILED;
	calls_finish(lane, jobs[0], outcome, c->claims_short ? BATON_E_MEMORY : 0);
}

static void run_release(struct lane *lane, struct job **jobs, size_t n)
{
	struct batch *t = lane->batch;

	for (size_t i = 0; i < n; i++) {
		struct baton_election *e = jobs[i]->election;
		struct baton_release *r = &t->releases[i];

		*r = (struct baton_release){.lease_id = t->lease.id,
					    .outcome = BATON_OUTCOME_FAILED};
		if (e != NULL) {
			r->name = e->name;
			r->nonce = e->arg_nonce;
			r->term = e->arg_term;
			r->reason = text_word_of_why(e->lost_why);
			r->hold_ns = e->arg_hold_ns;
			peers_name(lane->handle, e->arg_target, t->targets[i], NULL);
			r->reserve_for = t->targets[i][0] != '\0' ? t->targets[i] : NULL;
		} else {
			const struct claim_found *f = ((struct stray *)(void *)jobs[i])->claim;

			r->name = f->name;
			r->nonce = f->nonce;
			r->term = f->term;
			r->reason = "orphan";
		}
	}
	lane->handle->driver->release(lane->driver_lane, &t->call, t->releases, n);
	atomic_fetch_add(&lane->handle->counters.releases, n);
	for (size_t i = 0; i < n; i++)
		calls_finish(lane, jobs[i], t->releases[i].outcome, t->releases[i].code);
}

/* A copy, because the application may change it meanwhile. False: no memory for it. */
static bool take_profile(struct baton_election *e, struct baton_profile *p)
{
	const struct options *o = &e->core.options; /* never changes */

	(void)pthread_mutex_lock(&e->handle->app.lock);
	char *metadata = e->metadata != NULL ? strdup(e->metadata) : NULL;
	bool done = e->metadata == NULL || metadata != NULL;

	p->score_permille = e->score;
	p->is_healthy = !o->check_health || e->score >= o->min_score;
	(void)pthread_mutex_unlock(&e->handle->app.lock);
	p->metadata = metadata != NULL ? metadata : "";
	p->priority = o->priority;
	return done;
}

static void no_memory(struct baton_call *call)
{
	call->error.code = BATON_E_MEMORY;
	(void)strcpy(call->error.text, "out of memory");
}

static void drop_profile(struct baton_profile *p)
{
	if (p->metadata[0] != '\0')
		free((char *)(uintptr_t)p->metadata);
}

/*
 * Puts what the record says into the core's words. If there is no memory for the name of a
 * candidate, the call counts as failed. Otherwise a standby couldn't name its leader, and a leader
 * would have no candidate to hand over to, until something else happens (N21). A campaign that was
 * won stays won.
 */
static void take_view(struct job *job, const struct baton_record *record, int read, int *outcome,
		      int *code)
{
	struct baton_election *e = job->election;

	if (peers_view(e, job, record, &e->view) || *outcome != read)
		return;
	*outcome = BATON_OUTCOME_FAILED;
	*code = BATON_E_MEMORY;
}

static void run_campaign(struct lane *lane, struct job **jobs, size_t n)
{
	struct baton *b = lane->handle;
	struct batch *t = lane->batch;
	uint64_t began_ns = clock_boot_ns();
	bool ready = true;

	for (size_t i = 0; i < n; i++) {
		struct baton_election *e = jobs[i]->election;

		t->records[i] = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
		t->campaigns[i] = (struct baton_campaign){.name = e->name,
							  .nonce = e->arg_nonce,
							  .floor = e->arg_term,
							  .outcome = BATON_OUTCOME_FAILED,
							  .record = &t->records[i]};
		ready = take_profile(e, &t->campaigns[i].profile) && ready;
	}
	if (ready)
		b->driver->campaign(lane->driver_lane, &t->call, &t->lease, t->campaigns, n);
	else
		no_memory(&t->call); /* all are tried again */
	for (size_t i = 0; i < n; i++) {
		struct baton_election *e = jobs[i]->election;
		struct baton_campaign *c = &t->campaigns[i];

		drop_profile(&c->profile);
		take_view(jobs[i], c->record, BATON_OUTCOME_REFUSED, &c->outcome, &c->code);
		if (c->outcome == BATON_OUTCOME_OK)
			e->view.term = c->term;
		e->before = (uint8_t)((unsigned)c->record->before % (BATON_END_EXPIRED + 1));
		atomic_fetch_add(c->outcome == BATON_OUTCOME_OK        ? &b->counters.won
				 : c->outcome == BATON_OUTCOME_REFUSED ? &b->counters.refused
								       : &b->counters.failed,
				 1);
		atomic_fetch_add(c->outcome == BATON_OUTCOME_OK        ? &e->n_won
				 : c->outcome == BATON_OUTCOME_REFUSED ? &e->n_refused
								       : &e->n_failed,
				 1);
		calls_finish(lane, jobs[i], c->outcome, c->code);
	}
	count_into(&b->counters.campaign_latency, (clock_boot_ns() - began_ns) / 1000);
}

static void run_observe(struct lane *lane, struct job **jobs, size_t n)
{
	struct batch *t = lane->batch;

	for (size_t i = 0; i < n; i++) {
		t->records[i] = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
		t->observations[i] = (struct baton_observation){.name = jobs[i]->election->name,
								.lease_id = t->lease.id,
								.id = lane->handle->id,
								.outcome = BATON_OUTCOME_FAILED,
								.record = &t->records[i]};
	}
	lane->handle->driver->observe(lane->driver_lane, &t->call, t->observations, n);
	atomic_fetch_add(&lane->handle->counters.observes, n);
	for (size_t i = 0; i < n; i++) {
		struct baton_observation *o = &t->observations[i];

		take_view(jobs[i], o->record, BATON_OUTCOME_OK, &o->outcome, &o->code);
		calls_finish(lane, jobs[i], o->outcome, o->code);
	}
}

static void run_order(struct lane *lane, struct job **jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct baton_election *e = jobs[i]->election;
		struct baton_order order = {.term = e->arg_term, .kind = BATON_ORDER_TRANSFER};

		if (getrandom(&order.id, sizeof(order.id), 0) != (ssize_t)sizeof(order.id))
			order.id = clock_boot_ns();
		order.id |= 1; /* never 0 */
		(void)snprintf(order.target, sizeof(order.target), "%s", lane->handle->id);
		calls_finish(lane, jobs[i],
			     lane->handle->driver->order(lane->driver_lane, &lane->batch->call,
							 e->name, &order),
			     0);
	}
}

static void run_publish(struct lane *lane, struct job **jobs, size_t n)
{
	struct batch *t = lane->batch;

	bool ready = true;

	for (size_t i = 0; i < n; i++) {
		t->publications[i] = (struct baton_publication){.name = jobs[i]->election->name,
								.outcome = BATON_OUTCOME_FAILED};
		ready = take_profile(jobs[i]->election, &t->publications[i].profile) && ready;
	}
	if (ready)
		lane->handle->driver->publish(lane->driver_lane, &t->call, &t->lease,
					      t->publications, n);
	else
		no_memory(&t->call);
	for (size_t i = 0; i < n; i++) {
		drop_profile(&t->publications[i].profile);
		calls_finish(lane, jobs[i], t->publications[i].outcome, t->publications[i].code);
	}
}

static void run_withdraw(struct lane *lane, struct job **jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		calls_finish(lane, jobs[i],
			     lane->handle->driver->withdraw(lane->driver_lane, &lane->batch->call,
							    &lane->batch->lease,
							    jobs[i]->election->name),
			     0);
}
