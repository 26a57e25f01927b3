/*
 * held.c: the claims that this process has linked, and whether they still stand.
 *
 * link(2) is done when it returns, and a lease's id is never used by two processes (A5). So every
 * claim on a lease of ours was linked by us: this table can't miss one, also none of a campaign
 * that ended in doubt. What it can't know by itself is that somebody took a claim away behind
 * our back (an administrator, a restored backup). Therefore every renewal looks at some of them in
 * the store, in turn, all if they are few: what doesn't stand any more is no longer counted. (The
 * watch on the election's folder says so at once; this is for where there is no watch.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define VERIFY_MAX 64 /* claims that one renewal looks at */

static struct file_held *find(struct file_store *store, const char *name, uint64_t nonce);
static int verify_one(struct file_lane *lane, const struct file_held *held, bool *stands);
static void note(struct file_lane *lane, const struct file_held *held, bool stands);

int file_held_add(struct file_lane *lane, const char *name, const char *lease, uint64_t seq,
		  uint64_t term, uint64_t nonce)
{
	struct file_store *store = lane->store;
	size_t n = strlen(name) + 1;
	struct file_held *held = calloc(1, sizeof(*held) + n);

	if (held == NULL)
		return store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a claim");
	memcpy(held->name, name, n);
	(void)snprintf(held->lease, sizeof(held->lease), "%s", lease);
	held->seq = seq;
	held->term = term;
	held->nonce = nonce;
	held->state = FILE_LINKING;
	store_lock(&store->base);
	bool room = file_table_reserve(&store->held) == 0;
	if (room)
		file_table_add(&store->held, &held->node, file_table_key(name));
	store_unlock(&store->base);
	if (room)
		return 0;
	free(held);
	return store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a claim");
}

void file_held_state(struct file_lane *lane, const char *name, uint64_t nonce, int state)
{
	store_lock(&lane->store->base);
	struct file_held *held = find(lane->store, name, nonce);
	if (held != NULL) {
		held->state = state;
		held->round = lane->store->round;
	}
	store_unlock(&lane->store->base);
}

void file_held_drop(struct file_lane *lane, const char *name, uint64_t nonce)
{
	store_lock(&lane->store->base);
	struct file_held *held = find(lane->store, name, nonce);
	if (held != NULL)
		file_table_remove(&lane->store->held, &held->node);
	store_unlock(&lane->store->base);
	free(held);
}

static struct file_held *find(struct file_store *store, const char *name, uint64_t nonce)
{
	struct file_node *node = file_table_find(&store->held, file_table_key(name));

	for (; node != NULL; node = file_table_more(node)) {
		struct file_held *held = file_container(node, struct file_held, node);

		if (held->nonce == nonce && strcmp(held->name, name) == 0)
			return held;
	}
	return NULL;
}

uint32_t file_held_count(struct file_store *store, const char *lease)
{
	uint32_t n = 0;

	store_lock(&store->base);
	for (struct file_node *node = file_table_each(&store->held, NULL); node != NULL;
	     node = file_table_each(&store->held, node)) {
		const struct file_held *held = file_container(node, struct file_held, node);

		n += held->state == FILE_LINKED && strcmp(held->lease, lease) == 0;
	}
	store_unlock(&store->base);
	return n;
}

static struct file_held *copy_of(const struct file_held *held)
{
	size_t n = sizeof(*held) + strlen(held->name) + 1;
	struct file_held *copy = malloc(n);

	if (copy != NULL)
		memcpy(copy, held, n);
	return copy;
}

/* Copies up to max claims on this lease; round 0: any, else those not yet looked at in it. */
static size_t copy_some(const struct file_store *store, const char *lease, uint64_t round,
			struct file_held **out, size_t max)
{
	size_t n = 0;

	for (struct file_node *node = file_table_each(&store->held, NULL); node != NULL && n < max;
	     node = file_table_each(&store->held, node)) {
		const struct file_held *held = file_container(node, struct file_held, node);

		if (strcmp(held->lease, lease) == 0 && (round == 0 || held->round != round) &&
		    (out[n] = copy_of(held)) != NULL)
			n++;
	}
	return n;
}

size_t file_held_copy(struct file_store *store, const char *lease, struct file_held **out,
		      size_t max)
{
	store_lock(&store->base);
	size_t n = copy_some(store, lease, 0, out, max);
	store_unlock(&store->base);
	return n;
}

int file_held_verify(struct file_lane *lane, const char *lease, uint64_t until_ns)
{
	struct file_store *store = lane->store;
	struct file_held *list[VERIFY_MAX];
	int result = 0;

	store_lock(&store->base);
	size_t n = store->round == 0 ? 0 : copy_some(store, lease, store->round, list, VERIFY_MAX);
	if (n == 0) { /* all had their turn */
		store->round++;
		n = copy_some(store, lease, store->round, list, VERIFY_MAX);
	}
	store_unlock(&store->base);
	for (size_t i = 0; i < n; i++) {
		bool stands = true;
		/* One at least, however little time there is: so the turn comes to each. */
		bool look = result == 0 && (i == 0 || clock_boot_ns() < until_ns);

		if (look)
			result = file_in_time(lane) != 0 ? -1 : verify_one(lane, list[i], &stands);
		if (look && result == 0)
			note(lane, list[i], stands);
		free(list[i]);
	}
	return result;
}

/* One whose link is under way is for its campaign to tell. */
static void note(struct file_lane *lane, const struct file_held *held, bool stands)
{
	if (held->state == FILE_LINKING)
		return;
	if (stands)
		file_held_state(lane, held->name, held->nonce, FILE_LINKED);
	else
		file_held_drop(lane, held->name, held->nonce);
}

/* It stands if it is the highest, has no end, and is the claim that we made. */
static int verify_one(struct file_lane *lane, const struct file_held *held, bool *stands)
{
	struct file_sight sight;
	char path[FILE_PATH_SIZE];
	bool missing;

	file_path_of(held->name, path);
	int dir = file_open_election(lane, path, false, &missing);

	if (dir < 0) {
		*stands = !missing;
		return missing ? 0 : -1;
	}
	int result = file_see_claim(lane, dir, held->name, &sight);

	if (result == 0)
		*stands = sight.look.highest == held->seq && !sight.look.ended &&
			  sight.claim.nonce == held->nonce && sight.claim.term == held->term &&
			  strcmp(sight.claim.lease, held->lease) == 0;
	(void)close(dir);
	return result;
}

int file_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg)
{
	struct file_lane *lane = l;
	int outcome = BATON_OUTCOME_FAILED;

	if (file_enter(lane, call, false) != 0)
		return outcome;
	store_lock(&lane->store->base);
	size_t max = lane->store->held.n;
	store_unlock(&lane->store->base);
	struct file_held **list = calloc(max + 1, sizeof(list[0]));
	bool *stand = calloc(max + 1, sizeof(stand[0]));
	size_t n = 0;
	int result = 0;

	if (list != NULL && stand != NULL)
		n = file_held_copy(lane->store, lease->id, list, max);
	else
		result = store_fail(&call->error, BATON_E_MEMORY, "no memory for claims");

	for (size_t i = 0; i < n && result == 0; i++)
		result = file_in_time(lane) != 0 ? -1 : verify_one(lane, list[i], &stand[i]);
	/* All or nothing: half a list would make the others look lost. */
	for (size_t i = 0; i < n; i++) {
		if (result == 0)
			note(lane, list[i], stand[i]);
		if (result == 0 && stand[i])
			found(arg, list[i]->name, list[i]->nonce, list[i]->term);
		free(list[i]);
	}
	if (result == 0)
		outcome = BATON_OUTCOME_OK;
	free(stand);
	free(list);
	file_leave(lane);
	return outcome;
}
