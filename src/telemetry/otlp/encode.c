/*
 * encode.c: requests of OTLP as protocol buffers: ExportTraceServiceRequest and
 * ExportMetricsServiceRequest (opentelemetry-proto 1.x). Field numbers stand beside their names.
 */
#include <stdio.h>
#include <string.h>

#include "base/web/proto.h"
#include "telemetry/otlp/otlp.h"

#define TEXT_MAX ((size_t)1 << 28)

static void put_fixed64(struct bytes *b, unsigned field, uint64_t value)
{
	unsigned char text[10];
	size_t n = 0;

	text[n++] = (unsigned char)((field << 3) | 1); /* all fields that we have are below 16 */
	for (int i = 0; i < 8; i++)
		text[n++] = (unsigned char)(value >> (8 * i));
	(void)bytes_add(b, (const char *)text, n, TEXT_MAX);
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	(void)memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void put_bytes(struct bytes *b, unsigned field, const uint8_t *from, size_t n)
{
	const unsigned char head[] = {(unsigned char)((field << 3) | 2), (unsigned char)n};

	(void)bytes_add(b, (const char *)head, sizeof(head), TEXT_MAX);
	(void)bytes_add(b, (const char *)from, n, TEXT_MAX);
}

/* KeyValue: key = 1, value = 2 (AnyValue: string_value = 1, int_value = 3) */
static void put_pair(struct bytes *b, unsigned field, const char *key, const char *text,
		     int64_t number)
{
	size_t pair = proto_begin(b, field);

	proto_put_text(b, 1, key);
	size_t value = proto_begin(b, 2);

	if (text != NULL)
		proto_put_text(b, 1, text);
	else
		proto_put_number(b, 3, (uint64_t)number);
	proto_end(b, value);
	proto_end(b, pair);
}

/* Resource: attributes = 1. InstrumentationScope: name = 1, version = 2 */
static void put_resource(const struct otlp *x, struct bytes *b)
{
	size_t resource = proto_begin(b, 1);

	for (size_t i = 0; i < x->settings.n_resource; i++)
		put_pair(b, 1, x->settings.resource[i].key, x->settings.resource[i].value, 0);
	proto_end(b, resource);
}

static void put_scope(struct bytes *b)
{
	size_t scope = proto_begin(b, 1);

	proto_put_text(b, 1, "baton");
	proto_put_text(b, 2, BATON_VERSION);
	proto_end(b, scope);
}

/* ---- spans ---- */

/* Span: trace_id = 1, span_id = 2, parent_span_id = 4, name = 5, kind = 6 (internal = 1),
 * start = 7, end = 8, attributes = 9, events = 11 (time = 1, name = 2),
 * status = 15 (code = 3, error = 2) */
static void put_span(struct bytes *b, const struct span *s)
{
	size_t span = proto_begin(b, 2);

	put_bytes(b, 1, s->trace, sizeof(s->trace));
	put_bytes(b, 2, s->id, sizeof(s->id));
	if (s->has_parent)
		put_bytes(b, 4, s->parent, sizeof(s->parent));
	proto_put_text(b, 5, s->name);
	proto_put_number(b, 6, 1);
	put_fixed64(b, 7, (uint64_t)s->start_ns);
	put_fixed64(b, 8, (uint64_t)s->end_ns);
	for (size_t i = 0; i < s->n_attributes; i++) {
		const struct span_attribute *a = &s->attributes[i];

		put_pair(b, 9, a->key, a->text[0] != '\0' ? a->text : NULL, a->number);
	}
	for (size_t i = 0; i < s->n_events; i++) {
		size_t event = proto_begin(b, 11);

		put_fixed64(b, 1, (uint64_t)s->events[i].wall_ns);
		proto_put_text(b, 2, s->events[i].name);
		proto_end(b, event);
	}
	if (s->is_error) {
		size_t status = proto_begin(b, 15);

		proto_put_number(b, 3, 2);
		proto_end(b, status);
	}
	proto_end(b, span);
}

void otlp_encode_spans(const struct otlp *x, const struct otlp_item *items, struct bytes *out)
{
	size_t of_resource = proto_begin(out, 1);

	put_resource(x, out);
	size_t of_scope = proto_begin(out, 2);

	put_scope(out);
	for (; items != NULL; items = items->next)
		put_span(out, &items->span);
	proto_end(out, of_scope);
	proto_end(out, of_resource);
}

/* ---- metrics ---- */

const char *otlp_unit(const struct baton_metric *m)
{
	return strcmp(m->unit, "seconds") == 0 ? "s"
	       : strcmp(m->unit, "bytes") == 0 ? "By"
	       : strcmp(m->unit, "ratio") == 0 ? "1"
					       : "";
}

static void strip(char *name, const char *end)
{
	size_t n = strlen(name);
	size_t n_end = strlen(end);

	if (n_end > 0 && n > n_end + 1 && name[n - n_end - 1] == '_' &&
	    strcmp(name + n - n_end, end) == 0)
		name[n - n_end - 1] = '\0';
}

const char *otlp_name(const struct baton_metric *m, char out[128])
{
	(void)snprintf(out, 128, "%s", m->name);
	if (m->type == BATON_METRIC_COUNTER)
		strip(out, "total");
	strip(out, m->unit);
	for (char *at = out; *at != '\0'; at++)
		if (*at == '_')
			*at = '.';
	return out;
}

enum { OF_RESOURCE, OF_SCOPE, OF_METRIC, OF_DATA };

void otlp_metrics_begin(struct otlp *x)
{
	x->marks[OF_RESOURCE] = proto_begin(&x->body, 1);
	put_resource(x, &x->body);
	x->marks[OF_SCOPE] = proto_begin(&x->body, 2);
	put_scope(&x->body);
	x->is_family_open = false;
	x->family[0] = '\0';
}

static void end_family(struct otlp *x)
{
	if (!x->is_family_open)
		return;
	proto_end(&x->body, x->marks[OF_DATA]);
	proto_end(&x->body, x->marks[OF_METRIC]);
	x->is_family_open = false;
}

/* Metric: name = 1, description = 2, unit = 3, gauge = 5, sum = 7 (temporality = 2, monotonic = 3),
 * histogram = 9 (temporality = 2); cumulative = 2. data_points = 1 of each. */
static void begin_family(struct otlp *x, const struct baton_metric *m)
{
	struct bytes *b = &x->body;
	char name[128];

	x->marks[OF_METRIC] = proto_begin(b, 2);
	proto_put_text(b, 1, otlp_name(m, name));
	proto_put_text(b, 2, m->help);
	proto_put_text(b, 3, otlp_unit(m));
	x->marks[OF_DATA] = proto_begin(b, m->type == BATON_METRIC_GAUGE     ? 5
					   : m->type == BATON_METRIC_COUNTER ? 7
									     : 9);
	if (m->type != BATON_METRIC_GAUGE)
		proto_put_number(b, 2, 2);
	if (m->type == BATON_METRIC_COUNTER)
		proto_put_number(b, 3, 1);
	(void)snprintf(x->family, sizeof(x->family), "%s", m->name);
	x->is_family_open = true;
}

/* HistogramDataPoint: start = 2, time = 3, count = 4, sum = 5, bucket_counts = 6, bounds = 7,
 * attributes = 9 */
static void put_histogram(struct otlp *x, const struct baton_metric *m)
{
	struct bytes *b = &x->body;

	put_fixed64(b, 4, m->count);
	put_fixed64(b, 5, bits_of(m->sum));
	for (size_t i = 0; i < m->n_buckets; i++)
		put_fixed64(b, 6, m->counts[i]);
	for (size_t i = 0; i + 1 < m->n_buckets; i++)
		put_fixed64(b, 7, bits_of(m->bounds[i]));
}

/* NumberDataPoint: start = 2, time = 3, as_double = 4, attributes = 7 */
void otlp_metrics_add(struct otlp *x, const struct baton_metric *m)
{
	struct bytes *b = &x->body;
	bool is_histogram = m->type == BATON_METRIC_HISTOGRAM;

	if (strcmp(x->family, m->name) != 0) {
		end_family(x);
		begin_family(x, m);
	}
	size_t point = proto_begin(b, 1);

	if (m->type != BATON_METRIC_GAUGE)
		put_fixed64(b, 2, (uint64_t)x->begun_ns);
	put_fixed64(b, 3, (uint64_t)trace_now());
	if (is_histogram)
		put_histogram(x, m);
	else
		put_fixed64(b, 4, bits_of(m->value));
	for (size_t i = 0; i < m->n_labels; i++)
		put_pair(b, is_histogram ? 9 : 7, m->labels[i].name, m->labels[i].value, 0);
	proto_end(b, point);
}

void otlp_metrics_end(struct otlp *x)
{
	end_family(x);
	proto_end(&x->body, x->marks[OF_SCOPE]);
	proto_end(&x->body, x->marks[OF_RESOURCE]);
}
