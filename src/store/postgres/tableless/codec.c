/*
 * codec.c: the tag. The text of a session's last statement begins with a comment, the tag, that has
 * the claim and its owner in it. Others of the same role read the tag in pg_stat_activity.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/tableless/tableless.h"

#define TAG_BEGIN "/* baton_tag "
#define FIELD '\x1f'

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_";

static void tag_encode(const char *text, size_t n, char *out)
{
	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = 0;

		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*out++ = digits[three >> (18 - 6 * k) & 63];
	}
	*out = '\0';
}

/* Decodes the tag that `at` begins with, and fills `out` up with zeros. False: there is no tag, or
 * it is cut off. */
static bool tag_decode(const char *at, char *out, size_t size)
{
	size_t n = strspn(at, digits);

	(void)memset(out, 0, size);
	if (n == 0 || n % 4 != 0 || strncmp(at + n, " */", 3) != 0 || n / 4 * 3 >= size)
		return false;
	for (size_t i = 0; i < n; i += 4) {
		uint32_t four = 0;

		for (size_t k = 0; k < 4; k++)
			four = four << 6 | (uint32_t)(strchr(digits, at[i + k]) - digits);
		for (size_t k = 0; k < 3; k++)
			*out++ = (char)(four >> (16 - 8 * k) & 255);
	}
	return true;
}

/* Makes the tag: lease, nonce, term, length of the lease, priority, score, since, owner, address,
 * metadata. A text of the last three that no longer fits is left out. */
void tableless_tag_make(const struct tableless_session *s, const struct baton_lease *lease,
			const struct baton_profile *p, char tag[TAG_SIZE])
{
	char text[TAG_MAX];
	const char *parts[] = {lease->owner, lease->address, p->metadata};
	int n = snprintf(text, sizeof(text),
			 "%s%c%" PRIu64 "%c%" PRIu64 "%c%" PRIu64 "%c%d%c%u%c%" PRId64, s->lease_id,
			 FIELD, s->nonce, FIELD, s->term, FIELD, lease->ttl_ns, FIELD,
			 (int)p->priority, FIELD, p->score_permille, FIELD, clock_wall_ms());

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t length = strlen(parts[i]);
		bool fits = (size_t)n + length + 4 < TAG_MAX / 4 * 3;

		n += snprintf(text + n, sizeof(text) - (size_t)n, "%c%s", FIELD,
			      fits ? parts[i] : "");
	}
	tag_encode(text, (size_t)n, tag);
}

char *tableless_tag_add(const char *tag, const char *sql)
{
	struct pg_text out = {0};

	pg_text_add(&out, TAG_BEGIN);
	pg_text_add(&out, tag);
	pg_text_add(&out, " */ ");
	pg_text_add(&out, sql);
	if (!out.failed)
		return out.at;
	pg_text_done(&out);
	return NULL;
}

static char *tag_next_field(char **rest)
{
	char *field = *rest;
	char end[] = {FIELD, '\0'};
	size_t n = strcspn(field, end);

	*rest = field + n + (field[n] != '\0');
	field[n] = '\0';
	return field;
}

/* Takes the next field. A field that is too long is cut off; no candidate writes such a field. */
static void tag_take_field(char **rest, char *out, size_t size)
{
	const char *field = tag_next_field(rest);
	size_t n = strnlen(field, size - 1);

	(void)memcpy(out, field, n);
	out[n] = '\0';
}

bool tableless_tag_read(const char *query, struct baton_record *out, uint64_t *ttl_ns)
{
	const char *at = strstr(query, TAG_BEGIN);
	char text[TAG_MAX];
	char *rest = text;

	if (at == NULL || !tag_decode(at + strlen(TAG_BEGIN), text, sizeof(text)))
		return false;
	tag_take_field(&rest, out->lease_id, sizeof(out->lease_id));
	out->nonce = strtoull(tag_next_field(&rest), NULL, 10);
	out->term = strtoull(tag_next_field(&rest), NULL, 10);
	*ttl_ns = strtoull(tag_next_field(&rest), NULL, 10);
	out->priority = (int32_t)strtol(tag_next_field(&rest), NULL, 10);
	out->score_permille = (uint32_t)strtoul(tag_next_field(&rest), NULL, 10);
	out->since_ms = strtoll(tag_next_field(&rest), NULL, 10);
	tag_take_field(&rest, out->leader, sizeof(out->leader));
	tag_take_field(&rest, out->address, sizeof(out->address));
	tag_take_field(&rest, out->metadata, sizeof(out->metadata));
	return out->term > 0 && out->leader[0] != '\0';
}
