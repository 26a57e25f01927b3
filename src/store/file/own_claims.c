/*
 * own_claims.c: the claims that this process has linked, and whether they still stand.
 *
 * link(2) is done when it returns, and no two processes use the same lease id (A5). So every claim
 * on a lease of ours was linked by us, and this table can't miss one, not even that of a campaign
 * that ended in doubt. But the table can't know that a claim was taken away behind our back (by an
 * administrator, by a restored backup). Therefore every renewal checks some claims in the store, in
 * turn, or all if they are few. A claim that no longer stands is not counted. (The
 * watch on the election's folder tells of that at once; this is for elections that are not
 * watched.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define VERIFY_MAX 64 /* claims that one renewal checks at most */

static struct file_own_claim *own_claim_find(struct file_store *store, const char *name,
					     uint64_t nonce);

int file_own_claim_add(struct file_lane *lane, const char *name, const char *lease, uint64_t seq,
		       uint64_t term, uint64_t nonce)
{
	struct file_store *store = lane->store;
	size_t n = strlen(name) + 1;
	struct file_own_claim *claim = calloc(1, sizeof(*claim) + n);

	if (claim == NULL)
		return store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a claim");
	memcpy(claim->name, name, n);
	(void)snprintf(claim->lease, sizeof(claim->lease), "%s", lease);
	claim->seq = seq;
	claim->term = term;
	claim->nonce = nonce;
	claim->state = FILE_LINKING;
	store_lock(&store->base);
	bool room = name_table_reserve(&store->own_claims) == 0;
	if (room)
		name_table_add(&store->own_claims, &claim->node, claim->name);
	store_unlock(&store->base);
	if (room)
		return 0;
	free(claim);
	return store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a claim");
}

void file_own_claim_set(struct file_lane *lane, const char *name, uint64_t nonce, int state)
{
	store_lock(&lane->store->base);
	struct file_own_claim *claim = own_claim_find(lane->store, name, nonce);
	if (claim != NULL) {
		claim->state = state;
		claim->round = lane->store->round;
	}
	store_unlock(&lane->store->base);
}

void file_own_claim_drop(struct file_lane *lane, const char *name, uint64_t nonce)
{
	store_lock(&lane->store->base);
	struct file_own_claim *claim = own_claim_find(lane->store, name, nonce);
	if (claim != NULL)
		name_table_remove(&lane->store->own_claims, &claim->node);
	store_unlock(&lane->store->base);
	free(claim);
}

static struct file_own_claim *own_claim_find(struct file_store *store, const char *name,
					     uint64_t nonce)
{
	struct name_node *node = name_table_find(&store->own_claims, name);

	while (node != NULL && ((struct file_own_claim *)node)->nonce != nonce)
		node = name_table_more(node);
	return (struct file_own_claim *)node;
}

uint32_t file_own_claims_count(struct file_store *store, const char *lease)
{
	uint32_t n = 0;

	store_lock(&store->base);
	for (struct name_node *node = name_table_next(&store->own_claims, NULL); node != NULL;
	     node = name_table_next(&store->own_claims, node)) {
		const struct file_own_claim *claim = (struct file_own_claim *)node;

		n += claim->state == FILE_LINKED && strcmp(claim->lease, lease) == 0;
	}
	store_unlock(&store->base);
	return n;
}

static struct file_own_claim *own_claim_copy(const struct file_own_claim *claim)
{
	size_t n = sizeof(*claim) + strlen(claim->name) + 1;
	struct file_own_claim *copy = malloc(n);

	if (copy != NULL)
		memcpy(copy, claim, n);
	return copy;
}

/* Copies up to max claims on this lease; round 0: all claims; else those that were not yet checked
 * in that round. */
static size_t own_claims_copy_some(const struct file_store *store, const char *lease,
				   uint64_t round, struct file_own_claim **out, size_t max)
{
	size_t n = 0;

	for (struct name_node *node = name_table_next(&store->own_claims, NULL);
	     node != NULL && n < max; node = name_table_next(&store->own_claims, node)) {
		const struct file_own_claim *claim = (struct file_own_claim *)node;

		if (strcmp(claim->lease, lease) == 0 && (round == 0 || claim->round != round) &&
		    (out[n] = own_claim_copy(claim)) != NULL)
			n++;
	}
	return n;
}

size_t file_own_claims_copy(struct file_store *store, const char *lease,
			    struct file_own_claim **out, size_t max)
{
	store_lock(&store->base);
	size_t n = own_claims_copy_some(store, lease, 0, out, max);
	store_unlock(&store->base);
	return n;
}

int file_own_claims_verify(struct file_lane *lane, const char *lease, uint64_t until_ns)
{
	struct file_store *store = lane->store;
	struct file_own_claim *list[VERIFY_MAX];
	int result = 0;

	store_lock(&store->base);
	size_t n = store->round == 0
			   ? 0
			   : own_claims_copy_some(store, lease, store->round, list, VERIFY_MAX);
	if (n == 0) { /* all claims had their turn */
		store->round++;
		n = own_claims_copy_some(store, lease, store->round, list, VERIFY_MAX);
	}
	store_unlock(&store->base);
	for (size_t i = 0; i < n; i++) {
		bool stands = true;
		/* At least one, however little time there is, so that each claim gets its turn. */
		bool looks = result == 0 && (i == 0 || clock_boot_ns() < until_ns);

		if (looks)
			result = file_in_time(lane) != 0
					 ? -1
					 : file_own_claim_stands(lane, list[i], &stands);
		if (looks && result == 0)
			file_own_claim_note(lane, list[i], stands);
		free(list[i]);
	}
	return result;
}

/* If a claim's link is under way, its campaign sets the state. */
void file_own_claim_note(struct file_lane *lane, const struct file_own_claim *claim, bool stands)
{
	if (claim->state == FILE_LINKING)
		return;
	if (stands)
		file_own_claim_set(lane, claim->name, claim->nonce, FILE_LINKED);
	else
		file_own_claim_drop(lane, claim->name, claim->nonce);
}

/* A claim stands if it is the highest, has no end, and is the claim that we have made. */
int file_own_claim_stands(struct file_lane *lane, const struct file_own_claim *claim, bool *stands)
{
	struct file_election election;
	char path[FILE_PATH_SIZE];
	bool missing;

	file_path_of(claim->name, path);
	int dir = file_open_election(lane, path, false, &missing);

	if (dir < 0) {
		*stands = !missing;
		return missing ? 0 : -1;
	}
	int result = file_read_claim(lane, dir, claim->name, &election);

	if (result == 0)
		*stands = election.folder.highest == claim->seq && !election.folder.ended &&
			  election.claim.nonce == claim->nonce &&
			  election.claim.term == claim->term &&
			  strcmp(election.claim.lease, claim->lease) == 0;
	(void)close(dir);
	return result;
}
