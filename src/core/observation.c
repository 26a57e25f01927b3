/*
 * observation.c: what an election makes of what the store says, and when it looks again. Nothing
 * here makes a candidate leader: a wrong, old or missing view costs time, never safety.
 */
#include "core/step.h"

/* How much healthier a standby of the same priority must be to take over: no flapping. */
#define SCORE_MARGIN 100
/* Fruitless looks until a hint has to wait for a whole retry period (L4). The first ones cost
 * little: a handoff by order gives three hints (order, release, claim), and the answer to the first
 * may show all of it. The two looks that follow must not hold back the hint of the next order (L2).
 */
#define IDLE_MAX 8
/* How many of them each retry period takes back in which no hint had to wait. */
#define IDLE_BACK 2

bool observation_is_credible(const struct election *e, uint64_t term)
{
	return term <= TERM_MAX && (e->floor == 0 || term <= e->floor + TERM_JUMP_MAX);
}

void observation_leader(struct step *s, uint32_t leader, uint64_t term)
{
	struct election *e = s->e;

	if (leader == e->leader && (term == e->leader_term || leader == NOBODY))
		return;
	e->leader = leader;
	e->leader_term = term;
	struct action *a = step_note(s, NOTE_CHANGED, leader == NOBODY ? WHY_FREE : WHY_HELD);

	a->target = leader;
	a->term = term;
	if (leader == NOBODY || e->handed == NOBODY)
		return;
	if (leader != e->handed)
		step_note(s, NOTE_ERROR, WHY_TRANSFER_ABORTED)->target = e->handed;
	e->handed = NOBODY;
}

static bool outranks_leader(const struct election *e)
{
	if (e->options.priority != e->leader_priority)
		return e->options.priority > e->leader_priority;
	return e->score >= e->leader_score + SCORE_MARGIN;
}

void observation_weigh(struct step *s)
{
	struct election *e = s->e;

	if (e->options.preempt_ns == 0 || e->leader == NOBODY || step_unwilling(s) != WHY_NONE ||
	    !outranks_leader(e))
		e->preempt_ns = NEVER;
	else if (e->preempt_ns == NEVER)
		e->preempt_ns = s->now_ns + e->options.preempt_ns;
}

void observation_calm(struct step *s, enum news news)
{
	struct election *e = s->e;
	uint64_t retry_ns = s->l->timing.retry_ns;
	uint64_t quiet = e->call_ns > e->calm_ns ? (e->call_ns - e->calm_ns) / retry_ns : 0;
	/* A look that finds a free election, or an answer that is too old, leads to a campaign at
	 * once: that is a second call for the same hint. */
	bool hinted = e->cause == WHY_HINTED || e->cause == WHY_IN_TURN || e->cause == WHY_FREE ||
		      e->cause == WHY_STRANGE;

	if (news == NEWS_OF_TERM) {
		e->idle = 0;
		e->calm_ns = e->call_ns;
		return;
	}
	/* L2: hints that come now and then are not a storm. L4: but a storm that rests for a moment
	 * is still one. */
	e->idle -= (uint8_t)min_ns(e->idle, IDLE_BACK * quiet);
	/* L2: a change in the same term is heeded as a new term is. L4: but it counts, because a
	 * replica that lags behind may show two states in turn, and for ever. */
	bool waits = news == NEWS_NONE || e->idle == IDLE_MAX;

	e->calm_ns = e->call_ns + (waits ? (retry_ns << e->idle) >> IDLE_MAX : 0);
	if (hinted && e->idle < IDLE_MAX)
		e->idle++;
}

void observation_hint(struct step *s)
{
	const struct election *e = s->e;
	/* L4: of a crowd of standbys a few campaign at once, and the others look one after the
	 * other. L2: a leader looks at once. */
	unsigned crowd = e->state == ELECTION_STANDBY ? e->crowd : 0;
	uint64_t wait_ns = timing_stagger_ns(&s->l->timing, crowd, s->ev->random);
	uint64_t when_ns = max_ns(s->now_ns + wait_ns, e->calm_ns);

	if (when_ns < e->next_ns)
		step_plan(s, when_ns, wait_ns > 0 ? WHY_IN_TURN : WHY_HINTED);
}

void observation_poll(struct step *s, const struct view *v)
{
	/* A view that is older than what we know promises nothing. */
	bool watched = v->watched && v->term >= s->e->floor;
	uint64_t wait_ns = watched ? NEVER : timing_poll_ns(&s->l->timing, s->ev->random);

	step_plan(s, after_ns(s->now_ns, wait_ns), WHY_DUE);
}

/* Rule 6: the end that counts is the one in the record, not one's own configuration. */
static void plan_by_record(struct step *s, const struct view *v, bool news)
{
	struct election *e = s->e;

	e->attempt = 0; /* it answered */
	observation_poll(s, v);
	if (v->free_in_ns == 0)
		step_retry(s, WHY_DUE);
	else if (v->free_in_ns != NEVER && !(v->held && v->watched))
		/* L4: not in ever smaller steps, nor over and over for a shorter lease. */
		step_plan(s,
			  max_ns(after_ns(s->now_ns, max_ns(v->free_in_ns, NS_PER_MS)),
				 news ? 0 : e->call_ns + s->l->timing.retry_ns),
			  WHY_DUE);
	if (e->quiet_ns > s->now_ns && e->quiet_ns < e->next_ns)
		step_plan(s, e->quiet_ns, WHY_DUE);
}

void observation_hear(struct step *s, const struct view *v)
{
	struct election *e = s->e;
	/* A claim of ours that we don't lead on counts as NOBODY's. */
	uint32_t leader = v->held && v->leader != e->self ? v->leader : NOBODY;
	/* L2: an order is for the leader, but a release may follow, and its hint must not wait. L4:
	 * only one order in a term is news. */
	bool ordered = v->order != ORDER_NONE && v->term > e->ordered_term;
	/* L4: a view that we don't believe is not news, or a store that forgot would make a hot
	 * loop of hints. */
	bool in_term = v->term == e->floor && (v->paused != e->paused || leader != e->leader);
	bool of_term = v->term > e->floor || (v->term == e->floor && ordered);
	enum news news = of_term ? NEWS_OF_TERM : in_term ? NEWS_IN_TERM : NEWS_NONE;

	if (!observation_is_credible(e, v->term)) {
		step_note(s, NOTE_ERROR, WHY_FLOOR_JUMP)->term = v->term;
		observation_calm(s, NEWS_NONE);
		step_retry(s, WHY_RETRY);
		return;
	}
	/* The pause is taken even from an old answer. Taken wrongly, it costs one more look; kept
	 * for ever, it would cost the leader. */
	e->paused = v->paused;
	if (v->term >= e->floor) { /* else an old answer, or a store that forgot */
		if (v->term == TERM_MAX && e->floor < TERM_MAX)
			step_note(s, NOTE_ERROR, WHY_TERM_END);
		if (v->term != e->leader_term)
			e->preempt_ns = NEVER;
		e->floor = v->term;
		e->barred = v->mine ? e->barred : v->term;
		e->crowd = v->held ? v->crowd : e->crowd;
		e->leader_priority = v->priority;
		e->leader_score = v->score;
		e->ordered_term = ordered ? v->term : e->ordered_term;
		observation_leader(s, leader, v->term);
	}
	observation_calm(s, news);
	observation_weigh(s);
	plan_by_record(s, v, news != NEWS_NONE);
}

/* Rule 10: an order is meant for one term, and is obeyed or refused once. */
static void obey_order(struct step *s, const struct view *v)
{
	struct election *e = s->e;

	if (v->order == ORDER_NONE || v->order_term != e->term || v->order_id == e->order_done)
		return;
	e->order_done = v->order_id;
	if (v->order == ORDER_TRANSFER) {
		claim_transfer(s, v->order_target, v->target_ok);
		return;
	}
	e->quiet_ns = after_ns(s->now_ns, v->order_quiet_ns);
	claim_step_down(s, WHY_ORDERED);
}

void observation_inspect(struct step *s, const struct view *v)
{
	struct election *e = s->e;

	observation_calm(s, NEWS_NONE);
	observation_poll(s, v);
	if (v->term < e->term) { /* an old answer, or a store that forgot: ask who knows */
		lease_ask(s->l, WHY_STRANGE);
		return;
	}
	if (!v->held || !v->mine || v->term != e->term) { /* S5 */
		if (observation_is_credible(e, v->term))
			e->floor = e->barred = v->term;
		claim_lose(s, v->term > e->term ? WHY_SUPERSEDED : WHY_GONE, false);
		return;
	}
	e->paused = v->paused;
	if (v->paused)
		claim_step_down(s, WHY_PAUSED);
	else
		obey_order(s, v);
}
