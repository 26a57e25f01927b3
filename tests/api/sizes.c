/*
 * sizes.c: option structs of programs that are older or newer than the library: it never writes
 * beyond what it was told, takes what is longer if the rest is zero, and says so if it isn't.
 */
#include <baton.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			return 1;                                                          \
		}                                                                          \
	} while (0)

/* What programs have that were compiled with the first version of each struct. */
#define FIRST_OPTIONS offsetof(struct baton_options, trace)
#define FIRST_ELECTION offsetof(struct baton_election_options, drain_by_hand)
#define FIRST_RUN offsetof(struct baton_run_options, once)

union longer {
	struct baton_options options;
	struct baton_election_options election;
	struct baton_run_options run;
	unsigned char bytes[1024];
};

static bool untouched(const unsigned char *bytes, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (bytes[i] != 0xa5)
			return false;
	return true;
}

struct older {
	struct baton_election *e;
	uint64_t term;
};

static int work(struct baton_context *ctx, void *arg)
{
	struct older *o = arg;

	o->term = baton_context_term(ctx);
	return baton_election_stop(o->e, 0);
}

/* A program that was compiled with the first version of each struct opens, elects and runs. */
static int older(const char *url)
{
	union longer options, election, run;
	struct older o = {NULL, 0};
	struct baton_error err;
	struct baton *b;

	memset(&options, 0xa5, sizeof(options));
	baton_options_init_sized(&options.options, FIRST_OPTIONS);
	CHECK(options.options.size == FIRST_OPTIONS && options.options.lease_ms == 15000);
	CHECK(untouched(options.bytes, FIRST_OPTIONS, sizeof(options)));
	options.options.id = "older";
	memset(&election, 0xa5, sizeof(election));
	baton_election_options_init_sized(&election.election, FIRST_ELECTION);
	CHECK(election.election.size == FIRST_ELECTION && election.election.release_on_stop);
	CHECK(untouched(election.bytes, FIRST_ELECTION, sizeof(election)));
	memset(&run, 0xa5, sizeof(run));
	baton_run_options_init_sized(&run.run, FIRST_RUN);
	CHECK(untouched(run.bytes, FIRST_RUN, sizeof(run)));

	CHECK(baton_open(url, &options.options, &b, &err) == 0);
	CHECK(strcmp(baton_id(b), "older") == 0);
	CHECK(baton_election_new(b, "older", &election.election, &o.e, &err) == 0);
	CHECK(baton_run_when_elected(o.e, work, &o, &run.run) == 0 && o.term > 0);
	baton_close(b);

	/* One byte less than that, and there never was such a program. */
	options.options.size = FIRST_OPTIONS - 1;
	CHECK(baton_open(url, &options.options, &b, &err) == BATON_E_INVALID);
	return 0;
}

static int newer(const char *url)
{
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;
	union longer u;

	memset(&u, 0xa5, sizeof(u));
	baton_options_init_sized(&u.options, 512);
	CHECK(untouched(u.bytes, 512, sizeof(u)));
	CHECK(baton_open(url, &u.options, &b, &err) == 0);
	baton_election_options_init_sized(&u.election, 512);
	CHECK(baton_election_new(b, "sizes", &u.election, &e, &err) == 0);
	u.bytes[511] = 1; /* a field of the future is used */
	CHECK(baton_election_new(b, "more", &u.election, &e, &err) == BATON_E_UNSUPPORTED);
	baton_close(b);
	baton_options_init_sized(&u.options, 512);
	u.bytes[511] = 1;
	CHECK(baton_open(url, &u.options, &b, &err) == BATON_E_UNSUPPORTED);
	memset(&u, 0, sizeof(u)); /* never set up */
	CHECK(baton_open(url, &u.options, &b, &err) == BATON_E_INVALID);
	return 0;
}

/* Candidates into an array: as many as there is room for, each as large as it was then. */
static int candidates(const char *url)
{
	const size_t size = offsetof(struct baton_candidate, address);
	struct baton_candidate one[2];
	unsigned char bytes[sizeof(one)];
	struct baton_election *e;
	struct baton_event event;
	struct baton_error err;
	struct baton *b;

	CHECK(baton_open(url, NULL, &b, &err) == 0);
	CHECK(baton_election_new(b, "who", NULL, &e, &err) == 0 && baton_election_start(e) == 0);
	while (!baton_is_leader(e))
		CHECK(baton_wait(b, 30000, &event) == 1);
	while (baton_get_candidates(b, "who", one, 2, &err) == 0) /* it is published later */
		(void)baton_wait(b, 20, &event);
	CHECK(one[0].size == sizeof(one[0]) && strcmp(one[0].id, baton_id(b)) == 0);
	CHECK(one[0].is_leader && one[0].score_permille == 1000);
	memset(bytes, 0xa5, sizeof(bytes));
	CHECK(baton_get_candidates_sized(b, "who", (void *)bytes, 1, size, &err) == 1);
	CHECK(strcmp((char *)bytes + offsetof(struct baton_candidate, id), baton_id(b)) == 0);
	CHECK(untouched(bytes, size, sizeof(bytes)));
	CHECK(baton_get_candidates(b, "who", one, 0, &err) == 1);
	CHECK(baton_get_candidates_sized(b, "who", NULL, 1, size, &err) == BATON_E_INVALID);
	CHECK(baton_get_candidates(b, "", one, 2, &err) == BATON_E_INVALID);
	baton_close(b);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	return older(argv[1]) != 0 || newer(argv[1]) != 0 || candidates(argv[1]) != 0;
}
