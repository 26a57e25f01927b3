/*
 * testcase.c: the frame of one case: failing, waiting with a limit, the bounds that follow from the
 * lease, and a meter that knows when the machine did not let us run.
 */
#include "proxy.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What a busy machine with two processors may take for anything that should take no time. */
#define SLACK_MS 1500
#define POLL_NS 1000000
#define METER_NS 5000000
#define PULSES_PER_LEASE 25

/* How many of a million calls of the system fail. */
#define FAULTS_PER_MILLION 2000
/* A thread that had to wait for a processor for this part of its life was not let run. */
#define STARVED_PART 8
/* A machine on which somebody waits for one for this part of the time is too full. */
#define CROWDED_PART 2

static bool is_starved(void);
static bool is_crowded(void);

/* The meter's thread writes, everybody reads; one per process, as a machine is one. */
static uint64_t begin_ns;
static uint64_t crowded_before_us;
static _Atomic uint64_t worst_stall_ns;
static _Atomic uint64_t pulse_since_ns; /* 0: none is under way */

uint64_t now_ns(void)
{
	return oracle_now_ns();
}

static void nap(long ns)
{
	struct timespec pause = {.tv_nsec = ns};

	ppoll(NULL, 0, &pause, NULL);
}

void pass_time(uint64_t for_ms)
{
	uint64_t end_ns = now_ns() + for_ms * MS;

	while (now_ns() < end_ns)
		nap(POLL_NS);
}

/* ---- failing ---- */

/* Where the first few local candidates stand: half of every diagnosis. */
static void tell_states(struct testcase *t)
{
	static const char *const states[] = {"stopped", "standby", "campaigning", "leading",
					     "resigning"};

	for (unsigned i = 0; i < t->n_locals && i < 3; i++) {
		struct local *p = t->locals[i];
		struct baton_status status;
		size_t used = strlen(t->result->text);

		if (p->e == NULL || baton_get_status(p->e, &status) != 0)
			continue;
		struct seen error = {.event = {.kind = 0}};
		struct seen lost = {.event = {.reason = 0}};

		local_last(p, BATON_EVENT_ERROR, &error);
		local_last(p, BATON_EVENT_LOST, &lost);
		snprintf(t->result->text + used, sizeof(t->result->text) - used,
			 " [%s: %s, last lost by reason %d, sees %s in %" PRIu64 "%s%s%.80s]",
			 p->id + strlen(p->id) / 2, states[status.state % 5], lost.event.reason,
			 status.leader[0] != '\0' ? status.leader + strlen(status.leader) / 2
						  : "nobody",
			 status.term, status.paused ? ", paused" : "",
			 error.event.kind != 0 ? "; last error: " : "", error.event.detail);
	}
}

/* "S1: ...": no machine is an excuse for that. */
static bool is_promise(const char *words)
{
	return words[0] == 'S' && isdigit((unsigned char)words[1]);
}

/* Whatever else went wrong: two leaders at once are what is told of. */
static void ask_oracle(const struct testcase *t, char *words, size_t size)
{
	struct oracle_verdict v;

	if (t->entry != NULL && t->oracle != NULL && !oracle_judge(t->oracle, &v))
		(void)snprintf(words, size, "S1: %s", v.text);
}

_Noreturn void testcase_fail(struct testcase *t, const char *file, int line, const char *condition,
			     const char *format, ...)
{
	const char *base = strrchr(file, '/');
	char words[300];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (!is_promise(words))
		ask_oracle(t, words, sizeof(words));
	snprintf(t->result->text, sizeof(t->result->text), "%s:%d: %s (%s)",
		 base != NULL ? base + 1 : file, line, words[0] != '\0' ? words : "not so",
		 condition);
	tell_states(t);
	if (t->entry == NULL)
		remote_broke(words, t->result->text);
	t->result->checked = true;
	t->result->is_safety = is_promise(words);
	testcase_count_faults(t);
	t->result->disturbed = !t->result->is_safety &&
			       (stall_worst_ms() > t->lease_ms / 9 || is_starved() || is_crowded());
	_exit(1);
}

void testcase_note(struct testcase *t, const char *format, ...)
{
	size_t used = strlen(t->result->note);
	va_list args;

	if (used > 0 && used + 2 < sizeof(t->result->note))
		used += (size_t)snprintf(t->result->note + used, sizeof(t->result->note) - used,
					 "; ");
	va_start(args, format);
	vsnprintf(t->result->note + used, sizeof(t->result->note) - used, format, args);
	va_end(args);
}

void testcase_adapted(struct testcase *t, const char *format, ...)
{
	char words[200];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	t->result->adapted = true;
	testcase_note(t, "adapted: %s", words);
}

/* ---- waiting ---- */

void await(struct testcase *t, bool (*is_so)(void *arg), void *arg, uint64_t limit_ms,
	   const char *what)
{
	uint64_t end_ns = now_ns() + limit_ms * MS;

	snprintf(t->result->step, sizeof(t->result->step), "%s", what);
	while (!is_so(arg)) {
		CHECK(t, now_ns() < end_ns, "waited %" PRIu64 " ms in vain: %s", limit_ms, what);
		nap(POLL_NS);
	}
	t->result->step[0] = '\0';
}

void stays(struct testcase *t, bool (*is_so)(void *arg), void *arg, uint64_t for_ms,
	   const char *what)
{
	uint64_t since_ns = now_ns();

	int promise = is_promise(what) && strchr(what, ' ') != NULL
			      ? (int)(strchr(what, ' ') + 1 - what)
			      : 0;

	while (now_ns() < since_ns + for_ms * MS) {
		CHECK(t, is_so(arg), "%.*sno longer so after %" PRIu64 " ms: %s", promise, what,
		      (now_ns() - since_ns) / MS, what + promise);
		nap(POLL_NS);
	}
}

uint64_t deadline_ms(const struct testcase *t)
{
	return t->lease_ms / 3 * 2;
}

uint64_t expiry_ms(const struct testcase *t)
{
	return t->lease_ms * (t->backend->n_leases > 0 ? t->backend->n_leases : 1);
}

uint64_t failover_ms(const struct testcase *t)
{
	return expiry_ms(t) + t->lease_ms / 10 + t->lease_ms / 6 * 5 + SLACK_MS;
}

uint64_t soon_ms(const struct testcase *t)
{
	return 3 * t->lease_ms + 4 * SLACK_MS;
}

/* ---- the meter ---- */

static void note_stall(uint64_t since_ns)
{
	uint64_t late_ns = now_ns() - since_ns;

	if (late_ns > atomic_load(&worst_stall_ns))
		atomic_store(&worst_stall_ns, late_ns);
}

/* A pulse is a write: often enough to meet any stall that a call would not survive (L6), which is a
 * ninth of the lease, and no more, or the meter would be what the server is busy with. */
static void *meter(void *arg)
{
	struct testcase *t = arg;
	unsigned every = (unsigned)(t->lease_ms * MS / METER_NS / PULSES_PER_LEASE);

	for (unsigned i = 0;; i++) {
		uint64_t before_ns = now_ns();

		nap(METER_NS);
		note_stall(before_ns + METER_NS);
		if (t->backend->pulse == NULL || i % (every > 4 ? every : 4) != 0)
			continue;
		before_ns = now_ns();
		atomic_store(&pulse_since_ns, before_ns);
		t->backend->pulse(t);
		atomic_store(&pulse_since_ns, 0);
		note_stall(before_ns);
	}
	return NULL;
}

/* How long a thread has waited for a processor, as the kernel counts it. */
static uint64_t waited_ns(const char *thread)
{
	char path[64];
	char line[100];
	uint64_t wait_ns = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", thread);
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return 0;
	const char *second = fgets(line, sizeof(line), f) != NULL ? strchr(line, ' ') : NULL;

	if (second != NULL)
		wait_ns = strtoull(second, NULL, 10);
	fclose(f);
	return wait_ns;
}

/* The meter is one thread, and hardly ever wants to run: it may be lucky where others are not. */
static bool is_starved(void)
{
	DIR *threads = opendir("/proc/self/task");
	uint64_t worst_ns = 0;

	if (threads == NULL)
		return false;
	for (struct dirent *e; (e = readdir(threads)) != NULL;) {
		uint64_t wait_ns = e->d_name[0] != '.' ? waited_ns(e->d_name) : 0;

		worst_ns = wait_ns > worst_ns ? wait_ns : worst_ns;
	}
	closedir(threads);
	return begin_ns != 0 && worst_ns > (now_ns() - begin_ns) / STARVED_PART;
}

/* For how long somebody here has waited for a processor: a server has no meter of ours. */
static uint64_t crowded_us(void)
{
	char line[200];
	FILE *f = fopen("/proc/pressure/cpu", "re");

	if (f == NULL)
		return 0;
	const char *total = fgets(line, sizeof(line), f) != NULL ? strstr(line, "total=") : NULL;

	fclose(f);
	return total != NULL ? strtoull(total + strlen("total="), NULL, 10) : 0;
}

static bool is_crowded(void)
{
	return (crowded_us() - crowded_before_us) * 1000 > (now_ns() - begin_ns) / CROWDED_PART;
}

void stall_watch(struct testcase *t)
{
	pthread_t thread;

	begin_ns = now_ns();
	crowded_before_us = crowded_us();

	if (pthread_create(&thread, NULL, meter, t) == 0)
		pthread_detach(thread);
}

uint64_t stall_worst_ms(void)
{
	uint64_t since_ns = atomic_load(&pulse_since_ns);

	if (since_ns != 0) /* it hangs just now */
		note_stall(since_ns);
	return atomic_load(&worst_stall_ns) / MS;
}

/* ---- injected faults ---- */

/* There only if the library was linked with its calls renamed (tests/faults). */
extern void fault_random(uint64_t seed, uint32_t per_million) __attribute__((weak));
extern uint64_t fault_count(void) __attribute__((weak));

bool faults_can_be(void)
{
	return fault_random != NULL;
}

bool faults_are_on(void)
{
	return getenv(FAULTS_SEED) != NULL;
}

void faults_begin(void)
{
	uint64_t seed = faults_are_on() ? strtoull(getenv(FAULTS_SEED), NULL, 10) : 0;

	if (faults_are_on() && faults_can_be())
		fault_random(seed ^ (uint64_t)getpid() << 32, FAULTS_PER_MILLION);
}

bool faults_retry(int code)
{
	return code < 0 && faults_are_on() &&
	       (code == BATON_E_MEMORY || code == BATON_E_SYSTEM || code == BATON_E_UNAVAILABLE);
}

void testcase_count_faults(struct testcase *t)
{
	t->result->n_faults = fault_count != NULL ? fault_count() : 0;
	if (t->entry != NULL && t->backend->has_network)
		t->result->n_faults += proxy_harmed(t);
	if (t->entry != NULL && t->backend->harmed != NULL)
		t->result->n_faults += t->backend->harmed(t);
}

/* ---- the oracle of a test case ---- */

void testcase_oracle(struct testcase *t)
{
	t->oracle = oracle_new(t->lease_ms * MS, &t->oracle_fd);
	CHECK(t, t->oracle != NULL, "no shared memory");
}

void testcase_judge(struct testcase *t)
{
	struct oracle_verdict v;
	bool clean = oracle_judge(t->oracle, &v);

	CHECK(t, clean, "S1: %s", v.text);
	CHECK(t, v.n_yes > 0, "the oracle saw no leader at all in %" PRIu64 " samples",
	      v.n_samples);
	testcase_note(t, "%" PRIu64 " terms, %" PRIu64 " samples", v.n_terms, v.n_samples);
}
