/*
 * state.c: what there is to see: the process and its store, all elections, one election, its
 * candidates, its history, all events. What only the store knows becomes a task.
 */
#include <string.h>

#include "serve/answer/route.h"

#define LIST_LIMIT 1000

static void write_capabilities(struct serve_text *out, const struct serve_view *v)
{
	text_add(out, "\"capabilities\":[\"lead\",\"leadership\",\"events\",\"page\"");
	if (!v->read_only)
		text_add(out, ",\"operate\"");
	if (v->has_metrics)
		text_add(out, ",\"metrics\"");
	if (v->can_list)
		text_add(out, ",\"list\"");
	text_add(out, "]");
}

static void write_timings(struct serve_text *out, const struct serve_view *v)
{
	const struct baton_timings *t = &v->timings;
	const struct {
		const char *key;
		uint64_t ns;
	} all[] = {{"{\"lease_ms\":", t->lease_ns}, {",\"renew_ms\":", t->renew_ns},
		   {",\"grace_ms\":", t->grace_ns}, {",\"drain_ms\":", t->drain_ns},
		   {",\"end_ms\":", t->end_ns},     {",\"gone_ms\":", t->gone_ns},
		   {",\"retry_ms\":", t->retry_ns}, {",\"call_ms\":", t->call_ns}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		text_add(out, all[i].key);
		text_unsigned(out, all[i].ns / 1000000);
	}
	text_add(out, ",\"drift_permille\":");
	text_unsigned(out, t->drift_permille);
	text_add(out, ",\"proves_death\":");
	text_add(out, t->proves_death ? "true}" : "false}");
}

/* What the client may do here: the dashboard offers only this. */
static const char *role_word(const struct way *w)
{
	unsigned rights = guard_rights(w);

	if ((rights & SERVE_OPERATE) != 0 && !w->view->read_only)
		return "operator";
	return (rights & SERVE_APPLY) != 0 ? "application" : "reader";
}

/* The process: without the braces around it. */
static void write_process(struct serve_text *out, const struct serve_view *v)
{
	text_add(out, "\"version\":");
	text_string(out, v->version);
	text_add(out, ",\"id\":");
	text_string(out, v->id);
	text_add(out, ",\"boot_id\":");
	text_string(out, v->boot_id);
	text_add(out, ",\"time\":");
	text_time(out, v->now_wall_ms);
	text_add(out, ",\"store\":{\"kind\":");
	text_string(out, v->store);
	text_add(out, ",\"renew_p50_us\":");
	text_unsigned(out, v->renew_p50_us);
	text_add(out, ",\"renew_p99_us\":");
	text_unsigned(out, v->renew_p99_us);
	text_add(out, v->renew_slow ? ",\"renew_slow\":true}," : ",\"renew_slow\":false},");
	write_capabilities(out, v);
	text_add(out, ",\"timings\":");
	write_timings(out, v);
	text_add(out, ",\"seq\":");
	text_unsigned(out, v->seq);
	text_add(out, ",\"stopping\":");
	text_add(out, v->stopping ? "true" : "false");
}

static void answer_process(struct way *w)
{
	struct serve_text *out = &w->reply->body;

	reply_json(w, 200);
	text_add(out, "{");
	write_process(out, w->view);
	text_add(out, ",\"elections\":");
	text_unsigned(out, w->view->n_elections);
	text_add(out, ",\"mode\":");
	text_string(out, role_word(w));
	text_add(out, ",\"promises\":");
	text_string(out, w->view->promises);
	text_add(out, "}\n");
}

static void key_unsigned(struct serve_text *out, const char *key, uint64_t n)
{
	text_add(out, key);
	text_unsigned(out, n);
}

/* How long the leader's lease still lasts; -1: not known. */
static int64_t lease_left_ms(const struct serve_view *v, const struct serve_election *e)
{
	int64_t left;

	if (serve_leads(v, e))
		return (e->deadline_boot_ns - v->now_boot_ns) / 1000000;
	if (e->leader[0] == '\0' || e->lease_left_ms < 0)
		return -1;
	left = e->lease_left_ms - (v->now_boot_ns - e->seen_boot_ns) / 1000000;
	return left > 0 ? left : 0;
}

static void write_part(struct serve_text *out, const char *key, uint32_t permille)
{
	text_add(out, key);
	text_add(out, permille >= 1000 ? "1" : "0.");
	for (uint32_t unit = 100; permille < 1000 && unit > 0; unit /= 10)
		text_unsigned(out, permille / unit % 10);
}

static void write_me(struct serve_text *out, const struct serve_view *v,
		     const struct serve_election *e)
{
	bool leads = serve_leads(v, e);

	text_add(out, "{\"state\":");
	text_string(out, e->state_name);
	text_add(out, ",\"leads\":");
	text_add(out, leads ? "true" : "false");
	text_add(out, ",\"term\":\"");
	text_unsigned(out, leads ? e->my_term : 0);
	key_unsigned(out, "\",\"draining_term\":\"", e->draining_term);
	key_unsigned(out, "\",\"attached\":", e->n_leads);
	key_unsigned(out, ",\"overruns\":", e->overruns);
	write_part(out, ",\"score\":", e->score_permille);
	write_part(out, ",\"min_score\":", e->min_score_permille);
	text_add(out, "}");
}

/* All but the last brace. */
static void write_open_row(struct serve_text *out, const struct serve_view *v,
			   const struct serve_election *e)
{
	int64_t left = lease_left_ms(v, e);

	text_add(out, "{\"election\":");
	text_string(out, e->name);
	text_add(out, ",\"health\":");
	text_string(out, e->condition_name);
	text_add(out, ",\"leader\":");
	text_string(out, e->leader);
	key_unsigned(out, ",\"term\":\"", e->term);
	text_add(out, "\",\"since\":");
	text_time(out, e->since_ms);
	text_add(out, ",\"time_left_ms\":");
	if (left < 0)
		text_add(out, "null");
	else
		text_number(out, left);
	text_add(out, e->paused ? ",\"paused\":true" : ",\"paused\":false");
	text_add(out, ",\"wait_ms\":");
	text_number(out, e->wait_ms);
	text_add(out, ",\"wait\":");
	text_string(out, e->wait);
	text_add(out, ",\"address\":");
	text_string(out, e->address);
	text_add(out, ",\"n_candidates\":");
	text_number(out, e->n_candidates);
	text_add(out, ",\"n_healthy\":");
	text_number(out, e->n_healthy);
	key_unsigned(out, ",\"changes_hour\":", e->changes_hour);
	key_unsigned(out, ",\"changes_day\":", e->changes_day);
	text_add(out, ",\"reason\":");
	text_string(out, e->reason);
	text_add(out, ",\"error\":");
	text_string(out, e->error);
	key_unsigned(out, ",\"seq\":", e->seq);
	text_add(out, ",\"me\":");
	write_me(out, v, e);
}

void serve_write_row(struct serve_text *out, const struct serve_view *v,
		     const struct serve_election *e)
{
	write_open_row(out, v, e);
	text_add(out, "}");
}

/* ---- the list ---- */

static bool begins_with(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strlen(text) >= n && memcmp(text, prefix, n) == 0;
}

static void answer_list(struct way *w)
{
	const struct serve_view *v = w->view;
	const char *prefix = parse_query(&w->parsed, "prefix");
	const char *after = parse_query(&w->parsed, "after");
	const char *limit = parse_query(&w->parsed, "limit");
	struct serve_text *out = &w->reply->body;
	uint64_t most = 100;
	uint64_t n = 0;

	if (limit != NULL && (!parse_unsigned(limit, &most) || most < 1 || most > LIST_LIMIT)) {
		reply_invalid(w, "limit", limit, "1 to 1000");
		return;
	}
	reply_json(w, 200);
	text_add(out, "{\"elections\":[");
	for (size_t i = 0; i < v->n_elections; i++) {
		const struct serve_election *e = v->elections[i];

		if ((prefix != NULL && !begins_with(e->name, prefix)) ||
		    (after != NULL && strcmp(e->name, after) <= 0))
			continue;
		if (n++ == most) /* one more than is told */
			break;
		text_add(out, n > 1 ? "," : "");
		serve_write_row(out, v, e);
	}
	text_add(out, n > most ? "],\"more\":true}\n" : "],\"more\":false}\n");
}

/* ---- one election ---- */

/* Whether an If-None-Match names the tag. Tags are compared as weak ones are. */
static bool has_tag(const char *header, const char *tag)
{
	size_t n = strlen(tag);

	if (header == NULL || strcmp(header, "*") == 0)
		return header != NULL;
	for (const char *at = header; (at = strstr(at, tag)) != NULL; at++)
		if (at[n] == '\0' || at[n] == ',' || at[n] == ' ')
			return true;
	return false;
}

void serve_tag(struct serve_reply *reply, const char *still, size_t n)
{
	struct serve_text tag = {reply->etag, sizeof(reply->etag) - 1, 0};
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)still[i]) * UINT64_C(1099511628211);
	text_add(&tag, "W/\"");
	text_unsigned(&tag, hash);
	text_add(&tag, "\"");
	reply->etag[tag.n] = '\0';
	if (!has_tag(reply->if_none_match, reply->etag + 2))
		return;
	reply->status = 304;
	reply->type = "";
}

/* The number of an event that this process has told, or UINT64_MAX. */
static uint64_t told_seq(const struct serve_view *v, const char *number)
{
	uint64_t seq;

	return number != NULL && parse_unsigned(number, &seq) && seq >= v->first_seq &&
			       seq <= v->seq
		       ? seq
		       : UINT64_MAX;
}

static void answer_status(struct way *w, const struct serve_election *e)
{
	const char *after = parse_query(&w->parsed, "after");
	const char *wait = parse_query(&w->parsed, "wait");
	struct serve_reply *reply = w->reply;

	reply->after = UINT64_MAX;
	reply->wait_ms = 0;
	reply->if_none_match = w->request->if_none_match;
	if (after != NULL && !parse_unsigned(after, &reply->after)) {
		reply_invalid(w, "after", after, "the number of an event");
		return;
	}
	if (wait != NULL && (!parse_time(wait, &reply->wait_ms) || reply->wait_ms > 60000)) {
		reply_invalid(w, "wait", wait, "a time of up to 60s");
		return;
	}
	/* To a number of another process all that is here is news. */
	reply->after = told_seq(w->view, after);
	reply->type = "application/json";
	reply->status = 200;
	reply->task = SERVE_STATUS;
	reply->election = e;
}

static void answer_leadership(struct way *w, const struct serve_election *e)
{
	struct serve_text *out = &w->reply->body;
	const struct serve_view *v = w->view;
	bool leads = serve_leads(v, e);

	reply_json(w, 200);
	reply_role(w, e);
	w->reply->task = SERVE_TELL;
	w->reply->term = leads ? e->my_term : 0;
	text_add(out, leads ? "{\"leader\":true" : "{\"leader\":false");
	key_unsigned(out, ",\"term\":\"", leads ? e->my_term : 0);
	text_add(out, "\",\"time_left_ms\":");
	text_number(out, leads ? (e->deadline_boot_ns - v->now_boot_ns) / 1000000 : 0);
	text_add(out, ",\"deadline_boot_ns\":\"");
	text_number(out, leads ? e->deadline_boot_ns : 0);
	text_add(out, "\",\"boot_id\":");
	text_string(out, v->boot_id);
	text_add(out, "}\n");
}

static void answer_term(struct way *w, const struct serve_election *e, const char *word)
{
	uint64_t term;

	if (!parse_unsigned(word, &term) || term == 0) {
		reply_invalid(w, "term", word, "a number from 1 on");
		return;
	}
	bool leads = e->leader[0] != '\0' && e->term == term;

	if (serve_leads(w->view, e))
		leads = e->my_term == term;
	if (!leads) {
		serve_problem(w->reply, 410, "stale", "this term no longer leads");
		return;
	}
	reply_json(w, 200);
	reply_role(w, e);
	text_add(&w->reply->body, "{\"term\":\"");
	text_unsigned(&w->reply->body, term);
	text_add(&w->reply->body, "\",\"leader\":");
	text_string(&w->reply->body, e->leader);
	text_add(&w->reply->body, "}\n");
}

static void answer_history(struct way *w)
{
	const char *limit = parse_query(&w->parsed, "limit");
	const char *check = parse_query(&w->parsed, "check");

	w->reply->limit = 100;
	if (limit != NULL && (!parse_unsigned(limit, &w->reply->limit) || w->reply->limit < 1 ||
			      w->reply->limit > LIST_LIMIT)) {
		reply_invalid(w, "limit", limit, "1 to 1000");
		return;
	}
	w->reply->check = check != NULL && strcmp(check, "1") == 0;
	w->reply->task = SERVE_HISTORY;
}

static void answer_part(struct way *w, const struct serve_election *e, const char *part)
{
	bool is_leaf = w->parsed.n_segments == 4;

	w->reply->election = e;
	if (is_leaf && strcmp(part, "leadership") == 0) {
		if (is_read(w))
			answer_leadership(w, e);
	} else if (is_leaf && strcmp(part, "candidates") == 0) {
		if (is_read(w))
			w->reply->task = SERVE_CANDIDATES;
	} else if (is_leaf && strcmp(part, "history") == 0) {
		if (is_read(w))
			answer_history(w);
	} else if (w->parsed.n_segments == 5 && strcmp(part, "terms") == 0) {
		if (is_read(w))
			answer_term(w, e, w->parsed.segments[4]);
	} else if (is_leaf && (strcmp(part, "lead") == 0 || strcmp(part, "done") == 0 ||
			       strcmp(part, "health") == 0 || strcmp(part, "alive") == 0)) {
		work_answer(w, e, part);
	} else if (is_leaf && !w->view->read_only) {
		order_answer(w, e, part);
	} else {
		serve_problem(w->reply, 404, "invalid", "there is nothing here");
	}
}

static void answer_events(struct way *w, int task)
{
	if (!is_read(w))
		return;
	w->reply->status = 200;
	w->reply->type = "text/event-stream";
	w->reply->task = task;
	w->reply->after = told_seq(w->view, w->request->last_event_id);
}

/* What stands below /v1. */
static void answer_v1(struct way *w)
{
	const struct parsed *p = &w->parsed;
	const char *word = p->n_segments > 1 ? p->segments[1] : "";

	if (p->n_segments == 2 && strcmp(word, "events") == 0) {
		answer_events(w, SERVE_EVENTS);
		return;
	}
	if (p->n_segments == 2 && strcmp(word, "doctor") == 0) {
		if (is_read(w))
			w->reply->task = SERVE_DOCTOR;
		return;
	}
	if (p->n_segments == 1 || (p->n_segments == 2 && strcmp(word, "elections") == 0)) {
		if (!is_read(w))
			return;
		if (p->n_segments == 1)
			answer_process(w);
		else
			answer_list(w);
		return;
	}
	if (strcmp(word, "elections") != 0) {
		serve_problem(w->reply, 404, "invalid", "there is nothing here");
		return;
	}
	const struct serve_election *e = serve_find(w->view, p->segments[2]);

	if (e == NULL)
		serve_problem(w->reply, 404, "invalid", "there is no election of this name here");
	else if (p->n_segments > 3)
		answer_part(w, e, p->segments[3]);
	else if (is_read(w))
		answer_status(w, e);
}

void state_answer(struct way *w)
{
	const struct parsed *p = &w->parsed;

	if (strcmp(p->segments[0], "v1") == 0)
		answer_v1(w);
	else if (p->n_segments == 1 && strcmp(p->segments[0], "sse") == 0 &&
		 w->view->n_elections == 1)
		answer_events(w, SERVE_ELECTOR_EVENTS);
	else if (p->n_segments == 1 && strcmp(p->segments[0], "metrics") == 0 &&
		 w->view->has_metrics) {
		if (is_read(w))
			w->reply->task = SERVE_METRICS;
	} else
		serve_problem(w->reply, 404, "invalid", "there is nothing here");
}

/* ---- streams ---- */

void serve_write_event(struct serve_text *out, const struct serve_view *view,
		       const struct serve_election *e, const struct serve_event *event)
{
	key_unsigned(out, "{\"seq\":", event->seq);
	text_add(out, ",\"time\":");
	text_time(out, event->wall_ms);
	text_add(out, ",\"election\":");
	text_string(out, e->name);
	text_add(out, ",\"kind\":");
	text_string(out, event->kind);
	text_add(out, ",\"leader\":");
	text_string(out, event->leader);
	key_unsigned(out, ",\"term\":\"", event->term);
	text_add(out, "\",\"old_leader\":");
	text_string(out, event->old_leader);
	key_unsigned(out, ",\"old_term\":\"", event->old_term);
	text_add(out, "\",\"reason\":");
	text_string(out, event->reason);
	text_add(out, ",\"text\":");
	text_string(out, event->text);
	text_add(out, ",\"row\":");
	serve_write_row(out, view, e);
	text_add(out, "}");
}

void serve_write_snapshot(struct serve_text *out, const struct serve_view *view)
{
	text_add(out, "{");
	write_process(out, view);
	text_add(out, ",\"elections\":[");
	for (size_t i = 0; i < view->n_elections; i++) {
		text_add(out, i > 0 ? "," : "");
		serve_write_row(out, view, view->elections[i]);
	}
	text_add(out, "]}");
}

void serve_write_elector(struct serve_text *out, const struct serve_view *view,
			 const struct serve_election *e)
{
	/* Our own name only while we lead: a program takes its own name for permission to work. */
	bool is_over = strcmp(e->leader, view->id) == 0 && !serve_leads(view, e);

	text_add(out, "{\"name\":");
	text_string(out, is_over ? "" : e->leader);
	text_add(out, ",\"last_update\":");
	text_time(out, e->since_ms > 0 ? e->since_ms : view->now_wall_ms);
	text_add(out, "}");
}

/* ---- what the store was asked for ---- */

static void write_candidate(struct serve_text *out, const struct baton_candidate *c)
{
	text_add(out, "{\"id\":");
	text_string(out, c->id);
	text_add(out, c->is_leader ? ",\"leader\":true" : ",\"leader\":false");
	text_add(out, c->is_healthy ? ",\"healthy\":true" : ",\"healthy\":false");
	key_unsigned(out, ",\"score\":", c->score_permille / 1000);
	text_add(out, ".");
	for (uint32_t unit = 100; unit > 0; unit /= 10)
		text_unsigned(out, c->score_permille / unit % 10);
	text_add(out, ",\"priority\":");
	text_number(out, c->priority);
	text_add(out, ",\"updated\":");
	text_time(out, c->updated_ms);
	text_add(out, ",\"address\":");
	text_string(out, c->address);
	text_add(out, ",\"metadata\":");
	text_string(out, c->metadata);
	text_add(out, "}");
}

void serve_write_candidates(struct serve_text *out, const struct baton_candidate *list, size_t n)
{
	text_add(out, "[");
	for (size_t i = 0; i < n; i++) {
		text_add(out, i > 0 ? "," : "");
		write_candidate(out, &list[i]);
	}
	text_add(out, "]");
}

void serve_write_status(struct serve_text *out, const struct serve_view *view,
			const struct serve_status *status)
{
	write_open_row(out, view, status->election);
	text_add(out, ",\"metadata\":");
	text_string(out, status->observed != NULL ? status->observed->metadata : "");
	text_add(out, ",\"functions\":");
	text_add(out, status->observed != NULL && status->observed->functions ? "true" : "false");
	text_add(out, ",\"candidates\":");
	serve_write_candidates(out, status->candidates, status->n_candidates);
	text_add(out, ",\"timings\":");
	write_timings(out, view);
	text_add(out, "}\n");
}

void serve_write_still(struct serve_text *out, const struct serve_view *view,
		       const struct serve_status *status)
{
	struct serve_status still = *status;
	struct serve_election e = *status->election;

	if (serve_leads(view, &e))
		e.deadline_boot_ns = view->now_boot_ns + 1;
	else if (e.lease_left_ms > 0)
		e.lease_left_ms = 0;
	e.wait_ms = e.wait_ms > 0;
	still.election = &e;
	serve_write_status(out, view, &still);
}
