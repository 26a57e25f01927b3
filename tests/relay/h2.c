/*
 * h2.c: HTTP/2 without encryption, as gRPC uses it. A request is all that the client says on a
 * stream, and its kind the method, the last word of the path; a reply is all that the server says
 * on it, and its kind the grpc-status. Rules look for words in the headers, a line `name:value` for
 * each, and then in the body. What belongs to the connection itself, such as settings, pings and
 * windows, is passed on, and no rule sees it.
 *
 * What is asked for as a watch never ends: each piece of the answer is a message, and its kind is
 * bytes. So is what follows the beginning of a message that is longer than a window may be: its
 * sender would wait for the other end, which hasn't heard of it.
 *
 * So that a message can vanish or come twice, header blocks are written anew (hpack.h), and towards
 * the server streams have numbers of their own, given when a request goes there. Who doesn't begin
 * as HTTP/2 does is passed on as bytes; so is rubbish. Of a message whose sender goes away in the
 * middle of it nothing is passed on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hpack.h"
#include "protocols.h"

#define HEAD 9                /* bytes of a frame before what is in it */
#define FRAME_MAX 16384       /* what every end takes */
#define HOLD_MAX 32768        /* of one message; half of the smallest window */
#define STREAMS_MAX 64        /* at a time; one more, and the oldest is forgotten */
#define ID_MAX 0x7fffffffu    /* of a stream */
#define GRPC_HEAD ((size_t)5) /* a flag and a length, before what gRPC carries */

/* Who speaks, and who numbers streams. */
enum side { CLIENT, SERVER, N_SIDES };

struct frame {
	unsigned type;
	unsigned flags;
	uint32_t id; /* of its stream; 0: it is the connection's */
	const char *data;
	size_t n;
};

/* What one side has said on a stream, and hasn't been passed on. */
struct part {
	struct buffer frames; /* as they are passed on */
	struct buffer text;   /* as rules read it */
	size_t body;          /* where in the text it begins; 0: not yet */
	size_t window;        /* how many bytes of it windows count */
	char kind[KIND_SIZE];
	bool is_loose; /* each piece is passed on when it comes */
};

struct stream {
	bool is_used;
	bool is_watch;
	bool is_over;          /* the server has said its last word */
	uint64_t age;          /* the number of those before it */
	uint32_t ids[N_SIDES]; /* as that side knows it; 0: not at all */
	struct part parts[N_SIDES];
};

/* A header block, which may come in several frames. */
struct block {
	nghttp2_hd_inflater *inflater;
	struct buffer bytes;
	uint32_t id; /* of the stream, until it is whole; 0: there is none */
	bool is_last;
};

/* What is known of a connection. */
struct h2 {
	bool is_begun;     /* the client has said that it will be HTTP/2 */
	bool is_greeted;   /* the client has got settings: before that nothing may be said to it */
	bool is_greeting;  /* what was given would be lost with settings of our own */
	bool has_greeted;  /* they went to the client, which will say that it has got them */
	uint32_t next_id;  /* of a stream, towards the server */
	uint32_t going_id; /* the last stream that the server promised to serve */
	struct stream streams[STREAMS_MAX];
	uint64_t n_streams; /* ever */
	struct block blocks[N_SIDES];
	struct stream *given; /* whose message the caller has, until it asks for the next */
	enum side giver;
	/* What a message points to. */
	struct buffer out, lost, refusal;
	/* A block that was read. */
	struct buffer lines, anew;
};

/* ---- frames ---- */

static uint32_t read_number(const char *at, size_t n)
{
	uint32_t number = 0;

	for (size_t i = 0; i < n; i++)
		number = number << 8 | (unsigned char)at[i];
	return number;
}

static void write_number(char *at, size_t n, size_t number)
{
	for (; n > 0; number >>= 8)
		at[--n] = (char)(number & 0xff);
}

/* False: it isn't complete yet. */
static bool read_frame(struct frame *f, const char *data, size_t n)
{
	if (n < HEAD)
		return false;
	*f = (struct frame){.type = (unsigned char)data[3],
			    .flags = (unsigned char)data[4],
			    .id = read_number(data + 5, 4) & ID_MAX,
			    .data = data + HEAD,
			    .n = read_number(data, 3)};
	return n - HEAD >= f->n;
}

static bool add_frame(struct buffer *to, const struct frame *f)
{
	char head[HEAD];

	write_number(head, 3, f->n);
	head[3] = (char)f->type;
	head[4] = (char)f->flags;
	write_number(head + 5, 4, f->id);
	return buffer_add(to, head, sizeof(head)) && buffer_add(to, f->data, f->n);
}

static bool add_block(struct buffer *to, uint32_t id, bool is_last, const struct buffer *block)
{
	struct frame f = {
		.type = NGHTTP2_HEADERS, .flags = is_last ? NGHTTP2_FLAG_END_STREAM : 0, .id = id};
	bool ok = true;

	for (size_t at = 0; ok && at < block->n; at += f.n) {
		f.data = block->data + at;
		f.n = block->n - at < FRAME_MAX ? block->n - at : FRAME_MAX;
		if (at + f.n == block->n)
			f.flags |= NGHTTP2_FLAG_END_HEADERS;
		ok = add_frame(to, &f);
		f.type = NGHTTP2_CONTINUATION;
		f.flags = 0;
	}
	return ok;
}

/* Gives the sender back what windows have counted; else it believes one day that they are full. */
static bool add_window(struct buffer *to, size_t window)
{
	char number[4];

	write_number(number, sizeof(number), window);
	return window == 0 || add_frame(to, &(struct frame){.type = NGHTTP2_WINDOW_UPDATE,
							    .data = number,
							    .n = sizeof(number)});
}

/* Takes off what stands before and behind what a frame carries; false: it makes no sense. */
static bool unwrap(const struct frame *f, const char **data, size_t *n)
{
	bool has_priority = f->type == NGHTTP2_HEADERS && (f->flags & NGHTTP2_FLAG_PRIORITY) != 0;
	size_t before = has_priority ? 5 : 0;
	size_t behind = 0;

	if ((f->flags & NGHTTP2_FLAG_PADDED) != 0) {
		before++;
		behind = f->n > 0 ? (unsigned char)f->data[0] : 0;
	}
	if (before + behind > f->n)
		return false;
	*data = f->data + before;
	*n = f->n - before - behind;
	return true;
}

/* ---- streams ---- */

static void name(struct part *p, const char *word, size_t n)
{
	struct message m;

	protocol_kind(&m, word, n);
	memcpy(p->kind, m.kind, sizeof(p->kind));
}

static struct stream *find(struct h2 *h, enum side side, uint32_t id)
{
	for (size_t i = 0; i < STREAMS_MAX; i++)
		if (h->streams[i].is_used && h->streams[i].ids[side] == id)
			return &h->streams[i];
	return NULL;
}

static void forget_stream(struct stream *x)
{
	for (int side = 0; side < N_SIDES; side++) {
		buffer_free(&x->parts[side].frames);
		buffer_free(&x->parts[side].text);
	}
	*x = (struct stream){.is_used = false};
}

static struct stream *new_stream(struct h2 *h, uint32_t client, uint32_t server)
{
	struct stream *x = NULL;

	for (size_t i = 0; i < STREAMS_MAX && (x == NULL || x->is_used); i++) {
		struct stream *y = &h->streams[i];

		if (y != h->given && (x == NULL || !y->is_used || y->age < x->age))
			x = y;
	}
	forget_stream(x);
	x->is_used = true;
	x->age = h->n_streams++;
	x->ids[CLIENT] = client;
	x->ids[SERVER] = server;
	for (int side = 0; side < N_SIDES; side++)
		name(&x->parts[side], "bytes", 5);
	return x;
}

/* ---- messages ---- */

/* There is nothing to pass on yet, or ever. */
static bool give_nothing(struct message *m)
{
	m->is_aside = true;
	m->data = "";
	m->size = 0;
	return true;
}

static bool give_aside(struct message *m, const struct buffer *b)
{
	m->is_aside = true;
	m->data = b->data;
	m->size = b->n;
	return true;
}

/* It is of no stream that the other end knows: of a copy, or of a request that went nowhere. */
static bool give_unwanted(struct h2 *h, struct message *m, size_t window)
{
	give_nothing(m);
	m->is_aside = false;
	m->is_unwanted = true;
	h->lost.n = 0;
	if (h->is_greeted && !add_window(&h->lost, window))
		return false;
	m->lost = h->lost.data;
	m->lost_n = h->lost.n;
	return true;
}

/* "No leader" is what an etcd says that is sure not to have done it. */
static bool write_refusal(struct h2 *h, uint32_t id)
{
	struct buffer *block = &h->anew;

	block->n = 0;
	h->refusal.n = 0;
	return hpack_begin(block) && hpack_add(block, ":status", "200") &&
	       hpack_add(block, "content-type", "application/grpc") &&
	       hpack_add(block, "grpc-status", "14") &&
	       hpack_add(block, "grpc-message", "no leader, says the test") &&
	       add_block(&h->refusal, id, true, block);
}

static bool give(struct h2 *h, enum side side, struct stream *x, struct message *m)
{
	const struct part *p = &x->parts[side];

	h->lost.n = 0;
	h->is_greeting = side == CLIENT && !h->is_greeted;
	if ((h->is_greeting && !add_frame(&h->lost, &(struct frame){.type = NGHTTP2_SETTINGS})) ||
	    !add_window(&h->lost, p->window) ||
	    (side == CLIENT && !write_refusal(h, x->ids[CLIENT])))
		return false;
	m->is_push = side == SERVER && p->is_loose;
	memcpy(m->kind, p->kind, sizeof(m->kind));
	m->data = p->frames.data;
	m->size = p->frames.n;
	m->text = p->text.n > 0 ? p->text.data : "";
	m->text_n = p->text.n;
	m->lost = h->lost.data;
	m->lost_n = h->lost.n;
	m->refusal = h->refusal.data;
	m->refusal_n = h->refusal.n;
	return true;
}

/* What was given is passed on, or not. */
static void settle(struct h2 *h)
{
	struct stream *x = h->given;

	h->given = NULL;
	if (x == NULL)
		return;
	struct part *p = &x->parts[h->giver];

	p->frames.n = p->text.n = p->window = 0;
	if (x->ids[SERVER] == 0 && h->is_greeting)
		h->is_greeted = h->has_greeted = true;
	if (x->is_over || x->ids[SERVER] == 0) /* the server hasn't got it, and never will */
		forget_stream(x);
	h->is_greeting = false;
}

/* gRPC's first message is there: a watch may be asked for without ending the request. */
static bool has_message(const struct part *p)
{
	size_t n = p->body > 0 ? p->text.n - p->body : 0;

	return n >= GRPC_HEAD && n - GRPC_HEAD >= read_number(p->text.data + p->body + 1, 4);
}

/* A frame was added to what the side has said. */
static bool go_on(struct h2 *h, enum side side, struct stream *x, bool is_last, struct message *m)
{
	struct part *p = &x->parts[side];
	bool is_rest = p->is_loose;

	if (!is_last && !is_rest && p->frames.n < HOLD_MAX &&
	    !(side == CLIENT && x->is_watch && has_message(p)))
		return give_nothing(m);
	h->given = x;
	h->giver = side;
	x->is_over = side == SERVER && is_last;
	if (side == CLIENT && x->is_watch)
		x->parts[SERVER].is_loose = true;
	if (side == CLIENT && is_rest)
		return give_aside(m, &p->frames);
	bool ok = give(h, side, x, m);

	p->is_loose = !is_last;
	return ok;
}

/* ---- what frames say ---- */

/* What stands behind the word in the line that begins with it; NULL: there is none. */
static const char *find_line(const struct buffer *lines, const char *word, size_t *n)
{
	size_t size = strlen(word);

	for (size_t at = 0, next; at < lines->n; at = next) {
		const char *line = lines->data + at;
		const char *end = memchr(line, '\n', lines->n - at); /* of each of them */

		next = (size_t)(end + 1 - lines->data);
		*n = (size_t)(end - line);
		if (*n >= size && memcmp(line, word, size) == 0) {
			*n -= size;
			return line + size;
		}
	}
	return NULL;
}

static void name_request(struct stream *x, const struct buffer *lines)
{
	size_t n = 0;
	const char *path = find_line(lines, ":path:", &n);
	const char *slash = path != NULL ? memrchr(path, '/', n) : NULL;

	if (slash == NULL)
		return; /* what trails it */
	name(&x->parts[CLIENT], slash + 1, n - (size_t)(slash + 1 - path));
	x->is_watch = strcmp(x->parts[CLIENT].kind, "Watch") == 0;
}

static void name_reply(struct part *p, const struct buffer *lines)
{
	size_t n = 0;
	const char *status = find_line(lines, "grpc-status:", &n);

	if (status == NULL && !p->is_loose)
		status = find_line(lines, ":status:", &n);
	if (status != NULL)
		name(p, status, n);
}

static bool on_block(struct h2 *h, enum side side, struct message *m)
{
	struct block *b = &h->blocks[side];
	struct stream *x = find(h, side, b->id);

	h->lines.n = h->anew.n = 0;
	if (!hpack_read(b->inflater, &b->bytes, &h->lines, &h->anew))
		return false;
	if (x == NULL && side == CLIENT)
		x = new_stream(h, b->id, 0);
	b->id = 0;
	if (x == NULL || x->ids[CLIENT] == 0) {
		if (x != NULL && b->is_last)
			forget_stream(x);
		return give_unwanted(h, m, 0);
	}
	struct part *p = &x->parts[side];

	if (p->is_loose)
		name(p, "bytes", 5);
	if (side == CLIENT)
		name_request(x, &h->lines);
	else
		name_reply(p, &h->lines);
	return add_block(&p->frames, x->ids[!side], b->is_last, &h->anew) &&
	       buffer_add(&p->text, h->lines.data, h->lines.n) && go_on(h, side, x, b->is_last, m);
}

static bool on_headers(struct h2 *h, enum side side, const struct frame *f, struct message *m)
{
	struct block *b = &h->blocks[side];
	bool is_first = f->type == NGHTTP2_HEADERS;
	const char *data = f->data;
	size_t n = f->n;

	if (is_first == (b->id != 0) || (is_first && !unwrap(f, &data, &n)))
		return false;
	if (is_first) {
		b->bytes.n = 0;
		b->id = f->id;
		b->is_last = (f->flags & NGHTTP2_FLAG_END_STREAM) != 0;
	}
	if (!buffer_add(&b->bytes, data, n))
		return false;
	return (f->flags & NGHTTP2_FLAG_END_HEADERS) != 0 ? on_block(h, side, m) : give_nothing(m);
}

static bool on_data(struct h2 *h, enum side side, struct frame *f, struct message *m)
{
	struct stream *x = find(h, side, f->id);
	bool is_last = (f->flags & NGHTTP2_FLAG_END_STREAM) != 0;
	const char *body;
	size_t n;

	if (!unwrap(f, &body, &n))
		return false;
	if (x == NULL || x->ids[CLIENT] == 0) {
		if (x != NULL && is_last)
			forget_stream(x);
		return give_unwanted(h, m, f->n);
	}
	struct part *p = &x->parts[side];

	if (p->is_loose)
		name(p, "bytes", 5);
	if (p->body == 0)
		p->body = p->text.n;
	p->window += f->n;
	f->id = x->ids[!side];
	return add_frame(&p->frames, f) && buffer_add(&p->text, body, n) &&
	       go_on(h, side, x, is_last, m);
}

/* Of a request the server hears only if it knows it; it is the last word on the stream. */
static bool on_client_reset(struct h2 *h, struct frame *f, struct message *m)
{
	struct stream *x = find(h, CLIENT, f->id);

	if (x == NULL)
		return give_nothing(m);
	size_t asked = x->parts[CLIENT].window;
	size_t said = x->parts[SERVER].window;

	f->id = x->ids[SERVER];
	forget_stream(x);
	if (f->id == 0)
		return give_unwanted(h, m, asked);
	h->out.n = 0;
	return add_window(&h->out, said) && add_frame(&h->out, f) && give_aside(m, &h->out);
}

/* An answer, though not a nice one. */
static bool on_server_reset(struct h2 *h, struct frame *f, struct message *m)
{
	struct stream *x = find(h, SERVER, f->id);

	if (x == NULL || x->ids[CLIENT] == 0) {
		if (x != NULL)
			forget_stream(x);
		return give_nothing(m);
	}
	f->id = x->ids[CLIENT];
	name(&x->parts[SERVER], "reset", 5);
	return add_frame(&x->parts[SERVER].frames, f) && go_on(h, SERVER, x, true, m);
}

static bool on_window(struct h2 *h, enum side side, struct frame *f, struct message *m)
{
	struct stream *x = find(h, side, f->id);

	if (x == NULL || x->ids[CLIENT] == 0)
		return give_nothing(m);
	f->id = x->ids[!side];
	if (f->id == 0) /* it goes with the request */
		return add_frame(&x->parts[side].frames, f) && give_nothing(m);
	h->out.n = 0;
	return add_frame(&h->out, f) && give_aside(m, &h->out);
}

/* Nobody may refer to more than what is remembered here. */
static bool on_settings(struct h2 *h, enum side side, const struct frame *f, struct message *m)
{
	if (side == CLIENT && (f->flags & NGHTTP2_FLAG_ACK) != 0 && h->has_greeted) {
		h->has_greeted = false;
		return give_nothing(m); /* it means ours */
	}
	if (side == SERVER)
		h->is_greeted = true;
	h->out.n = 0;
	if (!add_frame(&h->out, f))
		return false;
	for (size_t at = HEAD; at + 6 <= h->out.n; at += 6) {
		char *setting = h->out.data + at;

		if (read_number(setting, 2) == NGHTTP2_SETTINGS_HEADER_TABLE_SIZE &&
		    read_number(setting + 2, 4) > HPACK_TABLE_MAX)
			write_number(setting + 2, 4, HPACK_TABLE_MAX);
	}
	return give_aside(m, &h->out);
}

/* The server won't serve streams behind a number: which is that, in the client's? Our numbers are
 * never lower than the client's, so that it is lower only if there is one that it refuses. */
static bool on_server_goaway(struct h2 *h, const struct frame *f, struct message *m)
{
	uint32_t last = f->n >= 4 ? read_number(f->data, 4) & ID_MAX : ID_MAX;

	if (last < h->going_id)
		h->going_id = last;
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		const uint32_t *ids = h->streams[i].ids;

		if (ids[CLIENT] != 0 && ids[SERVER] > last && ids[CLIENT] <= h->going_id)
			h->going_id = ids[CLIENT] > 2 ? ids[CLIENT] - 2 : 0;
	}
	h->out.n = 0;
	if (!add_frame(&h->out, f))
		return false;
	if (f->n >= 4)
		write_number(h->out.data + HEAD, 4, h->going_id);
	return give_aside(m, &h->out);
}

/* Of the connection itself. */
static bool on_connection(struct h2 *h, enum side side, const struct frame *f, struct message *m)
{
	if (f->type == NGHTTP2_SETTINGS)
		return on_settings(h, side, f, m);
	if (f->type == NGHTTP2_GOAWAY && side == SERVER)
		return on_server_goaway(h, f, m);
	m->is_aside = true;
	return true;
}

/* False: it makes no sense, and nothing after it can. */
static bool on_frame(struct h2 *h, enum side side, struct frame *f, struct message *m)
{
	const struct block *b = &h->blocks[side];

	if (b->id != 0 && (f->type != NGHTTP2_CONTINUATION || f->id != b->id))
		return false;
	if (f->id == 0)
		return on_connection(h, side, f, m);
	switch (f->type) {
	case NGHTTP2_DATA: return on_data(h, side, f, m);
	case NGHTTP2_HEADERS:
	case NGHTTP2_CONTINUATION: return on_headers(h, side, f, m);
	case NGHTTP2_RST_STREAM:
		return side == CLIENT ? on_client_reset(h, f, m) : on_server_reset(h, f, m);
	case NGHTTP2_WINDOW_UPDATE: return on_window(h, side, f, m);
	case NGHTTP2_PUSH_PROMISE: return false;
	default: return give_nothing(m); /* advice, such as a priority */
	}
}

/* ---- the protocol ---- */

static void forget(struct protocol_state *s)
{
	struct h2 *h = s->own;

	if (h == NULL)
		return;
	for (size_t i = 0; i < STREAMS_MAX; i++)
		forget_stream(&h->streams[i]);
	for (int side = 0; side < N_SIDES; side++) {
		nghttp2_hd_inflate_del(h->blocks[side].inflater);
		buffer_free(&h->blocks[side].bytes);
	}
	buffer_free(&h->out);
	buffer_free(&h->lost);
	buffer_free(&h->refusal);
	buffer_free(&h->lines);
	buffer_free(&h->anew);
	free(h);
	s->own = NULL;
}

/* Of this connection; NULL: there is no memory. */
static struct h2 *h2_of(struct protocol_state *s)
{
	if (s->own != NULL)
		return s->own;
	struct h2 *h = s->own = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->next_id = 1;
	h->going_id = ID_MAX;
	for (int side = 0; side < N_SIDES; side++)
		if (nghttp2_hd_inflate_new(&h->blocks[side].inflater) != 0) {
			forget(s);
			return NULL;
		}
	return h;
}

static bool as_bytes(struct protocol_state *s, size_t n, struct message *m)
{
	s->is_opaque = true;
	*m = (struct message){.n = n};
	protocol_kind(m, "bytes", 5);
	return true;
}

/* The first words of a client. */
static bool begin(struct protocol_state *s, struct h2 *h, const char *data, size_t n,
		  struct message *m)
{
	size_t known = n < NGHTTP2_CLIENT_MAGIC_LEN ? n : NGHTTP2_CLIENT_MAGIC_LEN;

	if (memcmp(data, NGHTTP2_CLIENT_MAGIC, known) != 0)
		return as_bytes(s, n, m);
	h->is_begun = known == NGHTTP2_CLIENT_MAGIC_LEN;
	m->n = known;
	m->is_aside = true;
	return h->is_begun;
}

static bool step(struct protocol_state *s, enum side side, const char *data, size_t n,
		 struct message *m)
{
	struct h2 *h = h2_of(s);
	struct frame f;

	*m = (struct message){0};
	if (h == NULL)
		return as_bytes(s, n, m);
	settle(h);
	if (side == CLIENT && !h->is_begun)
		return begin(s, h, data, n, m);
	if (!read_frame(&f, data, n))
		return false;
	m->n = HEAD + f.n;
	return on_frame(h, side, &f, m) || as_bytes(s, n, m);
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	return step(s, CLIENT, data, n, m);
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	return step(s, SERVER, data, n, m);
}

/* Numbers grow in the order in which the server sees them, whatever became of requests before. */
static void stamp(struct protocol_state *s, bool is_copy)
{
	struct h2 *h = s->own;
	struct stream *x = h->given;
	const struct buffer *frames = &x->parts[CLIENT].frames;
	uint32_t id = h->next_id > x->ids[CLIENT] ? h->next_id : x->ids[CLIENT];
	struct frame f;

	h->next_id = id + 2;
	for (size_t at = 0; read_frame(&f, frames->data + at, frames->n - at); at += HEAD + f.n)
		write_number(frames->data + at + 5, 4, id);
	if (!is_copy) {
		x->ids[SERVER] = id;
		return;
	}
	(void)new_stream(h, 0, id); /* of which the client never hears */
}

const struct protocol protocol_h2 = {
	.name = "h2", .request = request, .reply = reply, .stamp = stamp, .forget = forget};
