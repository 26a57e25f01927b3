/*
 * selfcheck.c: is a world and its packed form really the same? Random walks are taken twice side
 * by side: once with the world as the core left it, with all its large numbers, exact times and
 * stale fields, and once with a world that is packed and unpacked after every step. In both the
 * same choices must be possible, the same questions must be asked, and the same must come of it.
 * The rules hold on the way, as in the search; walks also go where it doesn't get to.
 */
#include <string.h>

#include "model.h"

#define N_STEPS 150

static uint64_t draw(uint64_t *random)
{
	/* xorshift64 */
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void begin(unsigned answers)
{
	trial.answers = answers;
	trial.n_asked = 0;
	trial.broken = RULE_NONE;
	trial.beyond = false;
}

static unsigned pick(const struct world *w, uint64_t *random)
{
	unsigned list[N_CHOICES];
	unsigned n = 0;

	for (unsigned i = 0; i < N_CHOICES; i++)
		if (choice_enabled(w, i))
			list[n++] = i;
	/* Time must go on, or there would only be faults. */
	if (n == 0 || (choice_enabled(w, CHOICE_TICK) && draw(random) % 2 == 0))
		return CHOICE_TICK;
	return list[draw(random) % n];
}

static bool same_choices(const struct world *a, const struct world *b)
{
	for (unsigned i = 0; i < N_CHOICES; i++)
		if (choice_enabled(a, i) != choice_enabled(b, i))
			return false;
	return true;
}

/* Packs a copy; only what lies around the core is put into order in the world itself. */
static void pack_copy(struct world *w, struct packed *p)
{
	struct world copy;

	world_tidy(w);
	copy = *w;
	world_pack(&copy, p);
}

/* One step of both; false: they differ. */
static bool step(struct world *raw, struct world *w, unsigned choice, unsigned answers, bool *end)
{
	struct packed p;
	struct packed q;
	uint8_t bounds[N_BOUNDS];

	begin(answers);
	choice_apply(raw, choice);
	unsigned n_asked = trial.n_asked;
	bool over = trial.broken != RULE_NONE || trial.beyond;

	begin(answers);
	choice_apply(w, choice);
	if (trial.broken == RULE_NONE && !trial.beyond)
		rules_check(w);
	if (trial.broken != RULE_NONE) {
		(void)fprintf(stderr, "model: %s: %s\n", rule_name(trial.broken),
			      rule_text(trial.broken));
		return false;
	}
	*end = over;
	if (n_asked != trial.n_asked || over != trial.beyond)
		return false;
	if (over)
		return true;
	pack_copy(raw, &p);
	memcpy(bounds, w->bounds, sizeof(bounds));
	world_pack(w, &q);
	world_unpack(w, &q);
	memcpy(w->bounds, bounds, sizeof(bounds));
	return p.n == q.n && memcmp(p.bytes, q.bytes, p.n) == 0 && same_choices(raw, w);
}

bool selfcheck(const struct setup *s, unsigned n_walks, uint64_t *n_steps)
{
	uint64_t random = 0x2545f4914f6cdd1du;
	struct world raw;
	struct world w;

	trial = (struct trial){.setup = s};
	for (unsigned i = 0; i < n_walks; i++) {
		bool end = false;

		world_init(&raw, s);
		w = raw;
		for (unsigned n = 0; n < N_STEPS && !end; n++, ++*n_steps) {
			unsigned choice = pick(&w, &random);

			if (!choice_enabled(&w, choice))
				break;
			if (!step(&raw, &w, choice, (unsigned)(draw(&random) & 255u), &end)) {
				(void)fprintf(stderr, "model: walk %u fails at step %u: %s, %s\n",
					      i, n, s->name, s->faults);
				return false;
			}
		}
	}
	return true;
}
