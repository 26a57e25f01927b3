/*
 * queue.c: the exporter as the rest of the process sees it: spans are queued, up to a limit; spans
 * beyond it are counted and left out. Of metrics only the newest count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "telemetry/otlp/otlp.h"

static void otlp_free(struct otlp *x);

static void *otlp_open(const char *instance, void (*say)(int level, const char *text),
		       struct baton_error *err)
{
	struct otlp *x = calloc(1, sizeof(*x));
	pthread_condattr_t attr;
	pthread_t thread;

	if (x == NULL) {
		*err = (struct baton_error){.code = BATON_E_MEMORY, .text = "no memory"};
		return NULL;
	}
	(void)pthread_mutex_init(&x->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&x->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	x->say = say;
	x->end = &x->first;
	x->begun_ns = trace_now();
	int code = otlp_settings_read(&x->settings, instance, err);

	if (code == 0) {
		(void)curl_global_init(CURL_GLOBAL_DEFAULT);
		x->multi = curl_multi_init();
		if (x->multi == NULL || !thread_start(&thread, otlp_send, x)) {
			code = BATON_E_SYSTEM;
			*err = (struct baton_error){.code = code,
						    .text = "the exporter can't have a thread"};
		}
	}
	if (code != 0) {
		otlp_free(x);
		return NULL;
	}
	(void)pthread_detach(thread); /* a collector that hangs must not hold up the end */
	return x;
}

static void otlp_free(struct otlp *x)
{
	while (x->first != NULL) {
		struct otlp_item *item = x->first;

		x->first = item->next;
		free(item);
	}
	if (x->multi != NULL)
		(void)curl_multi_cleanup(x->multi);
	otlp_settings_done(&x->settings);
	bytes_done(&x->metrics);
	bytes_done(&x->body);
	(void)pthread_cond_destroy(&x->changed);
	(void)pthread_mutex_destroy(&x->lock);
	free(x);
}

static bool otlp_wants_spans(const void *arg)
{
	const struct otlp *x = arg;

	return x->settings.signals[SIGNAL_TRACES].is_on;
}

static uint64_t otlp_metrics_every_ns(const void *arg)
{
	const struct otlp *x = arg;

	return x->settings.metrics_every_ns;
}

static void otlp_span(void *arg, const struct span *span)
{
	struct otlp *x = arg;
	struct otlp_item *item = calloc(1, sizeof(*item));

	if (item != NULL)
		item->span = *span;
	(void)pthread_mutex_lock(&x->lock);
	if (item == NULL || x->n_items >= QUEUE_MAX) {
		x->n_dropped++;
		(void)pthread_mutex_unlock(&x->lock);
		free(item);
		return;
	}
	*x->end = item;
	x->end = &item->next;
	x->n_items++;
	(void)pthread_cond_broadcast(&x->changed);
	(void)pthread_mutex_unlock(&x->lock);
}

static uint64_t otlp_n_dropped(const void *arg)
{
	struct otlp *x = (struct otlp *)(uintptr_t)arg;

	(void)pthread_mutex_lock(&x->lock);
	uint64_t n = x->n_dropped;

	(void)pthread_mutex_unlock(&x->lock);
	return n;
}

/* ---- metrics ---- */

static void begin_metrics(void *arg)
{
	struct otlp *x = arg;

	bytes_clear(&x->body);
	if (x->settings.signals[SIGNAL_METRICS].json)
		otlp_metrics_begin_json(x);
	else
		otlp_metrics_begin(x);
}

static void add_metric(void *arg, const struct baton_metric *m)
{
	struct otlp *x = arg;

	if (x->settings.signals[SIGNAL_METRICS].json)
		otlp_metrics_add_json(x, m);
	else
		otlp_metrics_add(x, m);
}

static void end_metrics(void *arg)
{
	struct otlp *x = arg;

	if (x->settings.signals[SIGNAL_METRICS].json)
		otlp_metrics_end_json(x);
	else
		otlp_metrics_end(x);
	if (x->body.has_failed)
		return;
	(void)pthread_mutex_lock(&x->lock);
	struct bytes old = x->metrics;

	x->metrics = x->body;
	x->body = (struct bytes){0};
	(void)pthread_cond_broadcast(&x->changed);
	(void)pthread_mutex_unlock(&x->lock);
	bytes_done(&old);
}

/* ---- the end ---- */

static void otlp_close(void *arg, unsigned timeout_ms)
{
	struct otlp *x = arg;
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t end_ns = (uint64_t)now.tv_sec * CLOCK_NS_PER_S + (uint64_t)now.tv_nsec +
			  timeout_ms * CLOCK_NS_PER_MS;
	const struct timespec until = {.tv_sec = (time_t)(end_ns / CLOCK_NS_PER_S),
				       .tv_nsec = (long)(end_ns % CLOCK_NS_PER_S)};

	(void)pthread_mutex_lock(&x->lock);
	x->is_ending = true;
	x->end_ns = end_ns - timeout_ms * CLOCK_NS_PER_MS / 10; /* the thread is to end in time */
	(void)pthread_cond_broadcast(&x->changed);
	(void)curl_multi_wakeup(x->multi);
	while (!x->has_ended)
		if (pthread_cond_timedwait(&x->changed, &x->lock, &until) == ETIMEDOUT)
			break;
	bool is_over = x->has_ended;

	(void)pthread_mutex_unlock(&x->lock);
	if (is_over) /* else its thread still uses it, and the process is about to end */
		otlp_free(x);
}

extern BATON_API const struct exporter_ops baton_exporter;
const struct exporter_ops baton_exporter = {
	.version = EXPORTER_VERSION,
	.open = otlp_open,
	.wants_spans = otlp_wants_spans,
	.metrics_every_ns = otlp_metrics_every_ns,
	.span = otlp_span,
	.metrics_begin = begin_metrics,
	.metrics_add = add_metric,
	.metrics_end = end_metrics,
	.n_dropped = otlp_n_dropped,
	.close = otlp_close,
};
