/*
 * orders.c: orders for a leader, and the pause. An order names the term that it is meant for, also
 * in the name of its file, so that a successor neither obeys nor reads it (rule 10). Each order has
 * a file of its own, so that no order overwrites another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define PAUSE_TRIES 16

static int leave_order(struct file_lane *lane, int dir, const char *name,
		       const struct baton_order *order);
static int link_new_file(struct file_lane *lane, int dir, const char *name, const char *entry,
			 const char *text, size_t n);
static int set_pause(struct file_lane *lane, const char *name, bool paused);

/* ---- orders ---- */

int file_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct file_lane *lane = l;
	struct file_election election;
	char path[FILE_PATH_SIZE];
	bool missing;
	int outcome = BATON_OUTCOME_FAILED;
	int dir = -1;

	if (file_enter(lane, call, false) != 0)
		goto out;
	file_path_of(name, path);
	dir = file_open_election(lane, path, false, &missing);
	if (dir < 0) {
		outcome = missing ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
		goto out;
	}
	if (file_read_election(lane, dir, name, &election) != 0)
		goto out;
	if (!election.held || election.claim.term != order->term)
		outcome = BATON_OUTCOME_REFUSED;
	else
		outcome = leave_order(lane, dir, name, order);
out:
	if (dir >= 0)
		(void)close(dir);
	file_leave(lane);
	return outcome;
}

static int leave_order(struct file_lane *lane, int dir, const char *name,
		       const struct baton_order *order)
{
	struct file_order record = {
		.id = order->id,
		.term = order->term,
		.quiet_ms = order->quiet_ms,
		.kind = (uint64_t)order->kind,
		.issued_ms = clock_wall_ms(),
	};
	char text[FILE_TEXT_MAX];
	char entry[64];

	(void)snprintf(record.target, sizeof(record.target), "%s", order->target);
	(void)snprintf(record.note, sizeof(record.note), "%s", order->note);
	size_t n = file_write_order(&record, text);

	if (n == 0) {
		store_fail(&lane->call->error, BATON_E_INVALID, "the order is malformed");
		return BATON_OUTCOME_FAILED;
	}
	(void)snprintf(entry, sizeof(entry), "order-%020llu-%020llu",
		       (unsigned long long)order->term, (unsigned long long)order->id);
	return link_new_file(lane, dir, name, entry, text, n);
}

/* OK also if the file was there already: another process has done the same. */
static int link_new_file(struct file_lane *lane, int dir, const char *name, const char *entry,
			 const char *text, size_t n)
{
	struct file_tmp tmp = {.fd = -1};
	int outcome = BATON_OUTCOME_OK;

	if (file_tmp_make(lane, &tmp, text, n) != 0)
		return BATON_OUTCOME_FAILED;
	if (file_tmp_sync(lane, &tmp) != 0 || file_in_time(lane) != 0) {
		outcome = BATON_OUTCOME_FAILED;
	} else if (file_tmp_link(lane, &tmp, dir, entry) != 0 && errno != EEXIST) {
		outcome = errno == EIO ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
		file_errno(lane, "link", name, entry);
	}
	file_tmp_done(lane, &tmp);
	return outcome;
}

/* ---- pause ---- */

int file_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct file_lane *lane = l;
	int outcome = BATON_OUTCOME_FAILED;

	if (file_enter(lane, call, paused) == 0)
		outcome = set_pause(lane, name, paused);
	file_leave(lane);
	return outcome;
}

/*
 * All users that may take part may pause and resume, but in a folder with the sticky bit no user
 * may remove another's file. So a pause is a file with the next number, and its end is another
 * file. The highest number decides, and is never removed, so that no number is used twice. Files
 * with lower numbers decide nothing, and each user removes its own.
 */
static void remove_old_pauses(struct file_lane *lane, int dir, uint64_t last)
{
	size_t at = 0;

	for (const char *entry; (entry = file_scan_next(lane, &at)) != NULL;) {
		bool end;
		uint64_t number = file_pause_of(entry, &end);

		if (number != 0 && number < last)
			(void)unlinkat(dir, entry, 0);
	}
}

/* Another process may pause or resume at the same time, so this is done only when a look shows
 * it. */
static int link_pause(struct file_lane *lane, int dir, const char *name, bool paused)
{
	static const char text[] = "baton pause 1\n";
	struct file_folder folder;
	char entry[32];

	for (int i = 0; i < PAUSE_TRIES; i++) {
		if (file_in_time(lane) != 0 || file_read_folder(lane, dir, name, &folder) != 0)
			return BATON_OUTCOME_FAILED;
		if (folder.paused == paused) {
			remove_old_pauses(lane, dir, folder.last_pause);
			return BATON_OUTCOME_OK;
		}
		file_pause_name(folder.last_pause + paused, !paused, entry);
		int outcome = link_new_file(lane, dir, name, entry, text, sizeof(text) - 1);

		if (outcome != BATON_OUTCOME_OK)
			return outcome;
	}
	store_fail(&lane->call->error, BATON_E_BUSY,
		   "the election %.100s is paused and resumed by others all the time", name);
	return BATON_OUTCOME_FAILED;
}

static int set_pause(struct file_lane *lane, const char *name, bool paused)
{
	char path[FILE_PATH_SIZE];
	bool missing;

	file_path_of(name, path);
	int dir = file_open_election(lane, path, paused, &missing);

	if (dir < 0)
		return missing ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
	int outcome = link_pause(lane, dir, name, paused);

	/* The pause must survive a crash, so the outcome is UNKNOWN until it is synced. */
	if (outcome == BATON_OUTCOME_OK &&
	    (file_sync_dir(lane, dir, name) != 0 || (paused && file_sync_above(lane, dir) != 0)))
		outcome = BATON_OUTCOME_UNKNOWN;
	(void)close(dir);
	return outcome;
}
