/*
 * unreleased.c: claims that ended without a release.
 *
 * etcd breaks A2: a member that led the cluster, was frozen, and thaws, ends the leases that it
 * thinks are over before it learns that others lead, and renew them (etcd issue 15247, seen up to
 * 3.6.16). The claims on such a lease are gone, and pushed as gone, while their holder has every
 * right to go on until it hears of that. So a missing claim doesn't prove that its holder is gone.
 *
 * A claim brings a note with it, and its release takes the note away, each in one transaction. A
 * candidate that finds a note without its claim waits a whole lease of that holder's before it
 * follows, counted from when it was seen (rule 1): no renewal was confirmed after the claim had
 * gone, so the holder has then given up by its own clock. Two candidates' clocks are compared
 * here, each of which may be slewed: the wait is longer by MORE, which with the holder's own
 * margin makes 20 %.
 *
 * Nobody waits if no stale leader can know the lease: if the cluster's raft term is still the one
 * in which it was granted. The note says which that was, by an answer that was heard before the
 * grant was asked for: the answer to the grant may have been written after the next election. What
 * we compare it with is not older than the end of the claim: each raft term begins with an entry of
 * its own, so whoever shows us that end has heard of the term that it happened in.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* A tenth of it. */
#define MORE 10
/* A note that can't be read says nothing of a lease: this is longer than most. */
#define UNKNOWN_MS 60000
/* Nor does a damaged one keep an election for ever. */
#define MOST_MS (24 * 3600 * UINT64_C(1000))

void etcd_put_unreleased(struct bytes *b, struct etcd_store *s, const char *name,
			 const struct baton_lease *lease)
{
	struct etcd_key unreleased = etcd_state_key(s, name, ETCD_UNRELEASED);
	char words[64];

	(void)snprintf(words, sizeof(words), "%" PRIu64 " %" PRIu64,
		       etcd_lease_raft_term(s, lease->id),
		       (lease->ttl_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS);
	etcd_put(b, ETCD_THEN, &unreleased, words, 0);
}

/* "raft-term lease-in-ms" */
static uint64_t unreleased_read_value(const char *value, uint64_t *raft_term)
{
	char *end;

	*raft_term = strtoull(value, &end, 10);
	uint64_t ms = *end == ' ' ? strtoull(end + 1, &end, 10) : 0;

	if (ms == 0 || *end != '\0') {
		*raft_term = 0;
		return UNKNOWN_MS;
	}
	return ms < MOST_MS ? ms : MOST_MS;
}

void etcd_read_unreleased(const struct etcd_lane *lane, const char *value, uint64_t mod,
			  uint64_t claim, struct etcd_known *k, struct baton_record *out)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t raft_term;

	if (mod == 0 || mod == claim) { /* its claim stands: it was written with it */
		k->unreleased_mod = 0;
		k->unreleased_until_ns = 0;
		return;
	}
	if (mod != k->unreleased_mod) {
		uint64_t wait_ns = unreleased_read_value(value, &raft_term) * CLOCK_NS_PER_MS;
		bool is_same = raft_term != 0 && raft_term == lane->raft_term;

		k->unreleased_mod = mod;
		k->unreleased_until_ns = is_same ? 0 : now_ns + wait_ns + wait_ns / MORE;
	}
	if (out->held || now_ns >= k->unreleased_until_ns)
		return;
	uint64_t left_ns = k->unreleased_until_ns - now_ns;

	if (!out->reserved || out->free_in_ns < left_ns)
		out->free_in_ns = left_ns;
	out->reserved = true;
}
