/*
 * observer: looks at all elections of a store and takes part in none: who leads, what this library
 * measures, what it decides, and whether a `baton serve` of this host leads.
 *
 *     cc observer.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE [FOLDER]]
 *
 * FOLDER has the pages of baton serve, if they aren't where they are by default. --once first makes
 * a candidate, so that there is something to look at, and ends after one look.
 */
#include <baton.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMES 64 /* as many elections as are watched */

struct observer {
	struct baton *baton;
	const char *pages; /* NULL: where they are by default */
	char names[NAMES][BATON_NAME_MAX + 1];
	struct baton_election *watched[NAMES];
	int n;
	atomic_int n_decisions;
};

/* ---- the trace hook: on the thread that decides, so it does as little as possible ---- */

static void on_decision(void *arg, const struct baton_trace_record *record)
{
	struct observer *o = arg;

	if (record->election != NULL)
		(void)atomic_fetch_add(&o->n_decisions, 1);
}

/* ---- the elections: asked for page by page ---- */

static void add_name(void *arg, const char *name)
{
	struct observer *o = arg;

	if (o->n < NAMES)
		(void)snprintf(o->names[o->n++], sizeof(o->names[0]), "%s", name);
}

static int list(struct observer *o, struct baton_error *err)
{
	int code;

	o->n = 0;
	do
		code = baton_list_elections(o->baton, "", o->n > 0 ? o->names[o->n - 1] : "",
					    add_name, o, err);
	while (code > 0 && o->n < NAMES);
	return code;
}

/* A candidate that only observes is told of changes, and never campaigns. */
static int watch(struct observer *o, struct baton_error *err)
{
	struct baton_election_options options;

	baton_election_options_init(&options);
	options.observe_only = true;
	for (int i = 0; i < o->n; i++) {
		int code = baton_election_new(o->baton, o->names[i], &options, &o->watched[i], err);

		if (code == 0)
			code = baton_election_start(o->watched[i]);
		if (code != 0)
			return code;
	}
	return 0;
}

/* ---- what is known ---- */

static void show_page(const struct observer *o, const char *name)
{
	struct baton_page *page;

	if (baton_page_open(o->pages, name, &page, NULL) != 0) {
		printf("%s: no page of a baton serve\n", name);
		return;
	}
	/* A program would keep the page open, and ask before each piece of work. */
	if (baton_page_leads(page))
		printf("%s: baton serve leads in term %" PRIu64 "\n", name, baton_page_term(page));
	else
		printf("%s: baton serve doesn't lead\n", name);
	baton_page_close(page);
}

static void show_metric(void *arg, const struct baton_metric *m)
{
	(void)arg;
	if (strcmp(m->name, "baton_has_leader") == 0 && m->n_labels > 0)
		printf("%s{%s=\"%s\"} %g\n", m->name, m->labels[0].name, m->labels[0].value,
		       m->value);
}

static void look(const struct observer *o)
{
	struct baton_observed seen;
	struct baton_error err;

	for (int i = 0; i < o->n; i++) {
		if (baton_observe(o->baton, o->names[i], &seen, &err) != 0)
			printf("%s: %s\n", o->names[i], err.text);
		else if (seen.has_leader)
			printf("%s: %s leads in term %" PRIu64 "\n", o->names[i], seen.leader,
			       seen.term);
		else
			printf("%s: nobody leads\n", o->names[i]);
		show_page(o, o->names[i]);
	}
	(void)baton_metrics(o->baton, show_metric, NULL);
	printf("decisions: %s\n", atomic_load(&o->n_decisions) > 0 ? "some" : "none");
}

static bool knows_all(const struct observer *o)
{
	struct baton_status status;

	for (int i = 0; i < o->n; i++)
		if (baton_get_status(o->watched[i], &status) != 0 || status.leader[0] == '\0')
			return false;
	return true;
}

static int observe(struct observer *o, bool once, struct baton_error *err)
{
	struct baton_event event;
	int code = list(o, err);

	if (code == 0)
		code = watch(o, err);
	while (code == 0 && once && !knows_all(o))
		(void)baton_wait(o->baton, 100, &event);
	while (code == 0) {
		look(o);
		if (once)
			return 0;
		/* Until something changes, or a while has passed. */
		while (baton_wait(o->baton, 10000, &event) == 1 &&
		       event.kind != BATON_EVENT_CHANGED)
			;
	}
	return code;
}

/* ---- something to look at ---- */

static struct baton *make_leader(const char *url)
{
	struct baton_election *e;
	struct baton_event event;
	struct baton *b;

	if (baton_open(url, NULL, &b, NULL) != 0)
		return NULL;
	if (baton_election_new(b, "observed", NULL, &e, NULL) == 0 && baton_election_start(e) == 0)
		while (!baton_is_leader(e) && baton_wait(b, 10000, &event) == 1)
			;
	return b;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	static struct observer o; /* its names take room */
	struct baton_options options;
	struct baton_error err;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	o.pages = argc > 2 + once ? argv[2 + once] : NULL;
	baton_options_init(&options);
	options.trace = on_decision;
	options.trace_arg = &o;
	struct baton *leader = once ? make_leader(url) : NULL;

	if (baton_open(url, &options, &o.baton, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(leader);
		return 1;
	}
	int code = observe(&o, once, &err);

	if (code != 0)
		(void)fprintf(stderr, "%s\n", err.text);
	baton_close(o.baton);
	baton_close(leader);
	return code != 0;
}
