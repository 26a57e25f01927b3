/*
 * log.c: what the command says on standard error: sentences for people, or one JSON object a line.
 * A line is one write(2), so that lines of several processes don't mix. `baton run` must never wait
 * for the reader of these lines (L7): lines that there is no room for are counted, and the count is
 * said later.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "cli/cli.h"
#include "telemetry/trace.h"

static int log_level = BATON_LOG_INFO;
static int log_format = LOG_TEXT;
static const char *log_election; /* the election that all lines are about */
static int log_fd = STDERR_FILENO;
static bool log_is_socket;
static bool log_waits = true;
static atomic_uint log_n_unsaid; /* lines, of any thread */
static atomic_ullong log_n_lost; /* all of them, also those that were said meanwhile */
static const char *const level_names[] = {"", "error", "warn", "info", "debug"};

/* The span that lines about an election belong to; it stays until the next one comes. Any thread
 * writes lines. */
struct log_span {
	struct name_node node;
	char trace[33]; /* hex */
	char span[17];
	char election[];
};
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* of the table */
static struct name_table log_spans;

struct log_line {
	int level;
	const char *election; /* NULL: none, or the one that all is about */
	uint64_t term;        /* 0: none */
	const char *message;
	const char *detail;  /* NULL: none */
	bool names_election; /* the message itself names it */
};

static void emit_line(const struct log_line *l);

void log_guess(char **argv)
{
	const char *set = getenv("BATON_LOG_FORMAT");

	if (set != NULL && strcmp(set, "json") == 0)
		log_format = LOG_JSON;
	for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, "--json") == 0 || strcmp(*argv, "--log-format=json") == 0 ||
		    (strcmp(*argv, "--log-format") == 0 && argv[1] != NULL &&
		     strcmp(argv[1], "json") == 0))
			log_format = LOG_JSON;
}

void log_setup(const struct settings *s)
{
	log_level = (int)s->log_level;
	/* Errors are said in the form that was asked for. The output of run is its command's, so
	 * there --json changes nothing but the log. */
	log_format = s->json != 0 ? LOG_JSON : (int)s->log_format;
	log_election = s->name;
}

void log_never_wait(void)
{
	struct stat st = {0};
	int fd = -1;

	(void)fstat(STDERR_FILENO, &st);
	/* O_NONBLOCK on the descriptor that we were given would hold for the child as well. */
	if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO) == 1)
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		log_fd = fd;
	log_is_socket = S_ISSOCK(st.st_mode);
	log_waits = false;
}

uint64_t log_n_dropped(void)
{
	return atomic_load(&log_n_lost);
}

bool log_is_json(void)
{
	return log_format == LOG_JSON;
}

/* With the lock. NULL: no memory. */
static struct log_span *span_of(const char *election)
{
	struct log_span *s = (struct log_span *)name_table_find(&log_spans, election);

	if (s != NULL || name_table_reserve(&log_spans) != 0)
		return s;
	s = calloc(1, sizeof(*s) + strlen(election) + 1);
	if (s != NULL)
		name_table_add(&log_spans, &s->node, strcpy(s->election, election));
	return s;
}

void log_trace(const char *election, const uint8_t trace[16], const uint8_t span[8])
{
	(void)pthread_mutex_lock(&log_lock);
	struct log_span *s = span_of(election);

	if (s != NULL) {
		trace_hex(trace, 16, s->trace);
		trace_hex(span, 8, s->span);
	}
	(void)pthread_mutex_unlock(&log_lock);
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
	emit_line(&(struct log_line){.level = level, .message = text});
}

void log_say_of(int level, const char *election, uint64_t term, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (level > log_level)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit_line(&(struct log_line){.level = level,
				     .election = election,
				     .term = term,
				     .message = text,
				     .names_election = true});
}

void log_record(void *arg, const struct baton_log_record *record)
{
	int level = record->level;

	(void)arg;
	/* The verbs tell the election's course in their own words. */
	if (level == BATON_LOG_INFO)
		level = BATON_LOG_DEBUG;
	if (level > log_level || record->message == NULL)
		return;
	emit_line(&(struct log_line){.level = record->level,
				     .election = record->election,
				     .term = record->term,
				     .message = record->message,
				     .detail = record->detail});
}

int cli_usage(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit_line(&(struct log_line){.level = BATON_LOG_ERROR, .message = text});
	return EXIT_USAGE;
}

int cli_out_of_range(const char *option, int64_t value, int64_t min, int64_t max)
{
	if (max == INT64_MAX)
		return cli_usage("%s: \"%lld\" is out of range; expected %lld or more", option,
				 (long long)value, (long long)min);
	return cli_usage("%s: \"%lld\" is out of range; expected %lld to %lld", option,
			 (long long)value, (long long)min, (long long)max);
}

static void write_span(FILE *out, const char *election)
{
	(void)pthread_mutex_lock(&log_lock);
	const struct log_span *s = (struct log_span *)name_table_find(&log_spans, election);

	if (s != NULL)
		(void)fprintf(out, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"", s->trace, s->span);
	(void)pthread_mutex_unlock(&log_lock);
}

static void write_json(FILE *out, const struct log_line *l)
{
	const char *election = l->election != NULL ? l->election : log_election;
	char time[40];

	(void)fprintf(out, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":",
		      text_utc(clock_wall_ms(), time, sizeof(time)), level_names[l->level]);
	text_json(out, l->message);
	if (election != NULL) {
		(void)fprintf(out, ",\"election\":");
		text_json(out, election);
	}
	if (l->term != 0)
		(void)fprintf(out, ",\"term\":%llu", (unsigned long long)l->term);
	if (l->detail != NULL && l->detail[0] != '\0') {
		(void)fprintf(out, ",\"detail\":");
		text_json(out, l->detail);
	}
	if (election != NULL)
		write_span(out, election);
	(void)fprintf(out, "}\n");
}

/* The length of the line; 0: there is no memory. */
static size_t compose_line(char *line, size_t size, const struct log_line *l)
{
	const char *election = l->names_election ? NULL : l->election;
	FILE *out = fmemopen(line, size, "w");

	if (out == NULL)
		return 0;
	if (log_format == LOG_JSON) {
		write_json(out, l);
	} else {
		(void)fprintf(out, "baton: %s%s%s", election != NULL ? election : "",
			      election != NULL ? ": " : "", l->message);
		if (l->detail != NULL && l->detail[0] != '\0')
			(void)fprintf(out, " (%s)", l->detail);
		(void)fputc('\n', out);
	}
	(void)fflush(out);
	long n = ftell(out);

	(void)fclose(out);
	return n > 0 ? (size_t)n : 0;
}

/* False: it was not written, or not all of it. */
static bool put(const char *line, size_t n)
{
	struct pollfd out = {.fd = log_fd, .events = POLLOUT};

	if (log_is_socket)
		return send(log_fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
	/* A pipe of another user may not have been opened anew; but if it has any room, it has room
	 * for a line. */
	if (!log_waits && (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0))
		return false;
	return write(log_fd, line, n) == (ssize_t)n;
}

static void drop_line(unsigned n_before)
{
	(void)atomic_fetch_add(&log_n_unsaid, n_before + 1);
	(void)atomic_fetch_add(&log_n_lost, 1);
}

static void emit_line(const struct log_line *l)
{
	char line[PIPE_BUF];
	char text[64];
	const struct log_line unsaid = {.level = BATON_LOG_WARN, .message = text};
	unsigned n_unsaid = atomic_exchange(&log_n_unsaid, 0);

	if (n_unsaid > 0) {
		(void)snprintf(text, sizeof(text), "%u line%s could not be written", n_unsaid,
			       n_unsaid == 1 ? "" : "s");
		if (!put(line, compose_line(line, sizeof(line), &unsaid))) {
			drop_line(n_unsaid);
			return;
		}
	}
	if (!put(line, compose_line(line, sizeof(line), l)))
		drop_line(0);
}
