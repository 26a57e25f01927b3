/*
 * campaign.c: one link(2) decides which candidate leads.
 *
 * The claims of an election are files with consecutive numbers; the highest is the present one. To
 * become leader, a candidate looks at the folder, and makes sure that the present claim is over: it
 * has its end, or its owner can no longer count on its lease (expiry.c). The candidate then writes
 * a claim with a higher term, and links it to the next number. Of all candidates that try, the
 * kernel lets one succeed. That one must then
 *
 *  - look again: a candidate that stalled before its link may have won a number that was pruned
 *    long ago. That is not a leadership, and gets its end at once (model variant "no look after the
 *    claim");
 *  - sync the folder, because the term must survive (S3);
 *  - read the clock last: a claim on a lease that has expired is not a leadership (S5).
 *
 * The term stands inside the file and not in its name: else candidates with different floors would
 * link different names, and both would win. A claim is never removed while it is the highest. To
 * give a claim back, its owner, and no other process, makes the file <seq>.end. Old claims are the
 * history. They are pruned after the folder was synced, so that the highest term is never lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define CHUNK 16 /* campaigns that share their waits for the disk */
#define PRUNE_MAX 64

enum attempt_state { ATTEMPT_DONE, ATTEMPT_WRITTEN, ATTEMPT_LINKED };

struct attempt {
	struct baton_campaign *c;
	const struct baton_lease *lease;
	struct file_folder folder;
	struct file_tmp tmp;
	uint64_t seq;
	int dir;
	int before; /* BATON_END_...: how the claim before it has ended */
	enum attempt_state state;
};

static void campaign_chunk(struct file_lane *lane, const struct baton_lease *lease,
			   struct baton_campaign *list, size_t n);
static void attempt_prepare(struct file_lane *lane, struct attempt *a, bool many);
static int attempt_write(struct file_lane *lane, struct attempt *a,
			 const struct file_election *election);
static void attempt_link(struct file_lane *lane, struct attempt *a);
static void attempt_check_highest(struct file_lane *lane, struct attempt *a);
static void attempt_settle(struct file_lane *lane, struct attempt *a);
static void attempt_tidy(struct file_lane *lane, struct attempt *a);

void file_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n)
{
	struct file_lane *lane = l;
	bool entered = file_enter(lane, call, true) == 0;

	for (size_t i = 0; i < n; i += CHUNK) {
		size_t many = n - i < CHUNK ? n - i : CHUNK;

		for (size_t j = i; j < i + many; j++) {
			list[j].outcome = BATON_OUTCOME_FAILED;
			list[j].code = call->error.code;
		}
		if (entered)
			campaign_chunk(lane, lease, list + i, many);
	}
	if (entered)
		file_sweep(lane);
	file_leave(lane);
}

/* Carries out each step for all campaigns before the next step, so that one write of the file
 * system's journal serves many of them. */
static void campaign_chunk(struct file_lane *lane, const struct baton_lease *lease,
			   struct baton_campaign *list, size_t n)
{
	struct attempt tries[CHUNK];

	for (size_t i = 0; i < n; i++) {
		tries[i] = (struct attempt){.c = &list[i], .lease = lease, .dir = -1};
		tries[i].tmp.fd = -1;
		attempt_prepare(lane, &tries[i], n > 1);
	}
	for (size_t i = 0; i < n; i++)
		attempt_link(lane, &tries[i]);
	for (size_t i = 0; i < n; i++)
		attempt_check_highest(lane, &tries[i]);
	for (size_t i = 0; i < n; i++)
		attempt_settle(lane, &tries[i]);
	for (size_t i = 0; i < n; i++)
		attempt_tidy(lane, &tries[i]);
}

static void attempt_fail(struct file_lane *lane, struct attempt *a, int outcome)
{
	a->state = ATTEMPT_DONE;
	a->c->outcome = outcome;
	a->c->code = lane->call->error.code;
}

/* Ends with REFUSED, and the record says why. */
static void attempt_refuse(struct file_lane *lane, struct attempt *a,
			   const struct file_election *election)
{
	if (file_fill_record(lane, a->dir, a->c->name, a->lease->owner, election, a->c->record) !=
	    0) {
		attempt_fail(lane, a, BATON_OUTCOME_FAILED);
		return;
	}
	a->state = ATTEMPT_DONE;
	a->c->outcome = BATON_OUTCOME_REFUSED;
	a->c->code = BATON_OK;
}

/* Another candidate was faster: refused after a new look. */
static void attempt_refuse_anew(struct file_lane *lane, struct attempt *a)
{
	struct file_election election;

	if (file_read_election(lane, a->dir, a->c->name, &election) != 0)
		attempt_fail(lane, a, BATON_OUTCOME_FAILED);
	else
		attempt_refuse(lane, a, &election);
}

static bool lease_lives(struct file_lane *lane, const struct attempt *a)
{
	if (clock_boot_ns() < file_own_expires_ns(lane, a->lease->id))
		return true;
	store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
		   "the lease %.63s has ended, or was never open here", a->lease->id);
	return false;
}

static void attempt_prepare(struct file_lane *lane, struct attempt *a, bool many)
{
	struct file_election election;
	char path[FILE_PATH_SIZE];
	bool missing;

	if (file_in_time(lane) != 0 || !lease_lives(lane, a)) /* model: CLAIM_CHECK */
		goto failed;
	file_path_of(a->c->name, path);
	a->dir = file_open_election(lane, path, true, &missing);
	if (a->dir < 0 || file_read_election(lane, a->dir, a->c->name, &election) != 0)
		goto failed;
	a->folder = election.folder;
	if (election.folder.paused || election.held ||
	    file_reserved_ns(lane, &election, a->lease->owner) > 0) {
		attempt_refuse(lane, a, &election);
		return;
	}
	if (attempt_write(lane, a, &election) != 0)
		goto failed;
	/* The writes of many claims begin together. attempt_link() waits for each. */
	if (many)
		(void)sync_file_range(a->tmp.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	a->state = ATTEMPT_WRITTEN;
	return;
failed:
	attempt_fail(lane, a, BATON_OUTCOME_FAILED);
}

/* S3: the term is above the stored term and the floor. C21: at the end of the range no
 * candidate leads. */
static int attempt_mint_term(struct file_lane *lane, struct attempt *a,
			     const struct file_election *election)
{
	uint64_t stored = election->folder.highest != 0 ? election->claim.term : 0;
	enum term_fault fault;

	a->c->term = term_next(stored, a->c->floor, 0, &fault);
	if (election->folder.highest == UINT64_MAX) /* nor is there a higher number */
		fault = TERM_END;
	if (fault != TERM_FINE)
		return store_fail_term(lane->call, a->c, fault);
	a->seq = election->folder.highest + 1;
	return 0;
}

static const char *word_for(const struct file_election *election)
{
	if (election->folder.highest == 0)
		return "none";
	if (election->folder.ended)
		return "ended";
	return election->verdict == FILE_DIED      ? "died"
	       : election->verdict == FILE_EXPIRED ? "expired"
						   : "gone";
}

static int end_for(const struct file_election *election)
{
	if (election->folder.highest == 0 || election->folder.ended)
		return election->folder.ended ? BATON_END_RELEASED : BATON_END_UNTOLD;
	return election->verdict == FILE_DIED      ? BATON_END_DIED
	       : election->verdict == FILE_EXPIRED ? BATON_END_EXPIRED
						   : BATON_END_UNTOLD;
}

static int attempt_write(struct file_lane *lane, struct attempt *a,
			 const struct file_election *election)
{
	const struct baton_campaign *c = a->c;
	char text[FILE_TEXT_MAX];

	if (attempt_mint_term(lane, a, election) != 0)
		return -1;
	struct file_claim claim = {
		.seq = a->seq,
		.term = c->term,
		.nonce = c->nonce,
		.ttl_ns = a->lease->ttl_ns,
		.timens = lane->root->timens,
		.since_ns = clock_boot_ns(), /* after the look, before the link */
		.since_ms = clock_wall_ms(),
		.priority = c->profile.priority,
		.score_permille = c->profile.score_permille,
	};
	(void)snprintf(claim.boot, sizeof(claim.boot), "%s", lane->root->boot);
	(void)snprintf(claim.lease, sizeof(claim.lease), "%s", a->lease->id);
	(void)snprintf(claim.election, sizeof(claim.election), "%s", c->name);
	(void)snprintf(claim.owner, sizeof(claim.owner), "%s", a->lease->owner);
	(void)snprintf(claim.address, sizeof(claim.address), "%s", a->lease->address);
	(void)snprintf(claim.metadata, sizeof(claim.metadata), "%s", c->profile.metadata);
	(void)snprintf(claim.after, sizeof(claim.after), "%s", word_for(election));
	a->before = end_for(election);
	size_t n = file_write_claim(&claim, text);

	if (n == 0)
		return store_fail(&lane->call->error, BATON_E_INVALID,
				  "a name, id or address of this claim is malformed");
	if (file_tmp_make(lane, &a->tmp, text, n) != 0)
		return -1;
	return file_own_claim_add(lane, c->name, a->lease->id, a->seq, c->term, c->nonce);
}

/* The one step that decides. The steps before it have changed nothing in the election. */
static void attempt_link(struct file_lane *lane, struct attempt *a)
{
	char entry[32];

	if (a->state != ATTEMPT_WRITTEN)
		return;
	file_seq_name(a->seq, false, entry);
	if (file_tmp_sync(lane, &a->tmp) != 0 || file_in_time(lane) != 0) {
		file_own_claim_drop(lane, a->c->name, a->c->nonce);
		attempt_fail(lane, a, BATON_OUTCOME_FAILED);
		return;
	}
	if (file_tmp_link(lane, &a->tmp, a->dir, entry) == 0) { /* model: CLAIM_LINK */
		a->state = ATTEMPT_LINKED;
		return;
	}
	if (errno == EIO) { /* the disk can't tell whether the link is there */
		file_errno(lane, "link", a->c->name, entry);
		file_own_claim_set(lane, a->c->name, a->c->nonce, FILE_DOUBT);
		attempt_fail(lane, a, BATON_OUTCOME_UNKNOWN);
		return;
	}
	bool taken = errno == EEXIST;

	if (!taken)
		file_errno(lane, "link", a->c->name, entry);
	file_own_claim_drop(lane, a->c->name, a->c->nonce);
	if (taken)
		attempt_refuse_anew(lane, a);
	else
		attempt_fail(lane, a, BATON_OUTCOME_FAILED);
}

/*
 * Voids a claim that must not count. Its end is the claim's own file, linked once more, so that
 * even a full disk is not in the way. False: it is unknown whether the claim stands.
 */
static bool attempt_make_void(struct file_lane *lane, struct attempt *a)
{
	char entry[32];

	file_seq_name(a->seq, true, entry);
	bool done = file_tmp_link(lane, &a->tmp, a->dir, entry) == 0 || errno == EEXIST;

	if (done)
		file_own_claim_drop(lane, a->c->name, a->c->nonce);
	else
		file_own_claim_set(lane, a->c->name, a->c->nonce, FILE_DOUBT);
	return done;
}

static void attempt_undo(struct file_lane *lane, struct attempt *a)
{
	attempt_fail(lane, a,
		     attempt_make_void(lane, a) ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN);
}

static void attempt_check_highest(struct file_lane *lane, struct attempt *a)
{
	if (a->state != ATTEMPT_LINKED)
		return;
	if (file_read_folder(lane, a->dir, a->c->name, &a->folder) != 0) { /* model: CLAIM_LOOK */
		attempt_undo(lane, a);
	} else if (a->folder.highest != a->seq) {
		/* Even if it can't be voided: it is not the highest claim, so no candidate
		 * leads by it. */
		(void)attempt_make_void(lane, a); /* model: CLAIM_VOID */
		attempt_refuse_anew(lane, a);
	}
}

static void attempt_won(struct file_lane *lane, struct attempt *a)
{
	struct baton_record *record = a->c->record;

	a->c->outcome = BATON_OUTCOME_OK;
	a->c->code = BATON_OK;
	file_own_claim_set(lane, a->c->name, a->c->nonce, FILE_LINKED);
	memset(record, 0, sizeof(*record));
	record->term = a->c->term;
	record->nonce = a->c->nonce;
	record->held = true;
	record->before = a->before;
	record->since_ms = clock_wall_ms();
	record->free_in_ns = a->lease->ttl_ns;
	record->priority = a->c->profile.priority;
	record->score_permille = a->c->profile.score_permille;
	record->watched =
		file_watch_holder(lane->store, a->c->name, a->lease->id, a->lease->ttl_ns);
	(void)snprintf(record->lease_id, sizeof(record->lease_id), "%s", a->lease->id);
	(void)snprintf(record->leader, sizeof(record->leader), "%s", a->lease->owner);
	(void)snprintf(record->address, sizeof(record->address), "%s", a->lease->address);
	(void)snprintf(record->metadata, sizeof(record->metadata), "%s", a->c->profile.metadata);
}

static void attempt_settle(struct file_lane *lane, struct attempt *a)
{
	if (a->state != ATTEMPT_LINKED)
		return;
	if (file_sync_dir(lane, a->dir, a->c->name) != 0 ||
	    (a->seq == 1 && file_sync_above(lane, a->dir) != 0) ||
	    !lease_lives(lane, a)) /* model: CLAIM_CLOCK */
		attempt_undo(lane, a);
	else
		attempt_won(lane, a);
}

/* Removes an old claim and its end. False: they are another user's, who must remove them. */
static bool remove_past(int dir, uint64_t seq)
{
	char entry[32];

	file_seq_name(seq, false, entry);
	/* model: PRUNE_CLAIM */
	bool done = unlinkat(dir, entry, 0) == 0 || errno == ENOENT;

	file_seq_name(seq, true, entry);
	/* model: PRUNE_END */
	return (unlinkat(dir, entry, 0) == 0 || errno == ENOENT) && done;
}

/* Called only after the folder was synced: the new claim is on the disk before an old one is
 * removed. */
static void prune_history(struct file_lane *lane, const struct attempt *a)
{
	uint64_t history = lane->store->history;
	uint64_t last = a->seq > history ? a->seq - history : 0;
	uint64_t from = a->folder.lowest;
	char entry[64];

	/* Old claims of other users at the bottom must not keep us from removing our own above
	 * them. */
	if (from != 0 && from <= last && !remove_past(a->dir, from) && last - from >= PRUNE_MAX)
		from = last - PRUNE_MAX + 1;
	for (uint64_t seq = from; seq != 0 && seq <= last && seq < from + PRUNE_MAX; seq++)
		(void)remove_past(a->dir, seq);
	for (uint32_t i = 0; i < a->folder.n_orders; i++) {
		if (a->folder.orders[i].term >= a->c->term)
			continue;
		(void)snprintf(entry, sizeof(entry), "order-%020llu-%020llu",
			       (unsigned long long)a->folder.orders[i].term,
			       (unsigned long long)a->folder.orders[i].id);
		(void)unlinkat(a->dir, entry, 0);
	}
}

static void attempt_tidy(struct file_lane *lane, struct attempt *a)
{
	file_tmp_done(lane, &a->tmp);
	if (a->state == ATTEMPT_LINKED)
		prune_history(lane, a);
	if (a->dir >= 0)
		(void)close(a->dir);
}
