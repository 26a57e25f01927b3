/*
 * singleton-service: a service that must run exactly once; start it wherever you like, as often as
 * you like. SIGTERM ends it in order: the work stops, then another instance leads at once.
 *
 *     cc -pthread singleton-service.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * baton_run_when_elected() blocks the main thread; a thread of its own waits for signals.
 * --once ends after a few turns as leader.
 */
#include <baton.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct service {
	struct baton_election *election;
	sigset_t signals;
	bool once;
};

static int serve(struct baton_context *ctx, void *arg)
{
	const struct service *s = arg;

	printf("%d leads in term %" PRIu64 "\n", (int)getpid(), baton_context_term(ctx));
	/* Here you would open a port, or poll baton_context_fd() beside your own descriptors. */
	for (int turn = 1; !baton_context_wait(ctx, 50); turn++) {
		printf("%d works\n", (int)getpid());
		if (s->once && turn == 5) {
			(void)baton_election_stop(s->election, 0); /* 0: the work is us */
			break;
		}
	}
	/* What was open is closed before we return: then another may begin. */
	printf("%d stops\n", (int)getpid());
	return 0;
}

static void *wait_for_signal(void *arg)
{
	const struct service *s = arg;
	int sig;

	if (sigwait(&s->signals, &sig) == 0)
		(void)baton_election_stop(s->election, 0); /* serve() is cancelled and returns */
	return NULL;
}

static int run(struct service *s)
{
	struct baton_run_options o;
	pthread_t thread;

	baton_run_options_init(&o);
	o.quiet_ms = 1000; /* after serve() has returned */
	if (pthread_create(&thread, NULL, wait_for_signal, s) != 0)
		return BATON_E_SYSTEM;
	int code = baton_run_when_elected(s->election, serve, s, &o);

	(void)pthread_kill(thread, SIGINT); /* if it still waits */
	(void)pthread_join(thread, NULL);
	return code;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	struct service s = {.once = once};
	struct baton_error err;
	struct baton *b;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	/* Before baton_open(): its threads inherit the mask, and so never take our signals. */
	(void)sigemptyset(&s.signals);
	(void)sigaddset(&s.signals, SIGTERM);
	(void)sigaddset(&s.signals, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &s.signals, NULL);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%d is %s\n", (int)getpid(), baton_id(b));
	int code = baton_election_new(b, "singleton", NULL, &s.election, &err);

	if (code != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
	} else {
		code = run(&s);
		if (code != 0)
			(void)fprintf(stderr, "%s\n", baton_strerror(code));
	}
	baton_close(b);
	return code != 0;
}
