/*
 * web.h: what the drivers share whose stores are services that speak HTTP, and JSON or gRPC.
 *
 *   store.c    the store: its members, and which of them is asked; who watches what; its wake
 *              descriptor
 *   options.c  the part of a URL that is the same for all: members and TLS
 *   lease.c    the leases that this process has, and what the service calls them
 *   watch.c    the watch lane: waking it, what it is for, and listening to a stream
 *   campaign.c what has become of a campaign
 *   observe.c  observing many elections, some at a time
 *   watch_index.c  who watches which election, and what a driver knows of it
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
	bool h2;           /* they speak HTTP/2 */
	const char *probe; /* as in http.h */
	struct option_tls files;
};

/* "host:port,host:port"; tls is set. False: none, too many, or no names. */
bool web_parse_hosts(struct web_options *o, struct url_part list, const char *port);
/* What is added to is without a '/' at its end. */
bool web_set_prefix(const char *value, char *out, size_t size);
/* Beside a prefix there is what baton keeps for its elections: no prefix may look like that. 0, or
 * -1 with the sentence. */
int web_check_prefix(const char *prefix, struct baton_error *err);

/* Nothing leaves this machine on the way to any of them. */
bool web_is_local(const struct web_options *o);

/* ---- store.c ---- */

/* A lease that this process has opened, and what the service calls it. */
struct web_lease {
	struct web_lease *next;
	char id[BATON_LEASE_ID_MAX + 1]; /* as baton calls it */
	char name[WEB_ID_MAX];           /* as the service does: one of these two */
	uint64_t number;
	uint64_t ttl_ns;   /* for those who ask web_longest_lease() */
	uint64_t era;      /* of the service's own leader, not later than when it was opened */
	uint64_t n_claims; /* for those who count */
	uint64_t index;    /* when that was written */
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
	struct bytes body; /* of the request that is made */
	uint64_t prove_ns; /* ... by when its member has to answer; see http.h */
	int kind;
	/* Of the watch lane: */
	unsigned stream;    /* the member that it listens to */
	uint64_t heard_ns;  /* when something was heard, or asked */
	bool is_answered;   /* something was, since it was opened */
	uint64_t rest_ns;   /* not before then is it opened again */
	unsigned n_hurried; /* openings in a row that somebody's wake has ended */
};

/* In memory that is zeroed: BATON_OK or a code with the sentence. Done after either. note_size: as
 * in watch_index.h. */
int web_store_init(struct web_store *s, const struct web_options *o, size_t note_size,
		   struct baton_error *err);
void web_store_done(struct web_store *s);
/* S10: in the child. The connections are the parent's. */
void web_store_forget(void *store);

/* 0 or -1: no memory; done after either. body_max: as in http.h. */
int web_lane_init(struct web_lane *lane, struct web_store *s, int kind, size_t body_max,
		  struct baton_error *err);
void web_lane_done(struct web_lane *lane);

const struct http_host *web_host(const struct web_store *s, unsigned turn);
/* The next request may go to so many members, one after the other: each has a share of the time to
 * show that it answers. */
void web_share_time(struct web_lane *lane, size_t n_left, uint64_t deadline_ns);
/* Another member, unless somebody has moved on from this one already. */
void web_move_on(struct web_store *s, unsigned turn);
/* The others have left the member that this lane's stream listens to. */
bool web_has_moved(const struct web_lane *lane);
/* Of a request that had no reply: the code for it. */
int web_code_of(int http_result);
/* Begins a body. */
struct bytes *web_begin(struct web_lane *lane);

/* ---- watch.c ---- */

/* How the watch of a service goes, where one stream at a time is all of it. */
struct web_watch {
	const char *service; /* its name, in messages */
	uint64_t silence_ns; /* after so much of it the stream is broken */
	uint64_t answer_ns;  /* the same until it says something for the first time; 0: no less */
	/* Silence is no fault, but can't be told from one: it is opened again, and goes on where
	 * it was. */
	bool may_be_silent;
	/* Opens a stream: 0 or -1. */
	int (*open)(void *lane, struct baton_call *call);
	/* Takes what was said: 0, or -1: it is over. */
	int (*hear)(void *lane, struct baton_call *call, const struct http_reply *reply);
	/* The service has ended it, properly: fills call->error. NULL: it never says why. */
	void (*ended)(void *lane, struct baton_call *call, const struct http_reply *reply);
	/* It is over, or to be over: web_watch_break(), and what there is to forget. */
	void (*lost)(void *lane);
};

/* watch_wait() of a driver. */
int web_watch_wait(struct web_lane *lane, const struct web_watch *w, struct baton_call *call,
		   uint64_t *cookies, size_t max);
/* Closes the stream; all are hinted at when there is one again. */
void web_watch_break(struct web_lane *lane);
/* Whether a change would be heard of: it is listened for, and a lease shows that somebody speaks. A
 * candidate without a lease, which only observes, has to look now and then. */
bool web_is_watched(struct web_store *s, const char *name);
/* Takes what woke the watch lane; false: nothing did. */
bool web_take_wake(const struct web_store *s);
void web_wake(const struct web_store *s);
void web_watch_wake(void *lane);
int web_watch_add(void *lane, const char *name, uint64_t cookie);
void web_watch_remove(void *lane, const char *name, uint64_t cookie);

/* ---- campaign.c ---- */

/* What a campaign that wasn't carried out has come to. */
void web_campaign_set(struct baton_campaign *c, int outcome, int code);
/* Its lease is gone: worth another try, soon, on another one. */
void web_campaign_without_lease(struct baton_campaign *c);

/* ---- observe.c ---- */

/* An outcome for all of them; those of its list are set where that is OK. */
typedef int web_observe_part(void *lane, struct baton_call *call, struct baton_observation *list,
			     size_t n);
/* observe() of a driver: so many at a time. */
void web_observe(web_observe_part *part, size_t chunk, void *lane, struct baton_call *call,
		 struct baton_observation *list, size_t n);

/* ---- lease.c ---- */

/* What is known of it; false: we have none such. */
bool web_lease_get(struct web_store *s, const char *id, struct web_lease *out);
/* One that the service calls by that number, or by that name. */
bool web_lease_is_ours(struct web_store *s, uint64_t number, const char *name);
/* The one with the same "who-which", the id up to its last '-': taken out. False: none. */
bool web_lease_take_older(struct web_store *s, const char *id, struct web_lease *out);
/* False: no memory. */
bool web_lease_note(struct web_store *s, const struct web_lease *lease);
/* How many claims it carries, by something that was written at that index; not if we know newer. */
void web_lease_count(struct web_store *s, const char *id, uint64_t n_claims, uint64_t index);
void web_lease_forget(struct web_store *s, const char *id);
/* The longest that we have; 0: none. */
uint64_t web_longest_lease(struct web_store *s);

/* ---- codec.c: all texts are to be freed; NULL: no memory ---- */

/* What would be taken for the end of a name, or for our own keys, is written otherwise. out has
 * room for three bytes for each of the name. */
void web_encode_name(const char *name, char *out);

char *web_claim_text(const struct baton_lease *lease, uint64_t nonce, int64_t since_ms,
		     const struct baton_profile *profile);
/* Who has the claim. False: it isn't one of ours. */
bool web_claim_read(const char *value, struct baton_record *out);
/* A claim of another program, which may write anything; `otherwise` if that is not a valid name. */
void web_claim_foreign(const char *value, const char *otherwise, struct baton_record *out);
/* The claim shows this profile already. */
bool web_claim_shows(const struct baton_record *r, const struct baton_profile *p);

char *web_candidate_text(const struct baton_lease *lease, const struct baton_profile *p);
bool web_candidate_read(const char *value, struct baton_candidate *c);

/* ---- history.c ---- */

/* Leaderships that such a text has, at most. */
#define WEB_HISTORY_MAX 20
/* The text with a leadership more, and the ones before it ended; foreign: who led without us before
 * it, or NULL. To be freed; NULL: no memory. */
char *web_history_begun(const char *text, const struct baton_leadership *foreign,
			const struct baton_leadership *begun);
/* The same with the end of the leadership of that term. */
char *web_history_ended(const char *text, uint64_t term, int64_t until_ms, const char *ended,
			const char *note);
/* Calls found() for each; is_led: the newest lasts, unless its end is there. foreign: who leads
 * without us, or NULL. */
void web_history_tell(const char *text, const struct baton_leadership *foreign, bool is_led,
		      size_t max,
		      void (*found)(void *arg, const struct baton_leadership *leadership),
		      void *arg);

/* ---- past.c: where a leadership has keys of its own, in a place "NAME/" ---- */

/* Of them, so many are kept at least. */
#define WEB_PAST_KEPT 20
#define WEB_PAST_ID_MAX 63

/* Who leads now, for web_index_get_foreign(). */
void web_past_saw(struct web_store *s, const char *name, const struct baton_record *now,
		  bool is_foreign);

/* The value of the key "NAME/ID", written with a claim. The term is native and offset; native 0: it
 * follows from when the key was made. before: who of another program has led before it, or NULL. To
 * be freed; NULL: no memory. */
char *web_past_begun(uint64_t native, uint64_t offset, const char *leader,
		     const struct baton_leadership *before);
/* That of "NAME/ID.end", written with its release. An order's note is that of "NAME/ID.note". */
char *web_past_ended(const struct baton_release *r);

struct web_past {
	char id[WEB_PAST_ID_MAX + 1];
	bool is_foreign; /* told by the one whose id it has */
	struct baton_leadership h;
};

/* All zeros at first; `at` is to be freed. */
struct web_past_list {
	struct web_past *at;
	size_t n;
	size_t room;
	bool has_failed; /* no memory */
};

struct web_past_key {
	const char *key;
	const char *service;
	uint64_t made;   /* when, by the service's count */
	uint64_t native; /* the term without offset that follows from that */
};

/* Takes one key more. They come in the order of their names. */
void web_past_read(struct web_past_list *list, const struct web_past_key *key, const char *value);
/* When all are taken: the newest first, each once. */
void web_past_sort(struct web_past_list *list);
/* Calls found() for each; now: who leads. */
void web_past_tell(struct web_past_list *list, const struct baton_record *now, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
/* Whether that key belongs to one of those that are kept. */
bool web_past_is_kept(const struct web_past_list *list, const char *key);

json_t *web_order_make(const struct baton_order *order);
/* Only if it is for out->term (rule 10). */
void web_order_read(const json_t *order, struct baton_record *out);
json_t *web_reserve_make(const struct baton_release *r);

typedef int web_candidates(void *lane, struct baton_call *call, const char *name,
			   void (*found)(void *arg, const struct baton_candidate *candidate),
			   void *arg);
/* Whether the candidate that a leader is to hand over to is there: asked only then. An outcome. */
int web_check_target(web_candidates *candidates, void *lane, struct baton_call *call,
		     struct baton_observation *o);

#pragma GCC visibility pop

#endif
