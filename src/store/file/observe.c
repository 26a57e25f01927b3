/*
 * observe.c: what an election's folder says: which candidate holds the election, since when, for
 * how long, and with which orders. This follows from one look at the folder (io.c), then from the
 * present claim, and then from its end or the verdict on its lease (expiry.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define LOOKS_MAX 16 /* a claim can vanish after the look only if a newer one is there */

static int observe_one(struct file_lane *lane, struct baton_observation *o);
static void fill_leader(const struct file_election *election, struct baton_record *record);
static int fill_profile(struct file_lane *lane, const char *name, struct baton_record *record);
static int fill_order(struct file_lane *lane, int dir, const char *name,
		      const struct file_election *election, struct baton_record *record);

void file_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct file_lane *lane = l;
	bool entered = file_enter(lane, call, false) == 0;

	for (size_t i = 0; i < n; i++) {
		bool done = entered && file_in_time(lane) == 0 && observe_one(lane, &list[i]) == 0;

		list[i].outcome = done ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
		list[i].code = done ? BATON_OK : call->error.code;
	}
	file_leave(lane);
}

static int observe_one(struct file_lane *lane, struct baton_observation *o)
{
	struct file_election election;
	char path[FILE_PATH_SIZE];
	bool missing;

	file_path_of(o->name, path);
	int dir = file_open_election(lane, path, false, &missing);

	if (dir < 0 && !missing)
		return -1;
	if (dir < 0) {
		memset(o->record, 0, sizeof(*o->record));
		o->record->free_in_ns = BATON_STORE_NEVER;
		return 0;
	}
	int result = file_read_election(lane, dir, o->name, &election);

	if (result == 0)
		result = file_fill_record(lane, dir, o->name, o->id, &election, o->record);
	(void)close(dir);
	return result;
}

/* ---- seeing ---- */

/* An end that can't be read is still an end: its name says so, and only the claim's owner makes
 * it. */
static int read_end(struct file_lane *lane, int dir, struct file_election *out)
{
	char name[32];
	size_t n;

	memset(&out->end, 0, sizeof(out->end));
	file_seq_name(out->folder.highest, true, name);
	int got = file_read(lane, dir, name, "elections", &n);

	if (got == FILE_GOT_ERROR)
		return -1;
	if (got == FILE_GOT_NONE || file_parse_end(lane->text, n, &out->end) != 0)
		memset(&out->end, 0, sizeof(out->end));
	return 0;
}

int file_read_claim(struct file_lane *lane, int dir, const char *name, struct file_election *out)
{
	char entry[32];
	size_t n;

	for (int i = 0; i < LOOKS_MAX; i++) {
		if (file_read_folder(lane, dir, name, &out->folder) != 0) /* model: LOOK */
			return -1;
		if (out->folder.highest == 0)
			return 0;
		file_seq_name(out->folder.highest, false, entry);
		int got = file_read(lane, dir, entry, name, &n); /* model: LOOK_CLAIM */

		if (got == FILE_GOT_ERROR)
			return -1;
		if (got == FILE_GOT_NONE)
			continue;
		/* Rule 5: a folder that was moved, or a name that isn't ours, makes no leader. */
		if (file_parse_claim(lane->text, n, &out->claim) != 0 ||
		    out->claim.seq != out->folder.highest || strcmp(out->claim.election, name) != 0)
			return file_corrupt(lane, name, entry);
		return out->folder.ended ? read_end(lane, dir, out) : 0;
	}
	return store_fail(&lane->call->error, BATON_E_BUSY,
			  "the election %.100s changes faster than it can be read", name);
}

int file_read_election(struct file_lane *lane, int dir, const char *name, struct file_election *out)
{
	out->held = false;
	out->free_in_ns = 0;
	out->verdict = 0;
	if (file_read_claim(lane, dir, name, out) != 0)
		return -1;
	bool claimed = out->folder.highest != 0 && !out->folder.ended;

	/* The watch is told of the holder before the verdict. So a death after the verdict surely
	 * causes a hint. */
	out->watched = file_watch_holder(lane->store, name, claimed ? out->claim.lease : "",
					 claimed ? out->claim.ttl_ns : 0);
	if (!claimed)
		return 0;
	out->verdict =
		file_lease_verdict(lane, out->claim.lease, out->claim.ttl_ns, &out->free_in_ns);
	out->held = out->verdict == FILE_ALIVE;
	if (out->held)
		file_watch_expiry(lane->store, out->claim.lease, out->free_in_ns);
	return out->verdict < 0 ? -1 : 0;
}

/* A reservation of another boot or time namespace counts as ended. That is safe, because nothing
 * depends on a reservation. */
uint64_t file_reserved_ns(struct file_lane *lane, const struct file_election *election,
			  const char *id)
{
	const struct file_end *end = &election->end;
	uint64_t now_ns = clock_boot_ns();

	if (election->folder.highest == 0 || !election->folder.ended ||
	    end->reserved_for[0] == '\0' || strcmp(end->reserved_for, id) == 0 ||
	    strcmp(end->boot, lane->root->boot) != 0 || end->timens != lane->root->timens ||
	    now_ns >= end->reserved_until_ns)
		return 0;
	return end->reserved_until_ns - now_ns;
}

/* ---- telling ---- */

int file_fill_record(struct file_lane *lane, int dir, const char *name, const char *id,
		     const struct file_election *election, struct baton_record *record)
{
	memset(record, 0, sizeof(*record));
	record->paused = election->folder.paused;
	record->watched = election->watched;
	record->free_in_ns = BATON_STORE_NEVER;
	if (election->folder.highest == 0)
		return 0;
	record->term = election->claim.term;
	record->held = election->held;
	if (!election->held) {
		uint64_t reserved_ns = file_reserved_ns(lane, election, id);

		record->reserved = reserved_ns > 0;
		if (record->reserved && !record->paused)
			record->free_in_ns = reserved_ns;
		return 0;
	}
	record->free_in_ns = election->free_in_ns;
	fill_leader(election, record);
	record->n_candidates = file_crowd(lane, name);
	if (fill_profile(lane, name, record) != 0)
		return -1;
	return fill_order(lane, dir, name, election, record);
}

static void fill_leader(const struct file_election *election, struct baton_record *record)
{
	const struct file_claim *claim = &election->claim;

	record->nonce = claim->nonce;
	record->since_ms = claim->since_ms;
	record->priority = (int32_t)claim->priority;
	record->score_permille = (uint32_t)claim->score_permille;
	(void)snprintf(record->lease_id, sizeof(record->lease_id), "%s", claim->lease);
	(void)snprintf(record->leader, sizeof(record->leader), "%s", claim->owner);
	(void)snprintf(record->address, sizeof(record->address), "%s", claim->address);
	(void)snprintf(record->metadata, sizeof(record->metadata), "%s", claim->metadata);
}

/* Fills in the profile that the leader has published since it won. */
static int fill_profile(struct file_lane *lane, const char *name, struct baton_record *record)
{
	struct file_candidate candidate;
	int got = file_read_candidate(lane, record->lease_id, name, &candidate);

	if (got <= 0)
		return got;
	record->priority = (int32_t)candidate.priority;
	record->score_permille = (uint32_t)candidate.score_permille;
	(void)snprintf(record->metadata, sizeof(record->metadata), "%s", candidate.metadata);
	return 0;
}

static int read_order(struct file_lane *lane, int dir, const char *name, uint64_t term, uint64_t id,
		      struct file_order *out)
{
	char entry[64];
	size_t n;

	(void)snprintf(entry, sizeof(entry), "order-%020llu-%020llu", (unsigned long long)term,
		       (unsigned long long)id);
	int got = file_read(lane, dir, entry, name, &n);

	if (got != FILE_GOT)
		return got;
	if (file_parse_order(lane->text, n, out) != 0 || out->term != term || out->id != id)
		return file_corrupt(lane, name, entry);
	return FILE_GOT;
}

int file_read_order(struct file_lane *lane, int dir, const char *name,
		    const struct file_election *election, struct file_order *best)
{
	struct file_order order;

	best->id = 0;
	for (uint32_t i = 0; i < election->folder.n_orders; i++) {
		if (election->folder.orders[i].term != election->claim.term)
			continue;
		int got = read_order(lane, dir, name, election->claim.term,
				     election->folder.orders[i].id, &order);

		if (got == FILE_GOT_ERROR)
			return -1;
		if (got == FILE_GOT && (best->id == 0 || order.issued_ms > best->issued_ms))
			*best = order;
	}
	return 0;
}

static int fill_order(struct file_lane *lane, int dir, const char *name,
		      const struct file_election *election, struct baton_record *record)
{
	struct file_order best;

	if (file_read_order(lane, dir, name, election, &best) != 0)
		return -1;
	if (best.id == 0)
		return 0;
	record->order.id = best.id;
	record->order.term = best.term;
	record->order.quiet_ms = best.quiet_ms;
	record->order.kind = (int)best.kind;
	(void)snprintf(record->order.target, sizeof(record->order.target), "%s", best.target);
	(void)snprintf(record->order.note, sizeof(record->order.note), "%s", best.note);
	if (best.kind != BATON_ORDER_TRANSFER)
		return 0;
	int there = file_has_candidate(lane, name, best.target);

	record->order.target_ok = there > 0;
	return there < 0 ? -1 : 0;
}
