/*
 * options.c: settings that can't be safe are refused before anything starts, with a sentence that
 * says which rule they break; and candidates of different settings share an election.
 */
#include "backend.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* ---- C24, N26 ---- */

struct wrong {
	const char *what;
	uint64_t lease_ms, renew_ms, grace_ms, retry_ms, retry_max_ms;
	uint32_t drift_permille;
};

static const struct wrong wrongs[] = {
	{"a lease of a millisecond", 1, 0, 0, 0, 0, 100},
	{"a lease of a month", 30ull * 86400000, 0, 0, 0, 0, 100},
	{"a lease beyond all numbers", UINT64_MAX, 0, 0, 0, 0, 100},
	{"renew as long as the lease", 15000, 15000, 0, 0, 0, 100},
	{"renew above half the lease", 15000, 7501, 1000, 0, 0, 100},
	{"renew beyond all numbers", 15000, UINT64_MAX, 0, 0, 0, 100},
	{"grace as long as the lease", 15000, 5000, 15000, 0, 0, 100},
	{"no time left to drain in", 15000, 5000, 9000, 0, 0, 100},
	{"too little time to drain in", 15000, 5000, 8000, 0, 0, 100},
	{"a drift that eats the drain time", 15000, 5000, 5000, 0, 0, 330},
	{"a drift above one half", 15000, 1000, 1000, 0, 0, 501},
	{"retry above the lease", 15000, 5000, 5000, 15001, 0, 100},
	{"retry_max below retry", 15000, 5000, 5000, 2000, 1999, 100},
	{"retry_max above a day", 15000, 5000, 5000, 2000, 86400001, 100},
};

static int open_with(struct testcase *t, const struct wrong *w, struct baton_error *err)
{
	struct baton_options o;
	struct baton *b = NULL;

	baton_options_init(&o);
	o.lease_ms = w->lease_ms;
	o.renew_ms = w->renew_ms;
	o.grace_ms = w->grace_ms;
	o.retry_ms = w->retry_ms;
	o.retry_max_ms = w->retry_max_ms;
	o.drift_permille = w->drift_permille;
	int rc = baton_open(t->url, &o, &b, err);

	CHECK(t, (rc == 0) == (b != NULL), "%s: code %d, handle %p", w->what, rc, (void *)b);
	baton_close(b);
	return rc;
}

static void enforces_relations(struct testcase *t)
{
	const struct wrong right = {"right", 15000, 5000, 5000, 2000, 10000, 100};
	struct baton_error err;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		err = (struct baton_error){0};
		int rc = open_with(t, &wrongs[i], &err);

		CHECK(t, rc == BATON_E_TIMING, "%s is not refused: %d", wrongs[i].what, rc);
		CHECK(t, err.code == rc && strlen(err.text) > 10, "%s: refused with \"%s\"",
		      wrongs[i].what, err.text);
	}
	CHECK(t, open_with(t, &right, &err) == 0, "refused: %s", err.text);
	/* What the store declares counts, too: the suite found its minimum by being refused. */
	if (t->result->adapted) {
		struct wrong below = {
			"below the store's minimum", t->lease_ms / 2, 0, 0, 0, 0, 100};

		CHECK(t, open_with(t, &below, &err) == BATON_E_TIMING, "%s", below.what);
	}
}

static int elect_with(struct testcase *t, struct baton *b, const char *name,
		      const struct baton_election_options *o)
{
	struct baton_election *e = NULL;
	struct baton_error err = {0};
	int rc = baton_election_new(b, name, o, &e, &err);

	CHECK(t, (rc == 0) == (e != NULL), "code %d, election %p", rc, (void *)e);
	CHECK(t, rc == 0 || (err.code == rc && err.text[0] != '\0'), "refused without a sentence");
	baton_election_free(e);
	return rc;
}

/* Each with one thing wrong. */
static void spoil(struct baton_election_options *o, unsigned i)
{
	switch (i) {
	case 0: o->observe_only = o->manual = true; break;
	case 1: o->min_score_permille = 1001; break;
	case 2: o->preempt_ms = 1; break;
	case 3: o->preempt_ms = 86400001; break;
	case 4: o->work_timeout_ms = 86400001; break;
	case 5: o->priority = 1000001; break;
	case 6: o->priority = -1000001; break;
	default: o->size = 3; break;
	}
}

static void refuses_contradictions(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	struct baton_election_options o;
	struct baton_options handle;
	struct baton_error err = {0};
	struct baton *b = NULL;
	char metadata[BATON_METADATA_MAX + 2];

	enforces_relations(t);
	for (unsigned i = 0; i < 8; i++) {
		baton_election_options_init(&o);
		spoil(&o, i);
		CHECK(t, elect_with(t, p->b, "other", &o) < 0, "contradiction %u is accepted", i);
	}
	memset(metadata, 'x', sizeof(metadata) - 1);
	metadata[sizeof(metadata) - 1] = '\0';
	baton_election_options_init(&o);
	o.metadata = metadata;
	CHECK(t, elect_with(t, p->b, "other", &o) < 0, "too much metadata is accepted");
	baton_election_options_init(&o);
	CHECK(t, elect_with(t, p->b, t->name, &o) == BATON_E_EXISTS,
	      "rule 8: a second of one name");
	CHECK(t, elect_with(t, p->b, "other", &o) == 0, "the defaults are refused");
	int rc = elect_with(t, p->b, "other", NULL);

	CHECK(t, rc == 0, "no options are refused: %d", rc);
	baton_options_init(&handle);
	handle.size = 1;
	CHECK(t, baton_open(t->url, &handle, &b, &err) == BATON_E_INVALID, "a size of 1");
	CHECK(t, baton_open("nosuchstore:x", NULL, &b, &err) == BATON_E_NO_DRIVER, "no driver");
	CHECK(t, baton_open("nonsense", NULL, &b, &err) < 0, "a URL without a scheme");
	CHECK(t, baton_open("", NULL, &b, &err) < 0, "an empty URL");
	CHECK(t, baton_open(NULL, NULL, &b, &err) < 0, "no URL");
	CHECK(t, b == NULL, "a handle was made");
}

/* ---- N31 ---- */

static void keep_claim(struct baton_election_options *o)
{
	o->release_on_stop = false;
}

/*
 * A leader with a long lease falls silent without dying. The standby's own lease is short, and says
 * nothing about the leader's (rule 6).
 */
static void lease_lengths_differ(struct testcase *t)
{
	uint64_t long_ms = 4 * t->lease_ms;
	struct remote *k = NULL;
	struct local *p = NULL;
	uint64_t term;

	if (t->backend->has_processes) {
		k = remote_new(t, &(struct remote_options){.id = "long", .lease_ms = long_ms});
		term = remote_leads(k, soon_ms(t));
	} else {
		p = local_new(t, &(struct cast){.id = "long",
						.lease_ms = long_ms,
						.tune_election = keep_claim});
		term = local_leads(p, soon_ms(t));
	}
	struct local *q = local_new(t, NULL);

	local_sees(q, "long", soon_ms(t));
	stays(t, local_is_no_leader, q, 2 * t->lease_ms,
	      "S1: the short one waits for the long one");
	uint64_t begin_ns = now_ns();

	if (k != NULL)
		remote_stopped(k);
	else
		local_stop(p);
	const struct seen *became =
		local_next(q, BATON_EVENT_BECAME, long_ms + long_ms / 10 + failover_ms(t));
	uint64_t took_ms = (became->at_ns - begin_ns) / MS;

	CHECK(t, became->event.term > term, "S3");
	/* Else the leader's last renewals may have failed, too, and its lease was half over. */
	struct seen error = {.at_ns = 0};

	local_last(q, BATON_EVENT_ERROR, &error);
	CHECK(t, error.event.kind == 0, "the store failed meanwhile: %s", error.event.detail);
	/* The last renewal was at most a third of the long lease old. */
	CHECK(t, took_ms + long_ms / 3 + 20 >= long_ms,
	      "S1: the successor led %" PRIu64 " ms after the silence, the lease has %" PRIu64,
	      took_ms, long_ms);
	testcase_note(t, "%" PRIu64 " ms after a lease of %" PRIu64 " ms", took_ms, long_ms);
	if (k != NULL) {
		remote_signal(k, SIGCONT);
		remote_end(k);
	}
}

const struct entry cases_options[] = {
	{"C24", "contradictory options are refused", refuses_contradictions, NEEDS_NOTHING, 0},
	{"N26", "renew, lease and grace: the relation is enforced", enforces_relations,
	 NEEDS_NOTHING, 0},
	{"N31", "candidates with different lease lengths", lease_lengths_differ, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
