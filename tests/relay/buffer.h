/*
 * buffer.h: bytes that have come and wait to be understood or passed on. A pile grows as it must,
 * and never beyond PILE_MAX: nobody who talks without end fills the machine.
 */
#ifndef BATON_RELAY_PILE_H
#define BATON_RELAY_PILE_H

#include <stdbool.h>
#include <stddef.h>

#define PILE_MAX ((size_t)8 << 20)

struct buffer {
	char *data;
	size_t n;
	size_t room;
};

/* At the end; false: there is no more room, and nothing was added. */
bool buffer_add(struct buffer *b, const char *data, size_t n);
/* The first n of them. */
void buffer_take_off(struct buffer *b, size_t n);
void buffer_free(struct buffer *b);

#endif
