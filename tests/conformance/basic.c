/*
 * basic.c: one leader, found, kept and handed on, with nothing going wrong.
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- C1, C2 ---- */

static void acquires_alone(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));
	struct baton_status status;

	CHECK(t, term > 0, "leads in no term");
	CHECK(t, baton_time_left_ms(p->e) > 0, "leads, but no time is left");
	CHECK(t, baton_time_left_ms(p->e) <= (int64_t)deadline_ms(t), "S2: %" PRId64 " ms left",
	      baton_time_left_ms(p->e));
	local_status(p, &status);
	CHECK(t, status.state == BATON_STATE_LEADING && status.is_leader, "state %d", status.state);
	CHECK(t, status.term == term, "status says term %" PRIu64, status.term);
	CHECK(t, strcmp(status.leader, p->id) == 0, "status says leader %s", status.leader);
	CHECK(t, status.last_renewal_ms > 0 && status.last_renewal_boot_ns > 0, "no renewal");
	CHECK(t, local_next(p, BATON_EVENT_BECAME, soon_ms(t))->event.term == term, "event");
}

static void starts_and_stops(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	struct baton_status status;

	CHECK(t, baton_election_stop(p->e, 1000) == 0, "stop before start");
	CHECK(t, !baton_is_leader(p->e) && baton_term(p->e) == 0, "S9: leads before start");
	uint64_t terms[3];

	for (unsigned i = 0; i < 3; i++) {
		CHECK(t, baton_election_start(p->e) == 0, "start %u", i);
		CHECK(t, baton_election_start(p->e) == 0, "start %u again", i);
		terms[i] = local_leads(p, soon_ms(t));
		CHECK(t, i == 0 || terms[i] > terms[i - 1], "S3: %" PRIu64 " after %" PRIu64,
		      terms[i], terms[i - 1]);
		local_stop(p);
		CHECK(t, !baton_is_leader(p->e) && baton_term(p->e) == 0, "S7: leads after stop");
		CHECK(t, baton_election_stop(p->e, 1000) == 0, "stop %u again", i);
	}
	local_status(p, &status);
	CHECK(t, status.state == BATON_STATE_STOPPED, "state %d after stop", status.state);
	CHECK(t, local_count(p, BATON_EVENT_BECAME) == 3, "became");
	CHECK(t, local_count(p, BATON_EVENT_LOST) == 3, "lost");
	/* A start while a stop is under way comes after it, and can be stopped like any other. */
	CHECK(t, baton_election_start(p->e) == 0, "start");
	local_leads(p, soon_ms(t));
	(void)baton_election_stop(p->e, 0);
	CHECK(t, baton_election_start(p->e) == 0, "start behind a stop");
	local_leads(p, soon_ms(t));
	local_stop(p);
	CHECK(t, !baton_is_leader(p->e) && baton_term(p->e) == 0, "S7: leads after that stop");
	/* S8: none after stop returned. */
	size_t n = local_count(p, 0);

	pass_time(t->lease_ms / 2);
	CHECK(t, local_count(p, 0) == n, "S8: event %d after stop returned", p->seen[n].event.kind);
}

/* ---- C4, C7, C23 ---- */

static void keeps_it(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));

	stays(t, local_is_leader, p, t->lease_ms * 7 / 2, "leader, over three leases and a half");
	CHECK(t, baton_term(p->e) == term, "another term");
	CHECK(t, local_count(p, BATON_EVENT_LOST) == 0, "lost");
	CHECK(t, local_count(p, BATON_EVENT_BECAME) == 1, "became more than once");
}

static void first_keeps_it(struct testcase *t)
{
	struct local *first = local_new(t, NULL);
	struct local *others[8];
	uint64_t term = local_leads(first, soon_ms(t));

	for (unsigned i = 0; i < 8; i++)
		others[i] = local_new(t, NULL);
	stays(t, local_is_leader, first, 2 * t->lease_ms, "the first one leads");
	CHECK(t, baton_term(first->e) == term, "another term");
	for (unsigned i = 0; i < 8; i++)
		CHECK(t, local_count(others[i], BATON_EVENT_BECAME) == 0, "another led");
}

/* Who asks again and again, with a lease of its own, gets it no sooner. */
static void no_takeover(struct testcase *t)
{
	struct local *leader = local_new(t, NULL);
	uint64_t term = local_leads(leader, soon_ms(t));
	struct local *eager = local_new(t, NULL);
	uint64_t end_ns = now_ns() + 3 * t->lease_ms * MS;

	local_sees(eager, leader->id, soon_ms(t));
	while (now_ns() < end_ns) {
		int rc = baton_try_acquire(eager->e, (int64_t)t->lease_ms, NULL);

		CHECK(t, rc == 0 || rc == BATON_E_UNAVAILABLE || rc == BATON_E_TIMEOUT,
		      "try_acquire says %d", rc);
		CHECK(t, !baton_is_leader(eager->e), "took over from a leader that renews");
		pass_time(t->lease_ms / 20);
	}
	CHECK(t, baton_is_leader(leader->e) && baton_term(leader->e) == term, "no longer leader");
}

/* ---- C5, C6 ---- */

#define STARTERS 50

struct starters {
	struct local *locals[STARTERS];
	unsigned n;
};

/* Half of them in other processes, where the store allows that. */
static void start_fifty(struct testcase *t, struct starters *s)
{
	unsigned in_kin = t->backend->has_processes ? 30 : 0;

	testcase_oracle(t);
	for (unsigned i = 0; i < STARTERS - in_kin; i++)
		s->locals[s->n++] = local_new(t, &(struct cast){.idle = true});
	for (unsigned i = 0; i < in_kin; i += 10) {
		char id[32];

		snprintf(id, sizeof(id), "remote-%u", i);
		remote_new(t, &(struct remote_options){.id = id, .n = 10, .track = STARTERS + i});
	}
	for (unsigned i = 0; i < s->n; i++)
		CHECK(t, baton_election_start(s->locals[i]->e) == 0, "start");
}

static bool all_know(void *arg)
{
	struct starters *s = arg;

	for (unsigned i = 0; i < s->n; i++) {
		struct baton_status status;

		local_status(s->locals[i], &status);
		if (status.leader[0] == '\0')
			return false;
	}
	return true;
}

static void fifty_starters(struct testcase *t)
{
	struct starters s = {.n = 0};

	start_fifty(t, &s);
	struct sampler *sampler = sampler_new(t, s.locals, s.n, 0, SAMPLE_NS);

	await(t, all_know, &s, soon_ms(t), "fifty candidates to know a leader");
	pass_time(3 * t->lease_ms / 2);
	unsigned n = 0;

	for (unsigned i = 0; i < s.n; i++)
		n += baton_is_leader(s.locals[i]->e);
	CHECK(t, n <= 1, "%u say yes one after the other", n);
	while (t->n_remotes > 0)
		remote_end(t->remotes[0]);
	sampler_end(sampler);
	testcase_judge(t);
}

static void all_agree(struct testcase *t)
{
	struct starters s = {.n = 0};
	struct baton_status first;

	start_fifty(t, &s);
	struct sampler *sampler = sampler_new(t, s.locals, s.n, 0, SAMPLE_NS);

	await(t, all_know, &s, soon_ms(t), "all candidates to know a leader");
	local_status(s.locals[0], &first);
	for (unsigned i = 1; i < s.n; i++) {
		local_sees(s.locals[i], first.leader, soon_ms(t));
		struct baton_status status;

		local_status(s.locals[i], &status);
		CHECK(t, status.term == first.term, "terms %" PRIu64 " and %" PRIu64, status.term,
		      first.term);
		CHECK(t, status.is_leader == (strcmp(status.leader, s.locals[i]->id) == 0),
		      "names itself and doesn't lead, or the other way round");
	}
	struct baton_observed observed = {0};
	struct baton_error err = {0};
	int rc = patient_observe(t, s.locals[0]->b, t->name, &observed, &err);

	CHECK(t, rc == 0, "baton_observe: %s", err.text);
	CHECK(t, strcmp(observed.leader, first.leader) == 0, "the store says %s", observed.leader);
	while (t->n_remotes > 0)
		remote_end(t->remotes[0]);
	sampler_end(sampler);
	testcase_judge(t);
}

/* ---- C8 ---- */

static void hands_over(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));
	struct local *q = local_new(t, NULL);

	local_sees(q, p->id, soon_ms(t));
	uint64_t begin_ns = now_ns();

	local_stop(p);
	const struct seen *became = local_next(q, BATON_EVENT_BECAME, failover_ms(t));
	uint64_t took_ms = (became->at_ns - begin_ns) / MS;

	CHECK(t, became->event.term > term, "S3: %" PRIu64 " after %" PRIu64, became->event.term,
	      term);
	/* L2: a push, not a lease. */
	if (t->backend->pushes)
		CHECK(t, took_ms < t->lease_ms, "L2: it took %" PRIu64 " ms", took_ms);
	testcase_note(t, "%" PRIu64 " ms", took_ms);
}

const struct entry cases_basic[] = {
	{"C1", "acquires alone", acquires_alone, NEEDS_NOTHING, 0},
	{"C2", "start and stop idempotent, stop before start, restart", starts_and_stops,
	 NEEDS_NOTHING, 0},
	{"C4", "keeps leadership over more than three leases", keeps_it, NEEDS_NOTHING, 0},
	{"C5", "fifty concurrent starters, one leader", fifty_starters, ALONE, 0},
	{"C6", "all agree on the leader's name", all_agree, ALONE, 0},
	{"C7", "the first starter keeps it", first_keeps_it, NEEDS_NOTHING, 0},
	{"C8", "handoff on stop", hands_over, NEEDS_NOTHING, 0},
	{"C23", "no takeover while the leader renews", no_takeover, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
