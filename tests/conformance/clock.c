/*
 * clock.c: a wall clock that is off (N8). This program's clock_gettime(), gettimeofday() and
 * time() stand before libc's, for the library too; they differ from them only after
 * clock_shift(), and only for the wall clock: A4 is about the others.
 */
#include "suite.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t shift_s;

void clock_shift(int64_t by_s)
{
	atomic_store(&shift_s, by_s);
}

/* Parameters are called as libc calls them, for those who compare the two. */
int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
	long rc = syscall(SYS_clock_gettime, clock_id, tp);

	if (rc == 0 && (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE))
		tp->tv_sec += (time_t)atomic_load(&shift_s);
	return (int)rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec now;

	(void)tz;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	tv->tv_sec = now.tv_sec;
	tv->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *timer)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (timer != NULL)
		*timer = now.tv_sec;
	return now.tv_sec;
}
