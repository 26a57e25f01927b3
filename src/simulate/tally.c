/*
 * tally.c: who leads in the simulation, why a leadership ended, and how long there was no leader
 * after it. A leadership ends for the world when its deadline passes, whenever its own process
 * hears of that.
 */
#include <math.h>

#include "simulate/world.h"

#define CLASSES_PER_DOUBLING 8

static size_t class_of(uint64_t gap_ns)
{
	double ms = (double)gap_ns / 1e6;
	double at = ms > 1 ? CLASSES_PER_DOUBLING * log2(ms) : 0;

	return at < SIMULATE_CLASSES - 1 ? (size_t)at : SIMULATE_CLASSES - 1;
}

static double class_ms(size_t i)
{
	return exp2(((double)i + 0.5) / CLASSES_PER_DOUBLING);
}

static void end_leadership(struct world *w, uint64_t at_ns, int cause)
{
	w->leader = NOBODY;
	w->gap_ns = min_ns(at_ns, w->now_ns);
	w->result->failovers[cause]++;
}

/* What happened since the last renewal that came through was sent. */
static int cause_of(const struct world *w, const struct candidate *c)
{
	if (c->frozen_ns > c->sent_ns)
		return SIMULATE_FROZEN;
	return w->outage_ends_ns > c->sent_ns ? SIMULATE_OUTAGE : SIMULATE_SLOW;
}

void tally_became(struct world *w, const struct candidate *c)
{
	struct simulate_result *r = w->result;

	if (w->leader != NOBODY) {
		const struct candidate *was = &w->candidates[w->leader - 1];

		r->overlaps += was != c && election_leads(&was->election, &was->lease, w->now_ns);
		end_leadership(w, was->deadline_ns, cause_of(w, was));
	}
	uint64_t gap_ns = w->now_ns - w->gap_ns;

	w->leader = c->number;
	r->without_ns += gap_ns;
	if (w->record.term == 1)
		return; /* there was no leader before */
	r->longest_ns = max_ns(r->longest_ns, gap_ns);
	r->gaps++;
	r->classes[class_of(gap_ns)]++;
}

void tally_lost(struct world *w, const struct candidate *c)
{
	if (w->leader == c->number)
		end_leadership(w, c->deadline_ns, cause_of(w, c));
}

void tally_crashed(struct world *w, const struct candidate *c)
{
	if (w->leader == c->number)
		end_leadership(w, c->deadline_ns, SIMULATE_CRASH);
}

void tally_end(struct world *w)
{
	if (w->leader == NOBODY)
		w->result->without_ns += w->now_ns - w->gap_ns;
}

double simulate_gap_ms(const struct simulate_result *r, double part)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < SIMULATE_CLASSES; i++) {
		seen += r->classes[i];
		if (seen > 0 && (double)seen >= part * (double)r->gaps)
			return class_ms(i);
	}
	return 0;
}

uint64_t simulate_gaps_below(const struct simulate_result *r, double ms)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SIMULATE_CLASSES && class_ms(i) < ms; i++)
		n += r->classes[i];
	return n;
}
