/*
 * outbox-publisher: many instances of a service write messages into an outbox, in the same
 * transaction as their data; one of them publishes what is there, in order.
 *
 *     cc outbox-publisher.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * The plainest way to use baton: a loop that asks baton_is_leader() before each piece of work.
 * --once ends when the outbox is empty.
 */
#include <baton.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t running = 1;

static void on_signal(int sig)
{
	(void)sig;
	running = 0;
}

/* ---- stands for your database and your broker ---- */

static const char *const outbox[] = {"order 1 placed", "order 1 paid", "order 1 shipped"};
static size_t n_published;

/* SELECT ... FROM outbox WHERE published IS NULL ORDER BY id LIMIT 1 */
static const char *next_message(void)
{
	return n_published < sizeof(outbox) / sizeof(outbox[0]) ? outbox[n_published] : NULL;
}

/*
 * Sends it, and then marks it as sent. Who dies in between leaves it to be sent again by its
 * successor: at least once. The term goes along, so that a receiver can refuse what an old leader
 * had on its way (see projection.c).
 */
static void publish(const char *message, uint64_t term)
{
	printf("published in term %" PRIu64 ": %s\n", term, message);
	n_published++;
}

/* ---- the program ---- */

/* Publishes while there is something to publish and we lead. */
static void publish_all(struct baton_election *e)
{
	const char *message;

	while ((message = next_message()) != NULL) {
		uint64_t term = baton_term(e); /* 0 unless we lead at this very moment */

		if (term == 0)
			return;
		publish(message, term);
	}
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
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
	if (baton_election_new(b, "outbox", NULL, &e, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(b);
		return 1;
	}
	(void)baton_election_start(e);
	while (running && !(once && next_message() == NULL)) {
		publish_all(e);
		/* Sleeps until something happens in the election, or it is time to look again. */
		if (baton_wait(b, 200, &event) == 1 && event.kind == BATON_EVENT_ERROR)
			(void)fprintf(stderr, "%s %s\n", event.text, event.detail);
	}
	baton_close(b); /* steps down and gives the leadership back: the next one leads at once */
	return 0;
}
