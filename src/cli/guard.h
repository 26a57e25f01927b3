/*
 * guard.h: between the supervisor, its guard, and the child.
 *
 *     supervisor ---- socket, shared page ---- guard ---- fork, lock, exec ---- child
 *
 * The page has one word that changes: the instant, on the boot clock, at which all that the guard
 * has started must be dead. The supervisor moves it after every good renewal, and no longer does so
 * when it can't; the guard acts on it without being told. A successor that waits for the work lock
 * reads the word, too (worklock.c). The rest of the page is what only an open store can tell, and
 * is written once, before the first START.
 */
#ifndef BATON_GUARD_H
#define BATON_GUARD_H

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GUARD_TEXT 256
/* BATON_TERM, TRACEPARENT, BATON_ELECTION, BATON_ID: the first in an environment */
#define GUARD_N_OWN 4

struct guard_page {
	_Atomic uint64_t kill_ns; /* written by the supervisor, read by all */
	int64_t offset_ns;        /* of our time namespace's boot clock, if has_offset */
	bool has_offset;
	uint64_t drain_ns;        /* TERM comes so long before KILL */
	uint64_t late_ns;         /* the guard lets the supervisor go first by this */
	uint64_t limit_ns;        /* from the last good renewal to the KILL, at most */
	bool is_replaced_at_once; /* if the supervisor dies, nothing makes a successor wait */
	mode_t work_mode;
	char traceparent[64]; /* for the next child; written before its START */
	bool traceparent_is_foreign;
	char work[PATH_MAX];   /* the work lock's file; "": this store has none */
	char cgroup[PATH_MAX]; /* what the child is put into; "": none */
};

/* What keeps descendants from escaping, beyond process group and reaper. */
enum isolate { ISOLATE_NO, ISOLATE_NAMESPACE, ISOLATE_CGROUP };

enum guard_kind {
	/* to the guard */
	GUARD_START = 1, /* number: the term; text: our id */
	GUARD_STOP,      /* value: the first signal; number: KILL at this instant at the latest */
	GUARD_SIGNAL,    /* value: to be forwarded */
	/* to the supervisor */
	GUARD_FORKED,   /* value: the process group */
	GUARD_STARTED,  /* it has the work lock and is in time: exec follows */
	GUARD_WAITING,  /* the work lock is held; text: by whom */
	GUARD_CANT_RUN, /* value: errno of exec */
	GUARD_REFUSED,  /* no lock, or too late: nothing was started; value: errno; text */
	GUARD_PAUSED,   /* value: the signal that stopped the child (job control) */
	GUARD_REAPED,   /* the process group's number may be reused from now on */
	GUARD_STATUS,   /* value: the child's wait status, from inside a PID namespace */
	GUARD_ENDED,    /* value: wait status; number: 1 if not by itself; nothing is left */
};

struct guard_message {
	int kind;
	int value;
	uint64_t number;
	char text[GUARD_TEXT];
};

/* All that the guard has to know; made before it is forked, and never changed. */
struct guard_plan {
	struct guard_page *page;
	int page_fd;          /* of the page, for a successor to find in /proc; -1: none */
	int socket;           /* our end of it, in the guard and up to exec in the child */
	int self;             /* a pidfd of the guard, in the guard */
	pid_t pid;            /* of the guard, in the guard */
	int terminal;         /* give it to the child; or -1 */
	uint64_t patience_ns; /* between a voluntary stop and the KILL */
	int policy;           /* of scheduling, and the niceness: the child's, not the guard's */
	int nice;
	int on_loss;
	int isolate;
	char **command;
	char **environment; /* has room for our own */
	const char *election;
	int work_fd;   /* of the work lock's file, in the guard and in the child */
	sigset_t mask; /* of signals, when we began: the child gets it */
};

/* Never returns. */
_Noreturn void guard_main(struct guard_plan *plan);

/* In the child, between fork and exec. Never returns. */
_Noreturn void child_main(const struct guard_plan *plan, const struct guard_message *start);

/* Opens the work lock's file, in the guard: it keeps what the child locks. -1 with errno. */
int worklock_open(const struct guard_plan *plan);
/* Takes the work lock, in the child, and keeps it for all that come after exec. -1 with errno. */
int worklock_take(const struct guard_plan *plan, uint64_t term);

/* Chooses which of the two we may have; before the guard is forked. */
void isolate_choose(struct guard_plan *plan);
/* Makes the cgroup of this guard, if a cgroup was chosen. 0, or an exit code after saying why. */
int isolate_make(const struct guard_plan *plan, pid_t guard);
/* Enters the cgroup, if there is one. -1 with errno. */
int isolate_enter(const struct guard_plan *plan);
/* Kills all in the cgroup, and removes it when it is empty. */
void isolate_kill(const struct guard_plan *plan);
void isolate_done(const struct guard_plan *plan);
/* Ends what a dead guard has left in a cgroup of its own. */
void isolate_end_left(const char *path, unsigned long long guard, unsigned long long start);

/* Sends a message over the socket; a message to a dead process is lost. If there is no room,
 * messages that can come without end are lost, too (SIGNAL, PAUSED), and those whose sender must
 * keep the time (STOP, REAPED). */
void guard_send(int socket, int kind, int value, uint64_t number, const char *text);

/* Signals all children of this process, also those that it inherited. */
void tree_signal(int sig);
/* The start time of a process, in the kernel's ticks since the host's boot, whatever the time
 * namespace; 0: there is none. Seen from two of them, it may differ by a tick. */
uint64_t tree_start_time(pid_t pid);
bool tree_is_same_start(uint64_t a, uint64_t b);
/* How far the boot clock of our time namespace is ahead of the host's; false: not known. */
bool tree_boot_offset(int64_t *ns);
/* The process that an entry of /proc is named after; 0: none. */
pid_t tree_pid(const char *entry);

#endif
