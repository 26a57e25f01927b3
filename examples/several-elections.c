/*
 * several-elections: work that is divided into shards, each led by one of the instances that run.
 * One handle makes all elections: they share its threads and its lease, so that a thousand of them
 * cost one renewal.
 *
 *     cc several-elections.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * --once ends when each shard has a leader and ours have been worked on.
 */
#include <baton.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SHARDS 4

static volatile sig_atomic_t running = 1;

static void on_signal(int sig)
{
	(void)sig;
	running = 0;
}

static int open_shards(struct baton *b, struct baton_election **shards, struct baton_error *err)
{
	for (int i = 0; i < SHARDS; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "shard-%d", i);
		int code = baton_election_new(b, name, NULL, &shards[i], err);

		if (code == 0)
			code = baton_election_start(shards[i]);
		if (code != 0)
			return code;
	}
	return 0;
}

static void tell(const struct baton_event *event)
{
	const char *name = baton_election_name(event->election);

	if (event->kind == BATON_EVENT_BECAME)
		printf("%s is ours in term %" PRIu64 "\n", name, event->term);
	else if (event->kind == BATON_EVENT_LOST)
		printf("%s is ours no more: %s\n", name, event->text);
	else if (event->kind == BATON_EVENT_ERROR)
		printf("%s: %s %s\n", name, event->text, event->detail);
}

/* Works on all that are ours; returns for how many a leader is known, ours or another's. */
static int work(struct baton_election **shards)
{
	struct baton_status status;
	int known = 0;

	for (int i = 0; i < SHARDS; i++) {
		if (baton_is_leader(shards[i]))
			printf("%s: worked in term %" PRIu64 "\n", baton_election_name(shards[i]),
			       baton_term(shards[i]));
		known += baton_get_status(shards[i], &status) == 0 && status.leader[0] != '\0';
	}
	return known;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	struct baton_election *shards[SHARDS];
	struct baton_event event;
	struct baton_error err;
	struct baton *b;

	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int code = open_shards(b, shards, &err);

	if (code != 0)
		(void)fprintf(stderr, "%s: %s\n", baton_strerror(code), err.text);
	while (code == 0 && running) {
		while (baton_wait(b, 200, &event) == 1)
			tell(&event);
		if (work(shards) == SHARDS && once)
			break;
	}
	baton_close(b); /* stops and frees all elections of the handle */
	return code != 0;
}
