/* server_etcd.c: an etcd member as the measurements see it: what is measured goes by gRPC, as it
 * does in the driver; all else through its JSON gateway. */
#ifdef WITH_ETCD
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/web/grpc.h"
#include "base/web/json.h"
#include "server.h"
#include "web.h"

#define TEXT_MAX 512

static void *open_etcd(const char *url)
{
	return bench_web_open(url);
}

static void close_etcd(void *server)
{
	bench_web_close(server);
}

/* It, too, is on the disk of most members before it is answered. */
static void write_etcd(void *server)
{
	struct bytes body = {0};

	(void)grpc_begin(&body);
	proto_put_text(&body, 1, "bench");
	proto_put_text(&body, 2, "1");
	bench_web_call(server, "/etcdserverpb.KV/Put", &body);
	bytes_done(&body);
}

/* Messages of clients, those within streams included: so those of Go's client count alike. */
static uint64_t requests(void *server)
{
	return bench_web_sum(bench_web_ask(server, "GET", "/metrics", NULL),
			     "grpc_server_msg_received_total{");
}

/* The number behind the first `"name":"`, or 0. */
static long long number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* Whole seconds that a lease has; 0 in its last one, -1 after its end. */
static long long seconds_left(void *server, long long lease)
{
	char body[TEXT_MAX];

	(void)snprintf(body, sizeof(body), "{\"ID\":\"%lld\"}", lease);
	return number(bench_web_ask(server, "POST", "/v3/lease/timetolive", body), "\"TTL\":\"");
}

/* etcd tells whole seconds: so it waits until they change. */
static int64_t left_us(void *server, const char *election)
{
	char body[TEXT_MAX];
	char key[TEXT_MAX / 4], from[TEXT_MAX / 4], end[TEXT_MAX / 4];

	if (snprintf(key, sizeof(key), "baton/%s/", election) > TEXT_MAX / 8)
		bench_die("%s is too long.", election);
	base64_encode(key, strlen(key), from);
	key[strlen(key) - 1]++; /* the end of the range of all that begins like this */
	base64_encode(key, strlen(key), end);
	(void)snprintf(body, sizeof(body), "{\"key\":\"%s\",\"range_end\":\"%s\"}", from, end);
	long long lease =
		number(bench_web_ask(server, "POST", "/v3/kv/range", body), "\"lease\":\"");
	long long first = lease != 0 ? seconds_left(server, lease) : 0;

	if (first <= 0)
		return 0;
	while (seconds_left(server, lease) == first)
		(void)poll(NULL, 0, 1);
	return first * 1000000;
}

const struct bench_server bench_etcd = {
	.name = "etcd",
	.raw = "one put",
	.probe = "two requests each, and a watch's",
	.settle_s = 2,
	.per_renewal = 2,
	.crash_lease_ms = 2000,
	.expiry_ms = 500, /* how often it looks for leases that have ended */
	.open = open_etcd,
	.close = close_etcd,
	.write = write_etcd,
	.requests = requests,
	.left_us = left_us,
};
#endif
