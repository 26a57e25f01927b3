/*
 * survey.h: what is known of an election only by asking the store: how many candidates there are,
 * and whether leaderships have overlapped. baton_metrics() tells the last answers, and never
 * asks the store itself.
 *
 * `baton serve` has a thread that asks the store, and uses the numbers below. `baton run` has none:
 * survey_begin() starts one. No other thread waits for it: the store may hang.
 */
#ifndef BATON_SURVEY_H
#define BATON_SURVEY_H

#include <baton.h>

#define SURVEY_MS 30000 /* how often candidates are listed */
#define SURVEY_MIN_MS 5000
#define SURVEY_FIRST_MS 2000
#define SURVEY_AUDIT_MS 300000 /* how often the history is read, if the leader stays */

/* This, a quarter more or less: candidates that begin together don't ask together for ever. */
uint64_t survey_jitter_ms(uint64_t ms);

/* Lists the candidates. Blocks; 0, or a code: BATON_E_UNSUPPORTED where the store has no list. */
int survey_candidates(struct baton *b, const char *name);
/* Reads the history as far as it may be new. The same. */
int survey_history(struct baton *b, const char *name);

struct survey;

/* Both for this election, now and then, on a thread of its own. The name is kept by the caller.
 * NULL: no memory, or no thread. */
struct survey *survey_begin(struct baton *b, const char *name);
/* The leader has changed: asks again soon. Never waits. Takes NULL. */
void survey_hurry(struct survey *s);
/* Stops asking. Never waits. Takes NULL. */
void survey_stop(struct survey *s);
/* Stops, and waits for an answer that is under way, for at most so long. False: it still uses the
 * handle, which must not be closed. Takes NULL. */
bool survey_end(struct survey *s, unsigned timeout_ms);

#endif
