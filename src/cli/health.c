/*
 * health.c: the health command: its exit code, or a number on its last line, is the candidate's
 * score. A command that takes longer than its interval, and longer than a second, is killed and
 * counts as 0. What a command leaves in its process group is killed when it has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run.h"

static void begin_check(struct run *r);
static void report(struct run *r, int64_t score);

void health_setup(struct run *r)
{
	static char election[BATON_NAME_MAX + 32];
	static char id[BATON_NAME_MAX + 32];

	(void)snprintf(election, sizeof(election), "BATON_ELECTION=%s", r->s->name);
	(void)snprintf(id, sizeof(id), "BATON_ID=%s", baton_id(r->b));
	/* The guard has a copy of its own, in which the child fills in all four. */
	r->plan.environment[2] = election;
	r->plan.environment[3] = id;
}

int health_begin(struct run *r)
{
	r->health.score = -1;
	return r->s->health_cmd != NULL ? baton_report_health(r->e, 0, NULL) : 0;
}

bool health_is_unknown(const struct run *r)
{
	return r->s->health_cmd != NULL && r->s->check_health != 0 && r->health.score < 0;
}

bool health_may_campaign(const struct run *r)
{
	return r->s->health_cmd == NULL || r->s->check_health == 0 ||
	       r->health.score >= r->s->min_score_permille;
}

void health_tick(struct run *r)
{
	struct health *h = &r->health;
	uint64_t now_ns = clock_boot_ns();

	if (r->s->health_cmd == NULL || r->is_stopping)
		return;
	if (h->pid != 0 && now_ns >= h->limit_ns) {
		log_say(BATON_LOG_WARN, "the health command takes too long and is killed");
		(void)kill(-h->pid, SIGKILL);
		h->limit_ns = now_ns + CLOCK_NS_PER_S;
	}
	if (h->pid == 0 && now_ns >= h->next_ns)
		begin_check(r);
}

uint64_t health_next_ns(const struct run *r)
{
	if (r->s->health_cmd == NULL || r->is_stopping)
		return UINT64_MAX;
	return r->health.pid != 0 ? r->health.limit_ns : r->health.next_ns;
}

static int spawn_check(struct health *h, const char *command, char **environment, int out)
{
	char *argv[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;

	(void)sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files) != 0)
		return -1;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&files);
		return -1;
	}
	(void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&files, out, 1);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setpgroup(&attr, 0);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	int error = posix_spawn(&h->pid, "/bin/sh", &files, &attr, argv, environment);

	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&files);
	if (error != 0)
		h->pid = 0;
	return error == 0 ? 0 : -1;
}

static void begin_check(struct run *r)
{
	struct health *h = &r->health;
	uint64_t now_ns = clock_boot_ns();
	uint64_t every_ns = (uint64_t)r->s->health_interval_ms * CLOCK_NS_PER_MS;
	int ends[2];

	h->next_ns = now_ns + (every_ns > CLOCK_NS_PER_MS ? every_ns : CLOCK_NS_PER_MS);
	h->limit_ns = now_ns + (every_ns > CLOCK_NS_PER_S ? every_ns : CLOCK_NS_PER_S);
	h->n = 0;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		report(r, 0);
		return;
	}
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
	/* The child's environment without term and trace: the store's secrets are not in it. */
	int failed = spawn_check(h, r->s->health_cmd, r->plan.environment + 2, ends[1]);

	(void)close(ends[1]);
	h->fd = ends[0];
	if (failed != 0) {
		health_done(r);
		report(r, 0);
	}
}

void health_read(struct run *r)
{
	struct health *h = &r->health;
	char piece[128];
	ssize_t n;

	while (h->fd >= 0 && (n = read(h->fd, piece, sizeof(piece))) > 0) {
		size_t keep = sizeof(h->text) - 1 - (size_t)n;

		if (h->n > keep) { /* only the end matters */
			(void)memmove(h->text, h->text + h->n - keep, keep);
			h->n = keep;
		}
		(void)memcpy(h->text + h->n, piece, (size_t)n);
		h->n += (size_t)n;
		h->text[h->n] = '\0';
	}
	if (h->fd >= 0 && n == 0) {
		(void)close(h->fd);
		h->fd = -1;
	}
}

/* A number that can't be a score is a mistake in the command, and nothing to rely on. */
static int64_t say_odd(struct health *h, const char *line)
{
	if (!h->is_odd)
		log_say(BATON_LOG_WARN,
			"the health command prints \"%.40s\", which is not from 0.0 to 1.0; it "
			"counts as 0.0 until that changes",
			line);
	h->is_odd = true;
	return 0;
}

/* The number on the last line, or -1: there is none. */
static int64_t last_number(struct health *h)
{
	while (h->n > 0 && strchr(" \r\n", h->text[h->n - 1]) != NULL)
		h->text[--h->n] = '\0';
	if (h->n == 0)
		return -1;
	const char *line = strrchr(h->text, '\n');
	int64_t score = -1;

	line = line != NULL ? line + 1 : h->text;
	if (text_parse_part(line, &score) < 0)
		return say_odd(h, line);
	h->is_odd = false;
	return score;
}

/* Kills its group, too: what is left there would pile up, and hold our standard error open. */
void health_ended(const struct run *r, pid_t pid)
{
	if (r->health.pid != 0 && pid == r->health.pid)
		(void)kill(-pid, SIGKILL);
}

void health_reaped(struct run *r, pid_t pid, int status)
{
	struct health *h = &r->health;

	if (h->pid == 0 || pid != h->pid)
		return;
	h->pid = 0;
	health_read(r);
	int64_t score = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1000 : 0;
	int64_t told = WIFEXITED(status) ? last_number(h) : -1;

	health_done(r);
	report(r, told >= 0 ? told : score);
}

static void report(struct run *r, int64_t score)
{
	if (r->e == NULL)
		return;
	/* The store's time for the first try begins with the first answer. */
	if (health_is_unknown(r))
		r->try_ns = clock_boot_ns();
	r->health.score = score;
	(void)baton_report_health(r->e, (uint32_t)score, NULL);
	if (score >= r->s->min_score_permille)
		baton_alive(r->e);
}

void health_done(struct run *r)
{
	if (r->health.pid != 0)
		(void)kill(-r->health.pid, SIGKILL);
	if (r->health.fd >= 0)
		(void)close(r->health.fd);
	r->health.fd = -1;
}
