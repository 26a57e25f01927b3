/*
 * live.c: L1 and L3. From a state that was reached, whatever happened before, the faults stop:
 * who is paused goes on, every message arrives, the work of a loser ends at once. Then somebody
 * who wants to lead must do so in time; and where nobody wants to, or may because the election is
 * paused, no leader and no claim may stay behind, nor a lease that was not closed.
 *
 * And who is told to resign has done so.
 *
 * The continuation is one of many: every lease ends as late as it can, every backoff takes as
 * long as it can.
 */
#include "model.h"

/* Far more steps than two candidates can have to do at one instant. */
#define STEPS_MAX 256

static bool is_willing(const struct world *w, unsigned c)
{
	const struct cand *x = &w->cands[c];

	return x->up && x->election.wanted && !x->sick && !w->store.paused;
}

static bool somebody_leads(const struct world *w)
{
	for (unsigned c = 0; c < N_CANDS; c++)
		if (w->cands[c].up &&
		    election_leads(&w->cands[c].election, &w->cands[c].lease, w->now_ns))
			return true;
	return false;
}

static bool is_orphaned(const struct world *w)
{
	return w->store.holder.cand != 0 && !somebody_leads(w);
}

static bool is_unclosed(const struct world *w)
{
	for (unsigned c = 0; c < N_CANDS; c++)
		if (w->cands[c].up && w->cands[c].has_epoch != 0 &&
		    w->cands[c].lease.n_started == 0)
			return true;
	return false;
}

/* The choices that are no faults, in the order in which they are taken. */
static unsigned next_choice(const struct world *w)
{
	static const unsigned ops[] = {OP_RESUME, OP_SETTLE, OP_PUSHED, OP_DRAINED};

	if (choice_enabled(w, CHOICE_STRAYS))
		return CHOICE_STRAYS;
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (unsigned c = 0; c < N_CANDS; c++)
			if (choice_enabled(w, CHOICE_CANDS + c * N_CAND_OPS + ops[i]))
				return CHOICE_CANDS + c * N_CAND_OPS + ops[i];
	for (unsigned i = 0; i < N_CANDS * N_SLOTS; i++) {
		unsigned slot = CHOICE_SLOTS + i * N_SLOT_OPS;

		if (choice_enabled(w, slot + OP_LAND))
			return slot + OP_LAND;
		if (choice_enabled(w, slot + OP_ANSWER))
			return slot + OP_ANSWER;
	}
	return CHOICE_TICK;
}

static void go_on(struct world *w, unsigned choice)
{
	char text[128];

	if (trial.story != NULL) {
		choice_text(w, choice, text, sizeof(text));
		(void)fprintf(trial.story, "  %s\n", text);
	}
	choice_apply(w, choice);
}

static void run(struct world *w, unsigned ticks, bool wanted)
{
	unsigned n_steps = 0;

	while (trial.broken == RULE_NONE) {
		unsigned choice = next_choice(w);

		if (choice == CHOICE_TICK && ((wanted && somebody_leads(w)) || ticks-- == 0))
			return;
		n_steps = choice == CHOICE_TICK ? 0 : n_steps + 1;
		if (n_steps > STEPS_MAX)
			rule_break(RULE_L4_LIVELOCK);
		go_on(w, choice);
	}
}

static bool is_told_to_resign(const struct world *w)
{
	const struct store *s = &w->store;

	return s->order == ORDER_RESIGN && s->holder.cand != 0 && s->order_term == s->term;
}

void live_check(const struct world *from)
{
	struct world w = *from;
	bool wanted = is_willing(&w, 0) || is_willing(&w, 1);
	bool ordered = is_told_to_resign(&w);

	if (wanted && somebody_leads(&w) && w.n_strays == 0 && !ordered)
		return;
	trial.calm = true;
	run(&w, setup_patience_ticks(trial.setup), wanted && !ordered);
	trial.calm = false;
	if (trial.broken != RULE_NONE)
		return;
	if (wanted && !somebody_leads(&w))
		rule_break(RULE_L1_LEADER);
	else if (is_told_to_resign(&w) && w.store.term == from->store.term && somebody_leads(&w))
		rule_break(RULE_ORDER);
	else if (w.store.paused && somebody_leads(&w))
		rule_break(RULE_L1_PAUSE);
	else if (is_orphaned(&w))
		rule_break(RULE_L3_ORPHAN);
	else if (!wanted && is_unclosed(&w))
		rule_break(RULE_CLOSED);
}
