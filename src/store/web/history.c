/*
 * history.c: the last leaderships of an election as one text; see web.h. It is for stores that keep
 * the text beside the claim, and write it with the claim and with the release. A text that isn't
 * valid counts as an empty history: nothing here decides who leads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/web/web.h"

/* The caller drops the reference. NULL: no memory. */
static json_t *history_parse(const char *text)
{
	json_t *list = js_parse(text, strlen(text));

	if (json_is_array(list))
		return list;
	json_decref(list);
	return json_array();
}

static char *history_dump(json_t *list)
{
	while (json_array_size(list) > WEB_HISTORY_MAX)
		(void)json_array_remove(list, json_array_size(list) - 1);
	char *text = json_dumps(list, JSON_COMPACT);

	json_decref(list);
	return text;
}

static json_t *history_row(const struct baton_leadership *h)
{
	char term[24];

	(void)snprintf(term, sizeof(term), "%" PRIu64, h->term);
	return json_pack("{s:s,s:s,s:I,s:I,s:s,s:s}", "term", term, "leader", h->leader, "since",
			 (json_int_t)h->since_ms, "until", (json_int_t)h->until_ms, "ended",
			 h->ended, "note", h->note);
}

static uint64_t history_top(const json_t *list)
{
	uint64_t term = 0;

	(void)js_u64(json_array_get(list, 0), "term", &term);
	return term;
}

/* Writes the end of the newest leadership, unless an end is written there already. */
static void history_end(json_t *list, int64_t until_ms, const char *ended, const char *note)
{
	json_t *top = json_array_get(list, 0);

	if (top == NULL || js_text(top, "ended")[0] != '\0')
		return;
	(void)json_object_set_new(top, "until", json_integer((json_int_t)until_ms));
	(void)json_object_set_new(top, "ended", json_string(ended));
	(void)json_object_set_new(top, "note", json_string(note));
}

char *web_history_begun(const char *text, const struct baton_leadership *foreign,
			const struct baton_leadership *begun)
{
	json_t *list = history_parse(text);

	/* A leadership that wasn't given back had ended when the next one began. It is not
	 * known when. */
	history_end(list, 0, "expired", "");
	if (foreign != NULL && foreign->term > history_top(list))
		(void)json_array_insert_new(list, 0, history_row(foreign));
	(void)json_array_insert_new(list, 0, history_row(begun));
	return history_dump(list);
}

char *web_history_ended(const char *text, uint64_t term, int64_t until_ms, const char *ended,
			const char *note)
{
	json_t *list = history_parse(text);

	if (history_top(list) == term)
		history_end(list, until_ms, ended, note);
	return history_dump(list);
}

static void history_copy(char *to, size_t size, const json_t *row, const char *key)
{
	(void)snprintf(to, size, "%s", js_text(row, key));
}

void web_history_tell(const char *text, const struct baton_leadership *foreign, bool is_led,
		      size_t max,
		      void (*found)(void *arg, const struct baton_leadership *leadership),
		      void *arg)
{
	json_t *list = history_parse(text);
	size_t n = 0;

	if (foreign != NULL && foreign->term > history_top(list) && max > 0) {
		found(arg, foreign);
		n = 1;
	}
	for (size_t i = 0; i < json_array_size(list) && n < max; i++, n++) {
		const json_t *row = json_array_get(list, i);
		struct baton_leadership h = {.size = sizeof(h)};

		(void)js_u64(row, "term", &h.term);
		(void)js_i64(row, "since", &h.since_ms);
		(void)js_i64(row, "until", &h.until_ms);
		history_copy(h.leader, sizeof(h.leader), row, "leader");
		history_copy(h.ended, sizeof(h.ended), row, "ended");
		history_copy(h.note, sizeof(h.note), row, "note");
		if (h.ended[0] == '\0' && (n > 0 || !is_led))
			(void)snprintf(h.ended, sizeof(h.ended), "expired");
		found(arg, &h);
	}
	json_decref(list);
}
