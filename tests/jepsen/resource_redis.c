/*
 * resource_redis.c: the value as a key of a Redis server, the fence as a script: check and access
 * are one step there.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "resource.h"

#define FENCE                                                          \
	"local top = tonumber(redis.call('GET', KEYS[2]) or '0') "     \
	"if tonumber(ARGV[1]) < top then return {err = 'FENCED'} end " \
	"redis.call('SET', KEYS[2], ARGV[1]) "

static const char fenced_read[] = FENCE "return redis.call('GET', KEYS[1]) or ''";
static const char fenced_write[] = FENCE "return redis.call('SET', KEYS[1], ARGV[2])";

/* The last number of redis://127.0.0.1:PORT. */
static bool redis_open(struct resource *r, const char *url)
{
	const char *colon = strrchr(url, ':');
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(colon != NULL ? strtoul(colon + 1, NULL, 10) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	/* Else the second part of a long value waits for a delayed acknowledgement. */
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
	    connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0)
		return false;
	r->connection = fdopen(fd, "r+");
	return r->connection != NULL;
}

static void redis_close(struct resource *r)
{
	if (r->connection != NULL)
		(void)fclose(r->connection);
	r->connection = NULL;
}

static void say(FILE *f, const char *const *words, size_t n)
{
	(void)fseek(f, 0, SEEK_CUR); /* between reading and writing */
	(void)fprintf(f, "*%zu\r\n", n);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(f, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
	(void)fflush(f);
}

/* A status, an error, or a text. */
static enum answer hear(FILE *f, char *value)
{
	char line[256];

	value[0] = '\0';
	if (fgets(line, sizeof(line), f) == NULL)
		return ANSWER_UNKNOWN;
	if (line[0] == '-')
		return strstr(line, "FENCED") != NULL ? ANSWER_REFUSED : ANSWER_UNKNOWN;
	if (line[0] != '$')
		return ANSWER_OK;
	long n = strtol(line + 1, NULL, 10);

	if (n < 0)
		return ANSWER_OK;
	if ((size_t)n + 2 > VALUE_MAX || fread(value, 1, (size_t)n + 2, f) != (size_t)n + 2)
		return ANSWER_UNKNOWN;
	value[n] = '\0';
	return ANSWER_OK;
}

static enum answer ask(struct resource *r, const char *const *words, size_t n, char *value)
{
	if (r->connection == NULL)
		return ANSWER_UNKNOWN;
	say(r->connection, words, n);
	return hear(r->connection, value);
}

static enum answer redis_read(struct resource *r, uint64_t term, char *value)
{
	char fence[128], number[24];

	(void)snprintf(fence, sizeof(fence), "%s:term", r->name);
	(void)snprintf(number, sizeof(number), "%" PRIu64, term);
	const char *const plain[] = {"GET", r->name};
	const char *const fenced[] = {"EVAL", fenced_read, "2", r->name, fence, number};

	return r->is_fenced ? ask(r, fenced, 6, value) : ask(r, plain, 2, value);
}

static enum answer redis_write(struct resource *r, uint64_t term, const char *value)
{
	char fence[128], number[24];
	static char nothing[VALUE_MAX];

	(void)snprintf(fence, sizeof(fence), "%s:term", r->name);
	(void)snprintf(number, sizeof(number), "%" PRIu64, term);
	const char *const plain[] = {"SET", r->name, value};
	const char *const fenced[] = {"EVAL", fenced_write, "2", r->name, fence, number, value};

	return r->is_fenced ? ask(r, fenced, 7, nothing) : ask(r, plain, 3, nothing);
}

const struct resource_ops resource_redis = {
	.open = redis_open, .read = redis_read, .write = redis_write, .close = redis_close};
