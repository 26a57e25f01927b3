/* server_redis.c: a Redis server as the measurements see it: RESP by hand, on a blocking socket. */
#ifdef WITH_REDIS
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"
#include "store/redis/redis.h"

#define LEASE "bench-0-1"
#define REPLY_MAX 65536
#define PER_ELECTION 6
#define MAX_WORDS (32 + PER_ELECTION * REDIS_PART)

struct redis {
	FILE *in;
	FILE *out;
	char host[128];
	char port[16];
	char sha[64]; /* of the raw script */
	char reply[REPLY_MAX];
};

/* ---- the wire ---- */

/* A reply as text; of an array, its first item that is one. */
static void read_reply(struct redis *r, bool is_wanted)
{
	char line[256];

	if (fgets(line, sizeof(line), r->in) == NULL)
		bench_die("Redis has closed the connection.");
	long n = strtol(line + 1, NULL, 10);

	switch (line[0]) {
	case '-': bench_die("Redis says: %s", line + 1);
	case '*':
		for (long i = 0; i < n; i++)
			read_reply(r, is_wanted && i == 0);
		return;
	case '$':
		if (n >= REPLY_MAX - 2)
			bench_die("Redis says too much.");
		if (n >= 0 && fread(r->reply, 1, (size_t)n + 2, r->in) != (size_t)n + 2)
			bench_die("Redis has closed the connection.");
		r->reply[n > 0 ? n : 0] = '\0';
		return;
	default:
		if (is_wanted)
			(void)snprintf(r->reply, REPLY_MAX, "%.*s", (int)strcspn(line + 1, "\r"),
				       line + 1);
	}
}

/* The words end with NULL. */
static const char *ask(struct redis *r, const char *first, ...)
{
	const char *words[16] = {first};
	int n = 1;
	va_list args;

	va_start(args, first);
	while ((words[n] = va_arg(args, const char *)) != NULL)
		n++;
	va_end(args);
	(void)fprintf(r->out, "*%d\r\n", n);
	for (int i = 0; i < n; i++)
		(void)fprintf(r->out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	if (fflush(r->out) != 0)
		bench_die("Redis has closed the connection.");
	read_reply(r, true);
	return r->reply;
}

static int dial(const struct redis *r)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int fd = -1;

	if (getaddrinfo(r->host, r->port, &hints, &list) == 0)
		fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen) != 0)
		bench_die("There is no Redis at %s:%s.", r->host, r->port);
	freeaddrinfo(list);
	return fd;
}

/* "redis://HOST:PORT?...", as tests/servers says. */
static void *open_redis(const char *url)
{
	struct redis *r = calloc(1, sizeof(*r));

	if (r == NULL || sscanf(url, "redis://%127[^:/]:%15[0-9]", r->host, r->port) != 2)
		bench_die("The measurements want redis://HOST:PORT.");
	int fd = dial(r);

	r->in = fdopen(fd, "r");
	r->out = fdopen(dup(fd), "w");
	if (r->in == NULL || r->out == NULL)
		bench_die("No descriptor is left.");
	(void)snprintf(
		r->sha, sizeof(r->sha), "%s",
		ask(r, "SCRIPT", "LOAD", "return redis.call('HSET', KEYS[1], 'n', ARGV[1])", NULL));
	return r;
}

static void close_redis(void *server)
{
	struct redis *r = server;

	(void)fclose(r->in);
	(void)fclose(r->out);
	free(r);
}

static void write_redis(void *server)
{
	struct redis *r = server;

	(void)ask(r, "EVALSHA", r->sha, "1", "{baton}:bench", "1", NULL);
}

/* ---- the server's own numbers ---- */

/* Only those that clients send: what scripts call is counted under its own name. */
static uint64_t requests(void *server)
{
	static const char *const words[] = {"evalsha",     "ping",        "subscribe",
					    "unsubscribe", "script|load", "wait"};
	const char *info = ask(server, "INFO", "commandstats", NULL);
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char key[64];
		int n = snprintf(key, sizeof(key), "cmdstat_%s:calls=", words[i]);
		const char *at = strstr(info, key);

		sum += at != NULL ? strtoull(at + n, NULL, 10) : 0;
	}
	return sum;
}

static uint64_t connections(void *server)
{
	static const char key[] = "total_connections_received:";
	const char *at = strstr(ask(server, "INFO", "stats", NULL), key);

	return at != NULL ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

static int64_t left_us(void *server, const char *election)
{
	char key[256];

	(void)snprintf(key, sizeof(key), "{baton}:election:%s", election);
	const char *lease = ask(server, "HGET", key, "lease", NULL);

	if (lease[0] == '\0')
		return 0;
	(void)snprintf(key, sizeof(key), "{baton}:lease:%s", lease);
	long long left_ms = strtoll(ask(server, "PTTL", key, NULL), NULL, 10);

	return left_ms > 0 ? left_ms * 1000 : 0;
}

static char *const *question(void *server)
{
	static char *argv[] = {
		"redis-cli", "-h", NULL, "-p", NULL, "HGETALL", "{baton}:election:status", NULL};
	struct redis *r = server;

	argv[2] = r->host;
	argv[4] = r->port;
	return argv;
}

/* ---- its own benchmark ---- */

static char *campaign_text(void)
{
	const struct redis_source *body = &redis_sources[REDIS_CAMPAIGN];
	char *text = calloc(1, redis_prelude.size + body->size + 1);

	if (text == NULL)
		bench_die("Out of memory.");
	(void)memcpy(text, redis_prelude.text, redis_prelude.size);
	(void)memcpy(text + redis_prelude.size, body->text, body->size);
	return text;
}

/* Every name is a new one: the tool makes up the number. */
static double campaigns(void *server, const char *url, int n)
{
	static const char *const election[PER_ELECTION] = {
		"tool-__rand_int__", "7", "0", "0", "1000", ""};
	struct redis *r = server;
	char *text = campaign_text();
	char times[16];
	char sha[64];
	const char *argv[MAX_WORDS] = {"redis-benchmark",
				       "-q",
				       "-h",
				       r->host,
				       "-p",
				       r->port,
				       "-c",
				       "1",
				       "-P",
				       "1",
				       "-r",
				       "1000000000",
				       "-n",
				       times,
				       "EVALSHA",
				       sha};
	const char *const rest[] = {"1",
				    "{baton}:namespace",
				    "{baton}:",
				    LEASE,
				    "tool",
				    "60000",
				    strstr(url, "durable=1") != NULL ? "1" : "0",
				    "100"};
	size_t k = 16;

	(void)snprintf(times, sizeof(times), "%d", n / REDIS_PART);
	(void)snprintf(sha, sizeof(sha), "%s", ask(r, "SCRIPT", "LOAD", text, NULL));
	free(text);
	(void)ask(r, "HSET", "{baton}:lease:" LEASE, "owner", "tool", "address", "", "ttl", "60000",
		  NULL);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		argv[k++] = rest[i];
	for (int i = 0; i < REDIS_PART * PER_ELECTION; i++)
		argv[k++] = election[i % PER_ELECTION];
	argv[k] = NULL;
	double rate = bench_tool((char *const *)(uintptr_t)argv, " requests per second");
	/* All of them were won, but for a few that met the same number twice. */
	long won = strtol(ask(r, "HLEN", "{baton}:lease:" LEASE, NULL), NULL, 10) - 3;

	(void)ask(r, "DEL", "{baton}:lease:" LEASE, NULL);
	if (won < n * 9L / 10)
		bench_die("redis-benchmark won %ld of %d campaigns.", won, n);
	return rate * REDIS_PART;
}

const struct bench_server bench_redis = {
	.name = "redis",
	.raw = "one script call",
	.tool = "redis-benchmark",
	.probe = "a PING",
	.settle_s = 2,
	.status_ms = 5,
	.open = open_redis,
	.close = close_redis,
	.write = write_redis,
	.requests = requests,
	.connections = connections,
	.left_us = left_us,
	.question = question,
	.campaigns = campaigns,
};
#endif
