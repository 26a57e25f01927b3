/*
 * queue-consumer: one instance takes messages off a queue that must be worked on in order. When
 * it loses the leadership in the middle of a message, it stops and puts the message back.
 *
 *     cc queue-consumer.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * baton_run_when_elected() calls consume() whenever we lead. --once ends with the queue, and gives
 * the leadership up in the middle of the second message, to show what happens then.
 */
#include <baton.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MESSAGES 3
#define STEPS 5

/* ---- stands for your queue ---- */

static int queue[MESSAGES] = {1, 2, 3};
static int first, n = MESSAGES;

static int take(void)
{
	int message = queue[first];

	first = (first + 1) % MESSAGES;
	n--;
	return message;
}

/* To the front: nack with requeue, or a rollback of the transaction that took it. */
static void put_back(int message)
{
	first = (first + MESSAGES - 1) % MESSAGES;
	queue[first] = message;
	n++;
}

/* ---- the program ---- */

struct consumer {
	struct baton_election *election;
	bool once;
	bool gave_up;
};

/* True: done. False: the leadership ended first, and the message must not be touched any more. */
static bool work_on(struct baton_context *ctx, int message, struct consumer *c)
{
	for (int step = 1; step <= STEPS; step++) {
		if (c->once && message == 2 && step == 3 && !c->gave_up) {
			c->gave_up = true;
			(void)baton_resign(c->election, 100); /* and let others try for 0.1 s */
		}
		if (baton_context_wait(ctx, 10)) /* the work of one step */
			return false;
	}
	return true;
}

static int consume(struct baton_context *ctx, void *arg)
{
	struct consumer *c = arg;

	printf("leads in term %" PRIu64 "\n", baton_context_term(ctx));
	while (baton_context_is_leader(ctx)) {
		if (n == 0) {
			if (c->once) {
				printf("the queue is empty\n");
				(void)baton_election_stop(c->election, 0);
				return 0;
			}
			(void)baton_context_wait(ctx, 100);
			continue;
		}
		int message = take();

		if (work_on(ctx, message, c)) {
			printf("message %d: done\n", message);
		} else {
			put_back(message);
			printf("message %d: leadership lost, put back\n", message);
		}
	}
	return 0; /* the next leader may begin from here on, and not before */
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	struct consumer c = {.once = once};
	struct baton_error err;
	struct baton *b;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (baton_election_new(b, "queue", NULL, &c.election, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(b);
		return 1;
	}
	int code = baton_run_when_elected(c.election, consume, &c, NULL);

	if (code != 0)
		(void)fprintf(stderr, "%s\n", baton_strerror(code));
	baton_close(b);
	return code != 0;
}
