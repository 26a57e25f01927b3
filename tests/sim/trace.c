/*
 * trace.c: a world as people read it, one line per event, action, note and fault; and as a hash,
 * for machines that compare builds. The hash is fed whether or not the lines are printed.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>

#include "text.h"

const char *trace_name(const struct proc *p)
{
	static char buf[4][8];
	static unsigned n;
	char *b = buf[n++ % 4];

	if (p->slot < 26)
		(void)snprintf(b, sizeof(buf[0]), "%c", 'A' + p->slot);
	else
		(void)snprintf(b, sizeof(buf[0]), "P%u", p->slot);
	return b;
}

void trace(struct world *w, const struct proc *p, const char *fmt, ...)
{
	va_list ap;

	if (!w->verbose)
		return;
	printf("%6llu.%06llu %-4s ", (unsigned long long)(w->now_ns / NS_PER_S),
	       (unsigned long long)(w->now_ns % NS_PER_S / 1000), p != NULL ? trace_name(p) : "-");
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
}

static void print_view(const struct view *v)
{
	printf(" term %llu", (unsigned long long)v->term);
	if (v->held)
		printf(" held by %u%s", v->leader, v->mine ? " (mine)" : "");
	if (v->free_in_ns != NEVER)
		printf(" free in %llums", (unsigned long long)(v->free_in_ns / NS_PER_MS));
	if (v->paused)
		printf(" paused");
	if (v->order != ORDER_NONE)
		printf(" order %llu for term %llu", (unsigned long long)v->order_id,
		       (unsigned long long)v->order_term);
}

void trace_event(struct world *w, const struct proc *p, int idx, int x, const struct event *ev)
{
	hash_mix(w, w->now_ns);
	hash_mix(w, (uint64_t)p->slot << 32 | (uint64_t)(uint8_t)(idx + 1) << 24 |
			    (uint64_t)(uint8_t)(x + 1) << 16 | (uint64_t)ev->kind << 8 |
			    ev->outcome);
	if (!w->verbose)
		return;
	printf("%6llu.%06llu %-4s ", (unsigned long long)(w->now_ns / NS_PER_S),
	       (unsigned long long)(w->now_ns % NS_PER_S / 1000), trace_name(p));
	if (x >= 0)
		printf("election %d <- %s", x, text_event_kind(ev->kind));
	else
		printf("lease %d <- %s", idx, text_event_kind(ev->kind));
	if (ev->outcome != 0)
		printf(" %s", text_outcome(ev->outcome));
	if ((ev->kind == EV_CAMPAIGNED || ev->kind == EV_OBSERVED) &&
	    (ev->outcome == OUTCOME_OK || ev->outcome == OUTCOME_REFUSED))
		print_view(&ev->view);
	if (ev->kind == EV_CLAIM && ev->view.held)
		print_view(&ev->view);
	if (ev->kind == EV_RENEWED && ev->outcome == OUTCOME_OK)
		printf(" holds %u", ev->n_held);
	if (ev->kind == EV_HEALTH)
		printf(" score %u", ev->score);
	(void)putchar('\n');
}

void trace_action(struct world *w, const struct proc *p, int idx, int x, const struct action *a)
{
	char buf[160];

	hash_mix(w, (uint64_t)a->kind << 24 | (uint64_t)a->note << 16 | (uint64_t)a->why << 8);
	hash_mix(w, a->term ^ a->call << 32);
	if (!w->verbose)
		return;
	text_action(a, buf, sizeof(buf));
	if (x >= 0)
		trace(w, p, "election %d -> %s", x, buf);
	else
		trace(w, p, "lease %d -> %s", idx, buf);
}

static void trace_proc(struct world *w, const struct proc *p)
{
	const struct timing *t = &p->timing;

	trace(w, p,
	      "lease %llums renew %llums grace %llums retry %llu..%llums drift %llu rate %+lldppm",
	      (unsigned long long)(t->lease_ns / NS_PER_MS),
	      (unsigned long long)(t->renew_ns / NS_PER_MS),
	      (unsigned long long)(t->grace_ns / NS_PER_MS),
	      (unsigned long long)(t->retry_ns / NS_PER_MS),
	      (unsigned long long)(t->retry_max_ns / NS_PER_MS), (unsigned long long)t->drift_ppm,
	      ((long long)p->clock.num - 1048576) * 1000000 / 1048576);
	for (unsigned x = 0; x < w->params.n_elections; x++) {
		const struct options *o = &w->options[p->slot].o[x];

		trace(w, p,
		      "election %u: priority %d preempt %llums work %llums score %u%s%s%s%s%s", x,
		      o->priority, (unsigned long long)(o->preempt_ns / NS_PER_MS),
		      (unsigned long long)(o->work_timeout_ns / NS_PER_MS), o->min_score,
		      o->check_health ? "" : " no-health", o->step_down_unhealthy ? "" : " stays",
		      o->release_on_stop ? "" : " keeps", o->observe_only ? " observes" : "",
		      o->manual ? " manual" : "");
	}
}

void trace_world(struct world *w)
{
	const struct params *q = &w->params;

	if (!w->verbose)
		return;
	trace(w, NULL, "%u processes, %u elections,%s%s%s%s%s%s%s%s", q->n_procs, q->n_elections,
	      q->own ? " own leases" : " shared lease", q->watched ? " watched" : "",
	      q->tells_expiry ? "" : " expiry-unknown", q->provable ? " provable" : "",
	      q->weak ? " weak" : " exact", q->corrupt ? " corrupt" : "",
	      q->bad_app ? " bad-app" : "", q->lattice_ns != 0 ? " lattice" : "");
	trace(w, NULL, "latency %lluus..%lluus, push %lluus, faults for %llus",
	      (unsigned long long)(q->lat_min_ns / 1000),
	      (unsigned long long)(q->lat_max_ns / 1000),
	      (unsigned long long)(q->push_max_ns / 1000),
	      (unsigned long long)(q->safety_ns / NS_PER_S));
	for (unsigned f = 0; f < N_FAULTS; f++)
		if (q->strength[f] != 0)
			trace(w, NULL, "%s: %u", fault_name((enum fault)f), q->strength[f]);
	for (unsigned i = 0; i < q->n_procs && i < 9; i++)
		trace_proc(w, &w->proc[i]);
}
