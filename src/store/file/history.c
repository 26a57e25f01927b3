/*
 * history.c: past leaderships, from the claims that are still in an election's folder. How a
 * leadership has ended stands in its end, or else in the next claim. Nothing here decides who
 * leads.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/file/file.h"

struct past {
	int dir;
	const char *name;
	uint64_t highest;
	bool has_later;
	char after[FILE_WORD_MAX + 1]; /* how this claim had ended, as the next claim has seen it */
};

static int newest_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The numbers of all claims that the last scan saw, newest first. NULL: no memory. */
static uint64_t *list_past_claims(const struct file_lane *lane, size_t *n)
{
	uint64_t *list = calloc(lane->scan_used / 16 + 1, sizeof(list[0]));
	size_t at = 0;

	*n = 0;
	if (list == NULL)
		return NULL;
	for (const char *entry; (entry = file_scan_next(lane, &at)) != NULL;) {
		bool end;
		uint64_t seq = file_seq_of(entry, &end);

		if (seq != 0 && !end)
			list[(*n)++] = seq;
	}
	qsort(list, *n, sizeof(list[0]), newest_first);
	return list;
}

/* The name of a clock: processes with the same boot and time namespace share it. */
static void clock_name(const char *boot, uint64_t timens, char out[64])
{
	(void)snprintf(out, 64, "%s-%llu", boot, (unsigned long long)timens);
}

/* Reads the end of a claim. 1: done. 0: the claim has no end. 2: it was void, and never a
 * leadership. */
static int read_past_end(struct file_lane *lane, const struct past *past, uint64_t seq,
			 struct baton_leadership *out)
{
	struct file_claim claim;
	struct file_end end;
	char entry[32];
	size_t n;

	file_seq_name(seq, true, entry);
	int got = file_read(lane, past->dir, entry, past->name, &n);

	if (got != FILE_GOT)
		return got;
	if (file_parse_claim(lane->text, n, &claim) == 0)
		return 2;
	bool known = file_parse_end(lane->text, n, &end) == 0;

	out->until_ms = known ? end.until_ms : 0;
	(void)snprintf(out->note, sizeof(out->note), "%s", known ? end.note : "");
	if (known) {
		char clock[sizeof(out->clock)];

		clock_name(end.boot, end.timens, clock);
		out->until_ns = strcmp(clock, out->clock) == 0 ? end.until_ns : 0;
	}
	(void)snprintf(out->ended, sizeof(out->ended), "%s",
		       known && end.reason[0] != '\0' ? end.reason : "released");
	return 1;
}

/* For the highest claim, without an end: whether it still stands, or how it is over. */
static int history_verdict(struct file_lane *lane, const struct file_claim *claim,
			   struct baton_leadership *out)
{
	uint64_t free_in_ns;
	int verdict = file_lease_verdict(lane, claim->lease, claim->ttl_ns, &free_in_ns);

	if (verdict < 0)
		return -1;
	(void)snprintf(out->ended, sizeof(out->ended), "%s",
		       verdict == FILE_ALIVE     ? ""
		       : verdict == FILE_DIED    ? "died"
		       : verdict == FILE_EXPIRED ? "expired"
						 : "gone");
	return 0;
}

/* 1: found; 0: pruned meanwhile, or not a leadership. */
static int read_past(struct file_lane *lane, struct past *past, uint64_t seq,
		     struct baton_leadership *out)
{
	struct file_claim claim;
	char entry[32];
	size_t n;

	file_seq_name(seq, false, entry);
	int got = file_read(lane, past->dir, entry, past->name, &n);

	if (got != FILE_GOT)
		return got;
	if (file_parse_claim(lane->text, n, &claim) != 0)
		return file_corrupt(lane, past->name, entry);
	*out = (struct baton_leadership){.size = sizeof(*out)};
	out->term = claim.term;
	out->since_ms = claim.since_ms;
	out->since_ns = claim.since_ns;
	clock_name(claim.boot, claim.timens, out->clock);
	(void)snprintf(out->leader, sizeof(out->leader), "%s", claim.owner);
	got = read_past_end(lane, past, seq, out);
	if (got < 0 || got == 2)
		return got < 0 ? -1 : 0;
	if (got == 0 && seq == past->highest && history_verdict(lane, &claim, out) != 0)
		return -1;
	if (got == 0 && seq != past->highest)
		(void)snprintf(out->ended, sizeof(out->ended), "%s",
			       past->has_later ? past->after : "unknown");
	past->has_later = true;
	(void)snprintf(past->after, sizeof(past->after), "%s", claim.after);
	return 1;
}

static int list_past(struct file_lane *lane, struct past *past, size_t max,
		     void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct file_folder folder;
	size_t n;
	int result = file_read_folder(lane, past->dir, past->name, &folder);

	if (result != 0)
		return -1;
	past->highest = folder.highest;
	uint64_t *list = list_past_claims(lane, &n);

	if (list == NULL)
		return store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for history");
	for (size_t i = 0; i < n && max > 0 && result >= 0; i++) {
		struct baton_leadership leadership;

		result = file_in_time(lane) != 0 ? -1 : read_past(lane, past, list[i], &leadership);
		if (result == 1) {
			found(arg, &leadership);
			max--;
		}
	}
	free(list);
	return result < 0 ? -1 : 0;
}

int file_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct file_lane *lane = l;
	struct past past = {.dir = -1, .name = name};
	int result = -1;

	if (file_enter(lane, call, false) == 0) {
		char path[FILE_PATH_SIZE];
		bool missing = false;

		file_path_of(name, path);
		past.dir = file_open_election(lane, path, false, &missing);
		if (past.dir >= 0)
			result = list_past(lane, &past, max, found, arg);
		else if (missing)
			result = 0;
	}
	if (past.dir >= 0)
		(void)close(past.dir);
	file_leave(lane);
	return result == 0 ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}
