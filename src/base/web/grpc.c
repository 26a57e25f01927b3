/* grpc.c: see grpc.h. */
#include "base/web/grpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"

struct bytes *grpc_begin(struct bytes *b)
{
	static const char frame[HTTP_FRAME] = {0}; /* not compressed; its size is set at the end */

	bytes_clear(b);
	(void)bytes_add(b, frame, sizeof(frame), SIZE_MAX);
	return b;
}

static struct http_request grpc_make_request(const struct grpc_request *request,
					     const char **headers)
{
	size_t n = 0;
	size_t size = request->body->n - HTTP_FRAME;

	headers[n++] = "Content-Type: application/grpc";
	headers[n++] = "TE: trailers";
	for (size_t i = 0; request->metadata != NULL && request->metadata[i] != NULL; i++)
		headers[n++] = request->metadata[i];
	headers[n] = NULL;
	for (size_t i = 0; i < HTTP_FRAME - 1; i++)
		request->body->at[HTTP_FRAME - 1 - i] = (char)(unsigned char)(size >> 8 * i);
	return (struct http_request){.method = "POST",
				     .host = request->host,
				     .path = request->path,
				     .headers = headers,
				     .body = request->body->at,
				     .body_size = request->body->n,
				     .prove_ns = request->prove_ns};
}

/* A text in a header is encoded as in a URL; a text that can't be decoded is better than none. */
int grpc_status_of(const struct http_reply *reply, char text[HTTP_TEXT_MAX])
{
	char number[16];
	char words[HTTP_TEXT_MAX];
	char *end;

	text[0] = '\0';
	(void)http_header(reply, "grpc-status", number, sizeof(number));
	unsigned long status = strtoul(number, &end, 10);

	if (reply->status != 200 || end == number || *end != '\0' || status > 1000)
		return GRPC_NONE;
	(void)http_header(reply, "grpc-message", words, sizeof(words));
	if (!url_decode((struct url_part){words, strlen(words)}, text, HTTP_TEXT_MAX))
		(void)snprintf(text, HTTP_TEXT_MAX, "%s", words);
	return (int)status;
}

int grpc_call(struct http *h, const struct grpc_request *request, uint64_t deadline_ns,
	      struct grpc_reply *reply)
{
	const char *headers[GRPC_METADATA_MAX + 3];
	struct http_request post = grpc_make_request(request, headers);
	struct http_reply *http = &reply->http;

	reply->status = GRPC_NONE;
	reply->text[0] = '\0';
	reply->message = (struct proto){NULL, 0};
	if (http_call(h, &post, deadline_ns, http) != HTTP_OK)
		return http->result;
	reply->status = grpc_status_of(http, reply->text);
	if (reply->status != GRPC_OK)
		return HTTP_OK;
	/* An empty body would pass the second test: its size and that of its frame are both 0. */
	if (http->body_size < HTTP_FRAME ||
	    http_frame(http->body, http->body_size) != http->body_size) {
		http->result = HTTP_STRANGE;
		(void)snprintf(http->text, sizeof(http->text), "the reply is not a valid message");
		return HTTP_STRANGE;
	}
	reply->message = (struct proto){http->body + HTTP_FRAME, http->body_size - HTTP_FRAME};
	return HTTP_OK;
}

int grpc_stream_open(struct http *h, const struct grpc_request *request, uint64_t deadline_ns,
		     struct http_reply *reply)
{
	const char *headers[GRPC_METADATA_MAX + 3];
	struct http_request post = grpc_make_request(request, headers);

	return http_stream_open(h, &post, HTTP_FRAMES, deadline_ns, reply);
}
