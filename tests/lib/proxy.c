/* proxy.c: see proxy.h. One thread, poll(), and a list of connections. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 400
#define PENDING_MAX 64
#define CHUNK 65536
#define NS_PER_MS ((uint64_t)1000000)

struct stream {
	unsigned char *at; /* what has come, and was not passed on */
	size_t n;
	size_t room;
};

/* A reply that is waited for. */
struct pending {
	enum proxy_fault fault;
	uint64_t due_ns;
};

struct link {
	int client;
	int server;
	bool begun; /* the client's first request has passed */
	bool lost;  /* it was in a black hole */
	struct stream up, down;
	struct pending pending[PENDING_MAX];
	unsigned n_pending;
};

struct rule {
	enum proxy_fault fault;
	unsigned times;
	uint64_t ms;
};

struct proxy {
	const struct proxy_protocol *protocol;
	const char *words[PROXY_KINDS];
	uint16_t port;
	uint16_t server_port;
	int listener;
	int wake;
	pthread_t thread;
	pthread_mutex_t lock; /* all below */
	struct rule rules[PROXY_KINDS];
	uint64_t counts[PROXY_KINDS];
	bool is_down, is_hole, quits;
	struct link *links[LINKS_MAX];
	unsigned n_links;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 * NS_PER_MS + (uint64_t)t.tv_nsec;
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void close_reset(int fd)
{
	struct linger hard = {.l_onoff = 1, .l_linger = 0};

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close_reset(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Blocks a little at worst: both ends of a test read what they are sent. */
static bool send_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t k = send(fd, at, n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		at += k;
		n -= (size_t)k;
	}
	return true;
}

/* ---- links ---- */

static void link_free(struct link *l)
{
	close_reset(l->client);
	close_reset(l->server);
	free(l->up.at);
	free(l->down.at);
	free(l);
}

static void link_drop(struct proxy *p, unsigned i)
{
	link_free(p->links[i]);
	p->links[i] = p->links[--p->n_links];
}

static void link_accept(struct proxy *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	struct link *l = NULL;
	int one = 1;

	if (fd < 0)
		return;
	if (p->is_down)
		p->counts[0]++;
	if (!p->is_down && p->n_links < LINKS_MAX)
		l = calloc(1, sizeof(*l));
	if (l == NULL) {
		close_reset(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	l->client = fd;
	l->lost = p->is_hole;
	l->server = connect_to(p->server_port);
	if (l->server < 0) {
		link_free(l);
		return;
	}
	p->links[p->n_links++] = l;
}

static void consume(struct stream *s, size_t n)
{
	memmove(s->at, s->at + n, s->n - n);
	s->n -= n;
}

/* False: the other end is gone. */
static bool fill(struct stream *s, int fd)
{
	if (s->room - s->n < CHUNK) {
		unsigned char *at = realloc(s->at, s->room + 2 * (size_t)CHUNK);

		if (at == NULL)
			return false;
		s->at = at;
		s->room += 2 * (size_t)CHUNK;
	}
	ssize_t k = recv(fd, s->at + s->n, s->room - s->n, 0);

	if (k > 0)
		s->n += (size_t)k;
	return k > 0 || (k < 0 && errno == EINTR);
}

/* ---- requests ---- */

static unsigned kind_of(const struct proxy *p, const unsigned char *bytes, size_t n)
{
	for (unsigned i = 1; i < PROXY_KINDS; i++)
		if (p->words[i] != NULL && memmem(bytes, n, p->words[i], strlen(p->words[i])))
			return i;
	return 0;
}

/* What is to happen to this one; uses up the rule. */
static struct rule judge(struct proxy *p, const unsigned char *bytes, size_t n)
{
	unsigned kind = kind_of(p, bytes, n);
	struct rule *rule = &p->rules[kind];

	p->counts[0]++;
	if (kind != 0)
		p->counts[kind]++;
	if (rule->times == 0)
		rule = &p->rules[0];
	if (rule->times == 0)
		return (struct rule){.fault = PROXY_NONE};
	if (rule->times != UINT32_MAX)
		rule->times--;
	return *rule;
}

/* False: the link is over. */
static bool pass_request(struct proxy *p, struct link *l, const struct proxy_unit *unit)
{
	struct rule rule = {.fault = PROXY_NONE};

	if (unit->is_asked && !unit->is_greeting)
		rule = judge(p, l->up.at, unit->n);
	if (rule.fault == PROXY_RESET)
		return false;
	if (rule.fault == PROXY_REFUSE)
		return send_all(l->client, p->protocol->refusal, p->protocol->refusal_n);
	if (unit->is_asked) {
		if (l->n_pending == PENDING_MAX)
			return false;
		l->pending[l->n_pending++] =
			(struct pending){rule.fault, now_ns() + rule.ms * NS_PER_MS};
	}
	return send_all(l->server, l->up.at, unit->n);
}

static bool pass_requests(struct proxy *p, struct link *l)
{
	while (l->up.n > 0) {
		const char *answer = NULL;
		struct proxy_unit unit = p->protocol->request(l->up.at, l->up.n, l->begun, &answer);

		if (unit.n == 0)
			break;
		if (answer != NULL) {
			if (!send_all(l->client, answer, strlen(answer)))
				return false;
		} else if (!pass_request(p, l, &unit)) {
			return false;
		}
		l->begun = l->begun || answer == NULL;
		consume(&l->up, unit.n);
	}
	return true;
}

/* ---- replies ---- */

/* False: the link is over. *wake_ns: when to look again at what is held back. */
static bool pass_replies(struct proxy *p, struct link *l, uint64_t *wake_ns)
{
	while (l->down.n > 0) {
		struct proxy_unit unit = p->protocol->reply(l->down.at, l->down.n);
		const struct pending *head = l->n_pending > 0 ? &l->pending[0] : NULL;

		if (unit.n == 0)
			break;
		if (head != NULL && head->fault == PROXY_LATE && now_ns() < head->due_ns) {
			*wake_ns = head->due_ns < *wake_ns ? head->due_ns : *wake_ns;
			break;
		}
		if ((head == NULL || head->fault != PROXY_MUTE) &&
		    !send_all(l->client, l->down.at, unit.n))
			return false;
		if (unit.is_answer && head != NULL)
			memmove(l->pending, l->pending + 1, --l->n_pending * sizeof(l->pending[0]));
		consume(&l->down, unit.n);
	}
	return true;
}

/* ---- the thread ---- */

static bool serve(struct proxy *p, struct link *l, short up, short down, uint64_t *wake_ns)
{
	if (up != 0 && !fill(&l->up, l->client))
		return false;
	/* A server that goes away in a black hole isn't heard either. */
	if (down != 0 && !fill(&l->down, l->server) && !l->lost)
		return false;
	l->lost = l->lost || p->is_hole;
	if (l->lost) {
		l->up.n = 0;
		l->down.n = 0;
		return true;
	}
	return pass_requests(p, l) && pass_replies(p, l, wake_ns);
}

static void attend(struct proxy *p, const struct pollfd *fds, unsigned n, uint64_t *wake_ns)
{
	/* From the end: those that are dropped are replaced by ones already seen. */
	for (unsigned i = n; i > 0; i--) {
		struct link *l = p->links[i - 1];
		short up = fds[2 * i].revents;
		short down = fds[2 * i + 1].revents;

		if (p->is_down || !serve(p, l, up, down, wake_ns))
			link_drop(p, i - 1);
	}
	if (fds[1].revents != 0)
		link_accept(p);
}

static void *run(void *arg)
{
	struct proxy *p = arg;
	struct pollfd *fds = calloc(2 * LINKS_MAX + 2, sizeof(*fds));
	uint64_t wake_ns = UINT64_MAX;
	bool quits = fds == NULL;

	while (!quits) {
		uint64_t now = now_ns();
		int wait_ms = wake_ns == UINT64_MAX ? -1
			      : wake_ns <= now      ? 0
						    : (int)((wake_ns - now) / NS_PER_MS + 1);
		uint64_t rings;

		pthread_mutex_lock(&p->lock);
		unsigned n = p->n_links;

		fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN};
		for (unsigned i = 0; i < n; i++) {
			fds[2 * i + 2] =
				(struct pollfd){.fd = p->links[i]->client, .events = POLLIN};
			fds[2 * i + 3] =
				(struct pollfd){.fd = p->links[i]->server, .events = POLLIN};
		}
		pthread_mutex_unlock(&p->lock);
		poll(fds, 2 * n + 2, wait_ms);
		if (fds[0].revents != 0 && read(p->wake, &rings, sizeof(rings)) < 0)
			break;
		wake_ns = UINT64_MAX;
		pthread_mutex_lock(&p->lock);
		attend(p, fds, n, &wake_ns);
		quits = p->quits;
		pthread_mutex_unlock(&p->lock);
	}
	free(fds);
	return NULL;
}

/* ---- from outside ---- */

static void ring(struct proxy *p)
{
	uint64_t one = 1;

	if (write(p->wake, &one, sizeof(one)) < 0)
		abort();
}

struct proxy *proxy_new(const struct proxy_protocol *protocol, uint16_t port,
			const char *const *words)
{
	struct proxy *p = calloc(1, sizeof(*p));
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);

	if (p == NULL)
		return NULL;
	p->protocol = protocol;
	p->server_port = port;
	memcpy(p->words, words, sizeof(p->words));
	pthread_mutex_init(&p->lock, NULL);
	p->wake = eventfd(0, EFD_CLOEXEC);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->wake < 0 || p->listener < 0 ||
	    bind(p->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(p->listener, LINKS_MAX) != 0 ||
	    getsockname(p->listener, (struct sockaddr *)&address, &size) != 0 ||
	    pthread_create(&p->thread, NULL, run, p) != 0) {
		close_reset(p->listener);
		close_reset(p->wake);
		free(p);
		return NULL;
	}
	p->port = ntohs(address.sin_port);
	return p;
}

void proxy_free(struct proxy *p)
{
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->quits = true;
	pthread_mutex_unlock(&p->lock);
	ring(p);
	pthread_join(p->thread, NULL);
	while (p->n_links > 0)
		link_drop(p, 0);
	close(p->listener);
	close(p->wake);
	free(p);
}

uint16_t proxy_port(const struct proxy *p)
{
	return p->port;
}

void proxy_rule(struct proxy *p, unsigned kind, enum proxy_fault fault, unsigned times, uint64_t ms)
{
	pthread_mutex_lock(&p->lock);
	p->rules[kind] = (struct rule){fault, fault == PROXY_NONE ? 0 : times, ms};
	/* With the rule goes what it still holds back. */
	for (unsigned i = 0; times == 0 && i < p->n_links; i++)
		for (unsigned k = 0; k < p->links[i]->n_pending; k++)
			p->links[i]->pending[k].due_ns = 0;
	pthread_mutex_unlock(&p->lock);
	ring(p);
}

void proxy_down(struct proxy *p, bool is_down)
{
	pthread_mutex_lock(&p->lock);
	p->is_down = is_down;
	pthread_mutex_unlock(&p->lock);
	ring(p);
}

void proxy_hole(struct proxy *p, bool is_hole)
{
	pthread_mutex_lock(&p->lock);
	p->is_hole = is_hole;
	for (unsigned i = 0; is_hole && i < p->n_links; i++)
		p->links[i]->lost = true;
	pthread_mutex_unlock(&p->lock);
	ring(p);
}

uint64_t proxy_count(struct proxy *p, unsigned kind)
{
	pthread_mutex_lock(&p->lock);
	uint64_t n = p->counts[kind];

	pthread_mutex_unlock(&p->lock);
	return n;
}
