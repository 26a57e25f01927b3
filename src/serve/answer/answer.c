/*
 * answer.c: the way of a request. It is taken apart; probes are answered first; then guard.c says
 * whether it may come in; then the file for its path answers it. What can't be answered becomes a
 * problem with one sentence.
 */
#include <string.h>

#include "serve/answer/route.h"

static bool is_front(const struct way *w)
{
	if (w->parsed.n_segments == 0)
		return true;
	for (size_t i = 0; w->parsed.n_segments == 1 && i < w->view->n_assets; i++)
		if (strcmp(w->parsed.segments[0], w->view->assets[i].path) == 0)
			return true;
	return false;
}

void serve_answer(const struct serve_request *request, const struct serve_view *view,
		  struct serve_reply *reply)
{
	struct serve_text body = reply->body;
	struct way w = {.request = request, .view = view, .reply = reply};

	(void)memset(reply, 0, sizeof(*reply));
	reply->body = body;
	reply->body.n = 0;
	reply->status = 200;
	reply->type = "";
	reply->after = UINT64_MAX;
	if (!parse_target(request->target, &w.parsed)) {
		serve_problem(reply, 400, "invalid",
			      "the path is too long, too deep, or has a wrong %xx");
		return;
	}
	if (probe_answer(&w))
		return;
	if (request->n_body > SERVE_BODY_MAX) {
		serve_problem(reply, 413, "invalid", "the body has more than 4096 bytes");
		return;
	}
	if (!guard_admits(&w))
		return;
	/* The files of the dashboard are the same everywhere: a browser gets them before its user
	 * can give a token. The rows of the table are not: front.c leaves them out. */
	if (is_front(&w))
		front_answer(&w);
	else if (guard_allows(&w, SERVE_READ | SERVE_APPLY | SERVE_OPERATE))
		state_answer(&w);
}

/* ---- shared by the rooms ---- */

bool is_method(const struct way *w, const char *method)
{
	return strcmp(w->request->method, method) == 0;
}

bool is_read(struct way *w)
{
	if (is_method(w, "GET") || is_method(w, "HEAD"))
		return true;
	reply_not_allowed(w, "GET, HEAD");
	return false;
}

bool is_posted(struct way *w)
{
	if (is_method(w, "POST"))
		return true;
	reply_not_allowed(w, "POST");
	return false;
}

void reply_json(struct way *w, int status)
{
	w->reply->status = status;
	w->reply->type = "application/json";
}

void reply_role(struct way *w, const struct serve_election *e)
{
	w->reply->election = e;
	w->reply->has_role = true;
}

bool serve_leads(const struct serve_view *view, const struct serve_election *e)
{
	return e->leads && view->now_boot_ns < e->deadline_boot_ns;
}

const struct serve_election *serve_find(const struct serve_view *view, const char *name)
{
	size_t low = 0;
	size_t high = view->n_elections;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, view->elections[middle]->name);

		if (order == 0)
			return view->elections[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* ---- problems ---- */

/* Ends the sentence, also one that was cut. */
static const char *end_sentence(struct serve_text *t)
{
	t->at[t->n < t->room ? t->n : t->room] = '\0';
	return t->at;
}

static void add_shown(struct serve_text *t, const char *value)
{
	size_t n = strlen(value);

	text_add(t, "\"");
	text_add_n(t, value, n < VALUE_SHOWN ? n : VALUE_SHOWN);
	text_add(t, n > VALUE_SHOWN ? "...\"" : "\"");
}

const char *refuse_value(char room[WRONG_MAX], const char *name, const char *value,
			 const char *expected)
{
	struct serve_text t = {room, WRONG_MAX - 1, 0};

	text_add(&t, "invalid value for \"");
	text_add(&t, name);
	text_add(&t, "\": ");
	add_shown(&t, value);
	text_add(&t, "; expected ");
	text_add(&t, expected);
	return end_sentence(&t);
}

const char *refuse_member(char room[WRONG_MAX], const char *key, const char *known)
{
	struct serve_text t = {room, WRONG_MAX - 1, 0};

	text_add(&t, "unknown member ");
	add_shown(&t, key);
	text_add(&t, " of the body; this request has ");
	text_add(&t, known);
	return end_sentence(&t);
}

void reply_invalid(struct way *w, const char *name, const char *value, const char *expected)
{
	char wrong[WRONG_MAX];

	serve_problem(w->reply, 400, "invalid", refuse_value(wrong, name, value, expected));
}

void reply_not_allowed(struct way *w, const char *allow)
{
	char wrong[WRONG_MAX] = "";
	struct serve_text t = {wrong, WRONG_MAX - 1, 0};

	text_add(&t, "the method ");
	add_shown(&t, w->request->method);
	text_add(&t, " is not allowed here; expected ");
	text_add(&t, allow);
	serve_problem(w->reply, 405, "invalid", end_sentence(&t));
	w->reply->allow = allow;
}

static const char *title_of(int status)
{
	static const struct {
		int status;
		const char *title;
	} titles[] = {
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{409, "Conflict"},
		{410, "Gone"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{415, "Unsupported Media Type"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Internal Server Error";
}

void serve_problem(struct serve_reply *reply, int status, const char *word, const char *detail)
{
	struct serve_text *out = &reply->body;

	out->n = 0;
	reply->status = status;
	reply->task = SERVE_NOTHING;
	reply->is_asset = false;
	reply->type = "application/problem+json";
	text_add(out, "{\"type\":\"about:blank\",\"title\":");
	text_string(out, title_of(status));
	text_add(out, ",\"status\":");
	text_number(out, status);
	text_add(out, ",\"code\":");
	text_string(out, word);
	text_add(out, ",\"detail\":");
	text_string(out, detail);
	text_add(out, "}\n");
}

void serve_problem_of(struct serve_reply *reply, int code, const char *word, const char *detail)
{
	int status = 500;

	switch (code) {
	case BATON_E_INVALID:
	case BATON_E_TIMING: status = 400; break;
	case BATON_E_NOT_LEADER:
	case BATON_E_NOT_STARTED:
	case BATON_E_EXISTS:
	case BATON_E_BUSY: status = 409; break;
	case BATON_E_STALE: status = 412; break;
	case BATON_E_NO_CANDIDATE: status = 422; break;
	case BATON_E_UNSUPPORTED: status = 501; break;
	case BATON_E_UNAVAILABLE:
	case BATON_E_DENIED:
	case BATON_E_CORRUPT: status = 503; break;
	case BATON_E_TIMEOUT: status = 504; break;
	default: break;
	}
	serve_problem(reply, status, word, detail);
}
