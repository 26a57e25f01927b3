/*
 * members.c: the elections of this process, and whose work each leadership is. The work of a
 * leadership is one context of the library: it is entered at BECAME and left when the work has
 * ended, and the claim is kept as long. Work has ended when `done` was said; or when the connection
 * that was told `became` is closed at both ends, and every deadline has passed that a process was
 * told that didn't hold this connection.
 *
 * It must never leave a context while a client may still trust a deadline (S7).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/page.h"
#include "serve/server.h"
#include "telemetry/handover.h"

#define HOUR_S ((int64_t)3600)
#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)

static const char no_words[] = "";

/* A copy; where there is no memory for it, nothing is said. */
static void set_words(const char **at, const char *words)
{
	if (strcmp(*at, words) == 0)
		return;
	char *copy = words[0] != '\0' ? strdup(words) : NULL;

	if (*at != no_words)
		free((char *)(uintptr_t)*at);
	*at = copy != NULL ? copy : no_words;
}

static void member_free(struct member *m)
{
	set_words(&m->v.leader, "");
	set_words(&m->v.address, "");
	set_words(&m->v.error, "");
	set_words(&m->v.wait, "");
	page_close(m->page);
	hooks_remove(m);
	telemetry_remove(m);
	free(m->changes);
	free(m);
}

struct member *members_find(struct server *s, const char *name)
{
	size_t low = 0;
	size_t high = s->n_members;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, s->members[middle]->name);

		if (order == 0)
			return s->members[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* ---- coming and going ---- */

static bool make_room(struct server *s)
{
	size_t room = s->room_members != 0 ? 2 * s->room_members : 16;

	if (s->n_members < s->room_members)
		return true;
	struct member **members = reallocarray(s->members, room, sizeof(*members));

	if (members == NULL)
		return false;
	s->members = members;
	struct serve_election **rows = reallocarray(s->rows, room, sizeof(*rows));

	if (rows == NULL)
		return false;
	s->rows = rows;
	s->room_members = room;
	return true;
}

static void insert(struct server *s, struct member *m)
{
	size_t at = s->n_members;

	while (at > 0 && strcmp(s->members[at - 1]->name, m->name) > 0) {
		s->members[at] = s->members[at - 1];
		s->rows[at] = s->rows[at - 1];
		at--;
	}
	s->members[at] = m;
	s->rows[at] = &m->v;
	s->n_members++;
}

static int begin_member(struct member *m, bool takes_part, struct baton_error *err)
{
	struct baton_election_options o = *m->server->config->election;

	o.drain_by_hand = true;
	o.tell_renewals = true;
	o.check_health = true;
	o.observe_only = !takes_part;
	int code = baton_election_new(m->server->config->baton, m->name, &o, &m->election, err);

	if (code == 0 && takes_part)
		member_report(m, NULL);
	return code == 0 ? baton_election_start(m->election) : code;
}

bool members_add(struct server *s, const char *name, bool takes_part)
{
	struct member *m = calloc(1, sizeof(*m) + strlen(name) + 1);
	struct baton_error err = {0};

	if (m == NULL || !make_room(s)) {
		free(m);
		return false;
	}
	m->server = s;
	m->score = 1000;
	(void)strcpy(m->name, name);
	m->v = (struct serve_election){.name = m->name,
				       .takes_part = takes_part,
				       .min_score_permille =
					       s->config->election->min_score_permille,
				       .leader = no_words,
				       .address = no_words,
				       .wait = no_words,
				       .error = no_words,
				       .reason = no_words,
				       .state_name = "stopped",
				       .condition_name = "degraded",
				       .condition = BATON_CONDITION_DEGRADED,
				       .lease_left_ms = -1,
				       .n_candidates = -1,
				       .n_healthy = -1,
				       .seq = s->view.first_seq,
				       .owner = m};
	bool good =
		!takes_part || s->config->page_dir == NULL ||
		page_open(s->config->page_dir, m->name, baton_id(s->config->baton), &m->page, &err);

	good = good && hooks_add(m) && telemetry_add(m);
	if (!good || begin_member(m, takes_part, &err) != 0) {
		s->config->say(BATON_LOG_ERROR, "%s: %s", name,
			       err.text[0] != '\0' ? err.text : baton_strerror(err.code));
		baton_election_free(m->election);
		member_free(m);
		return false;
	}
	insert(s, m);
	return true;
}

void members_free(struct server *s)
{
	for (size_t i = 0; i < s->n_members; i++) {
		baton_leave(s->members[i]->hold);
		member_free(s->members[i]);
	}
	s->n_members = 0;
}

void members_stop(struct server *s)
{
	int64_t grace_ns = (int64_t)(s->view.timings.lease_ns + s->view.timings.drain_ns);

	if (s->is_stopping) {
		s->stop_until_ns = 0; /* asked twice: the caller can't wait */
		return;
	}
	s->is_stopping = true;
	s->stop_until_ns = server_now_ns() + grace_ns + (int64_t)CLOCK_NS_PER_S;
	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = s->members[i];

		if (m->told_ns + grace_ns > s->stop_until_ns)
			s->stop_until_ns = m->told_ns + grace_ns;
		m->is_stopped = baton_election_stop(m->election, 0) == 0;
	}
}

bool members_have_stopped(const struct server *s)
{
	for (size_t i = 0; i < s->n_members; i++)
		if (!s->members[i]->is_stopped)
			return false;
	return true;
}

/* ---- what is known ---- */

static void count_changes(struct member *m)
{
	int64_t now_s = clock_wall_ms() / 1000;

	m->v.changes_hour = m->v.changes_day = 0;
	for (unsigned i = 0; i < m->n_changes && i < CHANGES; i++) {
		m->v.changes_hour += m->changes[i] > now_s - HOUR_S;
		m->v.changes_day += m->changes[i] > now_s - 24 * HOUR_S;
	}
}

/* Most elections change rarely: the room doubles as they do. */
static void note_change(struct member *m)
{
	unsigned n = m->n_changes;

	if (n < CHANGES && (n & (n - 1)) == 0) {
		uint32_t *changes = reallocarray(m->changes, n != 0 ? 2 * n : 1, sizeof(*changes));

		if (changes == NULL)
			return;
		m->changes = changes;
	}
	m->changes[m->n_changes++ % CHANGES] = (uint32_t)(clock_wall_ms() / 1000);
}

void member_refresh(struct member *m)
{
	struct baton_status st;
	struct baton_error err = {0};
	int64_t deadline_ns = 0;
	int64_t end_ns = 0;

	if (baton_get_status(m->election, &st) != 0)
		return;
	m->v.state = st.state;
	m->v.state_name = m->v.takes_part ? baton_state_name(st.state) : "observing";
	m->v.condition = baton_election_condition(m->election, &err);
	m->v.condition_name = baton_condition_name(m->v.condition);
	if (m->v.condition != BATON_CONDITION_UNHEALTHY)
		set_words(&m->v.error, "");
	else if (err.text[0] != '\0')
		set_words(&m->v.error, err.text);
	m->v.paused = st.paused;
	m->v.term = st.term;
	m->v.since_ms = st.leader_since_ms;
	m->v.score_permille = st.score_permille;
	m->v.wait_ms = st.wait_ms;
	set_words(&m->v.wait, st.wait);
	set_words(&m->v.leader, st.leader);
	set_words(&m->v.address, st.leader_address);
	m->v.leads = baton_get_deadline(m->election, &deadline_ns, &end_ns) == 1 && m->is_open &&
		     m->hold != NULL && !m->is_lost && baton_context_is_leader(m->hold);
	m->v.deadline_boot_ns = m->v.leads ? deadline_ns : 0;
	m->v.end_boot_ns = end_ns;
	m->v.my_term = m->hold_term;
	m->v.draining_term = m->hold != NULL && m->is_lost ? m->hold_term : 0;
	count_changes(m);
}

void members_refresh_all(struct server *s)
{
	for (size_t i = 0; i < s->n_members; i++)
		member_refresh(s->members[i]);
}

/* ---- work ---- */

/* The connection that has stood by for longest is told. */
static struct stream *find_standby(const struct member *m)
{
	struct stream *found = NULL;

	for (struct stream *st = m->server->streams; st != NULL; st = st->next)
		if (st->kind == STREAM_LEAD && st->member == m && !st->is_half_closed &&
		    !st->is_over && !st->is_gone && !st->is_done)
			found = st; /* the list has the last one first */
	return found;
}

/* A leadership that has ended is not given, although its LOST may not have been taken yet. */
static void give_work(struct member *m)
{
	struct stream *next = m->leads == NULL ? find_standby(m) : NULL;

	if (next == NULL)
		return;
	member_refresh(m);
	if (!m->v.leads)
		return;
	m->leads = next;
	m->leads->told_term = m->hold_term;
	stream_tell_lead(m->leads, "became", "");
}

static void member_resign(struct member *m)
{
	if (m->hold != NULL && !m->is_lost)
		(void)baton_resign(m->election, 0);
}

void member_report(struct member *m, const char *metadata)
{
	bool may = !m->server->config->attach_require || m->v.n_leads > 0;

	(void)baton_report_health(m->election, may ? m->score : 0, metadata);
}

/* What the process that holds the work is told ends with its work. What another process is told
 * holds, whatever becomes of this work. */
void member_told(struct member *m, const struct link *link, int64_t deadline_ns)
{
	struct stream *holder = m->leads;
	bool is_own =
		holder != NULL && link != NULL && listen_is_one_process(holder->call->link, link);
	int64_t *told_ns = is_own ? &holder->told_ns : &m->told_ns;

	if (deadline_ns > *told_ns)
		*told_ns = deadline_ns;
}

int member_done(struct member *m, uint64_t term)
{
	if (m->hold == NULL || m->hold_term != term)
		return BATON_E_STALE;
	m->told_ns = 0;
	if (m->leads != NULL) {
		m->leads->is_done = true;
		stream_end(m->leads);
		m->leads = NULL;
	}
	member_resign(m);
	return 0;
}

void member_attach(struct member *m, struct stream *stream)
{
	m->v.n_leads++;
	listen_identify(stream->call->link);
	member_report(m, NULL);
	stream_tell_lead(stream, "standby", "");
	give_work(m);
}

void member_half_closed(struct member *m, struct stream *stream)
{
	if (m->leads == stream)
		member_resign(m);
	else
		stream_end(stream);
}

void member_detach(struct member *m, struct stream *stream)
{
	m->v.n_leads--;
	if (m->leads == stream) {
		m->leads = NULL;
		bool has_ended =
			stream->is_done || (stream->call->link->is_local && !stream->is_cut);

		/* Over a network it is unknown whether the work has ended, and so it is if a client
		 * doesn't read: the deadline that was told holds. */
		if (!has_ended) {
			member_refresh(m);
			member_told(m, NULL, m->v.leads ? m->v.deadline_boot_ns : stream->end_ns);
			member_told(m, NULL, stream->told_ns);
		}
		member_resign(m);
	}
	member_report(m, NULL);
}

/* The work has ended: what was held for it is given back. */
static void settle(struct member *m)
{
	baton_leave(m->hold);
	m->hold = NULL;
	m->is_lost = false;
	m->told_ns = 0;
	m->v.draining_term = 0;
	m->is_drained = false;
	telemetry_released(m);
}

/* The work has ended; true: on-lost has ended, too. */
static bool is_drained(struct member *m)
{
	if (!m->is_drained)
		telemetry_drained(m);
	m->is_drained = true;
	return hooks_are_over(m);
}

int64_t members_settle(struct server *s)
{
	int64_t now_ns = server_now_ns();
	int64_t next_ns = INT64_MAX;

	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = s->members[i];

		if (m->hold == NULL || !m->is_lost || m->leads != NULL)
			continue;
		if (m->told_ns > now_ns)
			next_ns = m->told_ns < next_ns ? m->told_ns : next_ns;
		else if (is_drained(m))
			settle(m);
	}
	return next_ns;
}

/* ---- events ---- */

void member_open(struct member *m)
{
	int64_t deadline_ns = 0;
	int64_t end_ns = 0;

	/* The times as they are now: the gate may have taken long. */
	if (baton_get_deadline(m->election, &deadline_ns, &end_ns) != 1)
		return;
	atomic_store(&m->is_open, true);
	page_became(m->page, m->hold_term, deadline_ns, end_ns);
	telemetry_opened(m);
	give_work(m);
	streams_opened(m);
	m->server->config->say_of(BATON_LOG_INFO, m->name, m->hold_term,
				  "leads %s in term %llu as %s", m->name,
				  (unsigned long long)m->hold_term, m->server->view.id);
}

static void take_became(struct member *m, const struct baton_event *event)
{
	struct baton_error err;

	if (m->hold != NULL)
		settle(m); /* can't be: the claim was kept for it */
	if (baton_enter(m->election, &m->hold, &err) != 0) {
		m->hold = NULL;
		return;
	}
	m->hold_term = baton_context_term(m->hold);
	m->renewed_ns = event->deadline_boot_ns;
	m->is_lost = m->hold_term != event->term;
	telemetry_became(m, event);
	if (!m->is_lost)
		hooks_elected(m, event);
}

static void take_lost(struct member *m, const struct baton_event *event)
{
	bool was_open = atomic_exchange(&m->is_open, false);

	page_lost(m->page);
	m->v.reason = baton_reason_name(event->reason);
	if (m->hold == NULL) { /* it was lost before it could be entered: no work has begun */
		(void)baton_drained(m->election, event->term);
		return;
	}
	m->is_lost = true;
	telemetry_lost(m, m->hold_term);
	hooks_lost(m, event->reason);
	member_refresh(m);
	if (m->leads != NULL)
		stream_tell_lead(m->leads, "lost", m->v.reason);
	if (was_open) /* else no client was told that we led */
		m->server->config->say_of(
			handover_is_voluntary(event->reason) ? BATON_LOG_INFO : BATON_LOG_WARN,
			m->name, m->hold_term, "no longer leads %s: %s", m->name, event->text);
}

static void take_renewed(struct member *m, const struct baton_event *event)
{
	page_renewed(m->page, event->deadline_boot_ns, event->work_end_boot_ns);
	hooks_renewed(m);
	m->renewed_ns = event->deadline_boot_ns;
	m->is_renewed = m->server->is_renewed = true;
	if (m->leads != NULL && m->leads->tell_renewals) {
		member_refresh(m);
		if (m->v.leads) /* the lease may hold on for work that drains */
			stream_tell_lead(m->leads, "renewed", "");
	}
}

static void publish_event(struct member *m, const struct baton_event *event)
{
	bool is_lost = event->kind == BATON_EVENT_LOST;
	struct serve_event told = {
		.wall_ms = clock_wall_ms(),
		.kind = baton_event_name(event->kind),
		.leader = event->kind == BATON_EVENT_BECAME ? baton_id(m->server->config->baton)
							    : event->leader,
		.old_leader = event->old_leader,
		.reason = is_lost ? baton_reason_name(event->reason) : "",
		.text = event->text,
		.term = event->term,
		.old_term = event->old_term,
	};

	m->v.seq = told.seq = ++m->server->view.seq;
	member_refresh(m);
	streams_publish(m, &told);
}

/*
 * A leader after another one is a change. Neither the first leader that is seen nor a gap between
 * two leaders is one.
 */
static void count_change(struct member *m, const struct baton_event *event)
{
	if (event->leader[0] == '\0')
		return;
	if (m->changed_term != 0 && event->term > m->changed_term)
		note_change(m);
	m->changed_term = event->term;
}

static void take_one(struct member *m, const struct baton_event *event)
{
	switch (event->kind) {
	case BATON_EVENT_BECAME: take_became(m, event); break;
	case BATON_EVENT_LOST: take_lost(m, event); break;
	case BATON_EVENT_RENEWED: take_renewed(m, event); return;
	case BATON_EVENT_STOPPED: m->is_stopped = true; break;
	case BATON_EVENT_CHANGED:
		m->v.lease_left_ms = -1;
		count_change(m, event);
		telemetry_changed(m, event);
		hooks_changed(m, event);
		break;
	case BATON_EVENT_ERROR: set_words(&m->v.error, event->text); break;
	default: break;
	}
	publish_event(m, event);
}

void members_take_events(struct server *s)
{
	struct baton *b = s->config->baton;
	struct baton_event event;

	while (baton_wait(b, 0, &event) == 1) {
		struct member *m = members_find(
			s, event.election != NULL ? baton_election_name(event.election) : "");

		if (m != NULL)
			take_one(m, &event);
		(void)baton_event_done(b, event.token);
	}
	if (s->is_renewed)
		streams_renewed(s);
}
