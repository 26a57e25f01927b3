/*
 * mongodb.h: records as documents of MongoDB. This header has what the files of this adapter share.
 *
 *   options.c   the URL
 *   srv.c       mongodb+srv://: finds the servers
 *   stream.c    the sockets of libmongoc, with our deadlines
 *   connect.c   a client of libmongoc, and one command on it
 *   adapter.c   the verbs of store/record/adapter.h
 *   watch.c     change streams
 *   doctor.c    examines the server
 *
 * One collection, "baton" unless the URL names another, in the database of the URL:
 *
 *   _id   the prefix, '/', the record's key
 *   w     the record's version, from its value. Reads may show writes that are rolled back later,
 *         so no counter can be a version
 *   v     the record's value
 *   at    when the record was written, by the server's clock as far as we know it; for people
 *
 * Many compare-and-sets are one `update` with a statement {_id, w} for each. Its answer says how
 * many statements have matched. If all or none have, that is the verdict. Else one read of the
 * records decides. A record that has our `w` was written. If there are as many of these as have
 * matched, the others were not written. If there are fewer, another write has followed one of ours,
 * and the others are UNKNOWN.
 *
 * libmongoc finds the servers and their primary, and logs in. It must never repeat a command, start
 * a thread, or wait on a socket of its own. So each lane has a client of its own, whose sockets are
 * ours. The client is thrown away with its connection.
 */
#ifndef BATON_MONGODB_H
#define BATON_MONGODB_H

#include <mongoc/mongoc.h>

#include "base/net/net.h"
#include "store/base.h"
#include "store/doctor.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define MONGODB_HOSTS_MAX 16
#define MONGODB_TEXT_MAX 256
#define MONGODB_KEY_MAX 240
#define MONGODB_VALUE_MAX ((uint32_t)1 << 20)

struct mongodb_options {
	struct option_login login;
	bool is_srv; /* the only host is a name to look the servers up by */
	char database[64];
	char collection[64];
	char replica_set[MONGODB_TEXT_MAX];
	char auth_source[64];
	char mechanism[32];
	bool is_direct;
	bool tls;
	bool has_tls; /* the URL says whether to use TLS */
	struct option_tls files;
	struct record_options *record; /* while the URL is read */
};

int mongodb_options_parse(struct mongodb_options *o, const char *text, struct baton_error *err);

struct mongodb_store {
	struct store_base base;
	struct mongodb_options options;
	char prefix[RECORD_PREFIX_MAX + 1];
	uint32_t poll_ms;
	bool is_polled; /* push=poll */
};

struct mongodb_stream;
struct mongodb_srv;

struct mongodb_lane {
	struct store_lane lane;
	struct mongodb_store *store;
	mongoc_client_t *client;        /* NULL: not connected */
	struct mongodb_stream *streams; /* the client's sockets */
	struct mongodb_srv *srv;        /* a lookup of the servers under way, also between calls */
	struct lookup *lookup;          /* a lookup of an address, likewise */
	size_t turn;                    /* which of a name's addresses answered last */
	uint64_t deadline_ns;           /* of the call under way; 0: nothing may be sent */
	bool has_sent;                  /* something was sent since the last command began */
	bool is_watching;               /* a watch is under way, and `wake` ends it */
	bool is_woken;
	int code; /* the server's last error */
	int why;  /* BATON_E_: why a socket has failed; 0: none has */
	char text[NET_TEXT_MAX];
	int64_t ahead_ms; /* how far the server's wall clock is ahead of our boot clock */
	bool is_set;      /* a replica set, or a sharded cluster of them */
	int64_t cursor;   /* of the change stream; 0: there is no stream */
};

/* How a command has ended. */
enum mongodb_end {
	MONGODB_DONE,
	MONGODB_REFUSED,  /* the server answered with an error: lane->code */
	MONGODB_UNSENT,   /* it was never sent */
	MONGODB_NO_ANSWER /* it was sent; the result is unknown; the connection is given up */
};

/* stream.c: for mongoc_client_set_stream_initiator(), with the lane. */
mongoc_stream_t *mongodb_stream_open(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
				     void *arg, bson_error_t *error);
/* Closes the sockets, so that nothing more is sent on them. */
void mongodb_streams_cut(struct mongodb_lane *lane);
/* S10, in a child of fork(). */
void mongodb_streams_forget(struct mongodb_lane *lane);
/* Whether the server has closed an idle connection. */
bool mongodb_streams_are_sound(const struct mongodb_lane *lane);

/* srv.c: the servers of a mongodb+srv:// name. False: lane->text says why not. */
struct mongodb_servers {
	struct option_host hosts[MONGODB_HOSTS_MAX];
	size_t n_hosts;
	char replica_set[MONGODB_TEXT_MAX]; /* "": it names none */
	char auth_source[64];
};
bool mongodb_srv_find(struct mongodb_lane *lane, const char *name, struct mongodb_servers *out);
void mongodb_srv_cancel(struct mongodb_srv **under_way);

/* Connects if need be. False: call->error says why not. */
bool mongodb_connect(struct mongodb_lane *lane, struct baton_call *call);
void mongodb_disconnect(struct mongodb_lane *lane);
/* Sends one command, and receives its answer. The caller destroys the reply in any case. Returns
 * enum mongodb_end. */
int mongodb_run(struct mongodb_lane *lane, struct baton_call *call, const bson_t *command,
		bson_t *reply);
/* Whether this error code of the server means that a write was refused before it began. */
bool mongodb_is_harmless(int code);
/* The BATON_E_ code for an error code of the server. */
int mongodb_code(int code);
/* How many ms of the call's time are left for the server; at least 1. */
int32_t mongodb_left_ms(const struct baton_call *call);
/* Writes a record's _id, and returns its length. */
#define MONGODB_ID_MAX (RECORD_PREFIX_MAX + 1 + MONGODB_KEY_MAX + 1)
int mongodb_id(const struct mongodb_lane *lane, const char *key, char out[MONGODB_ID_MAX]);
/* The record's key in an _id; NULL: the document is not one of ours. */
const char *mongodb_key(const struct mongodb_lane *lane, const char *id);
/* Whether an answer has that field; *out then points to it. */
bool mongodb_has(const bson_t *doc, const char *dotted, bson_iter_t *out);

int mongodb_watch(void *lane, struct baton_call *call, record_changed *changed, void *arg);

int mongodb_examine(void *lane, struct baton_call *call,
		    void (*found)(void *arg, const struct baton_finding *finding), void *arg);

#pragma GCC visibility pop

#endif
