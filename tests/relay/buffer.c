/*
 * buffer.c: see buffer.h.
 */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

bool buffer_add(struct buffer *b, const char *data, size_t n)
{
	if (n > PILE_MAX || b->n + n > PILE_MAX)
		return false;
	if (b->n + n > b->room) {
		size_t room = 2 * (b->n + n);
		char *more = realloc(b->data, room);

		if (more == NULL)
			return false;
		b->data = more;
		b->room = room;
	}
	if (n > 0)
		memcpy(b->data + b->n, data, n);
	b->n += n;
	return true;
}

void buffer_take_off(struct buffer *b, size_t n)
{
	if (n > 0)
		memmove(b->data, b->data + n, b->n - n);
	b->n -= n;
}

void buffer_free(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}
