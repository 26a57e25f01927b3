/*
 * otlp.h: what the parts of the exporter share: settings.c reads the variables of OpenTelemetry,
 * encode.c writes protocol buffers, encode_json.c JSON, queue.c keeps what is to be sent, send.c
 * has the thread that sends.
 */
#ifndef BATON_OTLP_H
#define BATON_OTLP_H

#include <curl/curl.h>
#include <pthread.h>

#include "base/bytes.h"
#include "telemetry/exporter.h"

#define QUEUE_MAX 1000
#define BATCH_MAX 256
#define RESOURCE_MAX 32

#pragma GCC visibility push(hidden)

enum signal_kind { SIGNAL_TRACES, SIGNAL_METRICS, SIGNALS };

struct otlp_signal {
	bool is_on;
	char *url;
	struct curl_slist *headers;
	bool gzip;
	bool json;
	long timeout_ms;
	const char *ca;
	const char *certificate;
	const char *key;
};

struct otlp_pair {
	char key[64];
	char value[256];
};

struct otlp_settings {
	struct otlp_signal signals[SIGNALS];
	struct otlp_pair resource[RESOURCE_MAX];
	size_t n_resource;
	uint64_t metrics_every_ns;
};

/* A span that waits. */
struct otlp_item {
	struct otlp_item *next;
	struct span span;
};

struct otlp {
	struct otlp_settings settings;
	void (*say)(int level, const char *text);
	int64_t begun_ns; /* wall time: since then counters count */

	/* of the caller's thread: the metrics that are being told */
	struct bytes body;
	char family[128];
	size_t marks[8]; /* where the open messages began */
	bool is_family_open;

	/* with the lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct otlp_item *first;
	struct otlp_item **end;
	size_t n_items;
	struct bytes metrics; /* a request that waits; n 0: none */
	uint64_t n_dropped;
	bool is_ending;
	uint64_t end_ns; /* CLOCK_MONOTONIC: then it stops whatever it does */
	bool has_ended;
	CURLM *multi;
	bool is_failing; /* it fails, and that was said */
};

/* ---- settings.c ---- */

/* 0, or a code with a sentence. */
int otlp_settings_read(struct otlp_settings *s, const char *instance, struct baton_error *err);
void otlp_settings_done(struct otlp_settings *s);

/* ---- encode.c, encode_json.c ---- */

void otlp_encode_spans(const struct otlp *x, const struct otlp_item *items, struct bytes *out);
void otlp_encode_spans_json(const struct otlp *x, const struct otlp_item *items, struct bytes *out);
/* A request with metrics: begin, one by one, end. */
void otlp_metrics_begin(struct otlp *x);
void otlp_metrics_add(struct otlp *x, const struct baton_metric *m);
void otlp_metrics_end(struct otlp *x);
void otlp_metrics_begin_json(struct otlp *x);
void otlp_metrics_add_json(struct otlp *x, const struct baton_metric *m);
void otlp_metrics_end_json(struct otlp *x);
/* baton_renewal_duration_seconds with the unit seconds becomes baton.renewal.duration with the unit
 * s. Where Prometheus keeps metrics of OpenTelemetry, it makes the old name of that again. */
const char *otlp_name(const struct baton_metric *m, char out[128]);
const char *otlp_unit(const struct baton_metric *m);

/* ---- send.c ---- */

void *otlp_send(void *arg);

#pragma GCC visibility pop

#endif
