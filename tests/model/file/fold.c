/*
 * fold.c: short cuts that leave nothing out. Worlds that differ only in what nobody will ever read
 * or compare again are taken as one, and steps that nobody else can notice are taken at once
 * instead of at every possible time. `plain` searches do without; they find the same.
 */
#include <string.h>

#include "model/file/model.h"

/*
 * OPEN_LOCK makes a file under a name that only its maker knows. PRUNE_END removes the end of a
 * claim that is gone; should a straggler link that number again, it is not the highest, so its end
 * decides nothing. LOOK_ALIVE opens a file that is always there while nobody closes or sweeps.
 */
int world_private(const struct world *w, const struct bounds *b)
{
	for (int i = 0; i < PROCESSES; i++) {
		uint8_t pc = w->p[i].pc;

		if (pc == OPEN_LOCK || pc == PRUNE_END || (pc == LOOK_ALIVE && b->idle))
			return i;
	}
	return -1;
}

static bool weighs_lease(const struct process *p)
{
	return p->pc == LOOK_ALIVE || p->pc == LOOK_LOCK || p->pc == LOOK_LEASE;
}

/* An expiry that has passed for its owner has passed: which one it was doesn't matter. */
static void fold_times(struct world *w)
{
	uint8_t oldest = w->now;

	for (int i = 0; i < PROCESSES; i++) {
		struct process *p = &w->p[i];
		uint8_t expires = p->who == NOBODY ? 0 : w->leases[p->who].expires;

		if (p->expires <= w->now || p->lost)
			p->expires = 0;
		if (!weighs_lease(p) || p->sweeps)
			continue;
		/* Expiries only grow: who read an earlier time than this one finds it alive. */
		if (p->time < expires)
			p->time = 1;
		if (p->time < oldest)
			oldest = p->time;
	}
	for (int l = 0; l < LEASES; l++)
		if (w->leases[l].expires != 0 && w->leases[l].expires <= oldest)
			w->leases[l].expires = 1;
}

static uint8_t mirrored(uint8_t lease)
{
	const uint8_t last = 2 * LIVES_MAX;

	if (lease == NOBODY || (lease >= LIVES_MAX && lease < last))
		return lease;
	return (uint8_t)(lease < LIVES_MAX ? lease + last : lease - last);
}

/* Processes 0 and 2 are alike. */
static void fold_mirror(struct world *w)
{
	struct world m = *w;

	m.p[0] = w->p[2];
	m.p[2] = w->p[0];
	m.campaigns[0] = w->campaigns[2];
	m.campaigns[2] = w->campaigns[0];
	m.renewals =
		(uint8_t)((w->renewals & 0xc) | (w->renewals >> 4 & 3) | (w->renewals & 3) << 4);
	memcpy(&m.leases[0], &w->leases[2 * LIVES_MAX], LIVES_MAX * sizeof(w->leases[0]));
	memcpy(&m.leases[2 * LIVES_MAX], &w->leases[0], LIVES_MAX * sizeof(w->leases[0]));
	for (int i = 0; i < PROCESSES; i++)
		m.p[i].who = mirrored(m.p[i].who);
	for (int seq = 1; seq <= SEQ_MAX; seq++)
		if (m.claims[seq].there)
			m.claims[seq].lease = mirrored(m.claims[seq].lease) & 15u;
	if (memcmp(&m, w, sizeof(m)) < 0)
		*w = m;
}

void world_fold(struct world *w)
{
	fold_times(w);
	fold_mirror(w);
}
