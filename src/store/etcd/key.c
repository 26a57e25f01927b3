/* key.c: keys; etcd.h lists them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/url.h"
#include "store/etcd/etcd.h"

static struct etcd_key key_make(const struct etcd_store *s, const char *kind, const char *name,
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
	return key_make(s, "/", name, hex);
}

struct etcd_key etcd_state_key(const struct etcd_store *s, const char *name, const char *what)
{
	return key_make(s, "/.election/", name, what);
}

struct etcd_key etcd_candidate_key(const struct etcd_store *s, const char *name, uint64_t lease)
{
	char hex[24] = "";

	if (lease != 0)
		(void)snprintf(hex, sizeof(hex), "%" PRIx64, lease);
	return key_make(s, ".candidate/", name, hex);
}

struct etcd_key etcd_lease_key(const struct etcd_store *s, uint64_t lease, const char *name)
{
	char encoded[3 * BATON_NAME_MAX + 1];
	char hex[24];

	web_encode_name(name, encoded);
	(void)snprintf(hex, sizeof(hex), "%" PRIx64, lease);
	return key_make(s, ".lease/", hex, encoded);
}

struct etcd_key etcd_history_key(const struct etcd_store *s, const char *name, uint64_t lease,
				 uint64_t nonce, const char *what)
{
	char rest[48] = "";

	if (what != NULL)
		(void)snprintf(rest, sizeof(rest), "%016" PRIx64 "%016" PRIx64 "%s", lease, nonce,
			       what);
	return key_make(s, ".history/", name, rest);
}

/* Our keys end with a '/' or a letter, so the last character has a next one. */
struct etcd_key etcd_key_end(const struct etcd_key *key)
{
	struct etcd_key end = *key;

	end.text[strlen(end.text) - 1]++;
	return end;
}

struct etcd_key etcd_nested_key(const struct etcd_key *claims, const char *segment)
{
	struct etcd_key key = *claims;
	size_t n = strlen(key.text);
	size_t size = strlen(segment);

	/* The segment stood in a key behind these claims, with a '/' behind it. So there is room
	 * for it. */
	if (n + size + 2 <= sizeof(key.text)) {
		(void)memcpy(key.text + n, segment, size);
		(void)memcpy(key.text + n + size, "/", 2);
	}
	return key;
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
	if (strcmp(kinds[i].begin, ".lease/") == 0) { /* the name comes after the lease */
		key += strcspn(key, "/");
		key += *key == '/';
	}
	/* The name ends at the end of the key, or at a '/'. */
	struct url_part encoded = {key, strcspn(key, "/")};
	const char *rest = key + encoded.n + (key[encoded.n] == '/');

	if (kinds[i].kind == 'c' && strchr(rest, '/') != NULL) /* another's (nested.c) */
		return 0;
	return url_decode(encoded, name, BATON_NAME_MAX + 1) ? kinds[i].kind : 0;
}
