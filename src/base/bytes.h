/*
 * bytes.h: bytes that grow. A failure is remembered, so that a caller that puts many pieces
 * together asks once, at the end.
 */
#ifndef BATON_BYTES_H
#define BATON_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

struct bytes {
	char *at; /* with a NUL behind it, unless it is NULL */
	size_t n;
	size_t room;
	bool has_failed; /* no memory, or no room */
};

/* Takes more bytes, up to max in all; false: no room. */
bool bytes_add(struct bytes *b, const char *from, size_t n, size_t max);
void bytes_print(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Empty again; memory is kept, unless it is much. */
void bytes_clear(struct bytes *b);
void bytes_done(struct bytes *b);

#pragma GCC visibility pop

#endif
