/*
 * telemetry.c: what `baton run` tells the outside of itself: metrics in a file, metrics and spans
 * to a collector. The supervisor only makes them, from memory; other threads write and send (L7).
 *
 * No span lasts a leadership: it would be invisible until it ends. The one exception is baton.run,
 * which is the command's own, and by which the command's spans find their trace.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "cli/run.h"
#include "telemetry/agent_check.h"
#include "telemetry/cap.h"
#include "telemetry/exposition.h"
#include "telemetry/handover.h"
#include "telemetry/metrics_file.h"
#include "telemetry/process.h"
#include "telemetry/survey.h"

#define EVERY_NS (10 * CLOCK_NS_PER_S)
#define END_MS 1000

struct telemetry {
	struct cap *cap; /* on names of elections */
	struct exposition *text;
	struct metrics_file *file; /* NULL: not wanted */
	struct agent_check *agent; /* NULL: not wanted */
	struct survey *survey;     /* NULL: not wanted */
	uint64_t next_ns;
	struct exporter exporter;
	uint64_t send_ns; /* when metrics are sent again */
	uint64_t every_ns;
	bool traces;

	struct handover handover;
	struct span run;
	bool is_running;
};

static void say(int level, const char *text)
{
	log_say(level, "%s", text);
}

static void say_failure(const char *path, int error)
{
	if (error != 0)
		log_say(BATON_LOG_WARN, "metrics can't be written to %s: %s", path,
			strerror(error));
	else
		log_say(BATON_LOG_INFO, "metrics are written to %s again", path);
}

static int begin_file(struct run *r, struct telemetry *t)
{
	const struct settings *s = r->s;

	if (s->metrics_file == NULL)
		return 0;
	t->text = exposition_new(s->metrics_compat == METRICS_CLIENT_GO);
	t->file = metrics_file_new(s->metrics_file, say_failure);
	if (t->text != NULL && t->file != NULL)
		return 0;
	log_say(BATON_LOG_ERROR, "metrics can't be made: no memory, or no thread");
	return EXIT_INTERNAL;
}

/* Work doesn't wait for telemetry: without an exporter it is done all the same. */
static void begin_exporter(struct run *r, struct telemetry *t)
{
	struct baton_error err = {0};

	if (!exporter_is_wanted())
		return;
	if (exporter_open(&t->exporter, baton_id(r->b), say, &err) != 0) {
		log_say(BATON_LOG_WARN, "no telemetry is sent: %s", err.text);
		return;
	}
	t->traces = t->exporter.ops->wants_spans(t->exporter.x);
	t->every_ns = t->exporter.ops->metrics_every_ns(t->exporter.x);
	t->send_ns = clock_boot_ns() + t->every_ns;
}

int telemetry_begin(struct run *r)
{
	struct telemetry *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return EXIT_INTERNAL;
	r->telemetry = t;
	t->cap = cap_new(CAP_ELECTIONS);
	if (t->cap == NULL)
		return EXIT_INTERNAL;
	t->handover = (struct handover){
		.exporter = &t->exporter, .url = r->s->store, .election = r->s->name};
	int code = begin_file(r, t);

	if (code == 0)
		begin_exporter(r, t);
	return code;
}

/* While the command runs, or is about to: a leader that is ending takes no new requests. */
static bool is_up(void *arg)
{
	const struct run *r = arg;

	return baton_is_leader(r->e);
}

int telemetry_listen(struct run *r)
{
	struct baton_error err = {0};

	struct telemetry *t = r->telemetry;

	if (r->s->agent_check != NULL) {
		t->agent = agent_check_new(r->s->agent_check, is_up, r, &err);
		if (t->agent == NULL)
			return open_fail(&err);
		log_say(BATON_LOG_DEBUG, "answers agent-check on port %d",
			agent_check_port(t->agent));
	}
	if (t->file != NULL || t->every_ns != 0) {
		t->survey = survey_begin(r->b, r->s->name);
		if (t->survey == NULL)
			log_say(BATON_LOG_WARN,
				"metrics have no candidates: no memory, or no thread");
	}
	return 0;
}

/* ---- metrics ---- */

void telemetry_hurry(struct run *r)
{
	r->telemetry->next_ns = 0;
}

uint64_t telemetry_next_ns(const struct run *r)
{
	const struct telemetry *t = r->telemetry;
	uint64_t file_ns = t->file != NULL ? t->next_ns : UINT64_MAX;
	uint64_t send_ns = t->every_ns != 0 ? t->send_ns : UINT64_MAX;

	return file_ns < send_ns ? file_ns : send_ns;
}

static void tell_all(struct run *r, void (*emit)(void *arg, const struct baton_metric *m),
		     void *arg)
{
	const struct telemetry *t = r->telemetry;
	struct baton_metric dropped = {.size = sizeof(dropped),
				       .name = "baton_spans_dropped_total",
				       .help = "Spans that were left out.",
				       .unit = "",
				       .type = BATON_METRIC_COUNTER};
	struct process_log log = {log_n_dropped(), emit, arg};

	(void)baton_metrics(r->b, process_add_unwritten, &log);
	if (r->hooks.callbacks != NULL)
		callbacks_metrics(r->hooks.callbacks, emit, arg);
	if (t->traces) {
		dropped.value = (double)t->exporter.ops->n_dropped(t->exporter.x);
		emit(arg, &dropped);
	}
	process_metrics(emit, arg);
}

/* As `baton serve` does, which has more elections. False: no memory. */
static bool tell_capped(struct run *r, void (*emit)(void *arg, const struct baton_metric *m),
			void *arg)
{
	struct cap *cap = r->telemetry->cap;

	cap_begin(cap, emit, arg);
	tell_all(r, cap_add, cap);
	return cap_end(cap);
}

static void put_file(struct run *r)
{
	struct telemetry *t = r->telemetry;
	size_t n;

	if (t->file == NULL)
		return;
	exposition_begin(t->text, EXPOSITION_PROMETHEUS);
	if (!tell_capped(r, exposition_add, t->text))
		return;
	const char *text = exposition_end(t->text, &n);

	if (text != NULL)
		(void)metrics_file_put(t->file, text, n);
}

static void put_metrics(struct run *r)
{
	struct telemetry *t = r->telemetry;
	const struct exporter_ops *ops = t->exporter.ops;

	if (t->every_ns == 0)
		return;
	ops->metrics_begin(t->exporter.x);
	if (tell_capped(r, ops->metrics_add, t->exporter.x))
		ops->metrics_end(t->exporter.x);
}

void telemetry_tick(struct run *r)
{
	struct telemetry *t = r->telemetry;
	uint64_t now_ns = clock_boot_ns();

	if (r->is_stopping)
		survey_stop(t->survey);
	if (t->file != NULL && now_ns >= t->next_ns) {
		t->next_ns = now_ns + EVERY_NS;
		put_file(r);
	}
	if (t->every_ns != 0 && now_ns >= t->send_ns) {
		t->send_ns = now_ns + t->every_ns;
		put_metrics(r);
	}
}

/* ---- spans ---- */

void telemetry_changed(struct run *r, const struct baton_event *event)
{
	handover_changed(&r->telemetry->handover, event, baton_id(r->b));
	survey_hurry(r->telemetry->survey);
}

void telemetry_became(struct run *r, const struct baton_event *event)
{
	struct telemetry *t = r->telemetry;
	const struct trace_id *id = &t->handover.id;

	handover_became(&t->handover, event);
	span_begin(&t->run, "baton.run", id->trace);
	(void)memcpy(t->run.parent, id->root, sizeof(id->root));
	t->run.has_parent = true;
	handover_describe(&t->handover, &t->run, event->term);
	if (r->plan.page->traceparent_is_foreign && !t->traces)
		return;
	trace_parent(id->trace, t->run.id, t->traces, r->plan.page->traceparent);
	log_trace(r->s->name, id->trace, t->run.id);
}

void telemetry_started(struct run *r)
{
	struct telemetry *t = r->telemetry;

	handover_started(&t->handover);
	t->run.start_ns = trace_now();
	t->is_running = true;
}

void telemetry_child_ended(struct run *r, int status)
{
	struct telemetry *t = r->telemetry;
	struct span s = t->run;

	handover_drained(&t->handover);
	if (!t->is_running)
		return;
	t->is_running = false;
	span_number(&s, WIFSIGNALED(status) ? "baton.exit_signal" : "process.exit.code",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	s.is_error = !r->is_lost && !r->is_stopping && status != 0;
	handover_send(&t->handover, &s);
	trace_random(t->run.id); /* in case it is started again */
}

void telemetry_stepping_down(struct run *r, int reason)
{
	struct telemetry *t = r->telemetry;
	const struct handover *h = &t->handover;
	const char *word = reason != BATON_REASON_NONE ? baton_reason_name(reason) : "";

	if (handover_leaving(&t->handover, r->term, word) &&
	    (!r->plan.page->traceparent_is_foreign || t->traces))
		log_trace(r->s->name, h->leaving_id.trace, h->step_down);
}

void telemetry_released(struct run *r)
{
	handover_released(&r->telemetry->handover);
}

/* ---- the end ---- */

bool telemetry_last(struct run *r)
{
	struct telemetry *t = r->telemetry;

	agent_check_free(t->agent); /* it asks the election, which is about to go */
	t->agent = NULL;
	telemetry_released(r);
	bool is_over = survey_end(t->survey, END_MS);

	t->survey = NULL;
	put_file(r);
	put_metrics(r);
	return is_over;
}

void telemetry_end(struct run *r)
{
	struct telemetry *t = r->telemetry;

	metrics_file_end(t->file, END_MS);
	exporter_close(&t->exporter, END_MS);
	exposition_free(t->text);
	cap_free(t->cap);
	handover_done(&t->handover);
	free(t);
	r->telemetry = NULL;
}
