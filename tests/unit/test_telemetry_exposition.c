/*
 * test_telemetry_exposition.c: metrics as text: both formats, escapes, buckets, and the cap on the
 * names of elections.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "telemetry/cap.h"
#include "telemetry/exposition.h"
#include "telemetry/process.h"

static struct cap *cap; /* NULL: all names have series of their own */

static void begin(struct exposition *x)
{
	exposition_begin(x, EXPOSITION_PROMETHEUS);
	if (cap != NULL)
		cap_begin(cap, exposition_add, x);
}

static void add(struct exposition *x, const struct baton_metric *m)
{
	if (cap != NULL)
		cap_add(cap, m);
	else
		exposition_add(x, m);
}

static void add_value(struct exposition *x, const char *name, int type, const char *election,
		      const char *label, const char *word, double value)
{
	struct baton_label labels[] = {{"election", election}, {label, word}};
	struct baton_metric m = {.size = sizeof(m),
				 .name = name,
				 .help = "A \"sentence\".",
				 .unit = "",
				 .type = type,
				 .labels = labels,
				 .n_labels = label != NULL ? 2 : 1,
				 .value = value};

	add(x, &m);
}

static void add_histogram(struct exposition *x, const char *election, uint64_t first)
{
	struct baton_label labels[] = {{"election", election}};
	const double bounds[] = {0, 0.001, 0.003, INFINITY};
	const uint64_t counts[] = {first, 2, 0, 1};
	struct baton_metric m = {.size = sizeof(m),
				 .name = "baton_tenure_seconds",
				 .help = "How long.",
				 .unit = "seconds",
				 .type = BATON_METRIC_HISTOGRAM,
				 .labels = labels,
				 .n_labels = 1,
				 .bounds = bounds,
				 .counts = counts,
				 .n_buckets = 4,
				 .count = first + 3,
				 .sum = 1.5};

	add(x, &m);
}

static const char *text_of(struct exposition *x)
{
	size_t n = 0;

	assert_true(cap == NULL || cap_end(cap));
	const char *text = exposition_end(x, &n);

	assert_non_null(text);
	assert_int_equal(n, strlen(text));
	return text;
}

static void test_prometheus(void **state)
{
	struct exposition *x = exposition_new(true);

	(void)state;
	exposition_begin(x, EXPOSITION_PROMETHEUS);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "a\"b\\c\nd", NULL, NULL, 1);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "web", NULL, NULL, 0);
	add_value(x, "baton_campaigns_total", BATON_METRIC_COUNTER, "web", "result", "won", 0.25);
	add_histogram(x, "web", 4);
	assert_string_equal(
		text_of(x),
		"# HELP baton_is_leader A \"sentence\".\n"
		"# TYPE baton_is_leader gauge\n"
		"baton_is_leader{election=\"a\\\"b\\\\c\\nd\"} 1\n"
		"baton_is_leader{election=\"web\"} 0\n"
		"# HELP baton_campaigns_total A \"sentence\".\n"
		"# TYPE baton_campaigns_total counter\n"
		"baton_campaigns_total{election=\"web\",result=\"won\"} 0.25\n"
		"# HELP baton_tenure_seconds How long.\n"
		"# TYPE baton_tenure_seconds histogram\n"
		"baton_tenure_seconds_bucket{election=\"web\",le=\"0.001\"} 6\n"
		"baton_tenure_seconds_bucket{election=\"web\",le=\"+Inf\"} 7\n"
		"baton_tenure_seconds_sum{election=\"web\"} 1.5\n"
		"baton_tenure_seconds_count{election=\"web\"} 7\n"
		"# HELP leader_election_master_status Whether this candidate leads, as client-go "
		"tells it.\n"
		"# TYPE leader_election_master_status gauge\n"
		"leader_election_master_status{name=\"a\\\"b\\\\c\\nd\"} 1\n"
		"leader_election_master_status{name=\"web\"} 0\n");
	exposition_free(x);
}

static void test_openmetrics(void **state)
{
	struct exposition *x = exposition_new(false);

	(void)state;
	exposition_begin(x, EXPOSITION_OPENMETRICS);
	add_value(x, "baton_campaigns_total", BATON_METRIC_COUNTER, "web", "result", "won", 3);
	add_histogram(x, "web", 0);
	assert_string_equal(text_of(x),
			    "# HELP baton_campaigns A \\\"sentence\\\".\n"
			    "# TYPE baton_campaigns counter\n"
			    "baton_campaigns_total{election=\"web\",result=\"won\"} 3\n"
			    "# HELP baton_tenure_seconds How long.\n"
			    "# TYPE baton_tenure_seconds histogram\n"
			    "# UNIT baton_tenure_seconds seconds\n"
			    "baton_tenure_seconds_bucket{election=\"web\",le=\"0.001\"} 2\n"
			    "baton_tenure_seconds_bucket{election=\"web\",le=\"+Inf\"} 3\n"
			    "baton_tenure_seconds_sum{election=\"web\"} 1.5\n"
			    "baton_tenure_seconds_count{election=\"web\"} 3\n"
			    "# EOF\n");
	exposition_free(x);
}

/* What doesn't fit is summed where a sum means something, and left out where not. */
static void test_cap(void **state)
{
	struct exposition *x = exposition_new(true);

	(void)state;
	cap = cap_new(1);
	begin(x);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "a", NULL, NULL, 1);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "c", NULL, NULL, 1);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "b", NULL, NULL, 7);
	add_value(x, "baton_campaigns_total", BATON_METRIC_COUNTER, "b", "result", "won", 2);
	add_value(x, "baton_campaigns_total", BATON_METRIC_COUNTER, "b", "result", "held", 5);
	add_value(x, "baton_campaigns_total", BATON_METRIC_COUNTER, "c", "result", "won", 3);
	add_histogram(x, "b", 1);
	add_histogram(x, "c", 2);
	const char *text = text_of(x);

	assert_non_null(strstr(text, "baton_is_leader{election=\"a\"} 1\n"
				     "baton_is_leader{election=\"__other__\"} 2\n"));
	assert_null(strstr(text, "baton_term{"));
	assert_non_null(
		strstr(text, "baton_campaigns_total{election=\"__other__\",result=\"won\"} 5\n"));
	assert_non_null(
		strstr(text, "baton_campaigns_total{election=\"__other__\",result=\"held\"} 5\n"));
	assert_non_null(strstr(text, "_bucket{election=\"__other__\",le=\"0.001\"} 7\n"));
	assert_non_null(strstr(text, "_sum{election=\"__other__\"} 3\n"));
	assert_non_null(strstr(text, "_count{election=\"__other__\"} 9\n"));
	assert_null(strstr(text, "\"b\""));
	assert_null(strstr(text, "master_status{name=\"__other__\"}"));
	exposition_free(x);
	cap_free(cap);
	cap = NULL;
}

/* Whoever takes metrics, the same elections have series of their own: also one that begins between
 * two of them. */
static void test_cap_is_shared(void **state)
{
	struct exposition *x = exposition_new(false);
	struct exposition *y = exposition_new(false);

	(void)state;
	cap = cap_new(1);
	begin(x);
	add_value(x, "baton_is_leader", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	assert_non_null(strstr(text_of(x), "baton_is_leader{election=\"b\"} 1\n"));
	begin(y);
	add_value(y, "baton_is_leader", BATON_METRIC_GAUGE, "a", NULL, NULL, 1);
	add_value(y, "baton_is_leader", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	const char *text = text_of(y);

	assert_non_null(strstr(text, "{election=\"b\"} 1\nbaton_is_leader{election=\"__other__\"} "
				     "1\n"));
	exposition_free(x);
	exposition_free(y);
	cap_free(cap);
	cap = NULL;
}

/* A name keeps its series while its election is there, whatever order they come in. */
static void test_cap_is_steady(void **state)
{
	struct exposition *x = exposition_new(false);

	(void)state;
	cap = cap_new(1);
	begin(x);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "a", NULL, NULL, 1);
	(void)text_of(x);
	begin(x);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "a", NULL, NULL, 1);
	const char *text = text_of(x);

	assert_non_null(strstr(text, "\"a\""));
	assert_null(strstr(text, "\"b\""));
	begin(x);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	assert_null(strstr(text_of(x), "\"b\"")); /* the room is free from the next one on */
	begin(x);
	add_value(x, "baton_term", BATON_METRIC_GAUGE, "b", NULL, NULL, 1);
	assert_non_null(strstr(text_of(x), "\"b\""));
	exposition_free(x);
	cap_free(cap);
	cap = NULL;
}

static void test_numbers(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {{0, "} 0\n"},
		     {-1, "} -1\n"},
		     {0.1, "} 0.1\n"},
		     {1e18, "} 1e+18\n"},
		     {1.0 / 3, "0.33333333333333331\n"},
		     {INFINITY, "} +Inf\n"},
		     {-INFINITY, "} -Inf\n"},
		     {NAN, "} NaN\n"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposition *x = exposition_new(false);

		exposition_begin(x, EXPOSITION_PROMETHEUS);
		add_value(x, "g", BATON_METRIC_GAUGE, "e", NULL, NULL, cases[i].value);
		assert_non_null(strstr(text_of(x), cases[i].text));
		exposition_free(x);
	}
}

static void test_choice(void **state)
{
	(void)state;
	assert_int_equal(exposition_choose(NULL), EXPOSITION_PROMETHEUS);
	assert_int_equal(exposition_choose("*/*"), EXPOSITION_PROMETHEUS);
	assert_int_equal(exposition_choose("application/openmetrics-text"), EXPOSITION_OPENMETRICS);
	assert_int_equal(exposition_choose("application/openmetrics-text;version=1.0.0,"
					   "application/openmetrics-text;version=0.0.1;q=0.75,"
					   "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
			 EXPOSITION_OPENMETRICS);
	assert_int_equal(exposition_choose("application/openmetrics-text;version=0.0.1"),
			 EXPOSITION_PROMETHEUS);
	assert_int_equal(exposition_choose("application/openmetrics-text;q=0.0, text/plain"),
			 EXPOSITION_PROMETHEUS);
	assert_int_equal(exposition_choose("application/openmetrics-text;q=0.5, text/plain"),
			 EXPOSITION_OPENMETRICS);
}

static void test_process(void **state)
{
	struct exposition *x = exposition_new(false);

	(void)state;
	exposition_begin(x, EXPOSITION_OPENMETRICS);
	process_metrics(exposition_add, x);
	const char *text = text_of(x);

	assert_non_null(strstr(text, "# TYPE process_cpu_seconds counter\n# UNIT "
				     "process_cpu_seconds seconds\nprocess_cpu_seconds_total "));
	assert_non_null(strstr(text, "\nprocess_resident_memory_bytes "));
	assert_non_null(strstr(text, "\nprocess_open_fds "));
	assert_non_null(strstr(text, "\nprocess_start_time_seconds "));
	exposition_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prometheus),    cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_cap),           cmocka_unit_test(test_cap_is_steady),
		cmocka_unit_test(test_cap_is_shared), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_choice),        cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
