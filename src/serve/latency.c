/* latency.c: see latency.h. */
#include "serve/latency.h"

#include "base/clock.h"

#define MINUTE_NS ((int64_t)(60 * CLOCK_NS_PER_S))

void latency_note(struct latency *l, const uint64_t *counts, int64_t now_ns)
{
	if (l->noted_ns != 0 && now_ns - l->noted_ns < MINUTE_NS)
		return;
	l->noted_ns = now_ns;
	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++)
		l->past[l->n % LATENCY_MINUTES][i] = (uint32_t)counts[i];
	l->n++;
}

/* What a bucket got since so many notes ago. Before the first of them there was nothing. */
static uint64_t count_since(const struct latency *l, const uint64_t *counts, unsigned notes, int i)
{
	if (l->n < notes)
		return counts[i];
	/* 32 bits are enough for a difference, also when they have run over. */
	return (uint32_t)((uint32_t)counts[i] - l->past[(l->n - notes) % LATENCY_MINUTES][i]);
}

uint64_t latency_quantile_us(const struct latency *l, const uint64_t *counts, unsigned percent)
{
	uint64_t total = 0;
	uint64_t sum = 0;

	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++)
		total += count_since(l, counts, LATENCY_SHOWN, i);
	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++) {
		sum += count_since(l, counts, LATENCY_SHOWN, i);
		if (total > 0 && sum * 100 >= total * percent)
			return UINT64_C(1) << i;
	}
	return 0;
}

bool latency_is_slow(const struct latency *l, const uint64_t *counts, uint64_t call_ns)
{
	uint64_t half_us = call_ns / 2000;
	uint64_t total = 0;
	uint64_t n_slow = 0;

	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++) {
		uint64_t n = count_since(l, counts, LATENCY_MINUTES, i);
		uint64_t from = i > 0 ? UINT64_C(1) << (i - 1) : 0;
		uint64_t to = UINT64_C(1) << i;

		total += n;
		if (half_us < to)
			n_slow += half_us <= from ? n : n * (to - half_us) / (to - from);
	}
	return n_slow >= 2 && n_slow * 1000 > total;
}
