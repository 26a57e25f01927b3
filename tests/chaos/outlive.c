/*
 * outlive.c: chaos for a deadline that another process trusts (baton_options.outlive). Three seats
 * contend. A seat is two processes: the elector holds a handle and writes term and deadline into
 * shared memory, and the application beside it works until the deadline that stands there, whatever
 * has become of its elector. Electors are killed at random, some after a freeze that is longer than
 * a lease.
 *
 *   chaos_outlive URL KILLS    no two terms may ever work at once; the control comes first: without
 *                              outlive, the same rig must find that they do
 *
 * "file:" alone is a directory of its own. What was seen is sure: a term worked at least from the
 * instant after the first look that said so to the instant before the last. It must never count an
 * overlap that isn't one, nor pass without its control.
 */
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "baton.h"

#define SEATS 3
#define LEASE_MS 900
#define TERMS_MAX 4096
#define CONTROL_KILLS 8
#define STUCK_NS (60 * CLOCK_NS_PER_S)

/* One term as the applications saw it. */
struct span {
	_Atomic uint64_t term;
	_Atomic uint64_t from_ns;
	_Atomic uint64_t to_ns;
};

/* What an elector tells the application beside it: as long as now is before the deadline, it leads
 * in that term. `turn` is odd while it is written. */
struct seat {
	_Atomic uint64_t turn;
	_Atomic uint64_t term;
	_Atomic uint64_t deadline_ns;
	pid_t elector;
	pid_t application;
	struct span spans[TERMS_MAX];
	_Atomic size_t n_spans;
};

static struct seat *seats; /* in shared memory */
static char dir[128];
static pid_t owner; /* of that directory: none of its children */

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fprintf(stderr, "outlive: ");
	(void)vfprintf(stderr, format, args); /* NOLINT(clang-analyzer-valist.Uninitialized) */
	(void)fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

/* ---- the application ---- */

static void application_works(struct seat *seat, uint64_t term, uint64_t before_ns,
			      uint64_t after_ns)
{
	size_t n = atomic_load(&seat->n_spans);
	struct span *last = n > 0 ? &seat->spans[n - 1] : NULL;

	if (last != NULL && atomic_load(&last->term) == term) {
		atomic_store(&last->to_ns, before_ns);
		return;
	}
	if (n == TERMS_MAX)
		return;
	atomic_store(&seat->spans[n].term, term);
	atomic_store(&seat->spans[n].from_ns, after_ns);
	atomic_store(&seat->spans[n].to_ns, after_ns);
	atomic_store(&seat->n_spans, n + 1);
}

static _Noreturn void application(struct seat *seat)
{
	for (;;) {
		uint64_t before_ns = clock_boot_ns();
		uint64_t turn = atomic_load(&seat->turn);
		uint64_t term = atomic_load(&seat->term);
		uint64_t deadline_ns = atomic_load(&seat->deadline_ns);
		bool is_whole = turn % 2 == 0 && atomic_load(&seat->turn) == turn;
		uint64_t after_ns = clock_boot_ns();

		if (is_whole && term != 0 && after_ns < deadline_ns)
			application_works(seat, term, before_ns, after_ns);
		(void)poll(NULL, 0, 1);
	}
}

/* ---- the elector ---- */

static void elector_tells(struct seat *seat, uint64_t term, int64_t deadline_ns)
{
	uint64_t turn = atomic_load(&seat->turn) | 1; /* one that was killed may have left it odd */

	atomic_store(&seat->turn, turn);
	atomic_store(&seat->term, term);
	atomic_store(&seat->deadline_ns, (uint64_t)deadline_ns);
	atomic_store(&seat->turn, turn + 1);
}

static _Noreturn void elector(struct seat *seat, const char *url, bool outlive)
{
	struct baton_election_options eo;
	struct baton_options o;
	struct baton_error err;
	struct baton_election *e;
	struct baton_event ev;
	struct baton *b;

	baton_options_init(&o);
	o.lease_ms = LEASE_MS;
	o.outlive = outlive;
	baton_election_options_init(&eo);
	eo.tell_renewals = true;
	if (baton_open(url, &o, &b, &err) != 0 ||
	    baton_election_new(b, "outlive", &eo, &e, &err) != 0)
		die("%s", err.text);
	(void)baton_election_start(e);
	while (baton_wait(b, -1, &ev) >= 0) {
		if (ev.kind == BATON_EVENT_BECAME || ev.kind == BATON_EVENT_RENEWED)
			elector_tells(seat, ev.term, ev.deadline_boot_ns);
		else if (ev.kind == BATON_EVENT_LOST)
			elector_tells(seat, 0, 0);
	}
	_exit(1);
}

/* ---- the rig ---- */

static pid_t child(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		die("no process can be made");
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
		_exit(1);
	return pid;
}

static void start_elector(struct seat *seat, const char *url, bool outlive)
{
	pid_t pid = child();

	if (pid == 0)
		elector(seat, url, outlive);
	seat->elector = pid; /* shared: the child must not write it */
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static bool trusts(const struct seat *seat)
{
	return atomic_load(&seat->term) != 0 && clock_boot_ns() < atomic_load(&seat->deadline_ns);
}

/* The seat that leads in the highest term, above that one. */
static struct seat *await_leader(uint64_t above)
{
	uint64_t limit_ns = clock_boot_ns() + STUCK_NS;

	for (;;) {
		struct seat *first = NULL;

		for (size_t i = 0; i < SEATS; i++)
			if (trusts(&seats[i]) && atomic_load(&seats[i].term) > above &&
			    (first == NULL ||
			     atomic_load(&seats[i].term) > atomic_load(&first->term)))
				first = &seats[i];
		if (first != NULL)
			return first;
		if (clock_boot_ns() > limit_ns)
			die("nobody leads after a minute");
		(void)poll(NULL, 0, 1);
	}
}

static size_t count_overlaps(bool is_told)
{
	size_t n = 0;

	for (size_t i = 0; i < SEATS; i++)
		for (size_t j = 0; j < SEATS; j++)
			for (size_t a = 0; a < atomic_load(&seats[i].n_spans); a++)
				for (size_t b = 0; b < atomic_load(&seats[j].n_spans); b++) {
					const struct span *x = &seats[i].spans[a];
					const struct span *y = &seats[j].spans[b];

					if (x->term >= y->term || y->from_ns >= x->to_ns)
						continue;
					n++;
					if (is_told)
						(void)printf("terms %" PRIu64 " and %" PRIu64
							     " overlap by %.3f "
							     "ms\n",
							     x->term, y->term,
							     (double)(x->to_ns - y->from_ns) / 1e6);
				}
	return n;
}

/* Kills so many leaders; how often two terms worked at once. */
static size_t play(const char *url, unsigned kills, bool outlive)
{
	uint64_t term = 0;

	(void)memset(seats, 0, SEATS * sizeof(*seats));
	for (size_t i = 0; i < SEATS; i++) {
		pid_t pid = child();

		if (pid == 0)
			application(&seats[i]);
		seats[i].application = pid;
		start_elector(&seats[i], url, outlive);
	}
	for (unsigned i = 0; i < kills; i++) {
		struct seat *leader = await_leader(term);

		term = atomic_load(&leader->term);
		/* At any moment between two renewals; some are frozen first, so that they wake up
		 * after their lease, and are killed then. */
		(void)poll(NULL, 0, (int)(random() % LEASE_MS));
		if (random() % 4 == 0) {
			(void)kill(leader->elector, SIGSTOP);
			(void)poll(NULL, 0, LEASE_MS * 3 / 2);
			(void)kill(leader->elector, SIGCONT);
		}
		end(leader->elector);
		start_elector(leader, url, outlive);
	}
	(void)await_leader(term);
	(void)poll(NULL, 0, LEASE_MS);
	for (size_t i = 0; i < SEATS; i++) {
		end(seats[i].elector);
		end(seats[i].application);
	}
	return count_overlaps(outlive);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	if (getpid() != owner)
		return;
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
	unsigned kills = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	unsigned seed = (unsigned)clock_boot_ns();
	char url[512];

	if (kills == 0) {
		(void)fprintf(stderr, "usage: chaos_outlive URL KILLS\n");
		return 2;
	}
	seats = mmap(NULL, SEATS * sizeof(*seats), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seats == MAP_FAILED)
		die("no shared memory");
	(void)snprintf(url, sizeof(url), "%s", argv[1]);
	if (strcmp(argv[1], "file:") == 0) {
		const char *place = getenv("TMPDIR");

		(void)snprintf(dir, sizeof(dir), "%s/outlive-XXXXXX",
			       place != NULL ? place : "/tmp");
		if (mkdtemp(dir) == NULL)
			die("no directory can be made");
		owner = getpid();
		(void)atexit(remove_dir);
		(void)snprintf(url, sizeof(url), "file:%s", dir);
	}
	srandom(seed);
	size_t control = play(url, CONTROL_KILLS, false);

	(void)printf("without outlive: %d kills, %zu overlaps\n", CONTROL_KILLS, control);
	(void)fflush(stdout);
	size_t overlaps = play(url, kills, true);

	(void)printf("with outlive: %u kills, %zu overlaps; seed %u\n", kills, overlaps, seed);
	if (control == 0)
		die("the control has found no overlap, so the run proves nothing");
	return overlaps == 0 ? 0 : 1;
}
