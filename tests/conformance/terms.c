/*
 * terms.c: the fencing token only ever grows (S3, S4), whatever happens to leaders and records.
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- C18 ---- */

#define MINTS 40

struct mint {
	uint64_t term;
	uint64_t
		at_ns; /* an instant of the leadership; 0: it was over before anybody heard of it */
};

static void resign_for_good(struct local *p, const struct baton_event *event)
{
	struct mint *mint = p->arg;
	uint64_t at_ns = now_ns();

	if (event->kind != BATON_EVENT_BECAME)
		return;
	mint->term = event->term;
	mint->at_ns = baton_term(p->e) == event->term ? at_ns : 0;
	baton_resign(p->e, 600000);
}

static int by_term(const void *a, const void *b)
{
	const struct mint *x = a;
	const struct mint *y = b;

	return x->term < y->term ? -1 : x->term > y->term;
}

/* Forty contend at once; each leads once and makes room for the others. */
static void terms_grow(struct testcase *t)
{
	static struct mint mints[MINTS];
	struct local *list[MINTS];
	unsigned n_sure = 0;
	uint64_t last_ns = 0;

	for (unsigned i = 0; i < MINTS; i++)
		list[i] = local_new(
			t, &(struct cast){.hook = resign_for_good, .arg = &mints[i], .idle = true});
	for (unsigned i = 0; i < MINTS; i++)
		CHECK(t, baton_election_start(list[i]->e) == 0, "start");
	for (unsigned i = 0; i < MINTS; i++) {
		local_next(list[i], BATON_EVENT_BECAME, 3 * soon_ms(t));
		local_next(list[i], BATON_EVENT_LOST, soon_ms(t));
	}
	qsort(mints, MINTS, sizeof(mints[0]), by_term);
	for (unsigned i = 0; i < MINTS; i++) {
		CHECK(t, i == 0 || mints[i].term > mints[i - 1].term,
		      "S4: term %" PRIu64 " belongs to two", mints[i].term);
		CHECK(t, mints[i].at_ns == 0 || mints[i].at_ns > last_ns,
		      "S3: term %" PRIu64 " was led in before a lower one", mints[i].term);
		n_sure += mints[i].at_ns != 0;
		last_ns = mints[i].at_ns != 0 ? mints[i].at_ns : last_ns;
	}
	testcase_note(t, "%d mints, %u of them heard of in time", MINTS, n_sure);
}

/* ---- C19, C21 ---- */

static bool is_free(struct testcase *t, struct baton *b)
{
	struct baton_observed status = {0};

	(void)t;
	return baton_observe(b, t->name, &status, NULL) != 0 || status.leader[0] == '\0';
}

static void no_term_no_leader(struct testcase *t)
{
	CHECK(t, t->backend->fail(t, VERB_CAMPAIGN, UINT32_MAX), "fail");
	struct local *p = local_new(t, NULL);
	const struct seen *error = local_next(p, BATON_EVENT_ERROR, soon_ms(t));

	CHECK(t, error->event.code < 0, "an error event with code %d", error->event.code);
	stays(t, local_is_no_leader, p, 2 * t->lease_ms, "S9: no leader without a term");
	CHECK(t, local_count(p, BATON_EVENT_BECAME) == 0, "S9: became");
	CHECK(t, is_free(t, p->b), "the election is held");
	CHECK(t, t->backend->fail(t, VERB_CAMPAIGN, 0), "heal");
	CHECK(t, local_leads(p, soon_ms(t)) > 0, "L8: leads in no term");
}

static void range_ends(struct testcase *t)
{
	uint64_t highest = INT64_MAX;

	for (unsigned i = 0; i < 2; i++) {
		/* Somebody has led here, so the record is a real one. */
		struct local *p = local_new(t, NULL);

		local_leads(p, soon_ms(t));
		local_close(p);
		CHECK(t, t->backend->set_term(t, t->name, highest - i), "set the term");
		struct local *q = local_new(t, NULL);
		const struct seen *error = local_next(q, BATON_EVENT_ERROR, soon_ms(t));

		CHECK(t, error->event.text[0] != '\0', "an error without a sentence");
		stays(t, local_is_no_leader, q, t->lease_ms,
		      "S9: no leader at the end of the range");
		CHECK(t, local_count(q, BATON_EVENT_BECAME) == 0, "S9: became leader");
		local_close(q);
		CHECK(t, t->backend->set_term(t, t->name, 100 + i), "set the term back");
	}
}

/* ---- N16 ---- */

static void keep_claim(struct baton_election_options *o)
{
	o->release_on_stop = false;
}

#define NEW_SCORE 900

/* Whether the store shows what the leader has said of itself: among the candidates, and to those
 * who ask who leads, because a standby's preemption compares itself with that. */
static bool is_shown(void *arg)
{
	struct local *p = arg;
	struct baton_candidate list[2];
	struct baton_observed seen = {0};
	int n = patient_list(p->t, p->b, p->t->name, list, 2, NULL);

	return n == 1 && list[0].score_permille == NEW_SCORE &&
	       patient_observe(p->t, p->b, p->t->name, &seen, NULL) == 0 &&
	       seen.score_permille == NEW_SCORE;
}

static void term_survives(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));
	uint64_t next;

	/* Release. */
	local_stop(p);
	CHECK(t, baton_election_start(p->e) == 0, "start");
	next = local_leads(p, soon_ms(t));
	CHECK(t, next > term, "S3: %" PRIu64 " after %" PRIu64 " and a release", next, term);
	term = next;
	/* A leader that has news of itself leads on in its term, and leaves it to nobody else. */
	CHECK(t, baton_report_health(p->e, NEW_SCORE, "news") == 0, "report");
	if (!t->backend->is_mute)
		await(t, is_shown, p, soon_ms(t), "the leader's news");
	CHECK(t, baton_term(p->e) == term, "%" PRIu64 " has become another term", term);
	/* Restart: nobody is there for a while. */
	local_close(p);
	p = local_new(t, &(struct cast){.tune_election = keep_claim});
	next = local_leads(p, soon_ms(t));
	CHECK(t, next > term, "S3: %" PRIu64 " after %" PRIu64 " and a restart", next, term);
	term = next;
	/* Expiry: the claim is left behind, and its lease runs out. */
	local_close(p);
	p = local_new(t, NULL);
	next = local_leads(p, failover_ms(t));
	CHECK(t, next > term, "S3: %" PRIu64 " after %" PRIu64 " and an expiry", next, term);
	term = next;
	local_close(p);
	if (!t->backend->has_processes)
		return;
	/* Death. */
	struct remote *k = remote_new(t, &(struct remote_options){.id = "dies"});

	next = remote_leads(k, soon_ms(t));
	CHECK(t, next > term, "S3: %" PRIu64 " after %" PRIu64, next, term);
	term = next;
	remote_kill(k);
	p = local_new(t, NULL);
	next = local_leads(p, failover_ms(t));
	CHECK(t, next > term, "S3: %" PRIu64 " after %" PRIu64 " and a death", next, term);
}

/* ---- N34 ---- */

static void floor_holds(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	uint64_t term = baton_term(p->e);

	/* Some history, so that "begins at 1 again" would show. From the second time on both are to
	 * keep quiet, and their times end within a few milliseconds: either may be the first. */
	for (unsigned i = 0; i < 3; i++) {
		local_sees(list[p == list[0]], p->id, soon_ms(t));
		CHECK(t, baton_resign(p->e, (int64_t)t->lease_ms) == 0, "resign");
		p = await_leader(t, list, 2, failover_ms(t));
		local_is_above(p, term);
		term++;
	}
	p = await_leader(t, list, 2, soon_ms(t));
	term = baton_term(p->e);
	local_knows(list[p == list[0]], term, soon_ms(t));
	local_catch_up(p);
	CHECK(t, t->backend->forget(t), "forget");
	/* The leader finds out; afterwards somebody leads, above all that was. */
	local_next(p, BATON_EVENT_LOST, failover_ms(t));
	p = await_leader(t, list, 2, failover_ms(t) + soon_ms(t));
	local_is_above(p, term);
}

const struct entry cases_terms[] = {
	{"C18", "terms strictly grow; 40 concurrent mints are distinct", terms_grow, ALONE, 0},
	{"C19", "no term can be minted: not leader, election free", no_term_no_leader, NEEDS_FAIL,
	 0},
	{"C21", "at the end of the number range: fails closed", range_ends, NEEDS_TERM, 0},
	{"N16", "the term survives release, restart, expiry", term_survives, NEEDS_NOTHING, 0},
	{"N34", "term floor: the store lost its data, terms still grow", floor_holds, NEEDS_FORGET,
	 0},
	{NULL, NULL, NULL, 0, 0},
};
