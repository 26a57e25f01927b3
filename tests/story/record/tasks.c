/*
 * tasks.c: carries out what the tasks of decide.h ask for, one after the other, and tells each of
 * them with its reason. See world.h.
 */
#include <stdio.h>
#include <string.h>

#include "story.h"

static struct record_election election;
static struct record_lease lease;

/* ---- words ---- */

static const char *outcome_text(int outcome)
{
	static const char *const texts[] = {"", "ok", "refused", "failed", "unknown"};

	return texts[outcome];
}

static const char *election_text(const struct record_election *e, uint64_t version)
{
	static char text[200];
	char name[4];
	size_t c, i;
	int n;

	if (version == 0)
		return "nothing";
	if (e->lease[0] == '\0') {
		n = snprintf(text, sizeof(text), "free, term %llu", (unsigned long long)e->term);
	} else {
		lease_find(e->lease, &c, &i);
		n = snprintf(text, sizeof(text), "%s in term %llu", lease_name(c, i, name),
			     (unsigned long long)e->term);
	}
	if (e->reserved_for[0] != '\0')
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", kept for %s", e->reserved_for);
	if (e->score_permille != 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", score %u", e->score_permille);
	if (e->order_id != 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", an order");
	if (e->paused)
		(void)snprintf(text + n, sizeof(text) - (size_t)n, ", paused");
	return text;
}

static void tell_end(struct world *w, const struct record_task *task, const char *more)
{
	lines_add(&w->trace, "%s%s (%s)", outcome_text(task->outcome), more,
		  record_why_text(task->why));
}

/* ---- turns ---- */

static struct record_turn turn_of(struct world *w, struct someone *s)
{
	struct record_turn t = {.now_ns = w->now_ns,
				.random = w->versions + 1,
				.lease = &lease,
				.election = &election,
				.hold = s != NULL ? &s->hold : NULL};

	w->weak.uptime_ns = w->now_ns - w->weak_since_ns;
	t.weak = w->is_weak ? &w->weak : NULL;
	return t;
}

static void answer(struct record_turn *t, int outcome, uint64_t version)
{
	t->outcome = outcome;
	t->version = version_of(version);
	t->is_told = false;
}

/* A write of the election: how it ended, with what was in the way, if conflicts tell that. */
static void write_election(struct world *w, struct record_turn *t, const struct record_task *task)
{
	struct write p = {
		.owner = CANDIDATES_MAX, .expected = number_of(&task->version), .e = election};
	char text[200];

	(void)snprintf(text, sizeof(text), "%s", election_text(&election, 1));
	int outcome = world_write(w, &p);

	lines_add(&w->trace, "writes e from v%llu: %s: %s (%s)", (unsigned long long)p.expected,
		  text, outcome_text(outcome), record_why_text(task->why));
	answer(t, outcome, w->election.version);
	t->is_told = outcome == BATON_OUTCOME_REFUSED && w->told != 0;
	if (t->is_told)
		election = w->election.value;
}

static void read_election(struct world *w, struct record_turn *t, const struct record_task *task,
			  bool is_fresh)
{
	const struct election_record *r = w->reads_old && !is_fresh ? &w->old : &w->election;
	bool fails = w->fate == FATE_FAILED && w->fated == 'r';

	election = r->value;
	answer(t, fails ? BATON_OUTCOME_FAILED : BATON_OUTCOME_OK, r->version);
	lines_add(&w->trace, "reads e%s: %s v%llu (%s)", is_fresh ? " fresh" : "",
		  fails ? "failed" : election_text(&r->value, r->version),
		  (unsigned long long)r->version, record_why_text(task->why));
}

/* ---- leases ---- */

static void write_lease(struct world *w, struct record_turn *t, const struct record_task *task,
			size_t c, size_t i, uint64_t expected)
{
	struct write p = {.owner = c, .lease = i, .expected = expected, .l = lease};
	bool is_dead = lease.death != RECORD_ALIVE;
	int outcome = world_write(w, &p);
	const struct lease_record *r = &w->leases[c][i];
	char name[4];

	lines_add(&w->trace, "%s %s from v%llu: %s (%s)", is_dead ? "buries" : "writes",
		  lease_name(c, i, name), (unsigned long long)expected, outcome_text(outcome),
		  record_why_text(task->why));
	answer(t, outcome, r->version);
	t->is_told = outcome == BATON_OUTCOME_REFUSED && w->told != 0;
	if (t->is_told)
		lease = r->value;
}

void task_keep(struct world *w, size_t c, uint32_t intent)
{
	struct someone *s = &w->candidates[c];
	struct baton_lease l = lease_of(w, c);
	struct record_keep k = {
		.intent = intent, .death = RECORD_CLOSED, .lease = &l, .own = &s->own};
	struct record_turn t = turn_of(w, s);
	size_t i = s->n_leases - 1;
	char name[4];
	int op;

	memset(&lease, 0, sizeof(lease));
	while ((op = record_keep_step(&k, &t)) != RECORD_DONE) {
		if (op == RECORD_WRITE) {
			write_lease(w, &t, &k.task, c, i, number_of(&k.task.version));
			continue;
		}
		const struct lease_record *r = &w->leases[c][i];
		bool fails = w->fate == FATE_FAILED && w->fated == 'r';

		lease = r->value;
		answer(&t, fails ? BATON_OUTCOME_FAILED : BATON_OUTCOME_OK, r->version);
		lines_add(&w->trace, "reads %s fresh: %s (%s)", lease_name(c, i, name),
			  fails                 ? "failed"
			  : r->version == 0     ? "nothing"
			  : r->value.death != 0 ? "dead"
						: "alive",
			  record_why_text(k.task.why));
	}
	tell_end(w, &k.task, "");
}

void task_open(struct world *w, size_t c)
{
	struct someone *s = &w->candidates[c];

	if (s->n_leases == LEASES_MAX) {
		lines_add(&w->trace, "!! a story has %u leases of one candidate", LEASES_MAX);
		w->broken = true;
		return;
	}
	s->n_leases++;
	s->own = (struct record_own){.beat = 0};
	s->claim = (struct record_claim){.nonce = 0};
	task_keep(w, c, RECORD_OPEN);
}

/* ---- campaigns ---- */

static void look_read(const struct world *w, struct record_sight *sight,
		      const struct lease_record *r, bool is_fresh)
{
	struct record_version version = version_of(r->version);

	record_sight_note(sight, &version, r->version != 0 ? &r->value : NULL, election.ttl_ns,
			  is_fresh, w->now_ns);
}

/* Old: from before it was opened. */
static void campaign_look(struct world *w, struct someone *s, const struct record_campaign *task,
			  struct record_turn *t)
{
	static const struct lease_record none;
	size_t c, i;
	char name[4];

	lease_find(task->rival, &c, &i);
	const struct lease_record *r = &w->leases[c][i];
	struct record_sight *sight = &s->sights[c][i];
	bool fails = w->fate == FATE_FAILED && w->fated == 's';
	bool is_old = w->fate == FATE_OLD && w->fated == 's';

	if (!fails)
		look_read(w, sight, is_old ? &none : r, false);
	bool is_unsure = record_sight_is_unsure(sight);

	if (is_unsure) {
		lines_add(&w->trace, "looks at %s: missing, perhaps not there yet (%s)",
			  lease_name(c, i, name), record_why_text(task->task.why));
		look_read(w, sight, r, true);
	}
	answer(t, fails ? BATON_OUTCOME_FAILED : BATON_OUTCOME_OK, r->version);
	uint64_t known_ns = sight->is_known ? w->now_ns - sight->since_ns : 0;

	lines_add(&w->trace, "looks at %s%s: %s v%llu, known for %llus (%s)",
		  lease_name(c, i, name), is_unsure ? " fresh" : "",
		  fails                         ? "failed"
		  : record_sight_is_dead(sight) ? "dead"
		  : r->version == 0             ? "missing"
						: "alive",
		  (unsigned long long)r->version, (unsigned long long)(known_ns / NS_PER_S),
		  record_why_text(task->task.why));
}

static void campaign_lock(struct world *w, const struct record_campaign *task,
			  struct record_turn *t)
{
	bool fails = w->fate == FATE_FAILED && w->fated == 'k';
	int outcome = fails        ? BATON_OUTCOME_FAILED
		      : w->foreign ? BATON_OUTCOME_REFUSED
				   : BATON_OUTCOME_OK;

	answer(t, outcome, 0);
	lines_add(&w->trace, "takes the lock: %s (%s)", outcome_text(outcome),
		  record_why_text(task->task.why));
}

static void campaign_run(struct world *w, size_t c, struct record_campaign *task)
{
	struct someone *s = &w->candidates[c];
	struct record_turn t = turn_of(w, s);
	char more[40] = "";
	size_t i, whose;
	int op;

	for (t.sight = &s->sights[0][0]; (op = record_campaign_step(task, &t)) != RECORD_DONE;) {
		t.random = w->versions + 1;
		if (task->rival[0] != '\0') {
			lease_find(task->rival, &whose, &i);
			t.sight = &s->sights[whose][i];
		}
		switch (op) {
		case RECORD_LOOK: campaign_look(w, s, task, &t); break;
		case RECORD_BURY:
			write_lease(w, &t, &task->task, whose, i, number_of(&t.sight->version));
			break;
		case RECORD_LOCK: campaign_lock(w, task, &t); break;
		case RECORD_WRITE: write_election(w, &t, &task->task); break;
		default: read_election(w, &t, &task->task, op == RECORD_READ_FRESH); break;
		}
	}
	record_campaign_book(task, &s->claim);
	if (task->task.outcome == BATON_OUTCOME_OK)
		(void)snprintf(more, sizeof(more), ": leads in term %llu",
			       (unsigned long long)task->term);
	tell_end(w, &task->task, more);
	if (s->claim.standing == RECORD_IN_DOUBT)
		lines_add(&w->trace, "a claim is in doubt");
}

void task_campaign(struct world *w, size_t c, uint64_t floor)
{
	static const struct baton_profile profile = {.metadata = ""};
	struct baton_lease l = lease_of(w, c);
	struct record_campaign task = {.lease = &l,
				       .profile = &profile,
				       .nonce = ++w->nonces,
				       .floor = floor,
				       .locks = w->has_locks};

	campaign_run(w, c, &task);
}

void task_settle(struct world *w, size_t c)
{
	struct baton_lease l = lease_of(w, c);
	struct record_campaign task;

	record_settle_begin(&task, &l, &w->candidates[c].claim, w->has_locks);
	campaign_run(w, c, &task);
}

/* ---- what changes an election without claiming it ---- */

static void edit_run(struct world *w, struct record_edit *task)
{
	struct record_turn t = turn_of(w, NULL);
	struct record_sight sight = {.is_known = false};
	int op;

	election = w->election.value;
	if (election.lease[0] != '\0') {
		size_t c, i;

		lease_find(election.lease, &c, &i);
		struct record_version version = version_of(w->leases[c][i].version);

		record_sight_note(&sight, &version, &w->leases[c][i].value, 0, true, w->now_ns);
		t.sight = &sight;
	}
	while ((op = record_edit_step(task, &t)) != RECORD_DONE) {
		if (op == RECORD_WRITE)
			write_election(w, &t, &task->task);
		else
			read_election(w, &t, &task->task, true);
	}
	tell_end(w, &task->task, "");
}

void task_release(struct world *w, size_t c, const char *reserve_for, uint64_t hold_ns)
{
	struct someone *s = &w->candidates[c];
	struct baton_lease l = lease_of(w, c);
	struct baton_release asked = {.lease_id = l.id,
				      .nonce = s->claim.nonce,
				      .term = s->claim.term,
				      .reason = "resigned",
				      .reserve_for = reserve_for,
				      .hold_ns = hold_ns};
	struct record_edit task = {.release = &asked};

	if (s->claim.standing == RECORD_STANDS &&
	    w->election.version == number_of(&s->claim.version))
		task.known = s->claim.version;
	edit_run(w, &task);
}

void task_show(struct world *w, size_t c, uint32_t score)
{
	struct someone *s = &w->candidates[c];
	struct baton_lease l = lease_of(w, c);
	struct baton_profile profile = {.metadata = "", .score_permille = score};
	struct record_show asked = {.lease_id = l.id,
				    .nonce = s->claim.nonce,
				    .term = s->claim.term,
				    .profile = &profile};
	struct record_edit task = {.show = &asked};

	if (w->election.version == number_of(&s->claim.version))
		task.known = s->claim.version;
	edit_run(w, &task);
	if (task.task.outcome == BATON_OUTCOME_OK)
		s->claim.version = task.task.version;
}

void task_order(struct world *w, uint64_t term)
{
	struct baton_order order = {.id = term + 100, .term = term, .kind = BATON_ORDER_RESIGN};
	struct record_edit task = {.order = &order};

	edit_run(w, &task);
}

void task_pause(struct world *w, bool pause)
{
	struct record_edit task = {.pause = pause};

	edit_run(w, &task);
}

/* ---- sweeping, observing ---- */

/* R10: everything but elections. */
void task_sweep(struct world *w, size_t by)
{
	static const char *const whats[] = {"stays", "is ended", "is dropped"};

	for (size_t c = 0; c < CANDIDATES_MAX; c++) {
		for (size_t i = 0; i < LEASES_MAX; i++) {
			struct lease_record *r = &w->leases[c][i];
			struct record_sight *sight = &w->candidates[by].sights[c][i];
			struct record_version version = version_of(r->version);
			char name[4], id[4] = {(char)('a' + c), '-', (char)('1' + i), '\0'};

			if (r->version == 0)
				continue;
			record_sight_note(sight, &version, &r->value, 0, true, w->now_ns);
			int what =
				record_sweep_lease(sight, strcmp(w->election.value.lease, id) == 0,
						   record_idle_ns(r->value.ttl_ns), w->now_ns);

			lines_add(&w->trace, "%s %s", lease_name(c, i, name), whats[what]);
			if (what == RECORD_DROP)
				r->version = 0;
			if (what != RECORD_END)
				continue;
			record_tombstone(&r->value, RECORD_IDLE, r->value.ttl_ns, "", 1);
			r->version = ++w->versions;
		}
	}
}

void task_observe(struct world *w, size_t c)
{
	struct someone *s = &w->candidates[c];
	const struct record_election *e = &w->election.value;
	const struct record_sight *sight = NULL;
	static struct baton_record out;
	char id[2] = {(char)('A' + c), '\0'};

	if (e->lease[0] != '\0') {
		size_t whose, i;

		lease_find(e->lease, &whose, &i);
		sight = &s->sights[whose][i];
	}
	record_hold_note(&s->hold, e, w->now_ns);
	record_observe(e, sight, &s->hold, id, w->now_ns, &out);
	lines_add(&w->trace, "%s%s%s term %llu%s", out.held ? "held by " : "free",
		  out.held ? out.leader : "", out.reserved ? ", kept for another," : ",",
		  (unsigned long long)out.term, out.paused ? ", paused" : "");
	if (out.free_in_ns != NEVER)
		lines_add(&w->trace, "can end in %llus",
			  (unsigned long long)(out.free_in_ns / NS_PER_S));
}
