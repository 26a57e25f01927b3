/* key.c: keys, and the operations of a transaction. consul.h lists the keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/consul/consul.h"

/* `consul lock`, and all programs with Consul's own package for locks, expect these flags. */
#define LOCK_FLAGS "3304740253564472344"

/* ---- keys ---- */

static struct consul_key key_make(const struct consul_store *s, const char *kind, const char *name,
				  const char *rest)
{
	char encoded[3 * BATON_NAME_MAX + 1];
	struct consul_key key;

	web_encode_name(name, encoded);
	(void)snprintf(key.text, sizeof(key.text), "%s%s%s%s", s->options.prefix, kind, encoded,
		       rest);
	return key;
}

struct consul_key consul_lock_key(const struct consul_store *s, const char *name)
{
	return key_make(s, "/", name, "/.lock");
}

struct consul_key consul_state_key(const struct consul_store *s, const char *name)
{
	return key_make(s, "/", name, "/.baton");
}

struct consul_key consul_tree_key(const struct consul_store *s, const char *name)
{
	return key_make(s, "/", name, name[0] != '\0' ? "/" : "");
}

struct consul_key consul_candidate_key(const struct consul_store *s, const char *name,
				       const char *session)
{
	char rest[CONSUL_SESSION_MAX + 2];

	(void)snprintf(rest, sizeof(rest), "/%s", session);
	return key_make(s, ".candidate/", name, rest);
}

struct consul_key consul_history_key(const struct consul_store *s, const char *name,
				     const char *session, uint64_t nonce, const char *what)
{
	char rest[CONSUL_SESSION_MAX + 32] = "/";

	if (what != NULL)
		(void)snprintf(rest, sizeof(rest), "/%.*s-%016" PRIx64 "%s", CONSUL_SESSION_MAX,
			       session, nonce, what);
	return key_make(s, ".history/", name, rest);
}

struct consul_key consul_count_key(const struct consul_store *s, const char *session)
{
	return key_make(s, ".lease/", session, "");
}

int consul_key_read(const struct consul_store *s, const char *key, char *name)
{
	size_t n = strlen(s->options.prefix);

	if (strncmp(key, s->options.prefix, n) != 0 || key[n] != '/')
		return 0;
	key += n + 1;
	const char *slash = strchr(key, '/');

	if (slash == NULL ||
	    !url_decode((struct url_part){key, (size_t)(slash - key)}, name, BATON_NAME_MAX + 1))
		return 0;
	return strcmp(slash, "/.lock") == 0 ? 'l' : strcmp(slash, "/.baton") == 0 ? 's' : 0;
}

/* ---- operations ---- */

void consul_begin(struct consul_lane *lane)
{
	(void)web_begin(&lane->web);
	bytes_print(&lane->web.body, "[");
	lane->n_ops = 0;
}

/* Names have no control characters, so there is little to escape for JSON. */
static void op_put_text(struct bytes *b, const char *member, const char *text)
{
	bytes_print(b, ",\"%s\":\"", member);
	for (size_t n; *text != '\0'; text += n) {
		n = strcspn(text, "\"\\");
		if (n > 0)
			bytes_print(b, "%.*s", (int)n, text);
		else
			bytes_print(b, "\\%c", text[n++]);
	}
	bytes_print(b, "\"");
}

static void op_put_value(struct bytes *b, const char *value)
{
	size_t n = strlen(value);
	char *text = malloc(BASE64_SIZE(n));

	if (text == NULL) {
		b->has_failed = true;
		return;
	}
	base64_encode(value, n, text);
	bytes_print(b, ",\"Value\":\"%s\"", text);
	free(text);
}

void consul_op(struct consul_lane *lane, const struct consul_op *op)
{
	const struct consul_options *o = &lane->store->options;
	struct bytes *b = &lane->web.body;

	bytes_print(b, "%s{\"KV\":{\"Verb\":\"%s\"", lane->n_ops++ > 0 ? "," : "", op->verb);
	op_put_text(b, "Key", op->key->text);
	if (op->value != NULL)
		op_put_value(b, op->value);
	if (op->session != NULL)
		op_put_text(b, "Session", op->session);
	if (op->has_index)
		bytes_print(b, ",\"Index\":%" PRIu64, op->index);
	if (op->is_lock)
		bytes_print(b, ",\"Flags\":" LOCK_FLAGS);
	if (o->ns[0] != '\0')
		op_put_text(b, "Namespace", o->ns);
	if (o->partition[0] != '\0')
		op_put_text(b, "Partition", o->partition);
	bytes_print(b, "}}");
}

void consul_op_check(struct consul_lane *lane, const struct consul_key *key, uint64_t index)
{
	struct consul_op op = {.verb = index != 0 ? "check-index" : "check-not-exists",
			       .key = key,
			       .index = index,
			       .has_index = index != 0};

	consul_op(lane, &op);
}

void consul_op_state(struct consul_lane *lane, const struct consul_key *key, const json_t *state,
		     uint64_t index)
{
	char *text = json_dumps(state, JSON_COMPACT);
	struct consul_op op = {.verb = "cas",
			       .key = key,
			       .value = text != NULL ? text : "",
			       .index = index,
			       .has_index = true};

	consul_op(lane, &op);
	lane->web.body.has_failed = lane->web.body.has_failed || text == NULL;
	free(text);
}

void consul_op_count(struct consul_lane *lane, const struct web_lease *lease, uint64_t n_claims)
{
	struct consul_key key = consul_count_key(lane->store, lease->name);
	char value[24];

	(void)snprintf(value, sizeof(value), "%" PRIu64, n_claims);
	struct consul_op op = {.verb = "cas",
			       .key = &key,
			       .value = value,
			       .index = lease->index,
			       .has_index = true};

	consul_op(lane, &op);
}
