/*
 * lane.c: the threads that call the driver. The loop puts jobs in, the lane carries them out, in
 * batches where it can, and posts them back. A renewal has a lane of its own, so that nothing
 * queues in front of it; releases go before all else in the campaign lane, candidates' profiles
 * come last, and wait a moment after a release, so that the next leader goes first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "runtime/messages.h"
#include "runtime/runtime.h"

/* L2: a store writes one thing after the other, and the candidate that takes over what we gave back
 * has to write. What only shows us to others waits this long, and lets that go first. */
#define YIELD_NS (10 * CLOCK_NS_PER_MS)

static void *lane_main(void *arg);

int lane_start(struct baton *b, int kind, struct baton_error *err)
{
	struct lane *lane = &b->lanes[kind];
	int code = 0;

	if (lane->running)
		return 0;
	if (lane->driver_lane == NULL)
		code = b->driver->lane_open(b->store, kind, &lane->driver_lane, err);
	if (code != 0)
		return code;
	if (lane->batch == NULL)
		lane->batch = batch_new();
	if (lane->batch == NULL) {
		err->code = BATON_E_MEMORY;
		(void)strcpy(err->text, "out of memory");
		return err->code;
	}
	if (!thread_start(&lane->thread, kind == BATON_LANE_WATCH ? watch_main : lane_main, lane))
		return text_fail_limits(err);
	lane->running = true;
	return 0;
}

void lane_stop(struct lane *lane)
{
	if (lane->running) {
		(void)pthread_mutex_lock(&lane->lock);
		lane->quit = true;
		(void)pthread_cond_signal(&lane->wake);
		(void)pthread_mutex_unlock(&lane->lock);
		if (lane->kind == BATON_LANE_WATCH)
			lane->handle->driver->watch_wake(lane->driver_lane);
		(void)pthread_join(lane->thread, NULL);
	}
	lane->running = false;
}

/*
 * Of the jobs that will no longer run, only strays are to be freed: the other jobs belong to a
 * lease or an election.
 */
static void drop_strays(struct lane *lane)
{
	for (int q = 0; q < LANE_QUEUES; q++) {
		for (struct message *m = lane->first[q], *next; m != NULL; m = next) {
			struct stray *s = (struct stray *)(void *)m;

			next = m->next;
			if (s->job.kind != JOB_STRAY)
				continue;
			free(s->claim);
			free(s);
		}
	}
}

void lane_done(struct lane *lane)
{
	if (lane->driver_lane != NULL)
		lane->handle->driver->lane_close(lane->driver_lane);
	lane->driver_lane = NULL;
	batch_free(lane->batch);
	lane->batch = NULL;
	drop_strays(lane);
}

void lane_put(struct lane *lane, struct job *job, bool first)
{
	/* Jobs that only show us to others have a queue of their own: between campaigns, they would
	 * break up the batches. */
	bool shows = job->kind == JOB_PUBLISH || job->kind == JOB_WITHDRAW;
	int q = first ? 0 : shows ? 2 : 1;

	job->busy = true;
	job->m.kind = MSG_DONE;
	job->m.next = NULL;
	(void)pthread_mutex_lock(&lane->lock);
	*lane->last[q] = &job->m;
	lane->last[q] = &job->m.next;
	(void)pthread_mutex_unlock(&lane->lock);
	/* Not under the lock: the lane would wake up only to wait for it. The lane ends after
	 * us. */
	(void)pthread_cond_signal(&lane->wake);
}

/* Takes the first job, and those right behind it that one call can serve as well. */
static size_t lane_take(struct lane *lane, struct job **jobs)
{
	int q = lane->first[0] != NULL ? 0 : lane->first[1] != NULL ? 1 : 2;
	size_t n = 0;

	while (n < LANE_BATCH && lane->first[q] != NULL) {
		struct job *job = (struct job *)(void *)lane->first[q];

		if (n > 0 && (job->kind != jobs[0]->kind || job->executor != jobs[0]->executor ||
			      job->epoch != jobs[0]->epoch))
			break;
		jobs[n++] = job;
		lane->first[q] = job->m.next;
	}
	if (lane->first[q] == NULL)
		lane->last[q] = &lane->first[q];
	return n;
}

int lane_wait(struct lane *lane, uint64_t ns)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / CLOCK_NS_PER_S);
	until.tv_nsec = (long)(ns % CLOCK_NS_PER_S);
	return pthread_cond_timedwait(&lane->wake, &lane->lock, &until);
}

/* How long the profiles have to wait; 0: not at all, or there is something more urgent. */
static uint64_t yield_ns(const struct lane *lane)
{
	uint64_t now_ns = clock_boot_ns();
	bool is_urgent = lane->first[0] != NULL || lane->first[1] != NULL || lane->quit;

	return is_urgent || now_ns >= lane->yields_ns ? 0 : lane->yields_ns - now_ns;
}

static void *lane_main(void *arg)
{
	struct lane *lane = arg;
	struct job *jobs[LANE_BATCH];

	(void)pthread_mutex_lock(&lane->lock);
	while (true) {
		uint64_t wait_ns = lane->first[2] != NULL ? yield_ns(lane) : 0;

		if (wait_ns > 0) {
			lane_wait(lane, wait_ns);
			continue;
		}
		if (lane->quit) /* what is left would only be tried in vain */
			break;
		size_t n = lane_take(lane, jobs);

		if (n == 0) {
			(void)pthread_cond_wait(&lane->wake, &lane->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&lane->lock);
		batch_run(lane, jobs, n);
		if (jobs[0]->kind == JOB_RELEASE)
			lane->yields_ns = clock_boot_ns() + YIELD_NS;
		for (size_t i = 0; i + 1 < n; i++)
			jobs[i]->m.next = &jobs[i + 1]->m;
		loop_post_list(lane->handle, &jobs[0]->m, &jobs[n - 1]->m);
		(void)pthread_mutex_lock(&lane->lock);
	}
	(void)pthread_mutex_unlock(&lane->lock);
	return NULL;
}

void lane_watch(struct lane *lane, struct baton_election *e, bool add)
{
	struct message *w = &e->watch[add ? 0 : 1];

	w->next = NULL;
	w->kind = add ? MSG_WATCH : MSG_UNWATCHED;
	(void)pthread_mutex_lock(&lane->lock);
	*lane->changes_last = w;
	lane->changes_last = &w->next;
	(void)pthread_cond_signal(&lane->wake);
	(void)pthread_mutex_unlock(&lane->lock);
	lane->handle->driver->watch_wake(lane->driver_lane);
}
