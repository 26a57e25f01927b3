/*
 * scheduled-job: the same program runs on every machine; at each full minute the job runs once.
 *
 *     cc scheduled-job.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * baton_run_if_leader() runs the job only if we lead, cancels it when we no longer do, and keeps
 * the leadership from passing on before the job has returned. --once runs it at the next full
 * second, and ends.
 */
#include <baton.h>
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

static int64_t wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * The job, in steps that can stop. Which run was the last one to be finished belongs with the
 * job's data (a row: job, run, term), so that a new leader neither skips nor repeats one.
 */
static int job(struct baton_context *ctx, void *arg)
{
	const int64_t *run = arg;

	printf("run %" PRId64 " begins in term %" PRIu64 "\n", *run, baton_context_term(ctx));
	for (int step = 1; step <= 3; step++) {
		/* The work of one step; sleep like this, and you wake up when the lead is lost. */
		if (baton_context_wait(ctx, 10)) {
			printf("run %" PRId64 " stops before step %d: we don't lead any more\n",
			       *run, step);
			return 1;
		}
	}
	printf("run %" PRId64 " is done\n", *run);
	return 0;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	const int64_t period_ms = once ? 1000 : 60000;
	int64_t run = wall_ms() / period_ms + 1;
	struct baton_election *e;
	struct baton_event event;
	struct baton_error err;
	struct baton *b;

	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (baton_election_new(b, "nightly-report", NULL, &e, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(b);
		return 1;
	}
	(void)baton_election_start(e);
	while (running) {
		int64_t left_ms = run * period_ms - wall_ms();

		if (left_ms > 0) {
			(void)baton_wait(b, left_ms < 500 ? left_ms : 500, &event);
			continue;
		}
		int result = baton_run_if_leader(e, job, &run);

		if (result == BATON_E_NOT_LEADER)
			printf("run %" PRId64 " is another's\n", run);
		if (once && result == 0)
			break;
		run = wall_ms() / period_ms + 1;
	}
	baton_close(b);
	return 0;
}
