/* key.c: keys, and the requests that are made of them. etcd.h has the list of keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "store/etcd/etcd.h"

/* ---- keys ---- */

static struct etcd_key make(const struct etcd_store *s, const char *kind, const char *name,
			    const char *rest)
{
	char encoded[3 * BATON_NAME_MAX + 1];
	struct etcd_key key;

	web_encode_name(name, encoded);
	(void)snprintf(key.text, sizeof(key.text), "%s%s%s/%s", s->options.prefix, kind, encoded,
		       rest);
	return key;
}

struct etcd_key etcd_claim_key(const struct etcd_store *s, const char *name, uint64_t lease)
{
	char hex[24] = "";

	if (lease != 0) /* as etcd's own package writes it */
		(void)snprintf(hex, sizeof(hex), "%" PRIx64, lease);
	return make(s, "/", name, hex);
}

struct etcd_key etcd_state_key(const struct etcd_store *s, const char *name, const char *what)
{
	return make(s, "/.election/", name, what);
}

struct etcd_key etcd_candidate_key(const struct etcd_store *s, const char *name, uint64_t lease)
{
	char hex[24] = "";

	if (lease != 0)
		(void)snprintf(hex, sizeof(hex), "%" PRIx64, lease);
	return make(s, ".candidate/", name, hex);
}

struct etcd_key etcd_lease_key(const struct etcd_store *s, uint64_t lease, const char *name)
{
	char encoded[3 * BATON_NAME_MAX + 1];
	char hex[24];

	web_encode_name(name, encoded);
	(void)snprintf(hex, sizeof(hex), "%" PRIx64, lease);
	return make(s, ".lease/", hex, encoded);
}

/* All of them end with a '/', or with a letter of their own. */
struct etcd_key etcd_key_end(const struct etcd_key *key)
{
	struct etcd_key end = *key;

	end.text[strlen(end.text) - 1]++;
	return end;
}

int etcd_key_read(const struct etcd_store *s, const char *key, char *name)
{
	static const struct {
		const char *begin;
		int kind;
	} kinds[] = {{"/.election/", 's'}, {".candidate/", 'o'}, {".lease/", 'o'}, {"/", 'c'}};
	size_t n = strlen(s->options.prefix);
	size_t i = 0;

	if (strncmp(key, s->options.prefix, n) != 0)
		return 0;
	key += n;
	while (i < 4 && strncmp(key, kinds[i].begin, strlen(kinds[i].begin)) != 0)
		i++;
	if (i == 4)
		return 0;
	key += strlen(kinds[i].begin);
	if (strcmp(kinds[i].begin, ".lease/") == 0) { /* the name stands behind the lease */
		key += strcspn(key, "/");
		key += *key == '/';
	}
	/* The name ends with the key, or where the next part of it begins. */
	struct url_part encoded = {key, strcspn(key, "/")};

	return url_decode(encoded, name, BATON_NAME_MAX + 1) ? kinds[i].kind : 0;
}

/* ---- requests ---- */

static void put_base64(struct bytes *b, const char *text)
{
	char small[BASE64_SIZE(ETCD_KEY_MAX)];
	size_t n = strlen(text);
	char *to = n <= ETCD_KEY_MAX ? small : malloc(BASE64_SIZE(n));

	if (to == NULL) {
		b->has_failed = true;
		return;
	}
	base64_encode(text, n, to);
	bytes_print(b, "\"%s\"", to);
	if (to != small)
		free(to);
}

void etcd_put_key(struct bytes *b, const char *member, const struct etcd_key *key)
{
	bytes_print(b, "\"%s\":", member);
	put_base64(b, key->text);
}

static void put_range(struct bytes *b, const struct etcd_key *key)
{
	struct etcd_key end = etcd_key_end(key);

	etcd_put_key(b, "key", key);
	bytes_print(b, ",");
	etcd_put_key(b, "range_end", &end);
}

/* Things in a list have commas between them. */
static void next(struct bytes *b)
{
	if (b->n > 0 && b->at[b->n - 1] == '}')
		bytes_print(b, ",");
}

void etcd_put(struct bytes *b, const struct etcd_key *key, const char *value, uint64_t lease)
{
	next(b);
	bytes_print(b, "{\"request_put\":{");
	etcd_put_key(b, "key", key);
	bytes_print(b, ",\"value\":");
	put_base64(b, value);
	bytes_print(b, ",\"lease\":\"%" PRIu64 "\"}}", lease);
}

void etcd_delete(struct bytes *b, const struct etcd_key *key)
{
	next(b);
	bytes_print(b, "{\"request_delete_range\":{");
	etcd_put_key(b, "key", key);
	bytes_print(b, "}}");
}

void etcd_compare(struct bytes *b, const struct etcd_key *key, bool is_range, const char *target,
		  uint64_t revision)
{
	bool is_mod = strcmp(target, "MOD") == 0;

	next(b);
	bytes_print(b, "{");
	if (is_range)
		put_range(b, key);
	else
		etcd_put_key(b, "key", key);
	bytes_print(b, ",\"target\":\"%s\",\"result\":\"EQUAL\",\"%s_revision\":\"%" PRIu64 "\"}",
		    target, is_mod ? "mod" : "create", revision);
}

void etcd_compare_value(struct bytes *b, const struct etcd_key *key, const char *value)
{
	next(b);
	bytes_print(b, "{");
	etcd_put_key(b, "key", key);
	bytes_print(b, ",\"target\":\"VALUE\",\"result\":\"EQUAL\",\"value\":");
	put_base64(b, value);
	bytes_print(b, "}");
}

void etcd_range(struct bytes *b, const struct etcd_key *key, bool first)
{
	next(b);
	bytes_print(b, "{\"request_range\":{");
	put_range(b, key);
	if (first)
		bytes_print(
			b, ",\"limit\":\"1\",\"sort_order\":\"ASCEND\",\"sort_target\":\"CREATE\"");
	bytes_print(b, "}}");
}
