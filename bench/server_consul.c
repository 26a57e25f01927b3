/* server_consul.c: a Consul server as the measurements see it. */
#ifdef WITH_CONSUL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "web.h"

static void *open_consul(const char *url)
{
	return bench_web_open(url);
}

static void close_consul(void *server)
{
	bench_web_close(server);
}

/* It, too, is on the disk of most servers before it is answered. */
static void write_consul(void *server)
{
	(void)bench_web_ask(server, "PUT", "/v1/kv/bench", "1");
}

/* All that writes, and transactions that read; and the watch, when it is answered. */
static uint64_t requests(void *server)
{
	const char *text =
		bench_web_ask(server, "GET", "/v1/agent/metrics?format=prometheus", NULL);

	return bench_web_sum(text, "consul_api_http_count{method=\"PUT\"") +
	       bench_web_sum(text, "consul_api_http_count{method=\"GET\",path=\"v1_kv_\"");
}

/* The index at which the key was last written; 0: there is none, or no session has it. */
static unsigned long long written_at(const char *text)
{
	const char *at = strstr(text, "\"ModifyIndex\":");

	return at != NULL && strstr(text, "\"Session\":") != NULL
		       ? strtoull(at + strlen("\"ModifyIndex\":"), NULL, 10)
		       : 0;
}

/* Consul tells nobody how long a session still has: so it waits until that has ended. */
static int64_t left_us(void *server, const char *election)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "/v1/kv/baton/%s/.lock", election);
	unsigned long long index = written_at(bench_web_ask(server, "GET", path, NULL));

	if (index == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/v1/kv/baton/%s/.lock?wait=20s&index=%llu", election,
		       index);
	(void)bench_web_ask(server, "GET", path, NULL);
	return 0;
}

const struct bench_server bench_consul = {
	.name = "consul",
	.raw = "one put",
	.probe = "two requests each, and a watch's",
	.settle_s = 2,
	.per_renewal = 2,
	.open = open_consul,
	.close = close_consul,
	.write = write_consul,
	.requests = requests,
	.left_us = left_us,
};
#endif
