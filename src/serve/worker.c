/*
 * worker.c: the thread that asks the store, one question after the other, and one for examinations.
 * The loop must never wait for the store. Questions of clients wait for their answer with their
 * connection suspended.
 *
 * An order must never wait for what readers ask: it goes to the front, a list of elections lets it
 * in between its pages, and an examination has a handle of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/server.h"
#include "telemetry/survey.h"

#define DOCTOR_MS 60000 /* an examination asks many questions, and its client is patient */

enum job_kind { JOB_ASK, JOB_LOOK, JOB_AUDIT, JOB_LIST };

struct job {
	struct job *next;
	struct call *call; /* of JOB_ASK */
	struct server *server;
	struct serve_reply reply;
	char name[BATON_NAME_MAX + 1];
	int kind;
	bool is_unfinished; /* a list: there is another page */
	int code;
	struct baton_error err;
	struct baton_observed observed;
	void *items; /* candidates, leaderships, names */
	size_t n;
	size_t room;
	int n_healthy;
	struct bytes text; /* of findings */
};

/* ---- what the store tells ---- */

static void *job_room(struct job *j, size_t size)
{
	if (j->n == j->room) {
		size_t room = j->room != 0 ? 2 * j->room : 8;
		void *items = reallocarray(j->items, room, size);

		if (items == NULL)
			return NULL;
		j->items = items;
		j->room = room;
	}
	return (char *)j->items + size * j->n++;
}

static void add_candidate(void *arg, const struct baton_candidate *c)
{
	struct job *j = arg;
	struct baton_candidate *to = job_room(j, sizeof(*to));

	if (to != NULL)
		*to = *c;
	j->n_healthy += c->is_healthy;
}

static void count_candidate(void *arg, const struct baton_candidate *c)
{
	struct job *j = arg;

	j->n++;
	j->n_healthy += c->is_healthy;
}

static void add_leadership(void *arg, const struct baton_leadership *l)
{
	struct baton_leadership *to = job_room(arg, sizeof(*to));

	if (to != NULL)
		*to = *l;
}

static void add_name(void *arg, const char *name)
{
	char **to = job_room(arg, sizeof(*to));

	if (to != NULL)
		*to = strdup(name);
}

/* A string of JSON behind what is there already. */
static void add_json(struct bytes *out, const char *key, const char *value)
{
	char room[2048];
	struct serve_text text = {room, sizeof(room) - 1, 0};

	text_string(&text, value);
	room[text.n < text.room ? text.n : text.room] = '\0';
	bytes_print(out, "%s%s", key, text.n <= text.room ? room : "\"\"");
}

static void add_finding(void *arg, const struct baton_finding *f)
{
	static const char *const levels[] = {"ok", "note", "warning", "error"};
	struct job *j = arg;

	bytes_print(&j->text, "%s", j->n++ > 0 ? "," : "");
	add_json(&j->text, "{\"check\":", f->check);
	add_json(&j->text, ",\"level\":", levels[f->level & 3]);
	add_json(&j->text, ",\"text\":", f->text);
	add_json(&j->text, ",\"fix\":", f->fix);
	bytes_print(&j->text, "}");
}

/* ---- the questions ---- */

/* The next one. Each ends at its deadline; a lease later it is late. */
static void job_begins(struct worker *w, const struct job *j)
{
	struct server *s = w->server;
	int64_t limit_ns = (int64_t)(s->view.timings.lease_ns + s->view.timings.call_ns);

	if (j->kind == JOB_ASK && j->reply.task == SERVE_DOCTOR)
		limit_ns += DOCTOR_MS * (int64_t)CLOCK_NS_PER_MS;
	(void)pthread_mutex_lock(&s->lock);
	w->until_ns = server_now_ns() + limit_ns;
	(void)pthread_mutex_unlock(&s->lock);
}

static void ask_doctor(struct job *j)
{
	static const char *const levels[] = {"ok", "note", "warning", "error"};

	struct baton *b = NULL;

	/* A handle answers one question at a time. */
	j->code = j->server->config->open_another(&b, &j->err);
	if (j->code != 0)
		return;
	bytes_print(&j->text, "{\"findings\":[");
	j->code = baton_examine(b, add_finding, j, &j->err);
	baton_close(b);
	if (j->code >= 0) {
		bytes_print(&j->text, "],\"level\":\"%s\"}\n", levels[j->code & 3]);
		j->code = 0;
	}
}

/* A page at a time: others are asked for in between. */
static void ask_list(struct job *j)
{
	const struct serve_config *config = j->server->config;
	const char *after = j->n > 0 ? ((char **)j->items)[j->n - 1] : "";
	size_t before = j->n;

	j->code = baton_list_elections(config->baton, config->observe_prefix, after, add_name, j,
				       &j->err);
	j->is_unfinished = j->code > 0 && j->n > before && ((char **)j->items)[j->n - 1] != NULL;
}

static void ask_status(struct job *j)
{
	int n = baton_survey(j->server->config->baton, j->name, &j->observed,
			     j->kind == JOB_ASK ? add_candidate : count_candidate, j, &j->err);

	j->code = n < 0 ? n : 0;
}

static void job_execute(struct job *j)
{
	struct baton *b = j->server->config->baton;
	const struct serve_reply *r = &j->reply;
	const char *note = r->note[0] != '\0' ? r->note : NULL;

	if (j->kind == JOB_LIST) {
		ask_list(j);
		return;
	}
	if (j->kind == JOB_LOOK) {
		ask_status(j);
		return;
	}
	if (j->kind == JOB_AUDIT) {
		j->code = survey_history(b, j->name);
		return;
	}
	switch (r->task) {
	case SERVE_STATUS: ask_status(j); break;
	case SERVE_CANDIDATES:
		j->code = baton_list_candidates(b, j->name, add_candidate, j, &j->err);
		break;
	case SERVE_HISTORY:
		j->code = baton_list_history(b, j->name, r->limit, add_leadership, j, &j->err);
		break;
	case SERVE_DOCTOR: ask_doctor(j); break;
	case SERVE_RESIGN:
		j->code = baton_order_resign(b, j->name, r->term, r->quiet_ms, note, &j->err);
		break;
	case SERVE_TRANSFER:
		j->code = baton_order_transfer(b, j->name, r->term, r->to, note, &j->err);
		break;
	case SERVE_PAUSE: j->code = baton_pause(b, j->name, &j->err); break;
	case SERVE_RESUME: j->code = baton_resume(b, j->name, &j->err); break;
	default: break;
	}
}

/* ---- the thread ---- */

/* What goes first: orders, then questions of clients, then those of ours. */
static int rank_of(const struct job *j)
{
	if (j->kind != JOB_ASK)
		return 2;
	return j->reply.task >= SERVE_RESIGN && j->reply.task <= SERVE_RESUME ? 0 : 1;
}

/* The lock is held. */
static void put_job(struct worker *w, struct job *j)
{
	struct job **at = &w->queue;

	while (*at != NULL && rank_of(*at) <= rank_of(j))
		at = &(*at)->next;
	j->next = *at;
	*at = j;
	(void)pthread_cond_broadcast(&w->server->wake);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct server *s = w->server;
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->workers_end) {
		struct job *j = w->queue;

		if (j == NULL) {
			(void)pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		w->queue = j->next;
		(void)pthread_mutex_unlock(&s->lock);
		job_begins(w, j);
		job_execute(j);
		(void)pthread_mutex_lock(&s->lock);
		w->until_ns = 0;
		if (j->is_unfinished) {
			put_job(w, j);
			continue;
		}
		j->next = s->finished;
		s->finished = j;
		(void)!write(s->done_fd, &one, sizeof(one));
	}
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

bool worker_start(struct server *s)
{
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &s->workers[i];

		w->server = s;
		w->has_thread = pthread_create(&w->thread, NULL, worker_main, w) == 0;
		if (!w->has_thread)
			return false;
	}
	return true;
}

static void job_free(struct job *j)
{
	for (size_t i = 0; j->kind == JOB_LIST && i < j->n; i++)
		free(((char **)j->items)[i]);
	free(j->items);
	bytes_done(&j->text);
	free(j);
}

static void drop_jobs(struct job **list)
{
	while (*list != NULL) {
		struct job *j = *list;

		*list = j->next;
		if (j->call != NULL) {
			serve_problem(&j->call->reply, 503, "unavailable",
				      "baton serve has stopped");
			call_resume(j->call);
		}
		job_free(j);
	}
}

void worker_stop(struct server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->workers_end = true;
	(void)pthread_cond_broadcast(&s->wake);
	(void)pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &s->workers[i];

		if (w->has_thread)
			(void)pthread_join(w->thread, NULL);
		w->has_thread = false;
		drop_jobs(&w->queue);
	}
	drop_jobs(&s->finished);
}

static bool worker_add(struct server *s, struct job *j)
{
	bool is_long = j->kind == JOB_ASK && j->reply.task == SERVE_DOCTOR;

	(void)pthread_mutex_lock(&s->lock);
	put_job(&s->workers[is_long ? WORKER_DOCTOR : WORKER_STORE], j);
	(void)pthread_mutex_unlock(&s->lock);
	return true;
}

bool worker_ask(struct call *call)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return false;
	j->kind = JOB_ASK;
	j->call = call;
	j->server = call->server;
	j->reply = call->reply;
	if (call->reply.election != NULL)
		(void)strcpy(j->name, call->reply.election->name);
	return worker_add(call->server, j);
}

/* A question about an election that no client asks. Questions must never pile up: is_asked says
 * whether one waits. */
static void add_question(struct member *m, int kind, bool *is_asked)
{
	struct job *j = *is_asked ? NULL : calloc(1, sizeof(*j));

	if (j == NULL)
		return;
	*is_asked = true;
	j->kind = kind;
	j->server = m->server;
	(void)strcpy(j->name, m->name);
	(void)worker_add(m->server, j);
}

void worker_look(struct member *m)
{
	add_question(m, JOB_LOOK, &m->is_looked_at);
}

void worker_audit(struct member *m)
{
	add_question(m, JOB_AUDIT, &m->is_audited);
}

void worker_list(struct server *s)
{
	struct job *j;

	if (s->is_listed) /* the store may hang for long */
		return;
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return;
	s->is_listed = true;
	j->kind = JOB_LIST;
	j->server = s;
	(void)worker_add(s, j);
}

bool worker_is_late(struct server *s, int64_t now_ns)
{
	(void)pthread_mutex_lock(&s->lock);
	bool is_late = false;

	for (int i = 0; i < WORKERS; i++)
		is_late |= s->workers[i].until_ns != 0 && now_ns > s->workers[i].until_ns;
	(void)pthread_mutex_unlock(&s->lock);
	return is_late;
}

/* ---- the answers ---- */

static struct serve_status status_of(const struct job *j)
{
	return (struct serve_status){.election = j->call->reply.election,
				     .observed = &j->observed,
				     .candidates = j->items,
				     .n_candidates = j->n};
}

static void write_still(struct job *j, struct serve_text *out)
{
	const struct serve_status status = status_of(j);

	serve_write_still(out, server_view(j->server), &status);
}

static void write_found(struct job *j, struct serve_text *out)
{
	const struct serve_status status = status_of(j);

	switch (j->reply.task) {
	case SERVE_CANDIDATES:
		serve_write_candidates(out, j->items, j->n);
		text_add(out, "\n");
		break;
	case SERVE_HISTORY: serve_write_history(out, j->items, j->n); break;
	case SERVE_DOCTOR: text_add_n(out, j->text.at, j->text.n); break;
	case SERVE_STATUS: serve_write_status(out, server_view(j->server), &status); break;
	default: break;
	}
}

/* Writes what was found into the call's reply, with as much room as that takes. */
static void fill_body(struct job *j, void (*write)(struct job *j, struct serve_text *out))
{
	struct call *call = j->call;
	struct serve_reply *r = &call->reply;

	r->body.n = 0;
	write(j, &r->body);
	if (r->body.n <= r->body.room)
		return;
	size_t n = r->body.n;
	char *room = realloc(call->room, n);

	if (room == NULL)
		return;
	call->room = room;
	r->body = (struct serve_text){room, n, 0};
	write(j, &r->body);
}

static void answer_call(struct job *j)
{
	struct call *call = j->call;
	struct serve_reply *r = &call->reply;

	if (j->code < 0) {
		serve_problem_of(r, j->code, baton_code_name(j->code),
				 j->err.text[0] != '\0' ? j->err.text : baton_strerror(j->code));
	} else if (r->status == 200 || r->task == SERVE_STATUS) {
		r->type = "application/json";
		if (r->task == SERVE_STATUS) {
			fill_body(j, write_still);
			if (r->body.n <= r->body.room && r->status == 200)
				serve_tag(r, r->body.at, r->body.n);
		}
		fill_body(j, write_found);
	}
	call_resume(call);
}

/* What a look has found out about an election that others lead, or that waits. */
static void take_look(struct job *j, struct member *m)
{
	j->server->cant_list = j->code == BATON_E_UNSUPPORTED;
	if (m == NULL)
		return;
	m->is_looked_at = m->is_looked_at && j->kind != JOB_LOOK;
	if (j->code < 0)
		return;
	m->v.n_candidates = (int)j->n;
	m->v.n_healthy = j->n_healthy;
	m->v.lease_left_ms = j->observed.has_leader ? j->observed.lease_left_ms : -1;
	m->v.seen_boot_ns = server_now_ns();
	if (j->kind == JOB_LOOK)
		streams_publish_row(m);
}

static void take_audit(const struct job *j, struct member *m)
{
	j->server->cant_audit = j->code == BATON_E_UNSUPPORTED;
	if (m == NULL)
		return;
	m->is_audited = false;
	m->audited_ns = server_now_ns();
}

static void take_job(struct server *s, struct job *j)
{
	/* An examination that finds that nothing answers has succeeded, too. */
	bool is_doctor = j->kind == JOB_ASK && j->reply.task == SERVE_DOCTOR;

	s->has_answer = s->has_answer || (j->code >= 0 && !is_doctor);
	if (j->kind == JOB_AUDIT) {
		take_audit(j, members_find(s, j->name));
	} else if (j->kind == JOB_LIST) {
		s->is_listed = false;
		for (size_t i = 0; i < j->n; i++) {
			const char *name = ((char **)j->items)[i];

			if (name != NULL && members_find(s, name) == NULL)
				(void)members_add(s, name, false);
		}
		if (j->code < 0)
			s->config->say(BATON_LOG_WARN, "the elections can't be listed: %s",
				       j->err.text);
	} else {
		if (j->kind == JOB_LOOK || j->reply.task == SERVE_STATUS)
			take_look(j, members_find(s, j->name));
		if (j->call != NULL)
			answer_call(j);
	}
}

void worker_take_finished(struct server *s)
{
	uint64_t n;

	(void)!read(s->done_fd, &n, sizeof(n));
	(void)pthread_mutex_lock(&s->lock);
	struct job *j = s->finished;

	s->finished = NULL;
	(void)pthread_mutex_unlock(&s->lock);
	while (j != NULL) {
		struct job *next = j->next;

		take_job(s, j);
		job_free(j);
		j = next;
	}
}
