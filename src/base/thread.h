/*
 * thread.h: threads of the library. They take no signal of the process: a Ctrl-C must wake the
 * program's own threads, not one of ours.
 */
#ifndef BATON_THREAD_H
#define BATON_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* False: the system has no thread left. */
bool thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
