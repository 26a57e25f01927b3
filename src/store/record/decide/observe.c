/*
 * observe.c: an election as observers see it. No candidate leads because of what this says: a wrong
 * or old sight costs one more look.
 */
#include <string.h>

#include "store/record/decide/parts.h"

static void observe_claim(const struct record_election *e, struct baton_record *out)
{
	out->held = true;
	out->nonce = e->nonce;
	out->since_ms = e->since_ms;
	out->priority = e->priority;
	out->score_permille = e->score_permille;
	record_copy_text(out->lease_id, sizeof(out->lease_id), e->lease);
	record_copy_text(out->leader, sizeof(out->leader), e->leader);
	record_copy_text(out->address, sizeof(out->address), e->address);
	record_copy_text(out->metadata, sizeof(out->metadata), e->metadata);
	out->order.id = e->order_id;
	out->order.term = e->order_term;
	out->order.quiet_ms = e->order_quiet_ms;
	out->order.kind = (int)e->order_kind;
	record_copy_text(out->order.target, sizeof(out->order.target), e->order_target);
	record_copy_text(out->order.note, sizeof(out->order.note), e->order_note);
}

static uint64_t until_ns(uint64_t end_ns, uint64_t now_ns)
{
	if (end_ns == RECORD_NEVER)
		return RECORD_NEVER;
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

void record_observe(const struct record_election *e, const struct record_sight *sight,
		    const struct record_hold *hold, const char *id, uint64_t now_ns,
		    struct baton_record *out)
{
	uint64_t hold_end_ns = record_hold_end_ns(hold, e, id);

	(void)memset(out, 0, sizeof(*out));
	out->term = e->term;
	out->paused = e->paused;
	out->functions = e->functions;
	out->free_in_ns = RECORD_NEVER;
	if (e->lease[0] != '\0' && (sight == NULL || !record_sight_is_dead(sight))) {
		observe_claim(e, out);
		if (sight != NULL)
			out->free_in_ns = until_ns(record_sight_end_ns(sight), now_ns);
	} else if (now_ns < hold_end_ns) {
		out->reserved = true;
		out->free_in_ns = until_ns(hold_end_ns, now_ns);
	}
}

bool record_is_shown(uint64_t age_ns, const struct record_sight *sight, uint64_t now_ns)
{
	if (sight->version.n == 0 || record_sight_is_dead(sight))
		return false;
	return age_ns < sight->ttl_ns || now_ns < record_sight_end_ns(sight);
}
