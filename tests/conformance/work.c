/*
 * work.c: what is done as leader: by hand, as a function that is cancelled, with a sign of life;
 * and the resource's side of it.
 */
#include "backend.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- C9 ---- */

static void by_hand(struct baton_election_options *o)
{
	o->manual = true;
}

static void acquires_by_hand(struct testcase *t)
{
	struct cast cast = {.tune_election = by_hand, .idle = true};
	struct local *a = local_new(t, &cast);
	struct local *b = local_new(t, &cast);
	int64_t limit_ms = (int64_t)soon_ms(t);

	CHECK(t, baton_try_acquire(a->e, limit_ms, NULL) == BATON_E_NOT_STARTED, "not started");
	CHECK(t, baton_election_start(a->e) == 0 && baton_election_start(b->e) == 0, "start");
	stays(t, local_is_no_leader, a, t->lease_ms / 2, "nobody campaigns unasked");
	CHECK(t, baton_try_acquire(a->e, limit_ms, NULL) == 1, "not won though free");
	CHECK(t, baton_is_leader(a->e), "won, and not leader");
	uint64_t term = baton_term(a->e);

	CHECK(t, baton_try_acquire(a->e, limit_ms, NULL) == 1, "not true as leader");
	CHECK(t, baton_term(a->e) == term, "a new term for who leads already");
	CHECK(t, baton_try_acquire(b->e, limit_ms, NULL) == 0, "not false though held");
	CHECK(t, !baton_is_leader(b->e), "S1: two leaders");
	local_stop(a);
	stays(t, local_is_no_leader, b, t->lease_ms / 2, "b campaigns unasked");
	CHECK(t, baton_try_acquire(b->e, limit_ms, NULL) == 1, "not won though free again");
	CHECK(t, baton_term(b->e) > term, "S3");
	CHECK(t, baton_try_acquire(a->e, limit_ms, NULL) == BATON_E_NOT_STARTED, "stopped");
}

/* ---- C10 ---- */

struct work {
	struct local *p;
	_Atomic bool is_running;
	_Atomic bool was_cancelled;
	_Atomic uint64_t end_ns;
	uint64_t term;
	int returns;
	bool waits; /* until it is cancelled */
	pthread_t thread;
	int answer;
};

static int do_work(struct baton_context *ctx, void *arg)
{
	struct work *w = arg;

	w->term = baton_context_term(ctx);
	atomic_store(&w->is_running, true);
	if (w->waits) {
		struct pollfd fd = {.fd = baton_context_fd(ctx), .events = POLLIN};

		atomic_store(&w->was_cancelled, baton_context_wait(ctx, 20000));
		/* The descriptor says the same. */
		if (poll(&fd, 1, 1000) != 1 || baton_context_is_leader(ctx) ||
		    baton_context_time_left_ms(ctx) != 0)
			atomic_store(&w->was_cancelled, false);
		pass_time(w->p->t->lease_ms / 10); /* the last bit of work */
	}
	atomic_store(&w->end_ns, now_ns());
	return w->returns;
}

static void *run_work(void *arg)
{
	struct work *w = arg;

	w->answer = baton_run_if_leader(w->p->e, do_work, w);
	return NULL;
}

static bool is_running(void *arg)
{
	return atomic_load(&((struct work *)arg)->is_running);
}

struct winner {
	struct local **list; /* two of them */
	uint64_t term;
	struct seen *became;
};

/* One of them was told that it leads, in a later term. */
static bool has_become(void *arg)
{
	struct winner *w = arg;

	for (unsigned i = 0; i < 2; i++)
		if (local_last(w->list[i], BATON_EVENT_BECAME, w->became) &&
		    w->became->event.term > w->term)
			return true;
	return false;
}

/* How the leadership ends; and what comes when the work has ended, or NULL. */
struct ending {
	void (*end)(struct local *p);
	void (*after)(struct local *p);
	bool may_overlap; /* S7 promises nothing to who was robbed of its claim */
};

/* Work that runs until it is ended; it must be cancelled, and over before anybody else leads. */
static void cancelled_by(struct testcase *t, struct local *p, const struct ending *how)
{
	struct work w = {.p = p, .waits = true, .returns = 7};
	uint64_t term = local_leads(p, soon_ms(t));
	struct local *next = local_new(t, NULL);

	CHECK(t, pthread_create(&w.thread, NULL, run_work, &w) == 0, "no thread");
	await(t, is_running, &w, soon_ms(t), "the work to begin");
	local_sees(next, p->id, soon_ms(t));
	how->end(p);
	pthread_join(w.thread, NULL);
	if (how->after != NULL)
		how->after(p);
	CHECK(t, atomic_load(&w.was_cancelled), "not cancelled");
	CHECK(t, w.term == term, "worked in term %" PRIu64, w.term);
	CHECK(t, w.answer == 7, "returned %d", w.answer);
	/* Who has lost it may win it again. */
	struct local *list[2] = {next, p};
	struct seen became;

	await(t, has_become, &(struct winner){list, term, &became}, 2 * failover_ms(t),
	      "the next to lead");
	CHECK(t, how->may_overlap || became.at_ns > atomic_load(&w.end_ns),
	      "S7: the next leads while work runs");
	local_close(next);
}

static void by_stop(struct local *p)
{
	int rc = baton_election_stop(p->e, 0);

	CHECK(p->t, rc == 0 || rc == BATON_E_TIMEOUT, "stop says %d", rc);
}

/* It is to lead again soon, however long a lease is. */
static void by_resigning(struct local *p)
{
	CHECK(p->t, baton_resign(p->e, (int64_t)(2 * p->t->lease_ms)) == 0, "resign");
}

/* Lost, not given back: by the clock, and by the store's word. */
static void by_silence(struct local *p)
{
	CHECK(p->t, p->t->backend->down(p->t, true), "down");
}

static void after_silence(struct local *p)
{
	CHECK(p->t, p->t->backend->down(p->t, false), "up");
}

static void by_robbery(struct local *p)
{
	enum way way = 0;

	while (way < N_WAYS && !p->t->backend->ways[way])
		way++;
	CHECK(p->t, way < N_WAYS && p->t->backend->destroy(p->t, p->t->name, way), "destroy");
}

static void runs_if_leader(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	struct work w = {.p = p, .returns = 42};

	CHECK(t, baton_run_if_leader(p->e, do_work, &w) == BATON_E_NOT_LEADER, "ran when stopped");
	CHECK(t, baton_election_start(p->e) == 0, "start");
	local_leads(p, soon_ms(t));
	struct local *standby = local_new(t, NULL);

	local_sees(standby, p->id, soon_ms(t));
	CHECK(t, baton_run_if_leader(standby->e, do_work, &w) == BATON_E_NOT_LEADER, "as standby");
	CHECK(t, !atomic_load(&w.is_running), "it ran");
	local_close(standby);
	CHECK(t, baton_run_if_leader(p->e, do_work, &w) == 42, "the work's own answer");
	w.returns = -77;
	CHECK(t, baton_run_if_leader(p->e, do_work, &w) == -77, "the work's own failure");
	CHECK(t, baton_is_leader(p->e), "a failing work costs the leadership");
	cancelled_by(t, p, &(struct ending){.end = by_resigning});
	if (t->backend->down != NULL)
		cancelled_by(t, p, &(struct ending){.end = by_silence, .after = after_silence});
	if (t->backend->destroy != NULL)
		cancelled_by(t, p, &(struct ending){.end = by_robbery, .may_overlap = true});
	cancelled_by(t, p, &(struct ending){.end = by_stop});
}

/* ---- C15 ---- */

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir != NULL && readdir(dir) != NULL)
		n++;
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Those that the meter holds for a moment come and go. */
static bool is_back_to(void *arg)
{
	const unsigned *counts = arg;

	return count_entries("/proc/self/fd") <= counts[0] &&
	       count_entries("/proc/self/task") <= counts[1];
}

static void frees_without_stop(struct testcase *t)
{
	unsigned counts[2] = {0, 0};
	uint64_t term = 0;
	char another[80];

	snprintf(another, sizeof(another), "%s-b", t->name);

	for (unsigned i = 0; i < 4; i++) {
		uint64_t begin_ns = now_ns();
		struct local *p = local_new(t, NULL);
		uint64_t now_term = local_leads(p, soon_ms(t));

		CHECK(t, now_term > term, "S3");
		/* Released, or it would take as long as the lease. */
		if (i > 0)
			CHECK(t, (now_ns() - begin_ns) / MS < t->lease_ms, "L3: not released");
		term = now_term;
		local_close(p);
		if (i == 0) { /* the first one may have made what is made once */
			counts[0] = count_entries("/proc/self/fd");
			counts[1] = count_entries("/proc/self/task");
		}
	}
	await(t, is_back_to, counts, 2000, "all descriptors and threads to be gone");
	/* An election alone, its handle lives on. */
	struct local *p = local_new(t, NULL);
	struct local *q = local_more(p, &(struct cast){.name = another});

	local_leads(p, soon_ms(t));
	local_leads(q, soon_ms(t));
	local_close(q);
	CHECK(t, baton_is_leader(p->e), "the other election lost its leader");
	struct local *r = local_new(t, &(struct cast){.name = another});
	uint64_t begin_ns = now_ns();

	local_leads(r, failover_ms(t));
	CHECK(t, (now_ns() - begin_ns) / MS < t->lease_ms, "L3: not released by free");
	baton_close(NULL);
	baton_election_free(NULL);
}

/* ---- N36 ---- */

static void keep_claim(struct baton_election_options *o)
{
	o->release_on_stop = false;
}

/* An election of its own leads, and goes without its claim. S3: above the last term. */
static uint64_t leads_once(struct local *p, uint64_t term, bool keep)
{
	char left[80];

	snprintf(left, sizeof(left), "%s-left", p->t->name);
	struct cast cast = {.name = left, .tune_election = keep ? keep_claim : NULL};
	struct local *q = local_more(p, &cast);
	uint64_t next = local_leads(q, 2 * failover_ms(p->t));

	CHECK(p->t, next > term, "S3: %" PRIu64 " after %" PRIu64, next, term);
	local_close(q);
	return next;
}

/* Each of their leases has ended in the store long since, and is to end in this process, too. */
static void leaves_claims(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	unsigned counts[2] = {0, 0};
	uint64_t term = 0;

	/* On a lease that others need the claim stays: the next of that name finds it. */
	local_leads(p, soon_ms(t));
	for (unsigned i = 0; i < 3; i++)
		term = leads_once(p, term, true);
	local_stop(p);
	for (unsigned i = 0; i < 5; i++) {
		term = leads_once(p, term, i > 0);
		if (i == 0) { /* the first one may have made what is made once */
			counts[0] = count_entries("/proc/self/fd");
			counts[1] = count_entries("/proc/self/task");
		}
	}
	await(t, is_back_to, counts, 2 * failover_ms(t), "all descriptors to be gone");
}

/* ---- C22 ---- */

static void *check_terms(void *arg)
{
	struct baton_fence *fence = arg;

	for (uint64_t term = 1; term < 20000; term++)
		baton_fence_check(fence, term);
	return NULL;
}

static void fence_refuses_lower(struct testcase *t)
{
	struct baton_fence fence = {0};
	struct baton_error err = {0};
	char path[64];
	pthread_t threads[4];

	CHECK(t, baton_fence_check(&fence, 5) == 0, "first");
	CHECK(t, baton_fence_check(&fence, 5) == 0, "equal");
	CHECK(t, baton_fence_check(&fence, 4) == BATON_E_STALE, "lower");
	CHECK(t, baton_fence_check(&fence, UINT64_MAX) == 0, "the highest");
	CHECK(t, baton_fence_check(&fence, 6) == BATON_E_STALE, "lower than the highest");
	fence.highest = 0;
	for (unsigned i = 0; i < 4; i++)
		CHECK(t, pthread_create(&threads[i], NULL, check_terms, &fence) == 0, "thread");
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(t, fence.highest == 19999, "highest is %" PRIu64, fence.highest);
	snprintf(path, sizeof(path), "/tmp/fence-%ld", (long)getpid());
	CHECK(t, baton_fence_file(path, 7, &err) == 0, "file: %s", err.text);
	CHECK(t, baton_fence_file(path, 7, &err) == 0, "file, equal: %s", err.text);
	CHECK(t, baton_fence_file(path, 6, &err) == BATON_E_STALE, "file, lower");
	CHECK(t, baton_fence_file(path, 1000, &err) == 0, "file, higher: %s", err.text);
	CHECK(t, baton_fence_file(path, 999, &err) == BATON_E_STALE, "file, lower again");
	/* A real leadership: equal and higher terms pass, the predecessor's don't. */
	struct local *p = local_new(t, NULL);
	uint64_t old = local_leads(p, soon_ms(t));
	struct baton_fence resource = {0};

	CHECK(t, baton_fence_check(&resource, old) == 0, "first use");
	local_stop(p);
	CHECK(t, baton_election_start(p->e) == 0, "start");
	CHECK(t, baton_fence_check(&resource, local_leads(p, soon_ms(t))) == 0, "S4: refused");
	CHECK(t, baton_fence_check(&resource, old) == BATON_E_STALE, "S4: stale one accepted");
	unlink(path);
	CHECK(t, baton_fence_file("/nowhere/at/all", 1, &err) != 0, "no file, no fence");
}

/* ---- N10, N11 ---- */

/* L3: how that leadership ended stands in the history, whatever the time that it took. */
static void was_released(struct testcase *t, struct local *p, uint64_t term)
{
	struct baton_leadership list[32];
	struct baton_error err = {0};
	int n = t->backend->keeps_history ? patient_history(t, p->b, t->name, list, 32, &err) : 0;

	CHECK(t, n >= 0, "history: %s", err.text);
	for (int i = 0; i < n && i < 32; i++)
		CHECK(t, list[i].term != term || strcmp(list[i].ended, "stopped") == 0,
		      "L3: not released, but %s", list[i].ended);
}

/* L2: one push, not a lease. If it wasn't, this tells where the time has gone. */
static void was_pushed(struct testcase *t, struct local *q, uint64_t stop_ms, uint64_t took_ms)
{
	struct baton_stats s;

	CHECK(t, baton_get_stats(q->b, &s) == 0, "stats");
	CHECK(t, !t->backend->pushes || took_ms < t->lease_ms,
	      "L2: the successor led after %" PRIu64 " ms, %" PRIu64 " of them in stop(); it had "
	      "%" PRIu64 " hints, %" PRIu64 " campaigns refused and %" PRIu64 " failed, %" PRIu64
	      " looks, %" PRIu64 " of its renewals failed",
	      took_ms, stop_ms, s.hints, s.campaigns_refused, s.campaigns_failed, s.observes,
	      s.renewals_failed);
}

/* A stop at any moment between two renewals, the middle of one included. */
static void stops_while_renewing(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	uint64_t worst_ms = 0;

	if (t->backend->late != NULL)
		CHECK(t, t->backend->late(t, VERB_RENEW, UINT32_MAX, t->lease_ms / 20), "late");
	for (unsigned i = 0; i < 6; i++) {
		struct local *p = await_leader(t, list, 2, soon_ms(t));
		struct local *q = list[p == list[0]];
		uint64_t calls = t->backend->calls != NULL ? t->backend->calls(t, VERB_RENEW) : 0;

		local_sees(q, p->id, soon_ms(t));
		if (t->backend->calls != NULL) { /* one is on its way just now */
			while (t->backend->calls(t, VERB_RENEW) == calls)
				pass_time(1);
		} else {
			pass_time(i * t->lease_ms / 18);
		}
		uint64_t term = baton_term(p->e);
		uint64_t begin_ns = now_ns();

		local_stop(p);
		uint64_t stop_ms = (now_ns() - begin_ns) / MS;

		local_leads(q, failover_ms(t));
		uint64_t took_ms = (now_ns() - begin_ns) / MS;

		worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
		was_released(t, q, term);
		was_pushed(t, q, stop_ms, took_ms);
		CHECK(t, baton_election_start(p->e) == 0, "start");
	}
	testcase_note(t, "at most %" PRIu64 " ms", worst_ms);
}

static void stops_in_no_time(struct testcase *t)
{
	struct local *p = local_new(t, NULL);

	for (int64_t timeout_ms = 0; timeout_ms < 2; timeout_ms++) {
		local_leads(p, soon_ms(t));
		if (t->backend->hole != NULL)
			CHECK(t, t->backend->hole(t, true), "hole");
		uint64_t begin_ns = now_ns();
		int rc = baton_election_stop(p->e, timeout_ms);

		CHECK(t, !baton_is_leader(p->e), "S7: still leader after stop(%" PRId64 ")",
		      timeout_ms);
		CHECK(t, baton_term(p->e) == 0, "S7: still a term");
		CHECK(t, rc == 0 || rc == BATON_E_TIMEOUT, "stop says %d", rc);
		CHECK(t, (now_ns() - begin_ns) / MS < 200 + stall_worst_ms(),
		      "L7: it took too long");
		local_next(p, BATON_EVENT_LOST, soon_ms(t));
		if (t->backend->hole != NULL)
			CHECK(t, t->backend->hole(t, false), "heal");
		local_stop(p);
		CHECK(t, baton_election_start(p->e) == 0, "start");
	}
}

/* ---- N35 ---- */

static void work_timeout(struct baton_election_options *o)
{
	o->work_timeout_ms = 300;
}

static bool is_lively(void *arg)
{
	struct local *p = arg;

	baton_alive(p->e);
	return baton_is_leader(p->e);
}

/* The one works, until the other knows it. */
struct pair {
	struct local *works, *waits;
};

static bool is_known(void *arg)
{
	struct pair *pair = arg;
	struct baton_status status;

	local_status(pair->waits, &status);
	return is_lively(pair->works) && strcmp(status.leader, pair->works->id) == 0;
}

static void stalled_work(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.tune_election = work_timeout});
	uint64_t term = local_leads(p, soon_ms(t));
	struct local *q = local_new(t, NULL);

	await(t, is_known, &(struct pair){p, q}, soon_ms(t), "a standby to know who works");
	stays(t, is_lively, p, 1000, "leader, with signs of life");
	uint64_t last_ns = now_ns();
	const struct seen *lost = local_next(p, BATON_EVENT_LOST, 300 + soon_ms(t));

	CHECK(t, lost->event.reason == BATON_REASON_STALLED, "reason %d", lost->event.reason);
	CHECK(t, lost->event.term == term, "lost term %" PRIu64, lost->event.term);
	CHECK(t, lost->at_ns - last_ns > 250 * MS, "L5: lost too early");
	const struct seen *became = local_next(q, BATON_EVENT_BECAME, failover_ms(t));

	CHECK(t, became->event.term > term, "S3");
	testcase_note(t, "a successor after %" PRIu64 " ms", (became->at_ns - last_ns) / MS);
}

const struct entry cases_work[] = {
	{"C9", "manual acquire: won, leads already, held, not started", acquires_by_hand,
	 NEEDS_NOTHING, 0},
	{"C10", "run if leader: when it runs, what it returns, when it is cancelled",
	 runs_if_leader, NEEDS_NOTHING, 0},
	{"C15", "free without stop leaks nothing and releases", frees_without_stop, NEEDS_NOTHING,
	 0},
	{"C22", "the fence accepts equal, refuses lower", fence_refuses_lower, NEEDS_NOTHING, 0},
	{"N10", "stop during a renewal releases", stops_while_renewing, NEEDS_NOTHING, 0},
	{"N11", "stop with no time left still demotes", stops_in_no_time, NEEDS_NOTHING, 0},
	{"N36", "claims that are left to expire leave nothing in their process", leaves_claims,
	 NEEDS_NOTHING, 0},
	{"N35", "work without a sign of life: a successor leads", stalled_work, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
