/*
 * log.c: what the command says on standard error: sentences for people, or one JSON object a line.
 * A line is one write(2), so that lines of several processes don't mix.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

static int log_level = BATON_LOG_INFO;
static int log_format = LOG_TEXT;
static const char *log_election; /* which all is about */
static const char *const level_names[] = {"", "error", "warn", "info", "debug"};

static void emit(int level, const char *election, uint64_t term, const char *message,
		 const char *detail);

void log_setup(const struct settings *s)
{
	log_level = (int)s->log_level;
	log_format = (int)s->log_format;
	log_election = s->name;
}

void log_say(int level, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (level > log_level)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit(level, NULL, 0, text, NULL);
}

void log_record(void *arg, const struct baton_log_record *record)
{
	int level = record->level;

	(void)arg;
	/* What it tells of the election's course, the verbs say in their own words. */
	if (level == BATON_LOG_INFO)
		level = BATON_LOG_DEBUG;
	if (level > log_level || record->message == NULL)
		return;
	emit(record->level, record->election, record->term, record->message, record->detail);
}

int cli_usage(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit(BATON_LOG_ERROR, NULL, 0, text, NULL);
	return EXIT_USAGE;
}

static void write_json(FILE *out, int level, const char *election, uint64_t term,
		       const char *message, const char *detail)
{
	char time[40];

	(void)fprintf(out, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":",
		      text_utc(clock_wall_ms(), time, sizeof(time)), level_names[level]);
	text_json(out, message);
	if (election == NULL)
		election = log_election;
	if (election != NULL) {
		(void)fprintf(out, ",\"election\":");
		text_json(out, election);
	}
	if (term != 0)
		(void)fprintf(out, ",\"term\":%llu", (unsigned long long)term);
	if (detail != NULL && detail[0] != '\0') {
		(void)fprintf(out, ",\"detail\":");
		text_json(out, detail);
	}
	(void)fprintf(out, "}\n");
}

static void emit(int level, const char *election, uint64_t term, const char *message,
		 const char *detail)
{
	char line[4096];
	FILE *out = fmemopen(line, sizeof(line), "w");

	if (out == NULL)
		return;
	if (log_format == LOG_JSON) {
		write_json(out, level, election, term, message, detail);
	} else {
		(void)fprintf(out, "baton: %s%s%s", election != NULL ? election : "",
			      election != NULL ? ": " : "", message);
		if (detail != NULL && detail[0] != '\0')
			(void)fprintf(out, " (%s)", detail);
		(void)fputc('\n', out);
	}
	(void)fflush(out);
	long n = ftell(out);

	(void)fclose(out);
	if (n > 0)
		(void)!write(STDERR_FILENO, line, (size_t)n);
}
