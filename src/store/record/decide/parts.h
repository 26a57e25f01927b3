/*
 * parts.h: what the files of this folder share, and other folders never see.
 *
 *   election.c  how a claim, a profile and a release change an election's record
 *   expiry.c    when a lease is over, when a reservation is
 *   lease.c     records that only we write: open, renew, close, publish
 *   campaign.c  claims, and what became of those in doubt
 *   lock.c      native locks beside the records
 *   edit.c      giving a claim back, a leader's profile, orders, pauses
 *   observe.c   what others are told
 *   sweep.c     what is left over
 *   codec.c     records as text; keys.c: names as keys
 */
#ifndef BATON_RECORD_PARTS_H
#define BATON_RECORD_PARTS_H

#include "store/record/decide/decide.h"

/* Cuts a text that is too long. The caller has checked the length, or the text is only for
 * people. */
void record_copy_text(char *to, size_t size, const char *from);
bool record_same_text(const char *a, const char *b);
/* Indexed by enum record_death. */
extern const char *const record_death_words[RECORD_DEATHS];

/* The next ask, and why. Returns op. */
int record_task_ask(struct record_task *task, uint32_t phase, int op, int why);
int record_task_end(struct record_task *task, int outcome, int why);
/* The last try has written nothing. The outcome is FAILED, unless a copy of an earlier try may have
 * landed: then it is UNKNOWN. */
int record_task_fail(struct record_task *task, int why);
/* The phases of every task. PHASE_OWN is the first of a task's further phases. */
enum { PHASE_BEGIN, PHASE_READ, PHASE_WRITE, PHASE_DONE, PHASE_OWN };

/* Writes the claim of c, in c->term. ended: how the leadership before it has ended, if the history
 * doesn't say so yet. */
void record_election_claim(struct record_election *e, const struct record_campaign *c,
			   const char *ended, const struct record_turn *t);
/* Whether the leader is shown so already. */
bool record_election_shows(const struct record_election *e, const struct baton_profile *p);
void record_election_show(struct record_election *e, const struct baton_profile *p);
void record_election_free(struct record_election *e, const struct baton_release *asked,
			  const struct record_turn *t);

#endif
