/*
 * projection: one instance reads a stream of events and keeps a view of it up to date; and the
 * view refuses to be written by a leader whose time is over.
 *
 *     cc projection.c $(pkg-config --cflags --libs baton)
 *     ./a.out [--once] [STORE [VIEW]]
 *
 * Between the question "do I lead?" and the write, a process can be stopped for hours; no lease
 * helps against that. What helps is a resource that remembers the highest term that it was written
 * in. --once applies a few events, and then tries a write of the term before.
 */
#include <baton.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define EVENTS 5

/* ---- the resource: a file with a fence beside it ---- */

struct view {
	const char *path;
	char fence[4096];
};

/*
 * The lock makes the check and the write one step, for all processes of the host: nobody can be
 * overtaken in between. In SQL the same is one statement:
 *     UPDATE view SET total = $1, term = $2 WHERE id = 1 AND term <= $2
 */
static int view_write(const struct view *v, uint64_t term, int total)
{
	struct baton_error err;
	int fd = open(v->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int code = BATON_E_SYSTEM;

	if (fd < 0 || flock(fd, LOCK_EX) != 0) {
		perror(v->path);
	} else if ((code = baton_fence_file(v->fence, term, &err)) != 0) {
		printf("refused: %s\n", err.text); /* whatever the reason: don't write */
	} else if (ftruncate(fd, 0) != 0 ||
		   dprintf(fd, "total %d, written in term %" PRIu64 "\n", total, term) < 0) {
		perror(v->path);
		code = BATON_E_SYSTEM;
	}
	if (fd >= 0)
		(void)close(fd);
	return code;
}

/* ---- the program ---- */

struct projection {
	struct view view;
	uint64_t term; /* of the last leadership */
	bool once;
};

static int project(struct baton_context *ctx, void *arg)
{
	struct projection *p = arg;
	uint64_t term = p->term = baton_context_term(ctx);
	int total = 0;

	printf("projects in term %" PRIu64 "\n", term);
	for (int event = 1; !baton_context_wait(ctx, 20); event++) {
		if (p->once && event > EVENTS)
			break;
		total += event;
		if (view_write(&p->view, term, total) != 0)
			return 1; /* resigns: another may have more luck, or leads already */
		printf("event %d: total %d\n", event, total);
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
	const char *url = argc > 1 + once ? argv[1 + once] : "file:/tmp/baton-examples";
	struct projection p = {.once = once};
	struct baton_election *e;
	struct baton_run_options o;
	struct baton_error err;
	struct baton *b;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	p.view.path = argc > 2 + once ? argv[2 + once] : "/tmp/baton-examples.view";
	(void)snprintf(p.view.fence, sizeof(p.view.fence), "%s.fence", p.view.path);
	if (baton_open(url, NULL, &b, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (baton_election_new(b, "projection", NULL, &e, &err) != 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		baton_close(b);
		return 1;
	}
	/* Without --once: contends again, a second after a failure. */
	baton_run_options_init(&o);
	o.quiet_ms = 1000;
	o.once = once;
	int code = baton_run_when_elected(e, project, &p, &o);

	if (once && code == 0)
		code = view_write(&p.view, p.term - 1, 0) == BATON_E_STALE ? 0 : 1;
	baton_close(b);
	return code != 0;
}
