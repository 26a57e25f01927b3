/*
 * candidates.c: how candidates show themselves to each other. Each candidate is a file in a folder
 * of its lease, and counts only while that lease lives: so the candidates of a dead process
 * disappear with it. Nothing here decides who leads. A file that is not valid counts as no
 * candidate.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

/* If the whole store has no more candidates than this, nothing needs to be counted. */
#define FEW 8
/* Of a larger number so many are asked whether they are candidates of that election. */
#define ASKED_MAX 32
#define SUFFIX ".candidate"

typedef int candidate_visit(void *arg, const char *lease, const struct file_candidate *candidate);

static int open_own_folder(struct file_lane *lane, const char *lease);
static int publish_candidate(struct file_lane *lane, const struct baton_lease *lease, int dir,
			     const struct baton_publication *p, bool *doubt);
static bool lease_of_folder(const char *entry, char id[BATON_LEASE_ID_MAX + 1]);
static int for_each_candidate(struct file_lane *lane, const char *name, candidate_visit *fn,
			      void *arg);

void file_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n)
{
	struct file_lane *lane = l;
	int dir = -1;

	if (file_enter(lane, call, true) == 0)
		dir = open_own_folder(lane, lease->id);
	for (size_t i = 0; i < n; i++) {
		bool doubt = false;
		bool done = dir >= 0 && file_in_time(lane) == 0 &&
			    publish_candidate(lane, lease, dir, &list[i], &doubt) == 0;

		list[i].outcome = done    ? BATON_OUTCOME_OK
				  : doubt ? BATON_OUTCOME_UNKNOWN
					  : BATON_OUTCOME_FAILED;
		list[i].code = done ? BATON_OK : call->error.code;
	}
	if (dir >= 0)
		(void)close(dir);
	file_leave(lane);
}

static int open_own_folder(struct file_lane *lane, const char *lease)
{
	char folder[BATON_LEASE_ID_MAX + 16];

	if (file_own_expires_ns(lane, lease) == 0)
		return store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
				  "the lease %.63s has ended, or was never open here", lease);
	(void)snprintf(folder, sizeof(folder), "%s.candidate", lease);
	if (file_make_dir(lane->store, lane->root->leases, folder) != 0 && errno != EEXIST)
		return file_errno(lane, "make", "leases", folder);
	int dir =
		openat(lane->root->leases, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return file_errno(lane, "open", "leases", folder);
	if (file_set_up_dir(lane, dir, lane->root->gid, "leases", folder) == 0)
		return dir;
	(void)close(dir);
	return -1;
}

static int publish_candidate(struct file_lane *lane, const struct baton_lease *lease, int dir,
			     const struct baton_publication *p, bool *doubt)
{
	struct file_candidate candidate = {
		.updated_ms = clock_wall_ms(),
		.priority = p->profile.priority,
		.score_permille = p->profile.score_permille,
		.is_healthy = p->profile.is_healthy,
	};
	char path[FILE_PATH_SIZE];
	char text[FILE_TEXT_MAX];

	(void)snprintf(candidate.election, sizeof(candidate.election), "%s", p->name);
	(void)snprintf(candidate.owner, sizeof(candidate.owner), "%s", lease->owner);
	(void)snprintf(candidate.address, sizeof(candidate.address), "%s", lease->address);
	(void)snprintf(candidate.metadata, sizeof(candidate.metadata), "%s", p->profile.metadata);
	size_t n = file_write_candidate(&candidate, text);

	if (n == 0)
		return store_fail(&lane->call->error, BATON_E_INVALID, "a name is malformed");
	file_path_of(p->name, path);
	if (file_make_parents(lane, dir, path) != 0)
		return -1;
	return file_replace(lane, dir, path, text, n, false, doubt);
}

int file_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name)
{
	struct file_lane *lane = l;
	int outcome = BATON_OUTCOME_FAILED;

	if (file_enter(lane, call, false) == 0) {
		char encoded[FILE_PATH_SIZE];
		char path[FILE_PATH_SIZE + BATON_LEASE_ID_MAX + 16];

		file_path_of(name, encoded);
		(void)snprintf(path, sizeof(path), "%s.candidate/%s", lease->id, encoded);
		if (unlinkat(lane->root->leases, path, 0) == 0 || errno == ENOENT) {
			outcome = BATON_OUTCOME_OK;
		} else {
			outcome = errno == EIO ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
			file_errno(lane, "remove", "leases", path);
		}
	}
	file_leave(lane);
	return outcome;
}

int file_read_candidate(struct file_lane *lane, const char *lease, const char *name,
			struct file_candidate *out)
{
	char encoded[FILE_PATH_SIZE];
	char path[FILE_PATH_SIZE + BATON_LEASE_ID_MAX + 16];
	size_t n;

	file_path_of(name, encoded);
	(void)snprintf(path, sizeof(path), "%s.candidate/%s", lease, encoded);
	int got = file_read(lane, lane->root->leases, path, "leases", &n);

	if (got != FILE_GOT)
		return got;
	return file_parse_candidate(lane->text, n, out) == 0 && strcmp(out->election, name) == 0;
}

/* False: the entry is not the folder of a lease's candidates. */
static bool lease_of_folder(const char *entry, char id[BATON_LEASE_ID_MAX + 1])
{
	const char *dot = strchr(entry, '.');
	size_t n = dot == NULL ? 0 : (size_t)(dot - entry);

	if (n == 0 || n > BATON_LEASE_ID_MAX || strcmp(dot, SUFFIX) != 0)
		return false;
	memcpy(id, entry, n);
	id[n] = '\0';
	return file_is_lease_id(id);
}

/* Calls fn for each candidate whose lease lives, until fn returns something else than 0. */
static int for_each_candidate(struct file_lane *lane, const char *name, candidate_visit *fn,
			      void *arg)
{
	struct file_candidate candidate;
	uint64_t free_in_ns;
	size_t at = 0;
	int result = file_scan(lane, lane->root->leases, "leases");

	for (const char *entry; result == 0 && (entry = file_scan_next(lane, &at)) != NULL;) {
		char id[BATON_LEASE_ID_MAX + 1];

		if (!lease_of_folder(entry, id))
			continue;
		result = file_in_time(lane) != 0 ? -1
						 : file_read_candidate(lane, id, name, &candidate);
		if (result == 1)
			result = file_lease_verdict(lane, id, BATON_STORE_NEVER, &free_in_ns);
		else
			continue;
		if (result > 0)
			result = result == FILE_ALIVE ? fn(arg, id, &candidate) : 0;
	}
	return result;
}

struct listing {
	void (*found)(void *arg, const struct baton_candidate *candidate);
	void *arg;
	const char *leader;
};

static int list_candidate(void *arg, const char *lease, const struct file_candidate *from)
{
	struct listing *listing = arg;
	struct baton_candidate c = {0};

	(void)snprintf(c.id, sizeof(c.id), "%s", from->owner);
	(void)snprintf(c.address, sizeof(c.address), "%s", from->address);
	(void)snprintf(c.metadata, sizeof(c.metadata), "%s", from->metadata);
	c.is_leader = strcmp(listing->leader, lease) == 0;
	c.is_healthy = from->is_healthy != 0;
	c.score_permille = (uint32_t)from->score_permille;
	c.priority = (int32_t)from->priority;
	c.updated_ms = from->updated_ms;
	listing->found(listing->arg, &c);
	return 0;
}

int file_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct file_lane *lane = l;
	struct file_election election = {.held = false};
	struct listing listing = {found, arg, ""};
	int result = -1;

	if (file_enter(lane, call, false) == 0) {
		char path[FILE_PATH_SIZE];
		bool missing;

		file_path_of(name, path);
		int dir = file_open_election(lane, path, false, &missing);

		result = dir >= 0  ? file_read_election(lane, dir, name, &election)
			 : missing ? 0
				   : -1;
		if (dir >= 0)
			(void)close(dir);
	}
	if (election.held)
		listing.leader = election.claim.lease;
	if (result == 0)
		result = for_each_candidate(lane, name, list_candidate, &listing);
	file_leave(lane);
	return result == 0 ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}

static int compare_candidate(void *arg, const char *lease, const struct file_candidate *candidate)
{
	(void)lease;
	return strcmp(candidate->owner, arg) == 0 && candidate->is_healthy != 0;
}

int file_has_candidate(struct file_lane *lane, const char *name, const char *id)
{
	char wanted[BATON_NAME_MAX + 1];

	(void)snprintf(wanted, sizeof(wanted), "%s", id);
	return for_each_candidate(lane, name, compare_candidate, wanted);
}

/* ---- the crowd ---- */

/* How many folders of candidates the store has; 0: the file system doesn't count links. */
static uint64_t count_folders(const struct file_root *root)
{
	struct stat st;

	if (fstat(root->leases, &st) != 0 || st.st_nlink < 2)
		return 0;
	return st.st_nlink - 2;
}

/* Of the folders that one call returns: how many, and which of the first of them know the election.
 * By a descriptor of its own: a look must not move the place at which another lane reads. */
static uint64_t ask_folders(struct file_lane *lane, const char *path, uint64_t *asked,
			    uint64_t *found)
{
	int dir = openat(lane->root->leases, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t seen = 0;
	size_t at = 0;

	if (dir < 0)
		return 0;
	file_scan_some(lane, dir);
	for (const char *entry; (entry = file_scan_next(lane, &at)) != NULL;) {
		char candidate[FILE_PATH_SIZE + BATON_LEASE_ID_MAX + 16];
		char id[BATON_LEASE_ID_MAX + 1];

		if (!lease_of_folder(entry, id))
			continue;
		seen++;
		if (*asked == ASKED_MAX)
			continue;
		(void)snprintf(candidate, sizeof(candidate), "%s" SUFFIX "/%s", id, path);
		*asked += 1;
		*found += faccessat(dir, candidate, F_OK, 0) == 0;
	}
	(void)close(dir);
	return seen;
}

uint32_t file_crowd(struct file_lane *lane, const char *name)
{
	uint64_t all = count_folders(lane->root);
	char path[FILE_PATH_SIZE];
	uint64_t asked = 0;
	uint64_t found = 0;

	if (all != 0 && all <= FEW)
		return 0;
	file_path_of(name, path);
	uint64_t seen = ask_folders(lane, path, &asked, &found);

	if (asked == 0)
		return 0;
	return (uint32_t)(found * (all > seen ? all : seen) / asked);
}
