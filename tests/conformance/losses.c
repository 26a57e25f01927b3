/*
 * losses.c: the claim ends from outside, in every way that the store knows. The leader notices,
 * says so, lives on and contends again (S5, L8); and what it notices is ownership, not liveness
 * (rule 4).
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const ways[N_WAYS] = {
	[WAY_DELETED] = "the record is deleted",    [WAY_OVERWRITTEN] = "the record is overwritten",
	[WAY_SESSION] = "the session is destroyed", [WAY_EXPIRED] = "the lease is ended",
	[WAY_DAMAGED] = "the record is rubbish",
};

/*
 * A store that pushes tells us, else it is found out at a renewal or a look; in any case before the
 * leader would have had to give up by itself, plus what a retry takes.
 */
static uint64_t notice_ms(const struct testcase *t)
{
	return deadline_ms(t) + t->lease_ms / 6 * 5 + 1000;
}

static void notices(struct testcase *t, enum way way)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));
	struct local *q = local_new(t, NULL);

	local_sees(q, p->id, soon_ms(t));
	local_catch_up(p);
	uint64_t begin_ns = now_ns();

	CHECK(t, baton_is_leader(p->e), "lost before anything was done to it");
	CHECK(t, t->backend->destroy(t, t->name, way), "can't do it: %s", ways[way]);
	const struct seen *lost = local_try_next(p, BATON_EVENT_LOST, notice_ms(t));

	CHECK(t, lost != NULL, "S5: %s, and it leads on", ways[way]);
	CHECK(t, lost->event.term == term, "lost term %" PRIu64, lost->event.term);
	CHECK(t,
	      lost->event.reason >= BATON_REASON_EXPIRED && lost->event.reason <= BATON_REASON_GONE,
	      "%s: reason %d", ways[way], lost->event.reason);
	testcase_note(t, "%s: %" PRIu64 " ms", ways[way], (lost->at_ns - begin_ns) / MS);
	/* Alive, and contends again: with the other one gone it is its turn. */
	struct local *list[2] = {p, q};
	struct local *next = await_leader(t, list, 2, 2 * failover_ms(t));

	local_is_above(next, term);
	local_close(q);
	CHECK(t, local_leads(p, 2 * failover_ms(t)) > term, "L8: it never leads again");
	local_close(p);
}

static void destroyed_from_outside(struct testcase *t)
{
	unsigned n = 0;

	for (enum way way = 0; way < N_WAYS; way++) {
		if (!t->backend->ways[way])
			continue;
		notices(t, way);
		n++;
	}
	CHECK(t, n > 0, "no way to destroy a claim");
}

/* The session renews happily; only the claim is not there any more. */
static void ownership(struct testcase *t)
{
	struct local *p = local_new(t, NULL);
	uint64_t term = local_leads(p, soon_ms(t));

	CHECK(t, t->backend->unlock(t, t->name), "unlock");
	const struct seen *lost = local_try_next(p, BATON_EVENT_LOST, notice_ms(t));

	CHECK(t, lost != NULL, "S5: unlocked on a live session, and it leads on (rule 4)");
	CHECK(t, lost->event.term == term, "lost term %" PRIu64, lost->event.term);
	CHECK(t, local_leads(p, failover_ms(t) + soon_ms(t)) > term, "S3");
}

const struct entry cases_losses[] = {
	{"C16", "the claim is destroyed from outside: lost, alive, contends again",
	 destroyed_from_outside, NEEDS_DESTROY, 0},
	{"C17", "ownership, not liveness", ownership, NEEDS_UNLOCK, 0},
	{NULL, NULL, NULL, 0, 0},
};
