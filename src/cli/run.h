/*
 * run.h: the supervisor of `baton run`, in pieces: run.c decides, deadline.c enforces the deadline,
 * health.c asks the health command, notify.c speaks to the service manager.
 *
 * One thread, one poll(2). Events of the library are pulled; the election drains by hand: the claim
 * is kept until the supervisor says that nothing of the child is left (S7).
 */
#ifndef BATON_RUN_H
#define BATON_RUN_H

#include "cli/cli.h"
#include "cli/guard.h"
#include "telemetry/callbacks.h"

/* How far the child has got. */
enum run_child { CHILD_NONE, CHILD_STARTING, CHILD_RUNNING, CHILD_ENDING };

struct telemetry;

struct health {
	pid_t pid; /* 0: none runs */
	int fd;
	uint64_t next_ns;
	uint64_t limit_ns;
	int64_t score; /* the last one; -1: none yet */
	size_t n;
	bool is_odd;    /* the last number that it has printed was not a score */
	char text[256]; /* the end of what it has printed */
};

/* What the callbacks of one leadership have come to. */
struct hooks {
	struct callbacks *callbacks; /* NULL: there are none */
	struct callback_queue *queue;
	uint64_t term;      /* the term whose on-lost is still to run; 0: none */
	const char *reason; /* of its end, as far as it is known */
	uint64_t seen_term; /* of the last leader that we have heard of */
	char seen[BATON_NAME_MAX + 1];
	bool gate_runs;
	bool is_open;   /* the gate: the command may be started */
	bool is_ending; /* on-lost was begun */
	bool is_ended;
};

struct run {
	struct settings *s;
	struct guard_plan plan;
	struct baton *b;
	struct baton_election *e;
	pid_t guard;
	int guard_fd; /* its pidfd; -1: the guard is dead, and all that it has started */
	int socket;
	int signals;
	int timer;
	struct health health;

	/* timings, in nanoseconds */
	uint64_t end_ns; /* from the last good renewal's send to the KILL */
	uint64_t lease_ns;
	uint64_t margin_ns; /* so long before the end of the lease all must be dead */

	int child;
	pid_t group;
	uint64_t term;
	uint64_t began_ns;   /* when we began */
	uint64_t try_ns;     /* when the first try to lead began */
	uint64_t started_ns; /* when the child was started */
	uint64_t restart_ns; /* when to start it again; 0: not */
	uint64_t backoff_ns;
	uint64_t stop_ns;     /* when the stop under way is over */
	uint64_t overdue_ns;  /* since when we see that the guard is late; 0: it isn't */
	int cant_run;         /* errno of exec */
	int status;           /* wait status, if has_status */
	bool has_status;      /* told from inside a PID namespace */
	unsigned n_refused;   /* refusals in a row, for another reason than is_late */
	bool is_refused;      /* the command was not started */
	bool is_late;         /* because there was no time left for it */
	bool is_lost;         /* LOST was pulled, and no BECAME since */
	uint64_t lost_term;   /* the end of this term's work is yet to be said; 0: none */
	bool is_leading;      /* between BECAME and LOST */
	bool is_twin_leading; /* another candidate has our id, and leads */
	bool is_stopping;
	bool is_done;
	int guard_error; /* errno: why the guard ended by itself; 0: it didn't */
	bool has_left;   /* stopping, and nothing runs: the leadership is given back */
	bool is_anew;    /* begin anew instead of ending */
	int stop_signal; /* the signal that asked us to stop; 0: none */
	int exit_code;
	uint64_t give_up_ns; /* when to give up waiting for the leadership; or for the end */
	uint64_t notify_ns;  /* the next sign of life for the service manager */
	uint64_t notify_every_ns;
	struct hooks hooks;
	struct telemetry *telemetry;
};

/* ---- deadline.c: the word, and its enforcement by the supervisor ---- */

/* Sets the word up by the timings of the open store. 0, or an exit code. */
int deadline_setup(struct run *r);
/* Moves the word if the store has confirmed us. */
void deadline_move(struct run *r);
/* The word as the library knows it; 0: it knows nothing newer. */
uint64_t deadline_word(const struct run *r);
/* A new leadership: the word begins anew. */
void deadline_begin(struct run *r);
/* Kills what the guard should have killed. */
void deadline_enforce(struct run *r);
/* When to look again; UINT64_MAX: no need. */
uint64_t deadline_next_ns(const struct run *r);
/* The guard is dead, or has to be: nothing that it has started survives this. */
void deadline_take_over(struct run *r);

/* ---- health.c ---- */

/* Who we are, for the command's environment. */
void health_setup(struct run *r);
/* Before the election is started: with a health command, a candidate is ill until it is known to be
 * well. 0, or a code of the library. */
int health_begin(struct run *r);
/* There is a health command that counts, and it has not answered yet. */
bool health_is_unknown(const struct run *r);
/* Whether the last answer allows it. */
bool health_may_campaign(const struct run *r);
void health_tick(struct run *r);
void health_read(struct run *r);
/* A child of ours has ended, and its number is still its own: what it has left is killed. */
void health_ended(const struct run *r, pid_t pid);
/* The same child is reaped. */
void health_reaped(struct run *r, pid_t pid, int status);
uint64_t health_next_ns(const struct run *r);
void health_done(struct run *r);

/* ---- notify.c ---- */

void notify_setup(struct run *r);
/* Says what we do, in a sentence; no longer does so after it was said that we stop. */
void notify_status(const struct run *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void notify_tick(struct run *r);

/* ---- hooks.c: the callbacks ---- */

/* After the store is open. 0, or an exit code. */
int hooks_begin(struct run *r);
void hooks_elected(struct run *r, const struct baton_event *event);
/* The gate has let us pass, or there is none. */
bool hooks_may_start(const struct run *r);
void hooks_lost(struct run *r, int reason);
/* Nothing of the command is left: begins on-lost, and says whether that has ended. */
bool hooks_are_over(struct run *r);
void hooks_changed(struct run *r, const struct baton_event *event);
int hooks_fd(const struct run *r);
void hooks_tick(struct run *r);
void hooks_end(struct run *r);

/* ---- telemetry.c: what the outside is told of this process ---- */

/* After the store is open. 0, or an exit code. */
int telemetry_begin(struct run *r);
/* When there is an election to ask. 0, or an exit code. */
int telemetry_listen(struct run *r);
/* Something happened that metrics should show soon. */
void telemetry_hurry(struct run *r);
void telemetry_tick(struct run *r);
/* The steps of a handover, for its spans: a leader was heard of, or none; we lead; the command
 * runs; the command has ended; our leadership is about to end (again when the reason is known); the
 * leadership is given back. */
void telemetry_changed(struct run *r, const struct baton_event *event);
void telemetry_became(struct run *r, const struct baton_event *event);
void telemetry_started(struct run *r);
void telemetry_child_ended(struct run *r, int status);
void telemetry_stepping_down(struct run *r, int reason);
void telemetry_released(struct run *r);
uint64_t telemetry_next_ns(const struct run *r);
/* Before the handle is closed: the last figures. False: the store hangs, and a question to it still
 * uses the handle, which stays open: the process is about to end. */
bool telemetry_last(struct run *r);
/* Waits a moment for what is still to be written. */
void telemetry_end(struct run *r);

#endif
