/*
 * search.c: breadth first over everything that can happen, fewest faults first.
 *
 * States wait in one queue for each number of faults and of steps. So the first violation that is
 * found has the fewest faults that it can have and, with them, the fewest steps; and a state that
 * can be reached with fewer faults is met that way first, which makes it cover (table.h) the
 * many ways to reach it with more.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "model.h"
#include "text.h"

#define STEPS_MAX 4096
#define FAULTS_MAX 11
#define CHOICE_BITS 8
#define ANSWER_BITS 8
/* Liveness is checked from one state in this many, chosen by its hash. */
#define LIVE_EVERY 16

_Static_assert(N_CHOICES <= 1 << CHOICE_BITS, "a choice fits its bits");
_Static_assert(N_OPS <= 32, "the kinds of choices fit their bits");

struct search {
	const struct search_options *options;
	struct search_result *result;
	struct table table;
	struct queue queues[FAULTS_MAX + 1][STEPS_MAX];
	uint64_t *log; /* for each state: its parent, the choice, the answers */
	uint64_t n_log;
	uint64_t max_log;
	bool stop;
};

static sigjmp_buf trap;

static void on_trap(int sig)
{
	(void)sig;
	siglongjmp(trap, 1);
}

/* An assertion of the core is an invariant like the others. */
static void catch_traps(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_trap;
	sa.sa_flags = SA_NODEFER;
	(void)sigaction(SIGILL, &sa, NULL);
	(void)sigaction(SIGTRAP, &sa, NULL);
}

/* ---- one transition ---- */

static void begin(unsigned answers)
{
	trial.answers = answers;
	trial.n_asked = 0;
	trial.broken = RULE_NONE;
	trial.beyond = false;
	trial.calm = false;
}

static void make(struct world *w, unsigned choice, unsigned answers)
{
	begin(answers);
	if (sigsetjmp(trap, 0) != 0) {
		rule_break(RULE_ASSERT);
		return;
	}
	choice_apply(w, choice);
	if (trial.broken == RULE_NONE && !trial.beyond)
		rules_check(w);
}

static void make_live(const struct world *w)
{
	begin(0);
	if (sigsetjmp(trap, 0) != 0) {
		rule_break(RULE_ASSERT);
		return;
	}
	live_check(w);
}

/* The next row of answers, as if counting; false: all have been given. */
static bool next_answers(unsigned *answers, unsigned n_asked)
{
	while (n_asked-- > 0)
		if ((*answers >> n_asked & 1u) == 0) {
			*answers = (*answers & ((1u << n_asked) - 1)) | 1u << n_asked;
			return true;
		}
	return false;
}

/* ---- stories ---- */

static void print_state(const struct world *w, unsigned n_ticks)
{
	char when[32];

	text_time(n_ticks * TICK_NS, when, sizeof(when));
	printf("%s ", when);
	for (unsigned c = 0; c < N_CANDS; c++) {
		const struct cand *x = &w->cands[c];

		if (!x->up)
			printf(" [%c down]", name_of(c));
		else
			printf(" [%c %s, lease %s%s%s%s]", name_of(c),
			       text_election_state(x->election.state),
			       text_lease_state(x->lease.state), x->works ? ", works" : "",
			       x->sick ? ", sick" : "", x->paused ? ", paused" : "");
	}
	printf("\n");
}

/* The reasons are no part of the state; a story has them all the same. */
static void keep_reasons(struct world *w, const struct world *from)
{
	for (unsigned c = 0; c < N_CANDS; c++) {
		w->cands[c].lease.why_down = from->cands[c].lease.why_down;
		w->cands[c].lease.why_ask = from->cands[c].lease.why_ask;
		w->cands[c].election.cause = from->cands[c].election.cause;
	}
}

static void tell_step(struct world *w, unsigned step, unsigned *n_ticks)
{
	unsigned choice = step & 255u;
	char text[128];
	struct packed p;

	choice_text(w, choice, text, sizeof(text));
	printf("  %s\n", text);
	make(w, choice, step >> CHOICE_BITS);
	if (choice == CHOICE_TICK)
		print_state(w, ++*n_ticks);
	if (trial.broken != RULE_NONE)
		return;
	uint8_t bounds[N_BOUNDS];
	struct world raw = *w;

	memcpy(bounds, w->bounds, sizeof(bounds));
	world_pack(w, &p);
	world_unpack(w, &p);
	memcpy(w->bounds, bounds, sizeof(bounds));
	keep_reasons(w, &raw);
}

/* From the beginning to that state, and one step further. */
static void tell_story(const struct search *s, uint64_t number, unsigned last, enum rule rule)
{
	unsigned steps[STEPS_MAX];
	unsigned n = 0;
	unsigned n_ticks = 0;
	struct world w;

	if (last != 0)
		steps[n++] = last - 1;
	for (; number != 0 && n < STEPS_MAX; number = s->log[number] >> (CHOICE_BITS + ANSWER_BITS))
		steps[n++] = (unsigned)(s->log[number] & 0xffff);
	printf("violation: %s\n%s (%s, %s)\n", rule_name(rule), rule_text(rule), trial.setup->name,
	       trial.setup->faults);
	trial.story = stdout;
	world_init(&w, trial.setup);
	print_state(&w, 0);
	while (n > 0)
		tell_step(&w, steps[--n], &n_ticks);
	if (last == 0) {
		printf("  -- from here on without faults:\n");
		make_live(&w);
	} else {
		print_state(&w, n_ticks);
	}
	trial.story = NULL;
	(void)fflush(stdout);
}

/* ---- the search ---- */

static void violated(struct search *s, uint64_t number, unsigned last)
{
	enum rule rule = trial.broken;
	struct search_result *r = s->result;

	r->n_violations++;
	if (r->first[rule] == 0) {
		r->first[rule] = s->n_log;
		if (!s->options->go_on)
			tell_story(s, number, last, rule);
	}
	if (!s->options->go_on)
		s->stop = true;
}

static void give_up(struct search *s, const char *why)
{
	(void)fprintf(stderr, "model: %s\n", why);
	s->result->complete = false;
	s->stop = true;
}

static bool log_put(struct search *s, uint64_t parent, unsigned step)
{
	if (s->n_log == s->max_log)
		return false;
	s->log[s->n_log++] = parent << (CHOICE_BITS + ANSWER_BITS) | step;
	return true;
}

static unsigned faults_of(const uint8_t *bounds)
{
	return (unsigned)trial.setup->bounds[BOUND_ALL] - bounds[BOUND_ALL];
}

static void visit(struct search *s, struct world *w, uint64_t parent, unsigned step, unsigned depth)
{
	uint32_t bounds = bounds_pack(w->bounds);
	unsigned n_faults = faults_of(w->bounds);
	struct packed p;
	uint64_t hash[2];

	world_pack(w, &p);
	packed_hash(&p, hash);
	switch (table_visit(&s->table, hash, bounds)) {
	case SEEN_OLD: return;
	case SEEN_FULL: give_up(s, "the table is full"); return;
	default: break;
	}
	uint64_t number = s->n_log;

	if (trial.broken != RULE_NONE) {
		violated(s, parent, step + 1);
		return;
	}
	if (depth + 1 >= STEPS_MAX || number >= s->options->max_states ||
	    !log_put(s, parent, step) ||
	    !queue_put(&s->queues[n_faults][depth + 1], &p, bounds, number)) {
		give_up(s, "too many states");
		return;
	}
	if ((hash[0] >> 40) % LIVE_EVERY != 0)
		return;
	s->result->n_live++;
	world_unpack(w, &p);
	make_live(w);
	if (trial.broken != RULE_NONE)
		violated(s, number, 0);
}

static void expand(struct search *s, const struct world *from, uint64_t number, unsigned depth)
{
	static struct world w; /* survives the trap */

	for (unsigned choice = 0; choice < N_CHOICES && !s->stop;
	     choice = choice_next(from, choice + 1)) {
		unsigned answers = 0;
		unsigned n_asked;

		if (!choice_enabled(from, choice))
			continue;
		s->result->ops |= 1u << choice_op(choice);
		do {
			w = *from;
			make(&w, choice, answers);
			n_asked = trial.n_asked;
			unsigned step = answers << CHOICE_BITS | choice;

			if (trial.broken != RULE_NONE)
				violated(s, number, step + 1);
			else if (!trial.beyond)
				visit(s, &w, number, step, depth);
		} while (!s->stop && next_answers(&answers, n_asked));
	}
}

static void drain_queue(struct search *s, unsigned n_faults, unsigned depth)
{
	struct queue *q = &s->queues[n_faults][depth];
	struct packed p;
	uint32_t bounds;
	uint64_t number;
	uint64_t hash[2];
	struct world w;

	while (!s->stop && queue_get(q, &p, &bounds, &number)) {
		packed_hash(&p, hash);
		if (table_outdone(&s->table, hash, bounds))
			continue;
		world_unpack(&w, &p);
		bounds_unpack(bounds, w.bounds);
		expand(s, &w, number, depth);
	}
}

static void search_all(struct search *s)
{
	for (unsigned f = 0; f <= FAULTS_MAX && !s->stop; f++) {
		unsigned deepest = 0;
		uint64_t before = s->n_log;

		for (unsigned d = 0; d < STEPS_MAX && !s->stop; d++) {
			if (s->queues[f][d].first != NULL)
				deepest = d;
			drain_queue(s, f, d);
		}
		if (s->options->verbose && deepest > 0)
			(void)fprintf(stderr,
				      "  %u faults: %llu states more, %u steps deep, %.1f s\n", f,
				      (unsigned long long)(s->n_log - before), deepest,
				      (double)clock() / CLOCKS_PER_SEC);
	}
}

static bool search_init(struct search *s)
{
	size_t size;

	s->max_log = (uint64_t)1 << s->options->hash_bits;
	size = s->max_log * sizeof(s->log[0]);
	s->log = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return s->log != MAP_FAILED && table_init(&s->table, s->options->hash_bits);
}

void search_run(const struct setup *setup, const struct search_options *o, struct search_result *r)
{
	struct search *s = calloc(1, sizeof(*s));
	struct world w;

	*r = (struct search_result){.complete = true};
	trial = (struct trial){.setup = setup};
	catch_traps();
	if (s == NULL) { /* nothing was searched, and nothing is proven */
		(void)fprintf(stderr, "model: no memory\n");
		r->complete = false;
		return;
	}
	s->options = o;
	s->result = r;
	if (search_init(s)) {
		world_init(&w, setup);
		visit(s, &w, 0, 0, 0);
		search_all(s);
	} else {
		give_up(s, "no memory");
	}
	r->n_states = s->n_log;
	r->misses = table_expected_misses(&s->table);
	for (unsigned f = 0; f <= FAULTS_MAX; f++)
		for (unsigned d = 0; d < STEPS_MAX; d++)
			queue_done(&s->queues[f][d]);
	(void)munmap(s->log, s->max_log * sizeof(s->log[0]));
	table_done(&s->table);
	free(s);
}
