/*
 * clock.c: a wall clock that can be made to jump, for a server that doesn't know: it is loaded in
 * front of the C library (LD_PRELOAD) and adds the number in a file, CHAOS_CLOCK, to the time of
 * day. The file is eight bytes, nanoseconds, mapped: whoever writes it changes the time at once.
 * The clocks that count from boot stay as they are, as they do when somebody sets the date.
 *
 * Nothing here may be linked into what is shipped.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static _Atomic int64_t none;
static _Atomic int64_t *shift = &none;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CHAOS_CLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page =
		fd >= 0 ? mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (page != MAP_FAILED)
		shift = page;
	if (fd >= 0)
		(void)close(fd);
}

#define IN_PLACE_OF(name) __asm__(name) __attribute__((visibility("default")))

int shifted_clock_gettime(clockid_t clock, struct timespec *t) IN_PLACE_OF("clock_gettime");
int shifted_gettimeofday(struct timeval *restrict t, void *restrict zone)
	IN_PLACE_OF("gettimeofday");
time_t shifted_time(time_t *to) IN_PLACE_OF("time");

static int64_t wall_ns(void)
{
	struct timespec t = {0};

	(void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec + atomic_load(shift);
}

/* The kernel's own call, but for the time of day. */
int shifted_clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, t);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t now = wall_ns();

		t->tv_sec = (time_t)(now / NS_PER_S);
		t->tv_nsec = (long)(now % NS_PER_S);
	}
	return rc;
}

int shifted_gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	int64_t now = wall_ns();

	(void)zone;
	t->tv_sec = (time_t)(now / NS_PER_S);
	t->tv_usec = (suseconds_t)(now % NS_PER_S / 1000);
	return 0;
}

time_t shifted_time(time_t *to)
{
	time_t now = (time_t)(wall_ns() / NS_PER_S);

	if (to != NULL)
		*to = now;
	return now;
}
