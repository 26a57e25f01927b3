/*
 * lock.c: mode=bloblease: the lease of a blob is the native lock of an election. So we and other
 * programs that lease the same blob exclude each other.
 *
 * The service renews even a lease that has ended, as long as no other client has taken one.
 * Such a renewed lease is a new lease. What this must never do: count on it as if it had been ours
 * all the time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "store/azblob/azblob.h"
#include "store/record/decide/codec.h"

#define GUID_SIZE 37

/* A lock that we have, or may have. */
struct azblob_lock {
	struct azblob_lock *next;
	uint64_t end_ns; /* when its duration ends, counted from before the last request */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[];
};

/* The service's id for the blob lease that belongs to one of our leases. */
static void guid_of(const char *lease_id, char out[GUID_SIZE])
{
	char hex[SHA256_HEX_SIZE];

	sha256_hex(lease_id, strlen(lease_id), hex);
	(void)snprintf(out, GUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		       hex + 16, hex + 20);
}

/* ---- what we have ---- */

/* With the store's lock held. *result is NULL if there is none. lease_id NULL: any lease's. */
static struct azblob_lock **lock_find(struct azblob_store *s, const char *name,
				      const char *lease_id)
{
	struct azblob_lock **at = &s->locks;

	while (*at != NULL && (strcmp((*at)->name, name) != 0 ||
			       (lease_id != NULL && strcmp((*at)->lease_id, lease_id) != 0)))
		at = &(*at)->next;
	return at;
}

/* False: no memory. */
static bool lock_note(struct azblob_store *s, const char *name, const char *lease_id,
		      uint64_t end_ns)
{
	size_t size = strlen(name) + 1;

	store_lock(&s->base);
	struct azblob_lock **at = lock_find(s, name, lease_id);

	if (*at == NULL && (*at = calloc(1, sizeof(**at) + size)) != NULL) {
		(void)memcpy((*at)->name, name, size);
		(void)snprintf((*at)->lease_id, sizeof((*at)->lease_id), "%s", lease_id);
	}
	bool is_noted = *at != NULL;

	if (is_noted)
		(*at)->end_ns = end_ns;
	store_unlock(&s->base);
	return is_noted;
}

/* When the lock ends; 0: we don't have it. */
static uint64_t lock_end_ns(struct azblob_store *s, const char *name, const char *lease_id)
{
	store_lock(&s->base);
	struct azblob_lock *const *at = lock_find(s, name, lease_id);
	uint64_t end_ns = *at != NULL ? (*at)->end_ns : 0;

	store_unlock(&s->base);
	return end_ns;
}

static void lock_forget(struct azblob_store *s, const char *name, const char *lease_id)
{
	store_lock(&s->base);
	struct azblob_lock **at = lock_find(s, name, lease_id);
	struct azblob_lock *gone = *at;

	if (gone != NULL)
		*at = gone->next;
	store_unlock(&s->base);
	free(gone);
}

/* Another lease of ours that still has the lock, from which this one takes it over; false: none. */
static bool lock_older(struct azblob_store *s, const char *name, const char *lease_id,
		       char out[BATON_LEASE_ID_MAX + 1])
{
	store_lock(&s->base);
	const struct azblob_lock *at = s->locks;

	while (at != NULL && (strcmp(at->name, name) != 0 || strcmp(at->lease_id, lease_id) == 0))
		at = at->next;
	if (at != NULL)
		(void)snprintf(out, BATON_LEASE_ID_MAX + 1, "%s", at->lease_id);
	store_unlock(&s->base);
	return at != NULL;
}

/* Whether blob= is the lock of another election already: one blob can't be the lock of two. */
static bool lock_is_anothers(struct azblob_store *s, const char *name)
{
	store_lock(&s->base);
	const struct azblob_lock *at = s->locks;

	while (at != NULL && strcmp(at->name, name) == 0)
		at = at->next;
	store_unlock(&s->base);
	return s->options.blob[0] != '\0' && at != NULL;
}

void azblob_locks_done(struct azblob_store *s)
{
	while (s->locks != NULL) {
		struct azblob_lock *gone = s->locks;

		s->locks = gone->next;
		free(gone);
	}
}

/* ---- requests ---- */

static void ask_lock(const struct azblob_lane *lane, struct azblob_ask *ask, const char *name)
{
	char key[3 * BATON_NAME_MAX + 8], blob[3 * BATON_NAME_MAX + 16];

	if (lane->store->options.blob[0] != '\0') {
		azblob_ask_blob(lane, ask, "PUT", lane->store->options.blob);
	} else {
		(void)record_write_key(RECORD_ELECTIONS, name, key, sizeof(key));
		(void)snprintf(blob, sizeof(blob), AZBLOB_LOCKS "%s", key + 2);
		azblob_ask(lane, ask, "PUT", blob);
	}
	ask->body = "";
}

static int send_action(struct azblob_lane *lane, struct baton_call *call, const char *name,
		       const char *action, const char *header, const char *lease_id, uint64_t s,
		       struct http_reply *reply)
{
	struct azblob_ask ask;
	char guid[GUID_SIZE];

	guid_of(lease_id, guid);
	ask_lock(lane, &ask, name);
	azblob_ask_query(&ask, "comp", "lease");
	azblob_ask_header(&ask, "x-ms-lease-action: %s", action);
	azblob_ask_header(&ask, "%s: %s", header, guid);
	if (s > 0)
		azblob_ask_header(&ask, "x-ms-lease-duration: %u", (unsigned)s);
	return azblob_call(lane, call, &ask, reply);
}

/* Makes an empty blob to lease. Another process may be faster, which does no harm. */
static void make_blob(struct azblob_lane *lane, struct baton_call *call, const char *name)
{
	struct azblob_ask ask;
	struct http_reply reply;

	ask_lock(lane, &ask, name);
	azblob_ask_header(&ask, "x-ms-blob-type: BlockBlob");
	azblob_ask_header(&ask, "If-None-Match: *");
	(void)azblob_call(lane, call, &ask, &reply);
}

static int send_release(struct azblob_lane *lane, struct baton_call *call, const char *name,
			const char *lease_id)
{
	struct http_reply reply;

	(void)send_action(lane, call, name, "release", "x-ms-lease-id", lease_id, 0, &reply);
	lock_forget(lane->store, name, lease_id);
	if (reply.result == HTTP_OK && (reply.status == 200 || reply.status == 409 ||
					reply.status == 404 || reply.status == 412))
		return BATON_OUTCOME_OK;
	return azblob_fail(lane, call, &reply);
}

/* The service counts leases in seconds. The result is not shorter than our ttl, unless the service
 * has no lease that is so long. */
static uint64_t duration_s(uint64_t ttl_ns)
{
	uint64_t s = (ttl_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S;

	return s < AZBLOB_LEASE_MIN_S   ? AZBLOB_LEASE_MIN_S
	       : s > AZBLOB_LEASE_MAX_S ? AZBLOB_LEASE_MAX_S
					: s;
}

/* ---- the verbs ---- */

int azblob_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		     uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct azblob_lane *l = lane;
	struct azblob_store *s = l->store;
	char older[BATON_LEASE_ID_MAX + 1];
	struct http_reply reply;
	uint64_t sent_ns = clock_boot_ns();

	(void)free_in_ns; /* the service doesn't tell how long another's lease lasts */
	if (lock_is_anothers(s, name)) {
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "blob= names the blob of one election, and %.60s is a second one: "
				 "use a URL of its own for each",
				 name);
		return BATON_OUTCOME_FAILED;
	}
	if (azblob_log_in(l, call) != 0 || azblob_see_to_container(l, call) != 0)
		return BATON_OUTCOME_FAILED;
	while (lock_older(s, name, lease_id, older))
		(void)send_release(l, call, name, older);
	for (int tries = 0; tries < 2; tries++) {
		sent_ns = clock_boot_ns();
		(void)send_action(l, call, name, "acquire", "x-ms-proposed-lease-id", lease_id,
				  duration_s(ttl_ns), &reply);
		if (tries > 0 || !azblob_says(&reply, "BlobNotFound"))
			break;
		make_blob(l, call, name);
	}
	if (reply.result == HTTP_OK && (reply.status == 201 || reply.status == 200))
		return lock_note(s, name, lease_id, sent_ns + duration_s(ttl_ns) * CLOCK_NS_PER_S)
			       ? BATON_OUTCOME_OK
			       : BATON_OUTCOME_UNKNOWN;
	if (reply.result == HTTP_OK && reply.status == 409)
		return BATON_OUTCOME_REFUSED; /* another has the lease, or it is being broken */
	return azblob_fail(l, call, &reply);
}

int azblob_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		     uint64_t ttl_ns)
{
	struct azblob_lane *l = lane;
	struct azblob_store *s = l->store;
	uint64_t end_ns = lock_end_ns(s, name, lease_id);
	uint64_t sent_ns = clock_boot_ns();
	struct http_reply reply;

	if (sent_ns >= end_ns)
		return BATON_OUTCOME_REFUSED;
	if (azblob_log_in(l, call) != 0)
		return BATON_OUTCOME_FAILED;
	(void)send_action(l, call, name, "renew", "x-ms-lease-id", lease_id, 0, &reply);
	if (reply.result == HTTP_OK && reply.status == 200) {
		if (clock_boot_ns() >= end_ns)
			return BATON_OUTCOME_REFUSED; /* the lease may have ended meanwhile */
		(void)lock_note(s, name, lease_id, sent_ns + duration_s(ttl_ns) * CLOCK_NS_PER_S);
		return BATON_OUTCOME_OK;
	}
	if (reply.result == HTTP_OK &&
	    (reply.status == 409 || reply.status == 404 || reply.status == 412))
		return BATON_OUTCOME_REFUSED; /* broken, or another's lease, or the blob is gone */
	return azblob_fail(l, call, &reply);
}

int azblob_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id)
{
	struct azblob_lane *l = lane;

	if (azblob_log_in(l, call) != 0) {
		lock_forget(l->store, name, lease_id);
		return BATON_OUTCOME_FAILED;
	}
	return send_release(l, call, name, lease_id);
}
