/*
 * order.c: what operators may order: resign, transfer, pause, resume. An order names the term that
 * it is meant for (rule 10): a click meant for one leader must never hit the next.
 */
#include <string.h>

#include "serve/answer/route.h"

enum order { ORDER_RESIGN, ORDER_TRANSFER, ORDER_PAUSED };

struct taker {
	struct serve_reply *reply;
	int order;
	char wrong[WRONG_MAX];
};

/* What the bodies of the orders may have. */
static const char *const known_members[] = {
	[ORDER_RESIGN] = "note and quiet",
	[ORDER_TRANSFER] = "note and to",
	[ORDER_PAUSED] = "none",
};

/* What an order would leave out is refused, so that no client believes that it was done. */
static const char *take_member(void *arg, const char *key, const struct parsed_value *value)
{
	struct taker *taker = arg;
	struct serve_reply *reply = taker->reply;

	if (taker->order != ORDER_PAUSED && strcmp(key, "note") == 0) {
		if (value->kind != 's' || strlen(value->text) > BATON_NOTE_MAX)
			return refuse_value(taker->wrong, key, value->text,
					    "a string of up to 200 bytes");
		(void)memcpy(reply->note, value->text, strlen(value->text) + 1);
		return NULL;
	}
	if (taker->order == ORDER_RESIGN && strcmp(key, "quiet") == 0)
		return (value->kind == 's' || value->kind == 'n') &&
				       parse_time(value->text, &reply->quiet_ms)
			       ? NULL
			       : refuse_value(taker->wrong, key, value->text,
					      "a time such as 30s, up to a day");
	if (taker->order == ORDER_TRANSFER && strcmp(key, "to") == 0) {
		if (value->kind != 's' || strlen(value->text) > BATON_NAME_MAX)
			return refuse_value(taker->wrong, key, value->text,
					    "the id of a candidate");
		(void)memcpy(reply->to, value->text, strlen(value->text) + 1);
		return NULL;
	}
	return refuse_member(taker->wrong, key, known_members[taker->order]);
}

/* False: the reply says what is wrong with the body. */
static bool take_body(struct way *w, int order)
{
	struct taker taker = {.reply = w->reply, .order = order};
	const char *wrong = parse_object(w->request->body, w->request->n_body, take_member, &taker);

	if (wrong == NULL && order == ORDER_TRANSFER && w->reply->to[0] == '\0')
		wrong = "the body lacks \"to\"; write {\"to\":\"ID\"}";
	if (wrong != NULL)
		serve_problem(w->reply, 400, "invalid", wrong);
	return wrong == NULL;
}

/*
 * Takes the term from If-Match, "7" with its quotes. Where one is required, ?any=1 stands for it.
 * False: the reply says what is wrong.
 */
static bool take_match(struct way *w, const struct serve_election *e, bool required)
{
	const char *match = w->request->if_match;
	const char *any = parse_query(&w->parsed, "any");
	char word[32] = "";

	if (match == NULL) {
		if (!required || (any != NULL && strcmp(any, "1") == 0))
			return true;
		serve_problem(
			w->reply, 412, "invalid",
			"the header If-Match is missing; write If-Match: \"TERM\", or ?any=1");
		return false;
	}
	size_t n = strlen(match);

	if (n >= 3 && n - 2 < sizeof(word) && match[0] == '"' && match[n - 1] == '"') {
		(void)memcpy(word, match + 1, n - 2);
		word[n - 2] = '\0';
	}
	if (!parse_unsigned(word, &w->reply->term) || w->reply->term == 0) {
		reply_invalid(w, "If-Match", match, "a term in quotation marks, such as \"7\"");
		return false;
	}
	if (w->reply->term == e->term)
		return true;
	serve_problem(w->reply, 412, "stale", "another term leads now");
	return false;
}

static bool take_wait(struct way *w)
{
	const char *wait = parse_query(&w->parsed, "wait");

	if (wait == NULL || (parse_time(wait, &w->reply->wait_ms) && w->reply->wait_ms <= 60000))
		return true;
	reply_invalid(w, "wait", wait, "a time of up to 60s");
	return false;
}

static void answer_order(struct way *w, const struct serve_election *e, int order)
{
	if (!is_posted(w) || !guard_allows(w, SERVE_OPERATE) || !take_body(w, order))
		return;
	if (take_match(w, e, true) && take_wait(w)) {
		w->reply->task = order == ORDER_TRANSFER ? SERVE_TRANSFER : SERVE_RESIGN;
		w->reply->status = 202;
	}
}

/* A pause is a flag of the election, independent of its leader (rule 10): it needs no term. A term
 * that is named is compared all the same. */
static void answer_paused(struct way *w, const struct serve_election *e)
{
	bool pauses = is_method(w, "PUT");

	if (!pauses && !is_method(w, "DELETE")) {
		reply_not_allowed(w, "PUT, DELETE");
		return;
	}
	if (!guard_allows(w, SERVE_OPERATE) || !take_body(w, ORDER_PAUSED) ||
	    !take_match(w, e, false))
		return;
	w->reply->task = pauses ? SERVE_PAUSE : SERVE_RESUME;
	w->reply->status = 204;
}

void order_answer(struct way *w, const struct serve_election *e, const char *verb)
{
	if (strcmp(verb, "resign") == 0)
		answer_order(w, e, ORDER_RESIGN);
	else if (strcmp(verb, "transfer") == 0)
		answer_order(w, e, ORDER_TRANSFER);
	else if (strcmp(verb, "paused") == 0)
		answer_paused(w, e);
	else
		serve_problem(w->reply, 404, "invalid", "there is nothing here");
}
