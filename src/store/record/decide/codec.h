/*
 * codec.h: records as text, and names as keys.
 *
 * Values are JSON objects with all fields in a fixed order, without blanks. 64-bit numbers are
 * strings, because many readers of JSON have doubles only. The parsers take exactly what the
 * writers make, and nothing else: all content is untrusted, and a record that is not valid must
 * stop us (S9). Writers and parsers are pure functions, made to be fuzzed.
 *
 *   l/  {"w":"8","ttl":"15000000000","beat":"3","owner":"a","address":"","dead":false}
 *   e/  {"w":"9","name":"orders","term":"7","lease":"1f-0-1","nonce":"4","ttl":"15000000000",
 *        "leader":"a","address":"","metadata":"","priority":0,"score":1000,"since":"1700000000000",
 *        "paused":false,"order":null,"reserved":null,
 *        "past":[{"term":"7","leader":"a","since":"1700000000000","until":"0","ended":"",
 *        "note":""}]}
 *   c/  {"w":"2","owner":"a","address":"","profiles":[{"metadata":"","priority":0,"score":1000,
 *        "healthy":true,"updated":"1700000000000"}],"names":[["orders",0]]}
 *
 * An order is {"id":"5","term":"7","kind":"resign","quiet":"0","target":"","note":""}, and a
 * reservation is {"for":"b","hold":"2000000000","term":"7"}. `dead` is false, or one word that says
 * why.
 */
#ifndef BATON_RECORD_CODEC_H
#define BATON_RECORD_CODEC_H

#include "store/record/decide/record.h"

/* No value of an l/ or e/ record is longer. */
#define RECORD_TEXT_MAX 28672

/* 0, or -1: the text is not exactly what the writer makes. *out is then undefined. */
int record_parse_lease(const char *text, size_t n, struct record_lease *out);
int record_parse_election(const char *text, size_t n, struct record_election *out);

/* The text's length, or 0: it doesn't fit, or a field has no valid value. */
size_t record_write_lease(const struct record_lease *lease, char *out, size_t size);
size_t record_write_election(const struct record_election *election, char *out, size_t size);

/* ---- candidates: a value that can be long is read and written piece by piece ---- */

struct record_profile {
	int64_t updated_ms;
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy;
	char metadata[BATON_METADATA_MAX + 1];
};

/* One page of c/LEASE that is being written: first the profiles, then the names. `n` is 0 if not
 * even the beginning fits. */
struct record_page {
	char *out;
	size_t size;
	size_t n;
	size_t n_profiles;
	size_t n_names;
};

void record_page_begin(struct record_page *p, char *out, size_t size, uint64_t w, const char *owner,
		       const char *address);
/* False: it doesn't fit, and the page is as it was. `profile` is the number of the name's profile,
 * from 0. */
bool record_page_add_profile(struct record_page *p, const struct record_profile *profile);
bool record_page_add_name(struct record_page *p, const char *name, size_t profile);
/* The text's length. */
size_t record_page_end(struct record_page *p);

/* One page, parsed. It points into the text. */
struct record_candidates {
	uint64_t w;
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	const char *text;
	size_t n;
	size_t profiles_at;
	size_t names_at;
	size_t n_profiles;
	size_t n_names;
};

/* Checks the whole page, so that the two functions below can't fail. */
int record_parse_candidates(const char *text, size_t n, struct record_candidates *out);
void record_candidates_profile(const struct record_candidates *from, size_t i,
			       struct record_profile *out);
/* The next name, from *at = 0 on; false: that was the last one. */
bool record_candidates_name(const struct record_candidates *from, size_t *at,
			    char name[BATON_NAME_MAX + 1], size_t *profile);

/* ---- keys ---- */

enum record_kind { RECORD_LEASES = 'l', RECORD_ELECTIONS = 'e', RECORD_CANDIDATES = 'c' };

/*
 * The key of a record: its kind, '/', and its name. Letters, digits and "-_./" stand for
 * themselves, and all else is written as "=XX". So are a '.' that begins a part of the name, and a
 * '/' that has no part before or behind it, because servers and proxies tidy up such paths. Returns
 * the key's length, or 0: the key doesn't fit, and a hash must stand for the name.
 */
size_t record_write_key(int kind, const char *name, char *out, size_t size);
/* The name that such a key stands for. -1: record_write_key() makes no such key. */
int record_parse_key(int kind, const char *key, char name[BATON_NAME_MAX + 1]);

#endif
