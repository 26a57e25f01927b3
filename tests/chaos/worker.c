/*
 * worker.c: what `baton run` runs under chaos: a command with bad manners. It, and every process
 * that it brings into the world, appends a stamp to a file every few milliseconds; the rig (run)
 * reads from that file whether two terms ever worked at once.
 *
 *     chaos_worker FILE SEAT MANNERS [RESOURCE]
 *
 * Manners are letters: f forks; g forks into another process group; d becomes a daemon, in a
 * session of its own; r runs: forks and leaves every few milliseconds, so that no process id is
 * good for long; s ignores the signals that ask it to end; c closes every descriptor; q quits, and
 * leaves its descendants behind.
 *
 * The main process also writes to a fenced resource (fence.h), if there is one.
 *
 * The file is opened anew for each stamp, so that who has closed everything can go on stamping. It
 * is never created: whoever survives the rig ends when the rig removes its folder, or after a
 * while.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos/fence.h"

#define STAMP_MS 3
#define STEPS_OF_RUNNER 3 /* stamps between two forks */
#define STEPS_OF_QUITTER 15
#define LIFE_NS (120 * CLOCK_NS_PER_S)

enum flag { FLAG_MAIN = 1, FLAG_CLOSED = 2 };

/* As the rig reads it: 32 bytes, so an append is whole or not there. */
struct stamp {
	uint64_t term;
	uint64_t at_ns; /* on the boot clock, read before the append */
	uint32_t pid;
	uint32_t seat;
	uint32_t flags;
	uint32_t spare;
};

struct worker {
	const char *path;
	const char *manners;
	uint64_t end_ns;
	const char *resource; /* NULL: none */
	struct fence fence;
	struct stamp stamp;
};

static bool has(const struct worker *w, char manner)
{
	return strchr(w->manners, manner) != NULL;
}

static void stamp(struct worker *w)
{
	w->stamp.at_ns = clock_boot_ns();
	int fd = open(w->path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || w->stamp.at_ns >= w->end_ns ||
	    write(fd, &w->stamp, sizeof(w->stamp)) != (ssize_t)sizeof(w->stamp))
		_exit(1);
	(void)close(fd);
	fence_work(&w->fence, w->stamp.term, w->stamp.seat, STAMP_MS);
}

static _Noreturn void work(struct worker *w)
{
	if (has(w, 'c')) {
		(void)syscall(SYS_close_range, 0, ~0u, 0);
		w->stamp.flags |= FLAG_CLOSED;
	}
	if ((w->stamp.flags & FLAG_MAIN) != 0)
		fence_open(&w->fence, w->resource);
	for (unsigned step = 1;; step++) {
		stamp(w);
		if (has(w, 'q') && (w->stamp.flags & FLAG_MAIN) != 0 && step == STEPS_OF_QUITTER)
			_exit(0);
	}
}

static void forked(struct worker *w)
{
	w->stamp.pid = (uint32_t)getpid();
	w->stamp.flags &= ~(uint32_t)FLAG_MAIN;
	stamp(w);
}

static _Noreturn void run_away(struct worker *w)
{
	(void)setsid();
	if (has(w, 'c')) {
		(void)syscall(SYS_close_range, 0, ~0u, 0);
		w->stamp.flags |= FLAG_CLOSED;
	}
	for (unsigned step = 1;; step++) {
		if (step % STEPS_OF_RUNNER == 0 && fork() > 0)
			_exit(0);
		w->stamp.pid = (uint32_t)getpid();
		stamp(w);
	}
}

static void bring_up(struct worker *w, char manner)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(1);
	if (pid > 0)
		return;
	if (manner == 'd') {
		(void)setsid();
		if (fork() > 0)
			_exit(0);
	}
	if (manner == 'g')
		(void)setpgid(0, 0);
	forked(w);
	if (manner == 'r')
		run_away(w);
	work(w);
}

int main(int argc, char **argv)
{
	static const char kinds[] = "fgdr";
	static const int requests[] = {SIGTERM, SIGINT, SIGHUP};
	const char *term = getenv("BATON_TERM");

	if (argc < 4 || argc > 5 || term == NULL) {
		(void)fprintf(stderr, "usage: baton run NAME -- chaos_worker FILE SEAT MANNERS "
				      "[RESOURCE]\n");
		return 64;
	}
	struct worker w = {.path = argv[1],
			   .manners = argv[3],
			   .end_ns = clock_boot_ns() + LIFE_NS,
			   .resource = argv[4],
			   .fence = {.fd = -1},
			   .stamp = {.term = strtoull(term, NULL, 10),
				     .pid = (uint32_t)getpid(),
				     .seat = (uint32_t)strtoul(argv[2], NULL, 10),
				     .flags = FLAG_MAIN}};

	stamp(&w);
	for (size_t i = 0; has(&w, 's') && i < sizeof(requests) / sizeof(requests[0]); i++)
		(void)signal(requests[i], SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for anybody here */
	for (const char *kind = kinds; *kind != '\0'; kind++)
		if (has(&w, *kind))
			bring_up(&w, *kind);
	work(&w);
}
