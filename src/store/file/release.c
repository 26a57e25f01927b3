/*
 * release.c: gives a claim back. The claim's owner, and no other process, makes the file <seq>.end.
 * The claim stays where it is: it is the history.
 *
 * What it must never do: end a claim that is not the caller's (S6).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

/* Adds the note of the order that this release obeys. If the note can't be read, the release goes
 * on without it. */
static void end_note(struct file_lane *lane, int dir, const struct file_election *election,
		     const struct baton_release *r, struct file_end *end)
{
	struct baton_error kept = lane->call->error;
	struct file_order order;

	if (store_is_by_order(r->reason) &&
	    file_read_order(lane, dir, r->name, election, &order) == 0 && order.id != 0)
		(void)snprintf(end->note, sizeof(end->note), "%s", order.note);
	lane->call->error = kept;
}

/* expires_ns: when the lease expires; 0 if it was lost. A leadership lasts no longer than its
 * lease. */
static int link_end(struct file_lane *lane, int dir, const struct file_election *election,
		    const struct baton_release *r, uint64_t expires_ns)
{
	uint64_t seq = election->folder.highest;
	uint64_t now_ns = clock_boot_ns();
	struct file_end end = {
		.seq = seq,
		.timens = lane->root->timens,
		.until_ns = now_ns < expires_ns ? now_ns : expires_ns,
		.until_ms = clock_wall_ms(),
	};
	struct file_tmp tmp = {.fd = -1};
	char text[FILE_TEXT_MAX];
	char entry[32];

	(void)snprintf(end.boot, sizeof(end.boot), "%s", lane->root->boot);
	(void)snprintf(end.reason, sizeof(end.reason), "%s", r->reason != NULL ? r->reason : "");
	if (r->reserve_for != NULL && r->hold_ns > 0) {
		(void)snprintf(end.reserved_for, sizeof(end.reserved_for), "%s", r->reserve_for);
		end.reserved_until_ns =
			r->hold_ns > INT64_MAX ? (uint64_t)INT64_MAX : now_ns + r->hold_ns;
	}
	end_note(lane, dir, election, r, &end);
	size_t n = file_write_end(&end, text);

	if (n == 0) {
		store_fail(&lane->call->error, BATON_E_INVALID, "the release is malformed");
		return BATON_OUTCOME_FAILED;
	}
	/* No sync is needed: a host that crashed has no leader, and every lease of its boot is
	 * over. */
	if (file_tmp_make(lane, &tmp, text, n) != 0)
		return BATON_OUTCOME_FAILED;
	file_seq_name(seq, true, entry);
	int outcome = BATON_OUTCOME_OK;

	if (file_tmp_link(lane, &tmp, dir, entry) != 0) { /* model: RELEASE_LINK */
		outcome = errno == EEXIST ? BATON_OUTCOME_REFUSED
			  : errno == EIO  ? BATON_OUTCOME_UNKNOWN
					  : BATON_OUTCOME_FAILED;
		if (errno != EEXIST)
			file_errno(lane, "link", r->name, entry);
	}
	file_tmp_done(lane, &tmp);
	return outcome;
}

/* S6: lease, nonce and term must all be those of the present claim. */
static int release_one(struct file_lane *lane, const struct baton_release *r, uint64_t expires_ns)
{
	struct file_election election;
	char path[FILE_PATH_SIZE];
	bool missing;
	int outcome;

	if (file_in_time(lane) != 0)
		return BATON_OUTCOME_FAILED;
	file_path_of(r->name, path);
	int dir = file_open_election(lane, path, false, &missing);

	if (dir < 0)
		return missing ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
	if (file_read_claim(lane, dir, r->name, &election) != 0) /* model: RELEASE_LOOK */
		outcome = BATON_OUTCOME_FAILED;
	else if (election.folder.highest == 0 || election.folder.ended ||
		 election.claim.nonce != r->nonce || election.claim.term != r->term ||
		 strcmp(election.claim.lease, r->lease_id) != 0)
		outcome = BATON_OUTCOME_REFUSED;
	else
		outcome = link_end(lane, dir, &election, r, expires_ns);
	(void)close(dir);
	return outcome;
}

void file_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct file_lane *lane = l;
	bool entered = file_enter(lane, call, false) == 0;

	for (size_t i = 0; i < n; i++) {
		struct baton_release *r = &list[i];

		r->outcome = entered ? release_one(lane, r, file_own_expires_ns(lane, r->lease_id))
				     : BATON_OUTCOME_FAILED;
		bool over = r->outcome == BATON_OUTCOME_OK || r->outcome == BATON_OUTCOME_REFUSED;

		r->code = over ? BATON_OK : call->error.code;
		if (over)
			file_own_claim_drop(lane, r->name, r->nonce);
	}
	file_leave(lane);
}

void file_end_all(struct file_lane *lane, const char *id, uint64_t expires_ns, const char *reason)
{
	struct file_own_claim *claim;

	while (file_own_claims_copy(lane->store, id, &claim, 1) == 1) {
		struct baton_release r = {
			.name = claim->name,
			.lease_id = id,
			.nonce = claim->nonce,
			.term = claim->term,
			.reason = reason,
		};

		(void)release_one(lane, &r, expires_ns);
		file_own_claim_drop(lane, claim->name, claim->nonce);
		free(claim);
	}
}
