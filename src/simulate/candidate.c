/*
 * candidate.c: one process of the simulation, and what core.h asks of its caller: each call is
 * answered once, at its limit with UNKNOWN; the lease's ups and downs reach the election first; the
 * alarm clock rings when a machine wants it, or when the process thaws.
 */
#include "simulate/world.h"

static void execute_actions(struct world *w, struct candidate *c, const struct actions *out);

static void tell_election(struct world *w, struct candidate *c, struct event ev)
{
	struct actions out;

	out.n = 0;
	ev.now_ns = w->now_ns;
	ev.random = world_random(w);
	election_step(&c->election, &c->lease, &ev, &out);
	execute_actions(w, c, &out);
}

static void tell_lease(struct world *w, struct candidate *c, struct event ev)
{
	struct actions out;

	out.n = 0;
	ev.now_ns = w->now_ns;
	ev.random = world_random(w);
	lease_step(&c->lease, &ev, &out);
	execute_actions(w, c, &out);
}

/* ---- what the core asks for ---- */

static size_t pending_of(uint8_t kind)
{
	switch (kind) {
	case ACT_CLAIMS: return PENDING_CLAIMS;
	case ACT_OPEN:
	case ACT_RENEW:
	case ACT_CLOSE: return PENDING_LEASE;
	default: return PENDING_ELECTION;
	}
}

/* A request that there is no room for is lost, as in a network with too many of them. */
static void send_request(struct world *w, struct candidate *c, const struct action *a)
{
	uint64_t travel_ns = world_travel_ns(w);

	c->pending[pending_of(a->kind)] =
		(struct pending){.call = a->call, .limit_ns = a->limit_ns, .kind = a->kind};
	if (c->n_messages == MESSAGES_MAX)
		return;
	struct message *m = &c->messages[c->n_messages++];

	*m = (struct message){
		.at_ns = w->now_ns + travel_ns, .travel_ns = travel_ns, .act = *a, .life = c->life};
	if (a->kind == ACT_OBSERVE) /* the answer says whether a record is on our lease */
		m->act.epoch = c->lease.epoch;
}

static void take_note(struct world *w, struct candidate *c, const struct action *a)
{
	if (a->note == NOTE_BECAME) {
		tally_became(w, c);
	} else if (a->note == NOTE_LOST) {
		tally_lost(w, c);
		c->drained_ns = w->now_ns + w->setup->stop_ns;
	}
}

static void execute_actions(struct world *w, struct candidate *c, const struct actions *out)
{
	if (election_leads(&c->election, &c->lease, w->now_ns)) {
		c->deadline_ns = c->lease.deadline_ns;
		c->sent_ns = c->lease.sent_ns;
	}
	for (uint64_t i = 0; i < out->n; i++) {
		const struct action *a = &out->list[i];

		switch (a->kind) {
		case ACT_LEASE_UP: tell_election(w, c, (struct event){.kind = EV_LEASE_UP}); break;
		case ACT_LEASE_DOWN:
			tell_election(w, c, (struct event){.kind = EV_LEASE_DOWN});
			break;
		case ACT_NOTE: take_note(w, c, a); break;
		default: send_request(w, c, a); break;
		}
	}
}

/* ---- what happens to it ---- */

static uint8_t answer_to(uint8_t kind)
{
	switch (kind) {
	case ACT_OPEN: return EV_OPENED;
	case ACT_RENEW: return EV_RENEWED;
	case ACT_CLOSE: return EV_CLOSED;
	case ACT_CLAIMS: return EV_CLAIMS;
	case ACT_CAMPAIGN: return EV_CAMPAIGNED;
	case ACT_OBSERVE: return EV_OBSERVED;
	default: return EV_RELEASED;
	}
}

static void give_answer(struct world *w, struct candidate *c, size_t at, const struct message *m)
{
	struct pending was = c->pending[at];
	struct event ev = {.kind = answer_to(was.kind),
			   .call = was.call,
			   .outcome = m != NULL ? m->outcome : OUTCOME_UNKNOWN,
			   .n_held = m != NULL ? m->n_held : 0};

	c->pending[at].call = 0;
	if (at == PENDING_ELECTION) {
		if (m != NULL)
			ev.view = m->view;
		tell_election(w, c, ev);
		return;
	}
	tell_lease(w, c, ev);
	if (at == PENDING_CLAIMS && ev.outcome == OUTCOME_OK)
		tell_election(w, c,
			      (struct event){.kind = EV_CLAIM, .call = was.call, .view = m->view});
}

/* Whether the process can run: only then it reads messages that have come. */
static bool is_awake(const struct world *w, const struct candidate *c)
{
	return c->is_up && w->now_ns >= c->frozen_ns;
}

static bool is_due(const struct world *w, const struct candidate *c, const struct message *m)
{
	return m->at_ns <= w->now_ns && (!m->is_answer || !c->is_up || is_awake(w, c));
}

static void deliver_messages(struct world *w, struct candidate *c)
{
	for (size_t i = 0; i < c->n_messages;) {
		struct message m = c->messages[i];

		if (!is_due(w, c, &m)) {
			i++;
			continue;
		}
		c->messages[i] = c->messages[--c->n_messages];
		if (!m.is_answer) {
			if (world_is_store_away(w)) /* it is lost */
				continue;
			store_answer(w, c, &m);
			c->messages[c->n_messages++] = m;
			continue;
		}
		size_t at = pending_of(m.act.kind);

		if (c->is_up && m.life == c->life && c->pending[at].call == m.act.call)
			give_answer(w, c, at, &m);
		i = 0; /* what follows may have changed the list */
	}
}

static void ring_alarms(struct world *w, struct candidate *c)
{
	for (size_t i = 0; i < PENDINGS; i++)
		if (c->pending[i].call != 0 && w->now_ns >= c->pending[i].limit_ns)
			give_answer(w, c, i, NULL);
	if (w->now_ns >= c->drained_ns) {
		c->drained_ns = NEVER;
		tell_election(w, c, (struct event){.kind = EV_DRAINED});
	}
	if (w->now_ns >= c->hint_ns) {
		c->hint_ns = NEVER;
		tell_election(w, c, (struct event){.kind = EV_HINT});
	}
	if (w->now_ns >= lease_wake_ns(&c->lease))
		tell_lease(w, c, (struct event){.kind = EV_TIMER});
	if (w->now_ns >= election_wake_ns(&c->election, &c->lease))
		tell_election(w, c, (struct event){.kind = EV_TIMER});
}

static uint64_t next_fault_ns(struct world *w, double a_year)
{
	return a_year > 0 ? w->now_ns + world_exponential_ns(w, 365.25 * 86400e9 / a_year) : NEVER;
}

static void crash(struct world *w, struct candidate *c)
{
	tally_crashed(w, c);
	c->is_up = false;
	c->crash_ns = w->now_ns + w->setup->restart_ns;
	c->freeze_ns = NEVER;
}

void candidate_boot(struct world *w, struct candidate *c)
{
	struct options o;

	options_init(&o);
	c->life++;
	c->is_up = true;
	c->frozen_ns = 0;
	c->hint_ns = NEVER;
	c->drained_ns = NEVER;
	for (size_t i = 0; i < PENDINGS; i++)
		c->pending[i].call = 0;
	lease_init(&c->lease, &w->setup->timing, false);
	election_init(&c->election, c->number, &o);
	c->crash_ns = next_fault_ns(w, w->setup->crashes_a_year);
	c->freeze_ns = next_fault_ns(w, w->setup->freezes_a_year);
	tell_election(w, c, (struct event){.kind = EV_START});
}

void candidate_hint(struct world *w, struct candidate *c)
{
	if (!c->is_up || world_is_store_away(w))
		return;
	c->hint_ns = min_ns(c->hint_ns, w->now_ns + world_travel_ns(w));
	c->next_ns = min_ns(c->next_ns, max_ns(c->hint_ns, c->frozen_ns));
}

static uint64_t wake_ns(const struct candidate *c)
{
	uint64_t at_ns = min_ns(c->hint_ns, c->drained_ns);

	at_ns = min_ns(at_ns, lease_wake_ns(&c->lease));
	at_ns = min_ns(at_ns, election_wake_ns(&c->election, &c->lease));
	for (size_t i = 0; i < PENDINGS; i++)
		if (c->pending[i].call != 0)
			at_ns = min_ns(at_ns, c->pending[i].limit_ns);
	return max_ns(at_ns, c->frozen_ns);
}

static uint64_t next_ns(const struct candidate *c)
{
	uint64_t at_ns = min_ns(c->crash_ns, c->freeze_ns);

	if (c->is_up)
		at_ns = min_ns(at_ns, wake_ns(c));
	for (size_t i = 0; i < c->n_messages; i++) {
		const struct message *m = &c->messages[i];

		at_ns = min_ns(at_ns, m->is_answer && c->is_up ? max_ns(m->at_ns, c->frozen_ns)
							       : m->at_ns);
	}
	return at_ns;
}

void candidate_act(struct world *w, struct candidate *c)
{
	if (w->now_ns >= c->crash_ns) {
		if (c->is_up)
			crash(w, c);
		else
			candidate_boot(w, c);
	}
	if (w->now_ns >= c->freeze_ns) {
		c->frozen_ns = w->now_ns + world_exponential_ns(w, (double)w->setup->freeze_ns);
		c->freeze_ns = next_fault_ns(w, w->setup->freezes_a_year);
	}
	deliver_messages(w, c);
	if (is_awake(w, c))
		ring_alarms(w, c);
	c->next_ns = next_ns(c);
}
