/* survey.c: see survey.h. What is found, the library keeps for baton_metrics(). */
#include "telemetry/survey.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define HISTORY_MAX 100 /* leaderships that are read at once */

struct survey {
	struct baton *b;
	const char *name;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t next_ns; /* CLOCK_MONOTONIC: when candidates are listed */
	uint64_t last_ns;
	uint64_t audit_ns; /* when the history is read, with the next list */
	bool lists;        /* the store can */
	bool audits;
	bool is_ending;
	bool has_ended;
};

static void *ask_now_and_then(void *arg);

uint64_t survey_jitter_ms(uint64_t ms)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		random = clock_boot_ns();
	return ms - ms / 4 + random % (ms / 2 + 1);
}

/* ---- the questions ---- */

/* The library counts. */
static void ignore_candidate(void *arg, const struct baton_candidate *c)
{
	(void)arg;
	(void)c;
}

static void ignore_leadership(void *arg, const struct baton_leadership *l)
{
	(void)arg;
	(void)l;
}

int survey_candidates(struct baton *b, const char *name)
{
	int n = baton_list_candidates(b, name, ignore_candidate, NULL, NULL);

	return n < 0 ? n : 0;
}

int survey_history(struct baton *b, const char *name)
{
	int n = baton_list_history(b, name, HISTORY_MAX, ignore_leadership, NULL, NULL);

	return n < 0 ? n : 0;
}

/* ---- a thread for them ---- */

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t jitter_ns(uint64_t ms)
{
	return survey_jitter_ms(ms) * CLOCK_NS_PER_MS;
}

/* False: it is this late. With the lock. */
static bool wait_until(struct survey *s, uint64_t at_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(at_ns / CLOCK_NS_PER_S),
				       .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S)};

	return pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT;
}

struct survey *survey_begin(struct baton *b, const char *name)
{
	struct survey *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	pthread_t thread;

	if (s == NULL)
		return NULL;
	s->b = b;
	s->name = name;
	s->lists = s->audits = true;
	s->next_ns = monotonic_ns() + jitter_ns(SURVEY_FIRST_MS);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (!thread_start(&thread, ask_now_and_then, s)) {
		(void)pthread_cond_destroy(&s->changed);
		(void)pthread_mutex_destroy(&s->lock);
		free(s);
		return NULL;
	}
	(void)pthread_detach(thread); /* a store that hangs must not hold up the end */
	return s;
}

void survey_hurry(struct survey *s)
{
	if (s == NULL)
		return;
	uint64_t soon_ns = monotonic_ns() + jitter_ns(SURVEY_FIRST_MS);

	(void)pthread_mutex_lock(&s->lock);
	uint64_t least_ns = s->last_ns + SURVEY_MIN_MS * CLOCK_NS_PER_MS;

	if (s->last_ns != 0 && soon_ns < least_ns) /* a leader that changes all the time */
		soon_ns = least_ns;
	if (soon_ns < s->next_ns)
		s->next_ns = soon_ns;
	s->audit_ns = 0;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

void survey_stop(struct survey *s)
{
	if (s == NULL)
		return;
	(void)pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

bool survey_end(struct survey *s, unsigned timeout_ms)
{
	uint64_t end_ns = monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;

	if (s == NULL)
		return true;
	survey_stop(s);
	(void)pthread_mutex_lock(&s->lock);
	while (!s->has_ended && wait_until(s, end_ns))
		;
	bool is_over = s->has_ended;

	(void)pthread_mutex_unlock(&s->lock);
	if (is_over) { /* else its thread still uses it, and the process is about to end */
		(void)pthread_cond_destroy(&s->changed);
		(void)pthread_mutex_destroy(&s->lock);
		free(s);
	}
	return is_over;
}

/* A question is left out for good if the store can't answer it. With the lock, which it gives back
 * meanwhile. */
static bool ask(struct survey *s, int (*question)(struct baton *b, const char *name))
{
	(void)pthread_mutex_unlock(&s->lock);
	int code = question(s->b, s->name);

	(void)pthread_mutex_lock(&s->lock);
	return code != BATON_E_UNSUPPORTED;
}

static void *ask_now_and_then(void *arg)
{
	struct survey *s = arg;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->is_ending && (s->lists || s->audits)) {
		uint64_t now_ns = monotonic_ns();

		if (now_ns < s->next_ns) {
			(void)wait_until(s, s->next_ns);
			continue;
		}
		bool audits = s->audits && now_ns >= s->audit_ns;

		s->last_ns = now_ns;
		s->next_ns = now_ns + jitter_ns(SURVEY_MS);
		if (audits)
			s->audit_ns = now_ns + jitter_ns(SURVEY_AUDIT_MS);
		s->lists = s->lists && ask(s, survey_candidates);
		if (audits && !s->is_ending)
			s->audits = ask(s, survey_history);
	}
	s->has_ended = true;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}
