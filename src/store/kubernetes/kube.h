/*
 * kube.h: the Kubernetes driver. This header has what its files share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL
 *   config.c   which API server, and how we trust it: the service account, or a kubeconfig
 *   yaml.c     a kubeconfig's text
 *   login.c    how we log in there: tokens that rotate
 *   exec.c     plugins that make such tokens
 *   call.c     requests, and what an answer means
 *   name.c     names of elections as names of objects
 *   object.c   a Lease object as we read and write it
 *   expiry.c   what was last seen of each Lease, and since when it is unchanged
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   lease.c    renewing; the process lease; claims
 *   observe.c  records
 *   candidates.c  candidates
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   presence.c a process's sign of life, and the pod's label
 *   watch.c    hints
 *   doctor.c   examines the API server
 *
 * An election is a Lease (coordination.k8s.io/v1) in one namespace. It has the fields that
 * client-go's leaderelection gives it: programs of both kinds contend in one election, and kubectl
 * shows who leads. Whatever such a record has no field for stands in annotations:
 *
 *   baton/term         the highest term. baton/transitions has the leaseTransitions that the term
 *                      was for: a leader of another program counts leaseTransitions up, and the
 *                      term grows by as much
 *   baton/claim        "LEASE NONCE TERM" of a claim of ours; the claim counts only as long as the
 *                      spec has the same transitions and holder
 *   baton/leader       how the leader shows itself
 *   baton/process      with process_lease=1: the process lease that the claim hangs on
 *   baton/order /paused /reserved
 *   baton/history      the last leaderships, the newest first; JSON
 *   baton/name         the election's name, where it can't be the object's
 *
 * Beside them there are "baton--c-..." (a candidate), "baton--p-..." (a process that is alive).
 *
 * No clock of another machine is asked whether a lease is over. A candidate takes over only when it
 * has itself seen the spec unchanged for as long as the record says, on its own clock (expiry.c).
 * It writes on condition that the object is the one that it has seen (resourceVersion).
 *
 * Lanes share struct kube_store: fields that change are read and written under its lock.
 */
#ifndef BATON_KUBE_H
#define BATON_KUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name_table.h"
#include "store/web/web.h"

#pragma GCC visibility push(hidden)

#define KUBE_TEXT_MAX 512
#define KUBE_SECRET_MAX 16384
#define KUBE_TIME_MAX 40
/* Of an object's name; a namespace or a label's value has at most 63 characters. */
#define KUBE_NAME_MAX 253
#define KUBE_PATH_MAX 1024
/* The longest duration that a Lease can have: a program that doesn't know process leases never
 * takes over the election of one. */
#define KUBE_FOREVER_S INT32_MAX
/* How often to try: what was known may have been old, and each try learns something newer. */
#define KUBE_ROUNDS 4

/* ---- options.c, config.c, yaml.c ---- */

struct kube_options {
	char space[64];                      /* the namespace; "": that of the context */
	char kubeconfig[KUBE_TEXT_MAX];      /* "": it is looked for */
	char context[KUBE_TEXT_MAX];         /* "": the current one */
	char service_account[KUBE_TEXT_MAX]; /* the folder */
	char pod[KUBE_NAME_MAX + 1];
	char pod_label[KUBE_NAME_MAX + 64 + 1]; /* "": none */
	bool process_lease;
};

/* BATON_OK, or a code, with a sentence in err. */
int kube_options_parse(struct kube_options *o, const char *text, struct baton_error *err);
bool kube_is_namespace(const char *text);

/* Where the API server is, and how we log in there. A text is "" if there is none. */
struct kube_config {
	struct http_host host;
	char prefix[KUBE_TEXT_MAX]; /* of all paths */
	char space[64];
	char source[KUBE_TEXT_MAX]; /* where this was found, for messages */
	char server_name[HTTP_NAME_MAX + 1];
	char ca[KUBE_TEXT_MAX], cert[KUBE_TEXT_MAX], key[KUBE_TEXT_MAX], token_file[KUBE_TEXT_MAX];
	char *ca_text, *cert_text, *key_text, *token; /* NULL: none */
	json_t *exec;                                 /* the plugin; NULL: none */
	char exec_folder[KUBE_TEXT_MAX];              /* which its command's path is relative to */
};

int kube_config_find(struct kube_config *c, const struct kube_options *o, struct baton_error *err);
void kube_config_done(struct kube_config *c);
/* The first document of a YAML file, with every scalar as a text. The caller gives it back with
 * json_decref(). NULL: `reason` says why. */
json_t *kube_yaml_read(const char *path, char reason[HTTP_TEXT_MAX]);

/* ---- the store and its lanes ---- */

struct kube_expiry;

/* What a lease was last used for, by the "who-which" of its id. `name` is the election that the
 * lease is for; for a process lease it is the lease's id. */
struct kube_use {
	struct kube_use *next;
	uint32_t n_held;   /* process lease: the claims on it, as far as we know */
	uint64_t doubt_ns; /* ... and until then a late one may still land */
	char who[BATON_LEASE_ID_MAX + 1];
	char lease_id[BATON_LEASE_ID_MAX + 1]; /* the last lease with this "who-which" */
	uint64_t left_ns;                      /* since when `name` is unwatched; 0: watched */
	char name[BATON_NAME_MAX + 1];
};

/* The sign of life of a process with candidates, for a store without process leases. */
struct kube_presence {
	char who[BATON_LEASE_ID_MAX + 1]; /* "": there is none yet */
	char owner[BATON_NAME_MAX + 1];
	uint64_t ttl_ns;
	uint64_t next_ns; /* when the next sign is due */
	void *shown;      /* the elections that show our candidates, by tsearch(3) */
};

/* The credential that an exec plugin has given us, and the plugin while it runs. */
struct kube_plugin {
	char *token, *cert_text, *key_text; /* NULL: none */
	bool is_known;
	uint64_t until_ns; /* when the next credential is asked for */
	uint64_t end_ns;   /* when this one ends */
	uint64_t retry_ns; /* the next one isn't asked for early before that */
	unsigned n_logins; /* the certificates so far: a new one needs new connections */
	bool is_busy;      /* a lane looks after the plugin */
	int pid;           /* 0: it doesn't run */
	int process;       /* its pidfd: once it has ended, another process may get its pid */
	int out;           /* its output */
	uint64_t started_ns;
	struct bytes said;
};

struct kube_store {
	struct web_store web;
	struct web_options server; /* the only one: the config's */
	struct kube_options options;
	struct kube_config config;
	/* Set once, and then stays: claims hang on process leases, so process leases are watched,
	 * too. */
	_Atomic bool has_process_claims;
	/* The watch is for one election only, and shows no process leases. */
	_Atomic bool is_narrow;
	/* The fields below change, under the lock: */
	struct name_table expiries; /* of struct kube_expiry */
	uint64_t ttl_ns;            /* how long our own leases are */
	uint64_t next_end_ns;       /* no lease that was seen ends before that */
	struct kube_use *uses;
	struct kube_presence presence;
	struct kube_plugin plugin;
	bool is_loss_reported;
	bool is_watch_down; /* the watch waits for a server that doesn't answer */
	uint64_t shown_rv;  /* the resourceVersion that the watch has reached */
	uint64_t owed_rv;   /* one that an answer has shown, and the watch has not ... */
	uint64_t owed_ns;   /* ... since then; 0: nothing */
	size_t n_led;       /* how many of `expiries` this process leads */
	int labelled;       /* our pod's label: 0 none yet, 1 leader, -1 standby */
};

struct kube_lane {
	struct web_lane web;
	struct kube_store *store;
	struct http *beat; /* watch lane: for requests beside its stream */
	unsigned n_logins; /* the plugin's n_logins when the connections were made */
	uint64_t label_ns; /* the pod's label isn't written before that */
	/* The watch lane's: */
	uint64_t retry_ns;             /* the watch isn't opened before that */
	bool is_down;                  /* ... unless another lane gets an answer */
	unsigned n_tries;              /* tries to open it since something was heard */
	unsigned n_woken;              /* looks in a row that a wake has ended */
	bool has_bookmarks;            /* the server sends some, so it is never silent for long */
	uint64_t patience_ns;          /* how far it may lag behind answers; 0: LAG_NS */
	uint64_t sweep_ns;             /* when to look for what dead processes have left behind */
	uint64_t rv;                   /* where the stream goes on; 0: it begins with a look */
	char only[BATON_NAME_MAX + 1]; /* the only name that is watched; "": the watch is for all */
};

/* ---- call.c ---- */

/* A request and its answer. The caller fills in the first part and frees body and answer. */
struct kube_call {
	const char *method;
	const char *type; /* of the body: KUBE_MERGE... */
	char path[KUBE_PATH_MAX];
	struct bytes body;
	bool is_read; /* it changes nothing: its outcome is never UNKNOWN */
	int outcome;  /* OK: `answer`. REFUSED: a status of 404, 409 or 422 */
	int code;
	int status;
	json_t *answer;
	uint64_t read_ns;  /* the boot clock when the answer had been read */
	int64_t server_ms; /* the server's wall clock, in whole seconds; 0: not told */
};

#define KUBE_JSON "application/json"
#define KUBE_MERGE "application/merge-patch+json"
#define KUBE_PATCH "application/json-patch+json"
#define KUBE_APPLY "application/apply-patch+yaml"

/* Carries out n calls, some at a time; true: all are OK. call->error has the last failure's
 * sentence. S9: a call whose body had no memory (body.has_failed) isn't sent, and is FAILED. */
bool kube_call_all(struct kube_lane *lane, struct baton_call *call, struct kube_call *list,
		   size_t n);
/* Carries out one call, and returns its outcome. */
int kube_call(struct kube_lane *lane, struct baton_call *call, struct kube_call *c);
void kube_call_done(struct kube_call *c);
/* Sets the call's path: "/apis/coordination.k8s.io/v1/namespaces/NS/leases", then "/OBJECT" unless
 * it is NULL, then the format's text. */
void kube_path(const struct kube_store *s, struct kube_call *c, const char *object,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The answer isn't one that an API server gives. */
int kube_strange(struct baton_call *call);
/* Begins the watch lane's stream; 0 or -1. */
int kube_listen(struct kube_lane *lane, struct baton_call *call, const char *path);
/* L7: what the watch lane asks from now on isn't disturbed by a wake for a moment; after that, a
 * wake ends it. The moment is longer after n looks in a row that a wake has ended. */
void kube_be_patient(struct kube_lane *lane, unsigned n);
/* The code for a Status of the server; call->error gets the sentence. */
int kube_judge(struct baton_call *call, int status, const json_t *error);
void kube_unreachable(struct baton_call *call, const struct http_reply *reply);

/* ---- login.c ---- */

/* The size of "Authorization: Bearer " and a token. */
#define KUBE_HEADER_MAX (KUBE_SECRET_MAX + 32)

/* The header that logs us in; "": none is needed. 0, or -1 with a sentence in call->error. */
int kube_login(struct kube_lane *lane, struct baton_call *call, char header[KUBE_HEADER_MAX]);
/* For a server that has refused that login (401). True: another try can help. */
bool kube_login_again(struct kube_lane *lane, const char *header);
/* An HTTP client for the API server; NULL: no memory. */
struct http *kube_http(struct kube_store *s, int wake);
void kube_plugin_done(struct kube_plugin *p);
/* exec.c: sees to it that there is a plugin's credential. 0; or -1, with a sentence in call->error:
 * there is none, or not yet. */
int kube_plugin_run(struct kube_store *s, struct baton_call *call);

/* ---- name.c ---- */

/* The name of the election's object. */
void kube_object_name(const char *name, char out[KUBE_NAME_MAX + 1]);
/* The name of a candidate's object, or of a process's. */
void kube_candidate_name(const char *who, const char *name, char out[KUBE_NAME_MAX + 1]);
void kube_process_name(const char *id, char out[KUBE_NAME_MAX + 1]);
/* A name as a label's value: 63 digits of its hash. */
void kube_label_of(const char *name, char out[64]);
/* The election that an object of any kind belongs to; false: it belongs to none. */
bool kube_name_of(const json_t *object, char out[BATON_NAME_MAX + 1]);
/* A lease's id without its last n_parts parts: without one it is "who-which", without two "who". */
void kube_who(const char *lease_id, int n_parts, char out[BATON_LEASE_ID_MAX + 1]);

/* ---- object.c ---- */

/* The content of a Lease. Texts belong to the object, and are "" if there is none. */
struct kube_lease {
	json_t *object; /* NULL: it isn't there */
	uint64_t rv;    /* its resourceVersion, or that of the list without it */
	const char *holder, *acquire, *renew, *preferred;
	const char *claim, *leader, *process, *order, *reserved;
	uint64_t duration_s; /* 0: none */
	uint64_t transitions;
	uint64_t term; /* the highest ever; 0: there is none yet */
	bool is_paused;
	bool is_dead; /* a process lease that others have ended */
	bool is_ours; /* held by a claim of baton, with: */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	uint64_t nonce;
	/* From expiry.c: */
	uint64_t since_ns;    /* since when its spec is unchanged; 0: never seen */
	uint64_t reserved_ns; /* ... and its reservation */
};

/* Takes over the object; kube_lease_done() gives it back. */
void kube_lease_read(struct kube_lease *l, json_t *object, uint64_t list_rv);
void kube_lease_done(struct kube_lease *l);
/* Reads the item of a list that was asked for by name: there is one, or none. OK, or the outcome of
 * kube_strange(). */
int kube_lease_of_list(struct kube_lease *l, struct baton_call *call, const json_t *list);
/* When the lease ends, on our clock, unless it is renewed. */
uint64_t kube_lease_end_ns(const struct kube_lease *l, uint64_t ttl_ns);
/* A hash of everything that a candidate waits for, and of nothing else. Only the leader waits for
 * an order (is_own). */
uint64_t kube_lease_hash(const struct kube_lease *l, bool is_own);
uint64_t kube_hash(uint64_t h, const char *text);
const char *kube_annotation(const json_t *object, const char *key);

/* The time now, as Kubernetes writes times. */
void kube_now(char out[KUBE_TIME_MAX]);
/* Milliseconds since the epoch; 0: the text is not a time. */
int64_t kube_time_ms(const char *text);
/* Adds a text as JSON, quotes included. */
void kube_put_text(struct bytes *b, const char *text);
/* Adds {"op":OP,"path":"/metadata/annotations/baton~1KEY","value":TEXT}, after a comma if it needs
 * one. */
void kube_put_annotation(struct bytes *b, const char *op, const char *key, const char *text);
void kube_put_op(struct bytes *b, const char *op, const char *path, const char *json);

/* Adds a text of web.h as a JSON text, and frees it. NULL: no memory. */
void kube_put_free(struct bytes *b, char *text);
/* Fills in the call that makes a Lease without a holder, for an election that has none. */
void kube_put_new(const struct kube_store *s, struct kube_call *call, const char *name,
		  bool is_paused);

/* ---- expiry.c ---- */

/* Notes what was read at read_ns. An event of the watch is noted only if nothing newer is known.
 * Fills in l->since_ns and l->reserved_ns. True: something that others wait for has changed. */
bool kube_expiry_note(struct kube_store *s, const char *name, struct kube_lease *l,
		      uint64_t read_ns, bool is_event);
/* The watch has reached that resourceVersion: returns for how long it owed that, or 0.
 * kube_shown_anew(): a new watch begins there. */
uint64_t kube_shown(struct kube_store *s, uint64_t rv);
void kube_shown_anew(struct kube_store *s, uint64_t rv);
/* Since when the watch owes something; NEVER: it owes nothing. */
uint64_t kube_owed_ns(struct kube_store *s);
/* What was last seen of the Lease; the caller gives it back with kube_lease_done(). False: nothing
 * was seen. */
bool kube_expiry_recall(struct kube_store *s, const char *name, struct kube_lease *l);
/* The claim of that term is about to be given back: it no longer counts as led. */
void kube_expiry_leave(struct kube_store *s, const char *name, uint64_t term);
void kube_expiry_forget(struct kube_store *s, const char *name);
/* Forget the process leases that weren't seen between a call of the first and one of the second:
 * the caller lists all process leases in between. */
void kube_expiry_doubt(struct kube_store *s);
void kube_expiry_drop_doubted(struct kube_store *s);
/* Gives a hint for each election whose lease is over; returns when to call again. */
uint64_t kube_expiry_hint(struct kube_store *s, uint64_t now_ns);
/* Gives a hint for each election whose claim hangs on that process lease. */
void kube_hint_process(struct kube_store *s, const char *process);
void kube_expiry_done(struct kube_store *s);
/* The name under which a process lease stands in the table. */
void kube_process_key(const char *process, char out[KUBE_NAME_MAX + 2]);

/* ---- observe.c ---- */

/* Asks for a Lease by a LIST for its name: only a list's answer tells the store's resourceVersion
 * even if there is no such Lease. */
void kube_ask_lease(const struct kube_store *s, struct kube_call *c, const char *object,
		    const char *why);
/* kube_list() calls this for every Lease that is selected, with the election's name ("": it belongs
 * to none), and with NULL when a page is over. rv: the store's resourceVersion. kube_list() returns
 * an outcome. */
typedef void kube_item(void *arg, const char *name, json_t *object, uint64_t rv);
int kube_list(struct kube_lane *lane, struct baton_call *call, const char *selector,
	      const char *why, kube_item *found, void *arg);
/* Reads the answer to kube_ask_lease(), and notes it if is_kept. The caller gives l back. Returns
 * an outcome. */
int kube_read_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, bool is_kept, struct kube_lease *l);
/* Looks at one election now. For a caller that doesn't tell its candidate what it saw: so whatever
 * is new causes a hint. Gives back first what l held. */
int kube_fetch_lease(struct kube_lane *lane, struct baton_call *call, const char *name,
		     struct kube_lease *l);
/* The same for an answer to kube_ask_lease() that is there already; l holds nothing. */
int kube_take_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, struct kube_lease *l);
/* Notes the Lease as a write has left it. True: something that others wait for has changed: an
 * order or a pause may have come before the write. kube_tell_answer() gives a hint then. */
bool kube_note_answer(struct kube_store *s, const char *name, const struct kube_call *c);
void kube_tell_answer(struct kube_store *s, const char *name, const struct kube_call *c);
/* The record as the candidate `id` sees it. */
void kube_record(struct kube_store *s, const char *name, const char *id, const struct kube_lease *l,
		 uint64_t end_ns, struct baton_record *out);
/* When the claim ends by itself: by its spec, or by its process lease. The process lease is looked
 * at unless it is known. NEVER: that can't be told. */
int kube_end_of(struct kube_lane *lane, struct baton_call *call, const struct kube_lease *l,
		uint64_t ttl_ns, uint64_t *end_ns, struct kube_lease *process);
/* Gives a term to a Lease that has none yet, because other programs made it. */
int kube_stamp(struct kube_lane *lane, struct baton_call *call, const char *name,
	       struct kube_lease *l);

/* ---- release.c ---- */

/* Gives one claim back. OK; or REFUSED: the claim is gone. nonce 0: any claim on that lease. */
int kube_let_go(struct kube_lane *lane, struct baton_call *call, const struct baton_release *r);

/* ---- lease.c ---- */

/* kube_note_use() notes which election a lease is used for; kube_use_of() tells it. False: that
 * lease was never used. */
void kube_note_use(struct kube_store *s, const char *lease_id, const char *name);
/* Call this when the election's last watch has ended. */
void kube_leave_use(struct kube_store *s, const char *name);
bool kube_use_of(struct kube_store *s, const char *lease_id, char name[BATON_NAME_MAX + 1]);
/* Whether that lease is one of ours; the caller holds the lock. */
bool kube_is_used(struct kube_store *s, const char *lease_id);
/* Notes that one more claim is held on a process lease, or one less. */
void kube_count_claim(struct kube_store *s, const char *lease_id, int change);
/* Notes that a claim on that lease may still land. */
void kube_doubt_claims(struct kube_store *s, const struct baton_lease *lease);
/* Whether the process lease lives. OK: yes. REFUSED: no. Else it isn't known. */
int kube_process_lives(struct kube_lane *lane, struct baton_call *call, const char *lease_id);
/* Ends a process lease, so that it can no longer be renewed, not even by its owner. OK; REFUSED: it
 * has changed. */
int kube_end_process(struct kube_lane *lane, struct baton_call *call, const char *process,
		     struct kube_lease *l);

/* ---- presence.c ---- */

/* Writes the sign that this process lives. */
int kube_show_presence(struct kube_lane *lane, struct baton_call *call);
/* What the watch lane does beside listening; returns when to call this again. */
uint64_t kube_beat(struct kube_lane *lane, uint64_t now_ns);
/* Before claims are given back: if none stays, the pod gets the label of a standby. Takes at most
 * half of the time until the deadline; the watch lane tries again if it fails. */
void kube_unlabel_pod(struct kube_lane *lane, uint64_t deadline_ns);
/* Whether that object was written within its duration, by the server's clock. */
bool kube_is_fresh(const json_t *object, int64_t server_ms);

/* ---- the verbs ---- */

int kube_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int kube_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held);
int kube_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int kube_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg);
void kube_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n);
void kube_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
void kube_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n);
void kube_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n);
int kube_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name);
/* Notes the holder of the Lease, for a later claim's history. */
void kube_history_saw(struct kube_store *s, const char *name, const struct kube_lease *l);
/* The history with a new claim in that term added, or with the end of the claim that l has. The
 * caller frees it. NULL: no memory. */
char *kube_history_begun(const struct kube_store *s, const char *name, const struct kube_lease *l,
			 uint64_t term, const char *leader);
char *kube_history_ended(const struct kube_lease *l, const char *reason);
int kube_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int kube_list_elections(void *l, struct baton_call *call, const char *prefix, const char *after,
			size_t max, void (*found)(void *arg, const char *name), void *arg);
int kube_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int kube_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order);
int kube_pause(void *l, struct baton_call *call, const char *name, bool paused);
int kube_examine(void *l, struct baton_call *call,
		 void (*found)(void *arg, const struct baton_finding *finding), void *arg);
int kube_watch_add(void *l, const char *name, uint64_t cookie);
void kube_watch_remove(void *l, const char *name, uint64_t cookie);
int kube_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);
void kube_watch_wake(void *l);

#pragma GCC visibility pop

#endif
