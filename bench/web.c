/* web.c: a server that speaks HTTP, through the drivers' own client. */
#ifdef WITH_WEB
#include "web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/web/grpc.h"
#include "base/web/http.h"
#include "bench.h"

#define ANSWER_NS 30000000000u

struct bench_web {
	struct http *http;
	struct http *h2;
	struct http_host host;
};

struct bench_web *bench_web_open(const char *url)
{
	static const struct http_config config, h2 = {.h2 = true};
	struct bench_web *w = calloc(1, sizeof(*w));

	if (w == NULL || (w->http = http_new(&config)) == NULL || (w->h2 = http_new(&h2)) == NULL)
		bench_die("Out of memory.");
	if (sscanf(url, "%*[a-z]://%255[^:/]:%7[0-9]", w->host.name, w->host.port) != 2)
		bench_die("The measurements want SCHEME://HOST:PORT.");
	return w;
}

void bench_web_close(struct bench_web *w)
{
	http_free(w->http);
	http_free(w->h2);
	free(w);
}

const char *bench_web_ask(struct bench_web *w, const char *method, const char *path,
			  const char *body)
{
	const struct http_request request = {.method = method,
					     .host = &w->host,
					     .path = path,
					     .body = body,
					     .body_size = body != NULL ? strlen(body) : 0};
	struct http_reply reply;

	if (http_call(w->http, &request, bench_now_ns() + ANSWER_NS, &reply) != HTTP_OK)
		bench_die("The server at %s:%s: %s.", w->host.name, w->host.port, reply.text);
	if (reply.status != 200)
		bench_die("The server says %d to %s: %s", reply.status, path, reply.body);
	return reply.body;
}

void bench_web_call(struct bench_web *w, const char *path, struct bytes *body)
{
	const struct grpc_request request = {.host = &w->host, .path = path, .body = body};
	struct grpc_reply reply;

	if (grpc_call(w->h2, &request, bench_now_ns() + ANSWER_NS, &reply) != HTTP_OK)
		bench_die("The server at %s:%s: %s.", w->host.name, w->host.port, reply.http.text);
	if (reply.status != GRPC_OK)
		bench_die("The server says %d to %s: %s", reply.status, path, reply.text);
}

uint64_t bench_web_sum(const char *text, const char *name)
{
	size_t n = strlen(name);
	double sum = 0;

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *value = line + strcspn(line, "\n");

		if (strncmp(line, name, n) != 0)
			continue;
		while (value > line && value[-1] != ' ')
			value--;
		sum += strtod(value, NULL);
	}
	return (uint64_t)sum;
}
#endif
