/*
 * proxy.c: see proxy.h. A fault of a verb is a rule in a slot of its own: what is set again
 * replaces what was there.
 */
#include "proxy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/relay.h"

enum slot {
	SLOT_WEATHER,
	SLOT_FAIL,
	SLOT_MUTE = SLOT_FAIL + N_VERBS,
	SLOT_LATE = SLOT_MUTE + N_VERBS
};

struct proxy {
	struct relay *relay;
};

static const char *const labels[N_VERBS] = {
	[VERB_ANY] = "@",           [VERB_OPEN] = "open",
	[VERB_RENEW] = "renew",     [VERB_CAMPAIGN] = "campaign",
	[VERB_RELEASE] = "release", [VERB_OBSERVE] = "observe",
};

static struct {
	const char *rules;
	uint64_t seed;
} weather;

/* What a bad network does, often enough to be met in most cases: `--network default`. */
static const char bad_weather[] = "request @ chance=3 -> late 40; request @ chance=1 -> cut-after; "
				  "request @ chance=1 -> cut; request chance=2 -> delay 15; "
				  "reply chance=1 -> half; request @ chance=2 -> duplicate; "
				  "request @ chance=1 -> mute";

bool proxy_weather(const char *rules, uint64_t seed, char *why, size_t size)
{
	static struct rules tried;

	rules_init(&tried, seed);
	weather.rules = strcmp(rules, "default") == 0 ? bad_weather : rules;
	weather.seed = seed;
	return rules_set(&tried, SLOT_WEATHER, weather.rules, 0, why, size);
}

bool proxy_is_bad(void)
{
	return weather.rules != NULL;
}

static bool set(struct proxy *p, unsigned slot, const char *text)
{
	char why[200];

	if (relay_rules(p->relay, slot, text, why, sizeof(why)))
		return true;
	(void)fprintf(stderr, "conformance: %s: %s\n", text, why);
	return false;
}

/* A verb's text may stand in another's request too: the later verb is the one that is meant. */
static bool teach(struct proxy *p, const char *const words[N_VERBS])
{
	bool ok = true;

	for (int v = N_VERBS - 1; ok && v > VERB_ANY; v--) {
		char text[160];

		(void)snprintf(text, sizeof(text), "label %s %s", labels[v], words[v]);
		ok = set(p, SLOT_WEATHER, text);
	}
	return ok && (weather.rules == NULL || set(p, SLOT_WEATHER, weather.rules));
}

struct proxy *proxy_new(unsigned port, const struct protocol *protocol,
			const char *const words[N_VERBS])
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->relay = relay_new(&(struct relay_options){
		.protocol = protocol, .server_port = port, .seed = weather.seed});
	/* The case's process ends with that. */
	return p->relay != NULL && teach(p, words) ? p : NULL;
}

void proxy_free(struct proxy *p)
{
	relay_free(p->relay);
	free(p);
}

unsigned proxy_port(const struct proxy *p)
{
	return relay_port(p->relay);
}

unsigned proxy_clear_port(const struct proxy *p)
{
	return relay_clear_port(p->relay);
}

/* ---- as hooks of a backend ---- */

static struct proxy *proxy_of(struct testcase *t)
{
	return *(struct proxy **)t->hand;
}

bool proxy_down(struct testcase *t, bool is_down)
{
	relay_down(proxy_of(t)->relay, is_down);
	return true;
}

bool proxy_hole(struct testcase *t, bool is_hole)
{
	relay_hole(proxy_of(t)->relay, is_hole);
	return true;
}

/* n requests of that kind; all of them, where the number has no end. */
static bool add_rule(struct testcase *t, unsigned slot, enum verb verb, unsigned n, const char *act)
{
	char text[160];
	char times[40] = "";

	if (n != UINT32_MAX)
		(void)snprintf(times, sizeof(times), "times=%u ", n);
	(void)snprintf(text, sizeof(text), "request %s %s-> %s", labels[verb], times, act);
	return set(proxy_of(t), slot + verb, n > 0 ? text : "");
}

bool proxy_fail(struct testcase *t, enum verb verb, unsigned n)
{
	return add_rule(t, SLOT_FAIL, verb, n, "refuse");
}

bool proxy_mute(struct testcase *t, enum verb verb, unsigned n)
{
	return add_rule(t, SLOT_MUTE, verb, n, "mute");
}

bool proxy_late(struct testcase *t, enum verb verb, unsigned n, uint64_t ms)
{
	char act[40];

	(void)snprintf(act, sizeof(act), "late %" PRIu64, ms);
	return add_rule(t, SLOT_LATE, verb, n, act);
}

uint64_t proxy_calls(struct testcase *t, enum verb verb)
{
	const struct proxy *p = proxy_of(t);
	struct relay_counts c;

	relay_counts(p->relay, &c);
	if (verb == VERB_ANY)
		return c.requests + c.swallowed + c.turned;
	/* Who is turned away at the door tried to open: that is what it looks like from here. */
	return relay_labelled(p->relay, labels[verb]) + (verb == VERB_OPEN ? c.turned : 0);
}

uint64_t proxy_harmed(struct testcase *t)
{
	struct relay_counts c = {0};

	if (t->hand != NULL && proxy_of(t) != NULL)
		relay_counts(proxy_of(t)->relay, &c);
	return c.harmed;
}
