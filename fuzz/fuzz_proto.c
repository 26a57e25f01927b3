/*
 * fuzz_proto.c: what a server says, as protocol buffers. What fits its shape can be read to its
 * last byte, and written again says the same.
 */
#include <string.h>

#include "base/web/proto.h"
#include "fuzz.h"

static const struct proto_shape tree[] = {
	{1, PROTO_NUMBER, NULL},
	{2, PROTO_BYTES, NULL},
	{3, PROTO_MESSAGE, tree},
	{64, PROTO_MESSAGE, tree},
	{0},
};

static void write_again(struct bytes *b, struct proto m);

static void write_list(struct bytes *b, struct proto m, unsigned field)
{
	struct proto item;
	size_t n = 0;

	for (struct proto rest = m; proto_next(&rest, field, &item); n++) {
		struct proto same = proto_item(m, field, n);
		size_t begin = proto_begin(b, field);

		MUST(same.at == item.at && same.n == item.n);
		MUST(item.at >= m.at && item.at + item.n <= m.at + m.n);
		write_again(b, item);
		proto_end(b, begin);
	}
	MUST(proto_count(m, field) == n);
	MUST(proto_item(m, field, n).at == NULL);
}

static void write_again(struct bytes *b, struct proto m)
{
	char text[64];

	proto_put_number(b, 1, proto_number(m, 1));
	if (proto_get(m, 2).at != NULL && proto_text(m, 2, text, sizeof(text)))
		proto_put_text(b, 2, text);
	write_list(b, m, 3);
	write_list(b, m, 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes once = {0}, twice = {0};
	struct proto m = {(const char *)data, size};

	if (!proto_fits(m, tree))
		return 0;
	write_again(&once, m);
	MUST(!once.has_failed);
	struct proto written = {once.at, once.n};

	MUST(proto_fits(written, tree));
	write_again(&twice, written);
	MUST(twice.n == once.n && memcmp(twice.at, once.at, once.n) == 0);
	bytes_done(&once);
	bytes_done(&twice);
	return 0;
}
