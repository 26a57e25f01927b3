/*
 * seat.c: the elections of a candidate.
 */
#include "model/record/host.h"

static const struct baton_profile profile = {.metadata = ""};

static uint8_t fresh_nonce(const struct world *w, int e)
{
	for (uint8_t id = 1; id < FRESH; id++) {
		bool is_used =
			w->store.elections[e].nonce == id || w->copy.elections[e].nonce == id;

		for (int c = 0; c < setup->cands; c++) {
			const struct seat *s = &w->cands[c].seats[e];

			is_used = is_used || s->nonce == id || s->bid.nonce == id;
		}
		for (int i = 0; i < setup->strays; i++)
			is_used = is_used || w->strays[i].e.nonce == id ||
				  w->strays[i].by_nonce == id;
		if (!is_used)
			return id;
	}
	rule_break(RULE_MODEL);
	return 1;
}

/* The highest term that a candidate has heard of. Only a store that forgets is ever below it. */
static void learn(struct seat *s, uint8_t term)
{
	if ((setup->forgets || setup->evicts) && s->floor < term)
		s->floor = term;
}

/* A claim is ours. It counts only on the lease that it was made for, while that lives (R5). */
static void host_won(struct world *w, int c, int e, const struct record_campaign *task)
{
	struct cand *a = &w->cands[c];
	struct seat *s = &a->seats[e];
	bool is_weak = setup->forgets || setup->evicts;

	if (a->life != LIFE_LIVE || a->lease != slot_of(task->lease->id))
		return;
	s->role = ROLE_LEADS;
	s->nonce = small(task->nonce);
	s->term = small(task->term);
	s->version = id_of(&task->task.version);
	if (is_weak && s->term <= s->floor)
		rule_break(RULE_S4_FLOOR);
	if (!setup->evicts) {
		if (s->term <= w->led[e])
			rule_break(RULE_S3_TERMS);
		w->led[e] = s->term;
	}
	learn(s, s->term);
}

/* The lock is noted with the claim, or goes. False: it can't be counted on. */
static bool lock_book(struct world *w, int c, int e, const struct record_campaign *task,
		      bool is_late, const struct record_claim *claim)
{
	const struct cand *a = &w->cands[c];
	struct seat *s = &w->cands[c].seats[e];
	uint8_t slot = slot_of(task->lease->id);

	if (!task->has_lock)
		return true;
	if (claim->standing == RECORD_NO_CLAIM || a->life != LIFE_LIVE || a->lease != slot) {
		if (s->role == ROLE_NONE || a->lease != slot)
			host_unlock(w, e, slot);
		return true;
	}
	s->locked = 1;
	return record_lock_counts(is_late ? 1 : 3, 2);
}

static void campaign_done(struct world *w, int c, int e, const struct record_campaign *task)
{
	struct cand *a = &w->cands[c];
	struct seat *s = &a->seats[e];
	bool is_ours = a->life == LIFE_LIVE && a->lease == slot_of(task->lease->id);
	bool is_late = s->bid.late;
	struct record_claim claim = {0};

	s->bid = (struct bid){0};
	if (task->settles && task->task.outcome == BATON_OUTCOME_REFUSED && is_ours) {
		s->role = ROLE_NONE;
		s->nonce = s->term = s->version = 0;
		if (s->locked)
			host_unlock(w, e, a->lease);
		s->locked = s->keep = 0;
	}
	record_campaign_book(task, &claim);
	if (!lock_book(w, c, e, task, is_late, &claim) && claim.standing == RECORD_STANDS)
		claim.standing = RECORD_IN_DOUBT;
	if (claim.standing == RECORD_STANDS) {
		host_won(w, c, e, task);
	} else if (is_ours &&
		   (claim.standing == RECORD_IN_DOUBT || claim.standing == RECORD_FORFEIT)) {
		s->role = claim.standing == RECORD_FORFEIT ? ROLE_FORFEIT : ROLE_SEEKS;
		s->nonce = small(claim.nonce);
		s->term = small(claim.term);
		s->version = id_of(&claim.version);
	} else if (is_ours && task->task.why == RECORD_WHY_MINE) { /* as the core: it goes back */
		s->role = ROLE_LEAVES;
		s->nonce = small(election.nonce);
		s->term = small(election.term);
		s->version = 0;
	}
	if (task->task.outcome == BATON_OUTCOME_REFUSED) /* the record is told */
		learn(s, small(election.term));
}

static void bid_send(struct seat *s, const struct record_campaign *task)
{
	struct bid *b = &s->bid;

	b->stage = STAGE_SENT;
	b->phase = (uint8_t)task->task.phase;
	b->lease = slot_of(task->lease->id);
	b->nonce = small(task->nonce);
	b->term = small(task->term);
	b->expected = id_of(&task->expected);
	b->locked = task->has_lock;
	take_election(&b->e);
	b->w = b->e.w;
}

static void look_read(const struct lrec *l, bool is_fresh)
{
	struct record_version version = version_of(l->w);

	show_lease(l);
	record_sight_note(&sight, &version, l->w != 0 ? &lease : NULL, election.ttl_ns, is_fresh,
			  NOW_NS);
}

/* R3, R4: a sight from the table, or a new one. */
static void campaign_look(const struct world *w, struct seat *s, const struct record_campaign *task,
			  struct record_turn *t, const struct course *how)
{
	int slot = slot_of(task->rival);
	const struct lrec *l = &w->store.leases[slot];

	show_sight(s, slot);
	if (how->look != LOOK_TABLE || !sight.is_known)
		look_read(how->look == LOOK_OLD ? &w->copy.leases[slot] : l, false);
	if (record_sight_is_unsure(&sight))
		look_read(l, true);
	take_sight(s, slot);
	answer(t, BATON_OUTCOME_OK, 0);
}

static void campaign_bury(struct world *w, int c, const struct record_campaign *task,
			  struct record_turn *t, uint8_t *fate)
{
	struct put p = {.act = ACT_BURY,
			.slot = slot_of(task->rival),
			.expected = id_of(&sight.version),
			.l = {.w = small(lease.w), .dead = lease.death != 0}};
	int outcome = carry_out(w, &p, fate);

	answer(t, outcome, store_version(w, &p));
	if (outcome == BATON_OUTCOME_REFUSED && w->cands[c].left % 2 != 0) {
		show_lease(&w->store.leases[p.slot]);
		t->is_told = true;
	}
}

/* A record that is written again as it was, or for the first time. */
static void campaign_rewrite(struct world *w, int c, int e, const struct record_campaign *task,
			     struct record_turn *t, uint8_t *fate)
{
	struct put p = {.act = ACT_AGAIN,
			.slot = (uint8_t)e,
			.expected = id_of(&task->task.version),
			.by_cand = (uint8_t)c};

	take_election(&p.e);
	answer_election(t, w, c, e, carry_out(w, &p, fate));
}

static struct put bid_put(const struct bid *b, int c, int e)
{
	return (struct put){.act = ACT_CLAIM,
			    .slot = (uint8_t)e,
			    .expected = b->expected,
			    .by_lease = b->lease,
			    .by_nonce = b->nonce,
			    .by_cand = (uint8_t)c,
			    .e = b->e};
}

/* A claim that doesn't travel. True: it has landed, and its answer is on its way. */
static bool bid_carry(struct world *w, int c, int e, struct record_turn *t, uint8_t *fate)
{
	struct bid *b = &w->cands[c].seats[e].bid;
	struct put p = bid_put(b, c, e);
	int outcome = carry_out(w, &p, fate);

	if (outcome == BATON_OUTCOME_OK) {
		b->stage = STAGE_LANDED;
		b->w = store_version(w, &p);
		return true;
	}
	answer_election(t, w, c, e, outcome);
	return false;
}

static bool is_rewrite(const struct record_campaign *task)
{
	return task->task.why == RECORD_WHY_LANDED || task->task.why == RECORD_WHY_PENDING ||
	       task->task.why == RECORD_WHY_MISSING || task->task.why == RECORD_WHY_LOCKED;
}

/* Goes on with a campaign until its claim is sent, or it has ended. */
static void campaign_go(struct world *w, int c, int e, struct record_campaign *task,
			struct record_turn *t, const struct course *how)
{
	struct seat *s = &w->cands[c].seats[e];
	const struct erec *r;
	uint8_t fate = how->fate;
	int looked = SLOT_NONE; /* whose sight the task was given */

	for (;;) {
		int op = record_campaign_step(task, t);
		bool is_old = op == RECORD_READ && how->old_read;

		if (looked != SLOT_NONE)
			take_sight(s, looked);
		switch (op) {
		case RECORD_READ:
		case RECORD_READ_FRESH:
			r = is_old ? &w->copy.elections[e] : &w->store.elections[e];
			show_election(r);
			drop_sight(s);
			answer(t, BATON_OUTCOME_OK, r->w);
			continue;
		case RECORD_LOOK:
			looked = slot_of(task->rival);
			campaign_look(w, s, task, t, how);
			continue;
		case RECORD_LOCK:
			s->bid.late = 0;
			answer(t, host_lock(w, e, slot_of(task->lease->id), how->lock, true), 0);
			continue;
		case RECORD_BURY: campaign_bury(w, c, task, t, &fate); continue;
		case RECORD_WRITE:
			if (is_rewrite(task)) {
				campaign_rewrite(w, c, e, task, t, &fate);
				continue;
			}
			bid_send(s, task);
			if (setup->travels || bid_carry(w, c, e, t, &fate))
				break;
			continue;
		default: campaign_done(w, c, e, task); break;
		}
		break;
	}
	end_turn(s);
}

static void campaign_fill(const struct world *w, int c, int e, const struct baton_lease *l,
			  struct record_campaign *task)
{
	const struct cand *a = &w->cands[c];

	*task = (struct record_campaign){.lease = l, .profile = &profile, .locks = setup->locks};
	if (setup->forgets || setup->evicts)
		task->floor = a->seats[e].floor;
}

void host_campaign(struct world *w, int c, int e, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct baton_lease l = lease_of(a->lease, c);
	struct record_campaign task;
	struct record_turn t;

	campaign_fill(w, c, e, &l, &task);
	task.nonce = fresh_nonce(w, e);
	begin_turn(&t, w, &a->seats[e], e);
	campaign_go(w, c, e, &task, &t, how);
}

void host_bid_answer(struct world *w, int c, int e, int outcome, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct bid b = a->seats[e].bid;
	struct baton_lease l = lease_of(b.lease, c);
	struct record_campaign task;
	struct record_turn t;

	campaign_fill(w, c, e, &l, &task);
	task.nonce = b.nonce;
	task.term = b.term;
	task.expected = version_of(b.expected);
	task.is_sent = true;
	task.has_lock = b.locked;
	task.task.phase = b.phase;
	task.task.version = task.expected;
	begin_turn(&t, w, &a->seats[e], e);
	show_election(&b.e);
	answer_election(&t, w, c, e, outcome);
	if (b.stage == STAGE_LANDED)
		answer(&t, outcome, b.w);
	campaign_go(w, c, e, &task, &t, how);
}

void host_bid_land(struct world *w, int c, int e, const struct course *how)
{
	struct bid *b = &w->cands[c].seats[e].bid;
	struct put p = bid_put(b, c, e);

	if (store_put(w, &p)) {
		b->stage = STAGE_LANDED;
		b->w = store_version(w, &p);
		return;
	}
	host_bid_answer(w, c, e, BATON_OUTCOME_REFUSED, how);
}

bool host_bid_stray(struct world *w, int c, int e)
{
	struct put p = bid_put(&w->cands[c].seats[e].bid, c, e);

	return add_stray(w, &p);
}

void host_settle(struct world *w, int c, int e, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct seat *s = &a->seats[e];
	struct baton_lease l = lease_of(a->lease, c);
	struct record_claim claim = {.nonce = s->nonce,
				     .term = s->term,
				     .version = version_of(s->version),
				     .standing = s->role == ROLE_FORFEIT ? RECORD_FORFEIT
									 : RECORD_IN_DOUBT};
	struct record_campaign task;
	struct record_turn t;

	record_settle_begin(&task, &l, &claim, setup->locks);
	begin_turn(&t, w, s, e);
	campaign_go(w, c, e, &task, &t, how);
}

/* Whoever has a claim begins with that. */
static void claim_edit(struct world *w, int c, int e, struct record_edit *task,
		       const struct course *how)
{
	const struct cand *a = &w->cands[c];
	const struct seat *s = &a->seats[e];
	struct erec known = w->store.elections[e];
	uint8_t fate = how->fate;
	struct record_turn t;

	/* What it wrote itself: its claim, if that is not what stands there now. */
	if (known.w != s->version)
		known = (struct erec){
			.w = s->version, .lease = a->lease, .nonce = s->nonce, .term = s->term};
	begin_turn(&t, w, s, e);
	show_election(&known);
	for (int op = record_edit_step(task, &t); op != RECORD_DONE;
	     op = record_edit_step(task, &t)) {
		struct put p = {.act = task->show != NULL ? ACT_SHOW : ACT_RELEASE,
				.slot = (uint8_t)e,
				.expected = id_of(&task->task.version),
				.by_lease = a->lease,
				.by_nonce = s->nonce,
				.by_cand = (uint8_t)c};
		int outcome = BATON_OUTCOME_OK;

		if (op == RECORD_WRITE) {
			take_election(&p.e);
			outcome = carry_out(w, &p, &fate);
		} else {
			show_election(&w->store.elections[e]);
		}
		answer_election(&t, w, c, e, outcome);
	}
}

/* Always news: what they are is not kept, because nothing depends on it. */
void host_show(struct world *w, int c, int e, const struct course *how)
{
	static const struct baton_profile news = {.metadata = "", .score_permille = 1};
	struct cand *a = &w->cands[c];
	struct seat *s = &a->seats[e];
	struct record_show asked = {.lease_id = lease_ids[a->lease],
				    .nonce = s->nonce,
				    .term = s->term,
				    .profile = &news};
	struct record_edit task = {.show = &asked, .known = version_of(s->version)};

	claim_edit(w, c, e, &task, how);
	if (task.task.outcome == BATON_OUTCOME_OK)
		s->version = id_of(&task.task.version);
}

void host_release(struct world *w, int c, int e, const struct course *how)
{
	struct cand *a = &w->cands[c];
	struct seat *s = &a->seats[e];
	struct baton_release asked = {.lease_id = lease_ids[a->lease],
				      .nonce = s->nonce,
				      .term = s->term,
				      .reason = "stopped",
				      .reserve_for =
					      how->reserve != 0 ? cand_ids[how->reserve - 1] : NULL,
				      .hold_ns = setup->hold * TICK_NS};
	struct record_edit task = {.release = &asked, .known = version_of(s->version)};

	host_unlock(w, e, a->lease);
	s->locked = s->keep = 0;
	claim_edit(w, c, e, &task, how);
	if (task.task.outcome == BATON_OUTCOME_OK || task.task.outcome == BATON_OUTCOME_REFUSED) {
		s->role = ROLE_NONE;
		s->nonce = s->term = s->version = 0;
	}
}
