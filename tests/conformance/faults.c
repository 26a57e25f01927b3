/*
 * faults.c: the store fails, swallows, delays and comes back. The leader demotes itself in time, by
 * its own clock, and everybody contends again (S2, S5, S9, L6, L8).
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- small words ---- */

static struct baton_stats stats_of(struct local *p)
{
	struct baton_stats stats = {0};

	CHECK(p->t, baton_get_stats(p->b, &stats) == 0, "stats");
	return stats;
}

static void hole(struct testcase *t, bool is_hole)
{
	CHECK(t, t->backend->hole(t, is_hole), "the black hole");
}

static void down(struct testcase *t, bool is_down)
{
	CHECK(t, t->backend->down(t, is_down), "the store down or up");
}

/*
 * S2: from the moment of silence on, renew + grace is the latest, on our own clock. Of this term:
 * who isn't let run for a while may miss that it was lost, and find that the next one was won.
 */
static void demotes_in_time(struct testcase *t, struct local *p, uint64_t term, uint64_t since_ns)
{
	uint64_t end_ns = since_ns + deadline_ms(t) * MS;

	for (;;) {
		uint64_t before_ns = now_ns();

		if (!baton_is_leader(p->e) || baton_term(p->e) != term)
			break;
		CHECK(t, before_ns <= end_ns, "S2: leader %" PRIu64 " ms after the silence began",
		      (before_ns - since_ns) / MS);
		pass_time(1);
	}
	const struct seen *lost = local_next(p, BATON_EVENT_LOST, soon_ms(t));

	CHECK(t, lost->event.reason == BATON_REASON_EXPIRED, "reason %d", lost->event.reason);
}

/* ---- N3, N4 ---- */

static void black_hole(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	uint64_t term = baton_term(p->e);

	local_sees(list[p == list[0]], p->id, soon_ms(t));
	hole(t, true);
	demotes_in_time(t, p, term, now_ns());
	stays(t, local_is_no_leader, list[p == list[0]], t->lease_ms,
	      "S9: nobody leads in the dark");
	hole(t, false);
	p = await_leader(t, list, 2, failover_ms(t));
	local_is_above(p, term);
}

/* A renewal is good from its send on, so what its reply took is lost to the leader. */
static void late_replies(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t late_ms = t->lease_ms / 15; /* a call may take a ninth */
	uint64_t term = local_leads(p, soon_ms(t));
	uint64_t ok = stats_of(p).renewals_ok;

	CHECK(t, t->backend->late(t, VERB_RENEW, UINT32_MAX, late_ms), "late");
	while (stats_of(p).renewals_ok < ok + 2) /* one that was not late may be under way */
		pass_time(1);
	uint64_t end_ns = now_ns() + t->lease_ms * MS;

	while (now_ns() < end_ns) {
		int64_t left_ms = baton_time_left_ms(p->e);

		/* A new lease isn't late; if there had to be one, the term is another (L6). */
		CHECK(t,
		      left_ms <= (int64_t)(deadline_ms(t) - late_ms) + 1 ||
			      baton_term(p->e) != term,
		      "S2: counted from the reply: %" PRId64 " ms left", left_ms);
		pass_time(1);
	}
	CHECK(t, baton_is_leader(p->e) && baton_term(p->e) == term, "L6: lost by slow replies");
	/* After the lease's end: no reply brings it back. */
	CHECK(t, t->backend->late(t, VERB_RENEW, UINT32_MAX, 2 * t->lease_ms), "late");
	demotes_in_time(t, p, term, now_ns());
	CHECK(t, t->backend->late(t, VERB_RENEW, 0, 0), "in time again");
	CHECK(t, local_leads(p, failover_ms(t)) > term, "S3: a late reply brought it back");
}

/* ---- N5, N6 ---- */

static void lost_reply(struct testcase *t)
{
	uint64_t begin_ns = now_ns();

	CHECK(t, t->backend->mute(t, VERB_CAMPAIGN, 1), "mute");
	struct local *p = local_new(t, NULL);

	local_leads(p, soon_ms(t));
	uint64_t took_ms = (now_ns() - begin_ns) / MS;

	CHECK(t, stats_of(p).campaigns_failed > 0, "its reply was not lost at all");
	CHECK(t, took_ms < t->lease_ms, "locked out by its own claim for %" PRIu64 " ms", took_ms);
	testcase_note(t, "%" PRIu64 " ms", took_ms);
	/* The same when it isn't wanted any more: nothing is left behind (L3). */
	local_stop(p);
	CHECK(t, t->backend->mute(t, VERB_CAMPAIGN, 1), "mute");
	CHECK(t, baton_election_start(p->e) == 0, "start");
	pass_time(t->lease_ms / 30);
	local_stop(p);
	struct local *q = local_new(t, NULL);

	begin_ns = now_ns();
	local_leads(q, failover_ms(t));
	CHECK(t, (now_ns() - begin_ns) / MS < t->lease_ms, "L3: an orphan claim");
}

static bool has_failed_once(void *arg)
{
	return stats_of(arg).renewals_failed > 0;
}

static void one_failed_renewal(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));

	CHECK(t, t->backend->fail(t, VERB_RENEW, 1), "fail");
	await(t, has_failed_once, p, soon_ms(t), "a renewal to fail");
	CHECK(t, t->backend->fail(t, VERB_RENEW, 0), "heal");
	uint64_t ok = stats_of(p).renewals_ok;

	stays(t, local_is_leader, p, 2 * t->lease_ms, "leader after one failed renewal");
	CHECK(t, baton_term(p->e) == term, "another term");
	CHECK(t, stats_of(p).renewals_ok > ok, "no renewal since");
	CHECK(t, local_count(p, BATON_EVENT_LOST) == 0, "lost");
}

/* ---- N7, N20, N32 ---- */

static void restarts(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	uint64_t term = baton_term(p->e);

	/* With its data, and back soon: whoever leads then, the term has not gone back. */
	local_catch_up(p);
	down(t, true);
	local_next(p, BATON_EVENT_ERROR, soon_ms(t));
	down(t, false);
	p = await_leader(t, list, 2, failover_ms(t));
	local_is_above(p, term - 1);
	term = baton_term(p->e);
	/* With its data, after all leases have ended. */
	down(t, true);
	await(t, local_is_no_leader, p, failover_ms(t), "the leader to give up");
	pass_time(t->lease_ms);
	down(t, false);
	p = await_leader(t, list, 2, failover_ms(t));
	local_is_above(p, term);
	if (t->backend->forget == NULL)
		return;
	/* Without its data. */
	term = baton_term(p->e);
	local_knows(list[p == list[0]], term, soon_ms(t)); /* S4: whoever leads next saw it */
	local_catch_up(p);
	down(t, true);
	CHECK(t, t->backend->forget(t), "forget");
	down(t, false);
	local_next(p, BATON_EVENT_LOST, failover_ms(t));
	p = await_leader(t, list, 2, failover_ms(t));
	local_is_above(p, term);
}

static void expired_lease(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));

	for (unsigned i = 0; i < 2; i++) {
		down(t, true);
		const struct seen *lost = local_next(p, BATON_EVENT_LOST, failover_ms(t));

		CHECK(t,
		      lost->event.reason == BATON_REASON_EXPIRED ||
			      lost->event.reason == BATON_REASON_REFUSED,
		      "reason %d", lost->event.reason);
		pass_time(t->lease_ms);
		down(t, false);
		uint64_t next = local_leads(p, failover_ms(t));

		CHECK(t, next > term, "S3: a dead lease lives again");
		stays(t, local_is_leader, p, t->lease_ms, "leader on a new lease");
		term = next;
	}
}

static void down_at_start(struct testcase *t)
{
	struct baton_error err = {0};

	down(t, true);
	struct local *p = local_new(t, NULL);
	const struct seen *error = local_next(p, BATON_EVENT_ERROR, soon_ms(t));

	CHECK(t, error->event.code < 0 && error->event.text[0] != '\0', "code %d, \"%s\"",
	      error->event.code, error->event.text);
	CHECK(t, baton_election_condition(p->e, &err) == BATON_CONDITION_UNHEALTHY,
	      "not unhealthy");
	CHECK(t, err.code < 0 && err.text[0] != '\0', "unhealthy without a reason");
	stays(t, local_is_no_leader, p, t->lease_ms, "S9: no leader without a store");
	down(t, false);
	local_leads(p, soon_ms(t));
	CHECK(t, baton_election_condition(p->e, &err) == BATON_CONDITION_HEALTHY, "not healthy: %s",
	      err.text);
}

/* ---- C26, C27 ---- */

static void check_error(struct testcase *t, const struct baton_event *ev)
{
	CHECK(t, ev->code < 0, "an error event with code %d", ev->code);
	CHECK(t, strlen(ev->text) > 10, "an error event with the sentence \"%s\"", ev->text);
	CHECK(t, ev->detail[0] != '\0', "without the store's words: %s", ev->text);
	CHECK(t, strstr(ev->text, PASSWORD) == NULL && strstr(ev->detail, PASSWORD) == NULL,
	      "S9: an error event with the password");
}

/* A crowded machine may be late for once. */
static bool is_calm(struct testcase *t, struct local *p)
{
	for (unsigned i = 0; i < 5; i++) {
		size_t before = local_count(p, BATON_EVENT_ERROR);

		pass_time(t->lease_ms);
		if (local_count(p, BATON_EVENT_ERROR) == before)
			return true;
	}
	return false;
}

static void error_events(struct testcase *t)
{
	struct local *p = local_new(t, NULL);

	local_leads(p, soon_ms(t));
	if (local_count(p, BATON_EVENT_ERROR) != 0)
		testcase_adapted(t, "an error before it led");
	CHECK(t, is_calm(t, p), "errors though all is well");
	down(t, true);
	pass_time(3500);
	down(t, false);
	local_leads(p, failover_ms(t));
	pthread_mutex_lock(&p->lock);
	unsigned n = 0;

	for (size_t i = 0; i < p->n_seen; i++) {
		const struct baton_event *ev = &p->seen[i].event;

		if (ev->kind != BATON_EVENT_ERROR)
			continue;
		check_error(t, ev);
		n++;
		for (size_t k = i + 1; k < p->n_seen; k++) {
			const struct baton_event *next = &p->seen[k].event;

			if (next->kind != BATON_EVENT_ERROR || next->code != ev->code ||
			    strcmp(next->text, ev->text) != 0)
				continue;
			/* When they were queued counts; delivery adds some. */
			CHECK(t, p->seen[k].at_ns - p->seen[i].at_ns > 900 * MS,
			      "twice within %" PRIu64 " ms: %s (%.60s; %.60s)",
			      (p->seen[k].at_ns - p->seen[i].at_ns) / MS, ev->text, ev->detail,
			      next->detail);
		}
	}
	pthread_mutex_unlock(&p->lock);
	CHECK(t, n >= 2 && n <= 12, "%u error events in 3.5 s", n);
	testcase_note(t, "%u events in 3.5 s", n);
}

static void start_at_once(struct testcase *t)
{
	bool has_hole = t->backend->hole != NULL;
	struct cast idle = {.idle = true};

	if (has_hole) {
		hole(t, true);
	} else {
		testcase_adapted(t, "the store is down instead of black-holed");
		down(t, true);
	}
	uint64_t begin_ns = now_ns();
	struct local *p = local_new(t, &idle);
	uint64_t opened_ns = now_ns();

	CHECK(t, baton_election_start(p->e) == 0, "start");
	uint64_t started_ns = now_ns();

	CHECK(t, opened_ns - begin_ns < (200 + stall_worst_ms()) * MS,
	      "L7: open took %" PRIu64 " ms", (opened_ns - begin_ns) / MS);
	CHECK(t, started_ns - opened_ns < (50 + stall_worst_ms()) * MS,
	      "L7: start took %" PRIu64 " ms", (started_ns - opened_ns) / MS);
	CHECK(t, !baton_is_leader(p->e), "S9: leader of nothing");
	local_next(p, BATON_EVENT_ERROR, soon_ms(t));
	/* And it can be closed: a call under way may take a lease, and it takes a moment. */
	uint64_t moment_ms = t->lease_ms < 1000 ? t->lease_ms : 1000;

	begin_ns = now_ns();
	local_close(p);
	uint64_t took_ms = (now_ns() - begin_ns) / MS;

	CHECK(t, took_ms < t->lease_ms + moment_ms + stall_worst_ms(),
	      "L7: close took %" PRIu64 " ms", took_ms);
	testcase_note(t, "start took %" PRIu64 " us, close %" PRIu64 " ms",
		      (started_ns - opened_ns) / 1000, took_ms);
	if (has_hole)
		hole(t, false);
	else
		down(t, false);
}

/* ---- N25, N33 ---- */

static void release_fails(struct testcase *t)
{
	struct local *list[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct local *p = await_leader(t, list, 2, soon_ms(t));
	struct local *q = list[p == list[0]];
	uint64_t term = baton_term(p->e);

	local_sees(q, p->id, soon_ms(t));
	CHECK(t, t->backend->fail(t, VERB_RELEASE, UINT32_MAX), "fail");
	int rc = baton_election_stop(p->e, (int64_t)t->lease_ms / 4);

	CHECK(t, rc == BATON_E_TIMEOUT, "stop says %d though no release succeeds", rc);
	CHECK(t, !baton_is_leader(p->e) && baton_term(p->e) == 0, "S7: still leader");
	local_next(p, BATON_EVENT_LOST, soon_ms(t));
	/* L3: it is tried until it is confirmed. */
	CHECK(t, t->backend->fail(t, VERB_RELEASE, 0), "heal");
	CHECK(t, local_leads(q, failover_ms(t)) > term, "S3");
	local_stop(p);
}

static void credentials_revoked(struct testcase *t)
{
	CHECK(t, t->backend->deny(t, false), "permission");
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));

	CHECK(t, t->backend->deny(t, true), "no permission");
	uint64_t calls = t->backend->calls != NULL ? t->backend->calls(t, VERB_ANY) : 0;
	const struct seen *error = local_next(p, BATON_EVENT_ERROR, soon_ms(t));

	if (error->event.code == BATON_E_TIMEOUT) /* the server was busy just then */
		error = local_next(p, BATON_EVENT_ERROR, soon_ms(t));
	CHECK(t, error->event.code == BATON_E_DENIED, "code %d: %s (%s)", error->event.code,
	      error->event.text, error->event.detail);
	CHECK(t, error->event.text[0] != '\0', "no sentence");
	await(t, local_is_no_leader, p, failover_ms(t), "a leader without permission to give up");
	pass_time(2000);
	/* L4: with jitter it is a retry_max at times, and half of it on average. */
	uint64_t periods = 2000 / (t->lease_ms / 6) + failover_ms(t) / (t->lease_ms / 6);

	if (t->backend->calls != NULL)
		CHECK(t, t->backend->calls(t, VERB_ANY) - calls < 4 * periods,
		      "a retry storm: %" PRIu64 " calls", t->backend->calls(t, VERB_ANY) - calls);
	CHECK(t, local_count(p, BATON_EVENT_ERROR) < 16, "%zu error events",
	      local_count(p, BATON_EVENT_ERROR));
	struct baton_error err = {0};

	CHECK(t, baton_election_condition(p->e, &err) == BATON_CONDITION_UNHEALTHY,
	      "healthy without permission");
	CHECK(t, t->backend->deny(t, false), "permission again");
	CHECK(t, local_leads(p, soon_ms(t)) > term, "S3");
	/* Refused from the start. */
	local_close(p);
	CHECK(t, t->backend->deny(t, true), "no permission");
	p = local_new(t, NULL);
	error = local_next(p, BATON_EVENT_ERROR, soon_ms(t));
	CHECK(t, error->event.code == BATON_E_DENIED, "code %d: %s", error->event.code,
	      error->event.text);
	CHECK(t, !baton_is_leader(p->e), "S9: leader without permission");
	CHECK(t, t->backend->deny(t, false), "permission again");
	local_leads(p, soon_ms(t));
}

const struct entry cases_faults[] = {
	{"C26", "error events: code, sentence, store's words, one a second", error_events,
	 NEEDS_DOWN, 0},
	{"C27", "start does no I/O and returns at once", start_at_once, NEEDS_DOWN, 0},
	{"N3", "black-holed network: the leader demotes itself in time", black_hole, NEEDS_HOLE, 0},
	{"N4", "a reply after the lease's end: counted from the send", late_replies, NEEDS_REPLIES,
	 0},
	{"N5", "lost reply of a campaign: own claim adopted", lost_reply, NEEDS_REPLIES, 0},
	{"N6", "one failed renewal: no loss", one_failed_renewal, NEEDS_FAIL, 0},
	{"N7", "store restart, with and without its data", restarts, NEEDS_DOWN, 0},
	{"N20", "an expired lease is opened anew", expired_lease, NEEDS_DOWN, 0},
	{"N25", "release fails: not leader locally", release_fails, NEEDS_FAIL, 0},
	{"N32", "the store is down at start: leads when it comes up", down_at_start, NEEDS_DOWN, 0},
	{"N33", "no permission: a clear permanent error, no retry storm", credentials_revoked,
	 NEEDS_DENY, 0},
	{NULL, NULL, NULL, 0, 0},
};
