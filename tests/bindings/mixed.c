/*
 * mixed.c: the C candidate of the mixed election (tests/bindings/mixed): says each yes of
 * baton_is_leader(), with the instants before and after the question, as the drivers of the other
 * languages do in the mode `spin`.
 *
 *     mixed URL NAME LEASE_MS
 *
 * A line "resign" on its standard input steps down. It ends when its standard input ends.
 */
#include <baton.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* One question; a yes is said. */
static void ask(struct baton_election *e)
{
	uint64_t t0 = now_ns();
	uint64_t term = baton_term(e);
	uint64_t t1 = now_ns();

	if (term != 0) {
		printf("! yes e %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", term, t0, t1);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct baton_options o;
	struct baton_event event;
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;
	char word[32];
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

	baton_options_init(&o);
	o.lease_ms = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	o.retry_ms = 100;
	if (argc != 4 || baton_open(argv[1], &o, &b, &err) != 0 ||
	    baton_election_new(b, argv[2], NULL, &e, &err) != 0) {
		fprintf(stderr, "mixed: %s\n", argc == 4 ? err.text : "URL NAME LEASE_MS");
		return 1;
	}
	baton_election_start(e);
	for (;;) {
		ask(e);
		/* Asking for the next one says that its work has ended. */
		while (baton_wait(b, 1, &event) > 0)
			ask(e);
		if (poll(&fd, 1, 0) == 0)
			continue;
		if (read(STDIN_FILENO, word, sizeof(word)) <= 0)
			break;
		baton_resign(e, 0);
	}
	baton_close(b);
	return 0;
}
