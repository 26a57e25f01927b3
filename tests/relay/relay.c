/*
 * relay.c: see relay.h. One thread with poll(); everything belongs to one lock, which it holds
 * except while it waits. Nothing in it blocks: a server that is stopped must not stop the others.
 */
#include "relay.h"

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

#include "buffer.h"

#define PAIRS_MAX 512
#define FIRST 3 /* descriptors of a look before those of the pairs */
#define UNWANTED_MAX 8
#define NS_PER_MS ((uint64_t)1000000)

/* The two ways through. */
enum way { ASKED, SAID, N_WAYS };

struct lane {
	struct buffer in;  /* came, and is no whole message yet */
	struct buffer out; /* to be passed on */
	uint64_t hold_ns;  /* not before then */
	bool is_stalled;
};

/* A client, and the connection to the server that it believes to have. */
struct pair {
	int ends[N_WAYS]; /* who sends that way: the client, the server */
	struct lane lanes[N_WAYS];
	struct protocol_state state;
	bool is_clear; /* meets no faults */
	bool is_torn;  /* bytes of it were swallowed: nothing sensible can follow */
	bool is_over;  /* ends when what goes `last` has been passed on */
	enum way last;
	uint64_t n_asked;
	uint64_t n_said;
	uint64_t unwanted[UNWANTED_MAX]; /* which answers vanish */
	size_t n_unwanted;
};

struct relay {
	const struct protocol *protocol;
	pthread_mutex_t lock;
	pthread_t thread;
	int listeners[2]; /* [1]: for those that meet no faults */
	unsigned ports[2];
	unsigned server_port;
	int wake;
	bool is_down;
	bool is_hole;
	bool is_over;
	struct rules rules;
	struct relay_counts counts;
	struct pair pairs[PAIRS_MAX];
	size_t n_pairs;
	struct pollfd fds[FIRST + N_WAYS * PAIRS_MAX];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * NS_PER_MS + (uint64_t)t.tv_nsec;
}

/* ---- sockets ---- */

static int new_socket(void)
{
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* Else the end of an answer waits for a delayed acknowledgement. */
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* A reset, as of a machine that has gone. */
static void slam(int fd)
{
	struct linger now = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(fd);
}

/* Whoever is to get what goes `last` reads it, and then the end; the other gets a reset. */
static void end_pair(struct relay *r, size_t i)
{
	struct pair *x = &r->pairs[i];

	for (int way = 0; way < N_WAYS; way++) {
		if (x->is_over && x->last != (enum way)way)
			(void)close(x->ends[way]);
		else
			slam(x->ends[way]);
		buffer_free(&x->lanes[way].in);
		buffer_free(&x->lanes[way].out);
	}
	if (r->protocol->forget != NULL)
		r->protocol->forget(&x->state);
	*x = r->pairs[--r->n_pairs];
}

static bool is_met(int rc)
{
	return rc == 0 || errno == EINPROGRESS;
}

static void welcome(struct relay *r, bool is_clear)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)r->server_port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int client = accept4(r->listeners[is_clear], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	bool is_down = r->is_down && !is_clear;
	int on = 1;

	if (client < 0)
		return;
	r->counts.turned += is_down;
	int server = is_down || r->n_pairs == PAIRS_MAX ? -1 : new_socket();

	if (server < 0 || !is_met(connect(server, (const struct sockaddr *)&to, sizeof(to)))) {
		slam(client);
		if (server >= 0)
			(void)close(server);
		return;
	}
	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	r->pairs[r->n_pairs++] = (struct pair){.ends = {client, server}, .is_clear = is_clear};
}

/* ---- messages ---- */

static void end_after(struct pair *x, enum way last)
{
	x->is_over = true;
	x->last = last;
}

/* It goes on its way, once more if it is a copy; false: there is no room. */
static bool pass_on(struct relay *r, struct pair *x, enum way way, const struct message *m,
		    bool is_copy)
{
	if (way == ASKED && r->protocol->stamp != NULL && !x->state.is_opaque)
		r->protocol->stamp(&x->state, is_copy);
	return buffer_add(&x->lanes[way].out, m->data, m->size);
}

/* It doesn't arrive, and its sender must not be harmed by that. */
static bool lose(struct pair *x, enum way way, const struct message *m)
{
	return buffer_add(&x->lanes[way == ASKED ? SAID : ASKED].out, m->lost, m->lost_n);
}

/* It arrives twice. A protocol that doesn't number its requests counts the answers. */
static bool double_it(struct relay *r, struct pair *x, enum way way, const struct message *m)
{
	bool is_counted = way == ASKED && r->protocol->stamp == NULL;

	if (is_counted && x->n_unwanted == UNWANTED_MAX)
		return pass_on(r, x, way, m, false); /* enough of that is on its way */
	if (is_counted)
		x->unwanted[x->n_unwanted++] = ++x->n_asked;
	return pass_on(r, x, way, m, false) && pass_on(r, x, way, m, true);
}

/* What the rule says; false: the pair ends at once. */
static bool do_act(struct relay *r, struct pair *x, enum way way, const struct message *m,
		   const struct rule *rule)
{
	struct lane *lane = &x->lanes[way];
	uint64_t until_ns = now_ns() + rule->ms * NS_PER_MS;
	struct message half = *m;

	switch (rule->act) {
	case ACT_DROP: return lose(x, way, m);
	case ACT_CUT: return false;
	case ACT_STALL: lane->is_stalled = true; return true;
	case ACT_HALF:
		end_after(x, way);
		half.size /= 2;
		return pass_on(r, x, way, &half, false);
	case ACT_CUT_AFTER: end_after(x, way); break;
	case ACT_DELAY: lane->hold_ns = until_ns; break;
	case ACT_LATE: x->lanes[SAID].hold_ns = until_ns; break;
	case ACT_MUTE: x->lanes[SAID].is_stalled = true; break;
	case ACT_DUPLICATE: return double_it(r, x, way, m);
	case ACT_REFUSE:
		x->n_asked--; /* the server isn't asked */
		return lose(x, way, m) && buffer_add(&x->lanes[SAID].out, m->refusal, m->refusal_n);
	default: break;
	}
	return pass_on(r, x, way, m, false);
}

/* An answer that nobody waits for, because its request was doubled here. */
static bool is_unwanted(struct pair *x, const struct message *m)
{
	if (m->is_push || m->is_unwanted)
		return m->is_unwanted;
	x->n_said++;
	for (size_t i = 0; i < x->n_unwanted; i++)
		if (x->unwanted[i] == x->n_said) {
			x->unwanted[i] = x->unwanted[--x->n_unwanted];
			return true;
		}
	return false;
}

/* One whole message; false: the pair ends at once. */
static bool pass(struct relay *r, struct pair *x, enum way way, struct message *m)
{
	bool is_labelled = false;

	if (m->is_aside)
		return buffer_add(&x->lanes[way].out, m->data, m->size);
	if (way == ASKED ? m->is_unwanted : is_unwanted(x, m))
		return lose(x, way, m);
	if (way == ASKED) {
		x->n_asked++;
		r->counts.requests += !x->is_clear;
		is_labelled = !x->is_clear && rules_label(&r->rules, m);
	}
	const struct rule *rule = x->is_clear ? NULL
					      : rules_match(&r->rules, way == SAID, is_labelled, m,
							    now_ns() / NS_PER_MS);

	return rule != NULL ? do_act(r, x, way, m, rule) : pass_on(r, x, way, m, false);
}

static bool frame(const struct relay *r, struct pair *x, enum way way, struct message *m)
{
	const struct buffer *in = &x->lanes[way].in;
	const struct protocol *protocol = x->state.is_opaque ? &protocol_bytes : r->protocol;

	*m = (struct message){.n = 0};
	if (in->n == 0 ||
	    !(way == ASKED ? protocol->request : protocol->reply)(&x->state, in->data, in->n, m))
		return false;
	if (m->data == NULL) { /* nothing is written anew */
		m->data = m->text = in->data;
		m->size = m->text_n = m->n;
	}
	if (m->refusal == NULL) {
		m->refusal = r->protocol->refusal;
		m->refusal_n = r->protocol->refusal_n;
	}
	return true;
}

/* The sender has nothing more to say: what it said is passed on, then that. */
static bool hang_up(struct pair *x, enum way way)
{
	struct lane *lane = &x->lanes[way];

	end_after(x, way);
	return lane->is_stalled || buffer_add(&lane->out, lane->in.data, lane->in.n);
}

static bool hear(struct relay *r, struct pair *x, enum way way)
{
	struct lane *lane = &x->lanes[way];
	char data[16384];
	struct message m;
	ssize_t got = recv(x->ends[way], data, sizeof(data), 0);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!x->is_clear && (r->is_hole || x->is_torn)) {
		x->is_torn = true;
		r->counts.swallowed += way == ASKED;
		return got > 0;
	}
	if (got == 0)
		return hang_up(x, way);
	if (!buffer_add(&lane->in, data, (size_t)got))
		return false;
	while (!x->is_over && !lane->is_stalled && frame(r, x, way, &m)) {
		if (!pass(r, x, way, &m))
			return false;
		buffer_take_off(&lane->in, m.n);
	}
	if (lane->is_stalled)
		lane->in.n = 0;
	return true;
}

/* Passes on what the socket takes; false: it is broken. */
static bool pour(struct pair *x, enum way way)
{
	struct buffer *b = &x->lanes[way].out;

	while (b->n > 0) {
		ssize_t n = send(x->ends[!way], b->data, b->n, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
		buffer_take_off(b, (size_t)n);
	}
	return true;
}

/* ---- the thread ---- */

static bool can_pour(const struct pair *x, enum way way)
{
	return x->lanes[way].out.n > 0 && now_ns() >= x->lanes[way].hold_ns;
}

static int next_wait_ms(const struct relay *r)
{
	uint64_t now = now_ns();
	uint64_t wait = 1000 * NS_PER_MS;

	for (size_t i = 0; i < r->n_pairs; i++)
		for (int way = 0; way < N_WAYS; way++) {
			const struct lane *l = &r->pairs[i].lanes[way];

			if (l->out.n > 0 && l->hold_ns > now && l->hold_ns - now < wait)
				wait = l->hold_ns - now;
		}
	return (int)((wait + NS_PER_MS - 1) / NS_PER_MS);
}

static void serve(struct relay *r, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct pair *x = &r->pairs[i];
		bool ok = true;

		for (int way = 0; ok && way < N_WAYS; way++)
			if (!x->is_over && r->fds[FIRST + N_WAYS * i + (size_t)way].revents &
						   (POLLIN | POLLHUP | POLLERR))
				ok = hear(r, x, (enum way)way);
		for (int way = 0; ok && way < N_WAYS; way++)
			if (can_pour(x, (enum way)way))
				ok = pour(x, (enum way)way);
		if (!ok || (x->is_over && x->lanes[x->last].out.n == 0))
			end_pair(r, i);
	}
}

/* A switch was turned: connections that can't go on end. */
static void tidy(struct relay *r)
{
	for (size_t i = r->n_pairs; i-- > 0;) {
		struct pair *x = &r->pairs[i];

		if (r->is_over || (r->is_down && !x->is_clear) || (x->is_torn && !r->is_hole)) {
			x->is_over = false;
			end_pair(r, i);
		}
	}
}

static void look(struct relay *r)
{
	r->fds[0] = (struct pollfd){.fd = r->wake, .events = POLLIN};
	/* In a black hole nobody answers a call. */
	r->fds[1] = (struct pollfd){.fd = r->is_hole ? -1 : r->listeners[0], .events = POLLIN};
	r->fds[2] = (struct pollfd){.fd = r->listeners[1], .events = POLLIN};
	for (size_t i = 0; i < r->n_pairs; i++)
		for (int way = 0; way < N_WAYS; way++) {
			const struct pair *x = &r->pairs[i];
			/* Nothing more is heard of a pair that is over. */
			int events = (x->is_over ? 0 : POLLIN) |
				     (can_pour(x, way == ASKED ? SAID : ASKED) ? POLLOUT : 0);

			r->fds[FIRST + N_WAYS * i + (size_t)way] = (struct pollfd){
				.fd = events != 0 ? x->ends[way] : -1, .events = (short)events};
		}
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;
	uint64_t count;

	(void)pthread_mutex_lock(&r->lock);
	while (!r->is_over) {
		size_t n = r->n_pairs;
		int wait_ms = next_wait_ms(r);

		look(r);
		(void)pthread_mutex_unlock(&r->lock);
		(void)poll(r->fds, (nfds_t)(FIRST + N_WAYS * n), wait_ms);
		(void)pthread_mutex_lock(&r->lock);
		if (r->fds[0].revents != 0 && read(r->wake, &count, sizeof(count)) > 0) {
			tidy(r);
			continue; /* what was polled may be gone */
		}
		serve(r, n);
		for (int i = 0; i < 2; i++)
			if (r->fds[1 + i].revents != 0)
				welcome(r, i == 1);
	}
	tidy(r);
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- from outside ---- */

static bool listen_on(struct relay *r, int i, const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int fd = new_socket();

	r->listeners[i] = fd;
	if (fd < 0 || inet_pton(AF_INET, address, &at.sin_addr) != 1 ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 128) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		return false;
	r->ports[i] = ntohs(at.sin_port);
	return true;
}

static void close_all(struct relay *r)
{
	const int fds[] = {r->listeners[0], r->listeners[1], r->wake};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	free(r);
}

struct relay *relay_new(const struct relay_options *o)
{
	struct relay *r = calloc(1, sizeof(*r));
	const char *address = o->address != NULL ? o->address : "127.0.0.1";

	if (r == NULL)
		return NULL;
	r->protocol = o->protocol;
	r->server_port = o->server_port;
	r->listeners[0] = r->listeners[1] = -1;
	r->wake = eventfd(0, EFD_CLOEXEC);
	rules_init(&r->rules, o->seed);
	(void)pthread_mutex_init(&r->lock, NULL);
	if (r->wake < 0 || !listen_on(r, 0, address) || !listen_on(r, 1, address) ||
	    pthread_create(&r->thread, NULL, relay_main, r) != 0) {
		close_all(r);
		return NULL;
	}
	return r;
}

/* With the lock held: the thread looks again. */
static void turn(struct relay *r)
{
	uint64_t one = 1;

	(void)!write(r->wake, &one, sizeof(one));
}

void relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->is_over = true;
	turn(r);
	(void)pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->thread, NULL);
	(void)pthread_mutex_destroy(&r->lock);
	close_all(r);
}

unsigned relay_port(const struct relay *r)
{
	return r->ports[0];
}

unsigned relay_clear_port(const struct relay *r)
{
	return r->ports[1];
}

bool relay_rules(struct relay *r, unsigned slot, const char *text, char *why, size_t size)
{
	(void)pthread_mutex_lock(&r->lock);
	bool ok = rules_set(&r->rules, slot, text, now_ns() / NS_PER_MS, why, size);

	for (size_t i = 0; text[0] == '\0' && i < r->n_pairs; i++)
		for (int way = 0; way < N_WAYS; way++)
			r->pairs[i].lanes[way].hold_ns = 0;
	turn(r);
	(void)pthread_mutex_unlock(&r->lock);
	return ok;
}

void relay_text(struct relay *r, char *to, size_t size)
{
	(void)pthread_mutex_lock(&r->lock);
	rules_text(&r->rules, to, size);
	(void)pthread_mutex_unlock(&r->lock);
}

void relay_down(struct relay *r, bool is_down)
{
	(void)pthread_mutex_lock(&r->lock);
	r->is_down = is_down;
	turn(r);
	(void)pthread_mutex_unlock(&r->lock);
}

static size_t held(const struct pair *x)
{
	size_t n = 0;

	for (int way = 0; way < N_WAYS; way++)
		n += x->lanes[way].in.n + x->lanes[way].out.n;
	return n;
}

void relay_hole(struct relay *r, bool is_hole)
{
	(void)pthread_mutex_lock(&r->lock);
	r->is_hole = is_hole;
	for (size_t i = 0; i < r->n_pairs; i++) { /* what is on its way is swallowed, too */
		struct pair *x = &r->pairs[i];

		if (!x->is_clear && held(x) > 0) {
			x->is_torn = true;
			for (int way = 0; way < N_WAYS; way++)
				x->lanes[way].out.n = 0;
		}
	}
	turn(r);
	(void)pthread_mutex_unlock(&r->lock);
}

void relay_counts(struct relay *r, struct relay_counts *to)
{
	(void)pthread_mutex_lock(&r->lock);
	*to = r->counts;
	to->harmed = r->rules.fired;
	(void)pthread_mutex_unlock(&r->lock);
}

uint64_t relay_labelled(struct relay *r, const char *label)
{
	uint64_t n = 0;

	(void)pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->rules.n_labels; i++)
		if (strcmp(r->rules.labels[i].kind, label) == 0)
			n += r->rules.labels[i].seen;
	(void)pthread_mutex_unlock(&r->lock);
	return n;
}
