/*
 * lease.c: the verbs lease_renew, lease_close and claims. A lease is one session with one claim,
 * and a renewal is a statement on it, which asks whether the lock is really held (rule 4).
 */
#include "store/postgres/tableless/tableless.h"

int tableless_renew(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		    uint32_t *n_held)
{
	struct tableless_session *s = tableless_session_get(l->store, lease->id);

	call->is_unasked = s == NULL;
	if (s == NULL)
		return BATON_OUTCOME_REFUSED;
	int outcome = tableless_session_check(s, call, s->renew);

	if (outcome == BATON_OUTCOME_REFUSED)
		tableless_session_unlist(l->store, s);
	tableless_session_put(l->store, s);
	*n_held = outcome == BATON_OUTCOME_OK;
	return outcome;
}

int tableless_close(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct tableless_session *s = tableless_session_get(l->store, lease->id);

	call->is_unasked = true;
	if (s != NULL) {
		tableless_session_unlist(l->store, s);
		tableless_session_put(l->store, s);
	}
	return BATON_OUTCOME_OK;
}

int tableless_claims(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		     void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		     void *arg)
{
	struct tableless_session *s = tableless_session_get(l->store, lease->id);

	call->is_unasked = true;
	if (s != NULL) {
		found(arg, s->name, s->nonce, s->term);
		tableless_session_put(l->store, s);
	}
	return BATON_OUTCOME_OK;
}
