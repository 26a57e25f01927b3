/* words.c: words, numbers and times of a story, and lines that grow. See story.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "story.h"

static void *must(void *memory)
{
	if (memory == NULL) {
		(void)fputs("story: out of memory\n", stderr);
		exit(2);
	}
	return memory;
}

void lines_add(struct lines *l, const char *format, ...)
{
	char text[2 * LINE_MAX_CHARS];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (l->n == l->room) {
		l->room = l->room == 0 ? 64 : 2 * l->room;
		l->v = must(realloc(l->v, l->room * sizeof(*l->v)));
	}
	l->v[l->n++] = must(strdup(text));
}

void lines_clear(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	l->n = 0;
}

void lines_done(struct lines *l)
{
	lines_clear(l);
	free(l->v);
	*l = (struct lines){0};
}

bool words_cut(struct words *w, const char *line)
{
	char *rest = w->text;

	w->n = 0;
	w->at = 0;
	size_t n = strlen(line);

	if (n >= sizeof(w->text))
		return false;
	memcpy(w->text, line, n + 1);
	for (char *word = strtok_r(rest, " \t,", &rest); word != NULL;
	     word = strtok_r(NULL, " \t,", &rest)) {
		if (w->n == WORDS_MAX)
			return false;
		w->v[w->n++] = word;
	}
	return true;
}

const char *words_peek(const struct words *w)
{
	return w->at < w->n ? w->v[w->at] : NULL;
}

const char *words_next(struct words *w)
{
	return w->at < w->n ? w->v[w->at++] : NULL;
}

bool words_take(struct words *w, const char *word)
{
	const char *next = words_peek(w);

	if (next == NULL || strcmp(next, word) != 0)
		return false;
	w->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits; false: there are none, or too many. */
static bool read_digits(const char **p, uint64_t *number)
{
	if (!is_digit(**p))
		return false;
	for (*number = 0; is_digit(**p); (*p)++) {
		uint64_t digit = (uint64_t)(**p - '0');

		if (*number > (UINT64_MAX - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return true;
}

bool parse_number(const char *word, uint64_t *number)
{
	return word != NULL && read_digits(&word, number) && *word == '\0';
}

/* "12.345" in units: exact, without floating point. */
static bool read_decimal(const char **p, uint64_t unit, uint64_t *value)
{
	if (!read_digits(p, value) || *value > UINT64_MAX / unit - 1)
		return false;
	*value *= unit;
	if (**p != '.')
		return true;
	for ((*p)++; is_digit(**p); (*p)++) {
		unit /= 10;
		*value += unit * (uint64_t)(**p - '0');
	}
	return true;
}

bool parse_span(const char *word, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"ms", NS_PER_MS},
		{"s", NS_PER_S},
		{"m", 60 * NS_PER_S},
		{"h", 3600 * NS_PER_S},
	};

	if (word == NULL)
		return false;
	if (strcmp(word, "never") == 0) {
		*ns = NEVER;
		return true;
	}
	const char *unit = word + strspn(word, "0123456789.");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
			return read_decimal(&word, units[i].ns, ns) && word == unit;
	return false;
}

bool parse_part(const char *word, uint64_t whole, uint64_t *part)
{
	return word != NULL && read_decimal(&word, whole, part) && *word == '\0';
}

bool parse_candidate(const char *word, uint32_t *who)
{
	if (word == NULL)
		return false;
	if (strcmp(word, "nobody") == 0) {
		*who = NOBODY;
		return true;
	}
	if (word[0] < 'A' || word[0] > 'Z' || word[1] != '\0')
		return false;
	*who = (uint32_t)(word[0] - 'A') + 1;
	return true;
}
