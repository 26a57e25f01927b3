/*
 * answer.h: what `baton serve` answers, as one pure function: a request and a view of all elections
 * go in, a reply comes out, and the name of what is left to be done. No socket, no clock, no
 * memory of its own: tests and the fuzzer call it as the HTTP shell does.
 *
 * It must never wait, and never ask the store: what has to be asked is a task for the shell.
 */
#ifndef BATON_SERVE_ANSWER_H
#define BATON_SERVE_ANSWER_H

#include <baton.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVE_TARGET_MAX 2048
#define SERVE_BODY_MAX 4096

/* The rights of a client: a set of bits. */
enum serve_right {
	SERVE_READ = 1,
	SERVE_APPLY = 2, /* the application's side: lead, done, health, alive */
	SERVE_OPERATE = 4,
};

/* Headers are NULL where they were not sent. */
struct serve_request {
	const char *method;
	const char *target; /* as sent: path and query, with its %xx */
	const char *host;
	const char *content_type;
	const char *baton_request;
	const char *origin;
	const char *sec_fetch_site;
	const char *accept;
	const char *if_match;
	const char *if_none_match;
	const char *authorization;
	const char *last_event_id;
	const char *body;
	size_t n_body;
	bool is_unix;
	unsigned peer_rights; /* by the credentials of the other end of a unix socket */
};

/* One election as the process knows it. */
struct serve_election {
	const char *name;
	bool takes_part; /* not only observes */
	bool leads;      /* this candidate, as far as events say; the deadline decides */
	bool paused;
	int state;
	int condition;
	const char *state_name; /* "observing" if it is only observed */
	const char *condition_name;
	uint64_t my_term;         /* of our last leadership */
	int64_t deadline_boot_ns; /* of it; 0: it is over */
	int64_t end_boot_ns;
	uint64_t draining_term; /* not 0: its work has yet to end */
	uint64_t term;          /* of the leader that is known, or the last one's */
	const char *leader;     /* "": none */
	const char *address;
	int64_t since_ms;
	int64_t lease_left_ms; /* of a foreign leader, at seen_boot_ns; -1: not known */
	int64_t seen_boot_ns;
	int64_t wait_ms;
	const char *wait;
	const char *error;  /* the store's words; "" */
	const char *reason; /* of the last loss, here or seen; "" */
	uint64_t seq;       /* of its last event */
	uint32_t score_permille;
	uint32_t min_score_permille;
	int n_candidates; /* -1: not known */
	int n_healthy;
	unsigned n_leads;      /* connections that hold a /lead open */
	unsigned changes_hour; /* of leader */
	unsigned changes_day;
	uint64_t overruns;
	void *owner; /* the shell's */
};

/* A file that is compiled in. */
struct serve_asset {
	const char *path;
	const char *type;
	const char *text;
	size_t n;
};

struct serve_view {
	int64_t now_boot_ns;
	int64_t now_wall_ms;
	const char *version;
	const char *boot_id;
	const char *id;    /* ours */
	const char *store; /* its kind: "redis" */
	const char *promises;
	const char *operator_token; /* NULL: there is none */
	const char *apply_token;
	const char *read_token;
	const char *const *hosts; /* besides loopback; NULL at the end */
	bool read_only;
	bool starting; /* the store has not answered yet */
	bool stopping;
	bool stuck;     /* the library doesn't get on */
	bool observing; /* a whole prefix */
	bool has_metrics;
	bool can_list;
	struct baton_timings timings;
	uint64_t renew_p50_us; /* of the last minutes */
	uint64_t renew_p99_us;
	bool renew_slow; /* one of a thousand of the last hour took more than half of call_ns */
	/* Events are numbered from here on, by chance: none that another process has told is taken
	 * for one of ours. */
	uint64_t first_seq;
	uint64_t seq;                                  /* of the last event */
	const struct serve_election *const *elections; /* sorted by name */
	size_t n_elections;
	const struct serve_asset *assets;
	size_t n_assets;
};

/* What is left to be done, besides sending what the reply holds. */
enum serve_task {
	SERVE_NOTHING,
	SERVE_TELL,   /* a deadline was told: the claim is kept until then */
	SERVE_LEAD,   /* a stream: this connection is the work */
	SERVE_EVENTS, /* a stream: all that happens */
	SERVE_ELECTOR_EVENTS,
	SERVE_DONE,
	SERVE_HEALTH,
	SERVE_ALIVE,
	SERVE_STATUS, /* from here on: the store has to be asked */
	SERVE_CANDIDATES,
	SERVE_HISTORY,
	SERVE_DOCTOR,
	SERVE_RESIGN,
	SERVE_TRANSFER,
	SERVE_PAUSE,
	SERVE_RESUME,
	SERVE_METRICS, /* the shell writes them */
};

/* Bytes that are written into the caller's room. What doesn't fit is counted. */
struct serve_text {
	char *at;
	size_t room;
	size_t n; /* wanted; more than room: it was cut */
};

struct serve_reply {
	int status;
	int task;
	const char *type;  /* of the body; "": there is none */
	const char *allow; /* of 405; else NULL */
	bool challenge;    /* 401: the reply says how to log in */
	bool is_asset;     /* body_at has it */
	bool is_copied;    /* the same, and it has to be copied */
	bool has_role;     /* the headers Baton-Term, ... are sent */
	const char *body_at;
	size_t n_body;
	struct serve_text body;
	char etag[40];             /* "": none */
	const char *if_none_match; /* the request's; NULL: none */
	/* of the task */
	const struct serve_election *election;
	uint64_t term; /* 0: any */
	int64_t wait_ms;
	uint64_t after; /* the long poll waits for a later event; UINT64_MAX: it doesn't */
	int64_t quiet_ms;
	int64_t score_permille; /* -1: not given */
	uint64_t limit;
	bool check;
	bool has_metadata;
	bool lines; /* of streams: NDJSON */
	bool tell_renewals;
	char note[BATON_NOTE_MAX + 1];
	char to[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
};

/* Answers. The caller gives reply->body its room, and asks again with more if body.n is more. */
void serve_answer(const struct serve_request *request, const struct serve_view *view,
		  struct serve_reply *reply);

/* An error as application/problem+json; detail is a sentence, word the library's for the code. */
void serve_problem(struct serve_reply *reply, int status, const char *word, const char *detail);
/* The same for a code of the library. */
void serve_problem_of(struct serve_reply *reply, int code, const char *word, const char *detail);

/* ---- what the shell has asked the store for ---- */

struct serve_status {
	const struct serve_election *election;
	const struct baton_observed *observed; /* NULL: the store failed */
	const struct baton_candidate *candidates;
	size_t n_candidates;
};

void serve_write_status(struct serve_text *out, const struct serve_view *view,
			const struct serve_status *status);
/* The same, without what changes as time goes by: as long as it is the same, so is the status. */
void serve_write_still(struct serve_text *out, const struct serve_view *view,
		       const struct serve_status *status);
/* The tag of a status is made of these bytes. 304 if the client has said that it knows it. */
void serve_tag(struct serve_reply *reply, const char *still, size_t n);
void serve_write_candidates(struct serve_text *out, const struct baton_candidate *list, size_t n);
/* Newest first; with the proof that no two overlapped. */
void serve_write_history(struct serve_text *out, const struct baton_leadership *list, size_t n);

struct serve_event {
	uint64_t seq;
	int64_t wall_ms;
	const char *kind;
	const char *leader;
	const char *old_leader;
	const char *reason;
	const char *text;
	uint64_t term;
	uint64_t old_term;
};

/* An event of the common stream, with the row of its election as it is now. */
void serve_write_event(struct serve_text *out, const struct serve_view *view,
		       const struct serve_election *e, const struct serve_event *event);
/* All elections and what is known of the store: how a stream begins. */
void serve_write_snapshot(struct serve_text *out, const struct serve_view *view);
/* One election as a row of the list. */
void serve_write_row(struct serve_text *out, const struct serve_view *v,
		     const struct serve_election *e);
/* {"name":...,"last_update":...}, as other sidecars say it. */
void serve_write_elector(struct serve_text *out, const struct serve_view *view,
			 const struct serve_election *e);

/* ---- words ---- */

void text_add(struct serve_text *t, const char *text);
void text_add_n(struct serve_text *t, const char *text, size_t n);
void text_number(struct serve_text *t, int64_t n);
void text_unsigned(struct serve_text *t, uint64_t n);
/* With its quotes; bytes that are not UTF-8 become U+FFFD. */
void text_string(struct serve_text *t, const char *text);
/* An instant as ISO 8601 in UTC, with quotes; null where it is 0. */
void text_time(struct serve_text *t, int64_t wall_ms);
/* For HTML: nothing in it is markup. */
void text_escaped(struct serve_text *t, const char *text);

/* ---- which request it was ---- */

#define SERVE_PATHS 27

/* The number of the path that a target names, to count requests by; 0: "other". */
size_t serve_path(const char *target);
/* "/leader/{name}". */
const char *serve_path_name(size_t path);

/* Whether this candidate leads now, by the clock. */
bool serve_leads(const struct serve_view *view, const struct serve_election *e);
const struct serve_election *serve_find(const struct serve_view *view, const char *name);

#endif
