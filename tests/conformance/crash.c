/*
 * crash.c: candidates that die, freeze and come back as real processes, and clocks that lie.
 */
#include "backend.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- N1 ---- */

static void killed_leader(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	uint64_t worst_ms = 0;
	uint64_t term = 0;

	for (unsigned i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "victim-%u", i);
		struct remote *k = remote_new(t, &(struct remote_options){.id = id});
		uint64_t next = remote_leads(k, soon_ms(t));

		CHECK(t, next > term, "S3");
		CHECK(t, baton_election_start(p->e) == 0, "start");
		local_sees(p, id, soon_ms(t));
		uint64_t begin_ns = now_ns();

		remote_kill(k);
		const struct seen *became = local_next(p, BATON_EVENT_BECAME, failover_ms(t));
		uint64_t took_ms = (became->at_ns - begin_ns) / MS;

		CHECK(t, became->event.term > next, "S3");
		term = became->event.term;
		worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
		/* Where the kernel proves the death, nobody waits for the lease. */
		if (t->backend->proves_death)
			CHECK(t, took_ms < t->lease_ms / 3 * 2, "it took %" PRIu64 " ms", took_ms);
		local_stop(p);
		remote_end(k);
	}
	testcase_note(t, "at most %" PRIu64 " ms", worst_ms);
}

/* ---- N43 ---- */

/* The last deadline that it told, of at least so many: those who trust it may live on. */
static uint64_t last_deadline_ns(struct remote *k, unsigned least)
{
	char line[512] = "";

	for (unsigned i = 0; i < least; i++)
		CHECK(k->t, remote_hears(k, "deadline ", line, sizeof(line), soon_ms(k->t)),
		      "no deadline is told");
	remote_stopped(k);
	while (remote_hears(k, "deadline ", line, sizeof(line), 0))
		;
	return strtoull(line + strlen("deadline "), NULL, 10);
}

static void outlived_leader(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	uint64_t soonest_ms = UINT64_MAX;

	for (unsigned i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "outlived-%u", i);
		struct remote *k =
			remote_new(t, &(struct remote_options){.id = id, .outlive = true});
		uint64_t term = remote_leads(k, failover_ms(t));

		CHECK(t, baton_election_start(p->e) == 0, "start");
		local_sees(p, id, soon_ms(t));
		/* It dies in its first interval, and after renewals. */
		uint64_t deadline_ns = last_deadline_ns(k, 1 + i);

		remote_kill(k);
		const struct seen *became = local_next(p, BATON_EVENT_BECAME, failover_ms(t));
		uint64_t early_ms =
			became->at_ns < deadline_ns ? (deadline_ns - became->at_ns) / MS : 0;

		CHECK(t, became->event.term > term, "S3");
		CHECK(t, became->at_ns >= deadline_ns,
		      "S1: it is replaced %" PRIu64 " ms before the deadline that it told",
		      early_ms);
		if ((became->at_ns - deadline_ns) / MS < soonest_ms)
			soonest_ms = (became->at_ns - deadline_ns) / MS;
		local_stop(p);
		remote_end(k);
	}
	testcase_note(t, "at the earliest %" PRIu64 " ms after it", soonest_ms);
}

/* ---- N2 ---- */

static void freeze_and_thaw(struct testcase *t, struct remote *k, struct local *p)
{
	uint64_t term = remote_leads(k, failover_ms(t));

	CHECK(t, baton_election_start(p->e) == 0, "start");
	local_sees(p, "frozen", soon_ms(t));
	remote_stopped(k);
	uint64_t next = local_leads(p, failover_ms(t));

	CHECK(t, next > term, "S3");
	stays(t, local_is_leader, p, t->lease_ms / 2, "the successor leads");
	remote_signal(k, SIGCONT);
	CHECK(t, remote_hears(k, "lost ", NULL, 0, soon_ms(t)), "S8: the frozen one isn't told");
	/* The frozen one is a standby like any other. */
	local_stop(p);
}

static void stopped_leader(struct testcase *t)
{
	struct oracle_verdict v;

	testcase_oracle(t);
	struct remote *k =
		remote_new(t, &(struct remote_options){.id = "frozen", .track = 1, .spins = true});
	struct local *p = local_new(t, &(struct cast){.idle = true});
	struct sampler *sampler = sampler_new(t, &p, 1, 0, SAMPLE_NS);

	for (unsigned i = 0; i < 3; i++)
		freeze_and_thaw(t, k, p);
	remote_end(k);
	sampler_end(sampler);
	oracle_judge(t->oracle, &v);
	CHECK(t, v.n_woke_yes == 0, "S2: the first is_leader() after SIGCONT says yes");
	CHECK(t, v.n_woke_no + v.n_woke_new > 0, "nobody was frozen");
	testcase_note(t, "woke up %u times, %u of them late", v.n_woke_no + v.n_woke_new,
		      v.n_woke_new);
	testcase_judge(t);
}

/* ---- N8 ---- */

static void lying_clocks(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	static const int64_t shifts_s[] = {7200, -7200, 86400 * 365, 0};

	local_sees(list[p == list[0]], p->id, soon_ms(t));
	for (unsigned i = 0; i < 4; i++) {
		clock_shift(shifts_s[i]);
		stays(t, local_is_leader, p, t->lease_ms, "leader, though the wall clock jumps");
		CHECK(t, baton_resign(p->e, (int64_t)t->lease_ms) == 0, "resign");
		struct local *q = list[p == list[0]];

		local_leads(q, failover_ms(t));
		p = q;
		local_sees(list[p == list[0]], p->id, soon_ms(t));
	}
	local_close(list[0]);
	local_close(list[1]);
	if (!t->backend->has_processes)
		return;
	/* Two that don't agree about the time by hours, and one that knows it. A takeover from one
	 * who can't renew is none of the clocks'; who leads beside another, the oracle sees. */
	testcase_oracle(t);
	struct remote *ahead =
		remote_new(t, &(struct remote_options){.id = "ahead", .clock_s = 7200, .track = 0});
	uint64_t term = remote_leads(ahead, soon_ms(t));
	struct remote *behind = remote_new(
		t, &(struct remote_options){.id = "behind", .clock_s = -7200, .track = 1});
	struct local *right = local_new(t, &(struct cast){.idle = true});
	struct sampler *sampler = sampler_new(t, &right, 1, 2, SAMPLE_NS);

	CHECK(t, !remote_hears(behind, "became ", NULL, 0, 2 * t->lease_ms), "L6: a takeover");
	remote_kill(ahead);
	uint64_t next = remote_leads(behind, failover_ms(t));

	CHECK(t, next > term, "S3");
	CHECK(t, baton_election_start(right->e) == 0, "start");
	stays(t, local_is_no_leader, right, 2 * t->lease_ms, "L6: no takeover");
	remote_kill(behind);
	CHECK(t, local_leads(right, failover_ms(t)) > next, "S3");
	sampler_end(sampler);
	testcase_judge(t);
}

/* ---- N15 ---- */

/* Several processes that hand it around all the time, frozen at moments that nobody chose. */
static void stalled_processes(struct testcase *t)
{
	struct remote *remotes[3];
	unsigned rounds = t->full ? 40 : 6;

	testcase_oracle(t);
	for (unsigned i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "cycle-%u", i);
		remotes[i] = remote_new(
			t, &(struct remote_options){.id = id, .track = i, .cycle = true});
	}
	srand48((long)now_ns());
	for (unsigned i = 0; i < rounds; i++) {
		struct remote *stale = remotes[i % 3];
		struct remote *other = remotes[(i + 1) % 3];

		/* Any microsecond: between two system calls of a campaign, too. */
		uint64_t at_ns = now_ns() + (uint64_t)lrand48() % (20 * MS);

		while (now_ns() < at_ns)
			;
		remote_stopped(stale);
		/* Somebody else claims it, perhaps only when the frozen one's lease has ended. */
		while (remote_hears(other, "became", NULL, 0, 0))
			;
		remote_leads(other, 2 * failover_ms(t));
		remote_signal(stale, SIGCONT);
		while (remote_hears(stale, "became", NULL, 0, 0))
			;
	}
	while (t->n_remotes > 0)
		remote_end(t->remotes[0]);
	testcase_judge(t);
}

/*
 * One process can't be frozen in part. So the claim lands, its reply is late, and the store ends
 * the lease meanwhile, which breaks A2: for a moment two may lead. What must hold is S4: the stale
 * one has the lower term, the resource refuses it, and it is told.
 */
static void stalled_campaign(struct testcase *t)
{
	struct baton_fence fence = {0};
	struct local *stale;
	struct local *other;
	uint64_t calls = t->backend->calls(t, VERB_CAMPAIGN);

	CHECK(t, t->backend->late(t, VERB_CAMPAIGN, 1, t->lease_ms / 10), "late");
	stale = local_new(t, NULL);
	other = local_new(t, &(struct cast){.idle = true});
	while (t->backend->calls(t, VERB_CAMPAIGN) == calls)
		pass_time(1);
	CHECK(t, t->backend->destroy(t, t->name, WAY_EXPIRED), "expire");
	CHECK(t, baton_election_start(other->e) == 0, "start");
	uint64_t term = local_next(other, BATON_EVENT_BECAME, failover_ms(t))->event.term;

	CHECK(t, baton_fence_check(&fence, term) == 0, "the fence");
	const struct seen *woke = local_try_next(stale, BATON_EVENT_BECAME, t->lease_ms);

	if (woke != NULL) {
		CHECK(t, woke->event.term < term,
		      "S4: the stale one has term %" PRIu64 " after %" PRIu64, woke->event.term,
		      term);
		CHECK(t, baton_fence_check(&fence, woke->event.term) == BATON_E_STALE, "S4");
		local_next(stale, BATON_EVENT_LOST, failover_ms(t));
	}
	stays(t, local_is_leader, other, t->lease_ms, "the other one leads");
	local_stop(other);
	CHECK(t, local_leads(stale, failover_ms(t)) > term, "S3");
	testcase_note(t, "the stale claim was %s", woke != NULL ? "led for a moment" : "never led");
}

static void stale_claim(struct testcase *t)
{
	if (t->backend->has_processes)
		stalled_processes(t);
	else
		stalled_campaign(t);
}

/* ---- N17 ---- */

struct twins {
	struct local *p;
	struct remote *k; /* or */
	struct local *q;
};

static bool has_complained(struct local *p)
{
	bool has = false;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n_seen; i++)
		has = has || (p->seen[i].event.kind == BATON_EVENT_ERROR &&
			      p->seen[i].event.code == BATON_E_DUPLICATE_ID);
	pthread_mutex_unlock(&p->lock);
	return has;
}

static bool is_noticed(void *arg)
{
	struct twins *w = arg;
	char word[16];

	snprintf(word, sizeof(word), "error %d", BATON_E_DUPLICATE_ID);
	return has_complained(w->p) || (w->q != NULL && has_complained(w->q)) ||
	       (w->k != NULL && remote_hears(w->k, word, NULL, 0, 0));
}

/* An id is a label: with the same one twice there is still one leader, and an error. */
static void one_id_twice(struct testcase *t)
{
	struct twins w = {.q = NULL};
	struct local *list[2];

	testcase_oracle(t);
	w.p = list[0] = local_new(t, &(struct cast){.id = "twin"});
	local_leads(w.p, soon_ms(t));
	if (t->backend->has_processes)
		w.k = remote_new(t, &(struct remote_options){.id = "twin", .track = 2});
	else
		w.q = list[1] = local_new(t, &(struct cast){.id = "twin"});
	struct sampler *sampler = sampler_new(t, list, w.q != NULL ? 2 : 1, 0, SAMPLE_NS);

	await(t, is_noticed, &w, 4 * soon_ms(t), "an error about the same id twice");
	stays(t, local_is_leader, w.p, 2 * t->lease_ms, "the first of the twins leads");
	local_stop(w.p);
	if (w.k != NULL) {
		remote_leads(w.k, failover_ms(t));
		remote_end(w.k);
	} else {
		local_leads(w.q, failover_ms(t));
	}
	sampler_end(sampler);
	testcase_judge(t);
}

/* ---- N22 ---- */

struct roll {
	struct local *eye;
	const char *id;
};

static bool is_listed(void *arg)
{
	struct roll *r = arg;
	struct baton_candidate list[8];
	struct baton_error err = {0};

	int n = patient_list(r->eye->t, r->eye->b, r->eye->t->name, list, 8, &err);

	CHECK(r->eye->t, n >= 0 && n <= 8, "baton_list_candidates: %d %s", n, err.text);
	for (int i = 0; i < n; i++) {
		if (strcmp(list[i].id, r->id) == 0)
			return true;
	}
	return false;
}

static bool is_gone(void *arg)
{
	return !is_listed(arg);
}

static void crashed_candidate(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	struct roll r = {p, "crashes"};

	local_leads(p, soon_ms(t));
	struct remote *k = remote_new(t, &(struct remote_options){.id = "crashes"});

	await(t, is_listed, &r, soon_ms(t), "the remote candidate to be listed");
	stays(t, is_listed, &r, 3 * t->lease_ms / 2, "listed while it lives");
	uint64_t begin_ns = now_ns();

	remote_kill(k);
	await(t, is_gone, &r, expiry_ms(t) + t->lease_ms / 10 + 300 + stall_worst_ms(),
	      "the crashed one to be dropped with its lease");
	testcase_note(t, "dropped after %" PRIu64 " ms", (now_ns() - begin_ns) / MS);
	remote_end(k);
	/* Who leaves properly is gone at once. */
	k = remote_new(t, &(struct remote_options){.id = "leaves"});
	r.id = "leaves";
	await(t, is_listed, &r, soon_ms(t), "the remote candidate to be listed");
	remote_end(k);
	await(t, is_gone, &r, t->lease_ms / 2 + 300 + stall_worst_ms(), "who left to be dropped");
}

/* ---- S10 ---- */

/* Not in the list, but promised: in a child every handle says no, and touches nothing. */
static void forked_child(struct testcase *t)
{
	struct local *p = local_new(t, NULL);

	local_leads(p, soon_ms(t));
	pid_t pid = fork();

	CHECK(t, pid >= 0, "fork");
	if (pid == 0) {
		bool wrong = baton_is_leader(p->e) || baton_term(p->e) != 0 ||
			     baton_election_start(p->e) != BATON_E_FORKED ||
			     baton_resign(p->e, 0) != BATON_E_FORKED;

		_exit(wrong ? 1 : 0);
	}
	int status = -1;

	CHECK(t, waitpid(pid, &status, 0) == pid && WIFEXITED(status), "the child did not end");
	CHECK(t, WEXITSTATUS(status) == 0, "S10: the child leads, or may use the handle");
	stays(t, local_is_leader, p, 2 * t->lease_ms, "the parent leads on");
}

const struct entry cases_crash[] = {
	{"N1", "SIGKILL the leader: failover within the bound", killed_leader, NEEDS_PROCESSES, 0},
	{"N43", "a killed leader that is outlived is not replaced before its deadline",
	 outlived_leader, NEEDS_PROCESSES, 0},
	{"N2", "SIGSTOP beyond the lease: the first is_leader() says no", stopped_leader,
	 NEEDS_PROCESSES, 0},
	{"N8", "wall clocks off by hours", lying_clocks, NEEDS_NOTHING, 0},
	{"N15", "claim, stall, another claims, wake: never the higher term", stale_claim,
	 NEEDS_NOTHING, 60},
	{"N17", "two candidates with one id", one_id_twice, NEEDS_NOTHING, 0},
	{"N22", "the list of candidates drops the crashed", crashed_candidate, NEEDS_PROCESSES, 0},
	{"S10", "a forked child is never leader", forked_child, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
