/*
 * callbacks.h: commands that are run when a leadership begins, has ended, or when the leader
 * changes; and a pipe that gets one JSON line for each.
 *
 *     on-elected  a gate: the work begins when it has exited with 0
 *     on-lost     after the work has stopped; the claim is given back when it has ended
 *     on-change   after a change of leader; only the newest change counts
 *
 * For one election, one command runs at a time, in order. A running on-change gives way to the
 * other two: it is killed, and runs again after them. Over all elections, a few on-change run at a
 * time. Each command has a process group of its own, which is killed when its time is over, and
 * when it has ended.
 *
 * All of it runs on one thread, that of the caller's loop, which polls callbacks_fd() and calls
 * callbacks_process(). No call waits. A command gets our environment without our own variables, and
 * no secret.
 */
#ifndef BATON_CALLBACKS_H
#define BATON_CALLBACKS_H

#include <baton.h>
#include <sys/types.h>

enum callback_kind { CALLBACK_ELECTED, CALLBACK_LOST, CALLBACK_CHANGE, CALLBACK_KINDS };

struct callbacks_plan {
	const char *commands[CALLBACK_KINDS]; /* lines of shell; NULL: none */
	const char *fifo;                     /* NULL: none */
	uint64_t timeout_ns;                  /* of each */
	char **environment;                   /* without variables of our own */
	/* A sentence for the log, about this election; NULL: about none. */
	void (*say)(int level, const char *election, const char *text);
};

/* What a command is told. Strings are copied. */
struct callback_event {
	int kind;
	bool is_leader; /* this candidate, from now on */
	uint64_t term;
	uint64_t old_term;
	const char *leader; /* "": none */
	const char *old_leader;
	const char *leader_address;
	const char *reason; /* of a loss, in a word; "" */
	const char *traceparent;
};

struct callbacks;
struct callback_queue; /* of one election */

/* Our environment without our own variables: the store's URL, its secrets, the service manager's
 * socket. The first n_free places of it are left free. NULL: no memory. */
char **callbacks_environment(size_t n_free);

/* NULL after filling in err: the pipe can't be had, or no memory. */
struct callbacks *callbacks_new(const struct callbacks_plan *plan, struct baton_error *err);
/* Kills what still runs. Takes NULL. */
void callbacks_free(struct callbacks *c);

/* Lives as long as the callbacks. NULL: no memory. */
struct callback_queue *callbacks_queue(struct callbacks *c, const char *election, const char *id);

/*
 * Runs the command for this event when its turn comes, and then calls done(): ok is whether it has
 * exited with 0. Without a command for this kind, done() is called at once. done may be NULL.
 */
void callbacks_put(struct callback_queue *q, const struct callback_event *event,
		   void (*done)(void *arg, bool ok), void *arg);
/* Kills the command for this kind if it runs, and takes it from the queue if it doesn't yet; either
 * way its done() is called with false. An on-change that runs is left to end. */
void callbacks_cancel(struct callback_queue *q, int kind);
/* No command for a leadership runs past this instant of CLOCK_BOOTTIME; 0: no limit. An on-lost
 * that begins later, as after a freeze, has all its time: what was set up must be taken down. */
void callbacks_limit(struct callback_queue *q, uint64_t at_ns);

/* Polls readable when callbacks_process() has something to do. */
int callbacks_fd(const struct callbacks *c);
void callbacks_process(struct callbacks *c);
/* Whether this child is one of ours: then only callbacks_process() may reap it. */
bool callbacks_owns(const struct callbacks *c, pid_t pid);
/* All children were killed and reaped by the caller. */
void callbacks_forget(struct callbacks *c);

/* baton_callbacks_total, baton_callback_seconds: as baton_metrics() does. */
void callbacks_metrics(const struct callbacks *c,
		       void (*emit)(void *arg, const struct baton_metric *metric), void *arg);

#endif
