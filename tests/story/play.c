/* play.c: one line of a story, from words to events. See story.h, and README.md for the words. */
#include <stdio.h>
#include <string.h>

#include "story.h"
#include "text.h"

/* Who a line speaks of: "A.b:", "A:", "b:" or nobody in particular. */
struct whom {
	size_t c;
	size_t i;
	bool one_election; /* else all of them, where that makes sense */
	bool all_candidates;
};

struct play {
	struct world *w;
	struct words words;
	struct whom whom;
	struct event ev;
	struct view claims[ELECTIONS_MAX]; /* what "claims" lists */
	bool has_call;                     /* the line says which call it answers */
	const char *error;
};

static bool fail(struct play *p, const char *error)
{
	if (p->error == NULL)
		p->error = error;
	return false;
}

/* ---- whom ---- */

static void take_whom(struct play *p)
{
	const char *word = words_peek(&p->words);
	size_t n = word == NULL ? 0 : strlen(word);

	p->whom.all_candidates = p->w->n_candidates > 1;
	p->whom.one_election = p->w->n_elections == 1;
	if (n < 2 || n > 4 || word[n - 1] != ':')
		return;
	(void)words_next(&p->words);
	if (*word >= 'A' && *word <= 'Z') {
		p->whom.c = (size_t)(*word++ - 'A');
		p->whom.all_candidates = false;
		if (*word == '.')
			word++;
	}
	if (*word >= 'a' && *word <= 'z') {
		p->whom.i = (size_t)(*word++ - 'a');
		p->whom.one_election = true;
	}
	if (*word != ':' || p->whom.c >= CANDIDATES_MAX || p->whom.i >= ELECTIONS_MAX)
		(void)fail(p, "there is no such candidate or election");
}

static bool begin(struct play *p, struct world *w, const char *line)
{
	*p = (struct play){.w = w, .ev.now_ns = w->now_ns, .ev.random = w->random};
	if (!words_cut(&p->words, line))
		return fail(p, "the line is too long");
	take_whom(p);
	return p->error == NULL;
}

static bool end(const struct play *p, const char **error)
{
	*error = p->error;
	return p->error == NULL;
}

/* ---- values ---- */

static uint64_t number(struct play *p)
{
	uint64_t n = 0;
	const char *word = words_next(&p->words);

	if (word != NULL && strcmp(word, "max") == 0)
		return TERM_MAX;
	if (!parse_number(word, &n))
		(void)fail(p, "a number is missing");
	return n;
}

static uint64_t span(struct play *p)
{
	uint64_t ns = 0;

	if (!parse_span(words_next(&p->words), &ns))
		(void)fail(p, "a time like 1.5s is missing");
	return ns;
}

static uint64_t part(struct play *p, uint64_t whole)
{
	uint64_t n = 0;

	if (!parse_part(words_next(&p->words), whole, &n))
		(void)fail(p, "a number like 0.8 is missing");
	return n;
}

static uint32_t candidate(struct play *p)
{
	uint32_t who = NOBODY;

	if (!parse_candidate(words_next(&p->words), &who))
		(void)fail(p, "a candidate's letter is missing");
	return who;
}

static int32_t rank(struct play *p)
{
	const char *word = words_peek(&p->words);
	uint64_t n = 0;
	bool minus = word != NULL && *word == '-';

	if (word == NULL || !parse_number(word + minus, &n) || n > INT32_MAX)
		(void)fail(p, "a priority is missing");
	(void)words_next(&p->words);
	return minus ? -(int32_t)n : (int32_t)n;
}

static uint64_t dice(struct play *p)
{
	return min_ns(part(p, 0x10000), 0xffff);
}

/* "on", "off" or nothing, which means on. */
static bool on(struct play *p)
{
	if (words_take(&p->words, "off"))
		return false;
	(void)words_take(&p->words, "on");
	return true;
}

/* ---- settings ---- */

static bool set_timing(struct play *p, struct timing *t, const char *word)
{
	if (strcmp(word, "lease") == 0)
		t->lease_ns = span(p);
	else if (strcmp(word, "renew") == 0)
		t->renew_ns = span(p);
	else if (strcmp(word, "grace") == 0)
		t->grace_ns = span(p);
	else if (strcmp(word, "retry") == 0)
		t->retry_ns = span(p);
	else if (strcmp(word, "retry_max") == 0)
		t->retry_max_ns = span(p);
	else if (strcmp(word, "drift") == 0)
		t->drift_ppm = part(p, 1000000);
	else
		return false;
	return true;
}

static bool set_option(struct play *p, struct options *o, const char *word)
{
	if (strcmp(word, "work_timeout") == 0)
		o->work_timeout_ns = span(p);
	else if (strcmp(word, "preempt") == 0)
		o->preempt_ns = span(p);
	else if (strcmp(word, "priority") == 0)
		o->priority = rank(p);
	else if (strcmp(word, "min_score") == 0)
		o->min_score = (uint16_t)part(p, SCORE_MAX);
	else if (strcmp(word, "check_health") == 0)
		o->check_health = on(p);
	else if (strcmp(word, "step_down_unhealthy") == 0)
		o->step_down_unhealthy = on(p);
	else if (strcmp(word, "release_on_stop") == 0)
		o->release_on_stop = on(p);
	else if (strcmp(word, "observe_only") == 0)
		o->observe_only = on(p);
	else if (strcmp(word, "manual") == 0)
		o->manual = on(p);
	else
		return false;
	return true;
}

/* "candidates A B", "elections a b": as many as are named. */
static size_t count_names(struct play *p, size_t max)
{
	size_t n = 0;

	while (words_peek(&p->words) != NULL && strlen(words_peek(&p->words)) == 1) {
		(void)words_next(&p->words);
		n++;
	}
	if (n == 0 || n > max)
		(void)fail(p, "too many of them, or none");
	return n;
}

static bool set_world(struct play *p, const char *word)
{
	if (strcmp(word, "candidates") == 0)
		p->w->n_candidates = count_names(p, CANDIDATES_MAX);
	else if (strcmp(word, "elections") == 0)
		p->w->n_elections = count_names(p, ELECTIONS_MAX);
	else if (strcmp(word, "random") == 0)
		p->w->random = dice(p);
	else if (strcmp(word, "renewals") == 0)
		p->w->renews = words_take(&p->words, "ok");
	else
		return false;
	return true;
}

static void set(struct play *p, struct candidate *cand, const char *word)
{
	size_t at = p->words.at;

	if (strcmp(word, "own_lease") == 0) {
		cand->own = on(p);
		return;
	}
	if (strcmp(word, "audience") == 0) {
		if (!hall_set(cand, words_next(&p->words)))
			(void)fail(p, "an audience is a handler, pulls, by_hand or nobody");
		return;
	}
	if (set_timing(p, &cand->timing, word))
		return;
	for (size_t i = 0; i < ELECTIONS_MAX; i++) {
		if (p->whom.one_election && p->w->n_elections > 1 && p->whom.i != i)
			continue;
		p->words.at = at;
		if (!set_option(p, &cand->seats[i].options, word))
			(void)fail(p, "there is no such setting");
	}
}

bool play_setting(struct world *w, const char *line, const char **error)
{
	struct play p;
	bool ok = begin(&p, w, line);

	for (const char *word; ok && p.error == NULL && (word = words_next(&p.words)) != NULL;) {
		size_t at = p.words.at;

		if (set_world(&p, word))
			continue;
		for (size_t c = 0; c < CANDIDATES_MAX; c++) {
			if (!p.whom.all_candidates && w->n_candidates > 1 && p.whom.c != c)
				continue;
			p.words.at = at;
			set(&p, &w->candidates[c], word);
		}
	}
	return end(&p, error);
}

/* ---- what the store says ---- */

static bool view_order(struct play *p, struct view *v, const char *word)
{
	if (strcmp(word, "order") == 0) {
		v->order = words_take(&p->words, "transfer") ? ORDER_TRANSFER : ORDER_RESIGN;
		if (v->order == ORDER_RESIGN && !words_take(&p->words, "resign"))
			(void)fail(p, "an order is to resign or to transfer");
		v->target_ok = true;
	} else if (strcmp(word, "id") == 0) {
		v->order_id = number(p);
	} else if (strcmp(word, "for") == 0) {
		v->order_term = number(p);
	} else if (strcmp(word, "to") == 0) {
		v->order_target = candidate(p);
	} else if (strcmp(word, "unwell") == 0) {
		v->target_ok = false;
	} else if (strcmp(word, "quiet") == 0) {
		v->order_quiet_ns = span(p);
	} else {
		return false;
	}
	return true;
}

static bool view_word(struct play *p, struct view *v, const char *word)
{
	if (strcmp(word, "held") == 0)
		v->held = true;
	else if (strcmp(word, "free") == 0 || strcmp(word, "reserved") == 0)
		v->held = false;
	else if (strcmp(word, "by") == 0)
		v->leader = candidate(p);
	else if (strcmp(word, "term") == 0)
		v->term = number(p);
	else if (strcmp(word, "nonce") == 0)
		v->nonce = number(p);
	else if (strcmp(word, "free_in") == 0)
		v->free_in_ns = span(p);
	else if (strcmp(word, "priority") == 0)
		v->priority = rank(p);
	else if (strcmp(word, "score") == 0)
		v->score = (uint16_t)part(p, SCORE_MAX);
	else if (strcmp(word, "crowd") == 0)
		v->crowd = (uint16_t)number(p);
	else if (strcmp(word, "watched") == 0)
		v->watched = true;
	else if (strcmp(word, "paused") == 0)
		v->paused = true;
	else if (strcmp(word, "mine") == 0)
		v->mine = true;
	else
		return view_order(p, v, word);
	return true;
}

/* What may stand behind any event. */
static bool any_word(struct play *p, const char *word)
{
	if (strcmp(word, "random") == 0) {
		p->ev.random = dice(p);
	} else if (strcmp(word, "call") == 0) {
		p->ev.call = number(p);
		p->has_call = true;
	} else {
		return false;
	}
	return true;
}

static void take_view(struct play *p)
{
	struct view *v = &p->ev.view;

	v->free_in_ns = NEVER;
	for (const char *word; (word = words_next(&p->words)) != NULL;)
		if (!any_word(p, word) && !view_word(p, v, word))
			(void)fail(p, "there is no such word about an election");
	if (v->mine)
		v->leader = (uint32_t)p->whom.c + 1;
}

/* ---- answers ---- */

/* Duty 2: an answer belongs to a call, and is its only one. */
static bool answer(struct play *p, struct pending *slot, uint8_t kind)
{
	uint64_t thawed_ns = p->w->candidates[p->whom.c].thawed_ns;

	if (p->has_call) /* the line knows better: a copy, or an answer from the past */
		return true;
	if (slot->kind != kind)
		return fail(p, "no such call is under way");
	if (p->w->now_ns > max_ns(slot->limit_ns, thawed_ns) + ANSWER_SLACK_NS)
		return fail(p, "the answer to a call can't come so long after its limit");
	p->ev.call = slot->call;
	*slot = (struct pending){0};
	return true;
}

static bool take_outcome(struct play *p)
{
	const char *word = words_peek(&p->words);
	int outcome = word == NULL ? -1 : text_find(text_outcome, word);

	if (outcome <= 0)
		return false;
	(void)words_next(&p->words);
	p->ev.outcome = (uint8_t)outcome;
	return true;
}

static void take_rest(struct play *p)
{
	for (const char *word; (word = words_next(&p->words)) != NULL;)
		if (!any_word(p, word))
			(void)fail(p, "one word too many");
}

static bool lease_answer(struct play *p, uint8_t kind, uint8_t action)
{
	struct world *w = p->w;
	struct candidate *cand = &w->candidates[p->whom.c];
	struct lease *l = world_lease(w, p->whom.c, p->whom.i);

	p->ev.kind = kind;
	if (!take_outcome(p))
		return fail(p, "how did it end?");
	/* Unless told otherwise, the store counts what we count. */
	p->ev.n_held = kind == EV_RENEWED && p->ev.outcome == OUTCOME_OK ? l->n_sure : 0;
	if (words_take(&p->words, "held"))
		p->ev.n_held = (uint32_t)number(p);
	take_rest(p);
	if (p->error != NULL || !answer(p, &cand->lease_calls[l - cand->leases], action))
		return false;
	world_tell_lease(w, p->whom.c, p->whom.i, &p->ev);
	return true;
}

/* "none", or "term 3 nonce 1", or for several elections "a term 3 nonce 1, b term 5 nonce 2" */
static void take_claims(struct play *p)
{
	size_t i = 0;

	if (take_outcome(p))
		return;
	p->ev.outcome = OUTCOME_OK;
	for (const char *word; (word = words_next(&p->words)) != NULL;) {
		struct view *v = &p->claims[i];

		if (strlen(word) == 1 && word[0] >= 'a' && word[0] < 'a' + (int)ELECTIONS_MAX)
			i = (size_t)(word[0] - 'a');
		else if (strcmp(word, "term") == 0)
			v->held = v->mine = (v->term = number(p)) != 0;
		else if (strcmp(word, "nonce") == 0)
			v->nonce = number(p);
		else if (strcmp(word, "none") != 0 && !any_word(p, word))
			(void)fail(p, "there is no such word about claims");
	}
}

/* Duty 4: first the lease hears of it, then every election on it. */
static bool claims(struct play *p)
{
	struct world *w = p->w;
	size_t c = p->whom.c;
	struct candidate *cand = &w->candidates[c];
	struct lease *l = world_lease(w, c, p->whom.i);

	p->ev.kind = EV_CLAIMS;
	take_claims(p);
	take_rest(p);
	if (p->error != NULL || !answer(p, &cand->claims_calls[l - cand->leases], ACT_CLAIMS))
		return false;
	world_tell_lease(w, c, p->whom.i, &p->ev);
	p->ev.kind = EV_CLAIM;
	for (size_t i = 0; p->ev.outcome == OUTCOME_OK && i < w->n_elections; i++) {
		if (world_lease(w, c, i) != l)
			continue;
		p->ev.view = p->claims[i];
		p->ev.view.leader = p->ev.view.held ? (uint32_t)c + 1 : NOBODY;
		world_tell(w, c, i, &p->ev);
	}
	return true;
}

/* "won term 4", "held by B term 3", "refused reserved term 3 free_in 2s", "campaigned unknown" */
static void take_campaigned(struct play *p, const char *word)
{
	struct view *v = &p->ev.view;

	p->ev.kind = EV_CAMPAIGNED;
	if (strcmp(word, "campaigned") == 0) {
		if (!take_outcome(p) || p->ev.outcome < OUTCOME_FAILED)
			(void)fail(p, "a campaign that ended is won, held, failed or unknown");
		take_rest(p);
		return;
	}
	p->ev.outcome = OUTCOME_REFUSED;
	v->held = strcmp(word, "held") == 0;
	if (strcmp(word, "won") == 0) {
		p->ev.outcome = OUTCOME_OK;
		v->held = v->mine = true;
	}
	take_view(p);
}

static bool election_answer(struct play *p, const char *word)
{
	struct seat *seat = &p->w->candidates[p->whom.c].seats[p->whom.i];
	uint8_t action = ACT_CAMPAIGN;

	if (strcmp(word, "observed") == 0) {
		p->ev.kind = EV_OBSERVED;
		action = ACT_OBSERVE;
		if (!take_outcome(p)) {
			p->ev.outcome = OUTCOME_OK;
			take_view(p);
		}
	} else if (strcmp(word, "released") == 0 || strcmp(word, "ordered") == 0) {
		p->ev.kind = *word == 'r' ? EV_RELEASED : EV_ORDERED;
		action = *word == 'r' ? ACT_RELEASE : ACT_ORDER;
		if (!take_outcome(p))
			return fail(p, "how did it end?");
	} else {
		take_campaigned(p, word);
	}
	take_rest(p);
	if (!p->whom.one_election)
		return fail(p, "which election's call was answered?");
	if (p->error != NULL || !answer(p, &seat->call, action))
		return false;
	world_tell(p->w, p->whom.c, p->whom.i, &p->ev);
	return true;
}

/* ---- what the application says ---- */

static bool take_application(struct play *p, const char *word)
{
	int kind = text_find(text_event_kind, word);

	if (kind != EV_HINT && (kind < EV_START || kind > EV_DRAINED) && kind != EV_TIMER)
		return fail(p, "there is no such event");
	p->ev.kind = (uint8_t)kind;
	if (kind == EV_HEALTH)
		p->ev.score = (uint16_t)part(p, SCORE_MAX);
	if (kind == EV_RESIGN && words_take(&p->words, "quiet"))
		p->ev.quiet_ns = span(p);
	if (kind == EV_TRANSFER) {
		if (!words_take(&p->words, "to"))
			return fail(p, "to whom?");
		p->ev.target = candidate(p);
		p->ev.target_ok = !words_take(&p->words, "unwell");
	}
	take_rest(p);
	return p->error == NULL;
}

static bool application(struct play *p, const char *word)
{
	bool reconnected = strcmp(word, "reconnected") == 0;

	if (reconnected)
		p->ev.kind = EV_HINT;
	else if (!take_application(p, word))
		return false;
	if (reconnected)
		world_tell_lease(p->w, p->whom.c, 0, &p->ev);
	for (size_t i = 0; i < p->w->n_elections; i++)
		if (!p->whom.one_election || i == p->whom.i)
			world_tell(p->w, p->whom.c, i, &p->ev);
	return true;
}

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list != NULL && strcmp(*list, word) != 0)
		list++;
	return *list != NULL;
}

static bool event(struct play *p)
{
	static const char *const of_election[] = {"won",      "held",     "refused", "campaigned",
						  "observed", "released", "ordered", NULL};
	const char *word = words_next(&p->words);

	if (word == NULL)
		return fail(p, "what happens?");
	if (strcmp(word, "opened") == 0)
		return lease_answer(p, EV_OPENED, ACT_OPEN);
	if (strcmp(word, "renewed") == 0)
		return lease_answer(p, EV_RENEWED, ACT_RENEW);
	if (strcmp(word, "closed") == 0)
		return lease_answer(p, EV_CLOSED, ACT_CLOSE);
	if (strcmp(word, "claims") == 0)
		return claims(p);
	if (is_one_of(word, of_election))
		return election_answer(p, word);
	if (p->w->candidates[p->whom.c].hall != 0 &&
	    hall_word(p->w, p->whom.c, p->whom.i, word,
		      words_take(&p->words, "term") ? number(p) : 0))
		return true;
	return application(p, word);
}

/* "made anew": the application has freed the election, and made another one of the same name. */
static bool make_anew(struct play *p)
{
	if (!p->whom.one_election || !words_take(&p->words, "anew"))
		return fail(p, "which election is made anew?");
	if (!world_make_anew(p->w, p->whom.c, p->whom.i))
		return fail(p, "an election is stopped before it is freed");
	return true;
}

static bool play(struct play *p)
{
	struct candidate *cand = &p->w->candidates[p->whom.c];

	if (p->whom.all_candidates)
		return fail(p, "which candidate?");
	if (words_take(&p->words, "freezes")) {
		cand->frozen = true;
		return true;
	}
	if (words_take(&p->words, "thaws")) {
		cand->frozen = false;
		cand->thawed_ns = p->w->now_ns;
		if (!words_take(&p->words, "then"))
			return true;
	}
	if (cand->frozen)
		return fail(p, "who is frozen hears nothing");
	return words_take(&p->words, "made") ? make_anew(p) : event(p);
}

bool play_event(struct world *w, const char *line, const char **error)
{
	struct play p;

	if (begin(&p, w, line) && play(&p))
		world_settle(w);
	return end(&p, error);
}

/* ---- given ---- */

static bool lead_in(struct world *w, const struct play *p, const char *what, const char **error)
{
	for (size_t i = 0; i < w->n_elections; i++) {
		char line[LINE_MAX_CHARS];

		(void)snprintf(line, sizeof(line), "%c.%c: %s", (char)('A' + p->whom.c),
			       (char)('a' + i), what);
		if (!play_event(w, line, error))
			return false;
	}
	return true;
}

/* "given leader term 4", "given standby of B term 4": what leads there happens at 0s, untold. */
bool play_given(struct world *w, const char *line, const char **error)
{
	struct play p;
	char what[80];
	char who[16];

	if (!begin(&p, w, line))
		return end(&p, error);
	bool leader = words_take(&p.words, "leader");

	if (!leader && !(words_take(&p.words, "standby") && words_take(&p.words, "of")))
		(void)fail(&p, "given a leader, or the standby of somebody");
	text_candidate(leader ? NOBODY : candidate(&p), who, sizeof(who));
	uint64_t term = words_take(&p.words, "term") ? number(&p) : 1;

	(void)snprintf(what, sizeof(what),
		       leader ? "won term %llu watched%s" : "held term %llu watched by %s",
		       (unsigned long long)term, leader ? "" : who);
	if (!end(&p, error) || !lead_in(w, &p, "start", error))
		return false;
	if (w->candidates[p.whom.c].lease_calls[0].kind == ACT_OPEN) {
		(void)snprintf(who, sizeof(who), "%c: opened ok", (char)('A' + p.whom.c));
		if (!play_event(w, who, error))
			return false;
	}
	return lead_in(w, &p, what, error);
}

/* ---- now ---- */

static void say_time(uint64_t at_ns, char *buf, size_t size)
{
	if (at_ns != NEVER && at_ns <= STORY_BEGIN_NS)
		(void)snprintf(buf, size, "at once");
	else
		text_span(at_ns == NEVER ? NEVER : at_ns - STORY_BEGIN_NS, buf, size);
}

/* The one after "at", else now; and "at" is said again in the answer. */
static uint64_t take_moment(struct play *p, char *said, size_t size)
{
	uint64_t at_ns = p->w->now_ns;

	*said = '\0';
	if (words_take(&p->words, "at")) {
		char text[32];

		at_ns = STORY_BEGIN_NS + span(p);
		say_time(at_ns, text, sizeof(text));
		(void)snprintf(said, size, " at %s", text);
	}
	return at_ns;
}

static void answer_times(struct play *p, const char *key, char *buf, size_t size)
{
	const struct lease *l = world_lease(p->w, p->whom.c, p->whom.i);

	if (strcmp(key, "wake") == 0)
		say_time(world_wake_of_ns(p->w, p->whom.c), buf, size);
	else if (strcmp(key, "deadline") == 0)
		say_time(l->deadline_ns, buf, size);
	else if (strcmp(key, "sent") == 0)
		say_time(l->sent_ns, buf, size);
	else if (strcmp(key, "end") == 0)
		say_time(l->end_ns, buf, size);
	else
		(void)fail(p, "there is no such question");
	if (!words_take(&p->words, "at") || !words_take(&p->words, "once"))
		(void)words_next(&p->words);
}

static void answer_one(struct play *p, const char *key, char *buf, size_t size)
{
	struct lease *l = world_lease(p->w, p->whom.c, p->whom.i);
	const struct election *e = &p->w->candidates[p->whom.c].seats[p->whom.i].election;

	if (strcmp(key, "leads") == 0) {
		char moment[40];

		(void)words_next(&p->words);
		bool leads = election_leads(e, l, take_moment(p, moment, sizeof(moment)));

		(void)snprintf(buf, size, "%s%s", leads ? "yes" : "no", moment);
		return;
	}
	if (strcmp(key, "state") == 0)
		(void)snprintf(buf, size, "%s", text_election_state(e->state));
	else if (strcmp(key, "lease") == 0)
		(void)snprintf(buf, size, "%s", text_lease_state(l->state));
	else if (strcmp(key, "term") == 0)
		(void)snprintf(buf, size, "%llu", (unsigned long long)e->term);
	else if (strcmp(key, "floor") == 0)
		(void)snprintf(buf, size, "%llu", (unsigned long long)e->floor);
	else if (strcmp(key, "leader") == 0)
		text_candidate(e->leader, buf, size);
	else {
		answer_times(p, key, buf, size);
		return;
	}
	(void)words_next(&p->words);
}

bool play_question(struct world *w, const char *line, char *answer_line, size_t size,
		   const char **error)
{
	struct play p = {.w = w};
	size_t n = (size_t)snprintf(answer_line, size, "now");
	const char *first = words_cut(&p.words, line) ? words_peek(&p.words) : NULL;

	if (first != NULL && first[strlen(first) - 1] == ':')
		n += (size_t)snprintf(answer_line + n, size - n, " %s", first);
	if (!begin(&p, w, line))
		return end(&p, error);
	if (p.whom.all_candidates || !p.whom.one_election)
		(void)fail(&p, "which candidate, which election?");
	const char *comma = "";

	for (const char *key; p.error == NULL && (key = words_next(&p.words)) != NULL;) {
		char value[64] = "";

		answer_one(&p, key, value, sizeof(value));
		n += (size_t)snprintf(answer_line + n, size - n, "%s %s %s", comma, key, value);
		comma = ",";
	}
	return end(&p, error);
}
