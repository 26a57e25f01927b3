/*
 * kube.h: what the files of the Kubernetes driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL
 *   config.c   which API server, and how it is trusted: the service account, or a kubeconfig
 *   yaml.c     a kubeconfig's text
 *   login.c    who we are there: tokens that rotate
 *   exec.c     plugins that make them
 *   call.c     requests, and what an answer means
 *   name.c     names of elections as names of objects
 *   object.c   a Lease object as we read and write it
 *   expiry.c   what was last seen of each, and since when it is unchanged
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   lease.c    renewing; the process lease; claims
 *   observe.c  records
 *   candidates.c  candidates
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   presence.c the life sign of candidates, and the pod's label
 *   watch.c    hints
 *   doctor.c   what the API server is like
 *
 * An election is a Lease (coordination.k8s.io/v1) in one namespace, with the fields that
 * client-go's leaderelection gives it, so that programs of both kinds contend in one election, and
 * kubectl shows who leads. What such a record doesn't have stands in annotations:
 *
 *   baton/term         the highest term, and in baton/transitions the leaseTransitions that it was
 *                      for: who leads without us counts on there, and so does the term
 *   baton/claim        "LEASE NONCE TERM" of a claim of ours; it counts only as long as the spec
 *                      has the same transitions and holder
 *   baton/leader       how the leader shows itself
 *   baton/process      with process_lease=1: the process lease that the claim hangs on
 *   baton/order /paused /reserved
 *   baton/history      the last leaderships, the newest first; JSON
 *   baton/name         the election's name, where it can't be the object's
 *
 * Beside them there are "baton--c-..." (a candidate), "baton--p-..." (a process that is alive).
 *
 * No clock of another machine is asked whether a lease is over. Who wants to take over has itself
 * seen the spec unchanged for as long as the record says, on its own clock (expiry.c), and writes
 * on condition that the object is the one that it has seen (resourceVersion).
 *
 * Lanes share struct kube_store: what changes in it has its lock.
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
/* Of an object; a namespace or a label's value has at most 63. */
#define KUBE_NAME_MAX 253
#define KUBE_PATH_MAX 1024
/* Terms end here: resourceVersions do. */
/* As long as a Lease can say: who knows no process leases never takes over one's election. */
#define KUBE_FOREVER_S INT32_MAX
/* What was known may have been old: then we know better, and try again. */
#define KUBE_ROUNDS 4

/* ---- options.c, config.c, yaml.c ---- */

struct kube_options {
	char space[64];                      /* the namespace; "": the context's */
	char kubeconfig[KUBE_TEXT_MAX];      /* "": wherever it is */
	char context[KUBE_TEXT_MAX];         /* "": the current one */
	char service_account[KUBE_TEXT_MAX]; /* the folder */
	char pod[KUBE_NAME_MAX + 1];
	char pod_label[KUBE_NAME_MAX + 64 + 1]; /* "": none */
	bool process_lease;
};

/* BATON_OK, or a code and the sentence in err. */
int kube_options_parse(struct kube_options *o, const char *text, struct baton_error *err);
bool kube_is_namespace(const char *text);

/* Where, and who we are there. Texts are "" where there is none. */
struct kube_config {
	struct http_host host;
	char prefix[KUBE_TEXT_MAX]; /* of all paths */
	char space[64];
	char source[KUBE_TEXT_MAX]; /* where it was found, for messages */
	char server_name[HTTP_NAME_MAX + 1];
	char ca[KUBE_TEXT_MAX], cert[KUBE_TEXT_MAX], key[KUBE_TEXT_MAX], token_file[KUBE_TEXT_MAX];
	char *ca_text, *cert_text, *key_text, *token; /* NULL: none */
	json_t *exec;                                 /* the plugin; NULL: none */
	char exec_folder[KUBE_TEXT_MAX];              /* that its command's path is relative to */
};

int kube_config_find(struct kube_config *c, const struct kube_options *o, struct baton_error *err);
void kube_config_done(struct kube_config *c);
/* The first document of a YAML file, every scalar a text; to be given back with json_decref(). NULL
 * with the reason. */
json_t *kube_yaml_read(const char *path, char reason[HTTP_TEXT_MAX]);

/* ---- the store and its lanes ---- */

struct kube_expiry;

/* What a lease was last used for, by the "who-which" of its id: the election that it is for; of a
 * process lease, its id. */
struct kube_use {
	struct kube_use *next;
	uint32_t n_held;   /* of a process lease: the claims on it, as far as we know */
	uint64_t doubt_ns; /* ... and until then one more may land, late */
	char who[BATON_LEASE_ID_MAX + 1];
	char lease_id[BATON_LEASE_ID_MAX + 1]; /* the last one of these */
	uint64_t left_ns;                      /* since when nobody watches it; 0: they do */
	char name[BATON_NAME_MAX + 1];
};

/* What shows that a process with candidates is alive, where no process lease does. */
struct kube_presence {
	char who[BATON_LEASE_ID_MAX + 1]; /* "": there is none yet */
	char owner[BATON_NAME_MAX + 1];
	uint64_t ttl_ns;
	uint64_t next_ns; /* when it is due */
	void *shown;      /* the names of the elections in which we are, by tsearch(3) */
};

/* Who we are, as an exec plugin says, and the plugin while it runs. */
struct kube_plugin {
	char *token, *cert_text, *key_text; /* NULL: none */
	bool is_known;
	uint64_t until_ns; /* when another one is asked for */
	uint64_t end_ns;   /* how long that is good */
	uint64_t retry_ns; /* before that it isn't asked for early */
	unsigned n_logins; /* another certificate needs other connections */
	bool is_busy;      /* a lane looks after it */
	int pid;           /* 0: it doesn't run */
	int process;       /* its pidfd: the number may be another's, once it has ended */
	int out;           /* its output */
	uint64_t started_ns;
	struct bytes said;
};

struct kube_store {
	struct web_store web;
	struct web_options server; /* one: the config's */
	struct kube_options options;
	struct kube_config config;
	/* Set once: claims hang on process leases, and these are watched, too. */
	_Atomic bool has_process_claims;
	/* The watch is for one election, and shows no process leases. */
	_Atomic bool is_narrow;
	/* What follows changes, under the lock: */
	struct name_table expiries; /* of struct kube_expiry */
	uint64_t ttl_ns;            /* how long our own leases are */
	uint64_t next_end_ns;       /* nothing that was seen ends before that */
	struct kube_use *uses;
	struct kube_presence presence;
	struct kube_plugin plugin;
	bool is_loss_reported;
	bool is_watch_down; /* the watch waits for a server that doesn't answer */
	uint64_t shown_rv;  /* how far the watch has come */
	uint64_t owed_rv;   /* what an answer has shown, and the watch has yet to show ... */
	uint64_t owed_ns;   /* ... since then; 0: nothing */
	size_t n_led;       /* of `expiries`: led by this process */
	int labelled;       /* of our pod: 0 not yet, 1 leader, -1 standby */
};

struct kube_lane {
	struct web_lane web;
	struct kube_store *store;
	struct http *beat; /* watch lane: beside its stream */
	unsigned n_logins; /* that its connections are for */
	/* The watch lane's: */
	uint64_t retry_ns;             /* not opened before that */
	bool is_down;                  /* ... unless another lane is answered */
	unsigned n_tries;              /* to open it, since something was heard */
	unsigned n_woken;              /* looks in a row that were given up for a wake */
	bool has_bookmarks;            /* it is never silent for long */
	uint64_t patience_ns;          /* how far it may lag behind what answers show; 0: as ever */
	uint64_t label_ns;             /* the pod isn't labelled before that */
	uint64_t sweep_ns;             /* when to look for what the dead have left behind */
	uint64_t rv;                   /* where the stream goes on; 0: look first */
	char only[BATON_NAME_MAX + 1]; /* the one name that it is for; "": all */
};

/* ---- call.c ---- */

/* A request and its answer. The caller fills in the first part and frees body and answer. */
struct kube_call {
	const char *method;
	const char *type; /* of the body: KUBE_MERGE... */
	char path[KUBE_PATH_MAX];
	struct bytes body;
	bool is_read; /* carries nothing out: never UNKNOWN */
	int outcome;  /* OK: `answer`. REFUSED: a status of 404, 409 or 422 */
	int code;
	int status;
	json_t *answer;
	uint64_t read_ns;  /* the boot clock, when it had been read */
	int64_t server_ms; /* the server's wall clock, in whole seconds; 0: it doesn't tell */
};

#define KUBE_JSON "application/json"
#define KUBE_MERGE "application/merge-patch+json"
#define KUBE_PATCH "application/json-patch+json"
#define KUBE_APPLY "application/apply-patch+yaml"

/* n of them, some at a time; true: all are OK. call->error has the last failure's sentence. S9:
 * what there was no memory to say (body.has_failed) isn't sent, and FAILED. */
bool kube_call_all(struct kube_lane *lane, struct baton_call *call, struct kube_call *list,
		   size_t n);
/* One; its outcome. */
int kube_call(struct kube_lane *lane, struct baton_call *call, struct kube_call *c);
void kube_call_done(struct kube_call *c);
/* "/apis/coordination.k8s.io/v1/namespaces/NS/leases" and, unless NULL, "/OBJECT"; then what the
 * format says. */
void kube_path(const struct kube_store *s, struct kube_call *c, const char *object,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The answer isn't what an API server says. */
int kube_strange(struct baton_call *call);
/* Begins the watch lane's stream; 0 or -1. */
int kube_listen(struct kube_lane *lane, struct baton_call *call, const char *path);
/* L7: what the watch lane asks from now on has a moment; after that, whoever wakes it isn't kept
 * waiting. After n looks in a row that ended so the moment is a longer one. */
void kube_be_patient(struct kube_lane *lane, unsigned n);
/* What a Status of the server says, as a code; the sentence in call->error. */
int kube_judge(struct baton_call *call, int status, const json_t *error);
void kube_unreachable(struct baton_call *call, const struct http_reply *reply);

/* ---- login.c ---- */

/* "Authorization: Bearer " and a token; its size. */
#define KUBE_HEADER_MAX (KUBE_SECRET_MAX + 32)

/* The header that says who we are; "": none is needed. 0, or -1 with call->error. */
int kube_login(struct kube_lane *lane, struct baton_call *call, char header[KUBE_HEADER_MAX]);
/* The server doesn't know who said that: true if another try can help. */
bool kube_login_again(struct kube_lane *lane, const char *header);
/* A client of that server; NULL: no memory. */
struct http *kube_http(struct kube_store *s, int wake);
void kube_plugin_done(struct kube_plugin *p);
/* exec.c: the credential that a plugin has made, or not yet. 0, or -1 with call->error. */
int kube_plugin_run(struct kube_store *s, struct baton_call *call);

/* ---- name.c ---- */

/* The election's object. */
void kube_object_name(const char *name, char out[KUBE_NAME_MAX + 1]);
/* A candidate's, or a process's. */
void kube_candidate_name(const char *who, const char *name, char out[KUBE_NAME_MAX + 1]);
void kube_process_name(const char *id, char out[KUBE_NAME_MAX + 1]);
/* What a label can say of a name: 63 digits of its hash. */
void kube_label_of(const char *name, char out[64]);
/* The election of an object, of whatever kind; false: it is none of an election. */
bool kube_name_of(const json_t *object, char out[BATON_NAME_MAX + 1]);
/* A lease's id up to its last '-' (who-which), or the one before (who). */
void kube_who(const char *lease_id, int n_parts, char out[BATON_LEASE_ID_MAX + 1]);

/* ---- object.c ---- */

/* What stands in a Lease; texts are the object's, "" where there is none. */
struct kube_lease {
	json_t *object; /* NULL: it isn't there */
	uint64_t rv;    /* its resourceVersion, or that of the list which hasn't got it */
	const char *holder, *acquire, *renew, *preferred;
	const char *claim, *leader, *process, *order, *reserved;
	uint64_t duration_s; /* 0: none */
	uint64_t transitions;
	uint64_t term; /* the highest ever; 0: nobody has counted yet */
	bool is_paused;
	bool is_dead; /* a process lease that was ended by others */
	bool is_ours; /* held by a claim of baton's, which is: */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	uint64_t nonce;
	/* Of expiry.c: */
	uint64_t since_ns;    /* its spec is unchanged since then; 0: never seen */
	uint64_t reserved_ns; /* ... and its reservation */
};

/* Takes the object, which is given back with kube_lease_done(). */
void kube_lease_read(struct kube_lease *l, json_t *object, uint64_t list_rv);
void kube_lease_done(struct kube_lease *l);
/* The item of a list that was asked for by name: there is one, or none. OK, or it is strange. */
int kube_lease_of_list(struct kube_lease *l, struct baton_call *call, const json_t *list);
/* When it ends, on our clock, unless it is renewed. */
uint64_t kube_lease_end_ns(const struct kube_lease *l, uint64_t ttl_ns);
/* Everything that is waited for, and nothing else, as a number: an order only by who leads. */
uint64_t kube_lease_hash(const struct kube_lease *l, bool is_own);
uint64_t kube_hash(uint64_t h, const char *text);
const char *kube_annotation(const json_t *object, const char *key);

/* Now, as Kubernetes writes it. */
void kube_now(char out[KUBE_TIME_MAX]);
/* Milliseconds since the epoch; 0: no time. */
int64_t kube_time_ms(const char *text);
/* A text as JSON, quotes included. */
void kube_put_text(struct bytes *b, const char *text);
/* {"op":OP,"path":"/metadata/annotations/baton~1KEY","value":TEXT}, with a comma if need be. */
void kube_put_annotation(struct bytes *b, const char *op, const char *key, const char *text);
void kube_put_op(struct bytes *b, const char *op, const char *path, const char *json);

/* A text of web.h as JSON, which is freed. */
void kube_put_free(struct bytes *b, char *text);
/* A Lease that nobody holds, for an election that has none. */
void kube_put_new(const struct kube_store *s, struct kube_call *call, const char *name,
		  bool is_paused);

/* ---- expiry.c ---- */

/* Notes what was read at read_ns; an event of the watch only if nothing newer is known. Fills in
 * l->since_ns. True: something that others wait for has changed. */
bool kube_expiry_note(struct kube_store *s, const char *name, struct kube_lease *l,
		      uint64_t read_ns, bool is_event);
/* The watch has come so far: how long that was owed, or 0. And it begins anew there. */
uint64_t kube_shown(struct kube_store *s, uint64_t rv);
void kube_shown_anew(struct kube_store *s, uint64_t rv);
/* Since when the watch owes something; NEVER: it doesn't. */
uint64_t kube_owed_ns(struct kube_store *s);
/* What was last seen; to be given back. False: nothing. */
bool kube_expiry_recall(struct kube_store *s, const char *name, struct kube_lease *l);
void kube_expiry_forget(struct kube_store *s, const char *name);
/* Process leases that aren't seen from the first of these to the second are forgotten: between them
 * all that there are were listed. */
void kube_expiry_doubt(struct kube_store *s);
void kube_expiry_drop_doubted(struct kube_store *s);
/* Hints at all whose time is over; returns when to ask again. */
uint64_t kube_expiry_hint(struct kube_store *s, uint64_t now_ns);
/* Hints at all whose claim hangs on that process lease. */
void kube_hint_process(struct kube_store *s, const char *process);
void kube_expiry_done(struct kube_store *s);
/* Process leases are seen under this name. */
void kube_process_key(const char *process, char out[KUBE_NAME_MAX + 2]);

/* ---- observe.c ---- */

/* LISTs by name: the only answer that tells where the store is also when there is no such one. */
void kube_ask_lease(const struct kube_store *s, struct kube_call *c, const char *object,
		    const char *why);
/* Every Lease that is selected, with the election's name ("": it is none of an election); and NULL
 * when a page is over. rv: where the store was. An outcome. */
typedef void kube_item(void *arg, const char *name, json_t *object, uint64_t rv);
int kube_list(struct kube_lane *lane, struct baton_call *call, const char *selector,
	      const char *why, kube_item *found, void *arg);
/* Reads the answer to that, notes it; l is to be given back. OK or not. */
int kube_read_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, bool is_kept, struct kube_lease *l);
/* One election, looked at now, by who doesn't tell its candidate: what is new is hinted at. What l
 * held is given back before. */
int kube_fetch_lease(struct kube_lane *lane, struct baton_call *call, const char *name,
		     struct kube_lease *l);
/* The same of an answer that is there, to what kube_ask_lease() has asked; l holds nothing. */
int kube_take_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, struct kube_lease *l);
/* Notes what a write has left. True: something that others wait for has changed; the other one
 * hints at that: an order or a pause may have come before the write. */
bool kube_note_answer(struct kube_store *s, const char *name, const struct kube_call *c);
void kube_tell_answer(struct kube_store *s, const char *name, const struct kube_call *c);
/* For id. */
void kube_record(struct kube_store *s, const char *name, const char *id, const struct kube_lease *l,
		 uint64_t end_ns, struct baton_record *out);
/* When the claim ends by itself: by its spec, or by its process lease, which is looked at unless it
 * is known. NEVER: it can't be told. */
int kube_end_of(struct kube_lane *lane, struct baton_call *call, const struct kube_lease *l,
		uint64_t ttl_ns, uint64_t *end_ns, struct kube_lease *process);
/* The Lease has no term yet, because others made it: it is given one. */
int kube_stamp(struct kube_lane *lane, struct baton_call *call, const char *name,
	       struct kube_lease *l);

/* ---- release.c ---- */

/* Gives one claim back; OK, or REFUSED: it isn't there any more. nonce 0: whichever it is. */
int kube_let_go(struct kube_lane *lane, struct baton_call *call, const struct baton_release *r);

/* ---- lease.c ---- */

/* What leases are used for. False: that one was never used. */
void kube_note_use(struct kube_store *s, const char *lease_id, const char *name);
/* Nobody watches that election any more. */
void kube_leave_use(struct kube_store *s, const char *name);
bool kube_use_of(struct kube_store *s, const char *lease_id, char name[BATON_NAME_MAX + 1]);
/* Whether that lease is one of ours; with the lock held. */
bool kube_is_used(struct kube_store *s, const char *lease_id);
/* One more claim is held on a process lease, or one less. */
void kube_count_claim(struct kube_store *s, const char *lease_id, int change);
/* A claim on it may still land. */
void kube_doubt_claims(struct kube_store *s, const struct baton_lease *lease);
/* Whether the process lease lives; OK, REFUSED or not known. */
int kube_process_lives(struct kube_lane *lane, struct baton_call *call, const char *lease_id);
/* Nobody renews that process lease any more, not even its owner. OK, REFUSED: it has changed. */
int kube_end_process(struct kube_lane *lane, struct baton_call *call, const char *process,
		     struct kube_lease *l);

/* ---- presence.c ---- */

/* Shows that this process lives. */
int kube_show_presence(struct kube_lane *lane, struct baton_call *call);
/* What the watch lane does beside listening; returns when it has to again. */
uint64_t kube_beat(struct kube_lane *lane, uint64_t now_ns);
/* Whether that object was written lately, by the server's clock. */
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
/* Who holds it, for those who claim it later. */
void kube_history_saw(struct kube_store *s, const char *name, const struct kube_lease *l);
/* The history with a claim in that term, or with the end of the claim that l has; to be freed.
 * NULL: no memory. */
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
