/* server_s3.c: an S3 server as the measurements see it. What it has served stands in its log. */
#ifdef WITH_S3
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "server.h"
#include "store/s3/s3.h"

#define ANSWER_NS 30000000000u

struct server {
	struct http *http;
	struct http_host host;
	struct s3_keys keys;
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		bench_die("%s is not set; tests/servers does that.", name);
	return value;
}

static void *open_s3(const char *url)
{
	struct server *s = calloc(1, sizeof(*s));
	const char *at = strstr(url, "endpoint=http://");

	if (s == NULL || (s->http = http_new(&(struct http_config){.ca = NULL})) == NULL)
		bench_die("Out of memory.");
	if (at == NULL ||
	    sscanf(at, "endpoint=http://%255[^:/]:%7[0-9]", s->host.name, s->host.port) != 2)
		bench_die("The measurements want an endpoint=http://HOST:PORT.");
	(void)snprintf(s->keys.id, sizeof(s->keys.id), "%s", variable("AWS_ACCESS_KEY_ID"));
	(void)snprintf(s->keys.secret, sizeof(s->keys.secret), "%s",
		       variable("AWS_SECRET_ACCESS_KEY"));
	return s;
}

static void close_s3(void *server)
{
	struct server *s = server;

	http_free(s->http);
	free(s);
}

static void write_s3(void *server)
{
	struct server *s = server;
	char hash[SHA256_HEX_SIZE], date[S3_DATE_SIZE], lines[3][320], sign[1024];
	const char *headers[] = {lines[0], lines[1], lines[2], NULL, NULL};
	const struct s3_scope scope = {&s->keys, date, "us-east-1", "s3"};
	const struct http_request request = {.method = "PUT",
					     .host = &s->host,
					     .path = "/baton/bench",
					     .headers = headers,
					     .body = "1",
					     .body_size = 1};
	struct http_reply reply;

	sha256_hex("1", 1, hash);
	s3_date(clock_wall_ms(), date);
	(void)snprintf(lines[0], sizeof(lines[0]), "host: %s:%s", s->host.name, s->host.port);
	(void)snprintf(lines[1], sizeof(lines[1]), "x-amz-content-sha256: %s", hash);
	(void)snprintf(lines[2], sizeof(lines[2]), "x-amz-date: %s", date);
	if (!s3_sign(&scope, "PUT", request.path, "", headers, hash, sign, sizeof(sign)))
		bench_die("Out of memory.");
	headers[3] = sign;
	if (http_call(s->http, &request, bench_now_ns() + ANSWER_NS, &reply) != HTTP_OK ||
	    reply.status != 200)
		bench_die("The server at %s:%s says %d %s.", s->host.name, s->host.port,
			  reply.status, reply.text);
}

/* A line for each. */
static uint64_t requests(void *server)
{
	FILE *f = fopen(variable("BATON_TEST_S3_LOG"), "re");
	char text[65536];
	uint64_t n = 0;

	(void)server;
	for (size_t got; f != NULL && (got = fread(text, 1, sizeof(text), f)) > 0;)
		for (size_t i = 0; i < got; i++)
			n += text[i] == '\n';
	if (f != NULL)
		(void)fclose(f);
	return n;
}

const struct bench_server bench_s3 = {
	.name = "s3",
	.raw = "one put",
	.probe = "a renewal's, and the looks of a watch",
	.settle_s = 2,
	.crash_lease_ms = 1500,
	.poll_ms = 2000,
	.expiry_ms = 2000,
	.open = open_s3,
	.close = close_s3,
	.write = write_s3,
	.requests = requests,
};
#endif
