/*
 * session.c: the sessions of this process, one for each claim. A session that is no longer in the
 * list is closed by its last user, and the lock of its election goes with it.
 *
 * What this must never do: carry a claim over to another session. No candidate could tell who has
 * led in between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/tableless/tableless.h"

void tableless_session_drop(struct pg_store *store, struct tableless_session *s)
{
	store_lock(&store->base);
	bool last = --s->users == 0;

	store_unlock(&store->base);
	if (!last)
		return;
	pg_lane_free(s->lane);
	free(s->renew);
	free(s->ask);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

bool tableless_is_other(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	const struct tableless_session *s = store->sessions;

	while (s != NULL && strcmp(s->name, name) != 0)
		s = s->next;
	store_unlock(&store->base);
	return s == NULL;
}

struct tableless_session *tableless_session_get(struct pg_store *store, const char *lease_id)
{
	store_lock(&store->base);
	struct tableless_session *s = store->sessions;

	while (s != NULL && strcmp(s->lease_id, lease_id) != 0)
		s = s->next;
	if (s != NULL)
		s->users++;
	store_unlock(&store->base);
	if (s != NULL)
		(void)pthread_mutex_lock(&s->lock); /* another lane's call may have it; that ends */
	return s;
}

void tableless_session_put(struct pg_store *store, struct tableless_session *s)
{
	(void)pthread_mutex_unlock(&s->lock);
	tableless_session_drop(store, s);
}

void tableless_session_list(struct tableless_session **list, struct tableless_session *s)
{
	struct pg_store *store = s->lane->store;

	store_lock(&store->base);
	s->next = *list;
	*list = s;
	store_unlock(&store->base);
}

void tableless_session_unlist(struct pg_store *store, struct tableless_session *s)
{
	store_lock(&store->base);
	struct tableless_session **at = &store->sessions;

	while (*at != NULL && *at != s)
		at = &(*at)->next;
	bool listed = *at == s;

	if (listed)
		*at = s->next;
	store_unlock(&store->base);
	if (listed)
		tableless_session_drop(store, s);
	pg_watch_nudge(store);
}

struct tableless_session *tableless_session_half_made(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct tableless_session **at = &store->half_made;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	struct tableless_session *s = *at;

	if (s != NULL)
		*at = s->next;
	store_unlock(&store->base);
	return s;
}

void tableless_sessions_end(struct pg_store *store)
{
	while (store->sessions != NULL)
		tableless_session_unlist(store, store->sessions);
	while (store->half_made != NULL)
		tableless_session_drop(store,
				       tableless_session_half_made(store, store->half_made->name));
}

struct tableless_session *tableless_session_new(struct pg_store *store)
{
	struct tableless_session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->lane = pg_lane_new(store);
	if (s->lane == NULL) {
		free(s);
		return NULL;
	}
	s->lane->is_apart = true;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->users = 1;
	return s;
}

int tableless_session_say(struct tableless_session *s, struct baton_call *call, const char *text,
			  size_t n, const char *const *params)
{
	struct pg_lane *l = s->lane;

	l->call = call;
	l->begun_ns = clock_boot_ns();
	if (l->owes && !pg_drain(l) && l->conn.pg != NULL &&
	    PQstatus(l->conn.pg) == CONNECTION_OK) {
		store_fail(&call->error, BATON_E_TIMEOUT, "PostgreSQL did not answer in time");
		return BATON_OUTCOME_FAILED;
	}
	if (!pg_is_connected(l))
		return BATON_OUTCOME_REFUSED; /* the session is gone, and its lock with it */
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	if (l->conn.pid != s->pid)
		return BATON_OUTCOME_REFUSED; /* the session has just ended; this is another */
	pg_push_text(l, text, n, params);
	outcome = pg_run(l);
	return outcome == BATON_OUTCOME_UNKNOWN && l->conn.pg == NULL ? BATON_OUTCOME_REFUSED
								      : outcome;
}

int tableless_session_check(struct tableless_session *s, struct baton_call *call, const char *text)
{
	int outcome = tableless_session_say(s, call, text, 1, (const char *const[]){s->key});

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	return pg_number(pg_result(s->lane, 0), 0, 0) == 1 ? BATON_OUTCOME_OK
							   : BATON_OUTCOME_REFUSED;
}
