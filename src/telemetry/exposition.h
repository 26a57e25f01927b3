/*
 * exposition.h: metrics as text that Prometheus reads: its own format 0.0.4, or OpenMetrics 1.0.
 *
 *     exposition_begin(x, exposition_choose(accept));
 *     baton_metrics(b, exposition_add, x);
 *     process_metrics(exposition_add, x);
 *     text = exposition_end(x, &n);
 *
 * Elections are a label: cap.h stands between, so that not too many of them have series. Ids never
 * become labels.
 *
 * One thread at a time. It never asks the store, and does no I/O.
 */
#ifndef BATON_EXPOSITION_H
#define BATON_EXPOSITION_H

#include <baton.h>

enum exposition_format { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS };

struct exposition;

/* client_go: also leader_election_master_status{name}, as controllers of Kubernetes have it.
 * NULL: no memory. */
struct exposition *exposition_new(bool client_go);
void exposition_free(struct exposition *x);

/* The format that an Accept header asks for; NULL: there is none. */
int exposition_choose(const char *accept);
/* The Content-Type of a format. */
const char *exposition_content_type(int format);

void exposition_begin(struct exposition *x, int format);
/* One time series; those of one name follow one another. arg is the exposition: the form is that of
 * emit() of baton_metrics(). */
void exposition_add(void *arg, const struct baton_metric *m);
/* The text, which lives until the next exposition_begin(). NULL: no memory. */
const char *exposition_end(struct exposition *x, size_t *n);

#endif
