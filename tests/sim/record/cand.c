/*
 * cand.c: a candidate: three lanes around the layer, and what the core makes of the answers. That
 * part is as small as it can be: a lease counts from before its send, ends at its deadline, and is
 * not brought back by a late answer; a claim counts only on the lease that it was made for; a
 * candidate steps down before it gives back, and closes when it leads no more.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 3

static uint64_t now_of(const struct cand *cand)
{
	return cand_clock_ns(cand, world.now_ns);
}

/* The slowest holder's clock against the fastest observer's. */
static uint64_t lasts_ns(void)
{
	return world.params.ttl_ns / (1000 + DRIFT_PERMILLE) * 1000;
}

bool cand_leads(const struct cand *cand, int e)
{
	return cand != NULL && !cand->has_ended && cand->is_live &&
	       now_of(cand) < cand->deadline_ns && cand->seats[e].role == ROLE_LEADS;
}

static struct baton_call call_of(const struct cand *cand)
{
	return (struct baton_call){.deadline_ns = now_of(cand) + world.params.ttl_ns / 6};
}

static void errand(struct cand *cand, enum verb verb)
{
	struct errand *errand = &world.current->errand;

	*errand = (struct errand){.verb = verb, .cand = cand->number};
	(void)memcpy(errand->lease, cand->lease.id, sizeof(errand->lease));
	for (int e = 0; e < ELECTIONS; e++)
		errand->nonces[e] = cand->seats[e].nonce;
}

static void rest(uint64_t at_most_ns)
{
	sleep_until(world.now_ns + 1000 + world_random(at_most_ns));
}

static void poke(struct cand *cand)
{
	if (cand->coroutines[BATON_LANE_CAMPAIGN] != NULL)
		wake(cand->coroutines[BATON_LANE_CAMPAIGN]);
}

/* ---- the lease ---- */

/* It is given up: whoever led on it leads no more. */
static void lease_over(struct cand *cand, const char *why)
{
	tell("%s: the lease %s is over: %s", cand->id, cand->lease.id, why);
	cand->is_live = false;
	cand->wants_claims = false;
	for (int e = 0; e < ELECTIONS; e++)
		cand->seats[e].role = ROLE_NONE;
}

static void lease_close(struct cand *cand)
{
	int outcome = BATON_OUTCOME_UNKNOWN;

	for (int i = 1; i <= TRIES && outcome != BATON_OUTCOME_OK && !cand->has_ended; i++) {
		struct baton_call call = call_of(cand);

		call.is_last = i == TRIES;
		errand(cand, VERB_CLOSE);
		outcome = record_driver_lease_close(cand->lanes[BATON_LANE_RENEW], &call,
						    &cand->lease);
	}
}

static void lease_open(struct cand *cand)
{
	struct baton_call call = call_of(cand);
	uint64_t sent_ns = now_of(cand);

	cand->lease = (struct baton_lease){
		.ttl_ns = world.params.ttl_ns, .owner = cand->id, .address = ""};
	(void)snprintf(cand->lease.id, sizeof(cand->lease.id), "%s%llu-0-%u", cand->id,
		       (unsigned long long)cand->origin_ns, ++cand->n_leases);
	errand(cand, VERB_OPEN);
	int outcome = record_driver_lease_open(cand->lanes[BATON_LANE_RENEW], &call, &cand->lease);

	if (outcome == BATON_OUTCOME_OK && now_of(cand) < sent_ns + lasts_ns()) {
		cand->deadline_ns = sent_ns + lasts_ns();
		cand->is_live = true;
		poke(cand);
	} else {
		if (outcome == BATON_OUTCOME_OK || world_random(2) == 0)
			lease_close(cand);
		rest(world.params.ttl_ns / 10);
	}
}

static void lease_renewed(struct cand *cand, uint64_t sent_ns, int outcome, uint32_t n_held)
{
	uint32_t n_sure = 0;
	uint32_t n_maybe = 0;

	for (int e = 0; e < ELECTIONS; e++) {
		n_sure += cand->seats[e].role == ROLE_LEADS;
		n_maybe += cand->seats[e].asks || cand->seats[e].role == ROLE_LEAVES;
	}
	if (now_of(cand) >= cand->deadline_ns) {
		lease_over(cand, "the answer came too late");
	} else if (outcome == BATON_OUTCOME_OK) {
		if (sent_ns + lasts_ns() > cand->deadline_ns)
			cand->deadline_ns = sent_ns + lasts_ns();
		if (n_held < n_sure || n_held > n_sure + n_maybe) {
			cand->wants_claims = true;
			poke(cand);
		}
	} else if (outcome == BATON_OUTCOME_REFUSED) {
		lease_over(cand, "refused");
	}
}

static void lease_renew(struct cand *cand)
{
	uint32_t n_held = 0;
	struct baton_call call = call_of(cand);
	uint64_t sent_ns = now_of(cand), begun_ns = world.now_ns;

	if (sent_ns < cand->deadline_ns) {
		errand(cand, VERB_RENEW);
		int outcome = record_driver_lease_renew(cand->lanes[BATON_LANE_RENEW], &call,
							&cand->lease, &n_held);

		if (outcome == BATON_OUTCOME_OK)
			rules_renewed(cand, begun_ns);
		lease_renewed(cand, sent_ns, outcome, n_held);
		if (cand->is_live)
			rest(outcome == BATON_OUTCOME_OK ? world.params.ttl_ns / 3
							 : world.params.ttl_ns / 30);
	} else {
		lease_over(cand, "its time has passed");
	}
	if (cand->is_live && !world.is_quiet && world_random(100) == 0)
		lease_over(cand, "given up");
	if (!cand->is_live)
		lease_close(cand);
}

static void run_renew(struct cand *cand)
{
	while (!cand->has_ended) {
		if (cand->is_live)
			lease_renew(cand);
		else
			lease_open(cand);
	}
}

/* ---- elections ---- */

static bool is_same(const struct cand *cand, const struct baton_lease *lease)
{
	return cand->is_live && strcmp(cand->lease.id, lease->id) == 0 &&
	       now_of(cand) < cand->deadline_ns;
}

static void seat_set(struct seat *s, enum role role, const char *lease_id, uint64_t nonce,
		     uint64_t term)
{
	s->role = role;
	s->nonce = nonce;
	s->term = term;
	s->heir = -1;
	(void)snprintf(s->lease, sizeof(s->lease), "%s", lease_id);
}

static void seat_lead(struct cand *cand, int e, const struct baton_lease *lease, uint64_t nonce,
		      uint64_t term)
{
	struct seat *s = &cand->seats[e];

	/* S4: it goes back. */
	seat_set(s, term > s->floor ? ROLE_LEADS : ROLE_LEAVES, lease->id, nonce, term);
	if (s->role != ROLE_LEADS)
		return;
	s->floor = term;
	tell("%s leads %s in term %llu", cand->id, election_names[e], (unsigned long long)term);
	rules_led(cand, e);
}

static void campaigned(struct cand *cand, int e, const struct baton_lease *lease,
		       const struct baton_campaign *c)
{
	struct seat *s = &cand->seats[e];
	bool counts = is_same(cand, lease);

	tell("%s has campaigned for %s: %d, %s", cand->id, election_names[e], c->outcome,
	     c->record->lease_id);
	s->asks = false;
	s->next_ns = world.now_ns + world_random(world.params.ttl_ns);
	if (c->outcome == BATON_OUTCOME_OK) {
		if (c->term <= c->floor)
			rule_break(RULE_S4_FLOOR);
		if (counts)
			seat_lead(cand, e, lease, c->nonce, c->term);
		else
			seat_set(s, ROLE_LEAVES, lease->id, c->nonce, c->term);
	} else if (c->outcome == BATON_OUTCOME_UNKNOWN && counts) {
		seat_set(s, ROLE_SEEKS, lease->id, c->nonce, 0);
	} else if (c->outcome == BATON_OUTCOME_REFUSED && c->record->term > s->floor) {
		s->floor = c->record->term;
	}
	if (c->outcome == BATON_OUTCOME_REFUSED && counts &&
	    strcmp(c->record->lease_id, lease->id) == 0)
		seat_set(s, ROLE_LEAVES, lease->id, c->record->nonce, c->record->term);
}

static void campaign(struct cand *cand)
{
	struct baton_lease lease = cand->lease;
	struct baton_campaign list[ELECTIONS];
	struct baton_record records[ELECTIONS];
	struct baton_call call = call_of(cand);
	int which[ELECTIONS];
	size_t n = 0;

	for (int e = 0; e < ELECTIONS && is_same(cand, &lease); e++) {
		struct seat *s = &cand->seats[e];

		if (s->role != ROLE_NONE || s->asks || (s->next_ns > world.now_ns && !s->is_hinted))
			continue;
		list[n] = (struct baton_campaign){
			.name = election_names[e],
			.nonce = 1 + world_random(NEVER - 1),
			.floor = s->floor,
			.profile = {.metadata = "", .score_permille = s->score, .is_healthy = true},
			.record = &records[n]};
		(void)memset(&records[n], 0, sizeof(records[n]));
		s->asks = true;
		s->is_hinted = false;
		which[n++] = e;
	}
	if (n == 0)
		return;
	errand(cand, VERB_CAMPAIGN);
	record_driver_campaign(cand->lanes[BATON_LANE_CAMPAIGN], &call, &lease, list, n);
	for (size_t i = 0; i < n; i++)
		campaigned(cand, which[i], &lease, &list[i]);
}

static void release(struct cand *cand)
{
	static const char *const ids[CANDS] = {"a", "b", "c"};
	struct baton_release list[ELECTIONS];
	char leases[ELECTIONS][BATON_LEASE_ID_MAX + 1];
	struct baton_call call = call_of(cand);
	int which[ELECTIONS];
	size_t n = 0;

	for (int e = 0; e < ELECTIONS; e++) {
		const struct seat *s = &cand->seats[e];

		if (s->role != ROLE_LEAVES)
			continue;
		(void)memcpy(leases[n], s->lease, sizeof(leases[n]));
		list[n] = (struct baton_release){.name = election_names[e],
						 .lease_id = leases[n],
						 .nonce = s->nonce,
						 .term = s->term,
						 .reason = "resigned",
						 .reserve_for = s->heir >= 0 ? ids[s->heir] : NULL,
						 .hold_ns = world.params.ttl_ns / 2};
		which[n++] = e;
	}
	if (n == 0)
		return;
	errand(cand, VERB_RELEASE);
	record_driver_release(cand->lanes[BATON_LANE_CAMPAIGN], &call, list, n);
	for (size_t i = 0; i < n; i++) {
		struct seat *s = &cand->seats[which[i]];

		tell("%s has given back %s: %d", cand->id, election_names[which[i]],
		     list[i].outcome);
		if (s->role == ROLE_LEAVES && s->nonce == list[i].nonce &&
		    (list[i].outcome == BATON_OUTCOME_OK ||
		     list[i].outcome == BATON_OUTCOME_REFUSED ||
		     strcmp(s->lease, cand->lease.id) != 0))
			s->role = ROLE_NONE;
	}
}

struct found {
	uint64_t nonces[ELECTIONS];
	uint64_t terms[ELECTIONS];
};

static void claim_found(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct found *found = arg;

	for (int e = 0; e < ELECTIONS; e++)
		if (strcmp(name, election_names[e]) == 0) {
			found->nonces[e] = nonce;
			found->terms[e] = term;
		}
}

/* What is there is led if it is the one that was looked for, and else given back. */
static void claims(struct cand *cand)
{
	struct baton_lease lease = cand->lease;
	struct baton_call call = call_of(cand);
	struct found found = {.nonces = {0}};

	if (!is_same(cand, &lease))
		return;
	errand(cand, VERB_OTHER);
	if (record_driver_claims(cand->lanes[BATON_LANE_CAMPAIGN], &call, &lease, claim_found,
				 &found) != BATON_OUTCOME_OK ||
	    !is_same(cand, &lease))
		return;
	cand->wants_claims = false;
	for (int e = 0; e < ELECTIONS; e++) {
		struct seat *s = &cand->seats[e];
		bool is_it = found.nonces[e] != 0 && found.nonces[e] == s->nonce;

		tell("%s has a claim on %s: %llu, role %d", cand->id, election_names[e],
		     (unsigned long long)found.nonces[e], (int)s->role);
		if (s->role == ROLE_SEEKS && is_it)
			seat_lead(cand, e, &lease, s->nonce, found.terms[e]);
		else if (found.nonces[e] != 0 && !is_it)
			seat_set(s, ROLE_LEAVES, lease.id, found.nonces[e], found.terms[e]);
		else if (found.nonces[e] == 0 && s->role != ROLE_LEAVES)
			s->role = ROLE_NONE;
	}
}

/* What wasn't shown is published again. */
static void publish(struct cand *cand)
{
	struct baton_publication list[ELECTIONS];
	struct baton_lease lease = cand->lease;
	struct baton_call call = call_of(cand);
	int which[ELECTIONS];
	size_t n = 0;

	for (int e = 0; e < ELECTIONS && is_same(cand, &lease); e++) {
		struct seat *s = &cand->seats[e];

		if (!s->is_unshown)
			continue;
		list[n] = (struct baton_publication){.name = election_names[e],
						     .profile = {.metadata = "",
								 .score_permille = s->score,
								 .is_healthy = true}};
		which[n++] = e;
	}
	if (n == 0)
		return;
	errand(cand, VERB_PUBLISH);
	record_driver_publish(cand->lanes[BATON_LANE_CAMPAIGN], &call, &lease, list, n);
	for (size_t i = 0; i < n; i++) {
		tell("%s has published for %s: %d", cand->id, election_names[which[i]],
		     list[i].outcome);
		cand->seats[which[i]].is_unshown = list[i].outcome != BATON_OUTCOME_OK;
	}
}

static void obey(struct seat *s, const struct baton_order *order)
{
	s->role = ROLE_LEAVES;
	s->heir = order->kind == BATON_ORDER_TRANSFER ? order->target[0] - 'a' : -1;
}

/* A leader whose election was hinted at looks for an order, and whether it still leads (S5). */
static void observe(struct cand *cand, int e)
{
	struct seat *s = &cand->seats[e];
	struct baton_record record = {.term = 0};
	struct baton_observation o = {.name = election_names[e],
				      .lease_id = cand->lease.id,
				      .id = cand->id,
				      .record = &record};
	struct baton_call call = call_of(cand);

	s->is_hinted = false;
	errand(cand, VERB_OTHER);
	record_driver_observe(cand->lanes[BATON_LANE_CAMPAIGN], &call, &o, 1);
	if (o.outcome != BATON_OUTCOME_OK || s->role != ROLE_LEADS || record.term < s->term)
		return;
	if (!record.held || strcmp(record.lease_id, s->lease) != 0 || record.term != s->term)
		s->role = ROLE_NONE;
	else if (record.order.id != 0 && record.order.term == s->term)
		obey(s, &record.order);
}

static void look_after(struct cand *cand)
{
	bool seeks = cand->wants_claims;

	for (int e = 0; e < ELECTIONS; e++) {
		struct seat *s = &cand->seats[e];

		if (s->role == ROLE_LEADS && !world.is_quiet && world_random(30) == 0)
			s->role = ROLE_LEAVES;
		if (s->role == ROLE_LEADS && !world.is_quiet && world_random(20) == 0) {
			s->score = 1 + (uint32_t)world_random(1000);
			s->is_unshown = true;
		}
		if (s->role == ROLE_LEADS && s->is_hinted)
			observe(cand, e);
		seeks = seeks || s->role == ROLE_SEEKS;
	}
	release(cand);
	if (seeks)
		claims(cand);
	publish(cand);
	campaign(cand);
}

static void run_campaign(struct cand *cand)
{
	while (!cand->has_ended) {
		look_after(cand);
		rest(world.params.ttl_ns / 4);
	}
}

static void run_watch(struct cand *cand)
{
	void *lane = cand->lanes[BATON_LANE_WATCH];

	for (uint64_t e = 0; e < ELECTIONS; e++)
		(void)record_driver_watch_add(lane, election_names[e], e);
	while (!cand->has_ended) {
		struct baton_call call = {.deadline_ns = now_of(cand) + 2 * world.params.ttl_ns};
		uint64_t cookies[ELECTIONS];

		errand(cand, VERB_OTHER);
		int n = record_driver_watch_wait(lane, &call, cookies, ELECTIONS);

		for (int i = 0; i < n; i++)
			cand->seats[cookies[i]].is_hinted = true;
		if (n > 0)
			poke(cand);
		if (n < 0)
			rest(world.params.ttl_ns / 30);
		else
			sleep_until(world.now_ns + 1000);
	}
	for (uint64_t e = 0; e < ELECTIONS; e++)
		record_driver_watch_remove(lane, election_names[e], e);
}

/* ---- processes ---- */

void cand_start(int number)
{
	static void (*const runs[])(struct cand *) = {run_renew, run_campaign, run_watch};
	struct cand *cand = calloc(1, sizeof(*cand));
	const struct baton_store_config config = {.size = sizeof(config), .url = "sim:"};
	struct baton_error err;

	if (cand == NULL ||
	    record_driver_open(&sim_adapter, &config, &cand->store, &err) != BATON_OK)
		abort();
	cand->number = number;
	cand->rate = 1000 + (uint32_t)world_random(DRIFT_PERMILLE);
	/* Its own for each incarnation, too: it is part of its leases' ids (A5). */
	cand->origin_ns = ++world.n_incarnations * 1000 * CLOCK_NS_PER_S;
	(void)snprintf(cand->id, sizeof(cand->id), "%c", 'a' + number);
	for (int e = 0; e < ELECTIONS; e++)
		cand->seats[e].heir = -1;
	world.cands[number] = cand;
	for (int kind = 0; kind < 3; kind++) {
		if (record_driver_lane_open(cand->store, kind, &cand->lanes[kind], &err) !=
		    BATON_OK)
			abort();
		cand->coroutines[kind] = coroutine_start(cand, runs[kind]);
	}
	tell("%s starts", cand->id);
}

void cand_end(struct cand *cand)
{
	cand->has_ended = true;
	if (cand->lanes[BATON_LANE_WATCH] != NULL)
		record_driver_watch_wake(cand->lanes[BATON_LANE_WATCH]);
	for (int kind = 0; kind < 3; kind++)
		if (cand->coroutines[kind] != NULL && cand->coroutines[kind]->is_used &&
		    cand->coroutines[kind]->cand == cand)
			wake(cand->coroutines[kind]);
}
