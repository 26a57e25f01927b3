/*
 * cap.h: a cap on the names of elections, between what tells metrics and what takes them.
 *
 *     cap_begin(c, exposition_add, x);
 *     baton_metrics(b, cap_add, c);
 *     good = cap_end(c);
 *
 * Elections are a label, and labels are what a monitoring system pays for. So only the first
 * max_elections names have series of their own; the others share the name "__other__". There,
 * counters and histograms are sums, gauges that say yes or no are counts, and other gauges are left
 * out. A name keeps its series until the election is gone. All who take metrics of a process share
 * its cap, so that the same elections have series everywhere.
 *
 * One thread at a time. It never asks the store, and does no I/O.
 */
#ifndef BATON_CAP_H
#define BATON_CAP_H

#include <baton.h>

#define CAP_ELECTIONS 200 /* unless the caller wants another number */
#define CAP_OTHER "__other__"

struct cap;

/* NULL: no memory. */
struct cap *cap_new(size_t max_elections);
/* Takes NULL. */
void cap_free(struct cap *c);

/* What passes goes to emit(). */
void cap_begin(struct cap *c, void (*emit)(void *arg, const struct baton_metric *m), void *arg);
/* One time series; those of one name follow one another. arg is the cap: the form is that of emit()
 * of baton_metrics(). */
void cap_add(void *arg, const struct baton_metric *m);
/* False: there was no memory, and something is missing. */
bool cap_end(struct cap *c);

#endif
