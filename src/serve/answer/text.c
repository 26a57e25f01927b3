/*
 * text.c: words into the caller's room: JSON, times, numbers, HTML. It must never write beyond that
 * room; beyond it, it only counts, so that the caller knows how much is needed.
 */
#include <string.h>

#include "serve/answer/answer.h"

void text_add_n(struct serve_text *t, const char *text, size_t n)
{
	if (t->n < t->room) {
		size_t left = t->room - t->n;

		(void)memcpy(t->at + t->n, text, n < left ? n : left);
	}
	t->n += n;
}

void text_add(struct serve_text *t, const char *text)
{
	text_add_n(t, text, strlen(text));
}

void text_unsigned(struct serve_text *t, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	text_add_n(t, digits + at, sizeof(digits) - at);
}

void text_number(struct serve_text *t, int64_t n)
{
	if (n < 0)
		text_add(t, "-");
	text_unsigned(t, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* The length of the character at c if it is UTF-8, else 0. */
static size_t utf8_length(const unsigned char *c)
{
	size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : 0;

	if (c[0] >= 0xe0 && c[0] < 0xf0)
		n = 3;
	else if (c[0] >= 0xf0 && c[0] < 0xf5)
		n = 4;
	for (size_t i = 1; i < n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	return n;
}

void text_string(struct serve_text *t, const char *text)
{
	static const char hex[] = "0123456789abcdef";

	text_add(t, "\"");
	for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
		size_t n = utf8_length(c);

		if (*c == '"' || *c == '\\') {
			text_add(t, "\\");
			text_add_n(t, (const char *)c, 1);
		} else if (*c < ' ' || *c == 0x7f) {
			char escape[6] = {'\\', 'u', '0', '0', hex[*c >> 4], hex[*c & 15]};

			text_add_n(t, escape, sizeof(escape));
		} else if (n == 0) {
			text_add(t, "\xef\xbf\xbd");
		} else {
			text_add_n(t, (const char *)c, n);
		}
		c += n != 0 ? n : 1;
	}
	text_add(t, "\"");
}

static void text_padded(struct serve_text *t, int64_t n, int digits)
{
	for (int64_t limit = 10; digits > 1; digits--, limit *= 10)
		if (n < limit)
			text_add(t, "0");
	text_number(t, n);
}

/* A day of the calendar from days since 1970, by eras of 400 years. */
static void text_date(struct serve_text *t, int64_t days)
{
	days += 719468;
	int64_t era = days / 146097;
	int64_t day = days - era * 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t of_year = day - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;

	day = of_year - (153 * month + 2) / 5 + 1;
	year += era * 400 + (month >= 10);
	month += month < 10 ? 3 : -9;
	text_padded(t, year, 4);
	text_add(t, "-");
	text_padded(t, month, 2);
	text_add(t, "-");
	text_padded(t, day, 2);
}

void text_time(struct serve_text *t, int64_t wall_ms)
{
	if (wall_ms <= 0 || wall_ms > 253402300799999) { /* the year 9999 */
		text_add(t, "null");
		return;
	}
	int64_t s = wall_ms / 1000;

	text_add(t, "\"");
	text_date(t, s / 86400);
	text_add(t, "T");
	text_padded(t, s / 3600 % 24, 2);
	text_add(t, ":");
	text_padded(t, s / 60 % 60, 2);
	text_add(t, ":");
	text_padded(t, s % 60, 2);
	text_add(t, ".");
	text_padded(t, wall_ms % 1000, 3);
	text_add(t, "Z\"");
}

void text_escaped(struct serve_text *t, const char *text)
{
	for (const char *c = text; *c != '\0'; c++) {
		switch (*c) {
		case '&': text_add(t, "&amp;"); break;
		case '<': text_add(t, "&lt;"); break;
		case '>': text_add(t, "&gt;"); break;
		case '"': text_add(t, "&quot;"); break;
		case '\'': text_add(t, "&#39;"); break;
		default: text_add_n(t, c, 1); break;
		}
	}
}
