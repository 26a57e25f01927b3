/*
 * web.h: what is shared by the drivers of services that speak HTTP, with JSON or gRPC.
 *
 *   store.c    the store: its members, and which of them is asked; its watch index and wake
 *              descriptor
 *   options.c  the part of a URL that these drivers share: members and TLS
 *   lease.c    the leases that this process has, and what the service calls them
 *   watch.c    the watch lane: waking it, what it watches, and listening to a stream
 *   campaign.c the result of a campaign
 *   observe.c  observing many elections, in batches
 *   watch_index.c  the watchers of each election, and what a driver keeps with it
 *   codec.c    claims, candidates and orders as they are written down: JSON
 *   history.c  past leaderships as one text
 *   past.c     past leaderships, each under keys of its own
 *
 * A driver's store begins with struct web_store, and its lanes with struct web_lane.
 */
#ifndef BATON_STORE_WEB_H
#define BATON_STORE_WEB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/url.h"
#include "base/web/http.h"
#include "base/web/json.h"
#include "baton-store.h"
#include "store/base.h"
#include "store/options.h"
#include "store/web/watch_index.h"

#pragma GCC visibility push(hidden)

#define WEB_HOSTS_MAX 16
#define WEB_PATH_MAX OPTION_PATH_MAX
#define WEB_VALUE_MAX 8192
#define WEB_ID_MAX 40

/* ---- options.c ---- */

struct web_options {
	struct http_host hosts[WEB_HOSTS_MAX];
	size_t n_hosts;
	bool tls;
	bool h2;           /* the members speak HTTP/2 */
	const char *probe; /* as in http.h */
	struct option_tls files;
};

/* Parses "host:port,host:port"; o->tls must be set already. False: no host, too many, or not valid
 * ones. */
bool web_parse_hosts(struct web_options *o, struct url_part list, const char *port);
/* The prefix is stored without the '/' at its end. */
bool web_set_prefix(const char *value, char *out, size_t size);
/* Beside a prefix PREFIX there are keys like PREFIX.candidate, in which baton keeps things of its
 * elections. So no prefix may end like these. 0, or -1 with a sentence. */
int web_check_prefix(const char *prefix, struct baton_error *err);

/* Whether nothing leaves this machine on the way to any member. */
bool web_is_local(const struct web_options *o);

/* ---- store.c ---- */

/* A lease that this process has opened, and what the service calls it. */
struct web_lease {
	struct web_lease *next;
	char id[BATON_LEASE_ID_MAX + 1]; /* the id that baton gives it */
	char name[WEB_ID_MAX];           /* what the service calls it: a name or a number */
	uint64_t number;
	uint64_t ttl_ns;   /* for drivers that ask web_longest_lease() */
	uint64_t era;      /* etcd: the raft term when it was opened, or an earlier one */
	uint64_t n_claims; /* for drivers that count claims */
	uint64_t index;    /* the service's index when n_claims was written */
};

struct web_store {
	struct store_base base;
	const struct web_options *options;
	struct web_index *watches;
	struct web_lease *leases; /* `lock` */
	int wake;                 /* an eventfd: ends a wait of the watch lane */
	atomic_uint turn;         /* the member that all lanes use; it moves on when one fails */
};

struct web_lane {
	struct store_lane base;
	struct web_store *store;
	struct http *http;
	struct bytes body; /* of the request that is being made */
	uint64_t prove_ns; /* when its member must have answered; see http.h */
	int kind;
	/* Of the watch lane: */
	unsigned stream;    /* the member that the lane listens to */
	uint64_t heard_ns;  /* when something was last heard, or asked */
	bool is_answered;   /* something was heard since the stream was opened */
	uint64_t rest_ns;   /* the stream is not opened again before this */
	unsigned n_hurried; /* openings in a row that were ended by a wake */
};

/* *s must be zero. Returns BATON_OK, or a code with a sentence. web_store_done() must be called in
 * both cases. note_size: as in watch_index.h. */
int web_store_init(struct web_store *s, const struct web_options *o, size_t note_size,
		   struct baton_error *err);
void web_store_done(struct web_store *s);
/* S10, in the child of fork(): the connections are the parent's. */
void web_store_forget(void *store);

/* 0, or -1: no memory. web_lane_done() must be called in both cases. body_max: as in http.h. */
int web_lane_init(struct web_lane *lane, struct web_store *s, int kind, size_t body_max,
		  struct baton_error *err);
void web_lane_done(struct web_lane *lane);

const struct http_host *web_host(const struct web_store *s, unsigned turn);
/* The next request may go to n_left members, one after the other. Each member has a share of the
 * time in which it must show that it answers. */
void web_share_time(struct web_lane *lane, size_t n_left, uint64_t deadline_ns);
/* Moves on to the next member, unless another lane has moved on from this one already. */
void web_move_on(struct web_store *s, unsigned turn);
/* Whether the other lanes have left the member that this lane's stream listens to. */
bool web_has_moved(const struct web_lane *lane);
/* The error code for a request that had no reply. */
int web_code_of(int http_result);
/* Begins a body. */
struct bytes *web_begin(struct web_lane *lane);

/* ---- watch.c ---- */

/* How to watch a service whose watch is one stream at a time. */
struct web_watch {
	const char *service; /* its name, in messages */
	uint64_t silence_ns; /* after this much silence it counts as broken */
	uint64_t answer_ns;  /* the same before the first answer; 0: silence_ns */
	/* Silence may be normal, but can't be told from a fault. So the stream is opened again, and
	 * goes on where it was. */
	bool may_be_silent;
	/* Opens a stream: 0 or -1. */
	int (*open)(void *lane, struct baton_call *call);
	/* Takes what the service has sent. 0, or -1: the stream is over. */
	int (*hear)(void *lane, struct baton_call *call, const struct http_reply *reply);
	/* The service has ended the stream properly: fills in call->error. NULL: the service never
	 * says why. */
	void (*ended)(void *lane, struct baton_call *call, const struct http_reply *reply);
	/* The stream is over, or must end: calls web_watch_break(), and forgets what the driver
	 * kept of it. */
	void (*lost)(void *lane);
};

/* For a driver's watch_wait(). */
int web_watch_wait(struct web_lane *lane, const struct web_watch *w, struct baton_call *call,
		   uint64_t *cookies, size_t max);
/* Closes the stream. All names get a hint when there is a stream again. */
void web_watch_break(struct web_lane *lane);
/* Whether we would hear of a change: the watch is live, and we have a lease, whose renewals show
 * that the service still answers. A candidate without a lease only observes, and has to look now
 * and then. */
bool web_is_watched(struct web_store *s, const char *name);
/* Takes the wake of the watch lane; false: nothing woke it. */
bool web_take_wake(const struct web_store *s);
void web_wake(const struct web_store *s);
void web_watch_wake(void *lane);
int web_watch_add(void *lane, const char *name, uint64_t cookie);
void web_watch_remove(void *lane, const char *name, uint64_t cookie);

/* ---- campaign.c ---- */

/* The result of a campaign that wasn't carried out. */
void web_campaign_set(struct baton_campaign *c, int outcome, int code);
/* The campaign's lease is gone: it is worth another try soon, on another lease. */
void web_campaign_without_lease(struct baton_campaign *c);

/* ---- observe.c ---- */

/* Observes a batch. Returns OK if each one's outcome is set in the list; else the outcome for
 * all. */
typedef int web_observe_part(void *lane, struct baton_call *call, struct baton_observation *list,
			     size_t n);
/* For a driver's observe(): calls `part` for at most `chunk` observations at a time. */
void web_observe(web_observe_part *part, size_t chunk, void *lane, struct baton_call *call,
		 struct baton_observation *list, size_t n);

/* ---- lease.c ---- */

/* What is known of a lease of ours; false: we have no lease with that id. */
bool web_lease_get(struct web_store *s, const char *id, struct web_lease *out);
/* Whether we have a lease that the service calls by that number and that name. */
bool web_lease_is_ours(struct web_store *s, uint64_t number, const char *name);
/* Takes out the lease with the same "who-which", which is the id up to its last '-'. False: we have
 * no such lease. */
bool web_lease_take_older(struct web_store *s, const char *id, struct web_lease *out);
/* False: no memory. */
bool web_lease_note(struct web_store *s, const struct web_lease *lease);
/* Notes how many claims the lease carries, as was written at that index; ignored if we know
 * something newer. */
void web_lease_count(struct web_store *s, const char *id, uint64_t n_claims, uint64_t index);
void web_lease_forget(struct web_store *s, const char *id);
/* The ttl of our longest lease; 0: we have none. */
uint64_t web_longest_lease(struct web_store *s);

/* ---- codec.c: the caller frees all texts; NULL: no memory ---- */

/* Escapes what would be taken for the end of a name, or for our own keys. out has room for three
 * bytes for each byte of the name. */
void web_encode_name(const char *name, char *out);

char *web_claim_text(const struct baton_lease *lease, uint64_t nonce, int64_t since_ms,
		     const struct baton_profile *profile);
/* Reads the holder of the claim. False: the claim isn't one of ours. */
bool web_claim_read(const char *value, struct baton_record *out);
/* The claim of another program, which may have written anything. If the value is not a valid name,
 * the leader is called `otherwise`. */
void web_claim_foreign(const char *value, const char *otherwise, struct baton_record *out);
/* Whether the claim shows this profile already. */
bool web_claim_shows(const struct baton_record *r, const struct baton_profile *p);

char *web_candidate_text(const struct baton_lease *lease, const struct baton_profile *p);
bool web_candidate_read(const char *value, struct baton_candidate *c);

/* ---- history.c ---- */

/* How many leaderships such a text has at most. */
#define WEB_HISTORY_MAX 20
/* The text with one leadership more; earlier ones are ended in it. foreign: the leadership of
 * another program just before, or NULL. The caller frees the result; NULL: no memory. */
char *web_history_begun(const char *text, const struct baton_leadership *foreign,
			const struct baton_leadership *begun);
/* The text with the end of the leadership of that term. */
char *web_history_ended(const char *text, uint64_t term, int64_t until_ms, const char *ended,
			const char *note);
/* Calls found() for each leadership. is_led: the newest one still lasts, unless its end is written
 * there. foreign: the leadership of another program that leads now, or NULL. */
void web_history_tell(const char *text, const struct baton_leadership *foreign, bool is_led,
		      size_t max,
		      void (*found)(void *arg, const struct baton_leadership *leadership),
		      void *arg);

/* ---- past.c: for stores where each leadership has keys of its own, below "NAME/" ---- */

/* At least this many leaderships are kept. */
#define WEB_PAST_KEPT 20
#define WEB_PAST_ID_MAX 63

/* Notes the present leader, for web_index_get_foreign(). */
void web_past_saw(struct web_store *s, const char *name, const struct baton_record *now,
		  bool is_foreign);

/* The value of the key "NAME/ID", which is written with a claim. The term is the sum of native and
 * offset; native = 0: it follows from when the key was made. before: the leadership of another
 * program just before, or NULL. The caller frees the result; NULL: no memory. */
char *web_past_begun(uint64_t native, uint64_t offset, const char *leader,
		     const struct baton_leadership *before);
/* The value of the key "NAME/ID.end", which is written with the release. The value of
 * "NAME/ID.note" is the note of an order. */
char *web_past_ended(const struct baton_release *r);

struct web_past {
	char id[WEB_PAST_ID_MAX + 1];
	bool is_foreign; /* not `id`'s own leadership, but one that it has told of */
	struct baton_leadership h;
};

/* All zeros at first. The caller frees `at`. */
struct web_past_list {
	struct web_past *at;
	size_t n;
	size_t room;
	bool has_failed; /* no memory */
};

struct web_past_key {
	const char *key;
	const char *service;
	uint64_t made;   /* when the key was made, by the service's count of writes */
	uint64_t native; /* the term without offset that follows from that */
};

/* Takes one more key. Keys must come in the order of their names. */
void web_past_read(struct web_past_list *list, const struct web_past_key *key, const char *value);
/* To call when all keys are taken: sorts, the newest first, and removes doubles. */
void web_past_sort(struct web_past_list *list);
/* Calls found() for each leadership. now: the present leader. */
void web_past_tell(struct web_past_list *list, const struct baton_record *now, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
/* Whether that key belongs to a leadership that is kept. */
bool web_past_is_kept(const struct web_past_list *list, const char *key);

json_t *web_order_make(const struct baton_order *order);
/* Reads an order, if it is for out->term (rule 10). */
void web_order_read(const json_t *order, struct baton_record *out);
json_t *web_reserve_make(const struct baton_release *r);

typedef int web_candidates(void *lane, struct baton_call *call, const char *name,
			   void (*found)(void *arg, const struct baton_candidate *candidate),
			   void *arg);
/* If there is an order to hand over: finds out whether its target is there, and healthy. Returns an
 * outcome. */
int web_check_target(web_candidates *candidates, void *lane, struct baton_call *call,
		     struct baton_observation *o);

#pragma GCC visibility pop

#endif
