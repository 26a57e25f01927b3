/*
 * resp.c: see resp.h. A reply is first scanned to its end, line by line and never twice, and then
 * built in one go. So bytes that trickle in cost no more than bytes that come at once.
 */
#include "store/redis/resp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)4096)
#define READ_ROOM ((size_t)2048)
/* The largest buffer that is kept between calls. */
#define KEEP_ROOM ((size_t)256 * 1024)

static bool resp_grow(char **data, size_t *room, size_t wanted)
{
	size_t size = *room < FIRST_ROOM ? FIRST_ROOM : *room;

	while (size < wanted)
		size *= 2;
	if (size == *room)
		return true;
	char *more = realloc(*data, size);

	if (more == NULL)
		return false;
	*data = more;
	*room = size;
	return true;
}

/* ---- out ---- */

void resp_out_clear(struct resp_out *o)
{
	if (o->room > KEEP_ROOM)
		resp_out_done(o);
	o->n = 0;
	o->failed = false;
}

void resp_out_done(struct resp_out *o)
{
	free(o->data);
	*o = (struct resp_out){0};
}

static void resp_put(struct resp_out *o, const char *data, size_t n)
{
	if (n == 0) /* data may be NULL then */
		return;
	if (o->failed || n > RESP_REPLY_MAX || o->n > RESP_REPLY_MAX ||
	    !resp_grow(&o->data, &o->room, o->n + n)) {
		o->failed = true;
		return;
	}
	(void)memcpy(o->data + o->n, data, n);
	o->n += n;
}

static void resp_put_head(struct resp_out *o, char kind, size_t n)
{
	char head[32];
	int size = snprintf(head, sizeof(head), "%c%zu\r\n", kind, n);

	resp_put(o, head, (size_t)size);
}

void resp_begin(struct resp_out *o, size_t n_words)
{
	resp_put_head(o, '*', n_words);
}

void resp_bytes(struct resp_out *o, const char *data, size_t n)
{
	resp_put_head(o, '$', n);
	resp_put(o, data, n);
	resp_put(o, "\r\n", 2);
}

void resp_text(struct resp_out *o, const char *text)
{
	resp_bytes(o, text, strlen(text));
}

void resp_number(struct resp_out *o, uint64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);

	resp_bytes(o, text, (size_t)n);
}

void resp_signed(struct resp_out *o, int64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%lld", (long long)number);

	resp_bytes(o, text, (size_t)n);
}

void resp_words(struct resp_out *o, const struct resp_out *words)
{
	o->failed = o->failed || words->failed;
	resp_put(o, words->data, words->n);
}

/* ---- in ---- */

void resp_in_clear(struct resp_in *in)
{
	in->n = 0;
	in->used = 0;
	in->scanned = 0;
	in->n_nodes = 0;
	in->depth = 0;
	in->left[0] = 0;
}

void resp_in_done(struct resp_in *in)
{
	free(in->data);
	free(in->nodes);
	*in = (struct resp_in){0};
}

/* Only between replies, because a reply that was built points into the data. */
static void resp_compact(struct resp_in *in)
{
	if (in->used == 0)
		return;
	(void)memmove(in->data, in->data + in->used, in->n - in->used);
	in->n -= in->used;
	in->scanned -= in->used;
	in->used = 0;
}

char *resp_in_room(struct resp_in *in, size_t *n)
{
	resp_compact(in);
	if (in->n >= RESP_REPLY_MAX || !resp_grow(&in->data, &in->room, in->n + READ_ROOM))
		return NULL;
	*n = in->room - in->n;
	return in->data + in->n;
}

void resp_in_got(struct resp_in *in, size_t n)
{
	in->n += n;
}

/* Reads a number of at most 20 characters, with an optional sign and nothing else. */
static bool resp_parse_number(const char *text, size_t n, int64_t *out)
{
	char copy[24];
	char *end;

	if (n == 0 || n >= sizeof(copy) || memchr(text, ' ', n) != NULL)
		return false;
	(void)memcpy(copy, text, n);
	copy[n] = '\0';
	errno = 0;
	*out = strtoll(copy, &end, 10);
	return errno == 0 && *end == '\0';
}

/* The length of the line at `at` without its end. 1: found; 0: not complete yet; -1: too long. */
static int resp_line_at(const struct resp_in *in, size_t at, size_t *n)
{
	size_t there = in->n - at;
	const char *end =
		memchr(in->data + at, '\n', there < RESP_LINE_MAX ? there : RESP_LINE_MAX);

	if (end == NULL)
		return there < RESP_LINE_MAX ? 0 : -1;
	*n = (size_t)(end - (in->data + at));
	if (*n == 0 || in->data[at + *n - 1] != '\r')
		return -1;
	*n -= 1;
	return 1;
}

/* A reply on the present level is complete, and perhaps those around it are, too. */
static void resp_scan_up(struct resp_in *in)
{
	in->left[in->depth]--;
	while (in->depth > 0 && in->left[in->depth] == 0) {
		in->depth--;
		in->left[in->depth]--;
	}
}

static int resp_scan_array(struct resp_in *in, int64_t n)
{
	if (n < -1 || n > RESP_ITEMS_MAX || (n > 0 && in->depth == RESP_DEPTH_MAX))
		return -1;
	if (n <= 0) {
		resp_scan_up(in);
		return 1;
	}
	in->n_nodes += (size_t)n;
	if (in->n_nodes > RESP_NODES_MAX)
		return -1;
	in->left[++in->depth] = n;
	return 1;
}

/* Skips one element. 1: done; 0: it isn't complete yet; -1: it isn't valid. */
static int resp_scan_one(struct resp_in *in)
{
	size_t at = in->scanned;
	size_t n = 0;
	int64_t number = 0;
	int rc = at < in->n ? resp_line_at(in, at, &n) : 0;

	if (rc <= 0)
		return rc;
	char kind = in->data[at];
	size_t next = at + n + 2;

	if (strchr(":$*", kind) != NULL && kind != '\0' &&
	    !resp_parse_number(in->data + at + 1, n - 1, &number))
		return -1;
	if (kind == '*') {
		in->scanned = next;
		return resp_scan_array(in, number);
	}
	if (kind == '$' && (number < -1 || number > RESP_BULK_MAX))
		return -1;
	if (kind == '$' && number >= 0) {
		size_t size = (size_t)number;

		if (in->n - next < size + 2)
			return 0;
		if (in->data[next + size] != '\r' || in->data[next + size + 1] != '\n')
			return -1;
		next += size + 2;
	} else if (kind == '\0' || strchr("+-:$", kind) == NULL) {
		return -1;
	}
	in->scanned = next;
	resp_scan_up(in);
	return 1;
}

/* Builds a reply; after the scan this can't fail. Ends of lines become ends of texts. */
static size_t resp_build(struct resp_in *in, size_t at, struct resp *to, size_t *next_node)
{
	size_t n = 1;
	char kind = in->data[at];

	(void)resp_line_at(in, at, &n);
	char *line = in->data + at + 1;
	*to = (struct resp){.text = line, .n = n - 1};
	in->data[at + n] = '\0';
	at += n + 2;
	if (kind == '+' || kind == '-') {
		to->type = kind == '+' ? RESP_STATUS : RESP_ERROR;
		return at;
	}
	(void)resp_parse_number(line, n - 1, &to->integer);
	to->type = kind == ':' ? RESP_INTEGER : RESP_NIL;
	if (kind == ':' || to->integer < 0)
		return at;
	to->n = (size_t)to->integer;
	if (kind == '$') {
		to->type = RESP_TEXT;
		to->text = in->data + at;
		in->data[at + to->n] = '\0';
		return at + to->n + 2;
	}
	struct resp *items = in->nodes + *next_node;

	to->type = RESP_ARRAY;
	to->text = "";
	to->items = items;
	*next_node += to->n;
	for (size_t i = 0; i < to->n; i++)
		at = resp_build(in, at, &items[i], next_node);
	return at;
}

int resp_take(struct resp_in *in, const struct resp **reply)
{
	int rc = 1;

	if (in->left[0] == 0) { /* a new reply begins */
		in->scanned = in->used;
		in->n_nodes = 1;
		in->depth = 0;
		in->left[0] = 1;
	}
	while (rc == 1 && in->left[0] > 0)
		rc = resp_scan_one(in);
	if (rc <= 0)
		return rc;
	if (in->n_nodes > in->nodes_room) {
		struct resp *more = realloc(in->nodes, in->n_nodes * sizeof(*more));

		if (more == NULL)
			return -1;
		in->nodes = more;
		in->nodes_room = in->n_nodes;
	}
	size_t next_node = 1;

	in->used = resp_build(in, in->used, &in->nodes[0], &next_node);
	*reply = &in->nodes[0];
	return 1;
}

/* ---- what stands in a reply ---- */

static const struct resp *item(const struct resp *list, size_t i)
{
	return list->type == RESP_ARRAY && i < list->n ? &list->items[i] : NULL;
}

const char *resp_get(const struct resp *list, size_t i)
{
	const struct resp *r = item(list, i);

	return r != NULL && (r->type == RESP_TEXT || r->type == RESP_STATUS) ? r->text : "";
}

bool resp_get_i64(const struct resp *list, size_t i, int64_t *out)
{
	const struct resp *r = item(list, i);

	if (r != NULL && r->type == RESP_INTEGER) {
		*out = r->integer;
		return true;
	}
	return r != NULL && r->type == RESP_TEXT && resp_parse_number(r->text, r->n, out);
}

bool resp_get_u64(const struct resp *list, size_t i, uint64_t *out)
{
	const struct resp *r = item(list, i);
	char *end;

	if (r == NULL || r->type != RESP_TEXT || r->n == 0 || r->n > 20 ||
	    strspn(r->text, "0123456789") != r->n)
		return false;
	errno = 0;
	*out = strtoull(r->text, &end, 10);
	return errno == 0 && *end == '\0';
}

bool resp_is(const struct resp *list, size_t i, const char *text)
{
	return strcmp(resp_get(list, i), text) == 0;
}
