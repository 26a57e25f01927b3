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
	char wrong[WRONG_MAX];
};

/* The members of the bodies that the application's requests may have. */
static const struct {
	const char *verb;
	const char *members[2];
	const char *listed;
} bodies[] = {
	{"lead", {"renewed"}, "renewed"},
	{"done", {"term"}, "term"},
	{"health", {"score", "metadata"}, "score and metadata"},
};

/* NULL: the member is known, else what the body may have instead. */
static const char *known_instead(const char *verb, const char *key)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		if (strcmp(verb, bodies[i].verb) != 0)
			continue;
		for (size_t k = 0; k < 2 && bodies[i].members[k] != NULL; k++)
			if (strcmp(key, bodies[i].members[k]) == 0)
				return NULL;
		return bodies[i].listed;
	}
	return "none";
}

static const char *take_member(void *arg, const char *key, const struct parsed_value *value)
{
	struct taker *taker = arg;
	struct serve_reply *reply = taker->reply;
	const char *instead = known_instead(taker->verb, key);

	if (instead != NULL)
		return refuse_member(taker->wrong, key, instead);
	if (strcmp(key, "term") == 0)
		return (value->kind == 's' || value->kind == 'n') &&
				       parse_unsigned(value->text, &reply->term)
			       ? NULL
			       : refuse_value(taker->wrong, key, value->text,
					      "a number from 1 on, best written as a string");
	if (strcmp(key, "score") == 0)
		return value->kind == 'n' && parse_part(value->text, &reply->score_permille)
			       ? NULL
			       : refuse_value(taker->wrong, key, value->text,
					      "a number from 0 to 1");
	if (strcmp(key, "renewed") == 0) {
		reply->tell_renewals = strcmp(value->text, "true") == 0;
		return value->kind == 'b'
			       ? NULL
			       : refuse_value(taker->wrong, key, value->text, "true or false");
	}
	if (value->kind != 's')
		return refuse_value(taker->wrong, key, value->text, "a string");
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
			      "the body lacks \"term\"; write {\"term\":\"7\"}");
		return;
	}
	w->reply->task = SERVE_DONE;
	w->reply->status = 204;
}

static void answer_health(struct way *w)
{
	if (w->reply->score_permille < 0) {
		serve_problem(w->reply, 400, "invalid",
			      "the body lacks \"score\"; write {\"score\":0.9}");
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
	struct taker taker = {.reply = w->reply, .verb = verb};
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
