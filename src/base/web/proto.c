/* proto.c: see proto.h. */
#include "base/web/proto.h"

#include <string.h>

/* A shape may contain itself; but a message that is sent to us must not go on for ever. */
#define DEPTH_MAX 8
#define VARINT_MAX 10
#define FIELD_MAX ((uint64_t)0x1fffffff)

/* How a field is written: the low three bits of its tag. */
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* ---- making ---- */

static size_t varint(uint64_t value, char out[VARINT_MAX])
{
	size_t n = 0;

	for (; value > 0x7f; value >>= 7)
		out[n++] = (char)(unsigned char)(value | 0x80);
	out[n++] = (char)(unsigned char)value;
	return n;
}

static void put(struct bytes *b, const char *from, size_t n)
{
	if (!b->has_failed)
		(void)bytes_add(b, from, n, SIZE_MAX);
}

static void put_varint(struct bytes *b, uint64_t value)
{
	char out[VARINT_MAX];

	put(b, out, varint(value, out));
}

static void put_tag(struct bytes *b, unsigned field, enum wire wire)
{
	put_varint(b, (uint64_t)field << 3 | (unsigned)wire);
}

void proto_put_number(struct bytes *b, unsigned field, uint64_t value)
{
	put_tag(b, field, WIRE_VARINT);
	put_varint(b, value);
}

void proto_put_text(struct bytes *b, unsigned field, const char *text)
{
	put_tag(b, field, WIRE_BYTES);
	put_varint(b, strlen(text));
	put(b, text, strlen(text));
}

size_t proto_begin(struct bytes *b, unsigned field)
{
	put_tag(b, field, WIRE_BYTES);
	return b->n;
}

/* The length stands in front of the message, in as few bytes as it needs: so the message moves. */
void proto_end(struct bytes *b, size_t begin)
{
	char out[VARINT_MAX];
	size_t size = b->n - begin;
	size_t n = varint(size, out);

	put(b, out, n); /* makes the room */
	if (b->has_failed)
		return;
	(void)memmove(b->at + begin + n, b->at + begin, size);
	(void)memcpy(b->at + begin, out, n);
}

/* ---- reading ---- */

struct field {
	unsigned number;
	enum wire wire;
	uint64_t value;
	struct proto bytes;
};

static bool take_varint(struct proto *rest, uint64_t *out)
{
	uint64_t value = 0;

	for (size_t i = 0; i < rest->n && i < VARINT_MAX; i++) {
		unsigned char c = (unsigned char)rest->at[i];

		if (i == VARINT_MAX - 1 && c > 1)
			return false; /* more than 64 bits */
		value |= (uint64_t)(c & 0x7f) << 7 * i;
		if (c > 0x7f)
			continue;
		*rest = (struct proto){rest->at + i + 1, rest->n - i - 1};
		*out = value;
		return true;
	}
	return false;
}

static bool take_bytes(struct proto *rest, uint64_t n, struct proto *out)
{
	if (n > rest->n)
		return false;
	*out = (struct proto){rest->at, (size_t)n};
	*rest = (struct proto){rest->at + n, rest->n - (size_t)n};
	return true;
}

/* The next field. False: there is none, or the bytes are not a valid field; rest->n tells which. */
static bool proto_take(struct proto *rest, struct field *f)
{
	uint64_t tag;

	*f = (struct field){0};
	if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > FIELD_MAX)
		return false;
	f->number = (unsigned)(tag >> 3);
	f->wire = (enum wire)(tag & 7);
	switch (f->wire) {
	case WIRE_VARINT: return take_varint(rest, &f->value);
	case WIRE_64: return take_bytes(rest, 8, &f->bytes);
	case WIRE_32: return take_bytes(rest, 4, &f->bytes);
	case WIRE_BYTES:
		return take_varint(rest, &f->value) && take_bytes(rest, f->value, &f->bytes);
	default: return false;
	}
}

static bool proto_shape_fits(struct proto m, const struct proto_shape *shape, unsigned depth)
{
	struct field f;

	while (m.n > 0) {
		const struct proto_shape *s = shape;

		if (!proto_take(&m, &f))
			return false;
		while (s->field != 0 && s->field != f.number)
			s++;
		if (s->field == 0)
			continue;
		if (f.wire != (s->kind == PROTO_NUMBER ? WIRE_VARINT : WIRE_BYTES))
			return false;
		if (s->kind == PROTO_MESSAGE &&
		    (depth == DEPTH_MAX || !proto_shape_fits(f.bytes, s->of, depth + 1)))
			return false;
	}
	return true;
}

bool proto_fits(struct proto m, const struct proto_shape *shape)
{
	return proto_shape_fits(m, shape, 1);
}

uint64_t proto_number(struct proto m, unsigned field)
{
	struct field f;
	uint64_t value = 0;

	while (proto_take(&m, &f))
		if (f.number == field && f.wire == WIRE_VARINT)
			value = f.value;
	return value;
}

bool proto_next(struct proto *rest, unsigned field, struct proto *item)
{
	struct field f;

	*item = (struct proto){NULL, 0};
	while (proto_take(rest, &f)) {
		if (f.number != field || f.wire != WIRE_BYTES)
			continue;
		*item = f.bytes;
		return true;
	}
	return false;
}

struct proto proto_get(struct proto m, unsigned field)
{
	struct proto last = {NULL, 0};
	struct proto item;

	while (proto_next(&m, field, &item))
		last = item;
	return last;
}

struct proto proto_item(struct proto m, unsigned field, size_t i)
{
	struct proto item;

	do {
		if (!proto_next(&m, field, &item))
			break;
	} while (i-- > 0);
	return item;
}

size_t proto_count(struct proto m, unsigned field)
{
	struct proto item;
	size_t n = 0;

	while (proto_next(&m, field, &item))
		n++;
	return n;
}

bool proto_text(struct proto m, unsigned field, char *out, size_t size)
{
	struct proto p = proto_get(m, field);

	out[0] = '\0';
	if (p.n >= size || (p.n > 0 && memchr(p.at, '\0', p.n) != NULL))
		return false;
	if (p.n > 0)
		(void)memcpy(out, p.at, p.n);
	out[p.n] = '\0';
	return true;
}
