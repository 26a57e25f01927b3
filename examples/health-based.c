/*
 * health-based: only an instance that is well may lead. One that falls ill steps down by itself,
 * and contends again when it has recovered.
 *
 *     cc health-based.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * Events come to a handler here, on a thread of the library. --once falls ill and recovers once.
 */
#include <baton.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct instance {
	sem_t changed; /* posted by the handler: we lead, or lead no more */
	bool once;
};

static void on_event(void *arg, const struct baton_event *event)
{
	struct instance *in = arg;

	if (event->kind == BATON_EVENT_BECAME)
		printf("leads in term %" PRIu64 "\n", event->term);
	else if (event->kind == BATON_EVENT_LOST)
		/* Here the work is stopped: when this function has returned, it counts as ended. */
		printf("leads no more: %s\n", event->text);
	else
		return;
	(void)sem_post(&in->changed);
}

static void show(void *arg, const struct baton_candidate *c)
{
	(void)arg;
	printf("candidate %s: score %.2f, %s%s, %s\n", c->id, c->score_permille / 1000.0,
	       c->is_healthy ? "healthy" : "ill", c->is_leader ? ", leads" : "", c->metadata);
}

static void list(struct baton *b)
{
	struct baton_error err;

	if (baton_list_candidates(b, "health", show, NULL, &err) < 0)
		(void)fprintf(stderr, "%s\n", err.text);
}

/* How well we are, 0 to 1000: here by the machine's load, in earnest by checks of yours. */
static uint32_t measure(void)
{
	double load;

	return getloadavg(&load, 1) == 1 && load > 8.0 * (double)sysconf(_SC_NPROCESSORS_ONLN)
		       ? 300
		       : 1000;
}

static void live(struct baton *b, struct baton_election *e, struct instance *in)
{
	while (!in->once) {
		(void)baton_report_health(e, measure(), NULL);
		(void)sleep(1);
	}
	(void)sem_wait(&in->changed); /* until we lead */
	(void)baton_report_health(e, 300, "database: 9 of 10 queries fail");
	(void)sem_wait(&in->changed); /* until we don't */
	(void)baton_report_health(e, 1000, "all well");
	(void)sem_wait(&in->changed); /* until we lead again */
	list(b);
}

int main(int argc, char **argv)
{
	struct baton_election_options options;
	struct instance in = {.once = argc > 1 && strcmp(argv[1], "--once") == 0};
	const char *url = argc > 1 + in.once ? argv[1 + in.once] : "file:/tmp/baton-examples";
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)sem_init(&in.changed, 0, 0);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	baton_election_options_init(&options);
	options.metadata = "just started";
	options.min_score_permille = 800; /* less than this: neither campaigns nor leads */
	options.handler = on_event;
	options.handler_arg = &in;
	int code = baton_election_new(b, "health", &options, &e, &err);

	if (code != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
	} else {
		(void)baton_election_start(e);
		live(b, e, &in);
	}
	baton_close(b); /* calls the handler of LOST, and waits for it */
	(void)sem_destroy(&in.changed);
	return code != 0;
}
