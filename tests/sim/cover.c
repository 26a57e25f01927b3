/*
 * cover.c: counts what happened. A batch in which some kind of fault, event, action, note, reason
 * or transition never happened proves nothing about it, and is declared void.
 */
#include "sim.h"

#include <stdio.h>

#include "text.h"

enum {
#define X(name, text) NTH_##name,
	CORE_WHYS(X)
#undef X
		N_WHYS
};

static uint64_t faults[N_FAULTS];
static uint64_t events[EV_ORDERED + 1];
static uint64_t outcomes[EV_ORDERED + 1][OUTCOME_UNKNOWN + 1];
static uint64_t actions[ACT_NOTE + 1];
static uint64_t notes[NOTE_ERROR + 1];
static uint64_t whys[N_WHYS];
static uint64_t lease_moves[LEASE_CLOSING + 1][LEASE_CLOSING + 1];
static uint64_t election_moves[ELECTION_RELEASING + 1][ELECTION_RELEASING + 1];
static uint64_t older_terms;
static uint64_t shared_terms;

static const char *const fault_names[] = {
#define X(name, text) text,
	FAULTS(X)
#undef X
};

const char *fault_name(enum fault f)
{
	return fault_names[f];
}

void cover_fault(enum fault f)
{
	faults[f]++;
}

void cover_event(const struct event *ev)
{
	events[ev->kind]++;
	outcomes[ev->kind][ev->outcome]++;
}

void cover_action(const struct action *a)
{
	actions[a->kind]++;
	whys[a->why]++;
	if (a->kind == ACT_NOTE)
		notes[a->note]++;
}

void cover_fence(bool older, bool shared)
{
	older_terms += older;
	shared_terms += shared;
}

void cover_lease(uint8_t before, uint8_t after)
{
	lease_moves[before][after]++;
}

void cover_election(uint8_t before, uint8_t after)
{
	election_moves[before][after]++;
}

static void line(const char *what, const char *name, uint64_t n)
{
	printf("%-12s %-52s %12llu\n", what, name, (unsigned long long)n);
}

void cover_print(void)
{
	char buf[64];

	for (unsigned i = 0; i < N_FAULTS; i++)
		line("fault", fault_names[i], faults[i]);
	for (uint8_t i = 1; i <= EV_ORDERED; i++) {
		line("event", text_event_kind(i), events[i]);
		for (uint8_t k = 1; k <= OUTCOME_UNKNOWN; k++) {
			(void)snprintf(buf, sizeof(buf), "%s %s", text_event_kind(i),
				       text_outcome(k));
			if (outcomes[i][k] != 0)
				line("outcome", buf, outcomes[i][k]);
		}
	}
	for (uint8_t i = 1; i <= ACT_NOTE; i++)
		line("action", text_action_kind(i), actions[i]);
	for (uint8_t i = 1; i <= NOTE_ERROR; i++)
		line("note", text_note(i), notes[i]);
	for (uint8_t i = 0; i < N_WHYS; i++)
		line("why", text_why(i), whys[i]);
	for (uint8_t i = 0; i <= LEASE_CLOSING; i++)
		for (uint8_t k = 0; k <= LEASE_CLOSING; k++) {
			(void)snprintf(buf, sizeof(buf), "%s -> %s", text_lease_state(i),
				       text_lease_state(k));
			line("lease", buf, lease_moves[i][k]);
		}
	for (uint8_t i = 0; i <= ELECTION_RELEASING; i++)
		for (uint8_t k = 0; k <= ELECTION_RELEASING; k++) {
			(void)snprintf(buf, sizeof(buf), "%s -> %s", text_election_state(i),
				       text_election_state(k));
			line("election", buf, election_moves[i][k]);
		}
	line("fence", "a leader that never heard of a newer term", older_terms);
	line("fence", "one term in two hands", shared_terms);
}

/* ---- violations, when all are to be seen ---- */

static uint64_t first_world[N_INVARIANTS];
static uint64_t n_worlds;

void cover_violation(enum invariant inv)
{
	if (first_world[inv] == 0)
		first_world[inv] = n_worlds + 1;
}

void cover_world(void)
{
	n_worlds++;
}

void cover_print_violated(void)
{
	printf("violated:");
	for (unsigned i = 0; i < N_INVARIANTS; i++)
		if (first_world[i] != 0)
			printf(" %s@%llu", invariant_name((enum invariant)i),
			       (unsigned long long)first_world[i]);
	(void)putchar('\n');
}

/* ---- void ---- */

#define RARE_FROM 20000 /* worlds: what is rare must happen in a batch of this size */

struct move {
	uint8_t from;
	uint8_t to;
	bool rare;
};

/* All that a step of the machine can do to its state, but for what takes more than luck. */
static const struct move lease_must[] = {
	{LEASE_CLOSED, LEASE_OPENING, false},  {LEASE_CLOSED, LEASE_READY, false},
	{LEASE_OPENING, LEASE_CLOSED, false},  {LEASE_OPENING, LEASE_OPENING, false},
	{LEASE_OPENING, LEASE_LIVE, false},    {LEASE_OPENING, LEASE_CLOSING, true},
	{LEASE_READY, LEASE_CLOSED, false},    {LEASE_READY, LEASE_CLOSING, false},
	{LEASE_LIVE, LEASE_DEAD, false},       {LEASE_LIVE, LEASE_CLOSING, false},
	{LEASE_DEAD, LEASE_CLOSING, false},    {LEASE_CLOSING, LEASE_CLOSED, false},
	{LEASE_CLOSING, LEASE_OPENING, false}, {LEASE_CLOSING, LEASE_READY, false},
	{LEASE_CLOSING, LEASE_CLOSING, false},
};

static const struct move election_must[] = {
	{ELECTION_STOPPED, ELECTION_STANDBY, false},
	{ELECTION_STOPPED, ELECTION_CAMPAIGNING, false},
	{ELECTION_STOPPED, ELECTION_RELEASING, false},
	{ELECTION_STANDBY, ELECTION_STOPPED, false},
	{ELECTION_STANDBY, ELECTION_CAMPAIGNING, false},
	{ELECTION_STANDBY, ELECTION_LEADING, true},
	{ELECTION_STANDBY, ELECTION_RELEASING, false},
	{ELECTION_CAMPAIGNING, ELECTION_STOPPED, true},
	{ELECTION_CAMPAIGNING, ELECTION_STANDBY, false},
	{ELECTION_CAMPAIGNING, ELECTION_SEEKING, false},
	{ELECTION_CAMPAIGNING, ELECTION_LEADING, false},
	{ELECTION_CAMPAIGNING, ELECTION_RELEASING, false},
	{ELECTION_SEEKING, ELECTION_STOPPED, false},
	{ELECTION_SEEKING, ELECTION_STANDBY, false},
	{ELECTION_SEEKING, ELECTION_CAMPAIGNING, false},
	{ELECTION_SEEKING, ELECTION_LEADING, false},
	{ELECTION_SEEKING, ELECTION_RELEASING, false},
	{ELECTION_LEADING, ELECTION_RESIGNING, false},
	{ELECTION_RESIGNING, ELECTION_STOPPED, false},
	{ELECTION_RESIGNING, ELECTION_STANDBY, false},
	{ELECTION_RESIGNING, ELECTION_CAMPAIGNING, false},
	{ELECTION_RESIGNING, ELECTION_RELEASING, false},
	{ELECTION_RELEASING, ELECTION_STOPPED, false},
	{ELECTION_RELEASING, ELECTION_STANDBY, false},
	{ELECTION_RELEASING, ELECTION_CAMPAIGNING, false},
	{ELECTION_RELEASING, ELECTION_RESIGNING, true},
};

static bool missed(uint64_t n, const char *what, const char *name)
{
	if (n == 0)
		printf("void: %s %s never happened\n", what, name);
	return n == 0;
}

static bool missed_move(uint64_t n, const struct move *m, const char *what,
			const char *(*text)(uint8_t))
{
	char buf[64];

	(void)snprintf(buf, sizeof(buf), "%s -> %s", text(m->from), text(m->to));
	return (!m->rare || n_worlds >= RARE_FROM) && missed(n, what, buf);
}

static bool missed_moves(void)
{
	bool v = false;

	for (size_t i = 0; i < sizeof(lease_must) / sizeof(lease_must[0]); i++)
		v |= missed_move(lease_moves[lease_must[i].from][lease_must[i].to], &lease_must[i],
				 "lease", text_lease_state);
	for (size_t i = 0; i < sizeof(election_must) / sizeof(election_must[0]); i++)
		v |= missed_move(election_moves[election_must[i].from][election_must[i].to],
				 &election_must[i], "election", text_election_state);
	return v;
}

bool cover_is_void(void)
{
	bool v = missed_moves();

	v |= missed(older_terms, "fence", "a leader that never heard of a newer term");
	v |= missed(shared_terms, "fence", "one term in two hands");
	for (unsigned i = 0; i < N_FAULTS; i++)
		v |= missed(faults[i], "fault", fault_names[i]);
	for (uint8_t i = 1; i <= EV_ORDERED; i++)
		v |= missed(events[i], "event", text_event_kind(i));
	for (uint8_t i = EV_OPENED; i <= EV_ORDERED; i++) {
		bool answer = i <= EV_CLAIMS || i >= EV_CAMPAIGNED;

		for (uint8_t k = OUTCOME_OK; answer && k <= OUTCOME_UNKNOWN; k++) {
			bool never = (i == EV_OPENED || i == EV_CLAIMS || i == EV_OBSERVED) &&
				     k == OUTCOME_REFUSED;

			v |= !never && missed(outcomes[i][k], text_event_kind(i), text_outcome(k));
		}
	}
	for (uint8_t i = 1; i <= ACT_NOTE; i++)
		v |= missed(actions[i], "action", text_action_kind(i));
	for (uint8_t i = 1; i <= NOTE_ERROR; i++)
		v |= missed(notes[i], "note", text_note(i));
	for (uint8_t i = 1; i < N_WHYS; i++)
		v |= (i != WHY_UNWANTED || n_worlds >= RARE_FROM) &&
		     missed(whys[i], "why", text_why(i));
	return v;
}
