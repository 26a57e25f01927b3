/*
 * candidates.c: how candidates show themselves to each other.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_profile(const struct memory_profile *a, const struct memory_profile *b)
{
	return a->priority == b->priority && a->score_permille == b->score_permille &&
	       a->is_healthy == b->is_healthy &&
	       strcmp(a->metadata != NULL ? a->metadata : "",
		      b->metadata != NULL ? b->metadata : "") == 0;
}

static void replace_profile(struct memory_profile *to, const struct memory_profile *from)
{
	free(to->metadata);
	*to = *from;
}

/* The holder's profile stands in the record, too, so its change is worth a hint. */
static int publish_one(struct memory *m, struct memory_lease *l, const struct baton_publication *p)
{
	struct memory_election *e = memory_election_get(m, p->name);
	struct memory_candidate *c = e != NULL ? memory_candidate_find(e, l) : NULL;
	struct memory_profile shown = {0}, held = {0};
	bool holds = e != NULL && e->holder == l;

	if (e == NULL || memory_profile_copy(&shown, &p->profile) != 0 ||
	    (holds && memory_profile_copy(&held, &p->profile) != 0) ||
	    (c == NULL && (c = memory_candidate_new(e, l)) == NULL)) {
		free(shown.metadata);
		free(held.metadata);
		if (e != NULL)
			memory_election_tidy(m, e);
		return BATON_E_MEMORY;
	}
	c->updated_ms = memory_wall_ms(m);
	replace_profile(&c->profile, &shown);
	if (holds) {
		if (!is_same_profile(&e->profile, &held))
			memory_hint(e);
		replace_profile(&e->profile, &held);
	}
	return 0;
}

void memory_publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_publication *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_PUBLISH, &fault);
	bool reached = outcome == 0;
	struct memory_lease *l = reached ? memory_lease_find(m, lease->id) : NULL;

	for (size_t i = 0; reached && i < n; i++) {
		list[i].code = l != NULL ? publish_one(m, l, &list[i]) : 0;
		list[i].outcome = l != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		if (list[i].code != 0)
			list[i].outcome = memory_no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
	}
}

int memory_withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    const char *name)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_WITHDRAW, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);
		struct memory_election *e = memory_election_find(m, name);
		struct memory_candidate *c =
			l != NULL && e != NULL ? memory_candidate_find(e, l) : NULL;

		outcome = BATON_OUTCOME_OK;
		if (c != NULL)
			memory_candidate_free(m, c);
	}
	return memory_leave(lane, call, &fault, outcome);
}

static int list_candidates(const struct memory_election *e, struct memory_rows *rows)
{
	struct memory_candidate *c;

	for (c = LIST_FIRST(&e->candidates); c != NULL; c = LIST_NEXT(c, of_election)) {
		struct baton_candidate *row = memory_rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->is_leader = e->holder == c->lease;
		row->is_healthy = c->profile.is_healthy;
		row->score_permille = c->profile.score_permille;
		row->priority = c->profile.priority;
		row->updated_ms = c->updated_ms;
		(void)snprintf(row->id, sizeof(row->id), "%s", c->lease->owner->text);
		(void)snprintf(row->address, sizeof(row->address), "%s", c->lease->address->text);
		(void)snprintf(row->metadata, sizeof(row->metadata), "%s",
			       c->profile.metadata != NULL ? c->profile.metadata : "");
	}
	return 0;
}

int memory_candidates(void *lane, struct baton_call *call, const char *name,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct memory_rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_CANDIDATES, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e != NULL && list_candidates(e, &rows) != 0)
			outcome = memory_no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct baton_candidate))
		found(arg, (struct baton_candidate *)(void *)(rows.data + i));
	free(rows.data);
	return outcome;
}
