/* format.c: numbers, times and words between the command and people. No state. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

bool text_parse_time(const char *text, int64_t *ms)
{
	static const struct {
		const char *unit;
		int64_t factor;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	double value = strtod(text, &end);

	if (strcmp(text, "0") == 0) {
		*ms = 0;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		value *= (double)units[i].factor;
		/* A century is enough, and leaves room for sums of nanoseconds. */
		if (!(value >= 0 && value <= 3.2e12))
			return false;
		*ms = (int64_t)(value + 0.5);
		return true;
	}
	return false;
}

int text_parse_part(const char *text, int64_t *permille)
{
	char *end;
	double part = strtod(text, &end);

	if (end == text || (*end != '\0' && strcmp(end, "%") != 0))
		return 0;
	part *= *end == '%' ? 10 : 1000;
	if (!(part >= 0 && part <= 1000)) /* nan is not, either */
		return -1;
	*permille = (int64_t)(part + 0.5);
	return 1;
}

const char *text_span(int64_t ms, char *out, size_t size)
{
	long long s = ms / 1000;

	if (ms < 1000)
		(void)snprintf(out, size, "%lldms", (long long)ms);
	else if (ms < 10000)
		(void)snprintf(out, size, "%lld.%llds", s, (long long)(ms % 1000 / 100));
	else if (s < 60)
		(void)snprintf(out, size, "%llds", s);
	else if (s < 3600)
		(void)snprintf(out, size, "%lldm %llds", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(out, size, "%lldh %lldm", s / 3600, s / 60 % 60);
	else
		(void)snprintf(out, size, "%lldd %lldh", s / 86400, s / 3600 % 24);
	return out;
}

const char *text_local(int64_t wall_ms, char *out, size_t size)
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (wall_ms <= 0 || localtime_r(&t, &tm) == NULL || size < 24 ||
	    strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)snprintf(out, size, "-");
	return out;
}

const char *text_utc(int64_t wall_ms, char *out, size_t size)
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;
	size_t n = 0;

	if (gmtime_r(&t, &tm) != NULL)
		n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + n, size - n, ".%03dZ", (int)(wall_ms % 1000));
	return out;
}

const char *text_limit(int error)
{
	switch (error) {
	case EAGAIN: return "; raise the limit of processes (ulimit -u)";
	case EMFILE: return "; raise the limit of open files (ulimit -n)";
	case ENFILE: return "; raise the system's limit of open files (fs.file-max)";
	default: return "";
	}
}

void text_json(FILE *out, const char *text)
{
	(void)fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			(void)fprintf(out, "\\%c", *c);
		else if (*c < ' ')
			(void)fprintf(out, "\\u%04x", *c);
		else
			(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

void text_wrap(FILE *out, const char *text, int indent, int columns)
{
	int at = 0;

	while (*(text += strspn(text, " \n")) != '\0') {
		int n = (int)strcspn(text, " \n");

		if (at > 0 && at + 1 + n > columns) {
			(void)fputc('\n', out);
			at = 0;
		}
		at += fprintf(out, "%*s%.*s", at == 0 ? indent : 1, "", n, text);
		text += n;
	}
	(void)fputc('\n', out);
}
