/*
 * memcached.h: records in one memcached server. This header has what the files of this adapter
 * share.
 *
 *   options.c   the URL
 *   connect.c   a connection, and commands and replies on it until a deadline
 *   adapter.c   the verbs of store/record/adapter.h
 *   index.c     an index of the keys, because memcached can't list them
 *   doctor.c    examines the server
 *
 * These keys are in the server, all below the prefix ("baton/"):
 *
 *   l/... e/... c/...   the records, written by compare-and-set (ms with C), and made by add (ms
 *                       ME). The client flags have the server's time of the write, in tenths of a
 *                       second
 *   x/KIND/SHARD        keys of one kind, one per line. A line is appended before its record is
 *                       made. It may stand there twice, and its record may not exist
 *   m                   the time since which nothing was lost, and how many losses (flush_all,
 *                       evictions, writes without room) the server had counted by then
 *
 * A cache is a weak store. It forgets everything at a restart, and anything by an eviction. So
 * terms follow its clock, and no claim is made until the longest lease has passed since the last
 * loss.
 * A version is the number that the server gives a write (cas) together with the server's run,
 * because the numbers begin again with each run. The adapter must never repeat a request by itself:
 * a request that was sent and has no answer is UNKNOWN.
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
/* The server's limit is 250 bytes. */
#define MEMCACHED_KEY_ROOM (MEMCACHED_PREFIX_MAX + 1 + MEMCACHED_KEY_MAX + 1)
#define MEMCACHED_VALUE_MAX ((uint32_t)1 << 19)
#define MEMCACHED_TEXT_MAX 256
#define MEMCACHED_NO_ROOM "memcached has no room for a record: give it more memory (-m)"

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
	struct net_tls *tls; /* NULL: without TLS */
	struct bytes out;
	struct bytes in;
	size_t used;         /* bytes of `in` that were taken already */
	struct bytes values; /* the text of index records */
	struct baton_call *call;
	uint64_t run;      /* the run of the server that the connection goes to */
	uint64_t start_ns; /* the server's clock minus ours at the greeting; it may wrap */
};

/* What the server tells of itself. */
struct memcached_stats {
	uint64_t pid;
	uint64_t time_s;
	uint64_t uptime_s;
	uint64_t flushes;
	uint64_t evictions;
	uint64_t no_room;   /* writes that found no memory */
	uint64_t too_large; /* writes of an item above the server's limit (-I) */
	uint64_t connections;
	uint64_t connections_max;
	uint64_t bytes;
	uint64_t bytes_max;
	bool evicts;  /* from `stats settings` */
	bool has_cas; /* from `stats settings` */
	char version[32];
};

/* One reply: a line without its end, and after VA a value. It is valid until the next reply is
 * read. */
struct memcached_reply {
	const char *line;
	const char *value;
	size_t n;
};

/* Connects if necessary. False: call->error says why not. */
bool memcached_connect(struct memcached_lane *l, struct baton_call *call);
void memcached_disconnect(struct memcached_lane *l);
/* memcached_send() sends lane->out, and memcached_read() reads the next reply. False: call->error
 * says why not, and the connection is given up. */
bool memcached_send(struct memcached_lane *l);
bool memcached_read(struct memcached_lane *l, struct memcached_reply *r);
/* Whether the line begins with that word: "HD", "NS", "EX" ... */
bool memcached_is(const struct memcached_reply *r, const char *word);
/* The number behind a flag, as in " c123"; 0: there is none. */
uint64_t memcached_flag(const struct memcached_reply *r, char flag);
/* For a reply that is an error: writes the sentence, and returns the code. If the reply doesn't fit
 * the request at all, the connection is given up. */
int memcached_refuse(struct memcached_lane *l, const struct memcached_reply *r);
/* Reads the replies to `stats`, up to their end. */
bool memcached_read_stats(struct memcached_lane *l, struct memcached_stats *stats);
/* How often the server may have lost a record since its start, a restart aside. A write that finds
 * no room, or is too large, is a loss: the server deletes the record that it was to replace. */
uint64_t memcached_losses(const struct memcached_stats *stats);
/* The server's clock in ms, counted on from the greeting. */
uint64_t memcached_now_ms(const struct memcached_lane *l);
/* Writes a key with the prefix. */
void memcached_key(const struct memcached_lane *l, const char *key, char out[MEMCACHED_KEY_ROOM]);

/* index.c. Notes the keys of records that are about to be made. False: call->error says why not. */
bool memcached_index_add(struct memcached_lane *l, const struct record_item *items, size_t n);
/* Takes out the keys of items that were dropped (OK). A key that can't be taken out does no
 * harm. */
void memcached_index_drop(struct memcached_lane *l, const struct record_item *items, size_t n);
/* All keys of a kind, each once. The array ends with NULL, and one free() frees all of it. NULL:
 * call->error says why not. */
char **memcached_index_list(struct memcached_lane *l, char kind);

int memcached_examine(void *lane, struct baton_call *call,
		      void (*found)(void *arg, const struct baton_finding *finding), void *arg);

#pragma GCC visibility pop

#endif
