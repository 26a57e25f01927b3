/*
 * campaign.c: the verb campaign. It takes the election's lock first, then the term, and then writes
 * the tag by which others see who leads. A campaign that fails closes its session, and the lock
 * goes with it.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/tableless/tableless.h"

/* Takes the lock, then the term. OK; REFUSED: another session has the lock; or the outcome of a
 * failure. */
static int claim_take(struct tableless_session *s, struct baton_call *call,
		      const struct baton_lease *lease)
{
	struct pg_lane *l = s->lane;
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push_session(l, lease); /* before the lock, which must not outlive us */
	pg_push(l, PG_TABLELESS_TAKE, 1, (const char *const[]){s->name});
	outcome = pg_run(l);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *took = pg_result_of(l, PG_TABLELESS_TAKE);

	pg_copy(s->key, sizeof(s->key), took, 0, 1);
	s->term = pg_unsigned(took, 0, 2);
	s->pid = l->conn.pid;
	atomic_store(&l->store->claimer_pid, s->pid);
	return pg_is_true(took, 0, 0) ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}

/* Writes the tag: the session's last statement tells who leads. The same statement notifies
 * others. */
static int claim_tell(struct tableless_session *s, struct baton_call *call,
		      const struct baton_lease *lease, const struct baton_campaign *c)
{
	const struct pg_store *store = s->lane->store;
	char tag[TAG_SIZE];

	tableless_tag_make(s, lease, &c->profile, tag);
	s->renew = tableless_tag_add(tag, store->sql[PG_TABLELESS_RENEW]);
	s->ask = tableless_tag_add(tag, store->sql[PG_TABLELESS_OWN]);
	char *text = tableless_tag_add(tag, store->sql[PG_TABLELESS_TELL]);
	const char *const params[] = {store->info.schema, s->name};
	bool is_made = s->renew != NULL && s->ask != NULL && text != NULL;
	int outcome =
		is_made ? tableless_session_say(s, call, text, 2, params) : pg_no_memory(s->lane);

	free(text);
	return outcome;
}

static bool claim_is_above_floor(const struct tableless_session *s, struct baton_call *call,
				 struct baton_campaign *c)
{
	if (s->term > c->floor && s->term < TERM_MAX)
		return true;
	c->code = BATON_E_CORRUPT;
	store_fail(&call->error, c->code,
		   "the server's transaction ids are behind the term %" PRIu64 " of the election "
		   "\"%.60s\": it is another server, or was restored; use mode=advisory without "
		   "fast=1",
		   c->floor, c->name);
	return false;
}

static int claim_one(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *c)
{
	struct tableless_session *s = tableless_session_half_made(l->store, c->name);
	int outcome;

	l->call = call;
	if (s == NULL)
		s = tableless_session_new(l->store);
	if (s == NULL)
		return pg_no_memory(l);
	/* The new session takes over the lane's connection: so no time is lost with connecting. */
	if (s->lane->conn.pg == NULL && pg_is_connected(l))
		pg_conn_move(&s->lane->conn, &l->conn);
	(void)snprintf(s->lease_id, sizeof(s->lease_id), "%s", lease->id);
	(void)snprintf(s->name, sizeof(s->name), "%s", c->name);
	s->nonce = c->nonce;
	outcome = claim_take(s, call, lease);
	if (outcome == BATON_OUTCOME_OK && !claim_is_above_floor(s, call, c))
		outcome = BATON_OUTCOME_FAILED;
	if (outcome == BATON_OUTCOME_OK) {
		outcome = claim_tell(s, call, lease, c);
		/* The session has ended: the lock was not taken, or will not be kept. */
		if (outcome == BATON_OUTCOME_REFUSED)
			outcome = BATON_OUTCOME_UNKNOWN;
	}
	if (outcome == BATON_OUTCOME_OK) {
		c->term = s->term;
		c->record->watched = true; /* there are no orders, and each renewal asks */
		(void)tableless_term_highest(l->store, s->name, s->term);
		tableless_session_list(&l->store->sessions, s);
		pg_watch_nudge(l->store);
	} else if (s->lane->conn.connecting || outcome == BATON_OUTCOME_REFUSED) {
		tableless_session_list(&l->store->half_made, s); /* the next try uses it */
	} else {
		tableless_session_drop(l->store, s); /* the lock goes with the session */
	}
	return outcome;
}

static void campaign_find_holder(struct pg_lane *l, struct baton_call *call,
				 const struct baton_lease *lease, struct baton_campaign *c)
{
	struct baton_observation o = {
		.name = c->name, .lease_id = lease->id, .id = lease->owner, .record = c->record};

	tableless_find(l, call, PG_TABLELESS_FIND, &o, 1);
	c->outcome = o.outcome == BATON_OUTCOME_OK ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
	c->code = o.code;
}

/* Waiters get a free lock for a moment, too, which is longer on a busy machine. */
#define TRIES 5
#define TRY_MS 2

static void campaign_one(struct pg_lane *l, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_campaign *c)
{
	(void)tableless_term_highest(l->store, c->name, c->floor);
	c->outcome = BATON_OUTCOME_REFUSED;
	if (!tableless_term_was_free(l->store, c->name)) {
		campaign_find_holder(l, call, lease, c);
		if (c->outcome != BATON_OUTCOME_REFUSED || c->record->held)
			return;
	}
	for (unsigned i = 0; i < TRIES && c->outcome == BATON_OUTCOME_REFUSED &&
			     clock_boot_ns() < call->deadline_ns;
	     i++) {
		if (i > 0)
			(void)poll(NULL, 0, TRY_MS << i);
		c->code = 0;
		c->outcome = claim_one(l, call, lease, c);
		if (c->code == 0 && c->outcome != BATON_OUTCOME_REFUSED &&
		    c->outcome != BATON_OUTCOME_OK)
			c->code = call->error.code;
	}
	if (c->outcome == BATON_OUTCOME_REFUSED)
		campaign_find_holder(l, call, lease, c);
	if (c->outcome == BATON_OUTCOME_REFUSED && !c->record->held)
		c->record->free_in_ns = 0; /* try again soon */
	struct tableless_session *s = tableless_session_half_made(l->store, c->name);

	if (s != NULL && s->lane->conn.connecting)
		tableless_session_list(&l->store->half_made, s);
	else if (s != NULL)
		tableless_session_drop(l->store, s); /* a standby has no session of its own */
}

void tableless_campaign(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
			struct baton_campaign *list, size_t n)
{
	store_ask(&l->store->base, list, n);
	for (size_t i = 0; i < n; i++)
		campaign_one(l, call, lease, &list[i]);
	store_ask(&l->store->base, NULL, 0);
}
