/*
 * orders: the tool of an operator: shows an election, and orders its leader to step down or to hand
 * over. An order names the term that it is meant for, so that it never hits a later leader, and has
 * a note that the history keeps.
 *
 *     cc orders.c $(pkg-config --cflags --libs baton)
 *     ./a.out STORE NAME                          shows it
 *     ./a.out STORE NAME TERM NOTE [CANDIDATE]    orders the leader of TERM to step down, or to
 *                                                 hand over to CANDIDATE
 *     ./a.out --once [STORE]                      makes two candidates and gives orders to them
 */
#include <baton.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is ---- */

static void show_candidate(void *arg, const struct baton_candidate *c)
{
	(void)arg;
	printf("candidate %s: %s, priority %" PRId32 "\n", c->id, c->is_healthy ? "healthy" : "ill",
	       c->priority);
}

static void show_leadership(void *arg, const struct baton_leadership *l)
{
	(void)arg;
	printf("term %" PRIu64 ": %s, %s%s%s\n", l->term, l->leader,
	       l->ended[0] != '\0' ? l->ended : "leads", l->note[0] != '\0' ? ": " : "", l->note);
}

/* Who leads and who could, in one request where the store can do that; and who led before. */
static int show(struct baton *b, const char *name, struct baton_error *err)
{
	struct baton_observed seen;
	int n = baton_survey(b, name, &seen, show_candidate, NULL, err);

	if (n < 0)
		return n;
	if (seen.has_leader)
		printf("%s: %s leads in term %" PRIu64 ", candidates: %d\n", name, seen.leader,
		       seen.term, n);
	else
		printf("%s: nobody leads, candidates: %d\n", name, n);
	n = baton_list_history(b, name, 5, show_leadership, NULL, err);
	return n == BATON_E_UNSUPPORTED || n > 0 ? 0 : n; /* some stores keep none */
}

/* ---- orders ---- */

/* candidate: NULL: whoever is first. The leader carries the order out a moment later. */
static int order(struct baton *b, const char *name, uint64_t term, const char *note,
		 const char *candidate, struct baton_error *err)
{
	int code = candidate != NULL ? baton_order_transfer(b, name, term, candidate, note, err)
				     : baton_order_resign(b, name, term, 0, note, err);

	printf("%s, term %" PRIu64 ": the order is %s\n", name, term,
	       code == 0 ? "given" : baton_code_name(code));
	return code;
}

static int ask(const char *url, char **words, int n)
{
	struct baton_error err;
	struct baton *b;
	int code = baton_open(url, NULL, &b, &err);

	if (code == 0) {
		code = n == 1 ? show(b, words[0], &err)
			      : order(b, words[0], strtoull(words[1], NULL, 10), words[2],
				      n > 3 ? words[3] : NULL, &err);
		baton_close(b);
	}
	if (code != 0)
		(void)fprintf(stderr, "%s\n", err.text);
	return code != 0;
}

/* ---- something to give orders to ---- */

struct candidate {
	struct baton *b;
	struct baton_election *e;
};

static bool join(struct candidate *c, const char *url, const char *id)
{
	struct baton_options options;

	baton_options_init(&options);
	options.id = id;
	return baton_open(url, &options, &c->b, NULL) == 0 &&
	       baton_election_new(c->b, "ordered", NULL, &c->e, NULL) == 0 &&
	       baton_election_start(c->e) == 0;
}

/* Why it doesn't lead, and how it sees the election. */
static void explain(struct candidate *c)
{
	struct baton_status status;
	int obstacle;

	if (baton_try_acquire(c->e, 10000, &obstacle) == 0)
		printf("%s can't lead: %s\n", baton_id(c->b), baton_obstacle_name(obstacle));
	if (baton_get_status(c->e, &status) == 0)
		printf("%s: %s, %s\n", baton_id(c->b), baton_state_name(status.state),
		       baton_condition_name(baton_election_condition(c->e, NULL)));
}

/* Who takes LOST and asks for the next event says that the work has ended: there is none here. */
static void until_leads(struct candidate *next, struct candidate *last)
{
	struct baton_event event;

	while (!baton_is_leader(next->e)) {
		(void)baton_wait(last->b, 20, &event);
		(void)baton_wait(next->b, 20, &event);
	}
}

/* A candidate is listed a moment after its start. Below 0: the store fails. */
static int until_listed(struct candidate *c, int n, struct baton_error *err)
{
	struct baton_candidate first;
	struct baton_event event;
	int found;

	while ((found = baton_get_candidates(c->b, "ordered", &first, 1, err)) >= 0 && found < n)
		(void)baton_wait(c->b, 20, &event);
	return found;
}

static int play(const char *url)
{
	struct candidate old = {0};
	struct candidate new = {0};
	struct baton_error err = {0};
	int code = -1;

	if (join(&old, url, "old") && baton_try_acquire(old.e, 10000, NULL) == 1 &&
	    join(&new, url, "new") && until_listed(&new, 2, &err) > 0) {
		explain(&new);
		(void)order(new.b, "ordered", 7, "a term that is not there", NULL, &err);
		code = order(new.b, "ordered", 1, "alice: an upgrade", "new", &err);
	}
	if (code == 0) {
		until_leads(&new, &old);
		code = show(new.b, "ordered", &err);
	}
	if (code != 0)
		(void)fprintf(stderr, "%s\n", err.text);
	baton_close(old.b);
	baton_close(new.b);
	return code != 0;
}

int main(int argc, char **argv)
{
	if (baton_version_number() < BATON_VERSION_NUMBER) {
		(void)fprintf(stderr, "libbaton %s is older than this program\n", baton_version());
		return 1;
	}
	if (argc > 1 && strcmp(argv[1], "--once") == 0)
		return play(argc > 2 ? argv[2] : "file:/tmp/baton-examples");
	if (argc != 3 && argc != 5 && argc != 6) {
		(void)fprintf(stderr, "usage: %s STORE NAME [TERM NOTE [CANDIDATE]]\n", argv[0]);
		return 64;
	}
	return ask(argv[1], argv + 2, argc - 2);
}
