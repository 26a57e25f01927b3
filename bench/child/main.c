/*
 * main.c: bench-child: what the measurements start and kill. A program of its own, with the library
 * and nothing else: what a process has mapped is what its end takes, and the time that it needs to
 * begin, so nothing may be in it that only who measures needs.
 *
 *   leads URL [LEASE_MS]  becomes leader, says so on standard output, and waits to be killed
 *   stays, brief          what others run; says so, and waits to be killed, or ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton.h>

static int lead(const char *url, const char *lease_ms)
{
	struct baton_options options;
	struct baton_election *e;
	struct baton_event event;
	struct baton_error err;
	struct baton *b;

	baton_options_init(&options);
	if (lease_ms != NULL)
		options.lease_ms = strtoull(lease_ms, NULL, 10);
	if (baton_open(url, &options, &b, &err) != 0 ||
	    baton_election_new(b, "crash", NULL, &e, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	(void)baton_election_start(e);
	while (!baton_is_leader(e))
		(void)baton_wait(b, 1000, &event);
	if (write(STDOUT_FILENO, "L", 1) != 1)
		return 1;
	while (true)
		(void)pause();
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "leads") == 0)
		return lead(argv[2], argv[3]);
	if (argc != 2 || write(STDOUT_FILENO, "R", 1) != 1)
		return 2;
	while (strcmp(argv[1], "stays") == 0)
		(void)pause();
	return 0;
}
