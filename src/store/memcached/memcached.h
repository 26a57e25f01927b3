/*
 * memcached.h: records in one memcached server: what the files of this adapter share.
 *
 *   options.c   the URL
 *   connect.c   a connection, and the meta commands' text on it until a deadline
 *   adapter.c   the verbs of store/record/adapter.h
 *   index.c     which keys there are: memcached can't list them
 *   doctor.c    what the server is like
 *
 * In the server, all below the prefix ("baton/"):
 *
 *   l/... e/... c/...   the records, written by compare-and-set (ms with C), made by add (ms ME);
 *                       the client flags have the server's time of the write, in tenths of a
 *                       second
 *   x/KIND/SHARD        keys of one kind, a line each, appended before a record is made. A line may
 *                       stand twice, or be about a record that isn't there
 *   m                   since when nothing was lost: a time, and how many losses (flush_all,
 *                       evictions) the server had counted by then
 *
 * A cache is a weak store. It forgets all with a restart, and what it likes with an eviction. So
 * terms follow its clock, nobody claims until the longest lease is over since the last loss, and
 * a version is the number that the server gives a write (cas) together with which run of the server
 * it was: the numbers begin again with each. It must never repeat a request by itself: what was
 * sent and has no answer is UNKNOWN.
 */
#ifndef BATON_MEMCACHED_H
#define BATON_MEMCACHED_H

#include "base/net/net.h"
#include "store/base.h"
#include "store/doctor.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define MEMCACHED_KEY_MAX 200
#define MEMCACHED_PREFIX_MAX 40
/* Of 250 bytes. */
#define MEMCACHED_KEY_ROOM (MEMCACHED_PREFIX_MAX + 1 + MEMCACHED_KEY_MAX + 1)
#define MEMCACHED_VALUE_MAX ((uint32_t)1 << 19)
#define MEMCACHED_TEXT_MAX 256

struct memcached_options {
	char host[MEMCACHED_TEXT_MAX];
	char port[8];
	char user[MEMCACHED_TEXT_MAX];
	char password[MEMCACHED_TEXT_MAX];
	char password_file[OPTION_PATH_MAX];
	bool tls;
	bool is_known_weak; /* weak=ok */
	struct option_tls files;
	struct record_options *record; /* while the URL is read */
};

int memcached_options_parse(struct memcached_options *o, const char *text, struct baton_error *err);

struct memcached_store {
	struct store_base base;
	struct memcached_options options;
	struct baton_traits traits;
	char prefix[MEMCACHED_PREFIX_MAX + 1];
};

struct memcached_lane {
	struct store_lane lane;
	struct memcached_store *store;
	struct net net;
	struct net_tls *tls; /* NULL: plain */
	struct bytes out;
	struct bytes in;
	size_t used;         /* bytes of `in` that were read */
	struct bytes values; /* of shards */
	struct baton_call *call;
	uint64_t run;      /* which run of the server the connection goes to */
	uint64_t start_ns; /* server's clock minus ours, at the greeting; wraps */
};

/* What the server says of itself. */
struct memcached_stats {
	uint64_t pid;
	uint64_t time_s;
	uint64_t uptime_s;
	uint64_t flushes;
	uint64_t evictions;
	uint64_t connections;
	uint64_t connections_max;
	uint64_t bytes;
	uint64_t bytes_max;
	bool evicts;  /* of `stats settings` */
	bool has_cas; /* ... */
	char version[32];
};

/* One reply: a line without its end, and, behind VA, a value. Until the next one is read. */
struct memcached_reply {
	const char *line;
	const char *value;
	size_t n;
};

/* Connects if need be. False: call->error says why not. */
bool memcached_connect(struct memcached_lane *l, struct baton_call *call);
void memcached_disconnect(struct memcached_lane *l);
/* Sends lane->out. And: the next reply. False: call->error says why not, and the connection is
 * given up. */
bool memcached_send(struct memcached_lane *l);
bool memcached_read(struct memcached_lane *l, struct memcached_reply *r);
/* "HD", "NS", "EX" ...: what the line begins with. */
bool memcached_is(const struct memcached_reply *r, const char *word);
/* The number behind a flag: " c123"; 0: none. */
uint64_t memcached_flag(const struct memcached_reply *r, char flag);
/* The reply is an error: its sentence. The code. A reply that is no reply to what was asked ends
 * the connection. */
int memcached_refuse(struct memcached_lane *l, const struct memcached_reply *r);
/* Reads the replies to `stats`, up to its end. */
bool memcached_read_stats(struct memcached_lane *l, struct memcached_stats *stats);
/* The server's clock, as far as the greeting told it, in ms. */
uint64_t memcached_now_ms(const struct memcached_lane *l);
/* With the prefix. */
void memcached_key(const struct memcached_lane *l, const char *key, char out[MEMCACHED_KEY_ROOM]);

/* index.c. Notes keys that are about to be made. False: call->error says why not. */
bool memcached_index_add(struct memcached_lane *l, const struct record_item *items, size_t n);
/* Takes those out that were dropped (OK); what can't be taken out does no harm. */
void memcached_index_drop(struct memcached_lane *l, const struct record_item *items, size_t n);
/* All keys of a kind, each once, as an array that ends with NULL and is freed as one. NULL:
 * call->error says why not. */
char **memcached_index_list(struct memcached_lane *l, char kind);

int memcached_examine(void *lane, struct baton_call *call,
		      void (*found)(void *arg, const struct baton_finding *finding), void *arg);

#pragma GCC visibility pop

#endif
