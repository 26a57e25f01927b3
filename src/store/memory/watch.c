/*
 * watch.c: the watch lane: waits until something that it watches may have changed (hints.c).
 */
#include "store/memory/memory.h"

int memory_watch_add(void *lane, const char *name, uint64_t cookie)
{
	struct memory_lane *l = lane;
	int rc;

	pthread_mutex_lock(&l->handle->memory->lock);
	rc = memory_watches_add(l, name, cookie);
	pthread_mutex_unlock(&l->handle->memory->lock);
	return rc;
}

void memory_watch_remove(void *lane, const char *name, uint64_t cookie)
{
	struct memory_lane *l = lane;

	pthread_mutex_lock(&l->handle->memory->lock);
	memory_watches_remove(l, name, cookie);
	pthread_mutex_unlock(&l->handle->memory->lock);
}

int memory_watch_wait(void *lane, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct memory_lane *l = lane;
	struct memory_fault fault;
	int n = 0;
	int outcome = memory_enter(l, call, BATON_MEMORY_WATCH, &fault);

	if (outcome == 0) {
		n = memory_watches_take(l, call, cookies, max < INT32_MAX ? max : INT32_MAX);
		outcome = BATON_OUTCOME_OK;
	}
	outcome = memory_leave(l, call, &fault, outcome);
	if (outcome == BATON_OUTCOME_OK)
		return n;
	/* The hints that were taken are lost. So the next wait that succeeds hints at
	 * everything. */
	pthread_mutex_lock(&l->handle->memory->lock);
	l->broken = true;
	pthread_mutex_unlock(&l->handle->memory->lock);
	return call->error.code;
}

void memory_watch_wake(void *lane)
{
	struct memory_lane *l = lane;
	struct memory *m = l->handle->memory;

	pthread_mutex_lock(&m->lock);
	l->woken = true;
	pthread_cond_signal(&l->wake);
	pthread_cond_broadcast(&m->changed); /* a fault may hold the lane up */
	pthread_mutex_unlock(&m->lock);
}
