/*
 * server.h: what the files of the shell around serve_answer() share. All of it belongs to the
 * thread of the loop, but for the queues of the workers.
 */
#ifndef BATON_SERVE_SERVER_H
#define BATON_SERVE_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/bytes.h"
#include "serve/answer/answer.h"
#include "serve/latency.h"
#include "serve/serve.h"
#include "telemetry/trace.h"

#define SERVER_CONNECTIONS 128
#define SERVER_FOR_PROBES 8       /* of them */
#define SERVER_STREAMS 64         /* with the requests that wait for news */
#define SERVER_UNSENT (64 * 1024) /* of a stream */
#define SERVER_HEAD (16 * 1024)   /* of a request */
#define SERVER_HEAD_MS 5000       /* for a head, or a handshake; between two requests */
#define SERVER_SEND_MS 5000       /* for the next bytes of a reply to be taken */
#define SERVER_COMMENT_MS 10000   /* how often a stream shows that it lives */
#define SERVER_AGAIN_MS 1000      /* how often "lost" is told to a client that may be gone */
#define SERVER_RING 1000          /* events that are kept */
#define CHANGES 64                /* of leader that are counted, for one election */

struct server;
struct member;
struct stream;
struct job;
struct hooks;
struct handover;
struct telemetry;
struct callbacks;

/* One connection of a client. */
struct link {
	struct link *next;
	struct link *previous;
	struct server *server;
	int fd;
	int64_t since_ns; /* accepted, or its last request ended */
	bool is_unix;
	bool is_local; /* the kernel tells when the other end dies */
	bool is_busy;  /* a request has been read */
	bool for_probes;
	unsigned rights;
	pid_t pid;        /* of the other end of a unix socket; 0: not known */
	uint64_t born_at; /* when that process has begun; 0: it was not identified */
};

/* One request. */
struct call {
	struct call *next; /* of those that wait for an event */
	struct server *server;
	struct link *link;
	struct MHD_Connection *connection;
	char *target;
	char *room; /* of the reply's body */
	struct bytes body;
	bool is_begun;
	bool is_asked; /* the worker has answered, or the wait is over */
	bool is_waiting;
	bool has_limit; /* in the HTTP library: a limit of time of its own */
	bool is_late;   /* it has waited for long enough */
	bool is_full;
	bool is_order;      /* waits for the leader that follows ... */
	uint64_t seen_term; /* ... this one */
	uint64_t seen_seq;
	int64_t until_ns;
	struct serve_reply reply;
	struct stream *stream;
};

enum stream_kind { STREAM_LEAD, STREAM_EVENTS, STREAM_ELECTOR };

/* What is told over a connection that stays open. */
struct stream {
	struct stream *next;
	struct call *call;
	struct member *member; /* of STREAM_LEAD and STREAM_ELECTOR */
	struct bytes out;
	size_t sent;
	size_t beginning; /* so many bytes of out, which are not counted as unsent */
	bool is_begun;
	int64_t spoken_ns;
	int64_t moved_ns; /* when bytes were last taken */
	int kind;
	bool lines;
	bool tell_renewals;
	bool is_suspended;
	bool is_half_closed;
	bool is_over;    /* ends when all is sent */
	bool is_gone;    /* the other end is gone */
	bool is_cut;     /* by us, because its client doesn't read; the work may go on */
	bool is_through; /* all that it began with was sent */
	bool is_done;    /* its work has ended: `done` was said */
	uint64_t told_term;
	int64_t told_ns; /* the latest deadline that its process was told besides, by /leadership */
	int64_t end_ns;  /* told at the loss; 0: not lost */
	bool is_overrun;
};

/* One election. There may be thousands: words take the room that they need. */
struct member {
	struct serve_election v; /* as serve_answer() sees it; its words are set by set_words() */
	struct server *server;
	struct baton_election *election;
	struct baton_context *hold; /* the work of the present or the last leadership */
	uint64_t hold_term;
	int64_t told_ns; /* the latest deadline that others than the holder of the work were told */
	int64_t renewed_ns; /* the deadline that its last BECAME or RENEWED told */
	bool is_renewed;    /* clients of the stream of events have to hear of it */
	bool is_lost;
	atomic_bool is_open; /* its gate: others may be told that we lead */
	bool is_drained;     /* the work of the last leadership has ended */
	bool is_stopped;
	bool is_looked_at;
	bool is_audited;      /* its history is about to be read */
	bool has_changed;     /* its leader, since then */
	int64_t audited_ns;   /* when that was */
	struct stream *leads; /* the stream that was told `became`; NULL: none */
	uint32_t *changes;    /* wall time in seconds; the last CHANGES of them */
	unsigned n_changes;
	uint64_t changed_term; /* of the last leader that was seen; 0: none was */
	uint32_t score;
	void *page;
	struct hooks *hooks;       /* NULL: there are no callbacks */
	struct handover *handover; /* NULL: traces are not told */
	char name[];
};

/* An event that is kept for clients that come back. */
struct kept {
	struct member *member;
	struct serve_event event;
	char *words; /* what the strings of the event point into */
};

/* A thread that asks the store. Examinations take long, and have one of their own. */
enum { WORKER_STORE, WORKER_DOCTOR, WORKERS };

struct worker {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	struct job *queue;
	int64_t until_ns; /* its present question of the store ends before; 0: it is idle */
};

struct server {
	const struct serve_config *config;
	struct serve_view view;
	struct serve_election **rows;
	struct member **members; /* in the same order, by name */
	size_t n_members;
	size_t room_members;
	struct kept ring[SERVER_RING];
	struct link *links;
	size_t n_links;
	struct call *waiting;
	size_t n_waiting;
	struct stream *streams;
	size_t n_streams;
	struct MHD_Daemon *plain;
	struct MHD_Daemon *tls;
	char *tls_texts[3];
	int unix_fd;
	int tcp_fd;
	int epoll_fd;
	int gone_fd; /* an epoll: sees clients go away whose connection is suspended */
	int signal_fd;
	int done_fd; /* an eventfd: the worker has finished something */
	bool is_resumed;
	bool is_activated; /* the unix socket was handed over */
	bool is_stopping;
	bool is_renewed; /* a member is */
	bool is_listed;  /* a list of elections is asked for: lists must never pile up */
	int64_t stop_until_ns;
	int64_t listed_ns;
	int64_t trimmed_ns;
	int64_t watchdog_ns; /* how often the service manager wants a sign of life; 0: never */
	int64_t alive_ns;    /* when it gets the next one */
	int64_t looked_ns;
	struct latency latency;
	size_t look_at;
	bool cant_list;   /* the store: candidates, ... */
	bool cant_audit;  /* ... histories */
	bool has_answer;  /* of the store: once is enough */
	bool is_stuck;    /* a thread of the library, or the worker */
	int64_t pulse_ns; /* when that was last looked at */
	int64_t late_ns;  /* since when one of them is late; 0: none is */
	char boot_id[40];
	char *hosts_text;
	const char **hosts;
	char *tokens[3];
	struct telemetry *telemetry;
	struct callbacks *callbacks; /* NULL: there are none */
	char **environment;          /* that of the callbacks */
	/* the workers' */
	struct worker workers[WORKERS];
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *finished;
	bool workers_end;
};

int64_t server_now_ns(void);
/* The view, with what is known of all elections, or of one of them, brought up to date. */
const struct serve_view *server_view(struct server *s);

/* ---- members.c ---- */

bool members_add(struct server *s, const char *name, bool takes_part);
struct member *members_find(struct server *s, const char *name);
void members_take_events(struct server *s);
void member_refresh(struct member *m);
void members_refresh_all(struct server *s);
void member_told(struct member *m, const struct link *link, int64_t deadline_ns);
/* 0, or a code of the library. */
int member_done(struct member *m, uint64_t term);
void member_attach(struct member *m, struct stream *stream);
/* The stream is over: closed at both ends, or `done` was said. */
void member_detach(struct member *m, struct stream *stream);
/* The other end has stopped writing: if the work is there, the work must stop. */
void member_half_closed(struct member *m, struct stream *stream);
/* The score, and the metadata unless they are NULL, for others to see. */
void member_report(struct member *m, const char *metadata);
/* The gate has opened: others may be told that we lead. */
void member_open(struct member *m);
/* Gives leaderships back whose work has ended. The next instant to look again, or INT64_MAX. */
int64_t members_settle(struct server *s);
void members_stop(struct server *s);
bool members_have_stopped(const struct server *s);
void members_free(struct server *s);

/* ---- streams.c ---- */

struct stream *stream_new(struct call *call, struct member *member);
void stream_free(struct stream *st);
ssize_t stream_read(void *cls, uint64_t at, char *to, size_t room);
void stream_wake(struct stream *st);
void stream_end(struct stream *st);
/* What is told of a leadership: `became`, `standby`, `renewed`, `lost`. */
void stream_tell_lead(struct stream *st, const char *kind, const char *reason);
/* An event for all clients that listen, and for those that come back. */
void streams_publish(struct member *m, const struct serve_event *event);
/* The row of an election has changed without an event. */
void streams_publish_row(struct member *m);
/* Others may be told from now on that we lead. */
void streams_opened(struct member *m);
void streams_tick(struct server *s);
void streams_renewed(struct server *s);
/* Descriptors whose other end is gone. */
void streams_take_gone(struct server *s);
void streams_free_ring(struct server *s);

/* ---- worker.c ---- */

bool worker_start(struct server *s);
void worker_stop(struct server *s);
/* False: there is no memory. */
bool worker_ask(struct call *call);
/* Looks at an election that another leads, for how long its lease lasts. */
void worker_look(struct member *m);
/* Reads its history, for overlaps. */
void worker_audit(struct member *m);
void worker_list(struct server *s);
void worker_take_finished(struct server *s);
/* Its question takes longer than the library's calls may. */
bool worker_is_late(struct server *s, int64_t now_ns);

/* ---- pulse.c ---- */

/* Looks at the library's threads and at the store, if that was long enough ago. */
void pulse_take(struct server *s);

/* ---- http.c ---- */

bool http_start(struct server *s);
void http_accept(struct server *s, int listener);
void http_run(struct server *s);
void http_tick(struct server *s);
void http_stop(struct server *s);
void call_resume(struct call *call);
/* Its client has closed its side while it waits; is_whole: both sides. */
void call_left(struct call *call, bool is_whole);

/* ---- hooks.c ---- */

/* False after saying why not. */
bool hooks_start(struct server *s);
void hooks_end(struct server *s);
bool hooks_add(struct member *m);
void hooks_remove(struct member *m);
/* Runs the gate, which calls member_open(); without one, does so at once. */
void hooks_elected(struct member *m, const struct baton_event *event);
void hooks_renewed(struct member *m);
void hooks_lost(struct member *m, int reason);
/* The work has ended: begins on-lost; true when that has ended, too. */
bool hooks_are_over(struct member *m);
void hooks_changed(struct member *m, const struct baton_event *event);

/* ---- telemetry.c ---- */

bool telemetry_start(struct server *s);
/* Answers agent-check. SERVE_ENDED, or why not, which was said. */
int telemetry_listen(struct server *s);
void telemetry_tick(struct server *s);
/* When all is given back; telemetry_end() waits for the collector, up to a second. */
void telemetry_last(struct server *s);
void telemetry_end(struct server *s);
void telemetry_count(struct server *s, const char *target, unsigned status);
/* All metrics; lives until the next call. NULL: no memory. */
const char *telemetry_text(struct server *s, int format, size_t *n);
bool telemetry_add(struct member *m);
void telemetry_remove(struct member *m);
void telemetry_changed(struct member *m, const struct baton_event *event);
void telemetry_became(struct member *m, const struct baton_event *event);
void telemetry_opened(struct member *m);
void telemetry_lost(struct member *m, uint64_t term);
void telemetry_drained(struct member *m);
void telemetry_released(struct member *m);
/* Which span a command belongs to: the handover to us, or the one from us; "": not known. */
void telemetry_parent(const struct member *m, bool is_lost, char out[TRACE_PARENT_SIZE]);

/* ---- listen.c ---- */

/* Opens what is listened on. SERVE_ENDED, or why not. */
int listen_open(struct server *s);
void listen_close(struct server *s);
/* Asks the kernel for the user at the other end of a unix socket, and finds that user's rights. */
void listen_credit(struct link *link);
/* Notes which process is at the other end, as long as it lives. */
void listen_identify(struct link *link);
/* Whether another connection is of the process that was identified, for sure. */
bool listen_is_one_process(const struct link *identified, const struct link *other);
/* Reads the token files again. False: one can't be read; the old tokens stay. */
bool listen_read_tokens(struct server *s);

#endif
