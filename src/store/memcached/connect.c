/*
 * connect.c: a connection to memcached, and its text protocol. See memcached.h. All sizes and waits
 * are bounded. A connection that fails in the middle is closed, so that a late reply is never taken
 * for the next one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/memcached/memcached.h"
#include "store/net.h"

#define LINE_MAX_SIZE 4096
#define IN_MAX ((size_t)4 << 20)
#define CHUNK 16384

void memcached_disconnect(struct memcached_lane *l)
{
	net_close(&l->net);
	bytes_clear(&l->in);
	l->used = 0;
}

/* The connection's error becomes the call's error. Returns false always. */
static bool connection_lost(struct memcached_lane *l)
{
	(void)store_fail_net(&l->call->error, &l->net);
	if (l->net.why == NET_LATE)
		l->call->error.code = BATON_E_TIMEOUT;
	memcached_disconnect(l);
	return false;
}

bool memcached_send(struct memcached_lane *l)
{
	l->net.has_sent = false;
	if (l->out.has_failed) {
		(void)store_fail(&l->call->error, BATON_E_MEMORY, "no memory for a request");
		return false;
	}
	return net_send(&l->net, l->out.at, l->out.n) == 0 || connection_lost(l);
}

/* ---- replies ---- */

static bool read_more(struct memcached_lane *l)
{
	char chunk[CHUNK];
	size_t got;
	int rc = net_receive(&l->net, chunk, sizeof(chunk), &got);

	if (rc != 0) {
		(void)net_fail_nothing(&l->net, rc, "wait for a reply");
		return connection_lost(l);
	}
	if (bytes_add(&l->in, chunk, got, IN_MAX))
		return true;
	(void)store_fail(&l->call->error, BATON_E_CORRUPT,
			 "the answer is longer than memcached's are; another program may listen "
			 "at this address");
	memcached_disconnect(l);
	return false;
}

/* Removes what was taken already, to make room for what comes. */
static void read_compact(struct memcached_lane *l)
{
	if (l->used < l->in.n && l->used < IN_MAX / 4)
		return;
	l->in.n -= l->used;
	if (l->in.at != NULL)
		(void)memmove(l->in.at, l->in.at + l->used, l->in.n);
	l->used = 0;
}

static bool reply_strange(struct memcached_lane *l)
{
	(void)store_fail(&l->call->error, BATON_E_CORRUPT,
			 "the answer is not one of memcached's; another program may listen at this "
			 "address");
	memcached_disconnect(l);
	return false;
}

bool memcached_read(struct memcached_lane *l, struct memcached_reply *r)
{
	read_compact(l);
	for (;;) {
		size_t left = l->in.n - l->used;
		char *line = left > 0 ? l->in.at + l->used : NULL;
		char *end = left > 0 ? memchr(line, '\n', left) : NULL;
		size_t size = end != NULL ? (size_t)(end - line) + 1 : 0;

		if ((end == NULL && left > LINE_MAX_SIZE) || size == 1 || size > LINE_MAX_SIZE)
			return reply_strange(l);
		if (end != NULL && end[-1] != '\r')
			return reply_strange(l);
		bool has_value = size > 3 && memcmp(line, "VA ", 3) == 0;
		unsigned long n = has_value ? strtoul(line + 3, NULL, 10) : 0;

		if (n > 2 * MEMCACHED_VALUE_MAX)
			return reply_strange(l);
		if (end != NULL && left >= size + (has_value ? n + 2 : 0)) {
			end[-1] = '\0';
			*r = (struct memcached_reply){.line = line, .value = end + 1, .n = n};
			l->used += size + (has_value ? n + 2 : 0);
			return true;
		}
		if (!read_more(l))
			return false;
	}
}

bool memcached_is(const struct memcached_reply *r, const char *word)
{
	size_t n = strlen(word);

	return strncmp(r->line, word, n) == 0 && (r->line[n] == '\0' || r->line[n] == ' ');
}

uint64_t memcached_flag(const struct memcached_reply *r, char flag)
{
	for (const char *at = strchr(r->line, ' '); at != NULL; at = strchr(at + 1, ' '))
		if (at[1] == flag)
			return strtoull(at + 2, NULL, 10);
	return 0;
}

int memcached_refuse(struct memcached_lane *l, const struct memcached_reply *r)
{
	struct baton_error *err = &l->call->error;

	if (strstr(r->line, "out of memory") != NULL)
		(void)store_fail(err, BATON_E_UNAVAILABLE, "%s", MEMCACHED_NO_ROOM);
	else if (strstr(r->line, "too large") != NULL)
		(void)store_fail(err, BATON_E_UNAVAILABLE,
				 "a record is too large for this memcached: let items be larger "
				 "(-I 1m)");
	else if (strstr(r->line, "unauthenticated") != NULL ||
		 strstr(r->line, "authentication failure") != NULL)
		(void)store_fail(
			err, BATON_E_DENIED, "memcached refuses us: %s",
			l->store->options.user[0] != '\0'
				? "wrong user or password"
				: "it wants a user and a password (user@, password_file=)");
	else if (memcached_is(r, "HD") || memcached_is(r, "VA")) /* without a version */
		(void)store_fail(err, BATON_E_UNSUPPORTED,
				 "this memcached has no compare-and-set: start it without -C");
	else
		(void)store_fail(err, BATON_E_CORRUPT, "memcached answers \"%.100s\"", r->line);
	if (!memcached_is(r, "SERVER_ERROR"))
		memcached_disconnect(l); /* the server may take what follows for something else */
	return err->code;
}

/* ---- what the server tells of itself ---- */

static bool stat_is(const char *line, const char *name, const char **value)
{
	size_t n = strlen(name);

	*value = line + 5 + n + 1;
	return strncmp(line, "STAT ", 5) == 0 && strncmp(line + 5, name, n) == 0 &&
	       line[5 + n] == ' ';
}

static void stats_note(struct memcached_stats *s, const char *line)
{
	const struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {
		{"pid", &s->pid},
		{"time", &s->time_s},
		{"uptime", &s->uptime_s},
		{"cmd_flush", &s->flushes},
		{"evictions", &s->evictions},
		{"store_no_memory", &s->no_room},
		{"store_too_large", &s->too_large},
		{"curr_connections", &s->connections},
		{"max_connections", &s->connections_max},
		{"bytes", &s->bytes},
		{"limit_maxbytes", &s->bytes_max},
	};
	const char *value;

	if (stat_is(line, "evictions", &value) && strncmp(value, "o", 1) == 0) {
		s->evicts = strcmp(value, "on") == 0; /* a setting */
		return;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (stat_is(line, numbers[i].name, &value))
			*numbers[i].number = strtoull(value, NULL, 10);
	if (stat_is(line, "version", &value))
		(void)snprintf(s->version, sizeof(s->version), "%.30s", value);
	if (stat_is(line, "cas_enabled", &value))
		s->has_cas = strcmp(value, "yes") == 0;
}

bool memcached_read_stats(struct memcached_lane *l, struct memcached_stats *stats)
{
	struct memcached_reply r;

	for (;;) {
		if (!memcached_read(l, &r))
			return false;
		if (memcached_is(&r, "END")) {
			/* A server that has just started says two seconds already. */
			stats->uptime_s -= stats->uptime_s < 2 ? stats->uptime_s : 2;
			return true;
		}
		if (!memcached_is(&r, "STAT")) {
			(void)memcached_refuse(l, &r);
			memcached_disconnect(l);
			return false;
		}
		stats_note(stats, r.line);
	}
}

uint64_t memcached_losses(const struct memcached_stats *stats)
{
	return stats->flushes + stats->evictions + stats->no_room + stats->too_large;
}

uint64_t memcached_now_ms(const struct memcached_lane *l)
{
	return (clock_boot_ns() + l->start_ns) / CLOCK_NS_PER_MS;
}

/* ---- connecting ---- */

/* A login is a `set` with user and password as its value, before anything else. */
static bool greeting_put_login(struct memcached_lane *l)
{
	const struct memcached_options *o = &l->store->options;
	char password[MEMCACHED_TEXT_MAX];
	char reason[SECRET_REASON_MAX];

	(void)snprintf(password, sizeof(password), "%s", o->password);
	if (o->password_file[0] != '\0' &&
	    secret_read(o->password_file, password, sizeof(password), reason) != 0) {
		(void)store_fail(&l->call->error, BATON_E_DENIED, "%s", reason);
		return false;
	}
	bytes_print(&l->out, "set baton 0 0 %zu\r\n%s %s\r\n",
		    strlen(o->user) + 1 + strlen(password), o->user, password);
	explicit_bzero(password, sizeof(password));
	return true;
}

/* Notes the server's run and clock. The server tells whole seconds, so its clock may be up to a
 * second ahead of what is noted. */
static bool greeting_note(struct memcached_lane *l, const struct memcached_stats *s)
{
	uint64_t version = 0;
	char *at;

	/* 1.6.18 becomes 1006018. A part that isn't a number counts as 0, so that the version is
	 * too old. */
	at = (char *)(uintptr_t)s->version;
	for (int i = 0; i < 3; i++, at += *at == '.')
		version = version * 1000 + strtoul(at, &at, 10);
	if (version < 1006018) {
		(void)store_fail(&l->call->error, BATON_E_UNSUPPORTED,
				 "memcached %s is too old: baton needs 1.6.18 or later",
				 s->version);
		return false;
	}
	l->run = (s->time_s - s->uptime_s) ^ s->pid << 40;
	l->start_ns = s->time_s * CLOCK_NS_PER_S - clock_boot_ns();
	return true;
}

static int greeting_talk(void *arg)
{
	struct memcached_lane *l = arg;
	struct memcached_stats stats = {0};
	struct memcached_reply r;
	bool logs_in = l->store->options.user[0] != '\0';

	l->call->error.code = 0;
	bytes_clear(&l->in);
	l->used = 0;
	bytes_clear(&l->out);
	if (logs_in && !greeting_put_login(l))
		return -1;
	bytes_print(&l->out, "stats\r\n");
	bool is_ok = memcached_send(l);

	if (logs_in && l->out.at != NULL)
		explicit_bzero(l->out.at, l->out.n);
	if (is_ok && logs_in && (is_ok = memcached_read(l, &r)) && !memcached_is(&r, "STORED")) {
		(void)memcached_refuse(l, &r);
		is_ok = false;
	}
	is_ok = is_ok && memcached_read_stats(l, &stats) && greeting_note(l, &stats);
	if (is_ok)
		return 0;
	int code = l->call->error.code;

	memcached_disconnect(l);
	return code == BATON_E_UNAVAILABLE || code == BATON_E_TIMEOUT ? NET_ELSEWHERE : -1;
}

bool memcached_connect(struct memcached_lane *l, struct baton_call *call)
{
	const struct memcached_options *o = &l->store->options;
	struct net_place place = {.host = o->host, .port = o->port, .tls = l->tls};

	l->call = call;
	l->net.deadline_ns = call->deadline_ns;
	if (net_is_sound(&l->net))
		return true;
	memcached_disconnect(l);
	place.name = o->files.server_name[0] != '\0' ? o->files.server_name : o->host;
	call->error.code = 0;
	if (net_reach(&l->net, &place, greeting_talk, l) == 0)
		return true;
	if (call->error.code == 0)
		(void)connection_lost(l);
	return false;
}

void memcached_key(const struct memcached_lane *l, const char *key, char out[MEMCACHED_KEY_ROOM])
{
	(void)snprintf(out, MEMCACHED_KEY_ROOM, "%s/%.*s", l->store->prefix, MEMCACHED_KEY_MAX,
		       key);
}
