/*
 * pulse.c: whether the library works. Its loop must make progress, no call to the store may last
 * long past its deadline, and the store must have answered once. The metrics of the library tell
 * this. They are asked for rarely, because they tell of every election, too.
 *
 * It must never judge by one look: after a freeze of the whole process, every thread is late for an
 * instant.
 */
#include <string.h>

#include "base/clock.h"
#include "serve/server.h"

#define SOON_MS 100  /* between looks while there is something to wait for */
#define SURE_MS 1000 /* what is late for so long is stuck */
#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)

struct pulse {
	double late_s; /* the worst of all threads */
	bool has_answer;
};

static void take_metric(void *arg, const struct baton_metric *m)
{
	struct pulse *p = arg;

	if (strcmp(m->name, "baton_loop_stalled_seconds") == 0 ||
	    strcmp(m->name, "baton_lane_overdue_seconds") == 0)
		p->late_s = m->value > p->late_s ? m->value : p->late_s;
	else if (strcmp(m->name, "baton_store_last_success_timestamp_seconds") == 0)
		p->has_answer = m->value > 0;
}

void pulse_take(struct server *s)
{
	struct pulse p = {0};
	int64_t now_ns = server_now_ns();
	int64_t lease_ns = (int64_t)s->view.timings.lease_ns;
	int64_t every_ns = s->has_answer && s->late_ns == 0 ? lease_ns / 4 : SOON_MS * NS_PER_MS;

	if (s->pulse_ns != 0 && now_ns - s->pulse_ns < every_ns)
		return;
	s->pulse_ns = now_ns;
	(void)baton_metrics(s->config->baton, take_metric, &p);
	s->has_answer = s->has_answer || p.has_answer;
	if (p.late_s * CLOCK_NS_PER_S <= (double)lease_ns && !worker_is_late(s, now_ns))
		s->late_ns = 0;
	else if (s->late_ns == 0)
		s->late_ns = now_ns;
	s->is_stuck = s->late_ns != 0 && now_ns - s->late_ns >= SURE_MS * NS_PER_MS;
}
