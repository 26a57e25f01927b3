/*
 * encode_json.c: the same requests as encode.c, as JSON: ids in hex, numbers of 64 bits as strings,
 * as the specification of OTLP asks for.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "telemetry/json.h"
#include "telemetry/otlp/otlp.h"

#define TEXT_MAX ((size_t)1 << 28)

static void comma(struct bytes *b)
{
	if (b->n > 0 && strchr("{[", b->at[b->n - 1]) == NULL)
		(void)bytes_add(b, ",", 1, TEXT_MAX);
}

static void put_number(struct bytes *b, const char *key, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	json_member(b, key, text);
}

static void put_pair(struct bytes *b, const char *key, const char *text, int64_t number)
{
	comma(b);
	bytes_print(b, "{");
	json_member(b, "key", key);
	bytes_print(b, ",\"value\":{");
	if (text != NULL)
		json_member(b, "stringValue", text);
	else
		bytes_print(b, "\"intValue\":\"%lld\"", (long long)number);
	bytes_print(b, "}}");
}

static void put_head(const struct otlp *x, struct bytes *b, const char *of_resource,
		     const char *of_scope, const char *items)
{
	bytes_print(b, "{\"%s\":[{\"resource\":{\"attributes\":[", of_resource);
	for (size_t i = 0; i < x->settings.n_resource; i++)
		put_pair(b, x->settings.resource[i].key, x->settings.resource[i].value, 0);
	bytes_print(b, "]},\"%s\":[{\"scope\":{\"name\":\"baton\",\"version\":\"%s\"},\"%s\":[",
		    of_scope, BATON_VERSION, items);
}

static void put_tail(struct bytes *b)
{
	bytes_print(b, "]}]}]}");
}

/* ---- spans ---- */

static void put_id(struct bytes *b, const char *key, const uint8_t *id, size_t n)
{
	char text[33];

	trace_hex(id, n, text);
	json_member(b, key, text);
}

static void put_span(struct bytes *b, const struct span *s)
{
	comma(b);
	bytes_print(b, "{");
	put_id(b, "traceId", s->trace, sizeof(s->trace));
	put_id(b, "spanId", s->id, sizeof(s->id));
	if (s->has_parent)
		put_id(b, "parentSpanId", s->parent, sizeof(s->parent));
	json_member(b, "name", s->name);
	bytes_print(b, ",\"kind\":1");
	put_number(b, "startTimeUnixNano", (uint64_t)s->start_ns);
	put_number(b, "endTimeUnixNano", (uint64_t)s->end_ns);
	bytes_print(b, ",\"attributes\":[");
	for (size_t i = 0; i < s->n_attributes; i++) {
		const struct span_attribute *a = &s->attributes[i];

		put_pair(b, a->key, a->text[0] != '\0' ? a->text : NULL, a->number);
	}
	bytes_print(b, "],\"events\":[");
	for (size_t i = 0; i < s->n_events; i++) {
		comma(b);
		bytes_print(b, "{");
		put_number(b, "timeUnixNano", (uint64_t)s->events[i].wall_ns);
		json_member(b, "name", s->events[i].name);
		bytes_print(b, "}");
	}
	bytes_print(b, "]%s}", s->is_error ? ",\"status\":{\"code\":2}" : "");
}

void otlp_encode_spans_json(const struct otlp *x, const struct otlp_item *items, struct bytes *out)
{
	put_head(x, out, "resourceSpans", "scopeSpans", "spans");
	for (; items != NULL; items = items->next)
		put_span(out, &items->span);
	put_tail(out);
}

/* ---- metrics ---- */

void otlp_metrics_begin_json(struct otlp *x)
{
	put_head(x, &x->body, "resourceMetrics", "scopeMetrics", "metrics");
	x->is_family_open = false;
	x->family[0] = '\0';
}

static void end_family(struct otlp *x)
{
	if (x->is_family_open)
		bytes_print(&x->body, "]}}");
	x->is_family_open = false;
}

static void begin_family(struct otlp *x, const struct baton_metric *m)
{
	static const char *const heads[] = {
		[BATON_METRIC_GAUGE] = "gauge\":{",
		[BATON_METRIC_COUNTER] =
			"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,",
		[BATON_METRIC_HISTOGRAM] = "histogram\":{\"aggregationTemporality\":2,"};
	struct bytes *b = &x->body;
	char name[128];

	comma(b);
	bytes_print(b, "{");
	json_member(b, "name", otlp_name(m, name));
	json_member(b, "description", m->help);
	json_member(b, "unit", otlp_unit(m));
	bytes_print(b, ",\"%s\"dataPoints\":[", heads[m->type]);
	(void)snprintf(x->family, sizeof(x->family), "%s", m->name);
	x->is_family_open = true;
}

static void put_double(struct bytes *b, const char *key, double value)
{
	comma(b);
	if (isfinite(value))
		bytes_print(b, "\"%s\":%.17g", key, value);
	else
		bytes_print(b, "\"%s\":\"%s\"", key,
			    isnan(value) ? "NaN"
			    : value > 0  ? "Infinity"
					 : "-Infinity");
}

static void put_histogram(struct bytes *b, const struct baton_metric *m)
{
	put_number(b, "count", m->count);
	put_double(b, "sum", m->sum);
	bytes_print(b, ",\"bucketCounts\":[");
	for (size_t i = 0; i < m->n_buckets; i++)
		bytes_print(b, "%s\"%llu\"", i > 0 ? "," : "", (unsigned long long)m->counts[i]);
	bytes_print(b, "],\"explicitBounds\":[");
	for (size_t i = 0; i + 1 < m->n_buckets; i++)
		bytes_print(b, "%s%.17g", i > 0 ? "," : "", m->bounds[i]);
	bytes_print(b, "]");
}

void otlp_metrics_add_json(struct otlp *x, const struct baton_metric *m)
{
	struct bytes *b = &x->body;

	if (strcmp(x->family, m->name) != 0) {
		end_family(x);
		begin_family(x, m);
	}
	comma(b);
	bytes_print(b, "{");
	if (m->type != BATON_METRIC_GAUGE)
		put_number(b, "startTimeUnixNano", (uint64_t)x->begun_ns);
	put_number(b, "timeUnixNano", (uint64_t)trace_now());
	if (m->type == BATON_METRIC_HISTOGRAM)
		put_histogram(b, m);
	else
		put_double(b, "asDouble", m->value);
	bytes_print(b, ",\"attributes\":[");
	for (size_t i = 0; i < m->n_labels; i++)
		put_pair(b, m->labels[i].name, m->labels[i].value, 0);
	bytes_print(b, "]}");
}

void otlp_metrics_end_json(struct otlp *x)
{
	end_family(x);
	put_tail(&x->body);
}
