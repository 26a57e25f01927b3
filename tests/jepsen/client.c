/*
 * client.c: one candidate of Jepsen's experiment: while it leads, it adds elements to a set, by
 * reading all of it, thinking for a moment, and writing all of it. It asks whether it leads before
 * each such piece of work, as it should; whoever stops it while it thinks shows what that is worth.
 *
 *     jepsen_client STORE-URL RESOURCE-URL NAME NUMBER fenced|plain
 *
 * Its output is the history: `leads TERM`, then for each element `+ N` (acknowledged), `- N`
 * (refused: it isn't there) or `? N` (nobody knows).
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baton.h"
#include "resource.h"

#define LEASE_MS 2000
#define THINK_MS 25
#define PER_CLIENT 10000000u

static volatile sig_atomic_t is_over;

static void stop(int sig)
{
	(void)sig;
	is_over = 1;
}

struct client {
	const struct resource_ops *ops;
	struct resource resource;
	const char *url; /* of the resource */
	uint64_t next;   /* element */
	uint64_t term;   /* that was told */
};

/* One element; the answer is about its write. */
static enum answer add(struct client *c, uint64_t term, uint64_t element)
{
	static char value[VALUE_MAX];
	enum answer read = c->ops->read(&c->resource, term, value);
	size_t n = strlen(value);

	if (read != ANSWER_OK)
		return read == ANSWER_REFUSED ? ANSWER_REFUSED : ANSWER_UNKNOWN;
	(void)poll(NULL, 0, THINK_MS);
	(void)snprintf(value + n, sizeof(value) - n, "%s%" PRIu64, n > 0 ? " " : "", element);
	return c->ops->write(&c->resource, term, value);
}

static void work(struct client *c, const struct baton_election *e)
{
	uint64_t term = baton_term(e);

	if (!baton_is_leader(e) || term == 0)
		return;
	if (term != c->term)
		printf("leads %" PRIu64 "\n", term);
	c->term = term;
	uint64_t element = c->next++;
	enum answer answer = add(c, term, element);

	printf("%c %" PRIu64 "\n", "+-?"[answer], element);
	if (answer == ANSWER_UNKNOWN) {
		c->ops->close(&c->resource);
		(void)c->ops->open(&c->resource, c->url);
	}
}

static int run(struct client *c, const char *store, const char *name)
{
	struct baton_options options;
	struct baton_error err = {0};
	struct baton_event event;
	struct baton_election *e;
	struct baton *b;

	baton_options_init(&options);
	options.lease_ms = LEASE_MS;
	if (baton_open(store, &options, &b, &err) != 0 ||
	    baton_election_new(b, name, NULL, &e, &err) != 0 || baton_election_start(e) != 0) {
		(void)fprintf(stderr, "jepsen_client: %s\n", err.text);
		return 1;
	}
	while (!is_over) {
		(void)baton_wait(b, baton_is_leader(e) ? 0 : 20, &event);
		work(c, e);
	}
	baton_close(b);
	return 0;
}

int main(int argc, char **argv)
{
	struct client c = {.ops = &resource_redis};

	if (argc != 6) {
		(void)fprintf(stderr, "usage: jepsen_client STORE-URL RESOURCE-URL NAME NUMBER "
				      "fenced|plain\n");
		return 64;
	}
	if (strncmp(argv[2], "postgres", 8) == 0)
		c.ops = &resource_postgres;
	c.url = argv[2];
	c.resource.name = argv[3];
	c.resource.is_fenced = strcmp(argv[5], "fenced") == 0;
	c.next = strtoull(argv[4], NULL, 10) * PER_CLIENT;
	if (c.ops->open == NULL || !c.ops->open(&c.resource, c.url)) {
		(void)fprintf(stderr, "jepsen_client: %s can't be reached\n", c.url);
		return 1;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)signal(SIGTERM, stop);
	return run(&c, argv[1], argv[3]);
}
