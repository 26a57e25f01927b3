/*
 * worker-pool: the leader works on several threads. Each thread binds its work to the leadership,
 * and the leadership is handed over when the last thread has left.
 *
 *     cc -pthread worker-pool.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * One thread takes events, others work: so taking LOST must not mean that the work has ended
 * (drain_by_hand). --once ends when each thread has done a few steps.
 */
#include <baton.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 4
#define STEPS 5 /* of each worker, with --once */

static volatile sig_atomic_t running = 1;

struct pool {
	struct baton *baton;
	struct baton_election *election;
	sem_t elected; /* posted for each worker when this instance is elected, and at the end */
	atomic_int inside; /* workers with an open context */
	atomic_int ready;  /* with --once: workers that have done their steps */
	bool once;
};

static void on_signal(int sig)
{
	(void)sig;
	running = 0;
}

static void wake(struct pool *p)
{
	for (int i = 0; i < WORKERS; i++)
		(void)sem_post(&p->elected);
}

static void work(struct pool *p, struct baton_context *ctx)
{
	/* Your work, in short steps: it ends when the leadership does. */
	for (int step = 1; !baton_context_wait(ctx, 50); step++) {
		if (p->once && step > STEPS)
			continue;
		printf("%d works\n", (int)getpid());
		if (step == STEPS)
			(void)atomic_fetch_add(&p->ready, 1);
	}
}

static void *worker(void *arg)
{
	struct pool *p = arg;
	struct baton_context *ctx;

	while (sem_wait(&p->elected) == 0 && running) {
		if (baton_enter(p->election, &ctx, NULL) != 0)
			continue; /* the leadership was over before this thread came */
		(void)atomic_fetch_add(&p->inside, 1);
		work(p, ctx);
		if (atomic_fetch_sub(&p->inside, 1) == 1)
			printf("%d stops\n", (int)getpid());
		baton_leave(ctx); /* when all have left, another instance may lead */
	}
	return NULL;
}

static void take(struct pool *p, const struct baton_event *event)
{
	if (event->kind == BATON_EVENT_BECAME) {
		printf("%d leads in term %" PRIu64 "\n", (int)getpid(), event->term);
		wake(p);
	} else if (event->kind == BATON_EVENT_LOST) {
		/* No thread enters any more. Those that are inside keep the leadership until they
		 * have left. */
		(void)baton_drained(p->election, event->term);
	}
	/* The next event may come, whichever thread takes it. */
	(void)baton_event_done(p->baton, event->token);
}

static void live(struct pool *p)
{
	struct baton_event event;

	(void)baton_election_start(p->election);
	while (running && !(p->once && atomic_load(&p->ready) == WORKERS))
		if (baton_wait(p->baton, 50, &event) == 1)
			take(p, &event);
	running = 0;
	(void)baton_election_stop(p->election, 0); /* 0: the workers still have to leave */
	wake(p);
}

static int run(struct pool *p)
{
	pthread_t threads[WORKERS];
	int n = 0;

	(void)sem_init(&p->elected, 0, 0);
	while (n < WORKERS && pthread_create(&threads[n], NULL, worker, p) == 0)
		n++;
	if (n == WORKERS) {
		live(p);
	} else {
		running = 0;
		wake(p);
	}
	for (int i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	(void)sem_destroy(&p->elected);
	return n == WORKERS ? 0 : BATON_E_SYSTEM;
}

int main(int argc, char **argv)
{
	struct baton_election_options options;
	struct pool p = {.once = argc > 1 && strcmp(argv[1], "--once") == 0};
	const char *url = argc > 1 + p.once ? argv[1 + p.once] : "file:/tmp/baton-examples";
	struct baton_error err;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	if (baton_open(url, NULL, &p.baton, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("%d is %s\n", (int)getpid(), baton_id(p.baton));
	baton_election_options_init(&options);
	options.drain_by_hand = true;
	int code = baton_election_new(p.baton, "pool", &options, &p.election, &err);

	if (code != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
	} else {
		code = run(&p);
		if (code != 0)
			(void)fprintf(stderr, "%s\n", baton_strerror(code));
	}
	baton_close(p.baton); /* gives the leadership back */
	return code != 0;
}
