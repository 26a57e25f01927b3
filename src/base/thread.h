/*
 * thread.h: threads of the library. They take no signal of the process: a Ctrl-C must wake the
 * program's own threads, not one of ours.
 */
#ifndef BATON_THREAD_H
#define BATON_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* False: the system has no thread left. */
bool thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* The number of the calling thread; never 0. No other thread of this process has it, now or later.
 * A pthread_t, in contrast, belongs to another thread as soon as its own has ended. */
uint64_t thread_number(void);

#endif
