/*
 * front.c: the front page: for browsers the dashboard, whose table is there without a script, too;
 * for programs that know other sidecars, the leader of the only election. Any process that may
 * write to the store can make names: none of them is ever markup.
 */
#include <string.h>

#include "serve/answer/route.h"

#define MARK "<!--rows-->"

static const struct serve_asset *find_asset(const struct serve_view *v, const char *path)
{
	for (size_t i = 0; i < v->n_assets; i++)
		if (strcmp(v->assets[i].path, path) == 0)
			return &v->assets[i];
	return NULL;
}

static const char *state_word(const struct serve_election *e)
{
	if (e->paused)
		return "paused";
	if (e->condition == BATON_CONDITION_UNHEALTHY)
		return "unknown";
	return e->leader[0] != '\0' ? "led" : "leaderless";
}

static void write_cell(struct serve_text *out, const char *text)
{
	text_add(out, "<td>");
	text_escaped(out, text);
	text_add(out, "</td>");
}

static void write_number(struct serve_text *out, int64_t n)
{
	text_add(out, "<td>");
	text_number(out, n);
	text_add(out, "</td>");
}

/*
 * A cell for each in the table's head. Those of the lease, which runs, and of the actions stay
 * empty.
 */
static void write_table_row(struct serve_text *out, const struct serve_view *v,
			    const struct serve_election *e)
{
	char since[40];
	struct serve_text time = {since, sizeof(since) - 1, 0};

	text_time(&time, e->since_ms);
	since[time.n] = '\0';
	if (e->since_ms > 0)
		since[20] = '\0'; /* to the second, without the quotation mark */
	text_add(out, "<tr>");
	write_cell(out, state_word(e));
	text_add(out, "<th scope=\"row\">");
	text_escaped(out, e->name);
	text_add(out, "</th><td>");
	text_escaped(out, e->leader);
	text_add(out, serve_leads(v, e) ? " (this one)</td>" : "</td>");
	write_cell(out, e->since_ms > 0 ? since + 1 : "");
	write_cell(out, "");
	text_add(out, "<td>");
	text_unsigned(out, e->term);
	text_add(out, "</td>");
	if (e->n_candidates < 0)
		write_cell(out, "");
	else
		write_number(out, e->n_candidates);
	write_number(out, e->changes_day);
	write_cell(out, e->error[0] != '\0' ? e->error : e->reason);
	text_add(out, "<td></td></tr>\n");
}

static void answer_page(struct way *w, const struct serve_asset *page)
{
	struct serve_text *out = &w->reply->body;
	size_t n = strlen(MARK);
	size_t at = 0;
	bool reads = guard_rights(w) != 0;

	while (at + n < page->n && memcmp(page->text + at, MARK, n) != 0)
		at++;
	w->reply->status = 200;
	w->reply->type = page->type;
	text_add_n(out, page->text, at);
	for (size_t i = 0; reads && i < w->view->n_elections && i < 1000; i++)
		write_table_row(out, w->view, w->view->elections[i]);
	if (at + n < page->n)
		text_add_n(out, page->text + at + n, page->n - at - n);
}

static void answer_elector(struct way *w)
{
	reply_json(w, 200);
	serve_write_elector(&w->reply->body, w->view, w->view->elections[0]);
	text_add(&w->reply->body, "\n");
}

void front_answer(struct way *w)
{
	const struct serve_view *v = w->view;
	const char *path = w->parsed.n_segments == 0 ? "index.html" : w->parsed.segments[0];
	const struct serve_asset *asset = find_asset(v, path);

	if (!is_read(w))
		return;
	if (w->parsed.n_segments == 0 && v->n_elections == 1 &&
	    !header_has(w->request->accept, "text/html")) {
		if (guard_allows(w, SERVE_READ | SERVE_APPLY | SERVE_OPERATE))
			answer_elector(w);
	} else if (asset == NULL) {
		serve_problem(w->reply, 404, "invalid", "there is nothing here");
	} else if (w->parsed.n_segments == 0) {
		answer_page(w, asset);
	} else {
		w->reply->status = 200;
		w->reply->type = asset->type;
		w->reply->is_asset = true;
		w->reply->body_at = asset->text;
		w->reply->n_body = asset->n;
	}
}
