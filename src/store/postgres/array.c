/* array.c: arrays in the text form of PostgreSQL, and values out of results. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/postgres.h"

static void text_append(struct pg_text *t, const char *bytes, size_t n)
{
	if (t->failed)
		return;
	if (t->room - t->n < n + 1) {
		size_t room = 2 * (t->n + n + 32);
		char *at = realloc(t->at, room);

		if (at == NULL) {
			t->failed = true;
			return;
		}
		t->at = at;
		t->room = room;
	}
	(void)memcpy(t->at + t->n, bytes, n);
	t->n += n;
	t->at[t->n] = '\0';
}

void pg_text_add(struct pg_text *t, const char *text)
{
	text_append(t, text, strlen(text));
}

void pg_text_done(struct pg_text *t)
{
	free(t->at);
	*t = (struct pg_text){0};
}

bool pg_texts_failed(const struct pg_text *list, size_t n)
{
	bool failed = false;

	for (size_t i = 0; i < n; i++)
		failed = failed || list[i].failed;
	return failed;
}

void pg_texts_done(struct pg_text *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pg_text_done(&list[i]);
}

void pg_array_begin(struct pg_text *t)
{
	t->n = 0;
	text_append(t, "{", 1);
}

void pg_array_names(struct pg_text *t, const struct baton_observation *list, size_t n)
{
	pg_array_begin(t);
	for (size_t i = 0; i < n; i++)
		pg_array_text(t, list[i].name);
	pg_array_end(t);
}

void pg_array_end(struct pg_text *t)
{
	text_append(t, "}", 1);
}

static void array_separate(struct pg_text *t)
{
	if (t->n > 1)
		text_append(t, ",", 1);
}

void pg_array_text(struct pg_text *t, const char *value)
{
	array_separate(t);
	if (value == NULL) {
		text_append(t, "NULL", 4);
		return;
	}
	text_append(t, "\"", 1);
	while (*value != '\0') {
		size_t n = strcspn(value, "\"\\");

		text_append(t, value, n);
		value += n;
		if (*value != '\0') {
			text_append(t, "\\", 1);
			text_append(t, value++, 1);
		}
	}
	text_append(t, "\"", 1);
}

void pg_array_number(struct pg_text *t, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRId64, value);

	array_separate(t);
	text_append(t, digits, (size_t)n);
}

/* ---- values; a NULL is 0, false or "" ---- */

int64_t pg_number(const PGresult *r, int row, int column)
{
	return strtoll(PQgetvalue(r, row, column), NULL, 10);
}

/* A 64-bit pattern that the server keeps in a signed column. */
uint64_t pg_unsigned(const PGresult *r, int row, int column)
{
	return (uint64_t)pg_number(r, row, column);
}

bool pg_is_true(const PGresult *r, int row, int column)
{
	return PQgetvalue(r, row, column)[0] == 't';
}

void pg_copy(char *to, size_t size, const PGresult *r, int row, int column)
{
	(void)snprintf(to, size, "%s", PQgetvalue(r, row, column));
}
