/*
 * rules.c: what must hold: when a write is carried out, when a candidate begins to lead, after
 * every step, and at the end, long after the last fault.
 */
#include "sim.h"

#include <string.h>

enum rule broken;

static uint64_t led[ELECTIONS];
static uint64_t reserved_ns[ELECTIONS]; /* since when it is */

static const char *const names[] = {"none",
#define X(name, word, text) word,
				    RULES(X)
#undef X
};

static const char *const texts[] = {"nothing is wrong",
#define X(name, word, text) text,
				    RULES(X)
#undef X
};

void rules_begin(void)
{
	broken = RULE_NONE;
	(void)memset(led, 0, sizeof(led));
	(void)memset(reserved_ns, 0, sizeof(reserved_ns));
}

void rule_break(enum rule rule)
{
	if (broken == RULE_NONE && !world.is_over) {
		broken = rule;
		tell("violation: %s: %s", rule_name(rule), rule_text(rule));
	}
}

const char *rule_name(enum rule rule)
{
	return names[rule];
}

const char *rule_text(enum rule rule)
{
	return texts[rule];
}

static bool is_weak(void)
{
	return world.params.forgets || world.params.evicts;
}

static void check_term(int e, uint64_t term)
{
	if (term <= led[e])
		rule_break(RULE_S3_TERMS);
	led[e] = term;
}

/* Where S1 is not promised, an answer may come after the record was lost, and after another led. */
void rules_led(const struct cand *cand, int e)
{
	world.n_leaderships++;
	if (!world.params.evicts)
		check_term(e, cand->seats[e].term);
}

/* ---- writes ---- */

static bool counts_on(const char *id)
{
	for (int i = 0; i < CANDS; i++) {
		const struct cand *cand = world.cands[i];

		if (cand != NULL && !cand->has_ended && cand->is_live &&
		    strcmp(cand->lease.id, id) == 0 &&
		    cand_clock_ns(cand, world.now_ns) < cand->deadline_ns)
			return true;
	}
	return false;
}

void rules_lease(const struct errand *by, const char *id, const struct record_lease *before,
		 const struct record_lease *after)
{
	if (after == NULL)
		return;
	if (by->verb == VERB_RENEW && before == NULL)
		rule_break(RULE_R1_CREATE);
	if (before != NULL && before->death != RECORD_ALIVE && after->death == RECORD_ALIVE)
		rule_break(RULE_R4_FINAL);
	if (after->death != RECORD_ALIVE && counts_on(id))
		rule_break(RULE_R4_TOMBSTONE);
}

static void check_claim(const struct errand *by, int e, const struct record_election *before)
{
	uint64_t hold_ns = before->hold_ns / (1000 + DRIFT_PERMILLE) * 1000;

	if (before->paused)
		rule_break(RULE_R5_PAUSED);
	if (before->reserved_for[0] != '\0' && before->reserved_for[0] != 'a' + by->cand &&
	    world.now_ns < reserved_ns[e] + hold_ns)
		rule_break(RULE_R11_HOLD);
}

void rules_election(const struct errand *by, int e, const struct record_election *before,
		    const struct record_election *after)
{
	bool is_claim = after != NULL && after->lease[0] != '\0' &&
			(before == NULL || after->nonce != before->nonce ||
			 strcmp(after->lease, before->lease) != 0);
	bool is_release = after != NULL && before != NULL && before->lease[0] != '\0' &&
			  after->lease[0] == '\0';

	if (!is_weak() && (after == NULL || (before != NULL && after->term < before->term)))
		rule_break(RULE_R9_GONE);
	if (by->verb == VERB_PUBLISH && before != NULL && before->nonce != by->nonces[e])
		rule_break(RULE_S6_FOREIGN);
	if (is_release && by->verb == VERB_RELEASE && before->nonce != by->nonces[e])
		rule_break(RULE_S6_FOREIGN);
	if (is_release && by->verb == VERB_CLOSE && strcmp(before->lease, by->lease) != 0)
		rule_break(RULE_S6_FOREIGN);
	if (is_claim && before != NULL)
		check_claim(by, e, before);
	/* ... but terms are still granted once, and in their order. */
	if (is_claim && world.params.evicts)
		check_term(e, after->term);
	if (after != NULL && after->reserved_for[0] != '\0' &&
	    (before == NULL || before->hold_term != after->hold_term ||
	     before->reserved_for[0] == '\0'))
		reserved_ns[e] = world.now_ns;
}

/* ---- every step ---- */

/* The layer's book has it: a claim whose native lock was lost is given back by the layer alone. */
static bool is_booked(const struct cand *cand, int e)
{
	struct record_store *s = cand->store;
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, election_names[e]);
	const struct record_known *k = record_known_find(s, key.text);

	return k != NULL && k->ours != NULL && k->claim.standing == RECORD_FORFEIT;
}

void rules_renewed(const struct cand *cand, uint64_t begun_ns)
{
	int i = cand->lease.id[0] - 'a';

	for (int e = 0; e < ELECTIONS; e++) {
		struct record_key key =
			record_key_of(cand->store, RECORD_ELECTIONS, election_names[e]);
		const struct record_known *k = record_known_find(cand->store, key.text);

		if (k != NULL && k->ours != NULL && k->claim.standing == RECORD_STANDS &&
		    strcmp(locks[e].broken[i], cand->lease.id) == 0 &&
		    locks[e].broken_ns[i] < begun_ns)
			rule_break(RULE_LOCK_LOST);
	}
}

/* Somebody will give it back, or lead on it. */
static bool is_known(const struct cand *cand, int e)
{
	const struct seat *s = &cand->seats[e];

	return s->role != ROLE_NONE || s->asks || cand->wants_claims || is_booked(cand, e);
}

static void check_election(int e)
{
	const struct record_election *r = &elections[e];
	int leaders = 0;

	for (int i = 0; i < CANDS; i++) {
		const struct cand *cand = world.cands[i];

		if (cand == NULL || !counts_on(cand->lease.id))
			continue;
		const struct seat *s = &cand->seats[e];

		if (strcmp(cand->lease.id, r->lease) == 0 && !is_known(cand, e))
			rule_break(RULE_L3_ORPHAN);
		if (!cand_leads(cand, e))
			continue;
		leaders++;
		if (!is_weak() && (strcmp(r->lease, cand->lease.id) != 0 || r->nonce != s->nonce ||
				   r->term != s->term))
			rule_break(RULE_S1_RECORD);
		if (locks[e].is_foreign && strcmp(locks[e].broken[i], cand->lease.id) != 0)
			rule_break(RULE_LOCK_FOREIGN);
	}
	if (leaders > 1 && !world.params.evicts)
		rule_break(RULE_S1_EXCLUSION);
}

void rules_check(void)
{
	for (int e = 0; e < ELECTIONS; e++)
		check_election(e);
	for (int i = 0; i < CANDS; i++) {
		const struct cand *cand = world.cands[i];

		if (cand != NULL && counts_on(cand->lease.id) && store_lease(cand->lease.id) == 2)
			rule_break(RULE_R4_TOMBSTONE);
	}
}

/* L1; and a lock that is held is that of a leader. */
void rules_check_end(void)
{
	for (int e = 0; e < ELECTIONS; e++) {
		const struct cand *leader = NULL;

		for (int i = 0; i < CANDS; i++)
			if (cand_leads(world.cands[i], e))
				leader = world.cands[i];
		if (leader != NULL && elections[e].score_permille != leader->seats[e].score)
			rule_break(RULE_SHOWN);
		if (leader == NULL)
			rule_break(RULE_L1_PROGRESS);
		else if (lock_is_taken(e) && strcmp(locks[e].lease, leader->lease.id) != 0)
			rule_break(RULE_LOCK_LEFT);
	}
}
