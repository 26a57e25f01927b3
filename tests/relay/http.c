/*
 * http.c: HTTP/1.1. A request is a head and its body, and its kind the path; a reply is a head and
 * its body, and its kind the status. What is asked for as a watch never ends: from there on the
 * connection is bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocols.h"

static const char refusal[] =
	"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
	"Content-Length: 83\r\n\r\n"
	"{\"error\":\"no leader, says the test\",\"message\":\"no leader, says the test\","
	"\"code\":14}";

/* The length of the head with its empty line; 0: it isn't there yet. */
static size_t head_end(const char *data, size_t n)
{
	const char *end = memmem(data, n, "\r\n\r\n", 4);

	return end != NULL ? (size_t)(end + 4 - data) : 0;
}

/* What stands behind a header's name in the head; NULL: there is none. */
static const char *header(const char *data, size_t head, const char *name)
{
	size_t size = strlen(name);
	const char *at = data;

	while ((at = memchr(at, '\n', head - (size_t)(at - data))) != NULL) {
		at++;
		if (head - (size_t)(at - data) > size && strncasecmp(at, name, size) == 0)
			return at + size + strspn(at + size, " ");
	}
	return NULL;
}

/* The end of a body in chunks, and of what trails it; 0: it isn't there yet. */
static size_t chunks_end(const char *data, size_t n, size_t at)
{
	for (;;) {
		const char *line = at < n ? memchr(data + at, '\n', n - at) : NULL;

		if (line == NULL)
			return 0;
		size_t size = strtoul(data + at, NULL, 16);

		at = (size_t)(line + 1 - data);
		if (size == 0)
			break;
		if (size > n || n - at < size + 2)
			return 0;
		at += size + 2;
	}
	while (at < n) {
		const char *line = memchr(data + at, '\n', n - at);

		if (line == NULL)
			return 0;
		size_t length = (size_t)(line - (data + at));

		at += length + 1;
		if (length <= 1) /* the empty line */
			return at;
	}
	return 0;
}

static size_t body_end(const char *data, size_t n, size_t head)
{
	const char *coding = header(data, head, "transfer-encoding:");
	const char *length = header(data, head, "content-length:");

	if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0)
		return chunks_end(data, n, head);
	size_t size = length != NULL ? strtoul(length, NULL, 10) : 0;

	return n - head >= size ? head + size : 0;
}

/* The second word of the first line. */
static void set_kind(struct message *m, const char *data, size_t head)
{
	const char *from = memchr(data, ' ', head);
	size_t n = from != NULL ? strcspn(from + 1, " \r\n") : 0;

	protocol_kind(m, n > 0 ? from + 1 : "bytes", n > 0 ? n : 5);
}

static bool request(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t head = head_end(data, n);

	m->is_push = false;
	m->n = head > 0 ? body_end(data, n, head) : 0;
	if (m->n == 0)
		return false;
	set_kind(m, data, head);
	/* In the whole path: a kind is cut. */
	size_t line = (size_t)((const char *)memchr(data, '\n', head) - data);

	if (memmem(data, line, "/watch", 6) != NULL || memmem(data, line, "watch=", 6) != NULL)
		s->is_opaque = true;
	return true;
}

static bool reply(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	size_t head = head_end(data, n);

	(void)s;
	m->is_push = false;
	set_kind(m, data, head);
	/* These have no body, whatever length their head tells. */
	bool is_bare = strcmp(m->kind, "304") == 0 || strcmp(m->kind, "204") == 0;

	m->n = head == 0 ? 0 : is_bare ? head : body_end(data, n, head);
	return m->n > 0;
}

const struct protocol protocol_http = {.name = "http",
				       .request = request,
				       .reply = reply,
				       .refusal = refusal,
				       .refusal_n = sizeof(refusal) - 1};
