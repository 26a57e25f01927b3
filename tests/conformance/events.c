/*
 * events.c: what the application is told, in which order, and that nothing it does with it harms
 * the election (S7, S8).
 */
#include "backend.h"
#include "lists.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- C3 ---- */

/* Each "changed" goes on where the one before it ended. */
static void check_chain(struct local *p, const char *leader, uint64_t term)
{
	const struct seen *last = NULL;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n_seen; i++) {
		const struct seen *s = &p->seen[i];

		if (s->event.kind != BATON_EVENT_CHANGED)
			continue;
		if (last != NULL)
			CHECK(p->t, strcmp(s->event.old_leader, last->event.leader) == 0,
			      "changed from %.60s after changed to %.60s", s->event.old_leader,
			      last->event.leader);
		last = s;
	}
	CHECK(p->t,
	      last != NULL && strcmp(last->event.leader, leader) == 0 && last->event.term == term,
	      "the last change is not to %.60s in term %" PRIu64, leader, term);
	pthread_mutex_unlock(&p->lock);
}

/* The same by baton_wait() and the descriptor, for those who have no handler. */
static void pull(struct testcase *t, struct local *p, int kind, struct baton_event *event)
{
	uint64_t end_ns = now_ns() + soon_ms(t) * MS;

	do {
		struct pollfd wait = {.fd = baton_fd(p->b), .events = POLLIN};

		CHECK(t, now_ns() < end_ns, "no event %d to pull", kind);
		poll(&wait, 1, (int)t->lease_ms);
		memset(event, 0, sizeof(*event));
	} while (baton_wait(p->b, 0, event) != 1 || event->kind != kind);
}

static void tells_events(struct testcase *t)
{
	struct local *a = local_new(t, NULL);
	uint64_t first = local_leads(a, soon_ms(t));
	struct local *b = local_new(t, NULL);
	const struct cast no_handler = {.pulls = true, .idle = true};
	struct local *pulls = local_new(t, &no_handler);
	struct baton_event event;

	while (strcmp(local_next(b, BATON_EVENT_CHANGED, soon_ms(t))->event.leader, a->id) != 0)
		;
	CHECK(t, local_next(a, BATON_EVENT_BECAME, 1000)->event.term == first, "became");
	check_chain(b, a->id, first);
	local_stop(a);
	const struct seen *lost = local_next(a, BATON_EVENT_LOST, 1000);

	CHECK(t, lost->event.term == first, "lost term %" PRIu64, lost->event.term);
	CHECK(t, lost->event.reason == BATON_REASON_STOPPED, "reason %d", lost->event.reason);
	CHECK(t, lost->event.text[0] != '\0', "lost without a sentence");
	CHECK(t, lost->event.election == a->e, "another election's event");
	uint64_t second = local_next(b, BATON_EVENT_BECAME, failover_ms(t))->event.term;

	CHECK(t, second > first, "S3");
	/* Those who pull: a leader that changes, becoming it, losing it. */
	CHECK(t, baton_election_start(pulls->e) == 0, "start");
	pull(t, pulls, BATON_EVENT_CHANGED, &event);
	CHECK(t, strcmp(event.leader, b->id) == 0 && event.term == second, "changed to %s",
	      event.leader);
	local_stop(b);
	pull(t, pulls, BATON_EVENT_BECAME, &event);
	CHECK(t, event.term > second && baton_term(pulls->e) == event.term, "became");
	CHECK(t, baton_resign(pulls->e, 60000) == 0, "resign");
	uint64_t third = event.term;

	pull(t, pulls, BATON_EVENT_LOST, &event);
	CHECK(t, event.term == third && event.reason == BATON_REASON_RESIGNED, "lost");
	CHECK(t, baton_drained(pulls->e, second) == BATON_E_STALE, "an old term drains");
	CHECK(t, baton_drained(pulls->e, third) == 0, "drained");
	local_stop(pulls);
}

/* ---- C13, N14 ---- */

struct gate {
	_Atomic bool is_open;
	_Atomic unsigned n_inside;
};

static void block(struct local *p, const struct baton_event *event)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	struct gate *g = p->arg;

	(void)event;
	atomic_fetch_add(&g->n_inside, 1);
	while (!atomic_load(&g->is_open))
		ppoll(NULL, 0, &pause, NULL);
}

static bool is_inside(void *arg)
{
	return atomic_load(&((struct gate *)arg)->n_inside) > 0;
}

static void blocked_handler(struct testcase *t)
{
	static struct gate gate;
	char name[80];

	snprintf(name, sizeof(name), "%s-b", t->name);
	struct local *blocked = local_new(t, &(struct cast){.hook = block, .arg = &gate});

	await(t, is_inside, &gate, soon_ms(t), "the handler to block");
	local_leads(blocked, soon_ms(t)); /* it may have been told of an error first */
	/* The other election of the same handle is told everything. */
	struct local *other = local_more(blocked, &(struct cast){.name = name});

	local_next(other, BATON_EVENT_BECAME, soon_ms(t));
	stays(t, local_is_leader, blocked, 2 * t->lease_ms, "leader, though its handler blocks");
	CHECK(t, baton_resign(other->e, 60000) == 0, "resign");
	local_next(other, BATON_EVENT_LOST, soon_ms(t));
	/* A stop that can't wait any longer demotes all the same, and goes on later. */
	int rc = baton_election_stop(blocked->e, 20);

	CHECK(t, rc == BATON_E_TIMEOUT, "stop says %d while the handler blocks", rc);
	CHECK(t, !baton_is_leader(blocked->e), "S7: still leader");
	atomic_store(&gate.is_open, true);
	local_next(blocked, BATON_EVENT_LOST, soon_ms(t));
	local_stop(blocked);
}

static void one_dispatcher(struct baton_options *o)
{
	o->dispatchers = 1;
}

static void slow_handler(struct testcase *t)
{
	static struct gate gate;
	struct local *slow =
		local_new(t, &(struct cast){.hook = block, .arg = &gate, .tune = one_dispatcher});

	await(t, is_inside, &gate, soon_ms(t), "the handler to be slow");
	uint64_t term = local_leads(slow, soon_ms(t));
	struct local *rival = local_new(t, NULL);
	struct baton_stats before = {0};
	struct baton_stats after = {0};

	CHECK(t, baton_get_stats(slow->b, &before) == 0, "stats");
	stays(t, local_is_leader, slow, 3 * t->lease_ms, "leader, with a handler of three leases");
	CHECK(t, baton_get_stats(slow->b, &after) == 0, "stats");
	CHECK(t, after.renewals_ok >= before.renewals_ok + 6, "%" PRIu64 " renewals in 3 leases",
	      after.renewals_ok - before.renewals_ok);
	CHECK(t, baton_term(slow->e) == term, "another term");
	CHECK(t, local_count(rival, BATON_EVENT_BECAME) == 0, "the rival led");
	atomic_store(&gate.is_open, true);
}

/* ---- C14, C20 ---- */

struct calls {
	_Atomic unsigned n_failed;
	_Atomic bool has_led;
	_Atomic bool has_stopped;
	_Atomic int line;
};

#define CALL(c, condition)     \
	((condition) ? (void)0 \
		     : (atomic_fetch_add(&(c)->n_failed, 1), atomic_store(&(c)->line, __LINE__)))

static void call_back(struct local *p, const struct baton_event *event)
{
	struct calls *c = p->arg;
	struct baton_status status = {0};
	struct baton_stats stats = {0};

	CALL(c, baton_get_status(p->e, &status) == 0);
	CALL(c, baton_get_stats(p->b, &stats) == 0);
	if (event->kind == BATON_EVENT_BECAME) {
		struct baton_candidate list[4];

		CALL(c, baton_is_leader(p->e) || baton_term(p->e) == 0);
		CALL(c, baton_report_health(p->e, 900, "well") == 0);
		CALL(c, test_candidates(p->b, p->t->name, list, 4, NULL) >= 0);
		CALL(c, baton_try_acquire(p->e, 1000, NULL) == 1);
		CALL(c, baton_resign(p->e, 10) == 0);
		CALL(c, !baton_is_leader(p->e));
		atomic_store(&c->has_led, true);
	} else if (event->kind == BATON_EVENT_LOST) {
		int rc = baton_election_stop(p->e, -1); /* never waits here */

		CALL(c, rc == 0 || rc == BATON_E_TIMEOUT);
	} else if (event->kind == BATON_EVENT_STOPPED) {
		atomic_store(&c->has_stopped, true);
	}
}

static bool has_stopped(void *arg)
{
	return atomic_load(&((struct calls *)arg)->has_stopped);
}

static void handler_calls_back(struct testcase *t)
{
	static struct calls c;
	struct local *p = local_new(t, &(struct cast){.hook = call_back, .arg = &c});

	await(t, has_stopped, &c, soon_ms(t), "the handler to lead, resign and stop");
	CHECK(t, atomic_load(&c.n_failed) == 0, "%u calls failed in a handler, the last in line %d",
	      atomic_load(&c.n_failed), atomic_load(&c.line));
	CHECK(t, atomic_load(&c.has_led), "it never led");
	CHECK(t, baton_election_start(p->e) == 0, "start after a stop in the handler");
	atomic_store(&c.has_stopped, false);
	await(t, has_stopped, &c, soon_ms(t), "all of that once more");
	CHECK(t, atomic_load(&c.n_failed) == 0, "a call failed in line %d", atomic_load(&c.line));
}

static void look_at_term(struct local *p, const struct baton_event *event)
{
	_Atomic unsigned *n_wrong = p->arg;
	uint64_t term = baton_term(p->e);

	/* Zero if it is lost again already; never the one before. */
	if (event->kind == BATON_EVENT_BECAME && term != event->term && term != 0)
		atomic_fetch_add(n_wrong, 1);
	if (event->kind == BATON_EVENT_BECAME && event->term == 0)
		atomic_fetch_add(n_wrong, 1);
}

static void term_before_event(struct testcase *t)
{
	static _Atomic unsigned n_wrong;
	struct local *p = local_new(t, &(struct cast){.hook = look_at_term, .arg = &n_wrong});

	for (unsigned i = 0; i < 5; i++) {
		const struct seen *became = local_next(p, BATON_EVENT_BECAME, soon_ms(t));

		CHECK(t, became->event.term != 0, "became leader in no term");
		CHECK(t, baton_resign(p->e, 1) == 0, "resign");
		local_next(p, BATON_EVENT_LOST, soon_ms(t));
	}
	CHECK(t, atomic_load(&n_wrong) == 0, "%u times another term in the handler",
	      atomic_load(&n_wrong));
}

/* ---- N13 ---- */

struct farewell {
	struct baton *eye; /* looks at the store from the handler */
	int rc;
	struct baton_error err;
	_Atomic uint64_t end_ns; /* the others are written before it */
	_Atomic bool was_free;
	_Atomic bool had_lease; /* for as long as it looked: else it may be free */
};

static void dawdle(struct local *p, const struct baton_event *event)
{
	struct farewell *f = p->arg;
	struct baton_observed status = {0};
	struct baton_status own = {0};

	if (event->kind != BATON_EVENT_LOST)
		return;
	pass_time(p->t->lease_ms / 4);
	f->rc = patient_observe(p->t, f->eye, p->t->name, &status, &f->err);
	if (f->rc == 0 && strcmp(status.leader, p->id) != 0)
		atomic_store(&f->was_free, true);
	atomic_store(&f->end_ns, now_ns());
	baton_get_status(p->e, &own);
	atomic_store(&f->had_lease, own.work_end_boot_ns > (int64_t)f->end_ns);
}

static void lost_before_free(struct testcase *t)
{
	static struct farewell f;
	struct local *a = local_new(t, &(struct cast){.hook = dawdle, .arg = &f});

	local_leads(a, soon_ms(t));
	struct local *b = local_new(t, NULL);

	f.eye = b->b;
	local_sees(b, a->id, soon_ms(t));
	local_stop(a);
	const struct seen *became = local_next(b, BATON_EVENT_BECAME, failover_ms(t));

	CHECK(t, atomic_load(&f.end_ns) != 0, "the handler of lost was not called");
	CHECK(t, f.rc == 0, "the handler could not look: %s", f.err.text);
	CHECK(t, atomic_load(&f.had_lease), "the lease ended while the handler looked");
	CHECK(t, !atomic_load(&f.was_free), "S7: free before the handler of lost has returned");
	CHECK(t, became->at_ns > atomic_load(&f.end_ns), "S7: a successor before lost was handled");
}

/* ---- N21 ---- */

static void with_address(struct baton_options *o)
{
	o->address = "10.1.2.3:4567";
}

static void with_metadata(struct baton_election_options *o)
{
	o->metadata = "zone=a";
}

static void only_observe(struct baton_election_options *o)
{
	o->observe_only = true;
}

static bool is_green(void *arg)
{
	struct local *p = arg;

	return baton_election_condition(p->e, NULL) == BATON_CONDITION_HEALTHY;
}

static bool is_standby(void *arg)
{
	struct baton_status status;

	local_status(arg, &status);
	return status.state == BATON_STATE_STANDBY;
}

static void standby_knows(struct testcase *t)
{
	struct local *a =
		local_new(t, &(struct cast){.tune = with_address, .tune_election = with_metadata});
	uint64_t term = local_leads(a, soon_ms(t));
	struct local *standbys[2] = {
		local_new(t, NULL),
		local_new(t, &(struct cast){.tune_election = only_observe}),
	};

	for (unsigned i = 0; i < 2; i++) {
		struct baton_status status;

		local_sees(standbys[i], a->id, soon_ms(t));
		local_status(standbys[i], &status);
		CHECK(t, status.term == term, "term %" PRIu64, status.term);
		CHECK(t, strcmp(status.leader_address, "10.1.2.3:4567") == 0, "address \"%s\"",
		      status.leader_address);
		CHECK(t, strcmp(status.leader_metadata, "zone=a") == 0, "metadata \"%s\"",
		      status.leader_metadata);
		CHECK(t, status.leader_since_ms > 0, "since when?");
		await(t, is_standby, standbys[i], soon_ms(t), "a standby's state");
		await(t, is_green, standbys[i], soon_ms(t), "a green standby");
		stays(t, is_green, standbys[i], t->lease_ms, "a green standby");
	}
	CHECK(t, baton_try_acquire(standbys[1]->e, 100, NULL) < 0, "who observes can't acquire");
	local_stop(a);
	local_leads(standbys[0], failover_ms(t));
	local_sees(standbys[1], standbys[0]->id, soon_ms(t));
	local_stop(standbys[0]);
	/* Nobody leads: degraded, not sick. */
	local_sees(standbys[1], "", soon_ms(t));
	CHECK(t, baton_election_condition(standbys[1]->e, NULL) == BATON_CONDITION_DEGRADED,
	      "not degraded");
	CHECK(t, local_count(standbys[1], BATON_EVENT_BECAME) == 0, "an observer led");
}

const struct entry cases_events[] = {
	{"C3", "became, lost and changed with the right ids and terms", tells_events, NEEDS_NOTHING,
	 0},
	{"C13", "a handler that blocks harms nothing", blocked_handler, NEEDS_NOTHING, 0},
	{"C14", "a handler may call back into the API", handler_calls_back, NEEDS_NOTHING, 0},
	{"C20", "the term is known before the became event", term_before_event, NEEDS_NOTHING, 0},
	{"N13", "lost is delivered before the election is free", lost_before_free, NEEDS_NOTHING,
	 0},
	{"N14", "a slow handler doesn't stop renewals", slow_handler, NEEDS_NOTHING, 0},
	{"N21", "a standby names the leader and is green", standby_knows, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
