/*
 * show.c: the verbs that ask the store and change nothing: status, candidates, history, check,
 * watch.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "serve/answer/proof.h"

#define HISTORY_MAX 10000
#define CALM_NS (60 * CLOCK_NS_PER_S)

static int open_for(struct settings *s, struct baton **b)
{
	int code = open_store_url(s);

	return code != 0 ? code : open_handle(s, b);
}

/* ---- JSON ---- */

static void key_text(const char *key, const char *value)
{
	(void)printf("\"%s\":", key);
	text_json(stdout, value);
}

/* null if it is not known. */
static void key_time(const char *key, int64_t wall_ms)
{
	char text[40];

	if (wall_ms > 0)
		(void)printf("\"%s\":\"%s\"", key, text_utc(wall_ms, text, sizeof(text)));
	else
		(void)printf("\"%s\":null", key);
}

/* ---- candidates ---- */

static void candidate_json(const struct baton_candidate *c)
{
	(void)printf("{");
	key_text("id", c->id);
	(void)printf(",\"leader\":%s,\"healthy\":%s,\"score\":%u.%03u,\"priority\":%d,",
		     c->is_leader ? "true" : "false", c->is_healthy ? "true" : "false",
		     c->score_permille / 1000, c->score_permille % 1000, c->priority);
	key_time("updated", c->updated_ms);
	(void)printf(",");
	key_text("address", c->address);
	(void)printf(",");
	key_text("metadata", c->metadata);
	(void)printf("}");
}

static void candidates_json(const struct baton_candidate *list, int n)
{
	(void)printf("[");
	for (int i = 0; i < n; i++) {
		(void)printf("%s", i > 0 ? "," : "");
		candidate_json(&list[i]);
	}
	(void)printf("]");
}

static void candidates_text(const struct baton_candidate *list, int n)
{
	int width = 9;

	for (int i = 0; i < n; i++)
		if ((int)strlen(list[i].id) > width)
			width = (int)strlen(list[i].id);
	(void)printf("%-*s  %-8s %-6s %8s  %s\n", width, "CANDIDATE", "ROLE", "HEALTH", "PRIORITY",
		     "ADDRESS");
	for (int i = 0; i < n; i++)
		(void)printf("%-*s  %-8s %u.%02u%s %8d  %s\n", width, list[i].id,
			     list[i].is_leader ? "leader" : "standby",
			     list[i].score_permille / 1000, list[i].score_permille % 1000 / 10,
			     list[i].is_healthy ? "  " : " !", list[i].priority, list[i].address);
}

struct list {
	void *items; /* of candidates or leaderships */
	int n;
	int room;
	bool is_short; /* there was no memory for all */
};

/* Room for one more; NULL: there is none. */
static void *list_add(struct list *l, size_t size)
{
	if (l->n == l->room) {
		int room = l->room != 0 ? 2 * l->room : 16;
		void *items = reallocarray(l->items, (size_t)room, size);

		if (items == NULL) {
			l->is_short = true;
			return NULL;
		}
		l->items = items;
		l->room = room;
	}
	return (char *)l->items + size * (size_t)l->n++;
}

static void add_candidate(void *arg, const struct baton_candidate *c)
{
	struct baton_candidate *to = list_add(arg, sizeof(*to));

	if (to != NULL)
		*to = *c;
}

/* The number of those in the list, or a negative code. */
static int get_candidates(struct baton *b, const char *name, struct baton_candidate **list,
			  struct baton_error *err)
{
	struct list l = {0};
	int code = baton_list_candidates(b, name, add_candidate, &l, err);

	*list = l.items;
	if (code >= 0 && l.is_short)
		return err->code = BATON_E_MEMORY;
	return code < 0 ? code : l.n;
}

int verb_candidates(struct settings *s)
{
	struct baton_candidate *list = NULL;
	struct baton_error err = {0};
	struct baton *b;
	int code = open_for(s, &b);

	if (code != 0)
		return code;
	int n = get_candidates(b, s->name, &list, &err);

	if (n < 0)
		code = open_fail(&err);
	else if (s->json != 0)
		candidates_json(list, n);
	else
		candidates_text(list, n);
	if (n >= 0 && s->json != 0)
		(void)printf("\n");
	free(list);
	baton_close(b);
	return code;
}

/* ---- status ---- */

static void status_json(const struct settings *s, const struct baton_observed *st, int health,
			const struct baton_candidate *list, int n, const struct baton_error *err)
{
	(void)printf("{");
	key_text("election", s->name);
	(void)printf(",\"health\":\"%s\",", baton_condition_name(health));
	key_text("leader", st->leader);
	(void)printf(",\"term\":%llu,", (unsigned long long)st->term);
	key_time("since", st->since_ms);
	if (st->lease_left_ms >= 0)
		(void)printf(",\"time_left_ms\":%lld", (long long)st->lease_left_ms);
	else
		(void)printf(",\"time_left_ms\":null");
	(void)printf(",\"paused\":%s,\"functions\":%s,\"wait_ms\":%lld,",
		     st->paused ? "true" : "false", st->functions ? "true" : "false",
		     (long long)st->wait_ms);
	key_text("wait", st->wait);
	(void)printf(",");
	key_text("address", st->address);
	(void)printf(",");
	key_text("metadata", st->metadata);
	(void)printf(",\"candidates\":");
	candidates_json(list, n);
	(void)printf(",");
	key_text("error", err->text);
	(void)printf("}\n");
}

/* A leader of another program doesn't tell since when it leads, and some stores don't tell how long
 * a lease still lasts. The leader's clock may be ahead of ours. */
static void status_times(const struct baton_observed *st)
{
	int64_t led_ms = clock_wall_ms() - st->since_ms;
	char time[40];
	char span[40];

	if (st->since_ms <= 0)
		(void)printf("since      not known\n");
	else
		(void)printf("since      %s (%s)\n", text_local(st->since_ms, time, sizeof(time)),
			     text_span(led_ms > 0 ? led_ms : 0, span, sizeof(span)));
	if (st->lease_left_ms < 0)
		(void)printf("time left  not known\n");
	else
		(void)printf("time left  %s unless renewed\n",
			     text_span(st->lease_left_ms, span, sizeof(span)));
}

static void status_text(const struct settings *s, const struct baton_observed *st,
			const struct baton_candidate *list, int n)
{
	(void)printf("election   %s%s\n", s->name, st->paused ? " (paused)" : "");
	if (st->leader[0] == '\0') {
		(void)printf("leader     none\nlast term  %llu\n", (unsigned long long)st->term);
		if (st->wait_ms > 0)
			(void)printf("waits      %lld s: %s\n",
				     (long long)(st->wait_ms + 999) / 1000, st->wait);
	} else {
		(void)printf("leader     %s\nterm       %llu\n", st->leader,
			     (unsigned long long)st->term);
		status_times(st);
	}
	if (st->functions)
		(void)printf("functions  may take over when a lease ends by the store's clock\n");
	if (n > 0) {
		(void)printf("\n");
		candidates_text(list, n);
	}
}

int verb_status(struct settings *s)
{
	struct baton_candidate *list = NULL;
	struct list l = {0};
	struct baton_observed st = {0};
	struct baton_error err = {0};
	struct baton *b;
	int code = open_for(s, &b);
	int n = 0;

	if (code != 0)
		return code;
	n = baton_survey(b, s->name, &st, add_candidate, &l, &err);
	if (n >= 0 && l.is_short)
		n = err.code = BATON_E_MEMORY;
	int health = n < 0           ? BATON_CONDITION_UNHEALTHY
		     : st.has_leader ? BATON_CONDITION_HEALTHY
				     : BATON_CONDITION_DEGRADED;

	list = l.items;
	n = n < 0 ? 0 : l.n;
	if (s->json != 0)
		status_json(s, &st, health, list, n, &err);
	else if (health == BATON_CONDITION_UNHEALTHY)
		(void)open_fail(&err);
	else
		status_text(s, &st, list, n);
	free(list);
	baton_close(b);
	return health == BATON_CONDITION_HEALTHY    ? EXIT_OK
	       : health == BATON_CONDITION_DEGRADED ? EXIT_NO
						    : EXIT_FAILING;
}

int verb_check(struct settings *s)
{
	struct baton_observed st;
	struct baton_error err = {0};
	struct baton *b;

	if (s->term < 1)
		return cli_usage("--term is missing; write baton check %s --term N", s->name);
	int code = open_for(s, &b);

	if (code != 0)
		return code;
	code = baton_observe(b, s->name, &st, &err);
	baton_close(b);
	if (code != 0)
		return open_fail(&err);
	bool leads = st.has_leader && st.term == (uint64_t)s->term;

	if (s->json != 0)
		(void)printf("{\"leads\":%s,\"term\":%llu}\n", leads ? "true" : "false",
			     (unsigned long long)st.term);
	return leads ? EXIT_OK : EXIT_NO;
}

/* ---- history ---- */

static void history_json(const struct baton_leadership *list, int n)
{
	(void)printf("[");
	for (int i = 0; i < n; i++) {
		(void)printf("%s{\"term\":%llu,", i > 0 ? "," : "",
			     (unsigned long long)list[i].term);
		key_text("leader", list[i].leader);
		(void)printf(",");
		key_time("since", list[i].since_ms);
		(void)printf(",");
		key_time("until", list[i].until_ms);
		(void)printf(",");
		key_text("ended", list[i].ended);
		(void)printf(",");
		key_text("clock", list[i].clock);
		(void)printf(",\"since_ns\":%llu,\"until_ns\":%llu,",
			     (unsigned long long)list[i].since_ns,
			     (unsigned long long)list[i].until_ns);
		key_text("note", list[i].note);
		(void)printf("}");
	}
	(void)printf("]\n");
}

static void history_text(const struct baton_leadership *list, int n)
{
	char since[40];
	char until[40];

	(void)printf("%8s  %-19s  %-19s  %-12s %s\n", "TERM", "SINCE", "UNTIL", "ENDED", "LEADER");
	for (int i = 0; i < n; i++)
		(void)printf("%8llu  %-19s  %-19s  %-12s %s%s%s\n",
			     (unsigned long long)list[i].term,
			     text_local(list[i].since_ms, since, sizeof(since)),
			     text_local(list[i].until_ms, until, sizeof(until)), list[i].ended,
			     list[i].leader, list[i].note[0] != '\0' ? "  " : "", list[i].note);
}

/* Why the order of some leaderships rests on their terms alone. */
static const char *why_by_terms(const struct baton_leadership *list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i].clock[0] == '\0')
			return "the store has no clock for them";
	return "the store's clock was another one";
}

/* The list is newest first. */
static int history_check(const struct settings *s, const struct baton_leadership *list, int n)
{
	struct proof proof = proof_of(list, (size_t)n);

	if (proof.wrong != NULL && !proof.is_pair) {
		log_say(BATON_LOG_ERROR, "term %llu of %s is impossible: %s",
			(unsigned long long)list[proof.at].term, s->name, proof.wrong);
		return EXIT_NO;
	}
	if (proof.wrong != NULL) {
		log_say(BATON_LOG_ERROR, "terms %llu and %llu of %s overlap: %s",
			(unsigned long long)list[proof.at + 1].term,
			(unsigned long long)list[proof.at].term, s->name, proof.wrong);
		return EXIT_NO;
	}
	log_say(BATON_LOG_INFO, "%d leaderships of %s, no two overlapped", n, s->name);
	if (proof.by_terms > 0)
		log_say(BATON_LOG_INFO, "%zu of them by their terms alone: %s", proof.by_terms,
			why_by_terms(list, n));
	return EXIT_OK;
}

static void add_leadership(void *arg, const struct baton_leadership *leadership)
{
	struct baton_leadership *to = list_add(arg, sizeof(*to));

	if (to != NULL)
		*to = *leadership;
}

int verb_history(struct settings *s)
{
	struct baton_error err = {0};
	struct baton *b;

	if (s->limit < 1 || s->limit > HISTORY_MAX)
		return cli_out_of_range("--limit", s->limit, 1, HISTORY_MAX);
	int code = open_for(s, &b);

	if (code != 0)
		return code;
	struct list l = {0};
	int n = baton_list_history(b, s->name, (size_t)s->limit, add_leadership, &l, &err);
	struct baton_leadership *list = l.items;

	if (n >= 0)
		n = l.is_short ? (err.code = BATON_E_MEMORY) : l.n;
	if (n < 0)
		code = open_fail(&err);
	else if (s->json != 0)
		history_json(list, n);
	else
		history_text(list, n);
	if (n >= 0 && s->check != 0)
		code = history_check(s, list, n);
	free(list);
	baton_close(b);
	return code;
}

/* ---- watch ---- */

/* The sentence, and the store's own words. */
static const char *error_text(const struct baton_event *event, char *out, size_t size)
{
	bool has_words = event->detail[0] != '\0';

	(void)snprintf(out, size, "%s%s%s%s", event->text, has_words ? " (" : "", event->detail,
		       has_words ? ")" : "");
	return out;
}

/* The library tells of an error as long as it lasts. Here each is one line, until something else
 * happens, or a minute has gone by without it. */
static bool is_old_error(const struct baton_event *event)
{
	static struct {
		uint64_t last_ns;
		char text[sizeof(event->text) + sizeof(event->detail) + 4];
	} said[4]; /* a store that fails does so in few ways */
	char text[sizeof(said[0].text)];
	uint64_t now_ns = clock_boot_ns();
	size_t at = 0;

	if (event->kind != BATON_EVENT_ERROR) {
		(void)memset(said, 0, sizeof(said));
		return false;
	}
	(void)error_text(event, text, sizeof(text));
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		if (strcmp(said[i].text, text) == 0) {
			at = i;
			break;
		}
		if (said[i].last_ns < said[at].last_ns)
			at = i;
	}
	bool is_old = strcmp(said[at].text, text) == 0 && now_ns - said[at].last_ns < CALM_NS;

	(void)strcpy(said[at].text, text);
	said[at].last_ns = now_ns;
	return is_old;
}

static void show_change(const struct settings *s, const struct baton_event *event)
{
	char text[sizeof(event->text) + sizeof(event->detail) + 4];
	char time[40];
	int64_t now_ms = clock_wall_ms();

	if (s->json != 0) {
		(void)printf("{\"time\":\"%s\",", text_utc(now_ms, time, sizeof(time)));
		key_text("election", s->name);
		(void)printf(",");
		if (event->kind == BATON_EVENT_ERROR) {
			key_text("error", error_text(event, text, sizeof(text)));
		} else if (event->kind == BATON_EVENT_WAITS) {
			(void)printf("\"wait_ms\":%lld,", (long long)event->wait_ms);
			key_text("wait", event->text);
		} else {
			key_text("leader", event->leader);
			(void)printf(",\"term\":%llu,", (unsigned long long)event->term);
			key_text("old_leader", event->old_leader);
			(void)printf(",\"old_term\":%llu", (unsigned long long)event->old_term);
		}
		(void)printf("}\n");
	} else if (event->kind == BATON_EVENT_ERROR) {
		(void)printf("%s  %s\n", text_local(now_ms, time, sizeof(time)),
			     error_text(event, text, sizeof(text)));
	} else if (event->kind == BATON_EVENT_WAITS) {
		(void)printf("%s  waits %lld s: %s\n", text_local(now_ms, time, sizeof(time)),
			     (long long)(event->wait_ms + 999) / 1000, event->text);
	} else if (event->leader[0] == '\0') {
		(void)printf("%s  no candidate leads\n", text_local(now_ms, time, sizeof(time)));
	} else {
		(void)printf("%s  %s leads in term %llu\n", text_local(now_ms, time, sizeof(time)),
			     event->leader, (unsigned long long)event->term);
	}
	(void)fflush(stdout);
}

int verb_watch(struct settings *s)
{
	struct baton_election_options o;
	struct baton_error err = {0};
	struct baton_election *e;
	struct baton_event event;
	struct baton *b;
	int code = open_for(s, &b);

	if (code != 0)
		return code;
	baton_election_options_init(&o);
	o.observe_only = true;
	if (baton_election_new(b, s->name, &o, &e, &err) != 0 ||
	    (err.code = baton_election_start(e)) != 0) {
		code = open_fail(&err);
	} else {
		while (ferror(stdout) == 0 && baton_wait(b, -1, &event) == 1)
			if ((event.kind == BATON_EVENT_CHANGED || event.kind == BATON_EVENT_ERROR ||
			     event.kind == BATON_EVENT_WAITS) &&
			    !is_old_error(&event))
				show_change(s, &event);
	}
	baton_close(b);
	return code;
}
