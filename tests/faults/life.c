/*
 * life.c: a whole life of two candidates, from open to close, in which one call of the system
 * fails: the first, the second, and so on until there is no such call left; for each kind of
 * failure and each store. Each life is a child of its own. In every one of them
 *
 *   - nothing crashes, nothing leaks: neither memory (under ASan) nor descriptors;
 *   - nobody leads beside another, and terms grow (the oracle of tests/lib);
 *   - whoever is told of a failure is told a sentence;
 *   - the one failure over, every step can be taken: it is tried again until it works.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baton.h"
#include "fault.h"
#include "lists.h"
#include "oracle.h"

#define LEASE_MS 300
#define PATIENCE_NS (10 * (uint64_t)1000000000)
#define LIFE_S 60
#define JOBS 12
#define MISSES 3    /* lives without the failure, until there is none left to wait for */
#define READ_STEP 5 /* there are many reads, much alike: every fifth, unless all are asked for */
#define NAME "job"
#define UNFIRED 3 /* the exit code of such a life */

struct candidate {
	struct baton *b;
	struct baton_election *e;
	char id[BATON_NAME_MAX + 1];
	_Atomic uint64_t leads_in; /* by its events; 0: it doesn't */
	_Atomic uint64_t highest;
};

/* What the child is at, for those who find it hung. In memory that the parent shares. */
static char *step;
static struct candidate two[2];
static struct oracle *oracle;
static _Atomic bool sampling;
static _Atomic bool told_of_inotify;
static char url[300];
static char path[256]; /* of the fence's file */

static _Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void give_up(const char *format, ...)
{
	const char *fired = fault_fired();
	va_list args;

	va_start(args, format);
	(void)fprintf(stderr, "%s (%s failed): ", step, fired != NULL ? fired : "nothing");
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

/* ---- what is checked all the time ---- */

static void demand_sentence(const char *text)
{
	if (strlen(text) < 10 || strchr(text, ' ') == NULL || strstr(text, "(null)") != NULL)
		give_up("\"%s\" is no sentence", text);
}

/* True: it went well. Else it has said why, and is worth another try. */
static bool is_done(int code, const struct baton_error *err)
{
	if (code >= 0)
		return true;
	demand_sentence(baton_strerror(code));
	if (err != NULL)
		demand_sentence(err->text);
	if (err != NULL && err->code != code)
		give_up("it returns %d and says %d", code, err->code);
	if (fault_fired() == NULL && code != BATON_E_NOT_LEADER && code != BATON_E_TIMEOUT &&
	    code != BATON_E_NO_CANDIDATE)
		give_up("without any failure: %s", err != NULL ? err->text : baton_strerror(code));
	return false;
}

/* S8: became and lost alternate, in growing terms. */
static void heard(void *arg, const struct baton_event *ev)
{
	struct candidate *c = arg;

	switch (ev->kind) {
	case BATON_EVENT_BECAME:
		if (c->leads_in != 0 || ev->term <= c->highest)
			give_up("S8: became in %" PRIu64 " after %" PRIu64, ev->term, c->highest);
		c->leads_in = c->highest = ev->term;
		break;
	case BATON_EVENT_LOST:
		if (c->leads_in != ev->term)
			give_up("S8: lost %" PRIu64 ", led in %" PRIu64, ev->term, c->leads_in);
		c->leads_in = 0;
		break;
	case BATON_EVENT_ERROR:
		demand_sentence(ev->text);
		if (ev->code == BATON_E_UNAVAILABLE) /* then the store has said why */
			demand_sentence(ev->detail);
		if (strstr(ev->detail, "inotify") != NULL)
			told_of_inotify = true;
		break;
	default: break;
	}
}

static bool ask_leader(const void *candidate)
{
	return baton_is_leader(candidate);
}

static uint64_t ask_term(const void *candidate)
{
	return baton_term(candidate);
}

static void *sample(void *arg)
{
	(void)arg;
	while (sampling) {
		for (unsigned i = 0; i < 2; i++) {
			const struct oracle_subject s = {ask_leader, ask_term, two[i].e};

			oracle_sample(oracle, i, &s);
		}
		(void)poll(NULL, 0, 1);
	}
	return NULL;
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir != NULL && readdir(dir) != NULL)
		n++;
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

/* ---- steps: each is tried until it works ---- */

static uint64_t until_ns;

static void begin(const char *what)
{
	(void)snprintf(step, 128, "%s", what);
	until_ns = oracle_now_ns() + PATIENCE_NS;
}

/* Between two tries. */
static void wait_a_little(void)
{
	if (oracle_now_ns() > until_ns)
		give_up("it never works again");
	(void)poll(NULL, 0, 2);
}

static void open_one(struct candidate *c, const char *id)
{
	struct baton_options o;
	struct baton_error err = {0};

	baton_options_init(&o);
	o.lease_ms = LEASE_MS;
	o.id = id;
	begin("open");
	while (!is_done(baton_open(url, &o, &c->b, &err), &err))
		wait_a_little();
	(void)snprintf(c->id, sizeof(c->id), "%s", id);
}

static void enter(struct candidate *c)
{
	struct baton_election_options o;
	struct baton_error err = {0};

	baton_election_options_init(&o);
	o.metadata = "a few words";
	o.handler = heard;
	o.handler_arg = c;
	begin("new");
	while (!is_done(baton_election_new(c->b, NAME, &o, &c->e, &err), &err))
		wait_a_little();
	begin("start");
	while (!is_done(baton_election_start(c->e), NULL))
		wait_a_little();
}

static struct candidate *await_leader(const char *what)
{
	begin(what);
	for (;; wait_a_little())
		for (unsigned i = 0; i < 2; i++)
			if (baton_is_leader(two[i].e))
				return &two[i];
}

static void await_renewal(const struct candidate *c)
{
	struct baton_stats s;

	begin("renew");
	for (;; wait_a_little())
		if (baton_get_stats(c->b, &s) == 0 && s.renewals_ok > 0)
			return;
}

static void await_standby(struct candidate *c)
{
	struct baton_status s;
	struct baton_error err = {0};

	begin("stand by");
	for (;; wait_a_little())
		if (baton_is_leader(c->e) ||
		    (baton_get_status(c->e, &s) == 0 && s.leader[0] != '\0' &&
		     is_done(baton_election_condition(c->e, &err), &err)))
			return;
}

static bool shows(const struct baton_candidate *pair, const char *id, const char *metadata)
{
	const struct baton_candidate *c = &pair[strcmp(pair[0].id, id) != 0];

	return strcmp(c->id, id) == 0 && strcmp(c->metadata, metadata) == 0;
}

static void look_around(struct candidate *c)
{
	struct baton_candidate list[4];
	struct baton_observed status;
	struct baton_error err = {0};

	begin("report health");
	while (!is_done(baton_report_health(c->e, 900, "a few more words"), NULL))
		wait_a_little();
	begin("list candidates");
	for (;; wait_a_little()) {
		int n = test_candidates(c->b, NAME, list, 4, &err);

		if (is_done(n, &err) && n == 2 && shows(list, c->id, "a few more words") &&
		    shows(list, two[c == &two[0]].id, "a few words"))
			break;
	}
	begin("observe");
	while (!is_done(baton_observe(c->b, NAME, &status, &err), &err))
		wait_a_little();
}

static void resign(void)
{
	struct candidate *c = await_leader("lead before resigning");

	begin("resign");
	while (baton_is_leader(c->e) && !is_done(baton_resign(c->e, 0), NULL))
		wait_a_little();
}

static void transfer(void)
{
	struct baton_error err = {0};

	for (;;) {
		struct candidate *c = await_leader("lead before a transfer");
		struct candidate *to = &two[c == &two[0]];

		begin("transfer");
		if (is_done(baton_transfer(c->e, to->id, &err), &err))
			return;
		wait_a_little();
	}
}

static void give_orders(void)
{
	struct baton_error err = {0};

	for (;;) {
		struct candidate *c = await_leader("lead before an order");
		uint64_t term = baton_term(c->e);

		begin("order");
		bool left = is_done(baton_order_resign(two[c == &two[0]].b, NAME, 0, 0, NULL, &err),
				    &err);

		while (left && baton_term(c->e) == term)
			wait_a_little();
		if (left)
			break;
		wait_a_little();
	}
	begin("pause");
	while (!is_done(baton_pause(two[0].b, NAME, &err), &err))
		wait_a_little();
	begin("pause: step down");
	while (two[0].leads_in != 0 || two[1].leads_in != 0)
		wait_a_little();
	begin("resume");
	while (!is_done(baton_resume(two[1].b, NAME, &err), &err))
		wait_a_little();
}

static int work(struct baton_context *ctx, void *arg)
{
	(void)arg;
	return baton_context_is_leader(ctx) ? 0 : 1;
}

static void work_and_remember(void)
{
	struct baton_leadership list[8];
	struct baton_error err = {0};

	for (;;) {
		struct candidate *c = await_leader("lead before working");

		begin("work");
		if (is_done(baton_run_if_leader(c->e, work, NULL), NULL))
			break;
		wait_a_little();
	}
	begin("fence");
	while (!is_done(baton_fence_file(path, 7, &err), &err))
		wait_a_little();
	if (baton_fence_file(path, 6, &err) != BATON_E_STALE && fault_fired() == NULL)
		give_up("S4: an old term is let in");
	begin("history");
	int n;

	while (!is_done(n = test_history(two[1].b, NAME, list, 8, &err), &err) || n < 2)
		wait_a_little();
	for (int i = 1; i < n && i < 8; i++)
		if (list[i].term >= list[i - 1].term)
			give_up("S3: %" PRIu64 " before %" PRIu64, list[i].term, list[i - 1].term);
}

static void leave(struct candidate *c)
{
	begin("stop");
	while (!is_done(baton_election_stop(c->e, 5000), NULL))
		wait_a_little();
	if (baton_is_leader(c->e))
		give_up("S7: leader after stop()");
}

/* ---- one life ---- */

static int live(enum fault_kind kind, uint64_t n)
{
	pthread_t sampler;
	struct oracle_verdict v;

	oracle = oracle_new(PATIENCE_NS, NULL);
	if (oracle == NULL)
		give_up("no memory for the oracle");
	int before = count_descriptors();

	fault_nth(kind, n);
	open_one(&two[0], "alice");
	open_one(&two[1], "bob");
	enter(&two[0]);
	enter(&two[1]);
	sampling = true;
	if (pthread_create(&sampler, NULL, sample, NULL) != 0)
		give_up("no thread for the sampler");
	struct candidate *c = await_leader("lead");

	await_renewal(c);
	await_standby(&two[c == &two[0]]);
	look_around(&two[1]);
	resign();
	transfer();
	give_orders();
	work_and_remember();
	leave(&two[0]);
	(void)await_leader("lead after the other's stop");
	sampling = false;
	(void)pthread_join(sampler, NULL);
	baton_election_free(two[0].e);
	begin("close");
	baton_close(two[0].b);
	baton_close(two[1].b);
	if (!oracle_judge(oracle, &v))
		give_up("S1: %s", v.text);
	if (count_descriptors() != before)
		give_up("%d descriptors leaked", count_descriptors() - before);
	oracle_free(oracle);
	if (fault_fired() != NULL && strncmp(fault_fired(), "inotify", 7) == 0 && !told_of_inotify)
		give_up("nobody was told that there is no push");
	return fault_fired() != NULL ? 0 : UNFIRED;
}

/* ---- all lives ---- */

struct job {
	pid_t pid; /* 0: none */
	uint64_t n;
	char dir[200];
	char *step;
};

struct series {
	const char *store; /* "memory" or "file" */
	enum fault_kind kind;
	uint64_t step;
	uint64_t last;
	uint64_t only; /* 0: all of them */
	unsigned misses;
	unsigned fired;
	unsigned failed;
	bool is_void; /* nothing ever failed */
};

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(name);
}

/* A place in memory where there is one: these tests wait for no disk. */
static void make_place(struct job *job)
{
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	(void)snprintf(job->dir, sizeof(job->dir), "%s/baton-faults-XXXXXX", base);
	if (mkdtemp(job->dir) == NULL) {
		perror(job->dir);
		exit(2);
	}
}

static void start_life(const struct series *s, struct job *job, uint64_t n)
{
	make_place(job);
	job->n = n;
	job->step[0] = '\0';
	(void)fflush(NULL);
	job->pid = fork();
	if (job->pid < 0) {
		perror("fork");
		exit(2);
	}
	if (job->pid > 0)
		return;
	step = job->step;
	(void)alarm(LIFE_S);
	(void)snprintf(path, sizeof(path), "%s/fence", job->dir);
	if (strcmp(s->store, "file") == 0)
		(void)snprintf(url, sizeof(url), "file:%s/store?history=20", job->dir);
	else
		(void)snprintf(url, sizeof(url), "memory:%" PRIu64, n);
	exit(live(s->kind, n)); /* with the leak checker's last word */
}

static void end_life(struct series *s, struct job *job, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (code == UNFIRED) {
		s->misses++;
	} else if (code == 0) {
		s->fired++;
	} else {
		s->failed++;
		(void)printf("FAILED   %s, %s call %" PRIu64 ": %s %d, at \"%s\"\n", s->store,
			     fault_names[s->kind], job->n, WIFSIGNALED(status) ? "signal" : "exit",
			     WIFSIGNALED(status) ? WTERMSIG(status) : code, job->step);
	}
	(void)nftw(job->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	job->pid = 0;
}

/* Waits until one of them has ended. */
static void attend(struct series *s, struct job *jobs)
{
	int status;
	pid_t pid = wait(&status);

	for (unsigned i = 0; i < JOBS; i++)
		if (jobs[i].pid == pid)
			end_life(s, &jobs[i], status);
}

/* The next call that is to fail; 0: there is none any more. */
static uint64_t next_call(struct series *s)
{
	if (s->only != 0 ? s->last != 0 : s->misses >= MISSES)
		return 0;
	/* From the first on: a store may have fewer of them than a step is long. */
	s->last = s->only != 0 ? s->only : s->last == 0 ? 1 : s->last + s->step;
	return s->last;
}

static void run_series(struct series *s, struct job *jobs)
{
	unsigned running;

	do {
		running = 0;
		for (unsigned i = 0; i < JOBS; i++) {
			uint64_t n = jobs[i].pid == 0 ? next_call(s) : 0;

			if (n != 0)
				start_life(s, &jobs[i], n);
			running += jobs[i].pid != 0;
		}
		if (running > 0)
			attend(s, jobs);
	} while (running > 0);
	/* Each store makes calls of every kind: lives without a failure have shown nothing. */
	s->is_void = s->fired + s->failed == 0;
	(void)printf("%-8s %s, %s: %u lives with one failure each, %u failed\n",
		     s->failed != 0 || s->is_void ? "FAILED" : "ok", s->store, fault_names[s->kind],
		     s->fired + s->failed, s->failed);
}

/* faults [STORE [KIND [N]]]: all of a kind if it is named, else a sample of the reads. */
int main(int argc, char **argv)
{
	static const char *const stores[] = {"memory", "file"};
	struct job jobs[JOBS] = {{0}};
	unsigned lives = 0;
	unsigned failed = 0;
	bool is_void = false;
	char *steps =
		mmap(NULL, JOBS * 128, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (steps == MAP_FAILED)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < JOBS; i++)
		jobs[i].step = steps + (size_t)i * 128;
	for (unsigned i = 0; i < 2 * FAULT_KINDS; i++) {
		struct series s = {.store = stores[i / FAULT_KINDS],
				   .kind = i % FAULT_KINDS,
				   .step = argc <= 2 && i % FAULT_KINDS == FAULT_READ ? READ_STEP
										      : 1,
				   .only = argc > 3 ? strtoull(argv[3], NULL, 10) : 0};

		if ((argc > 1 && strcmp(argv[1], s.store) != 0) ||
		    (argc > 2 && strcmp(argv[2], fault_names[s.kind]) != 0))
			continue;
		run_series(&s, jobs);
		lives += s.fired + s.failed;
		failed += s.failed;
		is_void = is_void || s.is_void;
	}
	(void)printf("faults: %u lives, %u failed\n", lives, failed);
	return failed != 0 || lives == 0 || is_void;
}
