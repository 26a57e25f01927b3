/*
 * scale.c: many races, many handoffs, many elections; and how little that costs the store.
 */
#include "backend.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- N9 ---- */

#define RACERS 5

struct told {
	struct local **list;
	unsigned n;
};

static bool all_told(void *arg)
{
	struct told *told = arg;
	size_t n = 0;

	for (unsigned i = 0; i < RACERS; i++)
		n += local_count(told->list[i], BATON_EVENT_BECAME);
	return n >= told->n;
}

static void races(struct testcase *t)
{
	struct local *list[RACERS];
	unsigned n = t->full ? 1000 : 150;
	unsigned n_run = 0;
	uint64_t term = 0;

	testcase_oracle(t);
	for (unsigned i = 0; i < RACERS; i++)
		list[i] = local_new(t, NULL);
	struct sampler *sampler = sampler_new(t, list, RACERS, 0, SAMPLE_NS);

	while (n_run < n) {
		struct local *p = await_leader(t, list, RACERS, 2 * failover_ms(t));

		uint64_t now = baton_term(p->e); /* 0: it has just lost it again */

		CHECK(t, now == 0 || now > term, "S3: term %" PRIu64 " after %" PRIu64, now, term);
		term = now != 0 ? now : term;
		int rc = baton_resign(p->e, 1);

		CHECK(t, rc == 0 || rc == BATON_E_NOT_LEADER, "resign says %d", rc);
		n_run += rc == 0;
		CHECK(t, rc != 0 || !baton_is_leader(p->e),
		      "S7: leader after resigning from %" PRIu64, term);
	}
	sampler_end(sampler);
	/* Each "became" was told; the last one, perhaps, after we had seen it ourselves. */
	struct told told = {list, n};

	await(t, all_told, &told, soon_ms(t), "each became to be told");
	testcase_judge(t);
	testcase_note(t, "%u races%s", n, t->full ? "" : " (1,000 with --full)");
}

/* ---- N12 ---- */

struct worker {
	struct local *p;
	struct oracle *work;
	unsigned track;
	pthread_t thread;
	_Atomic unsigned n_runs;
};

static int piece_of_work(struct baton_context *ctx, void *arg)
{
	struct worker *w = arg;
	uint64_t term = baton_context_term(ctx);
	uint64_t begin_ns = now_ns();

	oracle_saw(w->work, w->track, term, begin_ns, begin_ns);
	atomic_fetch_add(&w->n_runs, 1);
	baton_context_wait(ctx, 20000);
	/* It takes a moment to stop; the next one must not begin before that. */
	uint64_t end_ns = now_ns() + 500000;

	while (now_ns() < end_ns)
		;
	end_ns = now_ns();
	oracle_saw(w->work, w->track, term, end_ns, end_ns);
	return 0;
}

static void *work_when_elected(void *arg)
{
	struct worker *w = arg;

	baton_run_when_elected(w->p->e, piece_of_work, w, NULL);
	return NULL;
}

static unsigned runs_of(struct worker *list, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += atomic_load(&list[i].n_runs);
	return sum;
}

static void drained_before_release(struct testcase *t)
{
	struct worker workers[3] = {{.n_runs = 0}};
	struct local *list[3];
	struct oracle *work = oracle_new(UINT64_MAX, NULL);
	/* Who has worked makes room for a third of its lease: with long ones it takes its time. */
	unsigned n = t->full ? 1000 : t->lease_ms > 1000 ? 40 : 100;

	CHECK(t, work != NULL, "no shared memory");
	testcase_oracle(t);
	for (unsigned i = 0; i < 3; i++) {
		list[i] = local_new(t, &(struct cast){.idle = true});
		workers[i].p = list[i];
		workers[i].work = work;
		workers[i].track = i;
		CHECK(t,
		      pthread_create(&workers[i].thread, NULL, work_when_elected, &workers[i]) == 0,
		      "thread");
	}
	struct sampler *sampler = sampler_new(t, list, 3, 0, SAMPLE_NS);

	for (unsigned i = 0; i < n; i++) {
		uint64_t end_ns = now_ns() + 2 * failover_ms(t) * MS;

		while (runs_of(workers, 3) <= i && now_ns() < end_ns)
			pass_time(1);
		CHECK(t, now_ns() < end_ns, "%u handoffs, %u runs of the work", i,
		      runs_of(workers, 3));
		struct local *p = await_leader(t, list, 3, 2 * failover_ms(t));
		int rc = baton_resign(p->e, 1);

		CHECK(t, rc == 0, "resign says %d", rc);
	}
	for (unsigned i = 0; i < 3; i++)
		local_stop(list[i]);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	sampler_end(sampler);
	struct oracle_verdict v;

	CHECK(t, oracle_judge(work, &v), "S7: work overlaps: %s", v.text);
	CHECK(t, v.n_terms >= n, "%" PRIu64 " pieces of work in %u handoffs", v.n_terms, n);
	oracle_free(work);
	testcase_judge(t);
	testcase_note(t, "%u handoffs%s", n, t->full ? "" : " (1,000 with --full)");
}

/* ---- N23 ---- */

#define ELECTIONS 1000

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

struct many {
	struct baton *b;
	struct baton_election *list[ELECTIONS];
};

static bool all_lead(void *arg)
{
	struct many *m = arg;

	for (unsigned i = 0; i < ELECTIONS; i++) {
		if (!baton_is_leader(m->list[i]))
			return false;
	}
	return true;
}

static void start_many(struct testcase *t, struct many *m, uint64_t lease_ms)
{
	struct baton_options o;
	struct baton_election_options eo;
	struct baton_error err = {0};

	baton_options_init(&o);
	baton_election_options_init(&eo);
	o.lease_ms = lease_ms;
	CHECK(t, baton_open(t->url, &o, &m->b, &err) == 0, "open: %s", err.text);
	for (unsigned i = 0; i < ELECTIONS; i++) {
		char name[80];

		snprintf(name, sizeof(name), "%s-%u", t->name, i);
		int rc = baton_election_new(m->b, name, &eo, &m->list[i], &err);

		CHECK(t, rc == 0, "election %u: %s", i, err.text);
		CHECK(t, baton_election_start(m->list[i]) == 0, "start");
	}
}

/* Each of them fsyncs where the store does, so the lease is one that leaves time for it. */
static void thousand_elections(struct testcase *t)
{
	struct many *m = calloc(1, sizeof(*m));
	uint64_t lease_ms = 3000 > 2 * t->lease_ms ? 3000 : 2 * t->lease_ms;
	struct baton_stats before = {0};
	struct baton_stats after = {0};
	uint64_t calls = 0;
	unsigned fds = count_entries("/proc/self/fd");
	unsigned tasks = count_entries("/proc/self/task");

	CHECK(t, m != NULL, "no memory");
	start_many(t, m, lease_ms);
	await(t, all_lead, m, 30000, "a thousand elections to be led");
	unsigned more_fds = count_entries("/proc/self/fd") - fds;
	unsigned more_tasks = count_entries("/proc/self/task") - tasks;

	CHECK(t, more_fds < 60, "%u more descriptors", more_fds);
	CHECK(t, more_tasks < 16, "%u more threads", more_tasks);
	CHECK(t, baton_get_stats(m->b, &before) == 0, "stats");
	CHECK(t, before.elections == ELECTIONS && before.leading == ELECTIONS,
	      "%" PRIu64 " elections, %" PRIu64 " led", before.elections, before.leading);
	if (t->backend->calls != NULL)
		calls = t->backend->calls(t, VERB_RENEW);
	pass_time(lease_ms);
	if (t->backend->calls != NULL)
		calls = t->backend->calls(t, VERB_RENEW) - calls;
	CHECK(t, all_lead(m), "not all are led any more");
	CHECK(t, baton_get_stats(m->b, &after) == 0, "stats");
	uint64_t renewals = after.renewals_ok - before.renewals_ok;

	/* Three intervals have passed. */
	if (t->backend->shares_leases)
		CHECK(t, renewals >= 2 && renewals <= 4 && calls <= 2 * 4,
		      "%" PRIu64 " renewals in a lease, %" PRIu64 " of them seen by the store",
		      renewals, calls);
	testcase_note(t, "%u fds, %u threads, %" PRIu64 " renewals in a lease, %" PRIu64 " seen",
		      more_fds, more_tasks, renewals, calls);
	baton_close(m->b);
	free(m);
}

/* ---- N27, C11, C12 ---- */

static uint64_t looks_of(struct local *p)
{
	struct baton_stats s = {0};

	CHECK(p->t, baton_get_stats(p->b, &s) == 0, "stats");
	return s.observes + s.campaigns_won + s.campaigns_refused + s.campaigns_failed;
}

struct quiet {
	struct local *p;
	uint64_t looks;
	uint64_t since_ns;
	uint64_t for_ns;
};

/* Nothing was looked at for so long. */
static bool is_quiet(void *arg)
{
	struct quiet *q = arg;
	uint64_t looks = looks_of(q->p);

	if (looks != q->looks)
		*q = (struct quiet){q->p, looks, now_ns(), q->for_ns};
	return now_ns() - q->since_ns > q->for_ns;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void pushes(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	uint64_t took_us[8];

	local_sees(list[p == list[0]], p->id, soon_ms(t));
	struct quiet quiet = {list[p == list[0]], 0, now_ns(), 2 * t->lease_ms * MS};

	await(t, is_quiet, &quiet, soon_ms(t), "a standby that does not poll");
	for (unsigned i = 0; i < 8; i++) {
		p = await_leader(t, list, 2, failover_ms(t));
		struct local *q = list[p == list[0]];

		local_sees(q, p->id, soon_ms(t));
		/* Who has just stepped down keeps away for a renewal's time. */
		pass_time(t->lease_ms / 3 + 20);
		uint64_t begin_ns = now_ns();

		CHECK(t, baton_resign(p->e, 1) == 0, "resign");
		local_leads(q, failover_ms(t));
		took_us[i] = (now_ns() - begin_ns) / 1000;
	}
	qsort(took_us, 8, sizeof(took_us[0]), by_size);
	CHECK(t, took_us[4] < t->lease_ms * 1000 / 6, "L2: a handoff takes %" PRIu64 " us",
	      took_us[4]);
	testcase_note(t, "p50 %" PRIu64 " us, worst %" PRIu64 " us", took_us[4], took_us[7]);
}

/*
 * L4: the table itself is checked under a virtual clock; here, that a store that fails is asked
 * less and less often, and no more often than once per retry period.
 */
static void backs_off(struct testcase *t)
{
	CHECK(t, t->backend->down(t, true), "down");
	struct local *p = local_new(t, NULL);
	uint64_t retry_ms = t->lease_ms / 6;

	local_next(p, BATON_EVENT_ERROR, soon_ms(t));
	pass_time(5 * retry_ms); /* past the first, short waits */
	uint64_t before = t->backend->calls(t, VERB_OPEN) + t->backend->calls(t, VERB_CAMPAIGN);

	pass_time(20 * retry_ms);
	uint64_t calls =
		t->backend->calls(t, VERB_OPEN) + t->backend->calls(t, VERB_CAMPAIGN) - before;

	/* Full jitter up to five periods: eight tries on average. Where only connections are seen,
	 * the watch's are among them, which are as many. */
	CHECK(t, calls >= 2 && calls <= 40, "L4: %" PRIu64 " tries in 20 periods", calls);
	testcase_note(t, "%" PRIu64 " tries in 20 retry periods", calls);
	CHECK(t, t->backend->down(t, false), "up");
	local_leads(p, soon_ms(t));
}

/* Long failures, one answer, then a failure again: the wait is short, like a first one. */
static void backoff_resets(struct testcase *t)
{
	struct local *holder = local_new(t, NULL);

	local_leads(holder, soon_ms(t));
	struct local *p = local_new(t, NULL);

	local_sees(p, holder->id, soon_ms(t));
	/* A look that is under way, because it is just being watched, would answer instead. A
	 * store that is polled has a moment between two looks. */
	uint64_t quiet_ms = t->backend->pushes ? 2 * t->lease_ms : t->lease_ms / 8;
	struct quiet quiet = {p, 0, now_ns(), quiet_ms * MS};

	await(t, is_quiet, &quiet, soon_ms(t), "a standby that does not poll");
	for (unsigned i = 0; i < 2; i++) {
		CHECK(t, t->backend->fail(t, VERB_CAMPAIGN, UINT32_MAX), "fail");
		int rc = baton_try_acquire(p->e, (int64_t)t->lease_ms, NULL);

		CHECK(t, rc < 0, "a failing campaign says %d", rc);
		CHECK(t, t->backend->fail(t, VERB_CAMPAIGN, 0), "heal");
		/* A clean refusal. */
		CHECK(t, baton_try_acquire(p->e, (int64_t)soon_ms(t), NULL) == 0,
		      "not refused cleanly");
	}
	/* All that is forgotten: the first try after the release is at once. */
	uint64_t begin_ns = now_ns();

	local_stop(holder);
	local_leads(p, failover_ms(t));
	uint64_t took_ms = (now_ns() - begin_ns) / MS;

	if (t->backend->pushes)
		CHECK(t, took_ms < t->lease_ms / 2 + stall_worst_ms(), "it took %" PRIu64 " ms",
		      took_ms);
	testcase_note(t, "led %" PRIu64 " ms after the release", took_ms);
}

const struct entry cases_scale[] = {
	{"C11", "backoff with jitter: a failing store is asked ever less", backs_off,
	 NEEDS_DOWN | NEEDS_CALLS, 0},
	{"C12", "backoff resets after a clean refusal", backoff_resets, NEEDS_FAIL, 0},
	{"N9", "losers of races never report leader", races, ALONE, 60},
	{"N12", "work is drained before release; no overlap", drained_before_release, ALONE, 60},
	{"N23", "1,000 elections: bounded connections, one renewal", thousand_elections,
	 NEEDS_NOTHING, 60},
	{"N27", "push: handoff latency, no poll between", pushes, NEEDS_PUSH, 0},
	{NULL, NULL, NULL, 0, 0},
};
