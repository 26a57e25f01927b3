/* advice.c: see advice.h. */
#include "cli/advice.h"

#include <math.h>

#define RENEWALS_A_YEAR(renew_ms) (365.25 * 86400e3 / (renew_ms))
#define TRIES 3

double advice_quantile(const struct measured *m, double part)
{
	if (m->n == 0)
		return 0;
	size_t at = (size_t)ceil(part * (double)m->n);

	return m->samples[at > 0 ? (at <= m->n ? at : m->n) - 1 : 0];
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* To a number that people write: two digits, at least a tenth of a second. */
static double round_up(double ms)
{
	double step = ms < 1000 ? 100 : ms < 10000 ? 500 : ms < 60000 ? 1000 : 5000;

	return ceil(ms / step) * step;
}

/* A call fails if it takes longer than `call_ms`; a leadership is lost if all tries do. */
static void count_failovers(const struct measured *m, struct advice *a)
{
	size_t over = 0;

	while (over < m->n && m->samples[m->n - 1 - over] > a->call_ms)
		over++;
	double n = (double)m->n;
	double part = n > 0 ? (double)over / n : 0;
	/* Wilson's bound; the rule of three where none was over. */
	double z = 1.645;
	double bound = n == 0      ? 1
		       : over == 0 ? 3 / n
				   : (part + z * z / (2 * n) +
				      z * sqrt(part * (1 - part) / n + z * z / (4 * n * n))) /
					     (1 + z * z / n);
	double renewals = RENEWALS_A_YEAR(a->renew_ms);

	a->false_a_year = renewals * pow(part, TRIES);
	a->false_at_most = renewals * pow(bound < 1 ? bound : 1, TRIES);
}

static void fill_in(const struct measured *m, struct advice *a, double retry_max_ms)
{
	a->drain_ms = a->lease_ms * (1 - m->drift) - a->renew_ms - a->grace_ms;
	a->call_ms = a->grace_ms / TRIES;
	a->most_ms = a->lease_ms * (1 + m->drift) + retry_max_ms + 2 * advice_quantile(m, 0.999);
	a->typical_ms = a->lease_ms - a->renew_ms / 2 + advice_quantile(m, 0.5);
	a->requests_a_minute = 60e3 / a->renew_ms;
	a->is_enough = a->drain_ms >= m->stop_ms + 2 * m->pause_ms;
	count_failovers(m, a);
}

void advice_compute(const struct measured *m, struct advice rows[ADVICE_ROWS])
{
	static const struct {
		const char *name;
		double lease_ms, renew_ms, grace_ms, retry_ms;
	} profiles[] = {{"fast", 3000, 1000, 1000, 250},
			{"normal", 15000, 5000, 5000, 2000},
			{"unreliable", 60000, 15000, 30000, 3000}};
	double call_ms = larger(4 * advice_quantile(m, 0.999), 2 * advice_quantile(m, 1));
	double grace_ms = larger(3 * call_ms, 1.5 * m->outage_ms);
	double drain_ms = m->stop_ms + 2 * m->pause_ms;
	double lease_ms = (grace_ms + drain_ms) / (2.0 / 3 - m->drift);

	/* The lease is rounded up: the grace gets what is left over, which nothing else would
	 * use. */
	lease_ms = round_up(larger(lease_ms, larger(m->floor_ms, 300)));
	grace_ms = larger(grace_ms, lease_ms * (2.0 / 3 - m->drift) - drain_ms);
	rows[0] = (struct advice){.name = "recommended",
				  .lease_ms = lease_ms,
				  .renew_ms = floor(lease_ms / 3),
				  .grace_ms = floor(grace_ms)};
	fill_in(m, &rows[0], 5 * (lease_ms / 6 < 2000 ? lease_ms / 6 : 2000));
	for (int i = 1; i < ADVICE_ROWS; i++) {
		rows[i] = (struct advice){.name = profiles[i - 1].name,
					  .lease_ms = profiles[i - 1].lease_ms,
					  .renew_ms = profiles[i - 1].renew_ms,
					  .grace_ms = profiles[i - 1].grace_ms};
		fill_in(m, &rows[i], 5 * profiles[i - 1].retry_ms);
	}
}
