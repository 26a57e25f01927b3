/*
 * main.c: conformance STORE-URL runs every case against a store, each in a process of its own,
 * some at a time. Nothing is left out silently: what a store can't have stands in a table with the
 * reason, what had to be adapted says so, and the last line counts it all.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "proxy.h"
#include "suite.h"
#include "table.h"

#define LEASE_MS 600
#define JOBS_MAX 16
#define LIMIT_S 40
#define LIMIT_LEASES 10 /* and so many leases: some cases wait for their end again and again */
/* A case that the machine disturbed is tried again, with twice the lease each time. */
#define TRIES_MAX 3
/* So few plays may all be disturbed; of more, half at most. */
#define FEW 16

struct plan {
	const char *url;
	const char *only;
	const char *table;
	const struct backend *backend;
	const char *network; /* rules of the fault proxy; NULL: none */
	uint64_t seed;
	uint64_t lease_ms;
	unsigned times;
	unsigned jobs;
	bool full;
	bool keep;
	char run[24]; /* tells this run's places from those of others */
};

struct job {
	const struct entry *entry;
	struct result *result;
	size_t index; /* in the list */
	uint64_t begin_ns;
	uint64_t limit_ns;
	uint64_t lease_ms;
	pid_t pid; /* 0: none */
	unsigned try;
	char label[48];
	uint64_t cpu_ms; /* what it and its remote candidates that ended have used */
};

struct counts {
	unsigned adapted, exempt, failed;
	unsigned again;    /* cases that were played once more */
	uint64_t n_faults; /* that were injected */
	unsigned hidden;   /* by faults of the network */
	bool was_adapted[CASES_MAX];
};

static const char usage[] =
	"usage: conformance [--times N] [--case NAME,...] [--lease MS] [--jobs N] [--full]\n"
	"                   [--keep] [--faults SEED] [--network RULES] [--seed N] [--table FILE]\n"
	"                   [--list] STORE-URL\n"
	"Runs the cases of the conformance list against a store, and says how many failed.\n"
	"--full repeats in one round as often as the list says (1,000 races, 1,000 handoffs).\n"
	"--faults makes calls of the system fail (conformance-faulty only): memory, descriptors,\n"
	"disk. Then only safety counts: what else fails is adapted. So it does with --network,\n"
	"which harms messages to a server by the rules of tests/relay/rules.h and the seed;\n"
	"RULES may be `default`.\n";

/* ---- one case, in its own process ---- */

static bool is_accepted(struct testcase *t, uint64_t lease_ms)
{
	struct baton_options o;
	struct baton_error err = {0};
	struct baton *b = NULL;

	baton_options_init(&o);
	o.lease_ms = lease_ms;
	int rc = baton_open(t->url, &o, &b, &err);

	CHECK(t, rc == 0 || rc == BATON_E_TIMING, "baton_open: %s", err.text);
	baton_close(b);
	return rc == 0;
}

void testcase_open(struct testcase *t)
{
	uint64_t wanted_ms = t->lease_ms;

	while (!is_accepted(t, t->lease_ms) && t->lease_ms < 60000)
		t->lease_ms *= 2;
	if (t->lease_ms != wanted_ms)
		testcase_adapted(t, "lease %" PRIu64 " ms", t->lease_ms);
}

void testcase_close(struct testcase *t)
{
	while (t->n_remotes > 0)
		remote_end(t->remotes[0]);
	while (t->n_locals > 0)
		local_close(t->locals[0]);
	oracle_free(t->oracle);
	if (t->backend->leave != NULL)
		t->backend->leave(t);
}

static _Noreturn void play(const struct plan *plan, const struct job *job)
{
	static struct testcase t;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	t.backend = plan->backend;
	t.entry = job->entry;
	t.result = job->result;
	t.lease_ms = job->lease_ms;
	t.full = plan->full;
	snprintf(t.name, sizeof(t.name), "e-%s", job->label);
	CHECK(&t, plan->backend->place(&t, plan->url, job->label), "no place for the case: %s",
	      strerror(errno));
	testcase_open(&t);
	stall_watch(&t);
	faults_begin();
	job->entry->play(&t);
	testcase_count_faults(&t);
	testcase_close(&t);
	t.result->passed = true;
	exit(0);
}

/* ---- the children ---- */

static void begin(const struct plan *plan, struct job *job)
{
	uint64_t limit_ms = (job->entry->limit_s != 0 ? job->entry->limit_s : LIMIT_S) * 1000u;

	limit_ms += LIMIT_LEASES * job->lease_ms;
	memset(job->result, 0, sizeof(*job->result));
	job->begin_ns = now_ns();
	job->limit_ns = job->begin_ns + (plan->full ? 6 : 1) * (job->try + 1u) * limit_ms * MS;
	fflush(stdout);
	job->pid = fork();
	if (job->pid == 0)
		play(plan, job);
	if (job->pid < 0) {
		perror("fork");
		exit(2);
	}
	setpgid(job->pid, job->pid);
}

static void judge(struct job *job, int status)
{
	struct result *r = job->result;

	r->ms = (uint32_t)((now_ns() - job->begin_ns) / MS);
	if (WIFSIGNALED(status))
		snprintf(r->text, sizeof(r->text), "died of signal %d%s%.100s", WTERMSIG(status),
			 r->step[0] != '\0' ? ", waiting for " : "", r->step);
	else if (WEXITSTATUS(status) != 0 && r->text[0] == '\0')
		snprintf(r->text, sizeof(r->text), "exit code %d", WEXITSTATUS(status));
	r->passed = r->passed && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint64_t ms_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000 + (uint64_t)t->tv_usec / 1000;
}

/* True: it has ended, or was made to. */
static bool is_over(struct job *job)
{
	int status = 0;
	struct rusage used;
	pid_t rc = wait4(job->pid, &status, WNOHANG, &used);

	if (rc == 0 && now_ns() < job->limit_ns)
		return false;
	bool hung = rc == 0;

	/* Whoever is left of it, its remote candidates included, goes with it. */
	kill(-job->pid, SIGKILL);
	if (hung)
		wait4(job->pid, &status, 0, &used);
	job->cpu_ms = ms_of(&used.ru_utime) + ms_of(&used.ru_stime);
	judge(job, status);
	if (hung)
		snprintf(job->result->text, sizeof(job->result->text),
			 "no end within its time limit%s%.100s",
			 job->result->step[0] != '\0' ? ", waiting for " : "", job->result->step);
	job->pid = 0;
	return true;
}

static void show(const struct job *job, const char *word)
{
	const struct result *r = job->result;
	const char *text = r->passed ? r->note : r->text;

	printf("%-8s %-6s %s, %" PRIu32 " ms (%" PRIu64 " of a core)%s%s\n", word, job->entry->id,
	       job->entry->title, r->ms, job->cpu_ms, text[0] != '\0' ? ": " : "", text);
}

static bool has_faults(const struct plan *plan)
{
	return faults_are_on() || plan->network != NULL;
}

/* True: it is to be played again. */
static bool settle(const struct plan *plan, struct job *job, struct counts *c)
{
	struct result *r = job->result;

	c->n_faults += r->n_faults;
	if (!r->passed && r->disturbed && job->try + 1 < (has_faults(plan) ? 2 : TRIES_MAX)) {
		show(job, "again");
		c->again++;
		plan->backend->clean(plan->url, job->label);
		job->try++;
		job->lease_ms *= 2;
		return true;
	}
	if (!r->passed && has_faults(plan) && r->checked && !r->is_safety) {
		r->passed = true;
		r->adapted = true;
		c->hidden++;
		snprintf(r->note, sizeof(r->note), "adapted, for faults were in its way: %.180s",
			 r->text);
	}
	bool adapted = r->passed && (r->adapted || job->try > 0);

	show(job, !r->passed ? "FAILED" : adapted ? "adapted" : "ok");
	c->failed += !r->passed;
	c->adapted += adapted && !c->was_adapted[job->index];
	c->was_adapted[job->index] = c->was_adapted[job->index] || adapted;
	if (r->passed && !plan->keep)
		plan->backend->clean(plan->url, job->label);
	return false;
}

/* ---- all cases, once ---- */

static void nap(void)
{
	static const struct timespec pause = {.tv_nsec = 2000000};

	ppoll(NULL, 0, &pause, NULL);
}

static void prepare(const struct plan *plan, struct job *job, const struct entry **list,
		    size_t index, unsigned round)
{
	struct result *shared = job->result;

	*job = (struct job){
		.entry = list[index],
		.index = index,
		.result = shared,
		.lease_ms = plan->lease_ms,
	};
	snprintf(job->label, sizeof(job->label), "%s-%s-%u", job->entry->id, plan->run, round);
	/* Some stores fold cases. */
	for (char *c = job->label; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
}

/* Looks after those that run; how many still do. */
static unsigned attend(const struct plan *plan, struct job *jobs, struct counts *c)
{
	unsigned running = 0;

	for (unsigned i = 0; i < plan->jobs; i++) {
		if (jobs[i].pid != 0 && is_over(&jobs[i]) && settle(plan, &jobs[i], c))
			begin(plan, &jobs[i]);
		running += jobs[i].pid != 0;
	}
	return running;
}

static struct job *find_idle(const struct plan *plan, struct job *jobs)
{
	for (unsigned i = 0; i < plan->jobs; i++) {
		if (jobs[i].pid == 0)
			return &jobs[i];
	}
	return NULL;
}

static void run_all(const struct plan *plan, const struct entry **list, size_t n, unsigned round,
		    struct result *shared, struct counts *c)
{
	struct job jobs[JOBS_MAX] = {{0}};
	size_t next = 0;
	unsigned running = 0;
	bool is_alone = false;

	for (unsigned i = 0; i < JOBS_MAX; i++)
		jobs[i].result = &shared[i];
	while (next < n || running > 0) {
		struct job *job = find_idle(plan, jobs);
		bool wants_alone = next < n && (list[next]->needs & ALONE) != 0;

		if (next < n && job != NULL && (running == 0 || (!wants_alone && !is_alone))) {
			prepare(plan, job, list, next++, round);
			begin(plan, job);
			is_alone = wants_alone;
		} else {
			nap();
		}
		running = attend(plan, jobs, c);
	}
}

/* In "NAME" or "NAME,NAME". */
static bool is_in(const char *names, const char *id)
{
	size_t n = strlen(id);

	for (const char *at = names; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, id, n) == 0 && (at[n] == ',' || at[n] == '\0'))
			return true;
	}
	return false;
}

static size_t count_names(const char *names)
{
	size_t n = 1;

	while ((names = strchr(names, ',')) != NULL) {
		names++;
		n++;
	}
	return n;
}

/* Leaves those in the list that apply; the others are counted, or fail. */
static size_t select_cases(const struct plan *plan, const struct exemptions *x,
			   const struct entry **list, size_t n, struct counts *c)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		const char *reason = table_reason(x, plan->backend->scheme, list[i]->id);

		if (reason == NULL && plan->backend->family != NULL)
			reason = table_reason(x, plan->backend->family, list[i]->id);
		unsigned lacks = backend_lacks(plan->backend, list[i]->needs);

		if (plan->only != NULL && !is_in(plan->only, list[i]->id))
			continue;
		if (reason != NULL) {
			printf("%-8s %-6s %s: %s\n", "n.a.", list[i]->id, list[i]->title, reason);
			c->exempt++;
		} else if (lacks != 0) {
			printf("%-8s %-6s %s: it needs %s, and no reason stands in the table\n",
			       "FAILED", list[i]->id, list[i]->title, need_text(lacks));
			c->failed++;
		} else {
			list[left++] = list[i];
		}
	}
	return left;
}

/* Keeps the order otherwise. */
static void sort_alone_last(const struct entry **list, size_t n)
{
	const struct entry *sorted[CASES_MAX] = {NULL};
	size_t k = 0;

	for (unsigned alone = 0; alone < 2; alone++) {
		for (size_t i = 0; i < n; i++) {
			if (((list[i]->needs & ALONE) != 0) == (alone == 1))
				sorted[k++] = list[i];
		}
	}
	memcpy(list, sorted, n * sizeof(const struct entry *));
}

/* What has proven nothing fails. `n`: how often a case was to be played. */
static bool is_void(const struct plan *plan, const struct counts *c, size_t n)
{
	const char *why = NULL;

	if (has_faults(plan) && c->n_faults == 0)
		why = "not one fault was injected";
	else if (2 * c->hidden > n)
		why = "with so many faults there is nothing left to see";
	else if (n > FEW && 2 * c->again > n)
		why = "a machine this busy leaves nothing to see";
	if (why != NULL)
		printf("VOID: %s\n", why);
	return why != NULL;
}

static int run(struct plan *plan)
{
	static struct exemptions exemptions;
	const struct entry *list[CASES_MAX] = {NULL};
	struct counts c = {0};
	size_t all = table_cases(list);
	char err[400];
	struct result *shared = mmap(NULL, JOBS_MAX * sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return 2;
	if (!table_read(&exemptions, plan->table, err, sizeof(err))) {
		fprintf(stderr, "conformance: %s\n", err);
		return 2;
	}
	size_t n = select_cases(plan, &exemptions, list, all, &c);
	size_t total = n + c.exempt + c.failed;

	sort_alone_last(list, n);

	if (plan->only != NULL && total != count_names(plan->only)) {
		fprintf(stderr, "conformance: not all of these are cases: %s\n", plan->only);
		return 2;
	}
	for (unsigned round = 1; round <= plan->times; round++)
		run_all(plan, list, n, round, shared, &c);
	munmap(shared, JOBS_MAX * sizeof(*shared));
	if (has_faults(plan))
		printf("faults: %" PRIu64 ", which hid %u of %zu plays\n", c.n_faults, c.hidden,
		       n * plan->times);
	c.failed += is_void(plan, &c, n * plan->times);
	printf("conformance: %zu cases, %u times, %u adapted, %u not applicable, %u failed\n",
	       total, plan->times, c.adapted, c.exempt, c.failed);
	if (c.failed != 0 && plan->network != NULL)
		printf("again: --network '%s' --seed %" PRIu64 "\n", plan->network, plan->seed);
	return c.failed != 0;
}

static int list_cases(void)
{
	const struct entry *list[CASES_MAX] = {NULL};
	size_t n = table_cases(list);

	for (size_t i = 0; i < n; i++)
		printf("%-6s %s\n", list[i]->id, list[i]->title);
	return 0;
}

/* 1: go on. Otherwise the exit code. */
static int read_options(struct plan *plan, int argc, char **argv)
{
	static const struct option options[] = {
		{"times", required_argument, NULL, 't'},
		{"case", required_argument, NULL, 'c'},
		{"lease", required_argument, NULL, 'l'},
		{"jobs", required_argument, NULL, 'j'},
		{"table", required_argument, NULL, 'T'},
		{"faults", required_argument, NULL, 'F'},
		{"network", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"full", no_argument, NULL, 'f'},
		{"keep", no_argument, NULL, 'k'},
		{"list", no_argument, NULL, 'L'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't': plan->times = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'c': plan->only = optarg; break;
		case 'l': plan->lease_ms = strtoull(optarg, NULL, 10); break;
		case 'j': plan->jobs = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'T': plan->table = optarg; break;
		case 'F': setenv(FAULTS_SEED, optarg, 1); break;
		case 'n': plan->network = optarg; break;
		case 's': plan->seed = strtoull(optarg, NULL, 10); break;
		case 'f': plan->full = true; break;
		case 'k': plan->keep = true; break;
		case 'L': exit(list_cases());
		case 'h': fputs(usage, stdout); exit(0);
		default: return 2;
		}
	}
	if (optind != argc - 1 || plan->times == 0 || plan->jobs == 0 || plan->jobs > JOBS_MAX ||
	    (plan->lease_ms != 0 && plan->lease_ms < 100) || (faults_are_on() && !faults_can_be()))
		return 2;
	plan->url = argv[optind];
	return 1;
}

/* The drivers that were built with this program, unless somebody wants others. */
static void use_own_modules(void)
{
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);

	if (n <= 0)
		return;
	path[n] = '\0';
	snprintf(strrchr(path, '/'), 32, "/modules");
	setenv("BATON_MODULE_DIR", path, 0);
}

static bool use_network(const struct plan *plan)
{
	char why[200] = "there is no network between the suite and this store";

	if (plan->backend->weather != NULL
		    ? plan->backend->weather(plan->network, why, sizeof(why))
		    : plan->backend->has_network &&
			      proxy_weather(plan->network, plan->seed, why, sizeof(why)))
		return true;
	fprintf(stderr, "conformance: %s\n", why);
	return false;
}

int main(int argc, char **argv)
{
	struct plan plan = {
		.table = "tests/conformance/not-applicable.txt",
		.seed = (uint64_t)getpid(),
		.times = 1,
		.jobs = 6,
	};

	use_own_modules();
	if (argc > 1 && strcmp(argv[1], "--remote") == 0)
		return remote_main(argc, argv);
	if (read_options(&plan, argc, argv) != 1) {
		fputs(usage, stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	plan.backend = backend_find(plan.url);
	if (plan.backend == NULL) {
		fprintf(stderr, "conformance: no backend for %s\n", plan.url);
		return 2;
	}
	if (plan.lease_ms == 0)
		plan.lease_ms = plan.backend->lease_ms != 0 ? plan.backend->lease_ms : LEASE_MS;
	if (plan.network != NULL && !use_network(&plan))
		return 2;
	snprintf(plan.run, sizeof(plan.run), "%x%x", (unsigned)getpid(),
		 (unsigned)(now_ns() / MS) & 0xffff);
	return run(&plan);
}
