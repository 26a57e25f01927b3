/* stepper.c: see stepper.h. ptrace(2), with the registers of two machines. */
#include "store/stepper.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls whose failure a driver must survive; the rest (futex, brk, close) can't fail usefully. */
static const long worthy[] = {
	SYS_openat,
	SYS_read,
	SYS_write,
	SYS_fsync,
	SYS_linkat,
	SYS_renameat,
	SYS_renameat2,
	SYS_unlinkat,
	SYS_mkdirat,
	SYS_fcntl,
	SYS_fstat,
	SYS_newfstatat,
	SYS_getdents64,
	SYS_lseek,
	SYS_statfs,
	SYS_fstatfs,
	SYS_fchmod,
	SYS_inotify_init1,
	SYS_inotify_add_watch,
#ifdef SYS_stat
	SYS_stat,
	SYS_mkdir,
	SYS_rename,
#endif
};

static void demand(bool fact, const char *what)
{
	if (fact)
		return;
	(void)fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
	abort();
}

void stepper_start(struct stepper *s, void (*prepare)(void *arg), void (*run)(void *arg), void *arg)
{
	int status;

	*s = (struct stepper){.pid = fork()};
	demand(s->pid >= 0, "fork");
	if (s->pid == 0) {
		prepare(arg);
		demand(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "traceme");
		(void)kill(getpid(), SIGSTOP);
		run(arg);
		(void)kill(getpid(), SIGSTOP);
		_exit(0);
	}
	demand(waitpid(s->pid, &status, 0) == s->pid && WIFSTOPPED(status), "the child's start");
	demand(ptrace(PTRACE_SETOPTIONS, s->pid, NULL,
		      (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) == 0,
	       "options");
}

/* To the next entry or exit of a system call. False: it has finished, or is gone. */
static bool advance(struct stepper *s)
{
	int status;
	long signal = 0;

	for (;;) {
		demand(ptrace(PTRACE_SYSCALL, s->pid, NULL, (void *)signal) == 0, "step");
		demand(waitpid(s->pid, &status, 0) == s->pid, "wait");
		if (!WIFSTOPPED(status)) {
			s->gone = true;
			return false;
		}
		int stop = WSTOPSIG(status);

		if (stop == (SIGTRAP | 0x80))
			return true;
		if (stop == SIGSTOP) {
			s->finished = true;
			return false;
		}
		signal = stop;
	}
}

static bool is_entry(struct stepper *s)
{
	struct __ptrace_syscall_info info;

	demand(ptrace(PTRACE_GET_SYSCALL_INFO, s->pid, (void *)sizeof(info), &info) > 0, "info");
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	s->call = (long)info.entry.nr;
	return true;
}

bool stepper_goto(struct stepper *s, int n)
{
	while (n > 0) {
		if (!advance(s))
			return false;
		n -= is_entry(s);
	}
	return true;
}

#if defined(__x86_64__)
static void skip_call(pid_t pid)
{
	demand(ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, regs.orig_rax),
		      (void *)-1L) == 0,
	       "skip");
}

static void set_result(pid_t pid, long result)
{
	demand(ptrace(PTRACE_POKEUSER, pid, (void *)offsetof(struct user, regs.rax),
		      (void *)result) == 0,
	       "result");
}
#elif defined(__aarch64__)
static void skip_call(pid_t pid)
{
	int number = -1;
	struct iovec io = {.iov_base = &number, .iov_len = sizeof(number)};

	demand(ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &io) == 0, "skip");
}

static void set_result(pid_t pid, long result)
{
	struct user_regs_struct regs;
	struct iovec io = {.iov_base = &regs, .iov_len = sizeof(regs)};

	demand(ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &io) == 0, "registers");
	regs.regs[0] = (unsigned long)result;
	demand(ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &io) == 0, "result");
}
#else
static void skip_call(pid_t pid)
{
	(void)pid;
	demand(false, "the registers of this machine are needed here");
}

static void set_result(pid_t pid, long result)
{
	skip_call(pid);
	(void)result;
}
#endif

bool stepper_fail(struct stepper *s, int error)
{
	bool worth = false;

	for (size_t i = 0; i < sizeof(worthy) / sizeof(worthy[0]); i++)
		worth = worth || worthy[i] == s->call;
	if (!worth)
		return false;
	skip_call(s->pid);
	demand(advance(s), "the failing call");
	set_result(s->pid, -error);
	return true;
}

void stepper_finish(struct stepper *s)
{
	while (!s->gone && !s->finished)
		(void)advance(s);
}

void stepper_kill(struct stepper *s)
{
	int status;

	if (s->gone)
		return;
	(void)kill(s->pid, SIGKILL);
	while (waitpid(s->pid, &status, 0) == s->pid && WIFSTOPPED(status))
		(void)kill(s->pid, SIGKILL);
	s->gone = true;
}
