/* route.h: what the files of the pure answer share. */
#ifndef BATON_SERVE_ROUTE_H
#define BATON_SERVE_ROUTE_H

#include "serve/answer/parse.h"

/* One request on its way through. */
struct way {
	const struct serve_request *request;
	const struct serve_view *view;
	struct serve_reply *reply;
	struct parsed parsed;
};

/* ---- guard.c ---- */

/* Whether the request may come in at all: by its host, and, for changes, by where it comes from.
 * False: the reply says why not. */
bool guard_admits(struct way *w);
/* Whether it has the rights; false: 401 or 403 is in the reply. */
bool guard_allows(struct way *w, unsigned right);
/* The rights of the client; a set of bits. */
unsigned guard_rights(const struct way *w);

/* ---- the rooms ---- */

/* True: it was one of the probes. */
bool probe_answer(struct way *w);
void state_answer(struct way *w);
void front_answer(struct way *w);
void work_answer(struct way *w, const struct serve_election *e, const char *verb);
void order_answer(struct way *w, const struct serve_election *e, const char *verb);

/* ---- shared ---- */

bool is_method(const struct way *w, const char *method);
/* GET or HEAD; else the reply is 405. */
bool is_read(struct way *w);
bool is_posted(struct way *w);
void reply_json(struct way *w, int status);
void reply_role(struct way *w, const struct serve_election *e);
/* What is wrong with a request: the sentence is written into room, cut where that ends, and
 * returned. What the client sent is shown up to VALUE_SHOWN bytes: never give it a token. */
#define WRONG_MAX 240
#define VALUE_SHOWN 40
const char *refuse_value(char room[WRONG_MAX], const char *name, const char *value,
			 const char *expected);
const char *refuse_member(char room[WRONG_MAX], const char *key, const char *known);
/* 400 with the sentence of refuse_value(). */
void reply_invalid(struct way *w, const char *name, const char *value, const char *expected);
/* 405; allow is the header's list. */
void reply_not_allowed(struct way *w, const char *allow);
/* Whether a header has the word in it, in any case. */
bool header_has(const char *header, const char *word);

#endif
