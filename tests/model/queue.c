/*
 * queue.c: the frontier: worlds that wait to be looked at, whole but packed, one behind the
 * other in blocks that are given back as soon as they have been read.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define BLOCK_SIZE ((size_t)1 << 16)
#define RECORD_MAX (2 * sizeof(struct packed) + sizeof(uint32_t) + sizeof(uint64_t))

/* Most numbers are small: half a byte each. These two stand for the others. */
#define NIBBLE_NEVER 14u
#define NIBBLE_BYTE 15u /* two more follow */

struct block {
	struct block *next;
	size_t n;
	uint8_t bytes[BLOCK_SIZE];
};

static void append(struct block *b, const void *from, size_t n)
{
	memcpy(b->bytes + b->n, from, n);
	b->n += n;
}

static void put_nibble(struct block *b, size_t *at, unsigned nibble)
{
	uint8_t *byte = &b->bytes[*at / 2];

	*byte = *at % 2 == 0 ? (uint8_t)nibble : (uint8_t)(*byte | nibble << 4);
	++*at;
}

static void append_packed(struct block *b, const struct packed *p)
{
	append(b, &p->n, sizeof(p->n));
	size_t at = 2 * b->n;

	for (unsigned i = 0; i < p->n; i++) {
		unsigned v = p->bytes[i];

		if (v < NIBBLE_NEVER) {
			put_nibble(b, &at, v);
		} else if (v == NO_TICK) {
			put_nibble(b, &at, NIBBLE_NEVER);
		} else {
			put_nibble(b, &at, NIBBLE_BYTE);
			put_nibble(b, &at, v & 15u);
			put_nibble(b, &at, v >> 4);
		}
	}
	b->n = (at + 1) / 2;
}

bool queue_put(struct queue *q, const struct packed *p, uint32_t bounds, uint64_t number)
{
	struct block *b = q->last;

	if (b == NULL || b->n + RECORD_MAX > BLOCK_SIZE) {
		b = malloc(sizeof(*b));
		if (b == NULL)
			return false;
		b->next = NULL;
		b->n = 0;
		if (q->last != NULL)
			q->last->next = b;
		else
			q->first = b;
		q->last = b;
	}
	append(b, &bounds, sizeof(bounds));
	append(b, &number, sizeof(number));
	append_packed(b, p);
	return true;
}

static void extract(struct queue *q, void *to, size_t n)
{
	memcpy(to, q->first->bytes + q->at, n);
	q->at += n;
}

static unsigned get_nibble(const struct block *b, size_t *at)
{
	unsigned byte = b->bytes[*at / 2];

	return (*at)++ % 2 == 0 ? byte & 15u : byte >> 4;
}

static void extract_packed(struct queue *q, struct packed *p)
{
	extract(q, &p->n, sizeof(p->n));
	const struct block *b = q->first;
	size_t at = 2 * q->at;

	for (unsigned i = 0; i < p->n; i++) {
		unsigned v = get_nibble(b, &at);

		if (v == NIBBLE_NEVER) {
			v = NO_TICK;
		} else if (v == NIBBLE_BYTE) {
			v = get_nibble(b, &at);
			v |= get_nibble(b, &at) << 4;
		}
		p->bytes[i] = (uint8_t)v;
	}
	q->at = (at + 1) / 2;
}

bool queue_get(struct queue *q, struct packed *p, uint32_t *bounds, uint64_t *number)
{
	struct block *b = q->first;

	if (b != NULL && q->at == b->n) {
		q->first = b->next;
		if (q->first == NULL)
			q->last = NULL;
		q->at = 0;
		free(b);
	}
	if (q->first == NULL)
		return false;
	extract(q, bounds, sizeof(*bounds));
	extract(q, number, sizeof(*number));
	extract_packed(q, p);
	return true;
}

void queue_done(struct queue *q)
{
	while (q->first != NULL) {
		struct block *b = q->first;

		q->first = b->next;
		free(b);
	}
	*q = (struct queue){0};
}
