/*
 * log.c: what the command says on standard error: sentences for people, or one JSON object a line.
 * A line is one write(2), so that lines of several processes don't mix. `baton run` must never wait
 * for who reads them (L7): what there is no room for is counted, and the count is said later.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "telemetry/trace.h"

static int log_level = BATON_LOG_INFO;
static int log_format = LOG_TEXT;
static const char *log_election; /* which all is about */
static int log_fd = STDERR_FILENO;
static bool log_is_socket;
static bool log_waits = true;
static atomic_uint log_n_unsaid; /* lines, of any thread */
/* Hex of trace and span. A line may be written by another thread while the next one comes: so there
 * are several, and the old ones stay for a while. */
#define TRACES 8
static char log_traces[TRACES][2][33];
static atomic_uint log_n_traces;
static const char *const level_names[] = {"", "error", "warn", "info", "debug"};

static void emit_line(int level, const char *election, uint64_t term, const char *message,
		      const char *detail);

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
	/* What goes wrong is said in the form that was asked for. The output of run is its
	 * command's: there it is all that --json changes. */
	log_format = s->json != 0 ? LOG_JSON : (int)s->log_format;
	log_election = s->name;
}

void log_never_wait(void)
{
	struct stat st = {0};
	int fd = -1;

	(void)fstat(STDERR_FILENO, &st);
	/* O_NONBLOCK on what we were given would be the child's as well. */
	if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO) == 1)
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		log_fd = fd;
	log_is_socket = S_ISSOCK(st.st_mode);
	log_waits = false;
}

void log_trace(const uint8_t trace[16], const uint8_t span[8])
{
	unsigned n = atomic_load(&log_n_traces) + 1;

	trace_hex(trace, 16, log_traces[n % TRACES][0]);
	trace_hex(span, 8, log_traces[n % TRACES][1]);
	atomic_store(&log_n_traces, n);
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
	emit_line(level, NULL, 0, text, NULL);
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
	emit_line(record->level, record->election, record->term, record->message, record->detail);
}

int cli_usage(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit_line(BATON_LOG_ERROR, NULL, 0, text, NULL);
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
	unsigned n = atomic_load(&log_n_traces);

	if (n != 0)
		(void)fprintf(out, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"",
			      log_traces[n % TRACES][0], log_traces[n % TRACES][1]);
	(void)fprintf(out, "}\n");
}

/* The length of the line; 0: there is no memory. */
static size_t compose_line(char *line, size_t size, int level, const char *election, uint64_t term,
			   const char *message, const char *detail)
{
	FILE *out = fmemopen(line, size, "w");

	if (out == NULL)
		return 0;
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
	return n > 0 ? (size_t)n : 0;
}

/* False: it was not written, or not all of it. */
static bool put(const char *line, size_t n)
{
	struct pollfd out = {.fd = log_fd, .events = POLLOUT};

	if (log_is_socket)
		return send(log_fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
	/* Another user's may not be opened anew; but a pipe with any room has it for a line. */
	if (!log_waits && (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0))
		return false;
	return write(log_fd, line, n) == (ssize_t)n;
}

static void emit_line(int level, const char *election, uint64_t term, const char *message,
		      const char *detail)
{
	char line[PIPE_BUF];
	char text[64];
	unsigned n_unsaid = atomic_exchange(&log_n_unsaid, 0);

	if (n_unsaid > 0) {
		(void)snprintf(text, sizeof(text), "%u line%s could not be written", n_unsaid,
			       n_unsaid == 1 ? "" : "s");
		if (!put(line,
			 compose_line(line, sizeof(line), BATON_LOG_WARN, NULL, 0, text, NULL))) {
			(void)atomic_fetch_add(&log_n_unsaid, n_unsaid + 1);
			return;
		}
	}
	if (!put(line, compose_line(line, sizeof(line), level, election, term, message, detail)))
		(void)atomic_fetch_add(&log_n_unsaid, 1);
}
