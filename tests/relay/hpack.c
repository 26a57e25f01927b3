/*
 * hpack.c: see hpack.h.
 */
#include "hpack.h"

#include <string.h>

#define SIZE_UPDATE_TO_ZERO "\x20"
#define LITERAL "\0"
#define LITERAL_FOR_EVER "\x10" /* a secret: whoever passes it on must not remember it, either */

/* A length, in pieces of seven bits, and the text, as it is. */
static bool add_text(struct buffer *to, const char *text, size_t n)
{
	char length[12];
	size_t used = 0;
	size_t rest = n;

	length[used++] = (char)(rest < 127 ? rest : 127);
	if (rest >= 127) {
		for (rest -= 127; rest >= 128; rest /= 128)
			length[used++] = (char)(rest % 128 + 128);
		length[used++] = (char)rest;
	}
	return buffer_add(to, length, used) && buffer_add(to, text, n);
}

static bool add_field(struct buffer *lines, struct buffer *anew, const nghttp2_nv *field)
{
	const char *name = (const char *)field->name;
	const char *value = (const char *)field->value;
	bool is_secret = (field->flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0;

	return buffer_add(lines, name, field->namelen) && buffer_add(lines, ":", 1) &&
	       buffer_add(lines, value, field->valuelen) && buffer_add(lines, "\n", 1) &&
	       buffer_add(anew, is_secret ? LITERAL_FOR_EVER : LITERAL, 1) &&
	       add_text(anew, name, field->namelen) && add_text(anew, value, field->valuelen);
}

bool hpack_read(nghttp2_hd_inflater *inflater, const struct buffer *block, struct buffer *lines,
		struct buffer *anew)
{
	const uint8_t *at = (const uint8_t *)(block->n > 0 ? block->data : "");
	size_t left = block->n;

	if (!hpack_begin(anew))
		return false;
	for (;;) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, at, left, 1);

		if (n < 0)
			return false;
		at += n;
		left -= (size_t)n;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && !add_field(lines, anew, &field))
			return false;
		if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0)
			break;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && n == 0)
			return false;
	}
	return nghttp2_hd_inflate_end_headers(inflater) == 0;
}

/* Whoever wants less to be remembered than before waits for a block that begins like this; to the
 * others it is the truth, too. */
bool hpack_begin(struct buffer *block)
{
	return buffer_add(block, SIZE_UPDATE_TO_ZERO, 1);
}

bool hpack_add(struct buffer *block, const char *name, const char *value)
{
	return buffer_add(block, LITERAL, 1) && add_text(block, name, strlen(name)) &&
	       add_text(block, value, strlen(value));
}
