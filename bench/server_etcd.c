/* server_etcd.c: an etcd member as the measurements see it, through its JSON gateway. */
#ifdef WITH_ETCD
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* {"KEY": base64 of the text, and what follows it */
static void body_of(char out[TEXT_MAX], const char *text, const char *rest)
{
	char coded[TEXT_MAX / 2];

	if (BASE64_SIZE(strlen(text)) > sizeof(coded))
		bench_die("%s is too long.", text);
	base64_encode(text, strlen(text), coded);
	(void)snprintf(out, TEXT_MAX, "{\"key\":\"%s\"%s}", coded, rest);
}

/* It, too, is on the disk of most members before it is answered. */
static void write_etcd(void *server)
{
	char body[TEXT_MAX];

	body_of(body, "bench", ",\"value\":\"MQ==\"");
	(void)bench_web_ask(server, "POST", "/v3/kv/put", body);
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
	char key[TEXT_MAX / 4];

	(void)snprintf(key, sizeof(key), "baton/%s/", election);
	key[strlen(key) - 1]++; /* the end of the range of all that begins like this */
	char end[TEXT_MAX / 2];

	base64_encode(key, strlen(key), end);
	key[strlen(key) - 1]--;
	char rest[TEXT_MAX];

	(void)snprintf(rest, sizeof(rest), ",\"range_end\":\"%s\"", end);
	body_of(body, key, rest);
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
