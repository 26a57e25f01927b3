/*
 * unreleased.c: claims that ended without a release.
 *
 * etcd breaks A2. A member that led the cluster, was frozen, and thaws, ends leases that it takes
 * for expired before it learns that another member leads and renews them (etcd issue 15247, seen up
 * to 3.6.16). The claims on such a lease are gone, and etcd pushes that, while their holder may
 * rightly go on until it hears of it. So a missing claim doesn't prove that its holder is gone.
 *
 * A claim writes a note, and its release deletes the note, each in one transaction. A candidate
 * that finds a note without its claim waits for the length of the holder's lease before it claims,
 * counted from when it has seen the note (rule 1). No renewal is confirmed after the claim is gone,
 * so the holder has then given up by its own clock. This compares two candidates' clocks, each of
 * which may be slewed. So the wait is longer by a part of 1/MORE, which together with the holder's
 * own margin makes 20 %.
 *
 * No candidate waits if no stale leader can know the lease: that is so if the cluster's raft term
 * is still the one in which the lease was granted. The note has the raft term of an answer that
 * came before the grant was asked for, because the answer to the grant itself may have been written
 * after the next election. The raft term that we compare it with is not older than the end of the
 * claim. Each raft term begins with an entry of its own, so a member that shows us that end has
 * heard of the term in which it happened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* The wait is longer by a tenth. */
#define MORE 10
/* The wait for a note that isn't valid, and so doesn't tell the lease: longer than most leases. */
#define UNKNOWN_MS 60000
/* The longest wait, so that a damaged note doesn't keep an election for ever. */
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

/* Reads "raft-term lease-in-ms". */
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

	if (mod == 0 || mod == claim) { /* none, or the note of the claim that stands */
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
