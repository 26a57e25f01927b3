/*
 * steps.c: what each step does to the world. The names are those of the comments "model: ..." in
 * src/store/file; a variant changes one of them.
 */
#include <stdio.h>
#include <string.h>

#include "model/file/model.h"

#define HISTORY 1 /* as few as the driver can be told to keep: the most is pruned */

static void step(struct world *w, const struct bounds *b, enum variant v, int i);
static void step_renew(struct world *w, const struct bounds *b, enum variant v, int i);
static void read_folder(struct world *w, enum variant v, int i, bool again);
static void step_verdict(struct world *w, enum variant v, int i);
static void report_leader(struct world *w, int i);
static void kill_process(struct world *w, int i);

/* ---- helpers ---- */

static int lease_of(const struct world *w, int i)
{
	return i * LIVES_MAX + w->p[i].life;
}

/* Registers that nobody reads any more are wiped, so that equal worlds are equal. */
static void ready(struct process *p)
{
	p->pc = READY;
	p->who = NOBODY;
	p->time = p->seen = p->low = 0;
	p->sweeps = p->there = p->ended = false;
	if (!p->leads)
		p->seq = p->term = 0;
}

static int renewals_of(const struct world *w, int i)
{
	return w->renewals >> 2 * i & 3;
}

static int highest_of(const struct world *w)
{
	int seq = SEQ_MAX;

	while (seq > 0 && !w->claims[seq].there)
		seq--;
	return seq;
}

static void set_expires(struct lease_file *l, unsigned expires)
{
	l->expires = (uint8_t)(expires & 31) & 31u;
}

static void set_lease(struct claim_file *c, int lease)
{
	c->lease = (unsigned)lease & 15u;
}

/* The highest term that this candidate knows of by itself: one has seen more than the others. */
static int floor_of(int i)
{
	return i == 1 ? 2 : 0;
}

bool world_believes(const struct world *w, int i)
{
	const struct process *p = &w->p[i];

	return p->leads && p->open && !p->lost && w->now < p->expires;
}

void world_init(struct world *w, const struct bounds *b)
{
	memset(w, 0, sizeof(*w));
	w->now = 1;
	for (int i = 0; i < PROCESSES; i++) {
		w->p[i].who = NOBODY;
		if (b->processes != 0 && i >= b->processes)
			continue;
		w->p[i].pc = OPEN_LOCK;
		if (!b->idle)
			continue;
		w->p[i].pc = READY;
		w->p[i].open = true;
		w->p[i].expires = (uint8_t)(w->now + b->ttl);
		set_expires(&w->leases[i * LIVES_MAX], w->p[i].expires);
		w->leases[i * LIVES_MAX].alive = w->leases[i * LIVES_MAX].locked = true;
	}
}

/* ---- what can happen ---- */

static void put(struct action *out, int *n, int who, int what, int arg)
{
	out[(*n)++] = (struct action){(uint8_t)who, (uint8_t)what, (uint8_t)arg};
}

/* Between two calls the process does what it likes: the runtime may ask for anything. */
static void list_choices(const struct world *w, const struct bounds *b, int i, struct action *out,
			 int *n)
{
	const struct process *p = &w->p[i];

	if (!p->leads && !p->lost && highest_of(w) < b->seqs &&
	    (b->campaigns == 0 || w->campaigns[i] < b->campaigns))
		put(out, n, i, DO_CAMPAIGN, 0);
	if (p->leads)
		put(out, n, i, DO_RELEASE, 0);
	if (p->renew == RENEW_CHECK && !b->idle)
		put(out, n, i, DO_CLOSE, 0);
	for (int l = 0; l < LEASES && !b->idle; l++)
		if (l != lease_of(w, i) && (w->leases[l].expires != 0 || w->leases[l].alive))
			put(out, n, i, DO_SWEEP, l);
}

int world_actions(const struct world *w, const struct bounds *b, struct action *out)
{
	int n = 0;

	int first = b->plain ? -1 : world_private(w, b);

	if (first >= 0) {
		put(out, &n, first, DO_STEP, 0);
		return n;
	}
	for (int i = 0; i < PROCESSES; i++) {
		const struct process *p = &w->p[i];

		if (p->pc == PC_DEAD)
			continue;
		if (p->pc == READY)
			list_choices(w, b, i, out, &n);
		else
			put(out, &n, i, DO_STEP, 0);
		if (p->renew != RENEW_CHECK ||
		    (!b->lazy && p->open && !p->lost && (b->two_threads || p->pc == READY) &&
		     (b->renewals == 0 || renewals_of(w, i) < b->renewals)))
			put(out, &n, i, DO_RENEW, 0);
		if (w->kills < b->kills)
			put(out, &n, i, DO_KILL, 0);
	}
	if (w->now < b->ticks)
		put(out, &n, PROCESSES, DO_TICK, 0);
	return n;
}

void world_apply(struct world *w, const struct bounds *b, enum variant v, struct action a)
{
	/* Time's own step names no process, and touches none. */
	struct process *p = &w->p[a.who < PROCESSES ? a.who : 0];

	switch (a.what) {
	case DO_STEP: step(w, b, v, a.who); break;
	case DO_RENEW: step_renew(w, b, v, a.who); break;
	case DO_CAMPAIGN: /* CLAIM_CHECK */
		if (b->campaigns != 0)
			w->campaigns[a.who]++;
		if (w->now < p->expires)
			p->pc = LOOK;
		else
			p->lost = true;
		break;
	case DO_RELEASE: /* the core steps down first, then releases (S7) */
		p->leads = false;
		p->pc = RELEASE_LOOK;
		break;
	case DO_CLOSE: /* from here on nobody renews it */
		p->leads = false;
		p->lost = true;
		ready(p);
		p->pc = v == CLOSE_UNLINKS_FIRST ? CLOSE_LEASE : CLOSE_ALIVE;
		break;
	case DO_SWEEP:
		p->sweeps = true;
		p->who = a.arg;
		p->pc = LOOK_ALIVE; /* the clock is read too, but the dead are dead without it */
		break;
	case DO_KILL:
		kill_process(w, a.who);
		w->kills++;
		break;
	default: w->now++; break;
	}
}

/* The kernel takes its locks back; its files stay. */
static void kill_process(struct world *w, int i)
{
	for (int l = i * LIVES_MAX; l < (i + 1) * LIVES_MAX; l++)
		w->leases[l].locked = false;
	memset(&w->p[i], 0, sizeof(w->p[i]));
	w->p[i].who = NOBODY;
	w->campaigns[i] = 0;
	w->renewals = (uint8_t)(w->renewals & ~(3 << 2 * i));
}

/* ---- leases ---- */

static void step_renew(struct world *w, const struct bounds *b, enum variant v, int i)
{
	struct process *p = &w->p[i];

	switch (p->renew) {
	case RENEW_CHECK: /* a late renewal never resurrects */
		if (w->now >= p->expires && v != RENEWAL_RESURRECTS) {
			p->lost = true;
			p->leads = false;
			return;
		}
		if (b->renewals != 0)
			w->renewals = (uint8_t)(w->renewals + (1 << 2 * i));
		p->fresh = (uint8_t)(w->now + b->ttl);
		p->renew = RENEW_WRITE;
		return;
	case RENEW_WRITE: /* the rename */
		set_expires(&w->leases[lease_of(w, i)], p->fresh);
		p->renew = RENEW_AGAIN;
		return;
	default: /* RENEW_AGAIN: others may have seen the old expiry, and gone by it */
		if (w->now >= p->expires && v != RENEWAL_WITHOUT_SECOND_CLOCK &&
		    v != RENEWAL_RESURRECTS) {
			p->lost = true;
			p->leads = false;
		} else {
			p->expires = p->fresh;
		}
		p->fresh = 0;
		p->renew = RENEW_CHECK;
		return;
	}
}

static void step_open(struct world *w, const struct bounds *b, enum variant v, int i)
{
	struct process *p = &w->p[i];
	struct lease_file *l = &w->leases[lease_of(w, i)];
	bool swapped = v == ALIVE_MADE_THEN_LOCKED;

	switch (p->pc) {
	case OPEN_LOCK: /* under a name of its own, where nobody looks */
		if (swapped)
			l->alive = true;
		p->pc = v == LEASE_BEFORE_ALIVE ? OPEN_CLOCK : OPEN_ALIVE;
		return;
	case OPEN_ALIVE: /* renamed into place, locked */
		if (!swapped)
			l->alive = true;
		l->locked = true;
		if (v == LEASE_BEFORE_ALIVE) {
			p->open = true;
			ready(p);
		} else {
			p->pc = OPEN_CLOCK;
		}
		return;
	case OPEN_CLOCK:
		p->expires = (uint8_t)(w->now + b->ttl);
		p->pc = OPEN_LEASE;
		return;
	default: /* OPEN_LEASE */
		set_expires(l, p->expires);
		if (v == LEASE_BEFORE_ALIVE) {
			p->pc = OPEN_ALIVE;
		} else {
			p->open = true;
			ready(p);
		}
		return;
	}
}

/* The lock goes first: it frees all that the lease carries. */
static void step_close(struct world *w, const struct bounds *b, enum variant v, int i)
{
	struct process *p = &w->p[i];
	struct lease_file *l = &w->leases[lease_of(w, i)];
	bool swapped = v == CLOSE_UNLINKS_FIRST;

	if (p->pc == CLOSE_ALIVE) {
		l->locked = false;
		p->open = false;
		p->pc = swapped ? CLOSE_UNLINK : CLOSE_LEASE;
	} else if (p->pc == CLOSE_LEASE) {
		l->expires = 0;
		p->pc = swapped ? CLOSE_ALIVE : CLOSE_UNLINK;
	} else { /* CLOSE_UNLINK; rule 7: then a new lease, or the end */
		uint8_t life = (uint8_t)(p->life + 1);

		l->alive = false;
		memset(p, 0, sizeof(*p));
		p->who = NOBODY;
		if (life < b->lives) {
			p->life = life;
			p->pc = OPEN_LOCK;
		}
	}
}

/* ---- looking ---- */

/* One getdents64(2): everything at one instant. (Or, as a variant, first one half of the names,
 * then the other: folders are in no order.) */
static void read_folder(struct world *w, enum variant v, int i, bool again)
{
	struct process *p = &w->p[i];
	bool more = p->pc == LOOK_MORE || p->pc == CLAIM_LOOK_MORE;
	int seen = more ? p->seen : 0;
	bool ended = more && p->ended;

	for (int seq = 1; seq <= SEQ_MAX; seq++) {
		bool late = v == SCAN_IN_TWO_CALLS && seq % 2 == 0;

		if (v == SCAN_IN_TWO_CALLS && late != more)
			continue;
		if (w->claims[seq].there && seq > seen) {
			seen = seq;
			ended = w->claims[seq].ended;
		}
	}
	p->seen = (uint8_t)seen;
	p->ended = ended;
	if (v == SCAN_IN_TWO_CALLS && !more)
		p->pc = again ? CLAIM_LOOK_MORE : LOOK_MORE;
}

/* Nobody holds it, or its holder can't believe any more: the next number is ours to try. */
static void decide_to_claim(struct process *p, enum variant v, int i)
{
	int term = p->term > floor_of(i) ? p->term : floor_of(i);

	p->term = (uint8_t)(term + 1);
	p->seq = (uint8_t)(p->seen + 1);
	if (v == TERM_AS_NAME)
		p->seq = p->term;
	p->who = NOBODY;
	p->time = p->seen = p->low = 0;
	p->there = p->ended = false;
	p->pc = CLAIM_LINK;
	if (p->seq > SEQ_MAX) /* only a variant gets there */
		ready(p);
}

static void looked(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];

	if (p->seen == 0)
		decide_to_claim(p, v, i);
	else
		p->pc = LOOK_CLAIM;
}

static void step_look(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];

	switch (p->pc) {
	case LOOK:
		read_folder(w, v, i, false);
		if (p->pc == LOOK)
			looked(w, v, i);
		return;
	case LOOK_MORE:
		read_folder(w, v, i, false);
		looked(w, v, i);
		return;
	default: /* LOOK_CLAIM: reads the highest; pruned meanwhile: looks again */
		if (!w->claims[p->seen].there) {
			p->seen = 0;
			p->ended = false;
			p->pc = LOOK;
			return;
		}
		p->term = w->claims[p->seen].term;
		p->who = w->claims[p->seen].lease;
		if (p->ended)
			decide_to_claim(p, v, i);
		else if (p->who == lease_of(w, i))
			ready(p); /* our own claim: refused, and the core finds out */
		else
			p->pc = v == CLOCK_AFTER_RECORD ? LOOK_ALIVE : LOOK_CLOCK;
		return;
	}
}

/* ---- judging: see the table in expiry.c ---- */

static void verdict(struct world *w, enum variant v, int i, bool over, bool dead)
{
	struct process *p = &w->p[i];

	if (p->sweeps && dead)
		p->pc = v == SWEEP_ALIVE_FIRST ? SWEEP_ALIVE : SWEEP_LEASE;
	else if (p->sweeps || !over)
		ready(p);
	else
		decide_to_claim(p, v, i);
}

static void step_verdict(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];
	const struct lease_file *l = &w->leases[p->who];
	bool late = v == CLOCK_AFTER_RECORD;

	switch (p->pc) {
	case LOOK_CLOCK: /* rule 9: before the record */
		p->time = w->now;
		if (late) {
			verdict(w, v, i, p->low <= p->time, false);
			return;
		}
		p->pc = LOOK_ALIVE;
		return;
	case LOOK_ALIVE: /* open(2) */
		p->there = l->alive;
		p->pc = p->there ? LOOK_LOCK : LOOK_LEASE;
		return;
	case LOOK_LOCK: /* F_OFD_GETLK on what was opened */
		if (p->sweeps && v == SWEEP_BY_MISSING_LEASE)
			p->pc = LOOK_LEASE;
		else if (l->locked && p->sweeps)
			ready(p); /* by the clock or not: only the dead are swept */
		else if (l->locked)
			p->pc = LOOK_LEASE;
		else
			verdict(w, v, i, true, true);
		return;
	default: /* LOOK_LEASE */
		if (l->expires == 0)
			/* Locked and missing: somebody has meddled; here nobody does. */
			verdict(w, v, i, !p->there,
				!p->there || (p->sweeps && v == SWEEP_BY_MISSING_LEASE));
		else if (late) {
			p->low = l->expires;
			p->pc = LOOK_CLOCK;
		} else
			verdict(w, v, i, p->time >= l->expires, false);
		return;
	}
}

static void step_sweep(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];
	struct lease_file *l = &w->leases[p->who];
	bool swapped = v == SWEEP_ALIVE_FIRST;

	if (p->pc == SWEEP_LEASE) {
		l->expires = 0;
		if (!swapped) {
			p->pc = SWEEP_ALIVE;
			return;
		}
	} else {
		l->alive = false;
		if (swapped) {
			p->pc = SWEEP_LEASE;
			return;
		}
	}
	ready(p);
}

/* ---- claiming and releasing ---- */

static void link_claim(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];
	struct claim_file *c = &w->claims[p->seq];

	if (c->there && v != CLAIM_BY_RENAME) { /* EEXIST */
		ready(p);
		return;
	}
	c->there = true;
	set_lease(c, lease_of(w, i));
	c->term = p->term;
	p->pc = v == NO_LOOK_AFTER_CLAIM ? CLAIM_CLOCK : CLAIM_LOOK;
}

static void looked_again(struct process *p)
{
	p->pc = p->seen == p->seq ? CLAIM_CLOCK : CLAIM_VOID;
	p->seen = 0;
	p->ended = false;
}

static void step_claim(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];

	switch (p->pc) {
	case CLAIM_LINK: link_claim(w, v, i); return;
	case CLAIM_LOOK:
		read_folder(w, v, i, true);
		if (p->pc == CLAIM_LOOK)
			looked_again(p);
		return;
	case CLAIM_LOOK_MORE:
		read_folder(w, v, i, true);
		looked_again(p);
		return;
	case CLAIM_VOID:
		w->claims[p->seq].ended = true;
		ready(p);
		return;
	default: /* CLAIM_CLOCK: last of all */
		if (p->lost || w->now >= p->expires) {
			p->pc = CLAIM_VOID;
			return;
		}
		report_leader(w, i);
		return;
	}
}

/* The campaign is won. What is pruned then is what the last look saw, from the lowest on. */
static void report_leader(struct world *w, int i)
{
	struct process *p = &w->p[i];

	w->term_fell = p->term <= w->last_term;
	w->last_term = p->term;
	p->leads = true;
	p->seen = 0;
	p->low = 1;
	while (p->low <= SEQ_MAX && !w->claims[p->low].there && !w->claims[p->low].ended)
		p->low++;
	p->pc = PRUNE_CLAIM;
	if (p->low + HISTORY > p->seq)
		ready(p);
}

static void step_prune(struct world *w, int i)
{
	struct process *p = &w->p[i];

	if (p->pc == PRUNE_CLAIM) {
		w->claims[p->low].there = false;
		w->claims[p->low].lease = 0;
		w->claims[p->low].term = 0;
		p->pc = PRUNE_END;
		return;
	}
	w->claims[p->low].ended = false;
	p->low++;
	p->pc = PRUNE_CLAIM;
	if (p->low + HISTORY > p->seq)
		ready(p);
}

static void step_release(struct world *w, enum variant v, int i)
{
	struct process *p = &w->p[i];

	if (p->pc == RELEASE_LOOK) { /* S6: it must be ours, and the present one */
		int seq = highest_of(w);
		bool ours = seq == p->seq && w->claims[seq].lease == lease_of(w, i);

		if (v == RELEASE_OF_ANYBODY && seq > 0) {
			p->seq = (uint8_t)seq;
			ours = true;
		}
		if (ours && !w->claims[seq].ended)
			p->pc = RELEASE_LINK;
		else
			ready(p);
		return;
	}
	if (v == RELEASE_UNLINKS) {
		memset(&w->claims[p->seq], 0, sizeof(w->claims[p->seq]));
	} else {
		w->claims[p->seq].ended = true;
	}
	ready(p);
}

static void step(struct world *w, const struct bounds *b, enum variant v, int i)
{
	switch (w->p[i].pc) {
	case OPEN_LOCK:
	case OPEN_ALIVE:
	case OPEN_CLOCK:
	case OPEN_LEASE: step_open(w, b, v, i); return;
	case LOOK:
	case LOOK_MORE:
	case LOOK_CLAIM: step_look(w, v, i); return;
	case LOOK_CLOCK:
	case LOOK_ALIVE:
	case LOOK_LOCK:
	case LOOK_LEASE: step_verdict(w, v, i); return;
	case PRUNE_CLAIM:
	case PRUNE_END: step_prune(w, i); return;
	case RELEASE_LOOK:
	case RELEASE_LINK: step_release(w, v, i); return;
	case CLOSE_ALIVE:
	case CLOSE_LEASE:
	case CLOSE_UNLINK: step_close(w, b, v, i); return;
	case SWEEP_LEASE:
	case SWEEP_ALIVE: step_sweep(w, v, i); return;
	default: step_claim(w, v, i); return;
	}
}
