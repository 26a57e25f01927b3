/*
 * fuzz_resp.c: what a server says, on the wire of the Redis store. However the bytes are cut into
 * pieces, the same replies come out; and all that is in a reply can be read.
 */
#include <string.h>

#include "fuzz.h"
#include "store/redis/resp.h"

/* A sum over everything that a reply holds: equal replies, equal sums. */
static uint64_t digest(const struct resp *r, uint64_t sum)
{
	sum = (sum ^ (uint64_t)r->type) * 31 + r->n;
	if (r->type == RESP_INTEGER)
		return sum * 31 + (uint64_t)r->integer;
	for (size_t i = 0; r->type == RESP_ARRAY && i < r->n; i++)
		sum = digest(&r->items[i], sum);
	for (size_t i = 0; r->type != RESP_ARRAY && r->type != RESP_NIL && i < r->n; i++)
		sum = sum * 31 + (unsigned char)r->text[i];
	if (r->type != RESP_ARRAY && r->type != RESP_NIL)
		MUST(r->text[r->n] == '\0');
	return sum;
}

/* Takes all replies out; false: that is none. */
static bool drain(struct resp_in *in, uint64_t *sum, size_t *n)
{
	const struct resp *reply;
	int rc;

	while ((rc = resp_take(in, &reply)) == 1) {
		*sum = digest(reply, *sum);
		++*n;
	}
	return rc == 0;
}

/* In pieces of at most `piece` bytes, which is what a socket does. */
static uint64_t feed(const uint8_t *data, size_t size, size_t piece, size_t *n)
{
	struct resp_in in = {0};
	uint64_t sum = 0;
	bool is_good = true;

	*n = 0;
	for (size_t at = 0; at < size && is_good;) {
		size_t room;
		char *to = resp_in_room(&in, &room);

		MUST(to != NULL && room > 0);
		size_t k = size - at < piece ? size - at : piece;

		if (k > room)
			k = room;
		(void)memcpy(to, data + at, k);
		resp_in_got(&in, k);
		at += k;
		is_good = drain(&in, &sum, n);
	}
	resp_in_done(&in);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n_whole, n_bytes, n_odd;
	uint64_t whole = feed(data, size, SIZE_MAX, &n_whole);

	MUST(feed(data, size, 1, &n_bytes) == whole && n_bytes == n_whole);
	MUST(feed(data, size, 7, &n_odd) == whole && n_odd == n_whole);
	return 0;
}
