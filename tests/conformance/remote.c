/*
 * remote.c: a candidate in a process of its own. This program executes itself with a hidden verb;
 * the two talk in lines through pipes. It says "ready", "became TERM", "lost TERM REASON",
 * "changed TERM LEADER", "deadline NS", "error CODE TEXT", "broken WORDS" and "ended"; it is
 * told "resign", "stop" and "end". It dies with the process that started it. What it
 * finds broken is broken for the whole case.
 */
#include "suite.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- this side ---- */

static void spawn(struct remote *k, char *const argv[], int oracle_fd)
{
	posix_spawn_file_actions_t files;
	int in[2];
	int out[2];

	CHECK(k->t, pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "no pipes");
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	if (oracle_fd > 0)
		posix_spawn_file_actions_adddup2(&files, oracle_fd, 3);
	int rc = posix_spawn(&k->pid, "/proc/self/exe", &files, NULL, argv, environ);

	posix_spawn_file_actions_destroy(&files);
	CHECK(k->t, rc == 0, "can't execute myself: %s", strerror(rc));
	close(in[0]);
	close(out[1]);
	k->in = in[1];
	k->out = out[0];
}

struct remote *remote_new(struct testcase *t, const struct remote_options *o)
{
	struct remote *k = calloc(1, sizeof(*k));
	char *argv[14] = {"conformance", "--remote"};
	char texts[11][PLACE_MAX + 300];
	int n = 2;

	CHECK(t, k != NULL && t->n_remotes < REMOTES_MAX, "no room for one more remote candidate");
	k->t = t;
	k->track = o->track;
	snprintf(k->id, sizeof(k->id), "%s", o->id);
#define ARGUMENT(...) \
	(snprintf(texts[n - 2], sizeof(texts[0]), __VA_ARGS__), argv[n] = texts[n - 2], n++)
	ARGUMENT("url=%s", o->url != NULL ? o->url : t->url);
	ARGUMENT("name=%s", o->name != NULL ? o->name : t->name);
	ARGUMENT("id=%s", o->id);
	ARGUMENT("lease=%" PRIu64, o->lease_ms != 0 ? o->lease_ms : t->lease_ms);
	ARGUMENT("clock=%" PRId64, o->clock_s);
	ARGUMENT("n=%u", o->n == 0 ? 1 : o->n);
	ARGUMENT("cycle=%d", o->cycle);
	ARGUMENT("spins=%d", o->spins);
	ARGUMENT("outlive=%d", o->outlive);
	ARGUMENT("track=%d", t->oracle != NULL ? (int)o->track : -1);
#undef ARGUMENT
	spawn(k, argv, t->oracle != NULL ? t->oracle_fd : 0);
	t->remotes[t->n_remotes++] = k;
	CHECK(t, remote_hears(k, "ready", NULL, 0, soon_ms(t)),
	      "remote candidate %s does not start", o->id);
	return k;
}

void remote_signal(struct remote *k, int signal)
{
	CHECK(k->t, k->pid > 0 && kill(k->pid, signal) == 0, "can't signal remote candidate %.60s",
	      k->id);
}

void remote_stopped(struct remote *k)
{
	int status = 0;

	remote_signal(k, SIGSTOP);
	CHECK(k->t, waitpid(k->pid, &status, WUNTRACED) == k->pid && WIFSTOPPED(status),
	      "remote candidate %.60s does not stop", k->id);
	if (k->t->oracle != NULL)
		oracle_stopped(k->t->oracle, k->track);
}

/* How it ended, as waitpid() says it. */
static int reap(struct remote *k)
{
	int status = 0;

	if (k->pid > 0)
		waitpid(k->pid, &status, 0);
	k->pid = 0;
	return status;
}

/* S9: who ended by itself, and not by a check, crashed, or a sanitizer found something. */
static void check_end(struct remote *k, int status)
{
	bool is_ours = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	CHECK(k->t, status == 0 || (is_ours && k->was_killed), "S9: remote candidate %.60s %s %d",
	      k->id, WIFSIGNALED(status) ? "died of signal" : "ended with code",
	      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void remote_kill(struct remote *k)
{
	remote_signal(k, SIGKILL);
	k->was_killed = true;
	check_end(k, reap(k));
}

void remote_say(struct remote *k, const char *command)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s\n", command);

	CHECK(k->t, write(k->in, line, (size_t)n) == n, "remote candidate %.60s does not listen",
	      k->id);
}

/* Takes the first line off the text; false: there is none yet. */
static bool take_line(struct remote *k, char *line, size_t size)
{
	char *end = memchr(k->text, '\n', k->n_text);

	if (end == NULL)
		return false;
	*end = '\0';
	snprintf(line, size, "%.500s", k->text); /* no line that it says is longer */
	size_t used = (size_t)(end + 1 - k->text);

	memmove(k->text, end + 1, k->n_text - used);
	k->n_text -= used;
	return true;
}

bool remote_hears(struct remote *k, const char *word, char *line, size_t size, uint64_t limit_ms)
{
	uint64_t end_ns = now_ns() + limit_ms * MS;
	char got[512];

	for (;;) {
		while (take_line(k, got, sizeof(got))) {
			if (strncmp(got, "error ", strlen("error ")) == 0)
				snprintf(k->error, sizeof(k->error), "%.250s", got);
			CHECK(k->t, strncmp(got, "broken ", strlen("broken ")) != 0,
			      "%s (remote candidate %.60s)", got + strlen("broken "), k->id);
			if (strncmp(got, word, strlen(word)) != 0)
				continue;
			if (line != NULL)
				snprintf(line, size, "%s", got);
			return true;
		}
		struct pollfd wait = {.fd = k->out, .events = POLLIN};
		uint64_t now = now_ns();
		int timeout_ms = now < end_ns ? (int)((end_ns - now) / MS) + 1 : 0;

		if (poll(&wait, 1, timeout_ms) == 0)
			return false;
		ssize_t n = read(k->out, k->text + k->n_text, sizeof(k->text) - k->n_text);

		if (n <= 0) {
			check_end(k, reap(k));
			return false;
		}
		k->n_text += (size_t)n;
	}
}

uint64_t remote_leads(struct remote *k, uint64_t limit_ms)
{
	char line[512];
	uint64_t term;

	CHECK(k->t, remote_hears(k, "became ", line, sizeof(line), limit_ms),
	      "remote candidate %.60s does not lead within %" PRIu64 " ms (%.100s)", k->id,
	      limit_ms, k->error);
	term = strtoull(line + strlen("became "), NULL, 10);
	CHECK(k->t, term > 0, "remote candidate %.60s leads in no term", k->id);
	return term;
}

void remote_end(struct remote *k)
{
	struct testcase *t = k->t;

	if (k->pid > 0) {
		remote_say(k, "end");
		/* It may have twenty handles, each of which may take a lease to close. */
		CHECK(t, remote_hears(k, "ended", NULL, 0, 4 * soon_ms(t)),
		      "remote candidate %.60s does not end", k->id);
		check_end(k, reap(k)); /* those of a sanitizer come last */
	}
	close(k->in);
	close(k->out);
	for (unsigned i = 0; i < t->n_remotes; i++) {
		if (t->remotes[i] == k)
			t->remotes[i--] = t->remotes[--t->n_remotes];
	}
	free(k);
}

/* ---- that side ---- */

struct role {
	struct testcase testcase;
	struct result result;
	struct local *list[LOCALS_MAX];
	struct sampler *sampler;
	char id[BATON_NAME_MAX + 1];
	char name[BATON_NAME_MAX + 1];
	unsigned n;
	int track;
	bool cycle;
	bool spins;
	bool outlive;
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One write() is one line, whichever thread says it. */
static void say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	size_t n = strlen(line);

	line[n] = '\n';
	if (write(1, line, n + 1) < 0)
		_exit(3);
}

void remote_broke(const char *words, const char *text)
{
	fprintf(stderr, "conformance: remote candidate: %s\n", text);
	say("broken %.400s", words);
}

static void tell(struct local *p, const struct baton_event *ev)
{
	const struct role *r = p->arg;

	switch (ev->kind) {
	case BATON_EVENT_BECAME:
		say("became %" PRIu64, ev->term);
		if (r->outlive)
			say("deadline %" PRId64, ev->deadline_boot_ns);
		if (r->cycle)
			baton_resign(p->e, 0);
		break;
	case BATON_EVENT_RENEWED: say("deadline %" PRId64, ev->deadline_boot_ns); break;
	case BATON_EVENT_LOST: say("lost %" PRIu64 " %d", ev->term, ev->reason); break;
	case BATON_EVENT_CHANGED: say("changed %" PRIu64 " %s", ev->term, ev->leader); break;
	case BATON_EVENT_ERROR: say("error %d %s: %s", ev->code, ev->text, ev->detail); break;
	default: break;
	}
}

static void read_role(struct role *r, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value == NULL)
			_exit(2);
		*value++ = '\0';
		if (strcmp(argv[i], "url") == 0)
			snprintf(r->testcase.url, sizeof(r->testcase.url), "%s", value);
		else if (strcmp(argv[i], "name") == 0)
			snprintf(r->name, sizeof(r->name), "%s", value);
		else if (strcmp(argv[i], "id") == 0)
			snprintf(r->id, sizeof(r->id), "%s", value);
		else if (strcmp(argv[i], "lease") == 0)
			r->testcase.lease_ms = strtoull(value, NULL, 10);
		else if (strcmp(argv[i], "clock") == 0)
			clock_shift(strtoll(value, NULL, 10));
		else if (strcmp(argv[i], "n") == 0)
			r->n = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(argv[i], "cycle") == 0)
			r->cycle = value[0] == '1';
		else if (strcmp(argv[i], "spins") == 0)
			r->spins = value[0] == '1';
		else if (strcmp(argv[i], "outlive") == 0)
			r->outlive = value[0] == '1';
		else if (strcmp(argv[i], "track") == 0)
			r->track = (int)strtol(value, NULL, 10);
	}
}

static void obey(struct role *r, const char *command)
{
	struct local *p = r->list[0];

	if (strcmp(command, "resign") == 0)
		baton_resign(p->e, (int64_t)r->testcase.lease_ms);
	else if (strcmp(command, "stop") == 0)
		baton_election_stop(p->e, 0);
}

static void is_outlived(struct baton_options *o)
{
	o->outlive = true;
}

static void tells_deadlines(struct baton_election_options *o)
{
	o->tell_renewals = true;
}

/* Nothing that it is told comes before "ready". */
static void play(struct role *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		char id[BATON_NAME_MAX + 16];

		snprintf(id, sizeof(id), r->n == 1 ? "%s" : "%s-%u", r->id, i);
		r->list[i] = local_new(
			&r->testcase,
			&(struct cast){.name = r->name,
				       .id = id,
				       .hook = tell,
				       .arg = r,
				       .tune = r->outlive ? is_outlived : NULL,
				       .tune_election = r->outlive ? tells_deadlines : NULL,
				       .idle = true});
	}
	if (r->track >= 0) {
		r->testcase.oracle = oracle_attach(3);
		r->sampler = sampler_new(&r->testcase, r->list, r->n, (unsigned)r->track,
					 r->spins   ? 0
					 : r->cycle ? SAMPLE_OFTEN_NS
						    : SAMPLE_NS);
	}
	say("ready");
	for (unsigned i = 0; i < r->n; i++)
		while (faults_retry(baton_election_start(r->list[i]->e)))
			;
}

int remote_main(int argc, char **argv)
{
	static struct role r;
	char command[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r.testcase.result = &r.result;
	r.track = -1;
	read_role(&r, argc, argv);
	faults_begin();
	play(&r);
	/* The end of the input is the end of the parent. */
	while (fgets(command, sizeof(command), stdin) != NULL) {
		command[strcspn(command, "\n")] = '\0';
		if (strcmp(command, "end") == 0)
			break;
		obey(&r, command);
	}
	if (r.sampler != NULL)
		sampler_end(r.sampler);
	while (r.testcase.n_locals > 0)
		local_close(r.testcase.locals[0]);
	say("ended");
	return 0;
}
