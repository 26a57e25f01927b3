/*
 * story.h: what the parts of the story runner share. A story is a text that says what happens,
 * and everything that the core then does, and why; README.md explains the notation.
 *
 *   main.c   the command: check, list, update
 *   tale.c   a file of stories: which line is what, and how what was told differs from it
 *   play.c   one line of a story: from words to events
 *   words.c  words, numbers, times
 *   world.c  the candidates, and the duties that core.h lays on their caller
 *   hall.c   the application, by the third machine, where a story has one
 */
#ifndef BATON_STORY_H
#define BATON_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/audience.h"
#include "core/election.h"
#include "core/lease.h"
#include "core/timing.h"

#define CANDIDATES_MAX 3u
#define ELECTIONS_MAX 4u
#define WORDS_MAX 40u
#define LINE_MAX_CHARS 400u
/* Duty 2: the answer to a call comes by its limit, or this much later. */
#define ANSWER_SLACK_NS (100 * NS_PER_MS)
/* Stories begin at 0s; the clock doesn't, so that no 0 is taken for a time by mistake. */
#define STORY_BEGIN_NS (1000 * NS_PER_S)

/* ---- lines ---- */

struct lines {
	char **v;
	size_t n;
	size_t room;
};

void lines_add(struct lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lines_clear(struct lines *l);
void lines_done(struct lines *l);

#ifdef STORY_RECORD /* stories of record stores have another world, and words of their own */
#include "record/world.h"
#else
/* ---- world.c ---- */

/* A call that awaits its answer. */
struct pending {
	uint64_t call;
	uint64_t limit_ns;
	uint8_t kind; /* 0: none */
};

/* One election of one candidate. */
struct seat {
	struct election election;
	struct options options;
	struct pending call;
	uint64_t led;    /* the last term that "became" was told of */
	bool told_leads; /* "became" was told, and "lost" not yet */
	bool drained;    /* the audience has said so, and the core has not heard of it */
	uint64_t tokens;
	struct audience audience;
};

struct candidate {
	struct timing timing;
	struct lease leases[ELECTIONS_MAX]; /* the first one only, unless each has its own */
	struct pending lease_calls[ELECTIONS_MAX];
	struct pending claims_calls[ELECTIONS_MAX];
	struct seat seats[ELECTIONS_MAX];
	uint64_t thawed_ns;
	uint8_t hall; /* HALL_...; 0: the story is about the core alone */
	bool own;
	bool frozen;
};

struct world {
	struct candidate candidates[CANDIDATES_MAX];
	size_t n_candidates;
	size_t n_elections;
	uint64_t now_ns;
	uint64_t random;    /* what the dice show unless a line says otherwise */
	struct lines trace; /* what was done since it was last cleared */
	bool renews;        /* renewals are answered at once, and not worth a line */
	bool broken;        /* a promise was broken: no trace can make that right */
};

void world_init(struct world *w);
/* After the settings are complete. */
void world_begin(struct world *w);
void world_done(struct world *w);

struct lease *world_lease(struct world *w, size_t c, size_t i);
/* Another election takes the seat, on the same lease. False: the last one has not stopped. */
bool world_make_anew(struct world *w, size_t c, size_t i);
/* One event, and all that the caller owes for it. */
void world_tell_lease(struct world *w, size_t c, size_t i, const struct event *ev);
void world_tell(struct world *w, size_t c, size_t i, const struct event *ev);
/* Timers that are due now. */
void world_settle(struct world *w);
uint64_t world_wake_ns(const struct world *w);
uint64_t world_wake_of_ns(const struct world *w, size_t c);

/* ---- hall.c ---- */

enum { HALL_HANDLER = 1, HALL_PULLS, HALL_BY_HAND, HALL_NOBODY };

/* False: there is no such audience. */
bool hall_set(struct candidate *cand, const char *word);
void hall_note(struct world *w, size_t c, size_t i, const struct action *a);
void hall_asked(struct world *w, size_t c, size_t i, uint8_t kind, bool heard);
/* False: this is no word of the audience. */
bool hall_word(struct world *w, size_t c, size_t i, const char *word, uint64_t term);
uint64_t hall_wake_ns(const struct world *w, size_t c);
/* Tells the cores what the audiences have said. */
void hall_settle(struct world *w);
#endif

/* ---- words.c ---- */

struct words {
	char text[LINE_MAX_CHARS];
	char *v[WORDS_MAX];
	size_t n;
	size_t at; /* the next one */
};

/* Cuts a line into words; commas end a word and are dropped. False: too long. */
bool words_cut(struct words *w, const char *line);
/* The next word, or NULL. */
const char *words_next(struct words *w);
const char *words_peek(const struct words *w);
/* Takes the next word if it is this one. */
bool words_take(struct words *w, const char *word);
bool parse_number(const char *word, uint64_t *number);
/* "1.5s", "20ms", "2m", "never" */
bool parse_span(const char *word, uint64_t *ns);
/* "0.25" of `whole`, rounded down */
bool parse_part(const char *word, uint64_t whole, uint64_t *part);
/* A letter is the candidate of that number; "nobody" is 0. */
bool parse_candidate(const char *word, uint32_t *who);

/* ---- play.c ---- */

/* False: the line makes no sense, and `error` says why. */
bool play_setting(struct world *w, const char *line, const char **error);
bool play_given(struct world *w, const char *line, const char **error);
bool play_event(struct world *w, const char *line, const char **error);
/* Answers "now leads yes, ..." with how it really is, in the same words. */
bool play_question(struct world *w, const char *line, char *answer_line, size_t size,
		   const char **error);

/* ---- tale.c ---- */

struct tally_of_tales {
	size_t passed;
	size_t failed;
};

enum tale_mode {
	TALE_CHECK,
	TALE_LIST,
	TALE_UPDATE,
};

/* False: the file can't be read or written. */
bool tale_file(const char *path, enum tale_mode mode, const char *only, struct tally_of_tales *sum);

#endif
