/*
 * backend_redis.c: a Redis server, as its administrator with redis-cli treats it, and the network
 * to it (proxy.h). There are four ways to it: straight, by TLS, by real Sentinels, as the node of a
 * real cluster. Each case has a namespace and a user of its own, with the rights that
 * docs/stores/redis.md lists and no others. It knows the keys that baton-redis(7) describes, and
 * uses nothing of the driver but the scripts' texts, to tell one call from another.
 */
#include "backend.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy.h"

/* Longer than any lease of a case, also where the case is tried again with a longer one. */
#define MAX_LEASE_MS(t) ((t)->lease_ms > 6000 ? (t)->lease_ms / 3 * 4 : 8000)
#define NEW_PASSWORD (">" PASSWORD)
#define REPLY_SIZE ((size_t)1 << 20) /* all keys of a thousand elections */
#define RIGHTS                                                                                    \
	"-@all", "+evalsha", "+script|load", "+info", "+select", "+client|setname", "+ping",      \
		"+subscribe", "+unsubscribe", "+publish", "+time", "+exists", "+del", "+pexpire", \
		"+pttl", "+hset", "+hget", "+hmget", "+hgetall", "+hdel", "+hkeys", "+hlen",      \
		"+hexists", "+hscan", "+lpush", "+lset", "+ltrim", "+lindex", "+lrange", "+zadd", \
		"+zrem", "+zrangebylex", "+wait", "+asking"

/* A connection of the administrator, straight to the server. */
struct admin {
	FILE *in;
	int fd;
};

enum way_there { PLAIN, TLS, SENTINEL, CLUSTER };

struct hand {
	struct proxy *proxy; /* first: see proxy.h */
	enum way_there way;
	struct admin admin;
	struct admin pulse; /* of another thread */
	unsigned port;
	char label[64];
	char shas[N_VERBS][41];
};

static struct hand *hand_of(struct testcase *t)
{
	return t->hand;
}

/* ---- a small client ---- */

static bool admin_connect(struct admin *a, const struct sockaddr *address, socklen_t size)
{
	struct timeval limit = {.tv_sec = 10};
	int yes = 1;

	a->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd < 0 || connect(a->fd, address, size) != 0)
		return false;
	setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	/* Word by word: none is to wait for another's answer. */
	if (address->sa_family == AF_INET)
		setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	a->in = fdopen(a->fd, "r");
	return a->in != NULL;
}

static bool admin_open(struct admin *a, unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return admin_connect(a, (const struct sockaddr *)&address, sizeof(address));
}

/* Where the port speaks TLS, the administrator takes the server's socket. */
static bool admin_open_socket(struct admin *a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("BATON_TEST_SOCKET");

	if (path == NULL || strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "rediss: run it by tests/servers with redis-tls, please\n");
		return false;
	}
	strcpy(address.sun_path, path);
	return admin_connect(a, (const struct sockaddr *)&address, sizeof(address));
}

static void admin_close(struct admin *a)
{
	if (a->in != NULL)
		fclose(a->in);
	a->in = NULL;
}

/* One reply; the texts in it one after the other, a line each. False: an error, or none came. */
static bool hear(struct admin *a, char *out, size_t size)
{
	char line[1024];
	size_t used = 0;

	out[0] = '\0';
	for (long left = 1; left > 0; left--) {
		if (fgets(line, sizeof(line), a->in) == NULL)
			return false;
		long n = strtol(line + 1, NULL, 10);

		if (line[0] == '*') {
			left += n > 0 ? n : 0;
			continue;
		}
		const char *from = line + 1;
		char *bulk = NULL;

		if (line[0] == '$' && n >= 0) {
			bulk = malloc((size_t)n + 2);
			if (bulk == NULL || fread(bulk, 1, (size_t)n + 2, a->in) != (size_t)n + 2)
				return false;
			bulk[n] = '\0';
			from = bulk;
		}
		int end = bulk != NULL ? (int)n : (int)strcspn(from, "\r");

		if (line[0] != '$' || n >= 0)
			used += (size_t)snprintf(out + used, size - used, "%s%.*s",
						 used > 0 ? "\n" : "", end, from);
		free(bulk);
		if (line[0] == '-' || used >= size)
			return false;
	}
	return true;
}

static bool say(struct admin *a, const char *const *words, size_t n)
{
	char head[32];

	dprintf(a->fd, "*%zu\r\n", n);
	for (size_t i = 0; i < n; i++) {
		int size = snprintf(head, sizeof(head), "$%zu\r\n", strlen(words[i]));

		if (send(a->fd, head, (size_t)size, MSG_NOSIGNAL) < 0 ||
		    send(a->fd, words[i], strlen(words[i]), MSG_NOSIGNAL) < 0 ||
		    send(a->fd, "\r\n", 2, MSG_NOSIGNAL) < 0)
			return false;
	}
	return true;
}

static bool tell(struct admin *a, char *out, size_t size, const char *const *words, size_t n)
{
	return a->in != NULL && say(a, words, n) && hear(a, out, size);
}

/* ask(a, "GET", "key"): did it work? The reply is in the static text. */
static char reply[REPLY_SIZE];
#define ask(a, ...)                                                         \
	tell((a), reply, sizeof(reply), (const char *const[]){__VA_ARGS__}, \
	     sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- telling calls apart ---- */

static bool read_file(const char *name, char *to, size_t size, size_t *used)
{
	char path[128];

	snprintf(path, sizeof(path), "src/store/redis/lua/%s.lua", name);
	FILE *f = fopen(path, "re");
	size_t n = f != NULL ? fread(to + *used, 1, size - *used - 1, f) : 0;

	if (f != NULL)
		fclose(f);
	*used += n;
	to[*used] = '\0';
	return n > 0;
}

static bool learn_scripts(struct hand *h)
{
	static const char *const names[N_VERBS] = {
		[VERB_OPEN] = "lease_open",   [VERB_RENEW] = "lease_renew",
		[VERB_CAMPAIGN] = "campaign", [VERB_RELEASE] = "release",
		[VERB_OBSERVE] = "observe",
	};

	for (int v = 1; v < N_VERBS; v++) {
		static char text[32768];
		size_t used = 0;

		if (!read_file("prelude", text, sizeof(text), &used) ||
		    !read_file(names[v], text, sizeof(text), &used) ||
		    !ask(&h->admin, "SCRIPT", "LOAD", text) || strlen(reply) != 40)
			return false;
		memcpy(h->shas[v], reply, 41);
	}
	return true;
}

/* ---- places ---- */

#define HOSTS_MAX 8

/* All of them are on this machine. */
static size_t ports_of(const char *base_url, unsigned *ports)
{
	static const char host[] = "127.0.0.1:";
	size_t n = 0;

	for (const char *at = strstr(base_url, host); n < HOSTS_MAX && at != NULL;
	     at = strstr(at + 1, host))
		ports[n++] = (unsigned)strtoul(at + strlen(host), NULL, 10);
	return n;
}

static const char *key(const struct hand *h, const char *kind, const char *name)
{
	static char text[2][600];
	static unsigned turn;
	char *to = text[turn++ % 2];

	snprintf(to, sizeof(text[0]), "{%s}:%s%s", h->label, kind, name);
	return to;
}

/* A server that has just begun lets nobody win for a while, and that is tested elsewhere. */
static bool settle(const struct testcase *t, struct hand *h)
{
	for (;;) {
		const char *at = ask(&h->admin, "INFO", "server")
					 ? strstr(reply, "uptime_in_seconds:")
					 : NULL;

		if (at == NULL)
			return false;
		if (strtoul(strchr(at, ':') + 1, NULL, 10) * 1000 > MAX_LEASE_MS(t) + 1000)
			return true;
		pass_time(100);
	}
}

static bool allow(struct hand *h)
{
	char keys[100], channels[100];

	snprintf(keys, sizeof(keys), "~{%s}:*", h->label);
	snprintf(channels, sizeof(channels), "&{%s}:*", h->label);
	return ask(&h->admin, "ACL", "SETUSER", h->label, "on", NEW_PASSWORD, "resetkeys",
		   "resetchannels", keys, channels, RIGHTS);
}

/* Straight to the server that has the keys of this label: its port, and the administrator there. */
static bool find_home(struct hand *h, const char *base_url)
{
	unsigned ports[HOSTS_MAX];
	size_t n = ports_of(base_url, ports);

	h->way = strncmp(base_url, "rediss:", 7) == 0            ? TLS
		 : strncmp(base_url, "redis+sentinel:", 15) == 0 ? SENTINEL
		 : strncmp(base_url, "redis+cluster:", 14) == 0  ? CLUSTER
								 : PLAIN;
	h->port = n > 0 ? ports[0] : 0;
	if (h->way == TLS)
		return n > 0 && admin_open_socket(&h->admin);
	if (h->way == SENTINEL) {
		struct admin sentinel = {0};
		bool is_told = n > 0 && admin_open(&sentinel, ports[0]) &&
			       ask(&sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") &&
			       strchr(reply, '\n') != NULL;

		admin_close(&sentinel);
		if (!is_told)
			return false;
		h->port = (unsigned)strtoul(strchr(reply, '\n') + 1, NULL, 10);
	}
	for (size_t i = 0; h->way == CLUSTER && i < n; i++) {
		h->port = ports[i];
		/* The others, and replicas, send one on. */
		if (admin_open(&h->admin, ports[i]) &&
		    ask(&h->admin, "EXISTS", key(h, "namespace", "")))
			return true;
		admin_close(&h->admin);
	}
	return h->way != CLUSTER && admin_open(&h->admin, h->port);
}

/* The Sentinels know our way to the primary by the label. They must not act on what is done to it:
 * all of them take it for well, and leave its replicas alone, for longer than any case lasts. */
static bool tell_sentinels(const struct hand *h, const char *base_url, bool is_there)
{
	unsigned ports[HOSTS_MAX];
	size_t n = ports_of(base_url, ports);
	char port[16];
	bool ok = true;

	snprintf(port, sizeof(port), "%u", is_there ? proxy_port(h->proxy) : 0);
	for (size_t i = 0; i < n && ok; i++) {
		struct admin a = {0};

		ok = admin_open(&a, ports[i]);
		if (ok && !is_there)
			(void)ask(&a, "SENTINEL", "REMOVE", h->label);
		else if (ok)
			ok = ask(&a, "SENTINEL", "MONITOR", h->label, "127.0.0.1", port, "2") &&
			     ask(&a, "SENTINEL", "SET", h->label, "down-after-milliseconds",
				 "600000", "failover-timeout", "600000");
		admin_close(&a);
	}
	/* They come through the proxy, too: those who count its descriptors want them there. */
	if (ok && is_there)
		pass_time(700);
	return ok;
}

/* The candidates' URL: by the proxy, wherever that is hidden. */
static bool write_url(struct testcase *t, const struct hand *h, const char *base_url)
{
	const char *hosts = strstr(base_url, "://") + 3;
	const char *options = strchr(base_url, '?');
	unsigned port = proxy_port(h->proxy);
	char own[128];

	snprintf(own, sizeof(own), "prefix=%s&max_lease=%" PRIu64, h->label,
		 (uint64_t)MAX_LEASE_MS(t));
	if (h->way == SENTINEL) {
		snprintf(t->url, sizeof(t->url), "redis+sentinel://%s:%s@%.*s/%s?%s", h->label,
			 PASSWORD, (int)strcspn(hosts, "/"), hosts, h->label, own);
		return tell_sentinels(h, base_url, true);
	}
	snprintf(t->url, sizeof(t->url), "%.*s://%s:%s@127.0.0.1:%u?%s%s%s",
		 (int)strcspn(base_url, ":"), base_url, h->label, PASSWORD, port, own,
		 options != NULL ? "&" : "", options != NULL ? options + 1 : "");
	return true;
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	const char *words[N_VERBS] = {NULL};

	if (h == NULL)
		return false;
	t->hand = h;
	snprintf(h->label, sizeof(h->label), "%s", label);
	if (!find_home(h, base_url) || !settle(t, h) || !learn_scripts(h) || !allow(h))
		return false;
	for (int v = 1; v < N_VERBS; v++)
		words[v] = h->shas[v];
	h->proxy = proxy_new(h->port, h->way == TLS ? &protocol_bytes : &protocol_resp, words);
	/* What is encrypted can't be asked by the way that never fails. */
	return h->proxy != NULL &&
	       (h->way == TLS ? admin_open_socket(&h->pulse)
			      : admin_open(&h->pulse, proxy_clear_port(h->proxy))) &&
	       write_url(t, h, base_url);
}

static bool forget_keys(struct hand *h)
{
	static char keys[REPLY_SIZE];

	if (!ask(&h->admin, "KEYS", key(h, "*", "")))
		return false;
	memcpy(keys, reply, sizeof(keys));
	for (char *at = keys, *end; at != NULL && *at != '\0'; at = end) {
		end = strchr(at, '\n');
		if (end != NULL)
			*end++ = '\0';
		if (!ask(&h->admin, "DEL", at))
			return false;
	}
	return true;
}

static void leave(struct testcase *t)
{
	struct hand *h = hand_of(t);

	proxy_free(h->proxy);
	h->proxy = NULL;
	admin_close(&h->admin);
}

static void clean(const char *base_url, const char *label)
{
	struct hand h = {0};

	snprintf(h.label, sizeof(h.label), "%s", label);
	if (find_home(&h, base_url)) {
		forget_keys(&h);
		ask(&h.admin, "ACL", "DELUSER", label);
	}
	if (h.way == SENTINEL)
		tell_sentinels(&h, base_url, false);
	admin_close(&h.admin);
}

static void pulse(struct testcase *t)
{
	struct hand *h = hand_of(t);
	char words[256];
	char name[100];

	snprintf(name, sizeof(name), "{%s}:pulse", h->label);
	tell(&h->pulse, words, sizeof(words), (const char *const[]){"SET", name, "1", "PX", "1000"},
	     5);
}

/* ---- claims that end ---- */

static bool overwrite(struct testcase *t, struct hand *h, const char *name)
{
	char term[32], claim[64], field[400], ttl[32];

	if (!ask(&h->admin, "HGET", key(h, "election:", name), "term"))
		return false;
	snprintf(term, sizeof(term), "%" PRIu64, (uint64_t)strtoull(reply, NULL, 10) + 1);
	snprintf(claim, sizeof(claim), "7 %s", term);
	snprintf(field, sizeof(field), "claim:%s", name);
	snprintf(ttl, sizeof(ttl), "%" PRIu64, t->lease_ms);
	return ask(&h->admin, "HSET", key(h, "lease:", "0123456789abcdef-1-1"), "owner",
		   "somebody-else", "address", "", field, claim) &&
	       ask(&h->admin, "PEXPIRE", key(h, "lease:", "0123456789abcdef-1-1"), ttl) &&
	       ask(&h->admin, "HSET", key(h, "election:", name), "term", term, "nonce", "7",
		   "lease", "0123456789abcdef-1-1");
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	struct hand *h = hand_of(t);
	char lease[128];

	if (!ask(&h->admin, "HGET", key(h, "election:", name), "lease"))
		return false;
	snprintf(lease, sizeof(lease), "%.100s", reply);
	switch (way) {
	case WAY_DELETED: return ask(&h->admin, "DEL", key(h, "election:", name));
	case WAY_OVERWRITTEN: return overwrite(t, h, name);
	case WAY_SESSION: return ask(&h->admin, "DEL", key(h, "lease:", lease));
	case WAY_EXPIRED: return ask(&h->admin, "PEXPIRE", key(h, "lease:", lease), "1");
	default: return false;
	}
}

static bool unlock(struct testcase *t, const char *name)
{
	struct hand *h = hand_of(t);

	return ask(&h->admin, "HDEL", key(h, "election:", name), "lease");
}

/* ---- faults ---- */

static bool forget(struct testcase *t)
{
	return forget_keys(hand_of(t));
}

static bool deny(struct testcase *t, bool is_denied)
{
	struct hand *h = hand_of(t);

	if (!is_denied)
		return allow(h);
	return ask(&h->admin, "ACL", "SETUSER", h->label, "-@all");
}

static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct hand *h = hand_of(t);
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, term);
	return ask(&h->admin, "HSET", key(h, "election:", name), "term", text);
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct hand *h = hand_of(t);
	const char *wanted = key(h, "election:", name);
	int n = 0;

	if (strlen(name) != length || !ask(&h->admin, "KEYS", key(h, "election:", "*")))
		return -1;
	for (char *at = reply, *end; at != NULL && *at != '\0'; at = end) {
		end = strchr(at, '\n');
		if (end != NULL)
			*end++ = '\0';
		n += strcmp(at, wanted) == 0;
	}
	return n;
}

#define BACKEND(name)                                                                             \
	.scheme = (name), .has_processes = true, .has_network = true, .pushes = true,             \
	.shares_leases = true, .keeps_history = true, .is_durable = true, .place = place,         \
	.leave = leave, .clean = clean, .pulse = pulse, .destroy = destroy,                       \
	.ways = {[WAY_DELETED] = true,                                                            \
		 [WAY_OVERWRITTEN] = true,                                                        \
		 [WAY_SESSION] = true,                                                            \
		 [WAY_EXPIRED] = true},                                                           \
	.unlock = unlock, .down = proxy_down, .hole = proxy_hole, .forget = forget, .deny = deny, \
	.set_term = set_term, .count_name = count_name
#define AWARE .fail = proxy_fail, .mute = proxy_mute, .late = proxy_late, .calls = proxy_calls

const struct backend backend_redis = {BACKEND("redis"), AWARE};
const struct backend backend_redis_sentinel = {BACKEND("redis+sentinel"), AWARE};
const struct backend backend_redis_cluster = {BACKEND("redis+cluster"), AWARE};
/* Calls that are encrypted can't be told apart: see not-applicable.txt. The lease leaves a busy
 * machine time to shake 150 hands at once. */
const struct backend backend_redis_tls = {BACKEND("rediss"), .lease_ms = 3000};
