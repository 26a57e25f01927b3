/*
 * rules.c: what must hold in every state, and the words for what happens.
 */
#include <stdio.h>

#include "model/file/model.h"

#define WALK_MAX 400

static bool goes_on(const struct world *from, const struct bounds *b, enum variant v, int i);

/* A dead process' lease is free by its lock, or it is gone; never only by the clock. */
static bool death_is_hidden(const struct world *w, int i)
{
	for (int l = i * LIVES_MAX; l < (i + 1) * LIVES_MAX; l++)
		if (!w->leases[l].alive && w->leases[l].expires > w->now)
			return true;
	return false;
}

const char *world_objection(const struct world *w, const struct bounds *b, enum variant v)
{
	int believers = 0;

	for (int i = 0; i < PROCESSES; i++)
		believers += world_believes(w, i);
	if (believers > 1)
		return "two leaders";
	if (w->term_fell)
		return "the term did not grow";
	for (int i = 0; i < PROCESSES; i++)
		if (w->p[i].pc == PC_DEAD && death_is_hidden(w, i))
			return "a death is not proven";
	for (int i = 0; i < PROCESSES && !b->blind; i++)
		if (w->p[i].pc != PC_DEAD && !goes_on(w, b, v, i))
			return "no progress alone";
	return NULL;
}

/* What a candidate does that wants to lead and hears of nobody else. */
static struct action next_alone(const struct world *w, int i, bool *refused)
{
	const struct process *p = &w->p[i];
	struct action a = {.who = (uint8_t)i, .what = DO_STEP};

	if (p->renew != RENEW_CHECK) {
		a.what = DO_RENEW;
	} else if (p->pc != READY) {
		return a;
	} else if (p->lost || p->leads || w->now >= p->expires) {
		a.what = DO_CLOSE;
	} else if (*refused) { /* somebody's lease must expire: time passes, ours is renewed */
		*refused = false;
		a = (struct action){.who = PROCESSES, .what = DO_TICK};
	} else if (p->expires - w->now < 2) {
		a.what = DO_RENEW;
	} else {
		a.what = DO_CAMPAIGN;
		*refused = true;
	}
	return a;
}

/* Whether this process comes to lead though nobody else moves any more, and none is killed. */
static bool goes_on(const struct world *from, const struct bounds *b, enum variant v, int i)
{
	struct world w = *from;
	struct bounds wide = *b;
	bool refused = false;

	wide.lives = LIVES_MAX;
	wide.campaigns = wide.renewals = 0;
	for (int n = 0; n < WALK_MAX && w.p[i].pc != PC_DEAD; n++) {
		if (world_believes(&w, i))
			return true;
		world_apply(&w, &wide, v, next_alone(&w, i, &refused));
	}
	return false;
}

/* ---- words ---- */

static const char *const pcs[] = {
	"DEAD",         "OPEN_LOCK",    "OPEN_ALIVE",  "OPEN_CLOCK",
	"OPEN_LEASE",   "READY",        "LOOK",        "LOOK_MORE",
	"LOOK_CLAIM",   "LOOK_CLOCK",   "LOOK_ALIVE",  "LOOK_LOCK",
	"LOOK_LEASE",   "CLAIM_LINK",   "CLAIM_LOOK",  "CLAIM_LOOK_MORE",
	"CLAIM_VOID",   "CLAIM_CLOCK",  "PRUNE_CLAIM", "PRUNE_END",
	"RELEASE_LOOK", "RELEASE_LINK", "CLOSE_ALIVE", "CLOSE_LEASE",
	"CLOSE_UNLINK", "SWEEP_LEASE",  "SWEEP_ALIVE",
};

_Static_assert(sizeof(pcs) / sizeof(pcs[0]) == N_PCS, "a word for every step");

void world_tell(const struct world *w, struct action a, char *out, size_t size)
{
	static const char *const renewals[] = {"RENEW_CHECK", "RENEW_WRITE", "RENEW_AGAIN"};
	static const char *const calls[] = {"", "", "campaign: CLAIM_CHECK", "release", "close"};

	if (a.what == DO_TICK) {
		(void)snprintf(out, size, "the clock: %d", w->now + 1);
		return;
	}
	const struct process *p = &w->p[a.who];

	switch (a.what) {
	case DO_STEP:
		(void)snprintf(out, size, "%d: %s%s", a.who, pcs[p->pc],
			       p->sweeps ? " (sweep)" : "");
		break;
	case DO_RENEW: (void)snprintf(out, size, "%d: %s", a.who, renewals[p->renew]); break;
	case DO_SWEEP:
		(void)snprintf(out, size, "%d: sweeps lease %d of %d", a.who, a.arg % LIVES_MAX,
			       a.arg / LIVES_MAX);
		break;
	case DO_KILL: (void)snprintf(out, size, "%d: is killed", a.who); break;
	default: (void)snprintf(out, size, "%d: %s", a.who, calls[a.what]); break;
	}
}
