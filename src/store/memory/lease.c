/*
 * lease.c: leases, and the claims on them.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>

int memory_lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_OPEN, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK;
		if (l != NULL) /* it was opened before, by a call without an answer */
			memory_lease_prolong(m, l, lease->ttl_ns);
		else if (memory_lease_new(m, lease) == NULL)
			outcome = memory_no_memory(call);
	}
	return memory_leave(lane, call, &fault, outcome);
}

int memory_lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	uint32_t n = 0;
	int outcome = memory_enter(lane, call, BATON_MEMORY_RENEW, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = l != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		if (l != NULL) {
			memory_lease_prolong(m, l, lease->ttl_ns);
			n = l->n_claims;
		}
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	if (outcome == BATON_OUTCOME_OK)
		*n_held = n;
	return outcome;
}

int memory_lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_CLOSE, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK;
		if (l != NULL)
			memory_lease_end(m, l, MEMORY_END_CLOSED);
	}
	return memory_leave(lane, call, &fault, outcome);
}

struct claim_row {
	uint64_t nonce;
	uint64_t term;
	char name[BATON_NAME_MAX + 1];
};

static int list_claims(const struct memory_lease *l, struct memory_rows *rows)
{
	struct memory_election *e;

	for (e = LIST_FIRST(&l->claims); e != NULL; e = LIST_NEXT(e, claim)) {
		struct claim_row *row = memory_rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->nonce = e->nonce;
		row->term = e->term;
		(void)snprintf(row->name, sizeof(row->name), "%s", e->name);
	}
	return 0;
}

int memory_claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct memory_rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_CLAIMS, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK; /* a lease that is gone has no claims */
		if (l != NULL && list_claims(l, &rows) != 0)
			outcome = memory_no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct claim_row)) {
		struct claim_row *row = (struct claim_row *)(void *)(rows.data + i);

		found(arg, row->name, row->nonce, row->term);
	}
	free(rows.data);
	return outcome;
}
