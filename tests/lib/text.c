/* text.c: see text.h. Tables in the order of the enums, checked by their sizes. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/election.h"
#include "core/lease.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static const char *const why_texts[] = {
#define X(name, text) text,
	CORE_WHYS(X)
#undef X
};

static const char *const why_names[] = {
#define X(name, text) #name,
	CORE_WHYS(X)
#undef X
};

static const char *const outcomes[] = {"none", "ok", "refused", "failed", "unknown"};

static const char *const events[] = {
	"none",       "timer",    "hint",     "opened",   "renewed",    "closed",
	"claims",     "start",    "stop",     "acquire",  "resign",     "transfer",
	"health",     "alive",    "drained",  "lease-up", "lease-down", "claim",
	"campaigned", "observed", "released", "ordered",
};

static const char *const actions[] = {
	"none",       "open",     "renew",   "close",   "claims", "lease-up",
	"lease-down", "campaign", "observe", "release", "order",  "note",
};

static const char *const notes[] = {
	"none", "became", "lost", "changed", "stopped", "acquired", "not-acquired", "error",
};

static const char *const election_states[] = {
	"stopped", "standby", "campaigning", "seeking", "leading", "resigning", "releasing",
};

static const char *const lease_states[] = {
	"closed", "opening", "ready", "live", "dead", "closing",
};

_Static_assert(N_OF(events) == EV_ORDERED + 1, "a word for every event");
_Static_assert(N_OF(actions) == ACT_NOTE + 1, "a word for every action");
_Static_assert(N_OF(notes) == NOTE_ERROR + 1, "a word for every note");
_Static_assert(N_OF(election_states) == ELECTION_RELEASING + 1, "a word for every state");
_Static_assert(N_OF(lease_states) == LEASE_CLOSING + 1, "a word for every state");

static const char *word(const char *const *table, size_t n, uint8_t i)
{
	return i < n ? table[i] : NULL;
}

const char *text_why(uint8_t why)
{
	return word(why_texts, N_OF(why_texts), why);
}

const char *text_why_name(uint8_t why)
{
	return word(why_names, N_OF(why_names), why);
}

const char *text_outcome(uint8_t outcome)
{
	return word(outcomes, N_OF(outcomes), outcome);
}

const char *text_event_kind(uint8_t kind)
{
	return word(events, N_OF(events), kind);
}

const char *text_action_kind(uint8_t kind)
{
	return word(actions, N_OF(actions), kind);
}

const char *text_note(uint8_t note)
{
	return word(notes, N_OF(notes), note);
}

const char *text_election_state(uint8_t state)
{
	return word(election_states, N_OF(election_states), state);
}

const char *text_lease_state(uint8_t state)
{
	return word(lease_states, N_OF(lease_states), state);
}

int text_find(const char *(*text)(uint8_t), const char *w)
{
	for (uint8_t i = 0; text(i) != NULL; i++)
		if (strcmp(text(i), w) == 0)
			return i;
	return -1;
}

void text_time(uint64_t ns, char *buf, size_t size)
{
	if (ns == NEVER)
		(void)snprintf(buf, size, "never");
	else if (ns % 1000000 == 0)
		(void)snprintf(buf, size, "%llu.%03llus", (unsigned long long)(ns / 1000000000),
			       (unsigned long long)(ns / 1000000 % 1000));
	else
		(void)snprintf(buf, size, "%llu.%09llus", (unsigned long long)(ns / 1000000000),
			       (unsigned long long)(ns % 1000000000));
}

void text_span(uint64_t ns, char *buf, size_t size)
{
	char digits[10];
	size_t n = 9;

	if (ns == NEVER) {
		(void)snprintf(buf, size, "never");
		return;
	}
	(void)snprintf(digits, sizeof(digits), "%09u", (unsigned)(ns % 1000000000));
	while (n > 0 && digits[n - 1] == '0')
		n--;
	(void)snprintf(buf, size, "%llu%s%.*ss", (unsigned long long)(ns / 1000000000),
		       n > 0 ? "." : "", (int)n, digits);
}

void text_candidate(uint32_t who, char *buf, size_t size)
{
	if (who == NOBODY)
		(void)snprintf(buf, size, "nobody");
	else if (who <= 26)
		(void)snprintf(buf, size, "%c", (char)('A' + who - 1));
	else
		(void)snprintf(buf, size, "c%u", who);
}

/* ---- actions ---- */

/* A line that grows: what doesn't fit is cut. */
struct text {
	char *buf;
	size_t size;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = vsnprintf(t->buf + t->n, t->size - t->n, format, args);
	va_end(args);
	t->n += n > 0 ? (size_t)n : 0;
	if (t->n >= t->size)
		t->n = t->size - 1;
}

static void put_number(struct text *t, const char *before, uint64_t number)
{
	if (number != 0)
		put(t, " %s%llu", before, (unsigned long long)number);
}

static void put_candidate(struct text *t, const char *before, uint32_t who)
{
	char name[16];

	if (who == NOBODY)
		return;
	text_candidate(who, name, sizeof(name));
	put(t, " %s %s", before, name);
}

static void put_note(struct text *t, const struct action *a)
{
	switch (a->note) {
	case NOTE_BECAME: put(t, "became leader in"); break;
	case NOTE_CHANGED:
		put(t, a->target == NOBODY ? "nobody leads after" : "leader");
		put_candidate(t, "is", a->target);
		if (a->target != NOBODY)
			put(t, " in");
		put_number(t, "term ", a->term);
		return;
	default: put(t, "%s", text_note(a->note)); break;
	}
	put_number(t, "term ", a->term);
	put_candidate(t, "about", a->target);
}

static void put_call(struct text *t, const struct action *a)
{
	put(t, "%s", text_action_kind(a->kind));
	if (a->kind < ACT_CAMPAIGN)
		put_number(t, "lease ", a->epoch);
	if (a->ended)
		put(t, ", which has ended");
	put_number(t, "#", a->nonce);
	put_number(t, "term ", a->term);
	put_number(t, "floor ", a->floor);
	put_candidate(t, "for", a->target);
	if (a->hold_ns != 0) {
		char hold[32];

		text_span(a->hold_ns, hold, sizeof(hold));
		put(t, " held back %s", hold);
	}
}

void text_action(const struct action *a, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};

	buf[0] = '\0';
	if (a->kind == ACT_NOTE)
		put_note(&t, a);
	else if (a->kind == ACT_LEASE_UP || a->kind == ACT_LEASE_DOWN)
		put(&t, "lease %llu is %s", (unsigned long long)a->epoch,
		    a->kind == ACT_LEASE_UP ? "up" : "down");
	else
		put_call(&t, a);
	put(&t, " (%s)", text_why(a->why));
}
