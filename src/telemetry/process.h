/*
 * process.h: what every exporter of Prometheus tells of its own process, under the usual names.
 */
#ifndef BATON_PROCESS_H
#define BATON_PROCESS_H

#include <baton.h>

/* Calls emit() for each metric that the system tells. Reads /proc. */
void process_metrics(void (*emit)(void *arg, const struct baton_metric *metric), void *arg);

#endif
