/*
 * choices.c: everything that can happen next. Nothing here is likely or unlikely: what is
 * possible is tried.
 *
 * What keeps the worlds honest: time goes on only when everybody who isn't paused has done what
 * was due, when every call at its limit has been answered, and when the work of a loser has ended
 * by the end that it was given. Calls take no time, unless they are made slow: then they take up to
 * their limit. Where two candidates call at the same instant, either comes first.
 */
#include <string.h>

#include "model.h"
#include "text.h"

struct parts {
	unsigned c;
	unsigned slot;
	unsigned op;
};

static struct parts slot_parts(unsigned choice)
{
	unsigned i = choice - CHOICE_SLOTS;

	return (struct parts){i / N_SLOT_OPS / N_SLOTS, i / N_SLOT_OPS % N_SLOTS, i % N_SLOT_OPS};
}

static struct parts cand_parts(unsigned choice)
{
	unsigned i = choice - CHOICE_CANDS;

	return (struct parts){.c = i / N_CAND_OPS, .op = i % N_CAND_OPS};
}

static bool is_write(uint8_t kind)
{
	return kind == ACT_OPEN || kind == ACT_RENEW || kind == ACT_CLOSE || kind == ACT_CAMPAIGN ||
	       kind == ACT_RELEASE;
}

static bool is_due(const struct world *w, const struct cand *x)
{
	return lease_wake_ns(&x->lease) <= w->now_ns ||
	       election_wake_ns(&x->election, &x->lease) <= w->now_ns;
}

static bool runs(const struct cand *x)
{
	return x->up && !x->paused;
}

/* ---- what is possible ---- */

/* Whoever hasn't landed or been lost by now is slow. */
static unsigned n_slower(const struct world *w)
{
	unsigned n = 0;

	for (unsigned c = 0; c < N_CANDS; c++)
		for (unsigned i = 0; i < N_SLOTS; i++) {
			const struct slot *s = &w->cands[c].slots[i];

			n += s->phase == PHASE_REQUEST && s->age == 0;
		}
	return n;
}

static bool cand_can_wait(const struct world *w, unsigned c)
{
	const struct cand *x = &w->cands[c];
	unsigned limit = setup_limit_ticks(trial.setup, c);

	for (unsigned i = 0; i < N_SLOTS; i++) {
		const struct slot *s = &x->slots[i];

		if (s->phase == PHASE_REQUEST && s->age >= limit)
			return false;
		if (s->phase != PHASE_NONE && s->age >= limit && runs(x))
			return false;
	}
	if (!runs(x))
		return true;
	if (x->works && !x->leads && w->now_ns >= x->work_end_ns)
		return false;
	return !x->lagging && !x->pushed;
}

static bool can_tick(const struct world *w)
{
	return n_slower(w) <= w->bounds[BOUND_SLOW] && cand_can_wait(w, 0) && cand_can_wait(w, 1);
}

static bool slot_enabled(const struct world *w, struct parts p)
{
	const struct cand *x = &w->cands[p.c];
	const struct slot *s = &x->slots[p.slot];
	const uint8_t *b = w->bounds;
	bool write = is_write(s->msg.kind);

	if (p.op == OP_ANSWER)
		return runs(x) &&
		       (s->phase == PHASE_REPLY ||
			(s->phase == PHASE_LOST && s->age >= setup_limit_ticks(trial.setup, p.c)));
	if (s->phase != PHASE_REQUEST)
		return false;
	switch (p.op) {
	case OP_LAND: return true;
	case OP_LAND_SLOW: return runs(x) && b[BOUND_SLOW] > 0;
	case OP_LAND_LOST: return b[BOUND_LOSS] > 0;
	case OP_LAND_KEEP:
		return write && b[BOUND_DUP] > 0 && w->n_strays < trial.setup->strays_max;
	case OP_LAND_COPY: return write && b[BOUND_DUP] > 0;
	case OP_LOSE: return b[BOUND_LOSS] > 0 && s->age == 0;
	case OP_LATE:
		return write && b[BOUND_LATE] > 0 && s->age == 0 &&
		       w->n_strays < trial.setup->strays_max;
	default: /* OP_FAIL */
		return trial.setup->refusals && b[BOUND_LOSS] > 0 && s->age == 0 && runs(x);
	}
}

static bool has_late(const struct cand *x)
{
	for (unsigned i = 0; i < N_SLOTS; i++)
		if (x->slots[i].phase == PHASE_REQUEST && is_write(x->slots[i].msg.kind))
			return true;
	return false;
}

static bool is_endless(unsigned bound)
{
	return (trial.setup->endless >> bound & 1u) != 0;
}

static bool cand_enabled(const struct world *w, struct parts p)
{
	const struct cand *x = &w->cands[p.c];
	const uint8_t *b = w->bounds;

	switch (p.op) {
	case OP_SETTLE: return runs(x) && x->lagging;
	case OP_PAUSE: return runs(x) && b[BOUND_PAUSE + p.c] > 0;
	case OP_RESUME: return x->up && x->paused;
	case OP_CRASH: return x->up && b[BOUND_CRASH + p.c] > 0;
	case OP_CRASH_LATE:
		return x->up && b[BOUND_CRASH + p.c] > 0 && b[BOUND_LATE] > 0 &&
		       (b[BOUND_ALL] > 1 || is_endless(BOUND_CRASH)) && has_late(x) &&
		       w->n_strays < trial.setup->strays_max;
	case OP_RESTART: return !x->up;
	case OP_START: /* where they are equal, A is the one that starts first */
		return runs(x) && !x->election.wanted &&
		       (p.c == 0 || !trial.setup->equal || w->begun);
	case OP_STOP: return runs(x) && x->election.wanted && b[BOUND_STOP] > 0;
	case OP_DRAINED: return runs(x) && x->works && !x->leads;
	case OP_SICK: return runs(x) && !x->sick && b[BOUND_HEALTH] > 0;
	case OP_WELL: return runs(x) && x->sick;
	case OP_RESIGN:
	case OP_TRANSFER: return runs(x) && x->leads && b[BOUND_ORDER] > 0;
	case OP_HINT: return runs(x) && b[BOUND_HINT] > 0;
	default: /* OP_PUSHED */ return runs(x) && x->pushed;
	}
}

static bool world_enabled(const struct world *w, unsigned op)
{
	const struct store *s = &w->store;
	bool may_order = w->bounds[BOUND_ORDER] > 0;

	switch (op) {
	case OP_ORDER_RESIGN:
	case OP_ORDER_TRANSFER: return may_order && s->holder.cand != 0 && s->order == ORDER_NONE;
	case OP_FREEZE: return may_order && trial.setup->freezes && !s->paused;
	default: /* OP_THAW */ return s->paused;
	}
}

/* ---- what must wait ---- */

#define SET(op) (1u << (op))

static bool is_fault(unsigned choice)
{
	static const unsigned calls = SET(OP_LAND) | SET(OP_LAND_SLOW) | SET(OP_ANSWER);
	static const unsigned acts = SET(OP_PAUSE) | SET(OP_CRASH) | SET(OP_CRASH_LATE) |
				     SET(OP_STOP) | SET(OP_SICK) | SET(OP_RESIGN) |
				     SET(OP_TRANSFER) | SET(OP_HINT);

	if (choice >= CHOICE_WORLD)
		return choice - CHOICE_WORLD != OP_THAW;
	if (choice >= CHOICE_CANDS)
		return (SET(cand_parts(choice).op) & acts) != 0;
	return choice >= CHOICE_SLOTS && choice < CHOICE_STRAYS &&
	       (SET(slot_parts(choice).op) & calls) == 0;
}

/* Stopped, not: not yet started. */
static bool is_away(const struct world *w, const struct cand *x)
{
	bool stopped = !x->election.wanted && w->bounds[BOUND_STOP] == 0;

	return !x->up || x->paused || x->sick || stopped;
}

static unsigned n_under_way(const struct world *w)
{
	unsigned n = w->n_strays;

	n += w->store.order != ORDER_NONE || w->store.paused;
	for (unsigned c = 0; c < N_CANDS; c++) {
		n += is_away(w, &w->cands[c]);
		for (unsigned i = 0; i < N_SLOTS; i++)
			n += w->cands[c].slots[i].phase == PHASE_LOST;
	}
	return n;
}

static bool is_busy(const struct world *w, unsigned c)
{
	const struct cand *x = &w->cands[c];
	unsigned limit = setup_limit_ticks(trial.setup, c);

	for (unsigned i = 0; i < N_SLOTS; i++) {
		const struct slot *s = &x->slots[i];

		if (s->phase == PHASE_REQUEST ||
		    (runs(x) &&
		     (s->phase == PHASE_REPLY || (s->phase == PHASE_LOST && s->age >= limit))))
			return true;
	}
	return runs(x) && (x->lagging || (x->works && !x->leads));
}

/* Goes on with what was begun. */
static bool is_brisk(unsigned choice)
{
	if (choice >= CHOICE_CANDS && choice < CHOICE_WORLD)
		return cand_parts(choice).op == OP_DRAINED || cand_parts(choice).op == OP_SETTLE;
	return choice >= CHOICE_SLOTS && choice < CHOICE_STRAYS;
}

static bool must_wait(const struct world *w, unsigned choice)
{
	const struct setup *s = trial.setup;

	if (s->brisk && !is_brisk(choice) && (is_busy(w, 0) || is_busy(w, 1)))
		return true;
	return s->at_once != 0 && is_fault(choice) && n_under_way(w) >= s->at_once;
}

bool choice_enabled(const struct world *w, unsigned choice)
{
	if (must_wait(w, choice))
		return false;
	if (choice == CHOICE_TICK)
		return can_tick(w);
	if (choice < CHOICE_STRAYS)
		return slot_enabled(w, slot_parts(choice));
	if (choice < CHOICE_CANDS)
		return choice - CHOICE_STRAYS < w->n_strays;
	if (choice < CHOICE_WORLD)
		return cand_enabled(w, cand_parts(choice));
	return world_enabled(w, choice - CHOICE_WORLD);
}

unsigned choice_next(const struct world *w, unsigned choice)
{
	while (choice >= CHOICE_SLOTS && choice < CHOICE_STRAYS) {
		struct parts p = slot_parts(choice);

		if (p.op != 0 || w->cands[p.c].slots[p.slot].phase != PHASE_NONE)
			break;
		choice += N_SLOT_OPS;
	}
	return choice;
}

/* ---- making it happen ---- */

/* A fault is used up; of no kind can there be more than there can be of all. */
static void spend(struct world *w, unsigned bound, unsigned n)
{
	if (is_endless(bound))
		return;
	w->bounds[bound] = (uint8_t)(w->bounds[bound] - n);
	w->bounds[BOUND_ALL] = (uint8_t)(w->bounds[BOUND_ALL] - n);
	for (unsigned i = 0; i < N_BOUNDS; i++)
		if (w->bounds[i] > w->bounds[BOUND_ALL] && !is_endless(i))
			w->bounds[i] = w->bounds[BOUND_ALL];
}

/* True: an answer has come with the tick, and may be heard before the timers are. */
static bool age_slots(struct cand *x, unsigned limit)
{
	bool answered = false;

	for (unsigned i = 0; i < N_SLOTS; i++) {
		struct slot *s = &x->slots[i];

		if (s->phase != PHASE_NONE && s->age < limit)
			s->age++;
		answered = answered || s->phase == PHASE_REPLY ||
			   (s->phase == PHASE_LOST && s->age == limit);
	}
	return answered;
}

static void tick(struct world *w)
{
	spend(w, BOUND_SLOW, n_slower(w));
	w->now_ns += TICK_NS;
	store_tick(w);
	for (unsigned c = 0; c < N_CANDS; c++) {
		struct cand *x = &w->cands[c];
		bool answered = age_slots(x, setup_limit_ticks(trial.setup, c));

		if (runs(x) && answered && is_due(w, x))
			x->lagging = true;
		world_settle(w, c);
	}
}

static void stray(struct world *w, const struct message *m)
{
	w->strays[w->n_strays++] = *m;
}

static void land(struct world *w, const struct message *m)
{
	struct reply ignored;

	store_process(w, m, &ignored);
}

/* Whoever is paused gets its answer when it goes on. */
static void answer(struct world *w, unsigned c, unsigned slot)
{
	if (runs(&w->cands[c]))
		world_answer(w, c, slot, w->cands[c].slots[slot].reply.outcome);
}

static void lose(struct slot *s)
{
	s->phase = PHASE_LOST;
	s->reply = (struct reply){.outcome = OUTCOME_UNKNOWN};
}

static void apply_landing(struct world *w, struct parts p)
{
	struct slot *s = &w->cands[p.c].slots[p.slot];

	if (p.op == OP_LAND_COPY || p.op == OP_LAND_KEEP)
		spend(w, BOUND_DUP, 1);
	if (p.op == OP_LAND_COPY) {
		land(w, &s->msg);
		return;
	}
	if (p.op == OP_LAND_KEEP)
		stray(w, &s->msg);
	s->phase = PHASE_REPLY;
	store_process(w, &s->msg, &s->reply);
	if (p.op == OP_LAND_LOST) {
		spend(w, BOUND_LOSS, 1);
		lose(s);
	} else if (p.op == OP_LAND_SLOW) {
		spend(w, BOUND_SLOW, 1);
	} else {
		answer(w, p.c, p.slot);
	}
}

static void apply_slot(struct world *w, struct parts p)
{
	struct slot *s = &w->cands[p.c].slots[p.slot];

	switch (p.op) {
	case OP_ANSWER: answer(w, p.c, p.slot); break;
	case OP_LOSE:
		spend(w, BOUND_LOSS, 1);
		lose(s);
		break;
	case OP_LATE:
		spend(w, BOUND_LATE, 1);
		stray(w, &s->msg);
		lose(s);
		break;
	case OP_FAIL:
		spend(w, BOUND_LOSS, 1);
		world_answer(w, p.c, p.slot, OUTCOME_FAILED);
		break;
	default: apply_landing(w, p); break;
	}
}

static void crash(struct world *w, unsigned c, bool late)
{
	struct cand *x = &w->cands[c];
	uint8_t inc = x->inc;

	spend(w, BOUND_CRASH + c, 1);
	if (late) {
		spend(w, BOUND_LATE, 1);
		for (unsigned i = 0; i < N_SLOTS; i++)
			if (x->slots[i].phase == PHASE_REQUEST && is_write(x->slots[i].msg.kind))
				stray(w, &x->slots[i].msg);
	}
	memset(x, 0, sizeof(*x));
	x->inc = inc;
	if (trial.setup->provable)
		store_push(w);
}

static void say(struct world *w, unsigned c, struct event ev)
{
	world_tell(w, c, &ev);
}

static void restart(struct world *w, unsigned c)
{
	w->cands[c].inc++;
	cand_init(w, c);
	say(w, c, (struct event){.kind = EV_START});
}

static void resume(struct world *w, struct cand *x)
{
	x->paused = false;
	x->lagging = is_due(w, x);
}

static void apply_cand(struct world *w, struct parts p)
{
	unsigned c = p.c;
	struct cand *x = &w->cands[c];

	switch (p.op) {
	case OP_SETTLE:
		x->lagging = false;
		world_settle(w, c);
		break;
	case OP_PAUSE:
		spend(w, BOUND_PAUSE + c, 1);
		x->paused = true;
		x->lagging = false;
		break;
	case OP_RESUME: resume(w, x); break;
	case OP_CRASH:
	case OP_CRASH_LATE: crash(w, c, p.op == OP_CRASH_LATE); break;
	case OP_RESTART: restart(w, c); break;
	case OP_START:
		w->begun = true;
		say(w, c, (struct event){.kind = EV_START});
		break;
	case OP_STOP:
		spend(w, BOUND_STOP, 1);
		say(w, c, (struct event){.kind = EV_STOP});
		break;
	case OP_DRAINED:
		x->works = false;
		say(w, c, (struct event){.kind = EV_DRAINED});
		break;
	case OP_SICK:
		spend(w, BOUND_HEALTH, 1);
		x->sick = true;
		say(w, c, (struct event){.kind = EV_HEALTH});
		break;
	case OP_WELL:
		x->sick = false;
		say(w, c, (struct event){.kind = EV_HEALTH, .score = SCORE_MAX});
		break;
	case OP_RESIGN:
		spend(w, BOUND_ORDER, 1);
		say(w, c, (struct event){.kind = EV_RESIGN, .quiet_ns = 2 * TICK_NS});
		break;
	case OP_TRANSFER:
		spend(w, BOUND_ORDER, 1);
		say(w, c, (struct event){.kind = EV_TRANSFER, .target = 2 - c, .target_ok = true});
		break;
	case OP_HINT:
		spend(w, BOUND_HINT, 1);
		say(w, c, (struct event){.kind = EV_HINT});
		break;
	default: /* OP_PUSHED */
		x->pushed = false;
		say(w, c, (struct event){.kind = EV_HINT});
		break;
	}
}

static void apply_world(struct world *w, unsigned op)
{
	struct store *s = &w->store;

	switch (op) {
	case OP_ORDER_RESIGN:
	case OP_ORDER_TRANSFER:
		spend(w, BOUND_ORDER, 1);
		s->order = op == OP_ORDER_RESIGN ? ORDER_RESIGN : ORDER_TRANSFER;
		s->order_id++;
		s->order_term = s->term;
		s->order_target = op == OP_ORDER_TRANSFER ? (uint8_t)(3 - s->holder.cand) : NOBODY;
		break;
	case OP_FREEZE:
		spend(w, BOUND_ORDER, 1);
		s->paused = true;
		break;
	default: /* OP_THAW */ s->paused = false; break;
	}
	store_push(w);
}

/* Hints come at once to whoever can hear them, unless they may be overtaken. */
static void push(struct world *w)
{
	for (unsigned c = 0; c < N_CANDS; c++) {
		struct cand *x = &w->cands[c];

		if (x->pushed && runs(x) && !x->lagging && !trial.setup->lazy_push)
			apply_cand(w, (struct parts){.c = c, .op = OP_PUSHED});
	}
}

void choice_apply(struct world *w, unsigned choice)
{
	if (choice == CHOICE_TICK) {
		tick(w);
	} else if (choice < CHOICE_STRAYS) {
		apply_slot(w, slot_parts(choice));
	} else if (choice < CHOICE_CANDS) {
		unsigned i = choice - CHOICE_STRAYS;
		struct message m = w->strays[i];

		w->strays[i] = w->strays[--w->n_strays];
		land(w, &m);
	} else if (choice < CHOICE_WORLD) {
		apply_cand(w, cand_parts(choice));
	} else {
		apply_world(w, choice - CHOICE_WORLD);
	}
	push(w);
}

/* ---- in words ---- */

static const char *const slot_words[N_SLOT_OPS] = {
	"reaches the store, and is answered",
	"reaches the store; the answer is under way",
	"reaches the store; the answer is lost",
	"reaches the store, and is answered; a copy stays under way",
	"was sent twice: a copy reaches the store",
	"is answered",
	"is lost",
	"will be late",
	"fails at once",
};

static const char *const cand_words[N_CAND_OPS] = {
	"does what is due",
	"is paused",
	"is resumed",
	"crashes",
	"crashes; what it has sent is still under way",
	"is restarted",
	"is started",
	"is told to stop",
	"has ended its work",
	"turns unhealthy",
	"is healthy again",
	"is told to resign",
	"is told to hand over to the other",
	"gets a hint that means nothing",
	"gets a hint",
};

static const char *const world_words[N_WORLD_OPS] = {
	"an order in the store: resign",
	"an order in the store: hand over to the other",
	"the election is paused",
	"the election goes on",
};

unsigned choice_op(unsigned choice)
{
	if (choice == CHOICE_TICK)
		return 0;
	if (choice < CHOICE_STRAYS)
		return 2 + slot_parts(choice).op;
	if (choice < CHOICE_CANDS)
		return 1;
	if (choice < CHOICE_WORLD)
		return 2 + N_SLOT_OPS + cand_parts(choice).op;
	return 2 + N_SLOT_OPS + N_CAND_OPS + choice - CHOICE_WORLD;
}

const char *op_text(unsigned op)
{
	if (op < 2)
		return op == 0 ? "time goes on" : "a request lands late";
	op -= 2;
	if (op < N_SLOT_OPS)
		return slot_words[op];
	op -= N_SLOT_OPS;
	return op < N_CAND_OPS ? cand_words[op] : world_words[op - N_CAND_OPS];
}

void choice_text(const struct world *w, unsigned choice, char *buf, size_t size)
{
	if (choice == CHOICE_TICK) {
		(void)snprintf(buf, size, "time goes on");
	} else if (choice < CHOICE_STRAYS) {
		struct parts p = slot_parts(choice);
		const struct slot *s = &w->cands[p.c].slots[p.slot];

		(void)snprintf(buf, size, "the %s of %c %s", text_action_kind(s->msg.kind),
			       name_of(p.c), slot_words[p.op]);
	} else if (choice < CHOICE_CANDS) {
		const struct message *m = &w->strays[choice - CHOICE_STRAYS];

		(void)snprintf(buf, size, "a %s of %c lands late", text_action_kind(m->kind),
			       name_of(m->lease.cand - 1u));
	} else if (choice < CHOICE_WORLD) {
		struct parts p = cand_parts(choice);

		(void)snprintf(buf, size, "%c %s", name_of(p.c), cand_words[p.op]);
	} else {
		(void)snprintf(buf, size, "%s", world_words[choice - CHOICE_WORLD]);
	}
}
