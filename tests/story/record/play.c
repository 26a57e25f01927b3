/*
 * play.c: one line of a story about a record store: from words to calls. See world.h.
 */
#include <stdio.h>
#include <string.h>

#include "story.h"

static bool take_span(struct words *words, uint64_t *ns)
{
	const char *word = words_next(words);

	return word != NULL && parse_span(word, ns);
}

static bool take_number(struct words *words, uint64_t *number)
{
	const char *word = words_next(words);

	return word != NULL && parse_number(word, number);
}

bool play_setting(struct world *w, const char *line, const char **error)
{
	struct words words;
	uint64_t number = 0;

	*error = "a setting is ttl, conflicts tell, locks, or forgets and its clock";
	if (!words_cut(&words, line))
		return false;
	while (words_peek(&words) != NULL) {
		if (words_take(&words, "ttl")) {
			if (!take_span(&words, &w->ttl_ns))
				return false;
		} else if (words_take(&words, "conflicts")) {
			if (!words_take(&words, "tell"))
				return false;
			w->told = 1;
		} else if (words_take(&words, "locks")) {
			w->has_locks = true;
		} else if (words_take(&words, "forgets")) {
			if (!take_number(&words, &number))
				return false;
			w->is_weak = true;
			w->weak.server_ms = number;
			w->weak.max_lease_ns = w->ttl_ns;
		} else {
			return false;
		}
	}
	*error = NULL;
	return true;
}

/* "A leads": a lease, and a claim on it. */
bool play_given(struct world *w, const char *line, const char **error)
{
	if (strlen(line) < 2 || strcmp(line + 1, " leads") != 0 || line[0] < 'A' || line[0] > 'C') {
		*error = "given is \"A leads\"";
		return false;
	}
	task_open(w, (size_t)(line[0] - 'A'));
	task_campaign(w, (size_t)(line[0] - 'A'), 0);
	return true;
}

/* What becomes of which write; at the end of a line. */
static bool take_fate(struct world *w, struct words *words, const char **error)
{
	static const char *const fates[] = {"",     "lost",  "unanswered", "copied",
					    "late", "fails", "old"};
	static const char *const whats[][2] = {
		{"claim", "e"},     {"write", "e"}, {"renewal", "l"}, {"opening", "l"},
		{"tombstone", "l"}, {"read", "r"},  {"look", "s"},    {"lock", "k"}};

	w->fate = FATE_NONE;
	w->reads_old = words_take(words, "old");
	if (words_peek(words) == NULL)
		return true;
	(void)words_take(words, "its");
	const char *what = words_next(words);

	(void)words_take(words, "is");
	const char *how = words_next(words);

	w->fated = 0;
	for (size_t i = 0; what != NULL && i < sizeof(whats) / sizeof(whats[0]); i++)
		if (strcmp(what, whats[i][0]) == 0)
			w->fated = whats[i][1][0];
	for (size_t i = 1; how != NULL && i < sizeof(fates) / sizeof(fates[0]); i++)
		if (strcmp(how, fates[i]) == 0)
			w->fate = (enum fate)i;
	*error = "a write is lost, unanswered, copied or late, or fails; a look is old";
	return w->fated != 0 && w->fate != FATE_NONE && words_peek(words) == NULL;
}

static bool play_people(struct world *w, struct words *words, const char **error)
{
	uint64_t term;
	size_t c, i;

	*error = "this can't happen here";
	if (words_take(words, "order")) {
		if (!take_number(words, &term) || !take_fate(w, words, error))
			return false;
		task_order(w, term);
	} else if (words_take(words, "pause")) {
		if (!take_fate(w, words, error))
			return false;
		task_pause(w, true);
	} else if (words_take(words, "resume")) {
		task_pause(w, false);
	} else if (words_take(words, "landed")) {
		world_land_late(w);
	} else if (words_take(words, "foreign")) {
		w->foreign = words_take(words, "takes");
	} else if (words_take(words, "copy")) {
		w->old = w->election;
	} else if (words_take(words, "deleted")) {
		const char *name = words_next(words);

		if (name == NULL || strlen(name) != 2)
			return false;
		c = (size_t)(name[0] - 'A');
		i = (size_t)(name[1] - '1');
		if (c >= CANDIDATES_MAX || i >= LEASES_MAX)
			return false;
		w->leases[c][i].version = 0;
	} else if (words_take(words, "forgotten")) {
		w->election = (struct election_record){.value = {.name = "e"}};
		memset(w->leases, 0, sizeof(w->leases));
		w->weak_since_ns = w->now_ns;
	} else {
		return false;
	}
	return true;
}

static bool play_release(struct world *w, size_t c, struct words *words, const char **error)
{
	const char *target = NULL;
	uint64_t hold_ns = 0;

	if (words_take(words, "for")) {
		target = words_next(words);
		*error = "a release is for somebody, for a while";
		if (target == NULL || !take_span(words, &hold_ns))
			return false;
	}
	if (!take_fate(w, words, error))
		return false;
	task_release(w, c, target, hold_ns);
	return true;
}

static bool play_show(struct world *w, size_t c, struct words *words, const char **error)
{
	uint64_t score;

	*error = "what is shown is a score";
	if (!take_number(words, &score) || !take_fate(w, words, error))
		return false;
	task_show(w, c, (uint32_t)score);
	return true;
}

static bool play_line(struct world *w, const char *line, const char **error)
{
	struct words words;
	uint64_t floor = 0;

	*error = "this is too long";
	if (!words_cut(&words, line))
		return false;
	const char *who = words_peek(&words);

	if (who == NULL || who[0] < 'A' || who[0] > 'C' || who[1] != '\0')
		return play_people(w, &words, error);
	size_t c = (size_t)(words_next(&words)[0] - 'A');
	const char *verb = words_next(&words);

	*error = "nobody can do that";
	if (verb == NULL)
		return false;
	if (strcmp(verb, "releases") == 0)
		return play_release(w, c, &words, error);
	if (strcmp(verb, "shows") == 0)
		return play_show(w, c, &words, error);
	if (words_take(&words, "floor") && !take_number(&words, &floor))
		return false;
	if (!take_fate(w, &words, error))
		return false;
	if (strcmp(verb, "opens") == 0)
		task_open(w, c);
	else if (strcmp(verb, "renews") == 0)
		task_keep(w, c, RECORD_RENEW);
	else if (strcmp(verb, "closes") == 0)
		task_keep(w, c, RECORD_CLOSE);
	else if (strcmp(verb, "campaigns") == 0)
		task_campaign(w, c, floor);
	else if (strcmp(verb, "settles") == 0)
		task_settle(w, c);
	else if (strcmp(verb, "sweeps") == 0)
		task_sweep(w, c);
	else if (strcmp(verb, "observes") == 0)
		task_observe(w, c);
	else
		return false;
	return true;
}

bool play_event(struct world *w, const char *line, const char **error)
{
	bool is_done = play_line(w, line, error);

	if (is_done)
		*error = NULL;
	return is_done;
}

/* Everything is told. */
bool play_question(struct world *w, const char *line, char *answer_line, size_t size,
		   const char **error)
{
	(void)w;
	(void)line;
	(void)answer_line;
	(void)size;
	*error = "stories of record stores have no questions";
	return false;
}
