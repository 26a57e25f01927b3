/*
 * telemetry.c: what `baton serve` tells the outside of itself: metrics, of elections and of its own
 * requests; spans and metrics to a collector; an answer to HAProxy's agent-check. The loop only
 * makes them, from memory; another thread sends.
 */
#include "telemetry/exporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/server.h"
#include "telemetry/agent_check.h"
#include "telemetry/callbacks.h"
#include "telemetry/cap.h"
#include "telemetry/exposition.h"
#include "telemetry/handover.h"
#include "telemetry/process.h"
#include "telemetry/survey.h"

#define END_MS 1000
#define CODES 24
#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)
#define SURVEYS 50 /* elections whose candidates are listed in one round, at most */
#define AUDITS 10  /* histories that are read */

struct telemetry {
	struct cap *cap; /* on names of elections */
	struct exposition *text;
	struct exporter exporter;
	bool traces;
	uint64_t every_ns; /* 0: metrics are not wanted */
	uint64_t send_ns;  /* when they are sent again */
	int64_t survey_ns; /* when the store is asked again */
	size_t survey_at;
	size_t audit_at;
	struct agent_check *agent;
	/* requests, by path and code; codes take their places as they come */
	int codes[CODES];
	uint64_t requests[SERVE_PATHS][CODES];
};

/* ---- beginning and end ---- */

/* Work doesn't wait for telemetry: without an exporter it is done all the same. */
static void begin_exporter(struct server *s, struct telemetry *t)
{
	struct baton_error err = {0};

	if (!exporter_is_wanted())
		return;
	if (exporter_open(&t->exporter, s->view.id, s->config->say_text, &err) != 0) {
		s->config->say(BATON_LOG_WARN, "no telemetry is sent: %s", err.text);
		return;
	}
	t->traces = t->exporter.ops->wants_spans(t->exporter.x);
	t->every_ns = t->exporter.ops->metrics_every_ns(t->exporter.x);
	t->send_ns = clock_boot_ns() + t->every_ns;
}

bool telemetry_start(struct server *s)
{
	struct telemetry *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return false;
	s->telemetry = t;
	t->cap = cap_new(s->config->metrics_elections);
	t->text = exposition_new(s->config->metrics_client_go);
	if (t->cap == NULL || t->text == NULL)
		return false;
	s->view.has_metrics = true;
	t->survey_ns = server_now_ns() + (int64_t)survey_jitter_ms(SURVEY_FIRST_MS) * NS_PER_MS;
	begin_exporter(s, t);
	return true;
}

/* Called on a thread of its own. An election whose gate is closed doesn't lead yet. */
static bool is_up(void *arg)
{
	const struct member *m = arg;

	return atomic_load(&m->is_open) && baton_is_leader(m->election);
}

int telemetry_listen(struct server *s)
{
	struct baton_error err = {0};

	if (s->config->agent_check == NULL)
		return SERVE_ENDED;
	if (s->n_members != 1 || s->config->observe_prefix != NULL) {
		s->config->say(BATON_LOG_ERROR,
			       "--agent-check answers for one election; for more of them use the "
			       "check of HTTP, with /leader/NAME");
		return SERVE_WRONG;
	}
	s->telemetry->agent = agent_check_new(s->config->agent_check, is_up, s->members[0], &err);
	if (s->telemetry->agent == NULL) {
		s->config->say(BATON_LOG_ERROR, "%s", err.text);
		return err.code == BATON_E_INVALID ? SERVE_WRONG : SERVE_REFUSED;
	}
	s->config->say(BATON_LOG_DEBUG, "answers agent-check on port %d",
		       agent_check_port(s->telemetry->agent));
	return SERVE_ENDED;
}

/* ---- metrics ---- */

void telemetry_count(struct server *s, const char *target, unsigned status)
{
	struct telemetry *t = s->telemetry;
	size_t i = 0;

	while (i + 1 < CODES && t->codes[i] != 0 && t->codes[i] != (int)status)
		i++;
	if (i + 1 < CODES)
		t->codes[i] = (int)status; /* the last place is for all that there is no room for */
	t->requests[serve_path(target)][i]++;
}

static void tell_requests(const struct telemetry *t,
			  void (*emit)(void *arg, const struct baton_metric *m), void *arg)
{
	struct baton_label labels[2] = {{.name = "path"}, {.name = "code"}};
	struct baton_metric m = {.size = sizeof(m),
				 .name = "baton_http_requests_total",
				 .help = "Requests that were answered.",
				 .unit = "",
				 .type = BATON_METRIC_COUNTER,
				 .labels = labels,
				 .n_labels = 2};

	for (size_t p = 0; p < SERVE_PATHS; p++) {
		for (size_t i = 0; i < CODES; i++) {
			char code[16] = "other";

			if (t->requests[p][i] == 0)
				continue;
			if (t->codes[i] != 0)
				(void)snprintf(code, sizeof(code), "%d", t->codes[i]);
			labels[0].value = serve_path_name(p);
			labels[1].value = code;
			m.value = (double)t->requests[p][i];
			emit(arg, &m);
		}
	}
}

static void tell_number(const char *name, const char *help, int type, double value,
			void (*emit)(void *arg, const struct baton_metric *m), void *arg)
{
	struct baton_metric m = {.size = sizeof(m),
				 .name = name,
				 .help = help,
				 .unit = "",
				 .type = type,
				 .value = value};

	emit(arg, &m);
}

static void tell_all(struct server *s, void (*emit)(void *arg, const struct baton_metric *m),
		     void *arg)
{
	const struct telemetry *t = s->telemetry;
	struct process_log log = {s->config->n_unwritten(), emit, arg};
	size_t n_leads = 0;

	for (const struct stream *st = s->streams; st != NULL; st = st->next)
		n_leads += st->kind == STREAM_LEAD;
	(void)baton_metrics(s->config->baton, process_add_unwritten, &log);
	if (s->callbacks != NULL)
		callbacks_metrics(s->callbacks, emit, arg);
	if (t->traces)
		tell_number("baton_spans_dropped_total", "Spans that were left out.",
			    BATON_METRIC_COUNTER, (double)t->exporter.ops->n_dropped(t->exporter.x),
			    emit, arg);
	tell_number("baton_attached_clients", "Connections that hold a /lead open.",
		    BATON_METRIC_GAUGE, (double)n_leads, emit, arg);
	tell_number("baton_event_streams", "Connections that listen to events.", BATON_METRIC_GAUGE,
		    (double)(s->n_streams - n_leads), emit, arg);
	tell_requests(t, emit, arg);
	process_metrics(emit, arg);
}

/* Every reader of metrics sees series of the same elections. False: no memory. */
static bool tell_capped(struct server *s, void (*emit)(void *arg, const struct baton_metric *m),
			void *arg)
{
	struct cap *cap = s->telemetry->cap;

	cap_begin(cap, emit, arg);
	tell_all(s, cap_add, cap);
	return cap_end(cap);
}

const char *telemetry_text(struct server *s, int format, size_t *n)
{
	struct exposition *x = s->telemetry->text;

	exposition_begin(x, format);
	return tell_capped(s, exposition_add, x) ? exposition_end(x, n) : NULL;
}

static void send_metrics(struct server *s)
{
	struct telemetry *t = s->telemetry;
	const struct exporter_ops *ops = t->exporter.ops;

	if (t->every_ns == 0)
		return;
	ops->metrics_begin(t->exporter.x);
	if (tell_capped(s, ops->metrics_add, t->exporter.x))
		ops->metrics_end(t->exporter.x);
}

static bool needs_audit(const struct member *m, int64_t now_ns)
{
	return !m->is_audited && (m->has_changed || m->audited_ns == 0 ||
				  now_ns - m->audited_ns > SURVEY_AUDIT_MS * NS_PER_MS);
}

/* What only the store knows, bit by bit: the worker asks, after the requests of waiting clients. */
static void ask_around(struct server *s, int64_t now_ns)
{
	struct telemetry *t = s->telemetry;
	size_t n = s->cant_audit ? 0 : s->n_members;

	t->survey_ns = now_ns + (int64_t)survey_jitter_ms(SURVEY_MS) * NS_PER_MS;
	for (size_t i = 0; !s->cant_list && i < SURVEYS && i < s->n_members; i++)
		worker_look(s->members[t->survey_at++ % s->n_members]);
	for (size_t n_asked = 0; n > 0 && n_asked < AUDITS; n--) {
		struct member *m = s->members[t->audit_at++ % s->n_members];

		if (!needs_audit(m, now_ns))
			continue;
		m->has_changed = false;
		worker_audit(m);
		n_asked++;
	}
}

void telemetry_tick(struct server *s)
{
	struct telemetry *t = s->telemetry;
	uint64_t now_ns = clock_boot_ns();

	if (!s->is_stopping && (int64_t)now_ns >= t->survey_ns)
		ask_around(s, (int64_t)now_ns);
	if (t->every_ns != 0 && now_ns >= t->send_ns) {
		t->send_ns = now_ns + t->every_ns;
		send_metrics(s);
	}
}

/* ---- spans ---- */

bool telemetry_add(struct member *m)
{
	struct server *s = m->server;

	if (!s->telemetry->traces && s->callbacks == NULL && s->config->trace == NULL)
		return true;
	m->handover = calloc(1, sizeof(*m->handover));
	if (m->handover == NULL)
		return false;
	*m->handover = (struct handover){.exporter = &s->telemetry->exporter,
					 .url = s->config->store_url,
					 .election = m->name};
	return true;
}

void telemetry_remove(struct member *m)
{
	if (m->handover != NULL)
		handover_done(m->handover);
	free(m->handover);
	m->handover = NULL;
}

void telemetry_changed(struct member *m, const struct baton_event *event)
{
	m->has_changed = true;
	if (m->handover != NULL)
		handover_changed(m->handover, event, m->server->view.id);
}

void telemetry_became(struct member *m, const struct baton_event *event)
{
	if (m->handover == NULL)
		return;
	handover_became(m->handover, event);
	if (m->server->config->trace != NULL)
		m->server->config->trace(m->name, m->handover->id.trace, m->handover->id.root);
}

void telemetry_opened(struct member *m)
{
	if (m->handover != NULL)
		handover_started(m->handover);
}

void telemetry_lost(struct member *m, uint64_t term)
{
	if (m->handover == NULL)
		return;
	(void)handover_leaving(m->handover, term, m->v.reason);
	if (m->server->config->trace != NULL)
		m->server->config->trace(m->name, m->handover->leaving_id.trace,
					 m->handover->step_down);
}

void telemetry_drained(struct member *m)
{
	if (m->handover != NULL)
		handover_drained(m->handover);
}

void telemetry_released(struct member *m)
{
	if (m->handover != NULL)
		handover_released(m->handover);
}

void telemetry_parent(const struct member *m, bool is_lost, char out[TRACE_PARENT_SIZE])
{
	const struct handover *h = m->handover;

	out[0] = '\0';
	if (h == NULL || (is_lost ? h->leaving_term : m->hold_term) == 0)
		return;
	trace_parent(is_lost ? h->leaving_id.trace : h->id.trace,
		     is_lost ? h->step_down : h->id.root, m->server->telemetry->traces, out);
}

/* ---- the end ---- */

void telemetry_last(struct server *s)
{
	if (s->telemetry == NULL)
		return;
	agent_check_free(s->telemetry->agent); /* it asks an election, which is about to go */
	s->telemetry->agent = NULL;
	send_metrics(s);
}

void telemetry_end(struct server *s)
{
	struct telemetry *t = s->telemetry;

	if (t == NULL)
		return;
	exporter_close(&t->exporter, END_MS);
	exposition_free(t->text);
	cap_free(t->cap);
	free(t);
	s->telemetry = NULL;
}
