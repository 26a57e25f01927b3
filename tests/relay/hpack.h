/*
 * hpack.h: the header blocks of HTTP/2, read, and written anew in full. As their ends write them
 * they refer to blocks before them, so that none could vanish or come twice; as they are written
 * here they refer to nothing, and nothing can refer to them.
 */
#ifndef BATON_RELAY_HPACK_H
#define BATON_RELAY_HPACK_H

#include <nghttp2/nghttp2.h>

#include "buffer.h"

/* The most that an end may be told to remember of blocks: what ours remembers. */
#define HPACK_TABLE_MAX 4096

/* Adds each field as a line, `name:value`, and the block as it is passed on. False: it can't be
 * understood, nor can any block after it. */
bool hpack_read(nghttp2_hd_inflater *inflater, const struct buffer *block, struct buffer *lines,
		struct buffer *anew);

/* A block of our own: its beginning, and each field. */
bool hpack_begin(struct buffer *block);
bool hpack_add(struct buffer *block, const char *name, const char *value);

#endif
