/*
 * local.c: a candidate in this process. Its handler writes down every event with the time, and at
 * its end the whole list is checked against S8, in every case, whatever the case is about.
 */
#include "lists.h"
#include "suite.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void record(void *arg, const struct baton_event *event)
{
	struct local *p = arg;

	pthread_mutex_lock(&p->lock);
	if (p->n_seen == p->room) {
		size_t room = p->room * 2;
		struct seen *more = realloc(p->seen, room * sizeof(*more));

		CHECK(p->t, more != NULL, "no memory");
		p->seen = more;
		p->room = room;
	}
	p->seen[p->n_seen++] = (struct seen){.event = *event, .at_ns = now_ns()};
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (p->hook != NULL)
		p->hook(p, event);
}

static struct local *local_alloc(struct testcase *t, const struct cast *cast)
{
	struct local *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;

	CHECK(t, p != NULL && t->n_locals < LOCALS_MAX, "no room for one more local candidate");
	p->t = t;
	p->room = 64;
	p->seen = calloc(p->room, sizeof(*p->seen));
	p->hook = cast->hook;
	p->arg = cast->arg;
	CHECK(t, p->seen != NULL, "no memory");
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	t->locals[t->n_locals++] = p;
	return p;
}

static void contend(struct local *p, const struct cast *cast)
{
	struct baton_election_options o;
	struct baton_error err = {0};

	baton_election_options_init(&o);
	if (cast->tune_election != NULL)
		cast->tune_election(&o);
	if (!cast->pulls) {
		o.handler = record;
		o.handler_arg = p;
	}
	const char *name = cast->name != NULL ? cast->name : p->t->name;
	int rc;

	do
		rc = baton_election_new(p->b, name, &o, &p->e, &err);
	while (faults_retry(rc));
	CHECK(p->t, rc == 0, "baton_election_new: %s", err.text);
	if (!cast->idle) {
		do
			rc = baton_election_start(p->e);
		while (faults_retry(rc));
		CHECK(p->t, rc == 0, "baton_election_start: %s", baton_strerror(rc));
	}
}

struct local *local_new(struct testcase *t, const struct cast *cast)
{
	static const struct cast usual;
	struct baton_options o;
	struct baton_error err = {0};

	if (cast == NULL)
		cast = &usual;
	struct local *p = local_alloc(t, cast);

	baton_options_init(&o);
	o.id = cast->id;
	o.lease_ms = cast->lease_ms != 0 ? cast->lease_ms : t->lease_ms;
	if (cast->tune != NULL)
		cast->tune(&o);
	int rc;

	do
		rc = baton_open(cast->url != NULL ? cast->url : t->url, &o, &p->b, &err);
	while (faults_retry(rc));
	CHECK(t, rc == 0, "baton_open: %s", err.text);
	snprintf(p->id, sizeof(p->id), "%s", baton_id(p->b));
	contend(p, cast);
	return p;
}

struct local *local_more(struct local *with, const struct cast *cast)
{
	struct local *p = local_alloc(with->t, cast);

	p->b = with->b;
	snprintf(p->id, sizeof(p->id), "%s", with->id);
	contend(p, cast);
	return p;
}

/* ---- the end ---- */

/* S8: became and lost alternate, in the same term, terms grow, and nothing comes after the stop. */
static void check_order(struct local *p)
{
	uint64_t leads_in = 0;
	uint64_t highest = 0;

	for (size_t i = 0; i < p->n_seen; i++) {
		const struct baton_event *ev = &p->seen[i].event;

		if (ev->kind == BATON_EVENT_BECAME) {
			CHECK(p->t, leads_in == 0,
			      "S8: became %" PRIu64 " while leading in %" PRIu64, ev->term,
			      leads_in);
			CHECK(p->t, ev->term > highest, "S3: term %" PRIu64 " after %" PRIu64,
			      ev->term, highest);
			highest = ev->term;
			leads_in = ev->term;
		} else if (ev->kind == BATON_EVENT_LOST) {
			CHECK(p->t, leads_in == ev->term,
			      "S8: lost %" PRIu64 " while leading in %" PRIu64, ev->term, leads_in);
			CHECK(p->t, ev->reason != BATON_REASON_NONE, "lost without a reason");
			leads_in = 0;
		}
	}
	CHECK(p->t, leads_in == 0, "S8: term %" PRIu64 " was never lost", leads_in);
}

void local_close(struct local *p)
{
	struct testcase *t = p->t;
	bool shared = false;

	for (unsigned i = 0; i < t->n_locals; i++)
		shared = shared || (t->locals[i] != p && t->locals[i]->b == p->b);
	if (shared)
		baton_election_free(p->e);
	else
		baton_close(p->b);
	p->e = NULL; /* nobody asks it any more, not even why the next check failed */
	check_order(p);
	for (unsigned i = 0; i < t->n_locals; i++) {
		if (t->locals[i] == p)
			t->locals[i--] = t->locals[--t->n_locals];
	}
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	free(p->seen);
	free(p);
}

void local_stop(struct local *p)
{
	int rc = baton_election_stop(p->e, (int64_t)soon_ms(p->t));

	CHECK(p->t, rc == 0, "baton_election_stop: %s", baton_strerror(rc));
}

/* ---- looking at events ---- */

static struct timespec after(uint64_t ms)
{
	struct timespec when;

	clock_gettime(CLOCK_MONOTONIC, &when);
	when.tv_sec += (time_t)(ms / 1000);
	when.tv_nsec += (long)(ms % 1000 * MS);
	if (when.tv_nsec >= 1000000000) {
		when.tv_sec++;
		when.tv_nsec -= 1000000000;
	}
	return when;
}

/* What it returns is a copy, good until the next call of the same thread. */
const struct seen *local_try_next(struct local *p, int kind, uint64_t limit_ms)
{
	static _Thread_local struct seen found;
	struct timespec limit = after(limit_ms);
	bool has = false;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->cursor < p->n_seen && !has)
			has = p->seen[p->cursor++].event.kind == kind;
		if (has || pthread_cond_timedwait(&p->changed, &p->lock, &limit) != 0)
			break;
	}
	if (has)
		found = p->seen[p->cursor - 1];
	pthread_mutex_unlock(&p->lock);
	return has ? &found : NULL;
}

const struct seen *local_next(struct local *p, int kind, uint64_t limit_ms)
{
	static const char *const names[] = {"", "became", "lost", "changed", "error", "stopped"};

	snprintf(p->t->result->step, sizeof(p->t->result->step), "event %s", names[kind]);
	const struct seen *s = local_try_next(p, kind, limit_ms);

	CHECK(p->t, s != NULL, "no event %s for %.100s within %" PRIu64 " ms", names[kind], p->id,
	      limit_ms);
	p->t->result->step[0] = '\0';
	return s;
}

/* Never blocks: a failing check may come from under the lock. */
bool local_last(struct local *p, int kind, struct seen *out)
{
	bool has = false;

	if (pthread_mutex_trylock(&p->lock) != 0)
		return false;
	for (size_t i = p->n_seen; i-- > 0 && !has;) {
		has = p->seen[i].event.kind == kind;
		if (has)
			*out = p->seen[i];
	}
	pthread_mutex_unlock(&p->lock);
	return has;
}

void local_catch_up(struct local *p)
{
	pthread_mutex_lock(&p->lock);
	p->cursor = p->n_seen;
	pthread_mutex_unlock(&p->lock);
}

size_t local_count(struct local *p, int kind)
{
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n_seen; i++)
		n += kind == 0 || p->seen[i].event.kind == kind;
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* ---- looking at leaders ---- */

/* Who has just lost it again is in no term, and proves nothing. */
void local_is_above(struct local *p, uint64_t term)
{
	uint64_t now = baton_term(p->e);

	CHECK(p->t, now == 0 || now > term, "S3: term %" PRIu64 " after %" PRIu64, now, term);
}

bool local_is_leader(void *local)
{
	return baton_is_leader(((struct local *)local)->e);
}

static bool is_late(int rc, uint64_t end_ns)
{
	return (rc == BATON_E_UNAVAILABLE || rc == BATON_E_TIMEOUT) && now_ns() < end_ns;
}

int patient_observe(struct testcase *t, struct baton *b, const char *name,
		    struct baton_observed *status, struct baton_error *err)
{
	uint64_t end_ns = now_ns() + t->lease_ms * MS;
	int rc = baton_observe(b, name, status, err);

	while (is_late(rc, end_ns))
		rc = baton_observe(b, name, status, err);
	return rc;
}

int patient_list(struct testcase *t, struct baton *b, const char *name,
		 struct baton_candidate *list, size_t max, struct baton_error *err)
{
	uint64_t end_ns = now_ns() + t->lease_ms * MS;
	int rc = test_candidates(b, name, list, max, err);

	while (is_late(rc, end_ns))
		rc = test_candidates(b, name, list, max, err);
	return rc;
}

int patient_history(struct testcase *t, struct baton *b, const char *name,
		    struct baton_leadership *list, size_t max, struct baton_error *err)
{
	uint64_t end_ns = now_ns() + t->lease_ms * MS;
	int rc = test_history(b, name, list, max, err);

	while (is_late(rc, end_ns))
		rc = test_history(b, name, list, max, err);
	return rc;
}

int patient_transfer(struct testcase *t, struct local *from, struct local *to, bool by_order,
		     struct baton_error *err)
{
	uint64_t end_ns = now_ns() + t->lease_ms * MS;
	int rc;

	do {
		rc = by_order ? baton_order_transfer(to->b, t->name, 0, to->id, NULL, err)
			      : baton_transfer(from->e, to->id, err);
	} while (is_late(rc, end_ns));
	return rc;
}

bool local_is_no_leader(void *local)
{
	return !baton_is_leader(((struct local *)local)->e);
}

uint64_t local_leads(struct local *p, uint64_t limit_ms)
{
	uint64_t end_ns = now_ns() + limit_ms * MS;
	uint64_t term;

	do { /* who has just lost it again is in no term */
		await(p->t, local_is_leader, p, limit_ms, "a candidate to lead");
		term = baton_term(p->e);
	} while (term == 0 && now_ns() < end_ns);
	CHECK(p->t, term != 0, "it leads for moments only");
	return term;
}

void local_status(struct local *p, struct baton_status *status)
{
	memset(status, 0, sizeof(*status));
	int rc = baton_get_status(p->e, status);

	CHECK(p->t, rc == 0, "baton_get_status: %s", baton_strerror(rc));
}

struct sight {
	struct local *p;
	const char *leader;
};

static bool is_seen(void *arg)
{
	struct sight *s = arg;
	struct baton_status status;

	local_status(s->p, &status);
	return strcmp(status.leader, s->leader) == 0;
}

void local_sees(struct local *p, const char *leader, uint64_t limit_ms)
{
	struct sight s = {p, leader};
	char what[128];

	snprintf(what, sizeof(what), "%.40s to see %.40s as leader", p->id, leader);
	await(p->t, is_seen, &s, limit_ms, what);
}

struct knowledge {
	struct local *p;
	uint64_t term;
};

static bool is_known(void *arg)
{
	struct knowledge *k = arg;
	struct baton_status status;

	local_status(k->p, &status);
	return status.term >= k->term;
}

void local_knows(struct local *p, uint64_t term, uint64_t limit_ms)
{
	struct knowledge k = {p, term};

	await(p->t, is_known, &k, limit_ms, "a standby to know the term");
}

struct local *leader_of(struct local **list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (baton_is_leader(list[i]->e))
			return list[i];
	}
	return NULL;
}

struct crowd {
	struct local **list;
	unsigned n;
};

static bool has_leader(void *arg)
{
	struct crowd *c = arg;

	return leader_of(c->list, c->n) != NULL;
}

struct local *await_leader(struct testcase *t, struct local **list, unsigned n, uint64_t limit_ms)
{
	struct crowd c = {list, n};
	uint64_t end_ns = now_ns() + limit_ms * MS;
	struct local *p;

	do {
		await(t, has_leader, &c, limit_ms, "somebody to lead");
		p = leader_of(list, n);
	} while (p == NULL && now_ns() < end_ns);
	CHECK(t, p != NULL, "nobody leads for long");
	return p;
}

/* ---- the oracle's thread ---- */

struct sampler {
	struct testcase *t;
	struct local *list[LOCALS_MAX];
	unsigned n;
	unsigned track;
	long pause_ns;
	_Atomic bool is_over;
	pthread_t thread;
};

static bool ask_is_leader(const void *election)
{
	return baton_is_leader(election);
}

static uint64_t ask_term(const void *election)
{
	return baton_term(election);
}

/* At least once: on a busy machine a short case may be over before this gets to run. */
static void *sample(void *arg)
{
	struct sampler *s = arg;
	const struct timespec pause = {.tv_nsec = s->pause_ns};

	do {
		for (unsigned i = 0; i < s->n; i++) {
			struct oracle_subject subject = {ask_is_leader, ask_term, s->list[i]->e};

			oracle_sample(s->t->oracle, s->track + i, &subject);
		}
		if (s->pause_ns > 0)
			ppoll(NULL, 0, &pause, NULL);
	} while (!atomic_load(&s->is_over));
	return NULL;
}

struct sampler *sampler_new(struct testcase *t, struct local **list, unsigned n, unsigned track,
			    long pause_ns)
{
	struct sampler *s = calloc(1, sizeof(*s));

	CHECK(t, s != NULL && track + n <= ORACLE_TRACKS, "no room for a sampler");
	s->t = t;
	s->n = n;
	s->track = track;
	s->pause_ns = pause_ns;
	memcpy(s->list, list, n * sizeof(struct local *));
	CHECK(t, pthread_create(&s->thread, NULL, sample, s) == 0, "no thread");
	return s;
}

void sampler_end(struct sampler *s)
{
	atomic_store(&s->is_over, true);
	pthread_join(s->thread, NULL);
	free(s);
}
