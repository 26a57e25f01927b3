/* callbacks.c: see callbacks.h. Children are seen by pidfds, times by one timerfd. */
#include "telemetry/callbacks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "telemetry/json.h"

#define N_OWN 11
#define LINE_MAX_BYTES 4096 /* PIPE_BUF: such a write is whole, or not at all */
#define BUCKETS 20          /* of powers of two in milliseconds */
#define CHANGES_MAX 16      /* of on-change that run at once; there may be many elections */

enum result { RESULT_OK, RESULT_FAILED, RESULT_KILLED, RESULT_DROPPED, RESULTS };

static const char *const kind_names[] = {"elected", "lost", "change"};
static const char *const result_names[] = {"ok", "failed", "killed", "dropped"};

/* A command that waits for its turn, or runs. */
struct job {
	struct job *next;
	int kind;
	char *variables[N_OWN + 1]; /* NAME=value, NULL at the end */
	const char *role;
	void (*done)(void *arg, bool ok);
	void *arg;
};

struct callback_queue {
	struct callback_queue *next;
	struct callbacks *owner;
	char election[BATON_NAME_MAX + 1];
	char id[BATON_NAME_MAX + 1];
	struct job *waiting; /* in order */
	struct job *running;
	pid_t pid; /* of what runs; 0: none */
	int pidfd;
	bool is_killed;
	bool gives_way; /* it was killed for another command, and runs again */
	uint64_t started_ns;
	uint64_t at_ns; /* when its time is over */
	uint64_t limit_ns;
};

struct callbacks {
	struct callbacks_plan plan;
	struct callback_queue *queues;
	int epoll;
	int timer;
	int fifo;
	bool is_full;       /* the pipe is full, and that was said */
	unsigned n_changes; /* of on-change that run */
	uint64_t counts[CALLBACK_KINDS][RESULTS];
	uint64_t buckets[CALLBACK_KINDS][BUCKETS];
	double seconds[CALLBACK_KINDS];
};

static bool open_fifo(struct callbacks *c, struct baton_error *err);
static void tell_fifo(struct callback_queue *q, const struct callback_event *event);
static struct job *job_new(const struct callback_queue *q, const struct callback_event *event);
static void job_free(struct job *job);
static void run_next(struct callback_queue *q);
static void end_job(struct callback_queue *q, int status);
static void kill_running(struct callback_queue *q);
static void arm_timer(struct callbacks *c);

struct callbacks *callbacks_new(const struct callbacks_plan *plan, struct baton_error *err)
{
	struct callbacks *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		*err = (struct baton_error){.code = BATON_E_MEMORY, .text = "no memory"};
		return NULL;
	}
	c->plan = *plan;
	c->fifo = -1;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN};

	if (c->epoll < 0 || c->timer < 0 ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &event) != 0) {
		err->code = BATON_E_SYSTEM;
		(void)snprintf(err->text, sizeof(err->text), "callbacks need descriptors: %s",
			       strerror(errno));
		callbacks_free(c);
		return NULL;
	}
	if (plan->fifo != NULL && !open_fifo(c, err)) {
		callbacks_free(c);
		return NULL;
	}
	return c;
}

char **callbacks_environment(size_t n_free)
{
	static const char *const ours[] = {"BATON_", "NOTIFY_SOCKET=", "WATCHDOG_", "TRACEPARENT="};
	size_t n = 0;
	size_t used = n_free;

	while (environ[n] != NULL)
		n++;
	char **out = calloc(n + n_free + 1, sizeof(*out));

	for (size_t i = 0; out != NULL && i < n; i++) {
		bool keep = true;

		for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]); k++)
			keep = keep && strncmp(environ[i], ours[k], strlen(ours[k])) != 0;
		if (keep)
			out[used++] = environ[i];
	}
	return out;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

void callbacks_free(struct callbacks *c)
{
	if (c == NULL)
		return;
	while (c->queues != NULL) {
		struct callback_queue *q = c->queues;

		if (q->pid != 0) {
			(void)kill(-q->pid, SIGKILL);
			(void)waitpid(q->pid, NULL, 0);
			close_fd(q->pidfd);
		}
		job_free(q->running);
		while (q->waiting != NULL) {
			struct job *job = q->waiting;

			q->waiting = job->next;
			job_free(job);
		}
		c->queues = q->next;
		free(q);
	}
	close_fd(c->fifo);
	close_fd(c->timer);
	close_fd(c->epoll);
	free(c);
}

struct callback_queue *callbacks_queue(struct callbacks *c, const char *election, const char *id)
{
	struct callback_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	(void)snprintf(q->election, sizeof(q->election), "%s", election);
	(void)snprintf(q->id, sizeof(q->id), "%s", id);
	q->owner = c;
	q->next = c->queues;
	c->queues = q;
	return q;
}

/* ---- the pipe ---- */

static bool open_fifo(struct callbacks *c, struct baton_error *err)
{
	struct stat st;

	if (mkfifo(c->plan.fifo, 0600) != 0 && errno != EEXIST) {
		err->code = BATON_E_SYSTEM;
		(void)snprintf(err->text, sizeof(err->text), "%.150s can't be made: %s",
			       c->plan.fifo, strerror(errno));
		return false;
	}
	/* Opened for reading, too: so lines are kept while there is no reader, as many as fit. */
	c->fifo = open(c->plan.fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (c->fifo < 0 || fstat(c->fifo, &st) != 0 || !S_ISFIFO(st.st_mode)) {
		err->code = BATON_E_INVALID;
		(void)snprintf(err->text, sizeof(err->text),
			       "%.150s is not a pipe that we may open; make one with mkfifo(1)",
			       c->plan.fifo);
		return false;
	}
	return true;
}

static void put_number(struct bytes *out, const char *key, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	json_member(out, key, text); /* a string: some languages lose 64 bits */
}

static void put_time(struct bytes *out)
{
	int64_t ms = clock_wall_ms();
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];
	char whole[48];

	(void)gmtime_r(&s, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(whole, sizeof(whole), "%s.%03dZ", text, (int)(ms % 1000));
	json_member(out, "time", whole);
}

static void tell_fifo(struct callback_queue *q, const struct callback_event *event)
{
	struct callbacks *c = q->owner;
	struct bytes line = {0};

	bytes_print(&line, "{");
	put_time(&line);
	json_member(&line, "event", kind_names[event->kind]);
	json_member(&line, "election", q->election);
	json_member(&line, "id", q->id);
	json_member(&line, "role", event->is_leader ? "leader" : "standby");
	put_number(&line, "term", event->term);
	put_number(&line, "old_term", event->old_term);
	json_member(&line, "leader", event->leader);
	json_member(&line, "old_leader", event->old_leader);
	json_member(&line, "leader_address", event->leader_address);
	json_member(&line, "reason", event->reason);
	json_member(&line, "traceparent", event->traceparent);
	bytes_print(&line, "}\n");
	bool is_told = !line.has_failed && line.n <= LINE_MAX_BYTES &&
		       write(c->fifo, line.at, line.n) == (ssize_t)line.n;

	bytes_done(&line);
	if (!is_told) {
		c->counts[event->kind][RESULT_DROPPED]++;
		if (!c->is_full)
			c->plan.say(BATON_LOG_WARN, NULL,
				    "no process reads the pipe of --notify-fifo: "
				    "events are dropped until there is room");
	}
	c->is_full = !is_told;
}

/* ---- the queue ---- */

void callbacks_put(struct callback_queue *q, const struct callback_event *event,
		   void (*done)(void *arg, bool ok), void *arg)
{
	struct callbacks *c = q->owner;

	if (c->fifo >= 0)
		tell_fifo(q, event);
	struct job *job = c->plan.commands[event->kind] != NULL ? job_new(q, event) : NULL;

	if (job == NULL) {
		/* Without memory a gate stays closed, and nothing else is held up. */
		if (done != NULL)
			done(arg, c->plan.commands[event->kind] == NULL);
		return;
	}
	job->done = done;
	job->arg = arg;
	if (event->kind == CALLBACK_CHANGE)
		callbacks_cancel(q, CALLBACK_CHANGE); /* one that still waits: the newest counts */
	struct job **end = &q->waiting;

	while (*end != NULL && (event->kind == CALLBACK_CHANGE || (*end)->kind != CALLBACK_CHANGE))
		end = &(*end)->next;
	job->next = *end;
	*end = job;
	if (q->running != NULL && q->running->kind == CALLBACK_CHANGE &&
	    event->kind != CALLBACK_CHANGE) {
		q->gives_way = true;
		kill_running(q);
	}
	run_next(q);
}

void callbacks_cancel(struct callback_queue *q, int kind)
{
	struct job **at = &q->waiting;

	while (*at != NULL) {
		struct job *job = *at;

		if (job->kind != kind) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		if (job->done != NULL)
			job->done(job->arg, false);
		job_free(job);
	}
	/* An on-change that runs is left to end: its successor comes after it. */
	if (q->running != NULL && q->running->kind == kind && kind != CALLBACK_CHANGE)
		kill_running(q);
}

void callbacks_limit(struct callback_queue *q, uint64_t at_ns)
{
	if (q->limit_ns == at_ns)
		return;
	q->limit_ns = at_ns;
	arm_timer(q->owner);
}

/* When what runs is killed. */
static uint64_t end_ns(const struct callback_queue *q)
{
	bool is_bound = q->running->kind != CALLBACK_CHANGE && q->limit_ns != 0;

	if (q->running->kind == CALLBACK_LOST && q->limit_ns <= q->started_ns)
		is_bound = false; /* it was late when it began */
	return is_bound && q->limit_ns < q->at_ns ? q->limit_ns : q->at_ns;
}

static void kill_running(struct callback_queue *q)
{
	if (q->pid == 0)
		return;
	(void)kill(-q->pid, SIGKILL);
	q->is_killed = true;
}

/* ---- commands ---- */

static char *variable(const char *name, const char *value)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s", name, value) >= 0 ? text : NULL;
}

static void job_free(struct job *job)
{
	for (size_t i = 0; job != NULL && i < N_OWN; i++)
		free(job->variables[i]);
	free(job);
}

static struct job *job_new(const struct callback_queue *q, const struct callback_event *event)
{
	struct job *job = calloc(1, sizeof(*job));
	char term[24];
	char old_term[24];

	if (job == NULL)
		return NULL;
	job->kind = event->kind;
	job->role = event->is_leader ? "leader" : "standby";
	(void)snprintf(term, sizeof(term), "%llu", (unsigned long long)event->term);
	(void)snprintf(old_term, sizeof(old_term), "%llu", (unsigned long long)event->old_term);
	const char *const pairs[N_OWN][2] = {
		{"BATON_EVENT", kind_names[event->kind]},
		{"BATON_ELECTION", q->election},
		{"BATON_ID", q->id},
		{"BATON_ROLE", job->role},
		{"BATON_TERM", term},
		{"BATON_OLD_TERM", old_term},
		{"BATON_LEADER", event->leader},
		{"BATON_OLD_LEADER", event->old_leader},
		{"BATON_LEADER_ADDRESS", event->leader_address},
		{"BATON_REASON", event->reason},
		{"TRACEPARENT", event->traceparent},
	};

	for (size_t i = 0; i < N_OWN; i++) {
		job->variables[i] = variable(pairs[i][0], pairs[i][1]);
		if (job->variables[i] == NULL) {
			job_free(job);
			return NULL;
		}
	}
	return job;
}

/*
 * What the callback prints goes where our log goes: the standard output of `run` is its command's.
 */
static int spawn_command(struct callback_queue *q, char **argv, char **environment)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	sigset_t all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (posix_spawn_file_actions_init(&files) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	(void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&files, 2, 1);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	(void)posix_spawnattr_setpgroup(&attr, 0);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	int error = posix_spawn(&q->pid, "/bin/sh", &files, &attr, argv, environment);

	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&files);
	if (error != 0)
		q->pid = 0;
	return error;
}

/* Our variables stand first: of two with one name, a program takes the first. */
static char **make_environment(const struct callbacks *c, const struct job *job)
{
	size_t n = 0;

	while (c->plan.environment[n] != NULL)
		n++;
	char **out = calloc(n + N_OWN + 1, sizeof(*out));

	for (size_t i = 0; out != NULL && i < N_OWN; i++)
		out[i] = job->variables[i];
	size_t used = N_OWN;

	for (size_t i = 0; out != NULL && i < n; i++)
		if (strncmp(c->plan.environment[i], "TRACEPARENT=", 12) != 0)
			out[used++] = c->plan.environment[i];
	return out;
}

/* 0, or an errno. */
static int start_job(struct callback_queue *q)
{
	struct callbacks *c = q->owner;
	struct job *job = q->running;
	char *script = NULL;
	char **environment = make_environment(c, job);
	int error = ENOMEM;

	if (environment != NULL && asprintf(&script, "%s \"$@\"", c->plan.commands[job->kind]) < 0)
		script = NULL;
	if (script != NULL) {
		char *argv[] = {"sh",
				"-c",
				script,
				"sh",
				(char *)(uintptr_t)kind_names[job->kind],
				q->election,
				(char *)(uintptr_t)job->role,
				NULL};

		error = spawn_command(q, argv, environment);
	}
	free(script);
	free(environment);
	if (error != 0)
		return error;
	struct epoll_event event = {.events = EPOLLIN};

	q->pidfd = (int)syscall(SYS_pidfd_open, q->pid, 0);
	if (q->pidfd >= 0)
		(void)epoll_ctl(c->epoll, EPOLL_CTL_ADD, q->pidfd, &event);
	return 0;
}

static void say(const struct callback_queue *q, const char *what)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "the callback on-%s of %.253s %.100s",
		       kind_names[q->running->kind], q->election, what);
	q->owner->plan.say(BATON_LOG_WARN, q->election, text);
}

static void run_next(struct callback_queue *q)
{
	unsigned *n_changes = &q->owner->n_changes;

	while (q->running == NULL && q->waiting != NULL) {
		bool is_change = q->waiting->kind == CALLBACK_CHANGE;

		if (is_change && *n_changes >= CHANGES_MAX)
			break; /* until another on-change has ended */
		*n_changes += is_change;
		q->running = q->waiting;
		q->waiting = q->running->next;
		q->running->next = NULL;
		q->is_killed = q->gives_way = false;
		q->started_ns = clock_boot_ns();
		q->at_ns = q->started_ns + q->owner->plan.timeout_ns;
		int error = start_job(q);

		if (error != 0) {
			char what[128];

			(void)snprintf(what, sizeof(what), "can't be run: %s", strerror(error));
			say(q, what);
			end_job(q, 1 << 8);
		}
	}
	arm_timer(q->owner);
}

static void count_job(struct callback_queue *q, int result)
{
	struct callbacks *c = q->owner;
	int kind = q->running->kind;
	uint64_t ns = clock_boot_ns() - q->started_ns;
	uint64_t ms = ns / CLOCK_NS_PER_MS;
	size_t i = 0;

	while (i + 1 < BUCKETS && ms >= (uint64_t)1 << i)
		i++;
	c->counts[kind][result]++;
	c->buckets[kind][i]++;
	c->seconds[kind] += (double)ns / 1e9;
}

/* The command that ran has ended. Its done() may put the next one. */
static void end_job(struct callback_queue *q, int status)
{
	struct job *job = q->running;
	bool is_ok = !q->is_killed && WIFEXITED(status) && WEXITSTATUS(status) == 0;

	count_job(q, q->is_killed ? RESULT_KILLED : is_ok ? RESULT_OK : RESULT_FAILED);
	q->owner->n_changes -= job->kind == CALLBACK_CHANGE;
	if (!is_ok && !q->is_killed) {
		char what[64];

		(void)snprintf(what, sizeof(what), "has ended with %s%d",
			       WIFSIGNALED(status) ? "signal " : "",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		say(q, what);
	}
	close_fd(q->pid != 0 ? q->pidfd : -1);
	q->pid = 0;
	bool is_told_again = q->gives_way;

	for (const struct job *w = q->waiting; w != NULL; w = w->next)
		is_told_again = is_told_again && w->kind != CALLBACK_CHANGE;
	q->running = NULL;
	if (is_told_again) {
		struct job **end = &q->waiting;

		while (*end != NULL)
			end = &(*end)->next;
		*end = job;
		return;
	}
	if (job->done != NULL)
		job->done(job->arg, is_ok);
	job_free(job);
}

/* ---- the loop's side ---- */

int callbacks_fd(const struct callbacks *c)
{
	return c->epoll;
}

bool callbacks_owns(const struct callbacks *c, pid_t pid)
{
	for (const struct callback_queue *q = c != NULL ? c->queues : NULL; q != NULL; q = q->next)
		if (q->pid == pid)
			return true;
	return false;
}

void callbacks_process(struct callbacks *c)
{
	uint64_t times;

	(void)!read(c->timer, &times, sizeof(times));
	for (struct callback_queue *q = c->queues; q != NULL; q = q->next) {
		siginfo_t info = {0};
		int status;

		if (q->pid == 0)
			continue;
		if (waitid(P_PID, (id_t)q->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == q->pid) {
			/* Kills what the command has left in its group; its number is still its
			 * own. */
			(void)kill(-q->pid, SIGKILL);
			if (waitpid(q->pid, &status, 0) == q->pid)
				end_job(q, status);
		} else if (clock_boot_ns() >= end_ns(q) && !q->is_killed) {
			say(q, "takes too long and is killed");
			kill_running(q);
		}
		run_next(q);
	}
	/* Queues that waited until an on-change of another election had ended. */
	for (struct callback_queue *q = c->queues; q != NULL; q = q->next)
		if (q->waiting != NULL && q->running == NULL)
			run_next(q);
	arm_timer(c);
}

void callbacks_forget(struct callbacks *c)
{
	for (struct callback_queue *q = c != NULL ? c->queues : NULL; q != NULL; q = q->next) {
		if (q->pid == 0)
			continue;
		q->is_killed = true;
		end_job(q, SIGKILL);
		run_next(q);
	}
}

static void arm_timer(struct callbacks *c)
{
	uint64_t at_ns = UINT64_MAX;
	struct itimerspec when = {0};

	for (const struct callback_queue *q = c->queues; q != NULL; q = q->next)
		if (q->pid != 0 && !q->is_killed && end_ns(q) < at_ns)
			at_ns = end_ns(q);
	if (at_ns != UINT64_MAX)
		when.it_value = (struct timespec){.tv_sec = (time_t)(at_ns / CLOCK_NS_PER_S),
						  .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S)};
	(void)timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- metrics ---- */

void callbacks_metrics(const struct callbacks *c,
		       void (*emit)(void *arg, const struct baton_metric *metric), void *arg)
{
	struct baton_label labels[2] = {{.name = "event"}, {.name = "result"}};
	double bounds[BUCKETS];
	struct baton_metric m = {.size = sizeof(m),
				 .name = "baton_callbacks_total",
				 .help = "Callbacks, by how they ended.",
				 .unit = "",
				 .type = BATON_METRIC_COUNTER,
				 .labels = labels,
				 .n_labels = 2};

	for (int k = 0; k < CALLBACK_KINDS; k++) {
		for (int r = 0; r < RESULTS; r++) {
			labels[0].value = kind_names[k];
			labels[1].value = result_names[r];
			m.value = (double)c->counts[k][r];
			emit(arg, &m);
		}
	}
	m = (struct baton_metric){.size = sizeof(m),
				  .name = "baton_callback_seconds",
				  .help = "How long callbacks took.",
				  .unit = "seconds",
				  .type = BATON_METRIC_HISTOGRAM,
				  .labels = labels,
				  .n_labels = 1,
				  .bounds = bounds,
				  .n_buckets = BUCKETS};
	for (int i = 0; i < BUCKETS; i++)
		/* cppcheck-suppress unreadVariable // read by emit(), through the struct */
		bounds[i] = i + 1 < BUCKETS ? (double)((UINT64_C(1) << i)) / 1e3 : INFINITY;
	for (int k = 0; k < CALLBACK_KINDS; k++) {
		/* cppcheck-suppress unreadVariable // the same */
		labels[0].value = kind_names[k];
		m.counts = c->buckets[k];
		m.count = 0;
		for (int i = 0; i < BUCKETS; i++)
			m.count += m.counts[i];
		m.sum = c->seconds[k];
		emit(arg, &m);
	}
}
