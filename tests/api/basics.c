/*
 * basics.c: a program from outside, in C99: includes all public headers and uses the basics. Built
 * against an installed baton, with every warning an error; takes a store's URL.
 */
#include <baton-memory.h>
#include <baton-store.h>
#include <baton.h>
#include <stdio.h>
#include <string.h>

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			return 1;                                                          \
		}                                                                          \
	} while (0)

static int work(struct baton_context *ctx, void *arg)
{
	uint64_t *term = arg;

	*term = baton_context_term(ctx);
	return baton_context_is_leader(ctx) && baton_context_time_left_ms(ctx) > 0 &&
			       !baton_context_wait(ctx, 1)
		       ? 7
		       : 8;
}

static int lead(struct baton *b, struct baton_election *e)
{
	struct baton_fence fence = {0};
	struct baton_status status;
	struct baton_event event;
	struct baton_stats stats;
	uint64_t term = 0;

	CHECK(baton_election_start(e) == 0);
	do
		CHECK(baton_wait(b, 10000, &event) == 1);
	while (event.kind != BATON_EVENT_BECAME);
	CHECK(event.election == e && event.term > 0);
	CHECK(baton_is_leader(e) && baton_term(e) == event.term);
	CHECK(baton_run_if_leader(e, work, &term) == 7 && term == event.term);
	CHECK(baton_fence_check(&fence, term) == BATON_OK);
	CHECK(baton_fence_check(&fence, term - 1) == BATON_E_STALE);
	CHECK(baton_get_status(e, &status) == 0 && status.state == BATON_STATE_LEADING);
	CHECK(strcmp(status.leader, baton_id(b)) == 0);
	CHECK(baton_get_stats(b, &stats) == 0 && stats.campaigns_won == 1);
	CHECK(baton_election_stop(e, 10000) == 0 && !baton_is_leader(e));
	CHECK(baton_run_if_leader(e, work, &term) == BATON_E_NOT_LEADER);
	return 0;
}

int main(int argc, char **argv)
{
	struct baton_election_options election_options;
	struct baton_options options;
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;
	char version[32];

	CHECK(argc == 2);
	snprintf(version, sizeof(version), "%d.%d.%d", BATON_VERSION_MAJOR, BATON_VERSION_MINOR,
		 BATON_VERSION_PATCH);
	CHECK(strcmp(baton_version(), version) == 0);
	CHECK(baton_open("nothing", NULL, &b, &err) == BATON_E_URL && err.text[0] != '\0');
	baton_options_init(&options);
	options.id = "outsider";
	CHECK(options.size == sizeof(options));
	CHECK(baton_open(argv[1], &options, &b, &err) == 0);
	baton_election_options_init(&election_options);
	CHECK(election_options.size == sizeof(election_options) &&
	      election_options.release_on_stop);
	CHECK(baton_election_new(b, "basics", &election_options, &e, &err) == 0);
	CHECK(lead(b, e) == 0);
	baton_close(b);
	printf("ok\n");
	return 0;
}
