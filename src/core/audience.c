/*
 * audience.c: the machine of audience.h. A step takes the event, then looks whether the work of the
 * lost leadership has ended.
 */
#include "core/audience.h"

void audience_init(struct audience *a, bool has_handler, bool by_hand, bool tells_renewals)
{
	*a = (struct audience){
		.drain_ns = NEVER,
		.has_handler = has_handler,
		.by_hand = by_hand,
		.tells_renewals = tells_renewals,
		.stopped = true,
	};
}

bool audience_has_stopped(const struct audience *a, uint16_t due)
{
	return (int16_t)(uint16_t)(a->n_stops - due) >= 0;
}

bool audience_is_busy(const struct audience *a)
{
	return a->has_handler && (a->pending != 0 || a->token != 0);
}

/* ---- from the core ---- */

/*
 * S8: the work may end although no thread waits for LOST. The candidate may then lead again before
 * the application has heard of its last leadership. If BECAME and LOST of that leadership both
 * still wait, both are dropped: the application never hears of that leadership.
 */
static void note_became(struct audience *a, uint64_t term)
{
	static const uint8_t both = NEWS_BECAME | NEWS_LOST;

	if ((a->pending & both) == both)
		a->pending &= (uint8_t)~both;
	a->work = WORK_RUNS;
	a->over = false;
	a->led = term;
	a->became_term = term;
	a->pending |= NEWS_BECAME;
}

static void queue_lost(struct audience *a, const struct audience_event *ev)
{
	a->lost_for = ev->term;
	if ((a->pending & NEWS_LOST) != 0) { /* then no application has heard of this leadership */
		a->pending &= (uint8_t)~NEWS_BECAME;
		return;
	}
	a->lost_term = ev->term;
	a->lost_why = ev->why;
	a->pending |= NEWS_LOST;
}

/* Whether the loss counts as dealt with at once, without an event. */
static bool is_dealt_at_loss(const struct audience *a, uint64_t term)
{
	if (a->over)
		return true;
	if (a->has_handler && !a->by_hand)
		return false;
	if (a->self_stop || a->n_runners > 0 || a->n_contexts > 0)
		return true;
	return a->by_hand && a->entered == term; /* all that was entered is left */
}

static void note_lost(struct audience *a, const struct audience_event *ev)
{
	queue_lost(a, ev);
	a->work = WORK_DRAINS;
	a->dealt = is_dealt_at_loss(a, ev->term);
	/* The application takes no events: the work gets the time that it has after any loss. */
	if (!a->dealt && !a->has_handler && !a->by_hand && !ev->has_puller)
		a->drain_ns = after_ns(ev->now_ns, ev->drain_ns);
}

static void note_stopped(struct audience *a, bool wanted)
{
	/* An election that was started again has begun in this step (wanted), or is about to
	 * (n_starts). */
	a->stopped = !wanted && a->n_starts == 0;
	a->n_stops++;
	a->pending |= NEWS_STOPPED;
}

static void take_note(struct audience *a, const struct audience_event *ev)
{
	if (ev->note == NOTE_BECAME)
		note_became(a, ev->term);
	else if (ev->note == NOTE_LOST)
		note_lost(a, ev);
	else
		note_stopped(a, ev->wanted);
}

/*
 * S8: none of these is told after a stop; the core itself says no CHANGED then. RENEWED is told
 * only if the application asked for it, and while work goes on.
 */
static void add_news(struct audience *a, uint8_t news)
{
	bool is_told = news == NEWS_CHANGED || !a->stopped;

	if (news == NEWS_RENEWED)
		is_told = a->tells_renewals && a->work != WORK_NONE;
	if (is_told)
		a->pending |= news;
}

static void take_timer(struct audience *a, uint64_t now_ns)
{
	if (now_ns >= a->drain_ns)
		a->dealt = true;
}

/* ---- from the application ---- */

/*
 * LOST waits for the BECAME of its own leadership, but not for the BECAME of a later one. STOPPED
 * belongs to no leadership, and does not wait for the BECAME of a later one either.
 */
static uint8_t next_news(const struct audience *a)
{
	bool is_lost = (a->pending & NEWS_LOST) != 0;
	bool is_later =
		(a->pending & NEWS_BECAME) != 0 && !(is_lost && a->became_term == a->lost_term);

	if (is_later && is_lost)
		return NEWS_LOST;
	if (is_later && (a->pending & NEWS_STOPPED) != 0)
		return NEWS_STOPPED;
	return (uint8_t)(a->pending & -a->pending); /* the lowest bit goes first */
}

static void take_news(struct audience *a, const struct audience_event *ev,
		      struct audience_result *out)
{
	uint8_t news = next_news(a);

	if (news == 0 || a->token != 0) {
		out->refused = true;
		return;
	}
	a->pending &= (uint8_t)~news;
	a->token = ev->token;
	out->news = news;
	if (news == NEWS_BECAME)
		out->term = a->became_term;
	if (news == NEWS_LOST) {
		out->term = a->lost_term;
		out->why = a->lost_why;
		a->taken_for = a->lost_for;
	}
}

static void finish_told(struct audience *a)
{
	/* The LOST of an earlier leadership does not end the work of the last one. */
	if (a->taken_for != 0 && a->taken_for == a->led && !a->by_hand)
		a->dealt = true;
	a->taken_for = 0;
	a->token = 0;
}

static bool finish_token(struct audience *a, uint64_t token)
{
	if (token == 0 || token != a->token)
		return false;
	finish_told(a);
	return true;
}

static bool enter(struct audience *a, uint64_t term)
{
	if (term == 0 || a->work == WORK_DRAINS)
		return false;
	a->entered = term;
	a->n_contexts++;
	return true;
}

static void leave(struct audience *a)
{
	CORE_ASSERT(a->n_contexts > 0);
	a->n_contexts--; /* after a loss, has_drained() waits for those that are open */
}

/* A late "drained" of an earlier leadership must not end the work of a newer one. */
static bool drained(struct audience *a, uint64_t term, bool over)
{
	if (term != a->led || a->work == WORK_NONE || (a->work == WORK_RUNS && !over))
		return false;
	a->over = true;
	a->dealt = true;
	return true;
}

static void ask_start(struct audience *a)
{
	a->n_starts++;
	a->stopped = false;
	a->self_stop = false;
}

/*
 * Without a handler, or with drain_by_hand, an application that asks for the stop has dealt with an
 * earlier loss.
 */
static void ask_stop(struct audience *a)
{
	a->self_stop = true;
	if (!a->has_handler || a->by_hand)
		a->dealt = true;
}

/*
 * After this, the application may have freed what its handler works with. Where it pulls events, it
 * may also have freed the election of the last one.
 */
static void mute(struct audience *a)
{
	a->muted = true;
	if (!a->has_handler)
		finish_told(a);
}

static bool let_go(struct audience *a)
{
	bool is_first = !a->let_go;

	a->let_go = true;
	return is_first;
}

static bool free_it(struct audience *a)
{
	bool is_first = !a->freed;

	a->freed = true;
	return is_first;
}

/* ---- the step ---- */

static bool take_word(struct audience *a, const struct audience_event *ev)
{
	switch (ev->kind) {
	case AUDIENCE_DONE: return finish_token(a, ev->token);
	case AUDIENCE_ENTER: return enter(a, ev->term);
	case AUDIENCE_DRAINED: return drained(a, ev->term, ev->over);
	case AUDIENCE_FREE: return free_it(a);
	case AUDIENCE_LET_GO: return let_go(a);
	case AUDIENCE_LEAVE: leave(a); break;
	case AUDIENCE_RUN: a->n_runners++; break;
	case AUDIENCE_RUN_END: a->n_runners--; break;
	case AUDIENCE_START: ask_start(a); break;
	case AUDIENCE_STOP: ask_stop(a); break;
	default: mute(a); break;
	}
	return true;
}

static void take_event(struct audience *a, const struct audience_event *ev,
		       struct audience_result *out)
{
	switch (ev->kind) {
	case AUDIENCE_NOTE: take_note(a, ev); break;
	case AUDIENCE_NEWS: add_news(a, ev->news); break;
	case AUDIENCE_TIMER: take_timer(a, ev->now_ns); break;
	case AUDIENCE_START_HEARD: a->n_starts--; break;
	case AUDIENCE_STOP_HEARD: a->stops_due = (uint16_t)(a->n_stops + ev->stopping); break;
	case AUDIENCE_TAKE: take_news(a, ev, out); break;
	default: out->refused = !take_word(a, ev); break;
	}
}

/* S7: the loss is dealt with, and no context is open. */
static bool has_drained(struct audience *a)
{
	if (a->work != WORK_DRAINS || !a->dealt || a->n_contexts > 0)
		return false;
	a->work = WORK_NONE;
	a->drain_ns = NEVER;
	return true;
}

struct audience_result audience_step(struct audience *a, const struct audience_event *ev)
{
	struct audience_result out = {0};

	take_event(a, ev, &out);
	out.drained = has_drained(a);
	if (a->muted && !a->has_handler)
		a->pending = 0; /* no application may be handed what was freed */
	out.deliver = a->pending != 0 && a->token == 0;
	out.wake_ns = a->drain_ns;
	CORE_ASSERT(a->work == WORK_NONE || a->led != 0);
	CORE_ASSERT(a->drain_ns == NEVER || a->work == WORK_DRAINS);
	return out;
}
