/*
 * past.c: the leaderships of an election, each under keys of its own; see web.h. So a claim need
 * not know what was there before. The service's own count of writes is the clock: a leadership
 * began when its key was made, and had ended when the key of its end was made. A leadership that
 * was not given back has no such key: it was over when the next one began.
 *
 * Another program writes nothing down. The next leader of ours writes down what it has seen of that
 * program's leadership. Two leaders of ours may write down the same one.
 *
 * Nothing here decides who leads. A value that isn't valid is left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/web/web.h"

void web_past_saw(struct web_store *s, const char *name, const struct baton_record *now,
		  bool is_foreign)
{
	struct baton_leadership h = {
		.size = sizeof(h), .term = now->term, .since_ms = now->since_ms};

	if (!now->held)
		return;
	(void)snprintf(h.leader, sizeof(h.leader), "%s", now->leader);
	web_index_set_foreign(s->watches, name, is_foreign ? &h : NULL);
}

/* ---- writing ---- */

static json_t *number_json(uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return json_string(text);
}

static char *past_dump(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	json_decref(value);
	return text;
}

char *web_past_begun(uint64_t native, uint64_t offset, const char *leader,
		     const struct baton_leadership *before)
{
	json_t *value = json_pack("{s:s,s:I,s:o}", "leader", leader, "since",
				  (json_int_t)clock_wall_ms(), "offset", number_json(offset));

	if (native != 0)
		(void)json_object_set_new(value, "native", number_json(native));
	if (before != NULL)
		(void)json_object_set_new(
			value, "before",
			json_pack("{s:o,s:s,s:I}", "term", number_json(before->term), "leader",
				  before->leader, "since", (json_int_t)before->since_ms));
	return past_dump(value);
}

char *web_past_ended(const struct baton_release *r)
{
	bool has_reason = r->reason != NULL && r->reason[0] != '\0';

	return past_dump(json_pack("{s:o,s:I,s:s}", "term", number_json(r->term), "until",
				   (json_int_t)clock_wall_ms(), "ended",
				   has_reason ? r->reason : "released"));
}

/* ---- reading ---- */

/* NULL: no memory. */
static struct web_past *past_new(struct web_past_list *list, const char *id)
{
	if (list->n == list->room) {
		size_t room = list->room * 2 + 32;
		struct web_past *at = realloc(list->at, room * sizeof(*at));

		if (at == NULL) {
			list->has_failed = true;
			return NULL;
		}
		list->at = at;
		list->room = room;
	}
	struct web_past *p = &list->at[list->n++];

	*p = (struct web_past){.h = {.size = sizeof(p->h)}};
	(void)snprintf(p->id, sizeof(p->id), "%s", id);
	return p;
}

static void past_read_before(struct web_past_list *list, const char *id, const json_t *before)
{
	struct web_past *p = before != NULL ? past_new(list, id) : NULL;

	if (p == NULL)
		return;
	p->is_foreign = true;
	(void)js_u64(before, "term", &p->h.term);
	(void)js_i64(before, "since", &p->h.since_ms);
	(void)snprintf(p->h.leader, sizeof(p->h.leader), "%s", js_text(before, "leader"));
	(void)snprintf(p->h.ended, sizeof(p->h.ended), "unknown");
}

static void past_read_begun(struct web_past_list *list, const char *id, const json_t *value,
			    const struct web_past_key *key)
{
	uint64_t native = 0;
	uint64_t offset = 0;

	past_read_before(list, id, js_get(value, "before"));
	struct web_past *p = past_new(list, id);

	if (p == NULL)
		return;
	if (!js_u64(value, "native", &native))
		native = key->native;
	(void)js_u64(value, "offset", &offset);
	(void)js_i64(value, "since", &p->h.since_ms);
	p->h.term = term_sum(native, offset);
	p->h.since_ns = key->made;
	(void)snprintf(p->h.clock, sizeof(p->h.clock), "%s %" PRIu64, key->service, offset);
	(void)snprintf(p->h.leader, sizeof(p->h.leader), "%s", js_text(value, "leader"));
}

static void past_read_ended(struct web_past *p, const json_t *value, uint64_t made)
{
	(void)js_u64(value, "term", &p->h.term);
	(void)js_i64(value, "until", &p->h.until_ms);
	p->h.until_ns = made;
	(void)snprintf(p->h.ended, sizeof(p->h.ended), "%.60s", js_text(value, "ended"));
}

void web_past_read(struct web_past_list *list, const struct web_past_key *key, const char *value)
{
	struct web_past *last = list->n > 0 ? &list->at[list->n - 1] : NULL;
	const char *slash = strrchr(key->key, '/');
	const char *tail = slash != NULL ? slash + 1 : key->key;
	size_t n = strcspn(tail, ".");
	char id[WEB_PAST_ID_MAX + 1];

	if (n == 0 || n > WEB_PAST_ID_MAX)
		return;
	(void)snprintf(id, sizeof(id), "%.*s", (int)n, tail);
	bool is_more = last != NULL && strcmp(last->id, id) == 0;
	json_t *json = strcmp(tail + n, ".note") == 0 ? NULL : js_parse(value, strlen(value));

	if (tail[n] == '\0' && json_is_object(json))
		past_read_begun(list, id, json, key);
	else if (is_more && strcmp(tail + n, ".end") == 0 && json_is_object(json))
		past_read_ended(last, json, key->made);
	else if (is_more && strcmp(tail + n, ".note") == 0)
		(void)snprintf(last->h.note, sizeof(last->h.note), "%s", value);
	json_decref(json);
}

/* Sorts by term: a cluster that has lost its data begins a new count of writes, but terms go on. Of
 * entries with the same term, those that leaders wrote of themselves come before what others
 * tell. */
static int newest_first(const void *a, const void *b)
{
	const struct web_past *x = a;
	const struct web_past *y = b;

	if (x->h.term != y->h.term)
		return x->h.term < y->h.term ? 1 : -1;
	if (x->is_foreign != y->is_foreign)
		return x->is_foreign ? 1 : -1;
	return x->h.since_ns < y->h.since_ns ? 1 : x->h.since_ns > y->h.since_ns ? -1 : 0;
}

void web_past_sort(struct web_past_list *list)
{
	size_t n = 0;

	if (list->n > 1)
		qsort(list->at, list->n, sizeof(list->at[0]), newest_first);
	for (size_t i = 0; i < list->n; i++)
		if (!list->at[i].is_foreign || n == 0 ||
		    list->at[n - 1].h.term != list->at[i].h.term)
			list->at[n++] = list->at[i];
	list->n = n;
}

/* Keeps the note only if an order has ended the leadership. A leadership without an end has
 * expired, unless it is the present one. */
static void past_tidy(struct web_past *p, bool is_led)
{
	if (!store_is_by_order(p->h.ended))
		p->h.note[0] = '\0';
	if (p->h.ended[0] == '\0' && !is_led)
		(void)snprintf(p->h.ended, sizeof(p->h.ended), "expired");
}

void web_past_tell(struct web_past_list *list, const struct baton_record *now, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	bool is_foreign = now->held && (list->n == 0 || now->term > list->at[0].h.term);

	if (is_foreign && max > 0) { /* another program leads, which writes nothing down */
		struct baton_leadership h = {
			.size = sizeof(h), .term = now->term, .since_ms = now->since_ms};

		(void)snprintf(h.leader, sizeof(h.leader), "%s", now->leader);
		found(arg, &h);
		max--;
	}
	for (size_t i = 0; i < list->n && i < max; i++) {
		past_tidy(&list->at[i], i == 0 && now->held && !is_foreign);
		found(arg, &list->at[i].h);
	}
}

bool web_past_is_kept(const struct web_past_list *list, const char *key)
{
	const char *slash = strrchr(key, '/');
	const char *tail = slash != NULL ? slash + 1 : key;
	size_t n = strcspn(tail, ".");

	for (size_t i = 0; i < list->n && i < WEB_PAST_KEPT; i++)
		if (strlen(list->at[i].id) == n && strncmp(list->at[i].id, tail, n) == 0)
			return true;
	return false;
}
