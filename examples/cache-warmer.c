/*
 * cache-warmer: one instance of a web service refreshes a cache that all of them read.
 *
 *     cc cache-warmer.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE]
 *
 * For programs that have an event loop already: baton_fd() is polled beside everything else, and
 * no thread of the program ever waits in baton. --once ends after three rounds as leader.
 */
#include <baton.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define ROUND_MS 100     /* minutes, in earnest */
#define ROUND_TAKES_MS 5 /* how long one may take */

enum { TIMER, SIGNAL, BATON, FDS };

static void warm(uint64_t term)
{
	printf("cache refreshed in term %" PRIu64 "\n", term);
}

/* Returns whether there was a round. A round that could outlast the lead isn't begun. */
static bool on_timer(const struct baton_election *e, int fd)
{
	uint64_t ticks;

	if (read(fd, &ticks, sizeof(ticks)) != (ssize_t)sizeof(ticks) || !baton_is_leader(e) ||
	    baton_time_left_ms(e) < ROUND_TAKES_MS)
		return false;
	warm(baton_term(e));
	return true;
}

static void on_events(struct baton *b)
{
	struct baton_event event;

	while (baton_wait(b, 0, &event) == 1) {
		if (event.kind == BATON_EVENT_BECAME)
			printf("warms the cache from now on, in term %" PRIu64 "\n", event.term);
		else if (event.kind == BATON_EVENT_LOST)
			printf("warms no more: %s\n", event.text);
		else if (event.kind == BATON_EVENT_CHANGED)
			printf("led by %s\n", event.leader[0] != '\0' ? event.leader : "nobody");
		else if (event.kind == BATON_EVENT_ERROR)
			printf("trouble: %s %s\n", event.text, event.detail);
	}
}

static int loop(struct baton *b, const struct baton_election *e, const sigset_t *signals, bool once)
{
	const struct itimerspec every = {.it_value = {.tv_nsec = ROUND_MS * 1000000L},
					 .it_interval = {.tv_nsec = ROUND_MS * 1000000L}};
	struct pollfd fds[FDS];
	int rounds = 0;

	fds[TIMER].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	fds[SIGNAL].fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	fds[BATON].fd = baton_fd(b);
	(void)timerfd_settime(fds[TIMER].fd, 0, &every, NULL);
	for (int i = 0; i < FDS; i++)
		fds[i].events = POLLIN;
	while (!(once && rounds == 3) && poll(fds, FDS, -1) > 0 && fds[SIGNAL].revents == 0) {
		if (fds[BATON].revents != 0)
			on_events(b);
		if (fds[TIMER].revents != 0)
			rounds += on_timer(e, fds[TIMER].fd);
	}
	(void)close(fds[TIMER].fd);
	(void)close(fds[SIGNAL].fd);
	return 0;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	struct baton_election *e;
	struct baton_error err;
	struct baton *b;
	sigset_t signals;

	/* Before baton_open(): its threads inherit the mask, and so never take our signals. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int code = baton_election_new(b, "cache-warmer", NULL, &e, &err);

	if (code != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
	} else {
		(void)baton_election_start(e);
		code = loop(b, e, &signals, once);
	}
	baton_close(b);
	return code != 0;
}
