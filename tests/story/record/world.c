/*
 * world.c: records that can be compared and set, and what becomes of a write. See world.h.
 */
#include <stdio.h>
#include <string.h>

#include "story.h"

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->now_ns = STORY_BEGIN_NS;
	w->ttl_ns = 10 * NS_PER_S;
	strcpy(w->election.value.name, "e");
	w->old = w->election;
}

void world_begin(struct world *w)
{
	w->weak_since_ns = w->now_ns;
}

void world_done(struct world *w)
{
	lines_done(&w->trace);
}

/* Nothing happens by itself. */
void world_settle(struct world *w)
{
	(void)w;
}

uint64_t world_wake_ns(const struct world *w)
{
	(void)w;
	return NEVER;
}

const char *lease_name(size_t c, size_t i, char out[4])
{
	out[0] = (char)('A' + c);
	out[1] = (char)('1' + i);
	out[2] = '\0';
	return out;
}

void lease_find(const char *id, size_t *c, size_t *i)
{
	*c = (size_t)(id[0] - 'a');
	*i = (size_t)(id[2] - '1');
}

struct baton_lease lease_of(const struct world *w, size_t c)
{
	static const char *const owners[] = {"A", "B", "C"};
	struct baton_lease l = {.ttl_ns = w->ttl_ns, .owner = owners[c], .address = ""};

	l.id[0] = (char)('a' + c);
	l.id[1] = '-';
	l.id[2] = (char)('0' + w->candidates[c].n_leases);
	return l;
}

struct record_version version_of(uint64_t number)
{
	return (struct record_version){.n = number != 0, .bytes = {(uint8_t)number}};
}

uint64_t number_of(const struct record_version *v)
{
	return v->n != 0 ? v->bytes[0] : 0;
}

static uint64_t *version_at(struct world *w, const struct write *p)
{
	if (p->owner == CANDIDATES_MAX)
		return &w->election.version;
	return &w->leases[p->owner][p->lease].version;
}

static bool land(struct world *w, const struct write *p)
{
	uint64_t *version = version_at(w, p);

	if (*version != p->expected)
		return false;
	*version = ++w->versions;
	if (p->owner == CANDIDATES_MAX) {
		/* S3, R9, in every story. */
		if (p->e.term < w->election.value.term) {
			lines_add(&w->trace, "!! the term falls (S3)");
			w->broken = true;
		}
		w->election.value = p->e;
	} else {
		w->leases[p->owner][p->lease].value = p->l;
	}
	return true;
}

int world_write(struct world *w, const struct write *p)
{
	char kind = p->owner == CANDIDATES_MAX ? 'e' : 'l';
	enum fate fate = w->fated == 0 || w->fated == kind ? w->fate : FATE_NONE;

	if (fate != FATE_NONE)
		w->fate = FATE_NONE;
	switch (fate) {
	case FATE_LOST: return BATON_OUTCOME_UNKNOWN;
	case FATE_FAILED: return BATON_OUTCOME_FAILED;
	case FATE_LATE:
		w->late = *p;
		w->late.is_there = true;
		return BATON_OUTCOME_UNKNOWN;
	case FATE_UNANSWERED: (void)land(w, p); return BATON_OUTCOME_UNKNOWN;
	case FATE_COPIED: (void)land(w, p); return BATON_OUTCOME_REFUSED;
	default: return land(w, p) ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	}
}

void world_land_late(struct world *w)
{
	bool is_done = w->late.is_there && land(w, &w->late);

	lines_add(&w->trace, is_done ? "it is written" : "it never is: another version is there");
	w->late.is_there = false;
}
