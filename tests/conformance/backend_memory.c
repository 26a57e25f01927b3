/*
 * backend_memory.c: the memory store. It lives in one process and has a switch for everything.
 */
#include "backend.h"

#include <stdio.h>
#include <string.h>

#include "baton-memory.h"

static const int verbs[N_VERBS] = {
	[VERB_ANY] = BATON_MEMORY_ANY,         [VERB_OPEN] = BATON_MEMORY_OPEN,
	[VERB_RENEW] = BATON_MEMORY_RENEW,     [VERB_CAMPAIGN] = BATON_MEMORY_CAMPAIGN,
	[VERB_RELEASE] = BATON_MEMORY_RELEASE, [VERB_OBSERVE] = BATON_MEMORY_OBSERVE,
};

/* The switches stay open until the case's process ends, so terms outlive the handles. */
static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct baton_memory *m;

	snprintf(t->url, sizeof(t->url), "%s-%s", base_url, label);
	if (baton_memory_open(t->url, &m, NULL) != 0)
		return false;
	t->hand = m;
	return true;
}

static void leave(struct testcase *t)
{
	baton_memory_close(t->hand);
}

static void clean(const char *base_url, const char *label)
{
	/* It was gone with the case's process. */
	(void)base_url;
	(void)label;
}

static uint64_t term_of(struct testcase *t, const char *name)
{
	for (unsigned i = 0; i < t->n_locals; i++) {
		struct baton_observed status = {0};

		if (baton_observe(t->locals[i]->b, name, &status, NULL) == 0)
			return status.term;
	}
	return 0;
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	switch (way) {
	case WAY_DELETED: return baton_memory_destroy(t->hand, name);
	case WAY_OVERWRITTEN:
		return baton_memory_overwrite(t->hand, name, "somebody-else", term_of(t, name) + 1,
					      t->lease_ms) == 0;
	case WAY_SESSION:
	case WAY_EXPIRED: return baton_memory_expire(t->hand, NULL) > 0;
	default: return false;
	}
}

static bool unlock(struct testcase *t, const char *name)
{
	return baton_memory_destroy(t->hand, name);
}

static bool down(struct testcase *t, bool is_down)
{
	if (is_down)
		baton_memory_fail(t->hand, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS,
				  BATON_E_UNAVAILABLE, "connection refused by the test");
	else
		baton_memory_heal(t->hand);
	return true;
}

static bool hole(struct testcase *t, bool is_hole)
{
	if (is_hole)
		baton_memory_black_hole(t->hand, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS);
	else
		baton_memory_heal(t->hand);
	return true;
}

static bool fail(struct testcase *t, enum verb verb, unsigned n)
{
	baton_memory_fail(t->hand, verbs[verb], n, BATON_E_UNAVAILABLE,
			  "connection reset by the test");
	return true;
}

static bool mute(struct testcase *t, enum verb verb, unsigned n)
{
	baton_memory_drop_replies(t->hand, verbs[verb], n, false);
	return true;
}

static bool late(struct testcase *t, enum verb verb, unsigned n, uint64_t ms)
{
	baton_memory_delay_replies(t->hand, verbs[verb], n, ms);
	return true;
}

static bool forget(struct testcase *t)
{
	baton_memory_forget(t->hand);
	return true;
}

static bool deny(struct testcase *t, bool is_denied)
{
	if (is_denied)
		baton_memory_fail(t->hand, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS, BATON_E_DENIED,
				  "permission denied by the test");
	else
		baton_memory_heal(t->hand);
	return true;
}

static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	return baton_memory_overwrite(t->hand, name, NULL, term, 0) == 0;
}

/* Another client here is another handle: it must find that very election, and no other. */
static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct baton *b;
	struct baton_observed status = {0};
	int n = -1;

	if (strlen(name) != length || baton_open(t->url, NULL, &b, NULL) != 0)
		return -1;
	if (baton_observe(b, name, &status, NULL) == 0)
		n = status.leader[0] != '\0';
	baton_close(b);
	return n;
}

static uint64_t calls(struct testcase *t, enum verb verb)
{
	return baton_memory_calls(t->hand, verbs[verb]);
}

const struct backend backend_memory = {
	.scheme = "memory",
	.pushes = true,
	.shares_leases = true,
	.keeps_history = true,
	.is_durable = true,
	.place = place,
	.leave = leave,
	.clean = clean,
	.destroy = destroy,
	.ways = {[WAY_DELETED] = true, [WAY_OVERWRITTEN] = true, [WAY_EXPIRED] = true},
	.unlock = unlock,
	.down = down,
	.hole = hole,
	.fail = fail,
	.mute = mute,
	.late = late,
	.forget = forget,
	.deny = deny,
	.set_term = set_term,
	.count_name = count_name,
	.calls = calls,
};
