/* bytes.c: see bytes.h. */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX ((size_t)64 << 10)

/* Makes room for n more bytes and the NUL. */
static bool bytes_reserve(struct bytes *b, size_t n)
{
	if (n > SIZE_MAX / 2 - 1 - b->n)
		return false;
	if (b->n + n + 1 <= b->room)
		return true;
	size_t room = 2 * (b->n + n + 1);
	char *more = realloc(b->at, room);

	if (more == NULL)
		return false;
	b->at = more;
	b->room = room;
	return true;
}

bool bytes_add(struct bytes *b, const char *from, size_t n, size_t max)
{
	if (n > max || b->n > max - n || !bytes_reserve(b, n)) {
		b->has_failed = true;
		return false;
	}
	if (n > 0)
		(void)memcpy(b->at + b->n, from, n);
	b->n += n;
	b->at[b->n] = '\0';
	return true;
}

void bytes_print(struct bytes *b, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, format, args);

	if (n >= 0 && bytes_reserve(b, (size_t)n)) {
		(void)vsnprintf(b->at + b->n, (size_t)n + 1, format, again);
		b->n += (size_t)n;
	} else {
		b->has_failed = true;
	}
	va_end(again);
	va_end(args);
}

void bytes_clear(struct bytes *b)
{
	if (b->room > KEPT_MAX)
		bytes_done(b);
	b->n = 0;
	b->has_failed = false;
	if (b->at != NULL)
		b->at[0] = '\0';
}

void bytes_done(struct bytes *b)
{
	free(b->at);
	*b = (struct bytes){0};
}
