/*
 * telemetry.c: what `baton run` tells the outside of itself: metrics in a file. The supervisor only
 * makes the text, from memory; another thread writes (L7).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/run.h"
#include "telemetry/exposition.h"
#include "telemetry/metrics_file.h"
#include "telemetry/process.h"

#define EVERY_NS (10 * CLOCK_NS_PER_S)
#define END_MS 1000

struct telemetry {
	struct exposition *text;
	struct metrics_file *file;
	uint64_t next_ns;
};

static void say_failure(const char *path, int error)
{
	if (error != 0)
		log_say(BATON_LOG_WARN, "metrics can't be written to %s: %s", path,
			strerror(error));
	else
		log_say(BATON_LOG_INFO, "metrics are written to %s again", path);
}

int telemetry_begin(struct run *r)
{
	const struct settings *s = r->s;

	if (s->metrics_file == NULL)
		return 0;
	struct telemetry *t = calloc(1, sizeof(*t));

	if (t != NULL) {
		t->text = exposition_new(EXPOSITION_ELECTIONS,
					 s->metrics_compat == METRICS_CLIENT_GO);
		t->file = metrics_file_new(s->metrics_file, say_failure);
	}
	if (t == NULL || t->text == NULL || t->file == NULL) {
		log_say(BATON_LOG_ERROR, "metrics can't be made: no memory, or no thread");
		return EXIT_INTERNAL;
	}
	r->telemetry = t;
	return 0;
}

void telemetry_hurry(struct run *r)
{
	if (r->telemetry != NULL)
		r->telemetry->next_ns = 0;
}

uint64_t telemetry_next_ns(const struct run *r)
{
	return r->telemetry != NULL ? r->telemetry->next_ns : UINT64_MAX;
}

static void put_metrics(struct run *r)
{
	struct telemetry *t = r->telemetry;
	size_t n;

	exposition_begin(t->text, EXPOSITION_PROMETHEUS);
	(void)baton_metrics(r->b, exposition_add, t->text);
	if (r->hooks.callbacks != NULL)
		callbacks_metrics(r->hooks.callbacks, exposition_add, t->text);
	process_metrics(exposition_add, t->text);
	const char *text = exposition_end(t->text, &n);

	if (text != NULL)
		(void)metrics_file_put(t->file, text, n);
}

void telemetry_tick(struct run *r)
{
	uint64_t now_ns = clock_boot_ns();

	if (r->telemetry == NULL || now_ns < r->telemetry->next_ns)
		return;
	r->telemetry->next_ns = now_ns + EVERY_NS;
	put_metrics(r);
}

void telemetry_last(struct run *r)
{
	if (r->telemetry != NULL)
		put_metrics(r);
}

void telemetry_end(struct run *r)
{
	if (r->telemetry == NULL)
		return;
	metrics_file_end(r->telemetry->file, END_MS);
	exposition_free(r->telemetry->text);
	free(r->telemetry);
	r->telemetry = NULL;
}
