/*
 * profile.c: the files in which AWS' own tools keep profiles. They have sections of "key = value".
 *
 *     [default]
 *     aws_access_key_id = ...
 *     # a comment
 *     s3 =
 *       nested = 1      indented lines belong to the key above, and are skipped
 *
 * It must never copy a whole line: only the value that was asked for leaves this file.
 */
#include <string.h>

#include "store/s3/s3.h"

struct piece {
	const char *at;
	size_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trim(struct piece p)
{
	while (p.n > 0 && is_blank(p.at[0]))
		p.at++, p.n--;
	while (p.n > 0 && is_blank(p.at[p.n - 1]))
		p.n--;
	return p;
}

static bool is_same(struct piece p, const char *text)
{
	return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

static bool is_comment(char c)
{
	return c == '#' || c == ';';
}

/* Cuts off a comment at the end, which has a blank before it. */
static struct piece without_comment(struct piece p)
{
	for (size_t i = 1; i < p.n; i++)
		if (is_comment(p.at[i]) && is_blank(p.at[i - 1]))
			p.n = i;
	return trim(p);
}

/* Reads "[profile name]"; false: the line doesn't begin a section. */
static bool read_section(struct piece line, struct piece *out)
{
	const char *end = line.n > 0 ? memchr(line.at, ']', line.n) : NULL;

	if (line.n == 0 || line.at[0] != '[' || end == NULL)
		return false;
	*out = trim((struct piece){line.at + 1, (size_t)(end - line.at) - 1});
	return true;
}

bool s3_profile_get(const char *text, size_t n, const char *section, const char *key, char *out,
		    size_t size)
{
	const char *end = text + n;
	bool is_ours = false, is_found = false;

	out[0] = '\0';
	for (const char *at = text; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct piece line = {at, (size_t)((stop != NULL ? stop : end) - at)};
		struct piece name;

		at = stop != NULL ? stop + 1 : end;
		if (line.n == 0 || is_blank(line.at[0]) || is_comment(line.at[0]))
			continue;
		if (read_section(line, &name)) {
			is_ours = is_same(name, section);
			continue;
		}
		const char *equals = memchr(line.at, '=', line.n);

		if (!is_ours || equals == NULL ||
		    !is_same(trim((struct piece){line.at, (size_t)(equals - line.at)}), key))
			continue;
		struct piece value = without_comment(
			(struct piece){equals + 1, line.n - (size_t)(equals - line.at) - 1});

		if (value.n >= size || memchr(value.at, '\0', value.n) != NULL)
			return false;
		(void)memcpy(out, value.at, value.n);
		out[value.n] = '\0';
		is_found = value.n > 0;
	}
	return is_found;
}
