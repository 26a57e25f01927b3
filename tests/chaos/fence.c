/*
 * fence.c: see fence.h. It knows just enough of two protocols to send one sentence, and leaves it
 * to tests/relay to say where the answer ends. It never waits longer than it is told to.
 */
#include "fence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define EVERY_NS (25 * CLOCK_NS_PER_MS) /* many workers share the resource */
#define PROTOCOL_3 0x00030000u

/* Check and write are one step. Terms fit into a script's numbers: they count milliseconds. */
static const char script[] =
	"local top = tonumber(redis.call('HGET', KEYS[1], 'term') or '0') "
	"if tonumber(ARGV[1]) < top then redis.call('HINCRBY', KEYS[1], 'refused', 1) return 0 end "
	"redis.call('HINCRBY', KEYS[1], 'accepted', 1) "
	"local who = ARGV[1] .. ' ' .. ARGV[2] "
	"if redis.call('HGET', KEYS[1], 'who') ~= who then "
	"redis.call('HSET', KEYS[1], 'term', ARGV[1], 'who', who) "
	"redis.call('RPUSH', KEYS[1] .. ':written', who) end return 1";

static void give_up(struct fence *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	f->fd = -1;
}

static void say(struct fence *f, const char *data, size_t n)
{
	if (f->fd >= 0 && send(f->fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
		give_up(f);
	f->is_busy = true;
}

/* A message of PostgreSQL: a type, unless it opens the session, and the length of the rest. */
static void say_postgres(struct fence *f, char type, const char *body, size_t n)
{
	char data[512];
	size_t at = type != '\0';
	uint32_t size = htonl((uint32_t)n + 4);

	if (n + 5 > sizeof(data))
		return;
	data[0] = type;
	memcpy(data + at, &size, 4);
	memcpy(data + at + 4, body, n);
	say(f, data, at + 4 + n);
}

static void begin_session(struct fence *f)
{
	static const char words[] = "user\0baton\0database\0baton\0";
	char body[4 + sizeof(words)];
	uint32_t version = htonl(PROTOCOL_3);

	memcpy(body, &version, 4);
	memcpy(body + 4, words, sizeof(words));
	say_postgres(f, '\0', body, sizeof(body));
}

static void begin_write(struct fence *f, uint64_t term, uint32_t seat)
{
	char text[1200], number[24], who[16];

	(void)snprintf(number, sizeof(number), "%" PRIu64, term);
	(void)snprintf(who, sizeof(who), "%" PRIu32, seat);
	if (f->protocol == &protocol_postgres) {
		int n = snprintf(text, 400, "SELECT chaos_write('%s', %s, %s)", f->name, number,
				 who);

		say_postgres(f, 'Q', text, (size_t)n + 1);
		return;
	}
	int n = snprintf(text, sizeof(text),
			 "*6\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n"
			 "$%zu\r\n%s\r\n",
			 sizeof(script) - 1, script, strlen(f->name), f->name, strlen(number),
			 number, strlen(who), who);

	say(f, text, (size_t)n);
}

/* Reads what has come, and forgets each answer that is whole. */
static void hear(struct fence *f)
{
	ssize_t got = recv(f->fd, f->in + f->n, sizeof(f->in) - f->n, MSG_DONTWAIT);
	struct message m;

	if (got == 0 || (got < 0 && errno != EAGAIN) || f->n == sizeof(f->in)) {
		give_up(f);
		return;
	}
	f->n += got > 0 ? (size_t)got : 0;
	while (f->n > 0 && f->protocol->reply(&f->state, f->in, f->n, &m)) {
		memmove(f->in, f->in + m.n, f->n - m.n);
		f->n -= m.n;
		f->is_busy = f->is_busy && m.is_push;
	}
}

void fence_open(struct fence *f, const char *spec)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	char protocol[16], address[20], port[6];

	*f = (struct fence){.fd = -1};
	if (spec == NULL ||
	    sscanf(spec, "%15[^:]:%19[^:]:%5[0-9]:%63s", protocol, address, port, f->name) != 4)
		return;
	f->protocol = protocol_find(protocol);
	at.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->protocol == NULL || inet_pton(AF_INET, address, &at.sin_addr) != 1 ||
	    (connect(f->fd, (const struct sockaddr *)&at, sizeof(at)) != 0 && errno != EINPROGRESS))
		give_up(f);
	f->is_busy = true; /* until it is connected */
}

void fence_work(struct fence *f, uint64_t term, uint32_t seat, int ms)
{
	bool is_new = f->fd >= 0 && f->next_ns == 0;
	struct pollfd p = {.fd = f->fd, .events = is_new ? POLLOUT : POLLIN};

	if (f->fd >= 0 && !f->is_busy && clock_boot_ns() >= f->next_ns) {
		f->next_ns = clock_boot_ns() + EVERY_NS;
		begin_write(f, term, seat);
	}
	if (poll(&p, 1, ms) <= 0 || f->fd < 0)
		return;
	if (!is_new) {
		hear(f);
		return;
	}
	f->next_ns = 1;
	f->is_busy = false;
	if (f->protocol == &protocol_postgres)
		begin_session(f);
}
