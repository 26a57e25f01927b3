/*
 * work.c: the application's side: a connection that is the work, the word that work has ended, its
 * health, its signs of life. These need the rights of the application, because a stranger's word
 * would end leaderships.
 */
#include <string.h>

#include "serve/answer/route.h"

struct taker {
	struct serve_reply *reply;
	const char *verb;
};

/* The members of the bodies that the application's requests may have. */
static bool is_known(const char *verb, const char *key)
{
	static const char *const known[][2] = {
		{"lead", "renewed"}, {"done", "term"}, {"health", "score"}, {"health", "metadata"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(verb, known[i][0]) == 0 && strcmp(key, known[i][1]) == 0)
			return true;
	return false;
}

static const char *take_member(void *arg, const char *key, const struct parsed_value *value)
{
	struct serve_reply *reply = ((struct taker *)arg)->reply;

	if (!is_known(((struct taker *)arg)->verb, key))
		return "the body has a member that is not known here";
	if (strcmp(key, "term") == 0)
		return (value->kind == 's' || value->kind == 'n') &&
				       parse_unsigned(value->text, &reply->term)
			       ? NULL
			       : "term is a number from 1 on, best written as a string";
	if (strcmp(key, "score") == 0)
		return value->kind == 'n' && parse_part(value->text, &reply->score_permille)
			       ? NULL
			       : "score is a number from 0 to 1";
	if (strcmp(key, "renewed") == 0) {
		reply->tell_renewals = strcmp(value->text, "true") == 0;
		return value->kind == 'b' ? NULL : "renewed is true or false";
	}
	if (value->kind != 's')
		return "metadata is a string";
	(void)memcpy(reply->metadata, value->text, sizeof(reply->metadata));
	reply->has_metadata = true;
	return NULL;
}

static void answer_lead(struct way *w)
{
	const char *renewed = parse_query(&w->parsed, "renewed");

	if (w->view->stopping) {
		serve_problem(w->reply, 503, "unavailable", "baton serve is stopping");
		return;
	}
	w->reply->task = SERVE_LEAD;
	w->reply->status = 200;
	w->reply->tell_renewals |= renewed != NULL && strcmp(renewed, "1") == 0;
	w->reply->lines = header_has(w->request->accept, "application/x-ndjson");
	w->reply->type = w->reply->lines ? "application/x-ndjson" : "text/event-stream";
}

static void answer_done(struct way *w)
{
	if (w->reply->term == 0) {
		serve_problem(w->reply, 400, "invalid",
			      "which term is done? {\"term\":\"7\"} is the body");
		return;
	}
	w->reply->task = SERVE_DONE;
	w->reply->status = 204;
}

static void answer_health(struct way *w)
{
	if (w->reply->score_permille < 0) {
		serve_problem(w->reply, 400, "invalid",
			      "what is the score? {\"score\":0.9} is the body");
		return;
	}
	w->reply->task = SERVE_HEALTH;
	w->reply->status = 204;
}

void work_answer(struct way *w, const struct serve_election *e, const char *verb)
{
	if (!is_posted(w) || !guard_allows(w, SERVE_APPLY))
		return;
	w->reply->score_permille = -1;
	struct taker taker = {w->reply, verb};
	const char *wrong = parse_object(w->request->body, w->request->n_body, take_member, &taker);

	if (wrong != NULL) {
		serve_problem(w->reply, 400, "invalid", wrong);
	} else if (!e->takes_part) {
		serve_problem(w->reply, 409, "not_started", "this election is only observed here");
	} else if (strcmp(verb, "lead") == 0) {
		answer_lead(w);
	} else if (strcmp(verb, "done") == 0) {
		answer_done(w);
	} else if (strcmp(verb, "health") == 0) {
		answer_health(w);
	} else {
		w->reply->task = SERVE_ALIVE;
		w->reply->status = 204;
	}
}
