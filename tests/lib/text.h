/*
 * text.h: the core's words as text, for stories, timelines and counterexamples. One notation
 * for all of them, so that who can read a story can read a failing world.
 */
#ifndef BATON_TEST_TEXT_H
#define BATON_TEST_TEXT_H

#include <stddef.h>

#include "core/core.h"

const char *text_why(uint8_t why);              /* WHY_LATE: "too late" */
const char *text_why_name(uint8_t why);         /* WHY_LATE: "LATE" */
const char *text_outcome(uint8_t outcome);      /* "ok", "refused", "failed", "unknown" */
const char *text_event_kind(uint8_t kind);      /* "renewed" */
const char *text_action_kind(uint8_t kind);     /* "renew" */
const char *text_note(uint8_t note);            /* "became" */
const char *text_election_state(uint8_t state); /* "standby" */
const char *text_lease_state(uint8_t state);    /* "live" */

/* The reverse of the above: 0 and above, or -1 for a word that there isn't. */
int text_find(const char *(*text)(uint8_t), const char *w);

/*
 * One line, no newline; notes are said as sentences, the reason stands in brackets:
 * "campaign #2 floor 3 (due)", "lost term 4 (the deadline has passed)", "leader is B in term 4".
 */
void text_action(const struct action *a, char *buf, size_t size);
/* "12.345s", exact to the millisecond and longer where that says more. */
void text_time(uint64_t ns, char *buf, size_t size);
/* "12.3s", "0s", "never": as short as it can be said. */
void text_span(uint64_t ns, char *buf, size_t size);
/* Candidates as letters, "A" for 1, and as "c27" where the letters end; "nobody" for NOBODY. */
void text_candidate(uint32_t who, char *buf, size_t size);

#endif
