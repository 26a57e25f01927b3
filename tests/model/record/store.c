/*
 * store.c: records that can be compared and set. A write is carried out if the record has the
 * version that it expects, at whatever time it lands.
 */
#include <string.h>

#include "model/record/model.h"

/* A version that this record has never had, as far as anybody remembers. */
static uint8_t fresh_version(uint8_t **refs, int n)
{
	for (uint8_t id = 1; id < FRESH; id++) {
		bool is_used = false;

		for (int i = 0; i < n && !is_used; i++)
			is_used = *refs[i] == id;
		if (!is_used)
			return id;
	}
	rule_break(RULE_MODEL);
	return 1;
}

static bool put_lease(struct world *w, const struct put *p)
{
	struct lrec *l = &w->store.leases[p->slot];
	uint8_t *refs[REFS_MAX];

	if (l->w != p->expected)
		return false;
	rules_lease(w, p);
	uint8_t id = p->l.w;

	if (id == FRESH)
		id = fresh_version(refs, refs_lease(w, p->slot, refs));
	*l = (struct lrec){.w = id, .dead = p->l.dead};
	return true;
}

static bool put_election(struct world *w, const struct put *p)
{
	struct erec *e = &w->store.elections[p->slot];
	uint8_t *refs[REFS_MAX];

	if (e->w != p->expected)
		return false;
	rules_election(w, p);
	uint8_t id = p->e.w;

	if (id == FRESH)
		id = fresh_version(refs, refs_election(w, p->slot, refs));
	if (p->e.reserved != 0 && p->act == ACT_RELEASE)
		w->hold_age[p->slot] = 0;
	if (setup->evicts && p->act == ACT_CLAIM)
		w->led[p->slot] = p->e.term;
	*e = p->e;
	e->w = id;
	return true;
}

bool store_put(struct world *w, const struct put *p)
{
	return p->act >= ACT_CLAIM ? put_election(w, p) : put_lease(w, p);
}

uint8_t store_version(const struct world *w, const struct put *p)
{
	if (p->act >= ACT_CLAIM)
		return w->store.elections[p->slot].w;
	return w->store.leases[p->slot].w;
}

void store_restart(struct world *w)
{
	memset(&w->store, 0, sizeof(w->store));
	w->uptime = 0;
}
