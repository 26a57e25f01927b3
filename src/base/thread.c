/*
 * thread.c: see thread.h. All signals are blocked while a thread is made, and the thread inherits
 * that. The exceptions are the signals that say that the thread itself did something impossible: if
 * they were blocked, they would kill the process without its handler for them.
 */
#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>

bool thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	sigset_t blocked;
	sigset_t before;

	(void)sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(&blocked, own[i]);
	(void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
	int code = pthread_create(thread, NULL, run, arg);

	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code == 0;
}

uint64_t thread_number(void)
{
	static _Atomic uint64_t last;
	static _Thread_local uint64_t mine;

	if (mine == 0)
		mine = atomic_fetch_add(&last, 1) + 1;
	return mine;
}
