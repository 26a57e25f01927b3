/*
 * exporter.h: sends metrics and spans by OTLP. The exporter is a module of its own, on libcurl, so
 * that a process that exports nothing loads no library for it. It has a thread of its own; no call
 * of this header waits for it, but for exporter_close().
 */
#ifndef BATON_EXPORTER_H
#define BATON_EXPORTER_H

#include <baton.h>

#include "telemetry/trace.h"

#define EXPORTER_VERSION 1

/* What the module exports, as baton_exporter. */
struct exporter_ops {
	int version;
	/* By the variables OTEL_*. say: a sentence for the log, on any thread. */
	void *(*open)(const char *instance, void (*say)(int level, const char *text),
		      struct baton_error *err);
	bool (*wants_spans)(const void *x);
	uint64_t (*metrics_every_ns)(const void *x); /* 0: it wants none */
	void (*span)(void *x, const struct span *span);
	void (*metrics_begin)(void *x);
	void (*metrics_add)(void *x, const struct baton_metric *m);
	void (*metrics_end)(void *x);
	uint64_t (*n_dropped)(const void *x);
	void (*close)(void *x, unsigned timeout_ms);
};

struct exporter {
	const struct exporter_ops *ops;
	void *x;
};

/* Whether an endpoint is set, and nothing switches the exporter off. */
bool exporter_is_wanted(void);
/* 0, or a code of the library with a sentence. */
int exporter_open(struct exporter *e, const char *instance,
		  void (*say)(int level, const char *text), struct baton_error *err);
/* Sends what is left, for at most so long. Takes a zeroed exporter. */
void exporter_close(struct exporter *e, unsigned timeout_ms);

#endif
