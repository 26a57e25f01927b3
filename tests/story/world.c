/*
 * world.c: the candidates of one story, and their caller. It does what core.h says that a caller
 * owes the core, writes down every action, and watches over what no story may break:
 *
 *   S1  no two candidates lead in one election at once
 *   S3  a candidate's terms only grow
 *   S8  became and lost alternate, with the same term; who leads was told so
 *   and of the core itself: the same step twice does the same; every call carries its limit and
 *   the identity of its lease, one at a time; a timer too many does nothing; time advances.
 *
 * A breach shows in the trace as a line that begins with "!!" and can't be expected away.
 */
#include <stdio.h>
#include <string.h>

#include "story.h"
#include "text.h"

/* More timers at one instant than this: somebody asks to be woken without using it. */
#define SPINS_MAX 32

static void take_actions(struct world *w, size_t c, size_t i, bool of_lease,
			 const struct actions *acts);

void world_init(struct world *w)
{
	*w = (struct world){.n_candidates = 1, .n_elections = 1, .now_ns = STORY_BEGIN_NS};
	w->random = 0x8000;
	for (size_t c = 0; c < CANDIDATES_MAX; c++) {
		w->candidates[c].timing.drift_ppm = NEVER;
		for (size_t i = 0; i < ELECTIONS_MAX; i++)
			options_init(&w->candidates[c].seats[i].options);
	}
}

void world_begin(struct world *w)
{
	for (size_t c = 0; c < CANDIDATES_MAX; c++) {
		struct candidate *cand = &w->candidates[c];

		timing_fill(&cand->timing);
		for (size_t i = 0; i < ELECTIONS_MAX; i++) {
			struct seat *seat = &cand->seats[i];

			lease_init(&cand->leases[i], &cand->timing, cand->own);
			election_init(&seat->election, (uint32_t)c + 1, &seat->options);
		}
	}
}

void world_done(struct world *w)
{
	lines_done(&w->trace);
}

static size_t lease_index(const struct world *w, size_t c, size_t i)
{
	return w->candidates[c].own ? i : 0;
}

struct lease *world_lease(struct world *w, size_t c, size_t i)
{
	return &w->candidates[c].leases[lease_index(w, c, i)];
}

bool world_make_anew(struct world *w, size_t c, size_t i)
{
	struct seat *seat = &w->candidates[c].seats[i];

	if (seat->election.state != ELECTION_STOPPED)
		return false;
	election_init(&seat->election, (uint32_t)c + 1, &seat->options);
	seat->call = (struct pending){0};
	return true;
}

static size_t n_leases(const struct world *w, size_t c)
{
	return w->candidates[c].own ? w->n_elections : 1;
}

/* ---- the trace ---- */

/* "A.b: ", as much of it as is needed to know who is meant. */
static void name_of(const struct world *w, size_t c, size_t i, bool of_lease, char name[8])
{
	bool which = w->n_elections > 1 && (!of_lease || w->candidates[c].own);
	size_t n = 0;

	if (w->n_candidates > 1)
		name[n++] = (char)('A' + c);
	if (w->n_candidates > 1 && which)
		name[n++] = '.';
	if (which)
		name[n++] = (char)('a' + i);
	if (n > 0) {
		name[n++] = ':';
		name[n++] = ' ';
	}
	name[n] = '\0';
}

static void breach(struct world *w, size_t c, size_t i, const char *what)
{
	char name[8];

	name_of(w, c, i, false, name);
	lines_add(&w->trace, "!! %s%s", name, what);
	w->broken = true;
}

static void write_action(struct world *w, size_t c, size_t i, bool of_lease, const struct action *a)
{
	char name[8];
	char text[LINE_MAX_CHARS];

	name_of(w, c, i, of_lease, name);
	text_action(a, text, sizeof(text));
	lines_add(&w->trace, "%s%s", name, text);
}

/* ---- what no story may break ---- */

static void check_note(struct world *w, size_t c, size_t i, const struct action *a)
{
	struct seat *seat = &w->candidates[c].seats[i];

	if (a->note == NOTE_BECAME) {
		if (seat->told_leads)
			breach(w, c, i, "S8: became, twice");
		if (a->term <= seat->led)
			breach(w, c, i, "S3: a term that is not above the last one");
		seat->told_leads = true;
		seat->led = a->term;
	} else if (a->note == NOTE_LOST) {
		if (!seat->told_leads || a->term != seat->led)
			breach(w, c, i, "S8: lost what was not led");
		seat->told_leads = false;
	} else if (a->note == NOTE_STOPPED && seat->told_leads) {
		breach(w, c, i, "S8: stopped, but not lost");
	}
}

static void check_call(struct world *w, size_t c, size_t i, struct pending *slot,
		       const struct action *a)
{
	const struct lease *l = world_lease(w, c, i);

	if (slot->kind != 0)
		breach(w, c, i, "two calls at once");
	if (a->limit_ns != w->now_ns + timing_call_ns(&l->timing))
		breach(w, c, i, "a call without its limit");
	if (a->kind != ACT_OBSERVE && a->kind != ACT_ORDER && a->epoch != l->epoch)
		breach(w, c, i, "rule 7: a call on a lease that is no more");
	if (a->kind == ACT_CAMPAIGN && a->nonce != a->call)
		breach(w, c, i, "rule 2: a campaign without a nonce of its own");
	*slot = (struct pending){.call = a->call, .limit_ns = a->limit_ns, .kind = a->kind};
}

static bool leads(struct world *w, size_t c, size_t i)
{
	return election_leads(&w->candidates[c].seats[i].election, world_lease(w, c, i), w->now_ns);
}

static void check_leaders(struct world *w)
{
	for (size_t i = 0; i < w->n_elections; i++) {
		size_t n = 0;

		for (size_t c = 0; c < w->n_candidates; c++) {
			if (!leads(w, c, i))
				continue;
			if (!w->candidates[c].seats[i].told_leads)
				breach(w, c, i, "S8: leads without having been told so");
			if (++n > 1)
				breach(w, c, i, "S1: two leaders");
		}
	}
}

/* ---- steps ---- */

/* Every step is done twice, on copies: the core knows nothing but its state and the event. */
static void step_lease(struct world *w, size_t c, size_t i, const struct event *ev,
		       struct actions *acts)
{
	struct lease *l = &w->candidates[c].leases[i];
	struct lease twin = *l;
	struct actions twice;

	memset(&twice, 0, sizeof(twice));
	memset(acts, 0, sizeof(*acts));
	lease_step(&twin, ev, &twice);
	lease_step(l, ev, acts);
	if (memcmp(&twin, l, sizeof(twin)) != 0 || memcmp(&twice, acts, sizeof(twice)) != 0)
		breach(w, c, i, "the same step of the lease, done twice, differs");
}

static void step_election(struct world *w, size_t c, size_t i, const struct event *ev,
			  struct actions *acts)
{
	struct lease *l = world_lease(w, c, i);
	struct election *e = &w->candidates[c].seats[i].election;
	struct lease l_twin = *l;
	struct election e_twin = *e;
	struct actions twice;

	memset(&twice, 0, sizeof(twice));
	memset(acts, 0, sizeof(*acts));
	election_step(&e_twin, &l_twin, ev, &twice);
	election_step(e, l, ev, acts);
	if (memcmp(&e_twin, e, sizeof(e_twin)) != 0 || memcmp(&l_twin, l, sizeof(l_twin)) != 0 ||
	    memcmp(&twice, acts, sizeof(twice)) != 0)
		breach(w, c, i, "the same step of the election, done twice, differs");
}

static void deliver_lease(struct world *w, size_t c, size_t i, const struct event *ev)
{
	struct actions acts;

	step_lease(w, c, i, ev, &acts);
	take_actions(w, c, i, true, &acts);
}

static void deliver(struct world *w, size_t c, size_t i, const struct event *ev)
{
	struct actions acts;

	step_election(w, c, i, ev, &acts);
	take_actions(w, c, i, false, &acts);
}

/* Duty 3: every election on the lease hears of it before anything else happens. */
static void tell_elections(struct world *w, size_t c, size_t lease, uint8_t kind)
{
	struct event ev = {.now_ns = w->now_ns, .random = w->random, .kind = kind};

	for (size_t i = 0; i < w->n_elections; i++)
		if (lease_index(w, c, i) == lease)
			deliver(w, c, i, &ev);
}

static void take_actions(struct world *w, size_t c, size_t i, bool of_lease,
			 const struct actions *acts)
{
	struct candidate *cand = &w->candidates[c];

	for (size_t k = 0; k < acts->n; k++) {
		const struct action *a = &acts->list[k];

		if (a->kind != ACT_RENEW || !w->renews)
			write_action(w, c, i, of_lease, a);
		switch (a->kind) {
		case ACT_NOTE:
			if (of_lease)
				break;
			check_note(w, c, i, a);
			hall_note(w, c, i, a);
			break;
		case ACT_LEASE_UP: tell_elections(w, c, i, EV_LEASE_UP); break;
		case ACT_LEASE_DOWN: tell_elections(w, c, i, EV_LEASE_DOWN); break;
		case ACT_CLAIMS: check_call(w, c, i, &cand->claims_calls[i], a); break;
		default:
			check_call(w, c, i, of_lease ? &cand->lease_calls[i] : &cand->seats[i].call,
				   a);
			break;
		}
	}
}

/* ---- timers (duty 5) ---- */

uint64_t world_wake_of_ns(const struct world *w, size_t c)
{
	const struct candidate *cand = &w->candidates[c];
	uint64_t wake_ns = hall_wake_ns(w, c);

	for (size_t i = 0; i < n_leases(w, c); i++)
		wake_ns = min_ns(wake_ns, lease_wake_ns(&cand->leases[i]));
	for (size_t i = 0; i < w->n_elections; i++)
		wake_ns = min_ns(wake_ns, election_wake_ns(&cand->seats[i].election,
							   &cand->leases[lease_index(w, c, i)]));
	return wake_ns;
}

uint64_t world_wake_ns(const struct world *w)
{
	uint64_t wake_ns = NEVER;

	for (size_t c = 0; c < w->n_candidates; c++)
		if (!w->candidates[c].frozen)
			wake_ns = min_ns(wake_ns, world_wake_of_ns(w, c));
	return wake_ns;
}

/* The store that renews whatever is asked, where a story is about something else. */
static void renew(struct world *w, size_t c, size_t i)
{
	struct candidate *cand = &w->candidates[c];
	struct pending *call = &cand->lease_calls[i];
	struct event ev = {
		.now_ns = w->now_ns,
		.random = w->random,
		.call = call->call,
		.n_held = cand->leases[i].n_sure,
		.kind = EV_RENEWED,
		.outcome = OUTCOME_OK,
	};

	if (call->kind != ACT_RENEW)
		return;
	*call = (struct pending){0};
	deliver_lease(w, c, i, &ev);
}

static void ring(struct world *w, size_t c)
{
	struct candidate *cand = &w->candidates[c];
	struct event ev = {.now_ns = w->now_ns, .random = w->random, .kind = EV_TIMER};

	for (size_t i = 0; i < n_leases(w, c); i++)
		if (lease_wake_ns(&cand->leases[i]) <= w->now_ns)
			deliver_lease(w, c, i, &ev);
	for (size_t i = 0; w->renews && i < n_leases(w, c); i++)
		renew(w, c, i);
	for (size_t i = 0; i < w->n_elections; i++)
		if (election_wake_ns(&cand->seats[i].election, world_lease(w, c, i)) <= w->now_ns)
			deliver(w, c, i, &ev);
}

/* Nothing is due: then a timer does nothing. */
static void check_idle(struct world *w, size_t c)
{
	struct candidate *cand = &w->candidates[c];
	struct event ev = {.now_ns = w->now_ns, .random = w->random, .kind = EV_TIMER};
	struct actions acts = {.n = 0};

	for (size_t i = 0; i < w->n_elections; i++) {
		struct lease l = *world_lease(w, c, i);
		struct election e = cand->seats[i].election;

		lease_step(&l, &ev, &acts);
		election_step(&e, &l, &ev, &acts);
		if (acts.n > 0)
			breach(w, c, i, "does something without having asked to be woken");
	}
}

void world_settle(struct world *w)
{
	int spins = 0;

	hall_settle(w);
	while (world_wake_ns(w) <= w->now_ns && spins++ < SPINS_MAX) {
		for (size_t c = 0; c < w->n_candidates; c++)
			if (!w->candidates[c].frozen)
				ring(w, c);
		hall_settle(w);
	}
	for (size_t c = 0; c < w->n_candidates; c++) {
		if (w->candidates[c].frozen)
			continue;
		if (spins > SPINS_MAX)
			breach(w, c, 0, "L4: time stands still");
		else
			check_idle(w, c);
	}
	check_leaders(w);
}

void world_tell_lease(struct world *w, size_t c, size_t i, const struct event *ev)
{
	deliver_lease(w, c, lease_index(w, c, i), ev);
}

void world_tell(struct world *w, size_t c, size_t i, const struct event *ev)
{
	hall_asked(w, c, i, ev->kind, false);
	deliver(w, c, i, ev);
	hall_asked(w, c, i, ev->kind, true);
}
