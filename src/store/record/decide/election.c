/*
 * election.c: how a claim, a leader's new profile and a release change an election's record and its
 * history. All of them leave the pause as it is, and never lower the term (S3, R9).
 */
#include <string.h>

#include "store/record/decide/parts.h"

/* ---- the history ---- */

static void past_end(struct record_election *e, const char *why, int64_t wall_ms)
{
	if (e->n_past == 0 || e->past[0].ended[0] != '\0')
		return;
	e->past[0].until_ms = wall_ms;
	record_copy_text(e->past[0].ended, sizeof(e->past[0].ended), why);
	/* The note of the order that the release obeys. */
	if (record_same_text(why, "ordered") || record_same_text(why, "transferred"))
		record_copy_text(e->past[0].note, sizeof(e->past[0].note), e->order_note);
}

static void past_begin(struct record_election *e, const char *leader, int64_t wall_ms)
{
	if (e->n_past < RECORD_PAST_MAX)
		e->n_past++;
	(void)memmove(&e->past[1], &e->past[0], (e->n_past - 1) * sizeof(e->past[0]));
	e->past[0].term = e->term;
	e->past[0].since_ms = wall_ms;
	e->past[0].until_ms = 0;
	e->past[0].ended[0] = '\0';
	e->past[0].note[0] = '\0';
	record_copy_text(e->past[0].leader, sizeof(e->past[0].leader), leader);
}

/* ---- the claim ---- */

/* Clears the claim, and with it the order and the reservation. */
static void strip_claim(struct record_election *e)
{
	e->nonce = 0;
	e->ttl_ns = 0;
	e->since_ms = 0;
	e->priority = 0;
	e->score_permille = 0;
	e->lease[0] = '\0';
	e->leader[0] = '\0';
	e->address[0] = '\0';
	e->metadata[0] = '\0';
	e->order_id = 0;
	e->order_term = 0;
	e->order_kind = BATON_ORDER_NONE;
	e->order_quiet_ms = 0;
	e->order_target[0] = '\0';
	e->order_note[0] = '\0';
	e->hold_ns = 0;
	e->hold_term = 0;
	e->reserved_for[0] = '\0';
}

bool record_election_shows(const struct record_election *e, const struct baton_profile *p)
{
	return e->priority == p->priority && e->score_permille == p->score_permille &&
	       record_same_text(e->metadata, p->metadata);
}

void record_election_show(struct record_election *e, const struct baton_profile *p)
{
	e->priority = p->priority;
	e->score_permille = p->score_permille;
	record_copy_text(e->metadata, sizeof(e->metadata), p->metadata);
}

void record_election_claim(struct record_election *e, const struct record_campaign *c,
			   const char *ended, const struct record_turn *t)
{
	past_end(e, ended, t->wall_ms);
	strip_claim(e);
	e->w = t->random;
	e->term = c->term;
	e->nonce = c->nonce;
	e->ttl_ns = c->lease->ttl_ns;
	e->since_ms = t->wall_ms;
	record_copy_text(e->lease, sizeof(e->lease), c->lease->id);
	record_copy_text(e->leader, sizeof(e->leader), c->lease->owner);
	record_copy_text(e->address, sizeof(e->address), c->lease->address);
	record_election_show(e, c->profile);
	past_begin(e, c->lease->owner, t->wall_ms);
}

void record_election_free(struct record_election *e, const struct baton_release *asked,
			  const struct record_turn *t)
{
	past_end(e, asked->reason, t->wall_ms);
	strip_claim(e);
	e->w = t->random;
	if (asked->reserve_for == NULL)
		return;
	e->hold_ns = asked->hold_ns;
	e->hold_term = asked->term;
	record_copy_text(e->reserved_for, sizeof(e->reserved_for), asked->reserve_for);
}
