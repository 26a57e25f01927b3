/*
 * deadline-file: this program contends, and other processes of the host do the work. A file tells
 * them in which term they may work, and until when. "0 0" means: not now.
 *
 *     cc deadline-file.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE [FILE]]
 *
 * Before each step, such a process compares the deadline with its own CLOCK_BOOTTIME. In a shell:
 *
 *     read -r term deadline <FILE && read -r up rest </proc/uptime
 *     [ "$deadline" -gt "${up/./}0000000" ] && work_a_little "$term"
 *
 * FILE belongs on a tmpfs, because this clock starts anew with each boot. FILE has one writer: two
 * instances on one host need two files. `baton serve` is the ready-made form: it keeps a page in
 * shared memory that any process reads without a call (baton_page_open()), and tells deadlines over
 * HTTP. --once resigns after the first renewal.
 */
#include <baton.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t running = 1;

static void on_signal(int sig)
{
	(void)sig;
	running = 0;
}

/* ---- the file ---- */

struct notice {
	const char *path;
	char draft[4096];
	int64_t deadline_ns; /* the last one that a reader may have seen */
};

/* A reader finds the old line or the new one, because the rename is one step. If writing fails, the
 * old line stays, and its deadline is still true. */
static void notice_write(const struct notice *n, uint64_t term, int64_t deadline_ns)
{
	FILE *out = fopen(n->draft, "we");
	bool good = out != NULL && fprintf(out, "%" PRIu64 " %" PRId64 "\n", term, deadline_ns) > 0;

	if (out == NULL || fclose(out) != 0 || !good || rename(n->draft, n->path) != 0)
		perror(n->path);
}

/* Writes the deadline as it is now. Since the event, the leadership may have ended. */
static void notice_renew(struct notice *n, const struct baton_event *event)
{
	int64_t deadline_ns;

	if (baton_get_deadline(event->election, &deadline_ns, NULL) == 1 &&
	    baton_term(event->election) == event->term) {
		n->deadline_ns = deadline_ns;
		notice_write(n, event->term, deadline_ns);
	}
}

/* A reader may trust the last deadline until it has passed. */
static void notice_wait(const struct notice *n)
{
	const struct timespec until = {n->deadline_ns / 1000000000, n->deadline_ns % 1000000000};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* ---- the program ---- */

static void say(const struct baton_event *event)
{
	const char *kind = baton_event_name(event->kind);

	if (event->kind == BATON_EVENT_ERROR)
		printf("%s: %s\n", kind, event->text);
	else if (event->kind == BATON_EVENT_LOST)
		printf("%s: term %" PRIu64 ", %s\n", kind, event->term,
		       baton_reason_name(event->reason));
	else
		printf("%s: term %" PRIu64 "\n", kind, event->term);
}

static void contend(struct baton *b, struct notice *n, bool once)
{
	struct baton_event event;

	while (running) {
		if (baton_wait(b, 200, &event) != 1)
			continue;
		if (event.kind == BATON_EVENT_BECAME || event.kind == BATON_EVENT_RENEWED)
			notice_renew(n, &event);
		else if (event.kind == BATON_EVENT_LOST)
			notice_write(n, 0, 0);
		say(&event);
		if (event.kind == BATON_EVENT_LOST)
			notice_wait(n); /* the next baton_wait() says that the work has ended */
		if (once && event.kind == BATON_EVENT_RENEWED)
			(void)baton_resign(event.election, 0);
		else if (once && event.kind == BATON_EVENT_LOST)
			break;
	}
	notice_write(n, 0, 0);
	notice_wait(n);
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	const char *path = argc > 2 + once ? argv[2 + once] : "/dev/shm/baton-examples.deadline";
	struct baton_election_options election_options;
	struct notice n = {.path = path};
	struct baton_options options;
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	(void)snprintf(n.draft, sizeof(n.draft), "%s.new", path);
	baton_options_init(&options);
	options.lease_ms = 6000; /* so a deadline is at most 4 s ahead: renewal and grace */
	/* Readers live on if this process is killed. A store that sees the death (file:) would let
	 * the next candidate lead at once, while readers still trust the deadline. */
	options.outlive = true;
	if (baton_open(url, &options, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	baton_election_options_init(&election_options);
	election_options.tell_renewals = true;
	int code = baton_election_new(b, "deadline", &election_options, &e, &err);

	if (code != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
	} else {
		(void)baton_election_start(e);
		contend(b, &n, once);
	}
	baton_close(b); /* nobody works any more: the next candidate leads at once */
	return code != 0;
}
