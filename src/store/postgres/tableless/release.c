/*
 * release.c: the verb release. The session unlocks its election and tells the others by NOTIFY;
 * then the session is closed.
 */
#include <string.h>

#include "store/postgres/tableless/tableless.h"

/* S6: all three must match. */
static int release_claim(struct pg_lane *l, struct baton_call *call, const struct baton_release *r)
{
	struct tableless_session *s = tableless_session_get(l->store, r->lease_id);

	call->is_unasked = s == NULL; /* no other election is on this lease: each has its own */
	if (s == NULL)
		return BATON_OUTCOME_REFUSED;
	int outcome = BATON_OUTCOME_REFUSED;

	if (s->nonce == r->nonce && s->term == r->term && strcmp(s->name, r->name) == 0) {
		const char *const params[] = {s->key, l->store->info.schema, s->name};

		outcome = tableless_session_say(s, call, l->store->sql[PG_TABLELESS_RELEASE], 3,
						params);
		if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
			tableless_session_unlist(l->store, s);
	}
	tableless_session_put(l->store, s);
	return outcome;
}

void tableless_release(struct pg_lane *l, struct baton_call *call, struct baton_release *list,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = release_claim(l, call, &list[i]);
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ||
					       list[i].outcome == BATON_OUTCOME_REFUSED
				       ? 0
				       : call->error.code;
	}
}
