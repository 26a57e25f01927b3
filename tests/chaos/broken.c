/*
 * broken.c: the command, broken on purpose, so that the rig proves that it sees. It is the real
 * program; the linker puts these functions in place of its own (--wrap). CHAOS_BROKEN lists what
 * is broken, by a comma between two:
 *
 *     lock     there is no work lock
 *     release  the claim is given back while the command still ends
 *     guard    nobody but the supervisor ends the command
 *     kill     KILL never follows TERM
 *
 * Nothing here may be linked into what is shipped.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/supervise.h"

/* The linker's names for what is wrapped, and for what it wraps. */
int __real_baton_work_lock(struct baton *b, const char *name, char *path, size_t size,
			   uint32_t *mode, struct baton_error *err);
int __wrap_baton_work_lock(struct baton *b, const char *name, char *path, size_t size,
			   uint32_t *mode, struct baton_error *err);
void __real_supervise_stop(struct run *r, int sig, bool voluntary);
void __wrap_supervise_stop(struct run *r, int sig, bool voluntary);
_Noreturn void __real_guard_main(struct guard_plan *plan);
_Noreturn void __wrap_guard_main(struct guard_plan *plan);
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

static bool is_broken(const char *what)
{
	const char *list = getenv("CHAOS_BROKEN");

	return list != NULL && strstr(list, what) != NULL;
}

int __wrap_baton_work_lock(struct baton *b, const char *name, char *path, size_t size,
			   uint32_t *mode, struct baton_error *err)
{
	return is_broken("lock") ? BATON_E_UNSUPPORTED
				 : __real_baton_work_lock(b, name, path, size, mode, err);
}

void __wrap_supervise_stop(struct run *r, int sig, bool voluntary)
{
	__real_supervise_stop(r, sig, voluntary);
	/* The next event is asked for when there is no child: that gives the claim back (S7). */
	if (is_broken("release"))
		r->child = CHILD_NONE;
}

int __wrap_kill(pid_t pid, int sig)
{
	return sig == SIGKILL && is_broken("kill") ? 0 : __real_kill(pid, sig);
}

/* ---- no guard: starts, forwards, reports; does nothing that it isn't told ---- */

static void obey(const struct guard_plan *plan, pid_t *child)
{
	struct guard_message m;
	ssize_t n = recv(plan->socket, &m, sizeof(m), MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(m) && m.kind == GUARD_START && *child == 0) {
		*child = fork();
		if (*child == 0)
			child_main(plan, &m);
		(void)setpgid(*child, *child);
		guard_send(plan->socket, GUARD_FORKED, *child, 0, "");
	} else if (n == (ssize_t)sizeof(m) && m.kind != GUARD_START && *child != 0) {
		(void)kill(-*child, m.value);
	} else if (n == 0 && *child == 0) {
		_exit(0);
	}
}

_Noreturn void __wrap_guard_main(struct guard_plan *plan)
{
	pid_t child = 0;
	int status;

	if (!is_broken("guard"))
		__real_guard_main(plan);
	(void)prctl(PR_SET_NAME, "baton-guard"); /* as the rig looks for it */
	(void)setpgid(0, 0);
	plan->pid = getpid();
	plan->self = -1;
	for (;;) {
		(void)poll(NULL, 0, 2);
		obey(plan, &child);
		if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
			child = 0;
			guard_send(plan->socket, GUARD_ENDED, status, 0, "");
		}
	}
}
