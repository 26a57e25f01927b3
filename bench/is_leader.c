/*
 * is_leader.c: what one question costs, beside a bare clock read, with another thread asking, too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "bench.h"

static _Atomic bool stop_others;
static volatile uint64_t sink; /* so that nothing is left out */

static void *ask_on(void *arg)
{
	const struct baton_election *e = arg;
	uint64_t yes = 0;

	while (!atomic_load(&stop_others))
		for (int i = 0; i < 1000; i++)
			yes += baton_is_leader(e);
	sink = yes;
	return NULL;
}

static double ns_of_clock(uint64_t times)
{
	uint64_t sum = 0;
	uint64_t began_ns = bench_now_ns();

	for (uint64_t i = 0; i < times; i++) {
		struct timespec t;

		(void)clock_gettime(CLOCK_BOOTTIME, &t);
		sum += (uint64_t)t.tv_nsec;
	}
	sink = sum;
	return (double)(bench_now_ns() - began_ns) / (double)times;
}

static double ns_of_question(const struct baton_election *e, uint64_t times)
{
	uint64_t yes = 0;
	uint64_t began_ns = bench_now_ns();

	for (uint64_t i = 0; i < times; i++)
		yes += baton_is_leader(e);
	sink = yes;
	return (double)(bench_now_ns() - began_ns) / (double)times;
}

void bench_is_leader(bool quick)
{
	struct baton *b = bench_open("memory:is-leader", "asker");
	struct baton_election *e = bench_election(b, "question");
	uint64_t times = quick ? 100000 : 1000000;
	struct samples clock_ns;
	struct samples question_ns;
	pthread_t other;
	char beside[96];

	samples_init(&clock_ns);
	samples_init(&question_ns);
	(void)baton_election_start(e);
	bench_until_leader(b, e);
	if (pthread_create(&other, NULL, ask_on, e) != 0)
		bench_die("No thread is left.");
	for (int i = 0; i < 10; i++) { /* in turns, so that both meet the same noise */
		samples_add(&clock_ns, (uint64_t)(ns_of_clock(times) * 1000));
		samples_add(&question_ns, (uint64_t)(ns_of_question(e, times) * 1000));
	}
	atomic_store(&stop_others, true);
	(void)pthread_join(other, NULL);
	double clock = (double)samples_at(&clock_ns, 50) / 1000;
	double question = (double)samples_at(&question_ns, 50) / 1000;

	(void)snprintf(beside, sizeof(beside), "%.1f ns; a bare clock_gettime: %.1f ns", question,
		       clock);
	row("is_leader / clock read", question / clock, 1.3, "x", beside);
	samples_done(&clock_ns);
	samples_done(&question_ns);
	baton_close(b);
}
