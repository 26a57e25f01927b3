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

static void killed_leader(struct stage *t)
{
	struct player *p = player_new(t, &(struct cast){.idle = true});
	uint64_t worst_ms = 0;
	uint64_t term = 0;

	for (unsigned i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "victim-%u", i);
		struct kin *k = kin_new(t, &(struct kin_options){.id = id});
		uint64_t next = kin_leads(k, soon_ms(t));

		CHECK(t, next > term, "S3");
		CHECK(t, baton_election_start(p->e) == 0, "start");
		player_sees(p, id, soon_ms(t));
		uint64_t begin_ns = now_ns();

		kin_kill(k);
		const struct seen *became = player_next(p, BATON_EVENT_BECAME, failover_ms(t));
		uint64_t took_ms = (became->at_ns - begin_ns) / MS;

		CHECK(t, became->event.term > next, "S3");
		term = became->event.term;
		worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
		/* Where the kernel proves the death, nobody waits for the lease. */
		if (t->backend->proves_death)
			CHECK(t, took_ms < t->lease_ms / 3 * 2, "it took %" PRIu64 " ms", took_ms);
		player_stop(p);
		kin_end(k);
	}
	stage_note(t, "at most %" PRIu64 " ms", worst_ms);
}

/* ---- N2 ---- */

static void freeze_and_thaw(struct stage *t, struct kin *k, struct player *p)
{
	uint64_t term = kin_leads(k, failover_ms(t));

	CHECK(t, baton_election_start(p->e) == 0, "start");
	player_sees(p, "frozen", soon_ms(t));
	kin_stopped(k);
	uint64_t next = player_leads(p, failover_ms(t));

	CHECK(t, next > term, "S3");
	stays(t, player_is_leader, p, t->lease_ms / 2, "the successor leads");
	kin_signal(k, SIGCONT);
	CHECK(t, kin_hears(k, "lost ", NULL, 0, soon_ms(t)), "S8: the frozen one isn't told");
	/* The frozen one is a standby like any other. */
	player_stop(p);
}

static void stopped_leader(struct stage *t)
{
	struct oracle_verdict v;

	stage_oracle(t);
	struct kin *k =
		kin_new(t, &(struct kin_options){.id = "frozen", .track = 1, .spins = true});
	struct player *p = player_new(t, &(struct cast){.idle = true});
	struct sampler *sampler = sampler_new(t, &p, 1, 0, SAMPLE_NS);

	for (unsigned i = 0; i < 3; i++)
		freeze_and_thaw(t, k, p);
	kin_end(k);
	sampler_end(sampler);
	oracle_judge(t->oracle, &v);
	CHECK(t, v.n_woke_yes == 0, "S2: the first is_leader() after SIGCONT says yes");
	CHECK(t, v.n_woke_no + v.n_woke_new > 0, "nobody was frozen");
	stage_note(t, "woke up %u times, %u of them late", v.n_woke_no + v.n_woke_new,
		   v.n_woke_new);
	stage_judge(t);
}

/* ---- N8 ---- */

static void lying_clocks(struct stage *t)
{
	struct player *list[2] = {player_new(t, NULL), player_new(t, NULL)};
	struct player *p = await_leader(t, list, 2, soon_ms(t));
	static const int64_t shifts_s[] = {7200, -7200, 86400 * 365, 0};

	player_sees(list[p == list[0]], p->id, soon_ms(t));
	for (unsigned i = 0; i < 4; i++) {
		clock_shift(shifts_s[i]);
		stays(t, player_is_leader, p, t->lease_ms, "leader, though the wall clock jumps");
		CHECK(t, baton_resign(p->e, (int64_t)t->lease_ms) == 0, "resign");
		struct player *q = list[p == list[0]];

		player_leads(q, failover_ms(t));
		p = q;
		player_sees(list[p == list[0]], p->id, soon_ms(t));
	}
	player_close(list[0]);
	player_close(list[1]);
	if (!t->backend->has_processes)
		return;
	/* Two that don't agree about the time by hours, and one that knows it. A takeover from one
	 * who can't renew is none of the clocks'; who leads beside another, the oracle sees. */
	stage_oracle(t);
	struct kin *ahead =
		kin_new(t, &(struct kin_options){.id = "ahead", .clock_s = 7200, .track = 0});
	uint64_t term = kin_leads(ahead, soon_ms(t));
	struct kin *behind =
		kin_new(t, &(struct kin_options){.id = "behind", .clock_s = -7200, .track = 1});
	struct player *right = player_new(t, &(struct cast){.idle = true});
	struct sampler *sampler = sampler_new(t, &right, 1, 2, SAMPLE_NS);

	CHECK(t, !kin_hears(behind, "became ", NULL, 0, 2 * t->lease_ms), "L6: a takeover");
	kin_kill(ahead);
	uint64_t next = kin_leads(behind, failover_ms(t));

	CHECK(t, next > term, "S3");
	CHECK(t, baton_election_start(right->e) == 0, "start");
	stays(t, player_is_no_leader, right, 2 * t->lease_ms, "L6: no takeover");
	kin_kill(behind);
	CHECK(t, player_leads(right, failover_ms(t)) > next, "S3");
	sampler_end(sampler);
	stage_judge(t);
}

/* ---- N15 ---- */

/* Several processes that hand it around all the time, frozen at moments that nobody chose. */
static void stalled_processes(struct stage *t)
{
	struct kin *kins[3];
	unsigned rounds = t->full ? 40 : 6;

	stage_oracle(t);
	for (unsigned i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "cycle-%u", i);
		kins[i] = kin_new(t, &(struct kin_options){.id = id, .track = i, .cycle = true});
	}
	srand48((long)now_ns());
	for (unsigned i = 0; i < rounds; i++) {
		struct kin *stale = kins[i % 3];
		struct kin *other = kins[(i + 1) % 3];

		/* Any microsecond: between two system calls of a campaign, too. */
		uint64_t at_ns = now_ns() + (uint64_t)lrand48() % (20 * MS);

		while (now_ns() < at_ns)
			;
		kin_stopped(stale);
		/* Somebody else claims it, perhaps only when the frozen one's lease has ended. */
		while (kin_hears(other, "became", NULL, 0, 0))
			;
		kin_leads(other, 2 * failover_ms(t));
		kin_signal(stale, SIGCONT);
		while (kin_hears(stale, "became", NULL, 0, 0))
			;
	}
	while (t->n_kins > 0)
		kin_end(t->kins[0]);
	stage_judge(t);
}

/*
 * One process can't be frozen in part. So the claim lands, its reply is late, and the store ends
 * the lease meanwhile, which breaks A2: for a moment two may lead. What must hold is S4: the stale
 * one has the lower term, the resource refuses it, and it is told.
 */
static void stalled_campaign(struct stage *t)
{
	struct baton_fence fence = {0};
	struct player *stale;
	struct player *other;
	uint64_t calls = t->backend->calls(t, VERB_CAMPAIGN);

	CHECK(t, t->backend->late(t, VERB_CAMPAIGN, 1, t->lease_ms / 10), "late");
	stale = player_new(t, NULL);
	other = player_new(t, &(struct cast){.idle = true});
	while (t->backend->calls(t, VERB_CAMPAIGN) == calls)
		pass_time(1);
	CHECK(t, t->backend->destroy(t, t->name, WAY_EXPIRED), "expire");
	CHECK(t, baton_election_start(other->e) == 0, "start");
	uint64_t term = player_next(other, BATON_EVENT_BECAME, failover_ms(t))->event.term;

	CHECK(t, baton_fence_check(&fence, term) == 0, "the fence");
	const struct seen *woke = player_try_next(stale, BATON_EVENT_BECAME, t->lease_ms);

	if (woke != NULL) {
		CHECK(t, woke->event.term < term,
		      "S4: the stale one has term %" PRIu64 " after %" PRIu64, woke->event.term,
		      term);
		CHECK(t, baton_fence_check(&fence, woke->event.term) == BATON_E_STALE, "S4");
		player_next(stale, BATON_EVENT_LOST, failover_ms(t));
	}
	stays(t, player_is_leader, other, t->lease_ms, "the other one leads");
	player_stop(other);
	CHECK(t, player_leads(stale, failover_ms(t)) > term, "S3");
	stage_note(t, "the stale claim was %s", woke != NULL ? "led for a moment" : "never led");
}

static void stale_claim(struct stage *t)
{
	if (t->backend->has_processes)
		stalled_processes(t);
	else
		stalled_campaign(t);
}

/* ---- N17 ---- */

struct twins {
	struct player *p;
	struct kin *k; /* or */
	struct player *q;
};

static bool has_complained(struct player *p)
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
	       (w->k != NULL && kin_hears(w->k, word, NULL, 0, 0));
}

/* An id is a label: with the same one twice there is still one leader, and an error. */
static void one_id_twice(struct stage *t)
{
	struct twins w = {.q = NULL};
	struct player *list[2];

	stage_oracle(t);
	w.p = list[0] = player_new(t, &(struct cast){.id = "twin"});
	player_leads(w.p, soon_ms(t));
	if (t->backend->has_processes)
		w.k = kin_new(t, &(struct kin_options){.id = "twin", .track = 2});
	else
		w.q = list[1] = player_new(t, &(struct cast){.id = "twin"});
	struct sampler *sampler = sampler_new(t, list, w.q != NULL ? 2 : 1, 0, SAMPLE_NS);

	await(t, is_noticed, &w, 4 * soon_ms(t), "an error about the same id twice");
	stays(t, player_is_leader, w.p, 2 * t->lease_ms, "the first of the twins leads");
	player_stop(w.p);
	if (w.k != NULL) {
		kin_leads(w.k, failover_ms(t));
		kin_end(w.k);
	} else {
		player_leads(w.q, failover_ms(t));
	}
	sampler_end(sampler);
	stage_judge(t);
}

/* ---- N22 ---- */

struct roll {
	struct player *eye;
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

static void crashed_candidate(struct stage *t)
{
	struct player *p = player_new(t, NULL);
	struct roll r = {p, "crashes"};

	player_leads(p, soon_ms(t));
	struct kin *k = kin_new(t, &(struct kin_options){.id = "crashes"});

	await(t, is_listed, &r, soon_ms(t), "the kin to be listed");
	stays(t, is_listed, &r, 3 * t->lease_ms / 2, "listed while it lives");
	uint64_t begin_ns = now_ns();

	kin_kill(k);
	await(t, is_gone, &r, expiry_ms(t) + t->lease_ms / 10 + 300 + stall_worst_ms(),
	      "the crashed one to be dropped with its lease");
	stage_note(t, "dropped after %" PRIu64 " ms", (now_ns() - begin_ns) / MS);
	kin_end(k);
	/* Who leaves properly is gone at once. */
	k = kin_new(t, &(struct kin_options){.id = "leaves"});
	r.id = "leaves";
	await(t, is_listed, &r, soon_ms(t), "the kin to be listed");
	kin_end(k);
	await(t, is_gone, &r, t->lease_ms / 2 + 300 + stall_worst_ms(), "who left to be dropped");
}

/* ---- S10 ---- */

/* Not in the list, but promised: in a child every handle says no, and touches nothing. */
static void forked_child(struct stage *t)
{
	struct player *p = player_new(t, NULL);

	player_leads(p, soon_ms(t));
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
	stays(t, player_is_leader, p, 2 * t->lease_ms, "the parent leads on");
}

const struct entry cases_crash[] = {
	{"N1", "SIGKILL the leader: failover within the bound", killed_leader, NEEDS_PROCESSES, 0},
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
