/*
 * oracle.c: see oracle.h. Writing is a few relaxed atomics; judging sorts all terms of all tracks
 * and compares each with the greatest last sight before it.
 */
#include "oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A leadership that begins and ends between two loads looks like this; it can't happen often. */
#define TERMLESS_MAX 2

struct row {
	uint64_t term;
	uint64_t first_t1_ns;
	uint64_t last_t0_ns;
	unsigned track;
};

struct oracle *oracle_new(uint64_t wake_gap_ns, int *fd)
{
	int memory = memfd_create("oracle", 0);
	struct oracle *o = NULL;

	if (memory >= 0 && ftruncate(memory, sizeof(*o)) == 0)
		o = oracle_attach(memory);
	if (o != NULL)
		atomic_store(&o->wake_gap_ns, wake_gap_ns);
	if (o != NULL && fd != NULL)
		*fd = memory;
	else if (memory >= 0)
		close(memory);
	return o;
}

struct oracle *oracle_attach(int fd)
{
	void *memory = mmap(NULL, sizeof(struct oracle), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void oracle_free(struct oracle *o)
{
	if (o != NULL)
		munmap(o, sizeof(*o));
}

uint64_t oracle_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The newest term is the usual one. */
static struct oracle_term *find(struct oracle_track *track, uint64_t term)
{
	uint32_t n = atomic_load(&track->n_terms);

	for (uint32_t i = n; i-- > 0;) {
		if (atomic_load(&track->terms[i].term) == term)
			return &track->terms[i];
	}
	if (n == ORACLE_TERMS) {
		atomic_fetch_add(&track->n_full, 1);
		return NULL;
	}
	struct oracle_term *slot = &track->terms[n];

	atomic_store(&slot->first_t1_ns, UINT64_MAX);
	atomic_store(&slot->last_t0_ns, 0);
	atomic_store(&slot->term, term);
	atomic_store(&track->n_terms, n + 1);
	return slot;
}

void oracle_saw(struct oracle *o, unsigned track, uint64_t term, uint64_t t0_ns, uint64_t t1_ns)
{
	struct oracle_term *slot = find(&o->tracks[track], term);

	if (slot == NULL)
		return;
	atomic_fetch_add(&o->tracks[track].n_yes, 1);
	if (t1_ns < atomic_load(&slot->first_t1_ns))
		atomic_store(&slot->first_t1_ns, t1_ns);
	if (t0_ns > atomic_load(&slot->last_t0_ns))
		atomic_store(&slot->last_t0_ns, t0_ns);
}

/*
 * The first question that surely was put after a stop (in the one before it, the stop may lie
 * between t0 and t1): it may not be answered from memory. Who was let run late may lead anew by
 * then; the stop may also lie between the first look at the term and the question, so a term that
 * has changed since is a new one.
 */
static void note_waking(struct oracle_track *t, bool yes, uint64_t before, uint64_t after)
{
	uint32_t n = atomic_load(&t->n_terms);
	bool is_new = before != after ||
		      (before != 0 && n > 0 && atomic_load(&t->terms[n - 1].term) != before);

	atomic_fetch_add(!yes ? &t->n_woke_no : is_new ? &t->n_woke_new : &t->n_woke_yes, 1);
}

void oracle_stopped(struct oracle *o, unsigned track)
{
	atomic_store(&o->tracks[track].stopped_ns, oracle_now_ns());
}

void oracle_sample(struct oracle *o, unsigned track, const struct oracle_subject *subject)
{
	struct oracle_track *t = &o->tracks[track];
	uint64_t before = subject->term(subject->candidate);
	uint64_t t0_ns = oracle_now_ns();
	bool yes = subject->is_leader(subject->candidate);
	uint64_t t1_ns = oracle_now_ns();
	uint64_t after = subject->term(subject->candidate);
	uint64_t previous_ns = atomic_load(&t->previous_t0_ns);
	uint64_t stopped_ns = atomic_load(&t->stopped_ns);

	atomic_fetch_add(&t->n_samples, 1);
	if (previous_ns != 0 && previous_ns < stopped_ns && stopped_ns < t0_ns &&
	    t0_ns - stopped_ns > atomic_load(&o->wake_gap_ns))
		note_waking(t, yes, before, after);
	atomic_store(&t->previous_t0_ns, t0_ns);
	/* A term is never led in twice, so the same one before and after is that of the answer. */
	if (yes && before != 0 && before == after)
		oracle_saw(o, track, before, t0_ns, t1_ns);
	else if (yes && before == 0 && after == 0)
		atomic_fetch_add(&t->n_termless, 1);
}

/* ---- judging ---- */

static int by_term(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	if (x->term != y->term)
		return x->term < y->term ? -1 : 1;
	return x->track < y->track ? -1 : x->track > y->track;
}

/* Of as many terms as there is room for: one who writes may have added some meanwhile. */
static size_t collect(const struct oracle *o, struct row *rows, size_t room,
		      struct oracle_verdict *v)
{
	size_t n = 0;

	for (unsigned i = 0; i < ORACLE_TRACKS; i++) {
		const struct oracle_track *t = &o->tracks[i];
		uint32_t n_terms = atomic_load(&t->n_terms);

		v->n_samples += atomic_load(&t->n_samples);
		v->n_yes += atomic_load(&t->n_yes);
		v->n_termless += atomic_load(&t->n_termless);
		v->n_woke_yes += atomic_load(&t->n_woke_yes);
		v->n_woke_no += atomic_load(&t->n_woke_no);
		v->n_woke_new += atomic_load(&t->n_woke_new);
		v->n_full += atomic_load(&t->n_full);
		for (uint32_t k = 0; rows != NULL && n < room && k < n_terms; k++)
			rows[n++] = (struct row){
				.term = atomic_load(&t->terms[k].term),
				.first_t1_ns = atomic_load(&t->terms[k].first_t1_ns),
				.last_t0_ns = atomic_load(&t->terms[k].last_t0_ns),
				.track = i,
			};
		v->n_terms += n_terms;
	}
	return n;
}

static void say(struct oracle_verdict *v, const char *what, const struct row *x,
		const struct row *y)
{
	if (v->text[0] != '\0')
		return;
	snprintf(v->text, sizeof(v->text),
		 "%s: candidate %u in term %" PRIu64 " until %" PRIu64
		 " ns or later, candidate %u in "
		 "term %" PRIu64 " from %" PRIu64 " ns or earlier",
		 what, x->track, x->term, x->last_t0_ns, y->track, y->term, y->first_t1_ns);
}

static void compare(const struct row *rows, size_t n, struct oracle_verdict *v)
{
	const struct row *latest = &rows[0];

	for (size_t i = 1; i < n; i++) {
		if (rows[i].term == rows[i - 1].term) {
			v->n_shared++;
			say(v, "one term, two leaders", &rows[i - 1], &rows[i]);
		} else if (rows[i].first_t1_ns <= latest->last_t0_ns) {
			v->n_overlaps++;
			say(v, "two leaders at once, or terms against time", latest, &rows[i]);
		}
		if (rows[i].last_t0_ns > latest->last_t0_ns)
			latest = &rows[i];
	}
}

bool oracle_judge(const struct oracle *o, struct oracle_verdict *v)
{
	*v = (struct oracle_verdict){0};
	collect(o, NULL, 0, v);
	uint64_t n_terms = v->n_terms;
	struct row *rows = calloc(n_terms + 1, sizeof(*rows));

	*v = (struct oracle_verdict){0};
	if (rows == NULL) {
		snprintf(v->text, sizeof(v->text), "no memory to judge in");
		return false;
	}
	size_t n = collect(o, rows, n_terms, v);

	qsort(rows, n, sizeof(*rows), by_term);
	if (n > 1)
		compare(rows, n, v);
	free(rows);
	if (v->text[0] == '\0' && v->n_full > 0)
		snprintf(v->text, sizeof(v->text), "too many terms to remember");
	if (v->text[0] == '\0' && v->n_termless > TERMLESS_MAX)
		snprintf(v->text, sizeof(v->text), "leader in no term, %" PRIu32 " times",
			 v->n_termless);
	return v->text[0] == '\0';
}
