/*
 * hall.c: the application in a story, with the third machine (core/audience.h) between it and the
 * core. It takes events, enters and leaves contexts, says words; what it is told, and when its work
 * counts as ended, stands in the trace. See README.md.
 */
#include <stdio.h>
#include <string.h>

#include "story.h"

static void tell(struct world *w, size_t c, const char *text, uint64_t term)
{
	char name[8] = "";

	if (w->n_candidates > 1)
		(void)snprintf(name, sizeof(name), "%c: ", (char)('A' + c));
	if (term != 0)
		lines_add(&w->trace, "%s%s %llu", name, text, (unsigned long long)term);
	else
		lines_add(&w->trace, "%s%s", name, text);
}

static struct audience_result hall_step(struct world *w, size_t c, size_t i,
					const struct audience_event *ev)
{
	struct seat *seat = &w->candidates[c].seats[i];
	struct audience_result r = audience_step(&seat->audience, ev);

	seat->drained = seat->drained || r.drained;
	return r;
}

bool hall_set(struct candidate *cand, const char *word)
{
	static const char *const kinds[] = {"", "handler", "pulls", "by_hand", "nobody"};

	for (uint8_t k = 1; word != NULL && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcmp(word, kinds[k]) != 0)
			continue;
		cand->hall = k;
		for (size_t i = 0; i < ELECTIONS_MAX; i++)
			audience_init(&cand->seats[i].audience, k == HALL_HANDLER,
				      k == HALL_BY_HAND, k == HALL_BY_HAND);
		return true;
	}
	return false;
}

void hall_note(struct world *w, size_t c, size_t i, const struct action *a)
{
	const struct candidate *cand = &w->candidates[c];
	struct audience_event ev = {.kind = AUDIENCE_NOTE,
				    .note = a->note,
				    .term = a->term,
				    .why = a->why,
				    .now_ns = w->now_ns,
				    .drain_ns = timing_drain_ns(&cand->timing),
				    .wanted = cand->seats[i].election.wanted,
				    .has_puller = cand->hall != HALL_NOBODY};

	if (cand->hall == 0)
		return;
	if (a->note == NOTE_CHANGED || a->note == NOTE_ERROR)
		ev = (struct audience_event){.kind = AUDIENCE_NEWS,
					     .news = a->note == NOTE_CHANGED ? NEWS_CHANGED
									     : NEWS_ERROR};
	else if (a->note != NOTE_BECAME && a->note != NOTE_LOST && a->note != NOTE_STOPPED)
		return;
	(void)hall_step(w, c, i, &ev);
}

/* The application asks for it first, then the core hears of it. */
void hall_asked(struct world *w, size_t c, size_t i, uint8_t kind, bool heard)
{
	const struct candidate *cand = &w->candidates[c];
	struct audience_event ev = {.stopping = cand->seats[i].election.stopping};

	if (cand->hall == 0 || (kind != EV_START && kind != EV_STOP))
		return;
	if (kind == EV_START)
		ev.kind = heard ? AUDIENCE_START_HEARD : AUDIENCE_START;
	else
		ev.kind = heard ? AUDIENCE_STOP_HEARD : AUDIENCE_STOP;
	(void)hall_step(w, c, i, &ev);
}

static void hall_take(struct world *w, size_t c, size_t i)
{
	struct seat *seat = &w->candidates[c].seats[i];
	struct audience_event ev = {.kind = AUDIENCE_TAKE, .token = ++seat->tokens};
	struct audience_result r = hall_step(w, c, i, &ev);

	if (r.refused)
		tell(w, c, "hears nothing", 0);
	else
		tell(w, c,
		     r.news == NEWS_BECAME    ? "hears became, term"
		     : r.news == NEWS_LOST    ? "hears lost, term"
		     : r.news == NEWS_CHANGED ? "hears changed"
		     : r.news == NEWS_ERROR   ? "hears an error"
		     : r.news == NEWS_RENEWED ? "hears renewed"
					      : "hears stopped",
		     r.term);
}

bool hall_word(struct world *w, size_t c, size_t i, const char *word, uint64_t term)
{
	struct seat *seat = &w->candidates[c].seats[i];
	struct audience_event ev = {.term = term, .now_ns = w->now_ns};

	if (strcmp(word, "takes") == 0) {
		hall_take(w, c, i);
		return true;
	}
	if (strcmp(word, "done") == 0) {
		ev.kind = AUDIENCE_DONE;
		ev.token = seat->audience.token;
	} else if (strcmp(word, "enters") == 0) {
		ev.kind = AUDIENCE_ENTER;
		ev.term = election_leads(&seat->election, world_lease(w, c, i), w->now_ns)
				  ? seat->election.term
				  : 0;
	} else if (strcmp(word, "leaves") == 0) {
		ev.kind = AUDIENCE_LEAVE;
	} else if (strcmp(word, "ended") == 0) {
		ev.kind = AUDIENCE_DRAINED;
		ev.over = !election_leads(&seat->election, world_lease(w, c, i), w->now_ns);
	} else {
		return false;
	}
	if (hall_step(w, c, i, &ev).refused)
		tell(w, c, "refused", 0);
	return true;
}

uint64_t hall_wake_ns(const struct world *w, size_t c)
{
	uint64_t wake_ns = NEVER;

	for (size_t i = 0; w->candidates[c].hall != 0 && i < w->n_elections; i++)
		wake_ns = min_ns(wake_ns, w->candidates[c].seats[i].audience.drain_ns);
	return wake_ns;
}

void hall_settle(struct world *w)
{
	for (size_t c = 0; c < w->n_candidates; c++) {
		for (size_t i = 0; w->candidates[c].hall != 0 && i < w->n_elections; i++) {
			struct seat *seat = &w->candidates[c].seats[i];
			struct audience_event timer = {.kind = AUDIENCE_TIMER, .now_ns = w->now_ns};
			struct event ev = {
				.now_ns = w->now_ns, .random = w->random, .kind = EV_DRAINED};

			if (!w->candidates[c].frozen)
				(void)hall_step(w, c, i, &timer);
			if (!seat->drained)
				continue;
			seat->drained = false;
			tell(w, c, "the work counts as ended", 0);
			world_tell(w, c, i, &ev);
		}
	}
}
