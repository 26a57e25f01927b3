/*
 * process.h: what every exporter of Prometheus tells of its own process, under the usual names; and
 * what it adds to the metrics of the library.
 */
#ifndef BATON_PROCESS_H
#define BATON_PROCESS_H

#include <baton.h>

/* Calls emit() for each metric that the system tells. Reads /proc. */
void process_metrics(void (*emit)(void *arg, const struct baton_metric *metric), void *arg);

/* For baton_metrics(): lines of the log that the process could not write count as records that the
 * library has left out. */
struct process_log {
	uint64_t n_unwritten;
	void (*emit)(void *arg, const struct baton_metric *metric);
	void *arg;
};

void process_add_unwritten(void *log, const struct baton_metric *metric);

#endif
