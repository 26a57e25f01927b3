/*
 * choices.c: what can happen next, to whom, and in which ways.
 */
#include <stdio.h>
#include <string.h>

#include "baton-store.h"
#include "model/record/model.h"

const struct setup *setup;

static bool leads_any(const struct cand *a)
{
	for (int e = 0; e < setup->elections; e++)
		if (a->seats[e].role == ROLE_LEADS)
			return true;
	return false;
}

static bool has_stray_room(const struct world *w)
{
	for (int i = 0; i < setup->strays; i++)
		if (w->strays[i].act == ACT_NONE)
			return true;
	return false;
}

static bool is_named(const struct world *w, int slot)
{
	for (int e = 0; e < setup->elections; e++)
		if (w->store.elections[e].lease == slot)
			return true;
	return false;
}

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->uptime = setup->forgets || setup->evicts ? setup->ttl : 0;
}

/* ---- the list ---- */

struct list {
	struct action *out;
	int n;
};

static struct action *add(struct list *l, enum what what, int c, int e)
{
	struct action *a = &l->out[l->n++];

	*a = (struct action){.what = (uint8_t)what, .cand = (uint8_t)c, .election = (uint8_t)e};
	return a;
}

/* One for each fate from OK to `last`; a stray needs room. */
static void add_fates(struct list *l, const struct world *w, struct action a, const uint8_t *fates,
		      int n)
{
	for (int i = 0; i < n; i++) {
		if (fates[i] == FATE_LATE && !has_stray_room(w))
			continue;
		l->out[l->n] = a;
		l->out[l->n++].how.fate = fates[i];
	}
}

/* What is sent lands at once, if it doesn't travel; or else. */
static void list_sent(struct list *l, const struct world *w, enum what what, int c)
{
	static const uint8_t fates[] = {FATE_OK, FATE_LOST, FATE_COPY, FATE_LATE};
	struct action a = {.what = (uint8_t)what, .cand = (uint8_t)c};

	add_fates(l, w, a, fates, setup->travels ? 1 : 4);
}

static void list_lane(struct list *l, const struct world *w, int c)
{
	const struct cand *a = &w->cands[c];
	bool is_open = a->life == LIFE_LIVE || a->life == LIFE_OVER;

	if (a->lane.stage == STAGE_SENT) {
		add(l, DO_LANE_LAND, c, 0);
		add(l, DO_LANE_LOSE, c, 0);
		if (has_stray_room(w)) {
			add(l, DO_LANE_LATE, c, 0);
			add(l, DO_LANE_COPY, c, 0);
		}
		return;
	}
	if (a->lane.stage == STAGE_LANDED) {
		add(l, DO_LANE_ANSWER, c, 0);
		if (setup->drifts)
			add(l, DO_LANE_ANSWER, c, 0)->how.drift = 1;
		add(l, DO_LANE_LOSE, c, 0);
		return;
	}
	if (a->life == LIFE_NONE && free_slot(w) != SLOT_NONE)
		list_sent(l, w, DO_OPEN, c);
	if (a->life == LIFE_LIVE)
		list_sent(l, w, DO_RENEW, c);
	if (a->life == LIFE_LIVE && setup->locks)
		add(l, DO_RENEW, c, 0)->how.lock = LOCK_FAILS;
	if (a->life == LIFE_OVER) {
		static const uint8_t fates[] = {FATE_OK, FATE_LATE};

		add_fates(l, w, (struct action){.what = DO_CLOSE, .cand = (uint8_t)c}, fates, 2);
	}
	if (is_open && (a->life == LIFE_OVER || (setup->closes && !leads_any(a))))
		add(l, DO_QUIT, c, 0);
}

/* Where it may come to bury a lease, that has a fate, too. */
static void list_campaign(struct list *l, const struct world *w, int c, int e)
{
	static const uint8_t fates[] = {FATE_OK, FATE_SILENT, FATE_COPY, FATE_LATE, FATE_LOST};
	const struct seat *s = &w->cands[c].seats[e];
	bool may_bury = s->seen != SLOT_NONE && s->seen_age >= setup->ttl && !s->seen_dead;

	for (uint8_t old = 0; old <= (setup->old_reads ? 1 : 0); old++) {
		for (uint8_t look = 0; look <= (setup->old_reads ? LOOK_OLD : LOOK_TABLE); look++) {
			struct action a = {.what = DO_CAMPAIGN,
					   .cand = (uint8_t)c,
					   .election = (uint8_t)e,
					   .how = {.old_read = old, .look = look}};

			if (look == LOOK_TABLE && s->seen == SLOT_NONE)
				continue;
			add_fates(l, w, a, fates, may_bury || !setup->travels ? 5 : 1);
			for (a.how.lock = LOCK_SILENT; setup->locks && a.how.lock <= LOCK_FAILS;
			     a.how.lock++)
				add_fates(l, w, a, fates, 1);
		}
	}
}

static bool has_copy(const struct world *w, const struct bid *b, int e)
{
	for (int i = 0; i < setup->strays; i++)
		if (w->strays[i].act == ACT_CLAIM && w->strays[i].slot == e &&
		    w->strays[i].by_nonce == b->nonce)
			return true;
	return false;
}

static void list_bid(struct list *l, const struct world *w, int c, int e)
{
	static const uint8_t fates[] = {FATE_OK, FATE_SILENT, FATE_COPY, FATE_LATE, FATE_LOST};
	const struct bid *b = &w->cands[c].seats[e].bid;
	bool lands = b->expected == w->store.elections[e].w;
	struct action land = {.what = DO_BID_LAND, .cand = (uint8_t)c, .election = (uint8_t)e};

	if (b->stage == STAGE_LANDED) {
		add(l, DO_BID_ANSWER, c, e);
		add(l, DO_BID_LOSE, c, e);
		return;
	}
	add_fates(l, w, land, fates, lands ? 1 : 5);
	add(l, DO_BID_LOSE, c, e);
	if (lands && !has_copy(w, b, e)) /* FAILED: it never has landed, and never lands */
		add(l, DO_BID_FAIL, c, e);
	if (lands && has_stray_room(w)) {
		add(l, DO_BID_LATE, c, e);
		add(l, DO_BID_COPY, c, e);
	}
}

static void list_release(struct list *l, const struct world *w, int c, int e)
{
	static const uint8_t fates[] = {FATE_OK, FATE_SILENT, FATE_COPY, FATE_LATE};
	struct action a = {.what = DO_RELEASE, .cand = (uint8_t)c, .election = (uint8_t)e};

	add_fates(l, w, a, fates, 4);
	for (uint8_t r = 1; r <= setup->cands && setup->hold != 0; r++) {
		a.how.reserve = r;
		if (r != c + 1)
			add_fates(l, w, a, fates, 1);
	}
}

static void list_seat(struct list *l, const struct world *w, int c, int e)
{
	static const uint8_t fates[] = {FATE_OK, FATE_SILENT, FATE_COPY, FATE_LATE, FATE_LOST};
	const struct cand *a = &w->cands[c];
	const struct seat *s = &a->seats[e];
	struct action settle = {.what = DO_SETTLE, .cand = (uint8_t)c, .election = (uint8_t)e};
	struct action show = {.what = DO_SHOW, .cand = (uint8_t)c, .election = (uint8_t)e};

	if (s->bid.stage != STAGE_NONE) {
		list_bid(l, w, c, e);
		return;
	}
	if (s->role == ROLE_LEADS)
		add(l, DO_DOWN, c, e);
	if (s->role == ROLE_LEADS && setup->shows)
		add_fates(l, w, show, fates, 4);
	if (s->role == ROLE_LEAVES)
		list_release(l, w, c, e);
	if (s->role == ROLE_SEEKS || s->role == ROLE_FORFEIT)
		add_fates(l, w, settle, fates, 5);
	for (settle.how.lock = LOCK_SILENT;
	     s->role == ROLE_SEEKS && setup->locks && settle.how.lock <= LOCK_FAILS;
	     settle.how.lock++)
		add_fates(l, w, settle, fates, 1);
	settle.how =
		(struct course){.old_read = 1}; /* which a task that settles must not ask for */
	if (s->role == ROLE_SEEKS && setup->old_reads)
		add_fates(l, w, settle, fates, 1);
	if (s->role == ROLE_NONE && a->life == LIFE_LIVE)
		list_campaign(l, w, c, e);
}

/*
 * A sweeper has a table of its own, with every lease of the store (sweep.c). Here it shares the one
 * sight of the seat. So a sight of the dead gives way: a sweeper has nothing to wait for there, and
 * a campaign that needs it looks again. Else what a campaign has seen last would keep its candidate
 * from sweeping for ever.
 */
static bool may_watch(const struct seat *s)
{
	return s->seen == SLOT_NONE || s->seen_dead;
}

/* A sweeper's sight is one that no election of its own needs. */
static void list_sweep(struct list *l, const struct world *w, int c)
{
	const struct seat *s = &w->cands[c].seats[0];

	if (!setup->sweeps)
		return;
	if (s->seen != SLOT_NONE && s->seen_age >= setup->ttl && !s->seen_dead)
		add(l, DO_SWEEP, c, 0);
	for (int slot = 1; slot <= setup->leases && may_watch(s); slot++)
		if (w->store.leases[slot].w != 0 && !w->store.leases[slot].dead &&
		    !is_named(w, slot) && w->cands[c].lease != slot)
			add(l, DO_WATCH, c, slot);
}

/*
 * Nobody keeps it alive. Whoever sweeps waits for an hour and ten ttl: here it is known that
 * nobody will come. (Where a sweeper's own sight is searched, that decides.)
 */
static bool is_abandoned(const struct world *w, int slot)
{
	if (setup->sweeps || w->store.leases[slot].w == 0 || w->store.leases[slot].dead ||
	    is_named(w, slot))
		return false;
	for (int c = 0; c < setup->cands; c++)
		if (w->cands[c].lease == slot)
			return false;
	return true;
}

static void list_people(struct list *l, const struct world *w)
{
	for (int e = 0; e < setup->elections; e++) {
		if (setup->orders && w->store.elections[e].lease != 0)
			add(l, DO_ORDER, 0, e);
		if (setup->pauses)
			add(l, DO_PAUSE, 0, e);
		/* Another millisecond than that of the last claim. */
		if (setup->evicts && w->store.elections[e].w != 0 &&
		    w->clock[e] > w->store.elections[e].term)
			add(l, DO_EVICT, 0, e);
		if (setup->locks && w->locks[e].lease == SLOT_NONE)
			add(l, DO_FOREIGN, 0, e);
		if (setup->breaks && w->locks[e].lease != SLOT_NONE)
			add(l, DO_BREAK, 0, e);
	}
	for (int slot = 1; slot <= setup->leases; slot++) {
		if (w->store.leases[slot].dead)
			add(l, DO_DROP, 0, slot);
		if (is_abandoned(w, slot))
			add(l, DO_END, 0, slot);
		if (setup->deletes && w->store.leases[slot].w != 0 && !w->store.leases[slot].dead)
			add(l, DO_DELETE, 0, slot);
	}
	if (setup->old_reads)
		add(l, DO_SYNC, 0, 0);
	if (setup->forgets)
		add(l, DO_FORGET, 0, 0);
}

int world_actions(const struct world *w, struct action *out)
{
	struct list l = {.out = out};

	add(&l, DO_TICK, 0, 0);
	for (int c = 0; c < setup->cands; c++) {
		list_lane(&l, w, c);
		for (int e = 0; e < setup->elections; e++)
			list_seat(&l, w, c, e);
		list_sweep(&l, w, c);
		if (setup->crashes)
			add(&l, DO_CRASH, c, 0);
	}
	for (int i = 0; i < setup->strays; i++)
		if (w->strays[i].act != ACT_NONE)
			add(&l, DO_STRAY, 0, i);
	list_people(&l, w);
	return l.n;
}

/* ---- carrying it out ---- */

static void age(uint8_t *ticks, uint8_t most)
{
	if (*ticks < most)
		++*ticks;
}

static void tick_cand(struct world *w, int c)
{
	struct cand *a = &w->cands[c];

	if (a->lane.stage != STAGE_NONE)
		age(&a->lane.age, setup->last);
	for (int e = 0; e < setup->elections; e++) {
		if (a->seats[e].seen != SLOT_NONE && !a->seats[e].seen_dead)
			age(&a->seats[e].seen_age, setup->ttl);
		age(&a->seats[e].hold_age, setup->hold);
	}
	if (a->life == LIFE_LIVE && --a->left == 0)
		host_over(w, c);
}

static void tick(struct world *w)
{
	for (int c = 0; c < setup->cands; c++)
		tick_cand(w, c);
	for (int e = 0; e < setup->elections; e++) {
		if (w->store.elections[e].reserved != 0)
			age(&w->hold_age[e], setup->hold);
		if (setup->locks && w->locks[e].left > 0 && --w->locks[e].left == 0)
			w->locks[e].lease = 0;
		if (setup->forgets || setup->evicts) {
			/* A tick is many milliseconds: more than there were claims. */
			uint8_t top = w->led[e];

			for (int c = 0; c < setup->cands; c++) {
				const struct seat *s = &w->cands[c].seats[e];

				top = s->floor > top ? s->floor : top;
				top = s->bid.term > top ? s->bid.term : top;
				top = s->term > top ? s->term : top;
			}
			for (int i = 0; i < setup->strays; i++)
				top = w->strays[i].e.term > top ? w->strays[i].e.term : top;
			if (w->store.elections[e].term > top)
				top = w->store.elections[e].term;
			if (w->clock[e] <= top)
				w->clock[e] = top + 1u;
		}
	}
	if (setup->forgets || setup->evicts)
		age(&w->uptime, setup->ttl);
}

static void quit(struct world *w, int c)
{
	struct cand *a = &w->cands[c];

	if (a->life == LIFE_LIVE) {
		host_over(w, c);
		return;
	}
	a->life = LIFE_NONE;
	a->lease = SLOT_NONE;
	a->version = 0;
}

static void apply_lane(struct world *w, struct action a)
{
	switch (a.what) {
	case DO_LANE_LAND: host_lane_land(w, a.cand); break;
	case DO_LANE_COPY: (void)host_lane_stray(w, a.cand); break;
	case DO_LANE_LATE:
		(void)host_lane_stray(w, a.cand);
		host_lane_answer(w, a.cand, BATON_OUTCOME_UNKNOWN, &a.how);
		break;
	case DO_LANE_LOSE: host_lane_answer(w, a.cand, BATON_OUTCOME_UNKNOWN, &a.how); break;
	default: host_lane_answer(w, a.cand, BATON_OUTCOME_OK, &a.how); break;
	}
}

static void apply_bid(struct world *w, struct action a)
{
	switch (a.what) {
	case DO_BID_LAND: host_bid_land(w, a.cand, a.election, &a.how); break;
	case DO_BID_COPY: (void)host_bid_stray(w, a.cand, a.election); break;
	case DO_BID_LATE:
		(void)host_bid_stray(w, a.cand, a.election);
		host_bid_answer(w, a.cand, a.election, BATON_OUTCOME_UNKNOWN, &a.how);
		break;
	case DO_BID_LOSE:
		host_bid_answer(w, a.cand, a.election, BATON_OUTCOME_UNKNOWN, &a.how);
		break;
	case DO_BID_FAIL:
		host_bid_answer(w, a.cand, a.election, BATON_OUTCOME_FAILED, &a.how);
		break;
	default: host_bid_answer(w, a.cand, a.election, BATON_OUTCOME_OK, &a.how); break;
	}
}

static void apply_people(struct world *w, struct action a)
{
	struct put stray;
	struct put end = {.act = ACT_BURY,
			  .slot = a.election,
			  .expected = w->store.leases[a.election].w,
			  .l = {.w = FRESH, .dead = 1}};

	switch (a.what) {
	case DO_STRAY:
		stray = w->strays[a.election];
		w->strays[a.election] = (struct put){0};
		(void)store_put(w, &stray);
		break;
	case DO_DROP: host_drop(w, a.election); break;
	case DO_END: (void)store_put(w, &end); break;
	case DO_ORDER: host_edit(w, a.election, false); break;
	case DO_PAUSE: host_edit(w, a.election, true); break;
	case DO_DELETE: w->store.leases[a.election] = (struct lrec){0}; break;
	case DO_SYNC: w->copy = w->store; break;
	case DO_FORGET: store_restart(w); break;
	case DO_FOREIGN: w->locks[a.election].foreign = !w->locks[a.election].foreign; break;
	case DO_BREAK: w->locks[a.election] = (struct lock){0}; break;
	case DO_EVICT: w->store.elections[a.election] = (struct erec){0}; break;
	default: tick(w); break;
	}
}

void world_apply(struct world *w, struct action a)
{
	switch (a.what) {
	case DO_OPEN:
	case DO_RENEW:
		if (a.what == DO_OPEN)
			host_open(w, a.cand);
		else
			host_renew(w, a.cand, &a.how);
		if (!setup->travels)
			host_lane_carry(w, a.cand, &a.how);
		break;
	case DO_CLOSE: host_close(w, a.cand, &a.how); break;
	case DO_QUIT: quit(w, a.cand); break;
	case DO_LANE_LAND:
	case DO_LANE_ANSWER:
	case DO_LANE_LOSE:
	case DO_LANE_LATE:
	case DO_LANE_COPY: apply_lane(w, a); break;
	case DO_CAMPAIGN: host_campaign(w, a.cand, a.election, &a.how); break;
	case DO_BID_LAND:
	case DO_BID_ANSWER:
	case DO_BID_LOSE:
	case DO_BID_LATE:
	case DO_BID_COPY:
	case DO_BID_FAIL: apply_bid(w, a); break;
	case DO_SETTLE: host_settle(w, a.cand, a.election, &a.how); break;
	case DO_DOWN: w->cands[a.cand].seats[a.election].role = ROLE_LEAVES; break;
	case DO_SHOW: host_show(w, a.cand, a.election, &a.how); break;
	case DO_RELEASE: host_release(w, a.cand, a.election, &a.how); break;
	case DO_CRASH: host_crash(w, a.cand); break;
	case DO_SWEEP: host_sweep(w, a.cand, 0); break;
	case DO_WATCH: host_watch(w, a.cand, 0, a.election); break;
	default: apply_people(w, a); break;
	}
}

/* ---- alone ---- */

static void make_room(const struct world *w, int c, struct action *a)
{
	const struct seat *s = &w->cands[c].seats[0];
	const struct cand none = {0};

	/* What is dead and unnamed is dropped; what nobody keeps alive is watched, and ended. */
	for (int slot = 1; slot <= setup->leases; slot++) {
		if (w->store.leases[slot].dead && !is_named(w, slot)) {
			*a = (struct action){.what = DO_DROP, .election = (uint8_t)slot};
			return;
		}
	}
	for (int i = 0; i < setup->strays; i++) { /* what is late comes in the end */
		if (w->strays[i].act != ACT_NONE) {
			*a = (struct action){.what = DO_STRAY, .election = (uint8_t)i};
			return;
		}
	}
	if (setup->sweeps && s->seen != SLOT_NONE && s->seen_age >= setup->ttl && !s->seen_dead) {
		a->what = DO_SWEEP;
		return;
	}
	for (int slot = 1; slot <= setup->leases; slot++) {
		if (is_abandoned(w, slot)) {
			*a = (struct action){.what = DO_END, .election = (uint8_t)slot};
			return;
		}
	}
	for (int slot = 1; slot <= setup->leases && setup->sweeps && may_watch(s); slot++) {
		if (w->store.leases[slot].w != 0 && !w->store.leases[slot].dead &&
		    !is_named(w, slot)) {
			a->what = DO_WATCH;
			a->election = (uint8_t)slot;
			return;
		}
	}
	/* The others stay away: what they remember is of no use. */
	for (int other = 0; other < setup->cands; other++) {
		if (other != c && memcmp(&w->cands[other], &none, sizeof(none)) != 0) {
			*a = (struct action){.what = DO_CRASH, .cand = (uint8_t)other};
			return;
		}
	}
	a->what = DO_TICK;
}

static void bid_alone(const struct world *w, int c, int e, struct action *a)
{
	const struct erec *r = &w->store.elections[e];
	const struct cand *x = &w->cands[c];
	const struct seat *s = &x->seats[e];
	bool is_known = s->seen == r->lease && s->seen_version == w->store.leases[r->lease].w;
	bool is_held = r->lease != 0 && r->lease != x->lease;
	/* A lock may outlive its lease. It is taken last, so what is dead has only that left. */
	bool is_locked = w->locks[e].lease != SLOT_NONE && w->locks[e].lease != x->lease;
	bool is_dead = is_held && s->seen == r->lease && s->seen_dead;
	bool is_kept = r->reserved != 0 && r->reserved != c + 1 && s->hold_term == r->hold_term &&
		       s->hold_age < setup->hold;
	bool is_young = (setup->forgets || setup->evicts) && w->uptime < setup->ttl;

	a->what = DO_CAMPAIGN;
	if (r->paused)
		*a = (struct action){.what = DO_PAUSE, .election = (uint8_t)e};
	else if (w->locks[e].foreign) /* it lets go in the end */
		*a = (struct action){.what = DO_FOREIGN, .election = (uint8_t)e};
	else if ((is_held && is_known && !s->seen_dead && s->seen_age < setup->ttl) || is_kept ||
		 is_young || (is_locked && (!is_held || is_dead)))
		a->what = x->left == 1 ? DO_RENEW : DO_TICK;
}

bool world_alone(const struct world *w, int c, int e, struct action *a)
{
	const struct cand *x = &w->cands[c];
	const struct seat *s = &x->seats[e];

	if (cand_leads(w, c, e))
		return false;
	*a = (struct action){.cand = (uint8_t)c, .election = (uint8_t)e};
	if (x->lane.stage != STAGE_NONE)
		a->what = x->lane.stage == STAGE_SENT ? DO_LANE_LAND : DO_LANE_ANSWER;
	else if (s->bid.stage != STAGE_NONE)
		a->what = s->bid.stage == STAGE_SENT ? DO_BID_LAND : DO_BID_ANSWER;
	else if (x->life == LIFE_OVER)
		a->what = DO_CLOSE;
	else if (x->life == LIFE_NONE && free_slot(w) != SLOT_NONE)
		a->what = DO_OPEN;
	else if (x->life == LIFE_NONE)
		make_room(w, c, a);
	else if (s->role == ROLE_LEAVES)
		a->what = DO_RELEASE;
	else if (s->role == ROLE_SEEKS && w->locks[e].foreign)
		*a = (struct action){.what = DO_FOREIGN, .election = (uint8_t)e};
	else if (s->role == ROLE_SEEKS || s->role == ROLE_FORFEIT)
		a->what = DO_SETTLE;
	else
		bid_alone(w, c, e, a);
	return true;
}

/* ---- words ---- */

const char *what_text(enum what what)
{
	static const char *const texts[] = {
		"a tick",
		"opens a lease",
		"renews",
		"opening or renewal lands",
		"opening or renewal is answered",
		"opening or renewal has no answer",
		"opening or renewal has no answer, and is late",
		"opening or renewal has a copy",
		"closes its lease",
		"gives its lease up",
		"campaigns",
		"claim lands",
		"claim is answered",
		"claim has no answer",
		"claim has no answer, and is late",
		"claim has a copy",
		"claim fails",
		"settles",
		"steps down",
		"releases",
		"shows its news",
		"crashes",
		"ends what is idle",
		"watches an idle lease",
		"a late write lands",
		"a dead lease is swept",
		"an abandoned lease is ended",
		"an order is written",
		"paused or resumed",
		"somebody deletes a living lease's record",
		"the old copy catches up",
		"the store forgets all",
		"the store loses an election",
		"another program takes the lock, or lets go",
		"somebody ends a lock",
	};

	_Static_assert(sizeof(texts) / sizeof(texts[0]) == N_WHATS, "a text for each");
	return texts[what];
}

void action_text(struct action a, char *out, size_t size)
{
	static const char *const fates[] = {"",       ", unanswered", ", its copy first",
					    ", lost", ", late",       ", failed"};
	static const char *const looks[] = {"", ", by what is in sight", ", by an old lease"};
	bool is_cands = a.what >= DO_OPEN && a.what <= DO_WATCH;

	(void)snprintf(
		out, size, "%s%s%s%s%s%s%s%s",
		is_cands ? (const char *[]){"a ", "b ", "c "}[a.cand] : "",
		what_text((enum what)a.what), fates[a.how.fate], looks[a.how.look],
		a.how.old_read ? ", by an old record" : "",
		a.how.drift ? ", with a fast clock" : "",
		a.how.reserve ? ", reserved for another" : "",
		(const char *[]){"", ", the lock unanswered", ", the lock fails"}[a.how.lock]);
}

static int put_text(const struct put *p, char *out, size_t size)
{
	static const char *const acts[] = {"",      "open",  "renew",   "close", "bury",
					   "claim", "again", "release", "show"};

	if (p->act == ACT_NONE)
		return 0;
	return snprintf(out, size, " [late %s %u from %u]", acts[p->act], p->slot, p->expected);
}

void world_text(const struct world *w, char *out, size_t size)
{
	size_t n = 0;

#define SAY(...) n += (size_t)snprintf(out + n, n < size ? size - n : 0, __VA_ARGS__)
	for (int e = 0; e < setup->elections; e++) {
		const struct erec *r = &w->store.elections[e];

		SAY("e:v%u t%u l%u n%u%s%s ", r->w, r->term, r->lease, r->nonce,
		    r->paused ? " paused" : "", r->reserved ? " reserved" : "");
		if (setup->locks)
			SAY("lock:%s%u/%u ", w->locks[e].foreign ? "!" : "l", w->locks[e].lease,
			    w->locks[e].left);
	}
	for (int slot = 1; slot <= setup->leases; slot++)
		if (w->store.leases[slot].w != 0)
			SAY("l%d:v%u%s ", slot, w->store.leases[slot].w,
			    w->store.leases[slot].dead ? "+" : "");
	for (int c = 0; c < setup->cands; c++) {
		const struct cand *a = &w->cands[c];

		SAY("| %c %c l%u left %u", 'a' + c, "-oLx"[a->life], a -> lease, a -> left);
		if (a->lane.stage != STAGE_NONE)
			SAY(" lane %u/%u", a->lane.stage, a->lane.age);
		for (int e = 0; e < setup->elections; e++) {
			const struct seat *s = &a->seats[e];

			SAY(" %s",
			    (const char *[]){"-", "LEADS", "leaves", "seeks", "forfeit"}[s->role]);
			if (s->bid.stage != STAGE_NONE)
				SAY(" bid %u l%u t%u from v%u", s->bid.stage, s->bid.lease,
				    s->bid.term, s->bid.expected);
			if (s->seen != SLOT_NONE)
				SAY(" sees l%u v%u for %u%s", s->seen, s->seen_version, s->seen_age,
				    s->seen_dead ? "+" : "");
		}
	}
	for (int i = 0; i < setup->strays; i++)
		if (n < size)
			n += (size_t)put_text(&w->strays[i], out + n, size - n);
#undef SAY
}
