/* exposition.c: see exposition.h. Series are written as they come. */
#include "telemetry/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "telemetry/cap.h"

#define TEXT_MAX ((size_t)1 << 30)
#define LABELS_SIZE 1024
#define EXACT 9007199254740992.0 /* whole numbers below this are exact in a double */

struct exposition {
	bool client_go;
	int format;
	struct bytes out;
	struct bytes statuses; /* of client-go */
	char family[128];      /* the name that is being written; "": none */
};

static void begin_family(struct exposition *x, const struct baton_metric *m);
static void write_series(struct exposition *x, const struct baton_metric *m, const char *labels);

struct exposition *exposition_new(bool client_go)
{
	struct exposition *x = calloc(1, sizeof(*x));

	if (x != NULL)
		x->client_go = client_go;
	return x;
}

void exposition_free(struct exposition *x)
{
	if (x == NULL)
		return;
	bytes_done(&x->out);
	bytes_done(&x->statuses);
	free(x);
}

/* ---- formats ---- */

int exposition_choose(const char *accept)
{
	const char *found = accept != NULL ? strstr(accept, "application/openmetrics-text") : NULL;

	if (found == NULL)
		return EXPOSITION_PROMETHEUS;
	/* A client that names a version that we don't have is given what every client reads. */
	const char *end = found + strcspn(found, ",");
	const char *version = strstr(found, "version=");

	if (version != NULL && version < end && strncmp(version + 8, "1.0.0", 5) != 0)
		return EXPOSITION_PROMETHEUS;
	const char *zero = strstr(found, "q=0");

	if (zero != NULL && zero < end && strspn(zero + 2, "0.") == strcspn(zero + 2, ",; "))
		return EXPOSITION_PROMETHEUS;
	return EXPOSITION_OPENMETRICS;
}

const char *exposition_content_type(int format)
{
	return format == EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

void exposition_begin(struct exposition *x, int format)
{
	x->format = format;
	x->family[0] = '\0';
	x->out.has_failed = x->statuses.has_failed = false;
	bytes_clear(&x->out);
	bytes_clear(&x->statuses);
}

/* ---- text ---- */

static void put(struct exposition *x, const char *text, size_t n)
{
	(void)bytes_add(&x->out, text, n, TEXT_MAX);
}

static void put_text(struct exposition *x, const char *text)
{
	put(x, text, strlen(text));
}

/* Most numbers are whole, and there are many: this is faster than printf(). */
static const char *count_text(uint64_t n, char out[40])
{
	char *at = out + 39;

	*at = '\0';
	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	return memmove(out, at, (size_t)(out + 40 - at));
}

/* The shortest decimal that reads back as the same number. whole: "1.0" for 1. */
static const char *number_text(double value, bool whole, char out[40])
{
	if (isnan(value))
		return strcpy(out, "NaN");
	if (isinf(value))
		return strcpy(out, value > 0 ? "+Inf" : "-Inf");
	if (!whole && value >= 0 && value < EXACT && value == (double)(uint64_t)value)
		return count_text((uint64_t)value, out);
	if (value == floor(value) && fabs(value) < EXACT) {
		(void)snprintf(out, 40, whole ? "%.1f" : "%.0f", value);
		return out;
	}
	(void)snprintf(out, 40, "%.15g", value);
	if (strtod(out, NULL) != value)
		(void)snprintf(out, 40, "%.17g", value);
	return out;
}

/* A backslash before what would end a value, or a line. What there is no room for is left out. */
static size_t escape(const char *from, bool quotes, char *out, size_t size)
{
	size_t n = 0;

	for (; *from != '\0' && n + 2 < size; from++) {
		if (*from == '\\' || *from == '\n' || (*from == '"' && quotes))
			out[n++] = '\\';
		out[n++] = (char)(*from == '\n' ? 'n' : *from);
	}
	out[n] = '\0';
	return n;
}

/* "a=\"b\",c=\"d\"". */
static void labels_text(const struct baton_metric *m, char out[LABELS_SIZE])
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < m->n_labels && n + 128 < LABELS_SIZE; i++) {
		const struct baton_label *l = &m->labels[i];
		size_t n_name = strnlen(l->name, 64);

		if (n > 0)
			out[n++] = ',';
		(void)memcpy(out + n, l->name, n_name);
		n += n_name;
		out[n++] = '=';
		out[n++] = '"';
		n += escape(l->value, true, out + n, LABELS_SIZE - n - 2);
		out[n++] = '"';
		out[n] = '\0';
	}
}

/* ---- series ---- */

static const char *election_of(const struct baton_metric *m)
{
	for (size_t i = 0; i < m->n_labels; i++)
		if (strcmp(m->labels[i].name, "election") == 0)
			return m->labels[i].value;
	return NULL;
}

static void note_status(struct exposition *x, const char *election, double value)
{
	char name[LABELS_SIZE];
	size_t n = escape(election, true, name, sizeof(name));

	static const char before[] = "leader_election_master_status{name=\"";

	(void)bytes_add(&x->statuses, before, sizeof(before) - 1, TEXT_MAX);
	(void)bytes_add(&x->statuses, name, n, TEXT_MAX);
	(void)bytes_add(&x->statuses, value != 0 ? "\"} 1\n" : "\"} 0\n", 5, TEXT_MAX);
}

void exposition_add(void *arg, const struct baton_metric *m)
{
	struct exposition *x = arg;
	const char *election = election_of(m);
	char labels[LABELS_SIZE];

	if (strcmp(x->family, m->name) != 0)
		begin_family(x, m);
	labels_text(m, labels);
	write_series(x, m, labels);
	if (x->client_go && election != NULL && strcmp(election, CAP_OTHER) != 0 &&
	    strcmp(m->name, "baton_is_leader") == 0)
		note_status(x, election, m->value);
}

static void begin_family(struct exposition *x, const struct baton_metric *m)
{
	static const char *const types[] = {[BATON_METRIC_GAUGE] = "gauge",
					    [BATON_METRIC_COUNTER] = "counter",
					    [BATON_METRIC_HISTOGRAM] = "histogram"};
	bool is_open = x->format == EXPOSITION_OPENMETRICS;
	char name[sizeof(x->family)];
	char help[512];

	(void)snprintf(x->family, sizeof(x->family), "%s", m->name);
	(void)strcpy(name, x->family);
	size_t n = strlen(name);

	if (is_open && m->type == BATON_METRIC_COUNTER && n > 6 &&
	    strcmp(name + n - 6, "_total") == 0) {
		n -= 6; /* in OpenMetrics a counter's family has no "_total" */
		name[n] = '\0';
	}
	(void)escape(m->help, is_open, help, sizeof(help));
	bytes_print(&x->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[m->type]);
	size_t n_unit = strlen(m->unit);

	if (is_open && n_unit > 0 && n > n_unit && strcmp(name + n - n_unit, m->unit) == 0)
		bytes_print(&x->out, "# UNIT %s %s\n", name, m->unit);
}

static void put_sample(struct exposition *x, const char *suffix, const char *labels,
		       const char *bound, const char *value)
{
	put_text(x, x->family);
	put_text(x, suffix);
	if (labels[0] != '\0' || bound != NULL) {
		put(x, "{", 1);
		put_text(x, labels);
		if (bound != NULL) {
			put_text(x, labels[0] != '\0' ? ",le=\"" : "le=\"");
			put_text(x, bound);
			put(x, "\"", 1);
		}
		put(x, "}", 1);
	}
	put(x, " ", 1);
	put_text(x, value);
	put(x, "\n", 1);
}

/* Of an election's histogram, only every second bucket is written: there may be many elections. */
static void write_histogram(struct exposition *x, const struct baton_metric *m, const char *labels)
{
	size_t step = strncmp(labels, "election=", 9) == 0 ? 2 : 1;
	uint64_t count = 0;
	char value[40];
	char bound[40];

	for (size_t i = 0; i < m->n_buckets; i++) {
		count += m->counts[i];
		if (i + 1 < m->n_buckets && (m->n_buckets - 1 - i) % step != 0)
			continue;
		put_sample(x, "_bucket", labels,
			   number_text(m->bounds[i], x->format == EXPOSITION_OPENMETRICS, bound),
			   count_text(count, value));
	}
	put_sample(x, "_sum", labels, NULL, number_text(m->sum, false, value));
	put_sample(x, "_count", labels, NULL, count_text(count, value));
}

static void write_series(struct exposition *x, const struct baton_metric *m, const char *labels)
{
	char value[40];

	if (m->type == BATON_METRIC_HISTOGRAM)
		write_histogram(x, m, labels);
	else
		put_sample(x, "", labels, NULL, number_text(m->value, false, value));
}

const char *exposition_end(struct exposition *x, size_t *n)
{
	x->family[0] = '\0';
	if (x->statuses.n > 0) {
		put_text(x, "# HELP leader_election_master_status Whether this candidate leads, "
			    "as client-go tells it.\n"
			    "# TYPE leader_election_master_status gauge\n");
		put(x, x->statuses.at, x->statuses.n);
	}
	if (x->format == EXPOSITION_OPENMETRICS)
		put_text(x, "# EOF\n");
	if (x->out.has_failed || x->statuses.has_failed)
		return NULL;
	*n = x->out.n;
	return x->out.at != NULL ? x->out.at : "";
}
