/*
 * campaign.c: campaigns. A test may determine who wins (baton_memory_win()).
 */
#include "store/memory/memory.h"

#include <string.h>

/* 1: a test makes it win; -1: a test makes it lose; 0: neither. */
static int take_rig(struct memory *m, struct memory_election *e)
{
	struct memory_rig *rig = e->rig.times != 0 ? &e->rig : &m->rig;

	if (rig->times == 0)
		return 0;
	if (rig->times != BATON_MEMORY_ALWAYS)
		rig->times--;
	return rig->wins ? 1 : -1;
}

static void campaign_no_memory(struct baton_call *call, struct baton_campaign *c)
{
	c->outcome = BATON_OUTCOME_FAILED;
	c->code = BATON_E_MEMORY;
	store_fail(&call->error, c->code, "there is no memory to record the election \"%.60s\"",
		   c->name);
}

static void campaign_win(struct memory *m, struct baton_call *call, struct memory_election *e,
			 struct memory_lease *l, struct baton_campaign *c)
{
	struct memory_profile profile;
	enum term_fault fault;
	uint64_t term = term_next(e->term, c->floor, 0, &fault); /* S3, S4 */

	if (fault != TERM_FINE) {
		(void)store_fail_term(call, c, fault);
		return;
	}
	if (memory_profile_copy(&profile, &c->profile) != 0) {
		campaign_no_memory(call, c);
		return;
	}
	if (e->holder != NULL) /* only if a test makes the campaign win */
		memory_unclaim(m, e, m->ends[MEMORY_END_TAKEN]);
	e->term = term;
	e->nonce = c->nonce;
	memory_claim(m, e, l, &profile);
	c->term = term;
	c->outcome = BATON_OUTCOME_OK;
	c->code = 0;
}

static void campaign_one(struct memory *m, struct baton_call *call, const struct baton_lease *lease,
			 struct baton_campaign *c)
{
	struct memory_lease *l = memory_lease_find(m, lease->id);
	struct memory_election *e = memory_election_get(m, c->name);
	int rig = e != NULL && l != NULL ? take_rig(m, e) : 0;

	c->term = 0;
	if (e == NULL) {
		campaign_no_memory(call, c);
		return;
	}
	memory_record(m, e, lease->owner, c->record);
	if (l != NULL && e->holder != l && rig >= 0 &&
	    (rig > 0 || (!c->record->held && !c->record->reserved && !e->paused &&
			 c->record->wait[0] == '\0'))) {
		campaign_win(m, call, e, l, c);
	} else {
		c->outcome = BATON_OUTCOME_REFUSED;
		c->code = 0;
		/* Refused although the election is free: it is worth another try soon. */
		if (!c->record->held && !c->record->reserved && !e->paused &&
		    c->record->wait[0] == '\0')
			c->record->free_in_ns = 0;
	}
	memory_election_tidy(m, e);
}

void memory_campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_CAMPAIGN, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		campaign_one(m, call, lease, &list[i]);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
		list[i].term = 0;
		memset(list[i].record, 0, sizeof(*list[i].record));
	}
}
