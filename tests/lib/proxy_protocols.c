/*
 * proxy_protocols.c: where messages end, in the protocols of the stores. No more of them than a
 * proxy needs; what it doesn't understand it waits for, and a test then fails.
 */
#include "proxy.h"

#include <stdlib.h>
#include <string.h>

/* ---- PostgreSQL, version 3 ---- */

#define PG_SSL_REQUEST 80877103u
#define PG_GSS_REQUEST 80877104u

static uint32_t big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A request is all up to a Sync or a simple Query; the first has no type. */
static struct proxy_unit pg_request(const unsigned char *bytes, size_t n, bool begun,
				    const char **answer)
{
	struct proxy_unit unit = {0};

	if (!begun) {
		if (n < 8 || n < big_endian(bytes))
			return unit;
		uint32_t code = big_endian(bytes + 4);

		unit.n = big_endian(bytes);
		unit.is_asked = true;
		unit.is_greeting = true;
		if (code == PG_SSL_REQUEST || code == PG_GSS_REQUEST)
			*answer = "N";
		return unit;
	}
	for (size_t at = 0; at + 5 <= n;) {
		size_t size = 1 + (size_t)big_endian(bytes + at + 1);

		if (at + size > n)
			break;
		unsigned char type = bytes[at];

		at += size;
		if (type != 'S' && type != 'Q' && type != 'p' && type != 'X')
			continue;
		unit.n = at;
		unit.is_asked = type == 'S' || type == 'Q';
		break;
	}
	return unit;
}

/* A reply ends when the server is ready again. */
static struct proxy_unit pg_reply(const unsigned char *bytes, size_t n)
{
	struct proxy_unit unit = {0};

	if (n < 5 || n < 1 + (size_t)big_endian(bytes + 1))
		return unit;
	unit.n = 1 + (size_t)big_endian(bytes + 1);
	unit.is_answer = bytes[0] == 'Z';
	return unit;
}

/* ErrorResponse with severity, code and message, then ReadyForQuery, idle. */
static const char pg_refusal[] = "E\0\0\0\x37"
				 "SERROR\0VERROR\0C58000\0Mrefused by the test's proxy\0"
				 "\0Z\0\0\0\x05I";

const struct proxy_protocol proxy_postgres = {
	.request = pg_request,
	.reply = pg_reply,
	.refusal = pg_refusal,
	.refusal_n = sizeof(pg_refusal) - 1,
};

/* ---- RESP, 2 and 3 ---- */

/* The length of the value that begins at `at`; 0: not all of it is there. */
static size_t resp_size(const unsigned char *bytes, size_t n)
{
	const unsigned char *end = n > 1 ? memmem(bytes, n, "\r\n", 2) : NULL;
	size_t size = end != NULL ? (size_t)(end - bytes) + 2 : 0;

	if (size == 0)
		return 0;
	long count = strtol((const char *)bytes + 1, NULL, 10);

	if (bytes[0] == '$' || bytes[0] == '=' || bytes[0] == '!') {
		if (count < 0)
			return size;
		size += (size_t)count + 2;
		return size <= n ? size : 0;
	}
	if (strchr("*~>%|", bytes[0]) == NULL)
		return size;
	if (bytes[0] == '%' || bytes[0] == '|')
		count *= 2;
	for (long i = 0; i < count; i++) {
		size_t one = size < n ? resp_size(bytes + size, n - size) : 0;

		if (one == 0)
			return 0;
		size += one;
	}
	return size;
}

static struct proxy_unit resp_request(const unsigned char *bytes, size_t n, bool begun,
				      const char **answer)
{
	size_t size = resp_size(bytes, n);

	(void)begun;
	(void)answer;
	return (struct proxy_unit){.n = size, .is_asked = size > 0};
}

/* What is pushed answers nobody. */
static struct proxy_unit resp_reply(const unsigned char *bytes, size_t n)
{
	size_t size = resp_size(bytes, n);

	return (struct proxy_unit){.n = size, .is_answer = size > 0 && bytes[0] != '>'};
}

static const char resp_refusal[] = "-ERR refused by the test's proxy\r\n";

const struct proxy_protocol proxy_resp = {
	.request = resp_request,
	.reply = resp_reply,
	.refusal = resp_refusal,
	.refusal_n = sizeof(resp_refusal) - 1,
};
