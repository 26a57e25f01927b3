/*
 * nested.c: elections of other applications whose keys lie among the claims of one of ours.
 *
 * With prefix=a, the claims of the election "x" are a/x/LEASE. With prefix=a/x, the claims of the
 * election "y" are a/x/y/LEASE: they begin like claims of "x", but are not claims of "x". etcd
 * compares and reads whole ranges of keys. So we leave out all keys that begin with a/x/y/: a claim
 * of "x" has no further '/' behind the election's name, so no key below a/x/y/ is a claim of "x".
 * The rest is two ranges: from the first key to a/x/y/, and from behind that to the last key. Every
 * other election that is known makes one range more.
 *
 * Our list of such elections may be old. The keys of a new one stand in a range that is compared or
 * read. Then no candidate wins, the list is read anew, and the request is tried again. So a list
 * that is too short costs time. A list that is too long, because an election is gone, hides
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd/etcd.h"

#define PAGE 1000

struct etcd_nested {
	struct etcd_nested *next;
	size_t n;
	/* The parts between the '/' behind the election's name and the next '/', sorted. */
	char *segments[ETCD_NESTED_MAX];
	char name[BATON_NAME_MAX + 1];
};

static void nested_clear(struct etcd_nested *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->segments[i]);
	e->n = 0;
}

void etcd_nested_done(struct etcd_store *s)
{
	while (s->nested != NULL) {
		struct etcd_nested *e = s->nested;

		s->nested = e->next;
		nested_clear(e);
		free(e);
	}
}

/* With the lock held. NULL: none are known. */
static struct etcd_nested *nested_find(struct etcd_store *s, const char *name)
{
	struct etcd_nested *e = s->nested;

	while (e != NULL && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

/* ---- the ranges of the claims ---- */

typedef void put_range(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
		       const struct etcd_key *end);

/* Adds all ranges, and returns how many. The lock is held meanwhile, because the ranges must fit
 * together. */
static size_t put_ranges(struct bytes *b, enum etcd_part part, struct etcd_store *s,
			 const char *name, put_range *put)
{
	struct etcd_key all = etcd_claim_key(s, name, 0);
	struct etcd_key last = etcd_key_end(&all);
	struct etcd_key from = all;
	size_t n = 1;

	store_lock(&s->web.base);
	const struct etcd_nested *e = nested_find(s, name);

	for (size_t i = 0; e != NULL && i < e->n; i++, n++) {
		struct etcd_key inside = etcd_nested_key(&all, e->segments[i]);

		put(b, part, &from, &inside);
		from = etcd_key_end(&inside);
	}
	store_unlock(&s->web.base);
	put(b, part, &from, &last);
	return n;
}

static void put_get(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
		    const struct etcd_key *end)
{
	etcd_get_range(b, part, from, end, true);
}

static void put_compare(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
			const struct etcd_key *end)
{
	(void)part;
	etcd_compare(b, from, end, ETCD_IS_CREATE, 0);
}

size_t etcd_get_claims(struct bytes *b, enum etcd_part part, struct etcd_store *s, const char *name)
{
	return put_ranges(b, part, s, name, put_get);
}

void etcd_compare_no_claims(struct bytes *b, struct etcd_store *s, const char *name)
{
	(void)put_ranges(b, ETCD_COMPARE, s, name, put_compare);
}

/* ---- what was found in them ---- */

/* The '/' behind another election's segment in this key; NULL: the key is a claim of this
 * election. */
static const char *nested_end(const struct etcd_key *claims, const char *key)
{
	size_t n = strlen(claims->text);

	return strncmp(key, claims->text, n) == 0 ? strchr(key + n, '/') : NULL;
}

bool etcd_first_claim(const struct etcd_store *s, const char *name, struct proto txn, size_t at,
		      size_t n, struct proto *first)
{
	struct etcd_key claims = etcd_claim_key(s, name, 0);
	char key[ETCD_KEY_MAX];

	*first = (struct proto){NULL, 0};
	for (size_t i = at; i < at + n; i++) {
		struct proto kv = etcd_kv(txn, i);

		if (kv.at == NULL)
			continue;
		if (proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) &&
		    nested_end(&claims, key) != NULL)
			return false;
		if (first->at == NULL ||
		    proto_number(kv, ETCD_KV_CREATE) < proto_number(*first, ETCD_KV_CREATE))
			*first = kv;
	}
	return true;
}

/* ---- finding them ---- */

/* Adds the election that this key belongs to, unless the key is a claim, or the election is listed
 * already. 0; -1: no memory, or too many, with a sentence. */
static int nested_add(struct etcd_nested *e, struct baton_call *call, const struct etcd_key *claims,
		      const char *key)
{
	const char *segment = key + strlen(claims->text);
	const char *end = nested_end(claims, key);
	size_t size = end != NULL ? (size_t)(end - segment) : 0;

	if (end == NULL || (e->n > 0 && strlen(e->segments[e->n - 1]) == size &&
			    memcmp(e->segments[e->n - 1], segment, size) == 0))
		return 0;
	if (e->n == ETCD_NESTED_MAX)
		return store_fail(&call->error, BATON_E_UNSUPPORTED,
				  "more than %d elections of another application lie below %.100s: "
				  "its prefix begins like the claims of \"%.40s\"; give one of the "
				  "two another prefix",
				  ETCD_NESTED_MAX, claims->text, e->name);
	e->segments[e->n] = strndup(segment, size);
	if (e->segments[e->n] == NULL)
		return store_fail(&call->error, BATON_E_MEMORY, "no memory for a list of keys");
	e->n++;
	return 0;
}

/* A page of keys from `from` on, which moves; "": that was the last one. */
static int nested_read_page(struct etcd_lane *lane, struct baton_call *call,
			    const struct etcd_key *claims, struct etcd_nested *e,
			    struct etcd_key *from)
{
	struct etcd_key end = etcd_key_end(claims);
	char key[ETCD_KEY_MAX] = "";
	struct proto answer, kv;

	etcd_ask_keys(etcd_begin(lane), from, &end, PAGE);
	int outcome = etcd_call(lane, call, &etcd_range, &answer);
	bool is_last = proto_count(answer, ETCD_RANGE_KVS) < PAGE;

	for (struct proto rest = answer;
	     outcome == BATON_OUTCOME_OK && proto_next(&rest, ETCD_RANGE_KVS, &kv);)
		if (proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) &&
		    nested_add(e, call, claims, key) != 0)
			outcome = BATON_OUTCOME_FAILED;
	etcd_done(&answer);
	from->text[0] = '\0';
	if (outcome != BATON_OUTCOME_OK || is_last)
		return outcome;
	/* Goes on behind all keys of the last nested election, or behind the last key if that was a
	 * claim. */
	if (nested_end(claims, key) != NULL) {
		struct etcd_key inside = etcd_nested_key(claims, e->segments[e->n - 1]);

		*from = etcd_key_end(&inside);
	} else {
		(void)snprintf(from->text, sizeof(from->text), "%.*s\x01",
			       (int)sizeof(from->text) - 2, key);
	}
	return outcome;
}

/* Replaces the list of that election. */
static void nested_set(struct etcd_store *s, struct etcd_nested *e)
{
	store_lock(&s->web.base);
	struct etcd_nested **at = &s->nested;

	while (*at != NULL && strcmp((*at)->name, e->name) != 0)
		at = &(*at)->next;
	struct etcd_nested *old = *at;

	e->next = old != NULL ? old->next : NULL;
	*at = e;
	atomic_store(&s->has_nested, true);
	store_unlock(&s->web.base);
	if (old != NULL)
		nested_clear(old);
	free(old);
}

int etcd_learn_nested(struct etcd_lane *lane, struct baton_call *call, const char *name)
{
	struct etcd_key claims = etcd_claim_key(lane->store, name, 0);
	struct etcd_key from = claims;
	struct etcd_nested *e = calloc(1, sizeof(*e));
	int outcome = BATON_OUTCOME_OK;

	if (e == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list of keys");
		return BATON_OUTCOME_FAILED;
	}
	(void)snprintf(e->name, sizeof(e->name), "%s", name);
	while (outcome == BATON_OUTCOME_OK && from.text[0] != '\0')
		outcome = nested_read_page(lane, call, &claims, e, &from);
	if (outcome == BATON_OUTCOME_OK) {
		nested_set(lane->store, e);
		return outcome;
	}
	nested_clear(e);
	free(e);
	return BATON_OUTCOME_FAILED; /* FAILED: nothing was written */
}
