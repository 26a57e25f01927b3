/*
 * step.h: what the three parts of the election machine share. Private to src/core.
 *
 *   election.c     events in, what is due, when to wake
 *   claim.c        winning, leading, losing, giving back
 *   observation.c  what the store says, and when to look again
 */
#ifndef BATON_STEP_H
#define BATON_STEP_H

#include "core/election.h"

/* One step of one election: lives on the stack, for the length of the step. */
struct step {
	struct election *e;
	struct lease *l;
	const struct event *ev;
	struct actions *out;
	uint64_t now_ns;
};

/* election.c */
struct action *step_note(struct step *s, uint8_t note, uint8_t why);
/* Answers a waiting EV_ACQUIRE, if there is one. */
void step_answer(struct step *s, uint8_t note, uint8_t why);
/* Plans the next look, campaign or release. */
void step_plan(struct step *s, uint64_t when_ns, uint8_t why);
/* Plans it after a backoff that grows with every failure in a row. */
void step_retry(struct step *s, uint8_t why);
bool step_is_healthy(const struct step *s);
/* Why it would not lead if it could; WHY_NONE: it would. */
uint8_t step_unwilling(const struct step *s);
/* The first moment at which a campaign is not kept back by a quiet period. */
uint64_t step_unquiet_ns(const struct step *s);
bool step_may_campaign(const struct step *s);

/* claim.c */
/* S2: ends a leadership whose time is up, before the event is looked at. */
void claim_settle(struct step *s);
/* S5, S7: not leader from here on. `claimed`: the claim stands, and is ours to give back. */
void claim_lose(struct step *s, uint8_t why, bool claimed);
void claim_step_down(struct step *s, uint8_t why);
void claim_transfer(struct step *s, uint32_t target, bool target_ok);
/* A campaign was won. */
void claim_won(struct step *s);
/* A claim on our own lease that we did not know of. */
void claim_found(struct step *s, const struct view *v);
/* The claim is off our hands. */
void claim_let_go(struct step *s);
/* The store listed what is on our lease. */
void claim_listed(struct step *s);
void claim_lease_down(struct step *s);

/* observation.c */
/* The first term is believed, up to TERM_MAX; after that, a term that jumps too far is not. */
bool observation_is_credible(const struct election *e, uint64_t term);
/* A standby hears of the leader, from an observation or from a refused campaign. */
void observation_hear(struct step *s, const struct view *v);
/* The leader looks at its own record. */
void observation_inspect(struct step *s, const struct view *v);
void observation_leader(struct step *s, uint32_t leader, uint64_t term);
/* A candidate that outranks the leader asks for its place, after a while. */
void observation_weigh(struct step *s);
/* What an answer says that the election did not know: nothing; another leader or a pause, in the
 * term that it knows; or a new term, or the term's first order. */
enum news { NEWS_NONE, NEWS_IN_TERM, NEWS_OF_TERM };

/* L4: a look that finds nothing new makes the next hint wait, each time longer. */
void observation_calm(struct step *s, enum news news);
/* When to look again, if no hint comes before and nothing is pushed. */
void observation_poll(struct step *s, const struct view *v);
void observation_hint(struct step *s);

#endif
