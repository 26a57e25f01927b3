/*
 * rules.c: see rules.h.
 */
#include "rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const acts[N_ACTS] = {
	[ACT_PASS] = "pass",           [ACT_DROP] = "drop",
	[ACT_DELAY] = "delay",         [ACT_CUT] = "cut",
	[ACT_HALF] = "half",           [ACT_CUT_AFTER] = "cut-after",
	[ACT_DUPLICATE] = "duplicate", [ACT_STALL] = "stall",
	[ACT_LATE] = "late",           [ACT_MUTE] = "mute",
	[ACT_REFUSE] = "refuse",
};

void rules_init(struct rules *r, uint64_t seed)
{
	*r = (struct rules){.seed = seed, .state = seed};
}

/* ---- reading ---- */

static bool give(char *to, size_t size, const char *word)
{
	size_t n = strlen(word);

	if (n == 0 || n >= size)
		return false;
	memcpy(to, word, n + 1);
	return true;
}

static bool number(const char *word, uint64_t *to)
{
	char *end;

	*to = strtoull(word, &end, 10);
	return *word >= '0' && *word <= '9' && *end == '\0';
}

static bool condition(struct rule *rule, const char *word)
{
	const struct {
		const char *key;
		uint64_t *to;
	} keys[] = {{"nth=", &rule->nth},
		    {"every=", &rule->every},
		    {"times=", &rule->times},
		    {"after=", &rule->after_ms},
		    {"chance=", &rule->chance}};

	if (strncmp(word, "text=", 5) == 0)
		return give(rule->text, sizeof(rule->text), word + 5);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strncmp(word, keys[i].key, strlen(keys[i].key)) == 0)
			return number(word + strlen(keys[i].key), keys[i].to);
	return strchr(word, '=') == NULL && give(rule->kind, sizeof(rule->kind), word);
}

static bool takes_time(enum act act)
{
	return act == ACT_DELAY || act == ACT_LATE;
}

static bool action(struct rule *rule, const char *word, const char *ms)
{
	while (rule->act < N_ACTS && strcmp(acts[rule->act], word) != 0)
		rule->act++;
	if (rule->act == N_ACTS || (rule->on_reply && rule->act >= ACT_LATE))
		return false;
	return takes_time(rule->act) ? ms != NULL && number(ms, &rule->ms) : ms == NULL;
}

static bool label(struct rules *r, const char *kind, const char *text)
{
	struct label *l = &r->labels[r->n_labels];

	for (size_t i = 0; i < r->n_labels; i++)
		if (strcmp(r->labels[i].kind, kind) == 0 && strcmp(r->labels[i].text, text) == 0)
			return true;
	if (r->n_labels == LABELS_MAX || !give(l->kind, sizeof(l->kind), kind) ||
	    !give(l->text, sizeof(l->text), text))
		return false;
	r->n_labels++;
	return true;
}

/* Those of higher slots come first; in a slot they stay in their order. */
static void insert(struct rules *r, const struct rule *rule)
{
	size_t at = r->n++;

	for (; at > 0 && r->list[at - 1].slot < rule->slot; at--)
		r->list[at] = r->list[at - 1];
	r->list[at] = *rule;
}

/* One rule or label; its text is cut into words. NULL, or the word that isn't understood. */
static const char *line(struct rules *r, unsigned slot, uint64_t now_ms, char *text)
{
	struct rule rule = {.slot = slot, .kind = "*", .chance = 100, .begin_ms = now_ms};
	char *rest = NULL;
	char *word = strtok_r(text, " \t", &rest);

	if (word == NULL || word[0] == '#')
		return NULL;
	if (strcmp(word, "label") == 0) {
		const char *kind = strtok_r(NULL, " \t", &rest);
		const char *what = strtok_r(NULL, " \t", &rest);

		return kind != NULL && what != NULL && label(r, kind, what) ? NULL : word;
	}
	rule.on_reply = strcmp(word, "reply") == 0;
	if (r->n == RULES_MAX || (!rule.on_reply && strcmp(word, "request") != 0))
		return word;
	while ((word = strtok_r(NULL, " \t", &rest)) != NULL && strcmp(word, "->") != 0)
		if (!condition(&rule, word))
			return word;
	word = word != NULL ? strtok_r(NULL, " \t", &rest) : NULL;
	const char *ms = strtok_r(NULL, " \t", &rest);

	if (word == NULL || !action(&rule, word, ms) || strtok_r(NULL, " \t", &rest) != NULL)
		return word != NULL ? word : "its end";
	insert(r, &rule);
	return NULL;
}

bool rules_set(struct rules *r, unsigned slot, const char *text, uint64_t now_ms, char *why,
	       size_t size)
{
	static _Thread_local struct rules next;
	static _Thread_local char copy[RULES_TEXT_SIZE];
	char *rest = NULL;

	next = *r;
	next.n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i].slot != slot)
			next.list[next.n++] = r->list[i];
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		(void)snprintf(why, size, "the rules are too long");
		return false;
	}
	for (char *at = strtok_r(copy, ";\n", &rest); at != NULL;
	     at = strtok_r(NULL, ";\n", &rest)) {
		const char *odd = line(&next, slot, now_ms, at);

		if (odd != NULL) {
			(void)snprintf(why, size, "a rule is not understood at '%s'", odd);
			return false;
		}
	}
	*r = next;
	return true;
}

/* ---- deciding ---- */

/* splitmix64 */
static uint64_t draw(struct rules *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool contains(const struct message *m, const char *text)
{
	return text[0] == '\0' || memmem(m->text, m->text_n, text, strlen(text)) != NULL;
}

bool rules_label(struct rules *r, struct message *m)
{
	for (size_t i = 0; i < r->n_labels; i++) {
		struct label *l = &r->labels[i];

		if (contains(m, l->text)) {
			l->seen++;
			memcpy(m->kind, l->kind, sizeof(m->kind));
			return true;
		}
	}
	return false;
}

static bool fits(const struct rule *rule, bool is_reply, bool is_labelled, const struct message *m,
		 uint64_t now_ms)
{
	bool is_kind = strcmp(rule->kind, "*") == 0 || strcmp(rule->kind, m->kind) == 0 ||
		       (is_labelled && strcmp(rule->kind, "@") == 0);

	return rule->on_reply == is_reply && is_kind && contains(m, rule->text) &&
	       now_ms >= rule->begin_ms + rule->after_ms;
}

static bool fires(struct rules *r, struct rule *rule)
{
	rule->seen++;
	return (rule->times == 0 || rule->done < rule->times) &&
	       (rule->nth == 0 || rule->seen == rule->nth) &&
	       (rule->every == 0 || rule->seen % rule->every == 0) &&
	       (rule->chance >= 100 || draw(r) % 100 < rule->chance);
}

const struct rule *rules_match(struct rules *r, bool is_reply, bool is_labelled,
			       const struct message *m, uint64_t now_ms)
{
	const struct rule *found = NULL;

	/* All of them count and draw, so that what one decides changes nothing for the others. */
	for (size_t i = 0; i < r->n; i++) {
		struct rule *rule = &r->list[i];

		if (fits(rule, is_reply, is_labelled, m, now_ms) && fires(r, rule) &&
		    found == NULL) {
			rule->done++;
			r->fired++;
			found = rule;
		}
	}
	return found;
}

/* ---- writing ---- */

static void say(char *to, size_t size, size_t *used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void say(char *to, size_t size, size_t *used, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = *used < size ? vsnprintf(to + *used, size - *used, format, args) : 0;

	va_end(args);
	*used += n > 0 ? (size_t)n : 0;
}

void rules_text(const struct rules *r, char *to, size_t size)
{
	size_t used = 0;

	say(to, size, &used, "# seed %" PRIu64 "\n", r->seed);
	for (size_t i = 0; i < r->n_labels; i++)
		say(to, size, &used, "label %s %s\n", r->labels[i].kind, r->labels[i].text);
	for (size_t i = 0; i < r->n; i++) {
		const struct rule *x = &r->list[i];
		const struct {
			const char *key;
			uint64_t value;
		} keys[] = {{"nth", x->nth},
			    {"every", x->every},
			    {"times", x->times},
			    {"after", x->after_ms}};

		say(to, size, &used, "%s %s", x->on_reply ? "reply" : "request", x->kind);
		if (x->text[0] != '\0')
			say(to, size, &used, " text=%s", x->text);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			if (keys[k].value != 0)
				say(to, size, &used, " %s=%" PRIu64, keys[k].key, keys[k].value);
		if (x->chance != 100)
			say(to, size, &used, " chance=%" PRIu64, x->chance);
		say(to, size, &used, " -> %s", acts[x->act]);
		if (takes_time(x->act))
			say(to, size, &used, " %" PRIu64, x->ms);
		say(to, size, &used, "\n# that was done %" PRIu64 " times of %" PRIu64 "\n",
		    x->done, x->seen);
	}
}
