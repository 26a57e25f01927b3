/*
 * probe.c: what load balancers, orchestrators and monitors ask: from memory, without a token, for
 * any host. Readiness must never depend on leadership: a standby is ready, or no rolling update
 * would end.
 */
#include <string.h>

#include "serve/answer/route.h"

#define METHODS "GET, HEAD, OPTIONS"

static void body_probe(struct way *w, bool good, const char *words)
{
	struct serve_text *out = &w->reply->body;

	reply_json(w, good ? 200 : 503);
	text_add(out, "{\"status\":");
	text_string(out, words);
	text_add(out, "}\n");
}

/* The worst of all elections. */
static int condition_of(const struct serve_view *v)
{
	int worst = BATON_CONDITION_HEALTHY;

	for (size_t i = 0; i < v->n_elections; i++)
		if (v->elections[i]->condition > worst)
			worst = v->elections[i]->condition;
	return worst;
}

static void probe_live(struct way *w)
{
	body_probe(w, !w->view->stuck, w->view->stuck ? "stuck" : "alive");
}

static void probe_ready(struct way *w)
{
	const struct serve_view *v = w->view;

	body_probe(w, !v->stopping && !v->starting,
		   v->stopping   ? "stopping"
		   : v->starting ? "starting"
				 : "ready");
}

static void probe_health(struct way *w)
{
	const char *degraded = parse_query(&w->parsed, "degraded");
	int condition = condition_of(w->view);
	bool good = condition == BATON_CONDITION_HEALTHY ||
		    (condition == BATON_CONDITION_DEGRADED &&
		     (degraded == NULL || strcmp(degraded, "503") != 0));

	body_probe(w, good,
		   condition == BATON_CONDITION_HEALTHY    ? "healthy"
		   : condition == BATON_CONDITION_DEGRADED ? "degraded"
							   : "unhealthy");
}

/* /leader, /standby and /any of one election. */
static void probe_role(struct way *w, const char *role)
{
	const struct serve_election *e = serve_find(w->view, w->parsed.segments[1]);
	const char *standby = parse_query(&w->parsed, "standby");
	uint64_t code = 503;

	if (e == NULL) {
		serve_problem(w->reply, 404, "invalid", "there is no election of this name here");
		return;
	}
	bool leads = serve_leads(w->view, e);
	bool healthy = e->takes_part && !w->view->stopping && !w->view->starting &&
		       e->condition != BATON_CONDITION_UNHEALTHY && e->state != BATON_STATE_STOPPED;
	bool good = strcmp(role, "leader") == 0 ? leads
		    : strcmp(role, "any") == 0  ? leads || healthy
						: healthy && !leads;

	if (standby != NULL && (!parse_unsigned(standby, &code) || code < 200 || code > 599)) {
		reply_invalid(w, "standby", standby, "200 to 599");
		return;
	}
	reply_json(w, good ? 200 : strcmp(role, "leader") == 0 ? (int)code : 503);
	reply_role(w, e);
	serve_write_row(&w->reply->body, w->view, e);
	text_add(&w->reply->body, "\n");
}

bool probe_answer(struct way *w)
{
	static const char *const roles[] = {"leader", "standby", "any"};
	static const struct {
		const char *name;
		void (*answer)(struct way *w);
	} probes[] = {{"livez", probe_live}, {"readyz", probe_ready}, {"healthz", probe_health}};
	void (*answer)(struct way * w) = NULL;
	const char *role = NULL;

	for (size_t i = 0; i < 3; i++) {
		if (w->parsed.n_segments == 1 && strcmp(w->parsed.segments[0], probes[i].name) == 0)
			answer = probes[i].answer;
		if (w->parsed.n_segments == 2 && strcmp(w->parsed.segments[0], roles[i]) == 0)
			role = roles[i];
	}
	if (answer == NULL && role == NULL)
		return false;
	if (is_method(w, "OPTIONS")) {
		w->reply->status = 204;
		w->reply->allow = METHODS;
	} else if (!is_method(w, "GET") && !is_method(w, "HEAD")) {
		reply_not_allowed(w, METHODS);
	} else if (answer != NULL) {
		answer(w);
	} else {
		probe_role(w, role);
	}
	return true;
}
