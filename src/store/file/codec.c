/*
 * codec.c: see codec.h. Each kind of file is a table of fields; one parser and one writer serve
 * all.
 */
#include "store/file/codec.h"

#include <stdio.h>
#include <string.h>

enum field_type {
	FIELD_COUNT,  /* uint64_t in [min, max] */
	FIELD_SIGNED, /* int64_t in [-min, max] */
	FIELD_NAME,   /* UTF-8 without control characters, up to `size` with its NUL */
	FIELD_DATA,   /* any bytes but NUL */
	FIELD_ID,     /* a lease's id */
	FIELD_BOOT,   /* a boot's id */
};

struct field {
	const char *key;
	size_t at;
	size_t size;
	uint64_t min;
	uint64_t max;
	enum field_type type;
};

struct shape {
	const char *head;
	size_t n;
	const struct field *fields;
};

#define PIECE_MAX 200 /* bytes of one folder's name, well below any NAME_MAX */
#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define OF(s, m) #m, offsetof(struct s, m), sizeof(((struct s *)0)->m)
#define COUNT(s, m, low, high)                   \
	{                                        \
		OF(s, m), low, high, FIELD_COUNT \
	}
#define SIGNED(s, m, low, high)                   \
	{                                         \
		OF(s, m), low, high, FIELD_SIGNED \
	}
#define TEXT(s, m, type)             \
	{                            \
		OF(s, m), 0, 0, type \
	}

static const struct field claim_fields[] = {
	COUNT(file_claim, seq, 1, UINT64_MAX),
	COUNT(file_claim, term, 1, INT64_MAX),
	COUNT(file_claim, nonce, 0, UINT64_MAX),
	COUNT(file_claim, ttl_ns, 1, INT64_MAX),
	COUNT(file_claim, timens, 0, UINT64_MAX),
	COUNT(file_claim, since_ns, 0, INT64_MAX),
	SIGNED(file_claim, since_ms, INT64_MAX, INT64_MAX),
	SIGNED(file_claim, priority, (uint64_t)INT32_MAX + 1, INT32_MAX),
	COUNT(file_claim, score_permille, 0, UINT32_MAX),
	TEXT(file_claim, boot, FIELD_BOOT),
	TEXT(file_claim, lease, FIELD_ID),
	TEXT(file_claim, election, FIELD_NAME),
	TEXT(file_claim, owner, FIELD_NAME),
	TEXT(file_claim, address, FIELD_NAME),
	TEXT(file_claim, metadata, FIELD_DATA),
	TEXT(file_claim, after, FIELD_NAME),
};

static const struct field end_fields[] = {
	COUNT(file_end, seq, 1, UINT64_MAX),
	COUNT(file_end, timens, 0, UINT64_MAX),
	COUNT(file_end, until_ns, 0, INT64_MAX),
	COUNT(file_end, reserved_until_ns, 0, UINT64_MAX),
	SIGNED(file_end, until_ms, INT64_MAX, INT64_MAX),
	TEXT(file_end, boot, FIELD_BOOT),
	TEXT(file_end, reason, FIELD_NAME),
	TEXT(file_end, reserved_for, FIELD_NAME),
	TEXT(file_end, note, FIELD_NAME),
};

static const struct field lease_fields[] = {
	COUNT(file_lease, serial, 1, UINT64_MAX), COUNT(file_lease, expires_ns, 1, INT64_MAX),
	COUNT(file_lease, ttl_ns, 1, INT64_MAX),  COUNT(file_lease, timens, 0, UINT64_MAX),
	COUNT(file_lease, pid, 1, INT32_MAX),     COUNT(file_lease, outlive, 0, 1),
	TEXT(file_lease, id, FIELD_ID),           TEXT(file_lease, boot, FIELD_BOOT),
	TEXT(file_lease, owner, FIELD_NAME),
};

static const struct field candidate_fields[] = {
	SIGNED(file_candidate, updated_ms, INT64_MAX, INT64_MAX),
	SIGNED(file_candidate, priority, (uint64_t)INT32_MAX + 1, INT32_MAX),
	COUNT(file_candidate, score_permille, 0, UINT32_MAX),
	COUNT(file_candidate, is_healthy, 0, 1),
	TEXT(file_candidate, election, FIELD_NAME),
	TEXT(file_candidate, owner, FIELD_NAME),
	TEXT(file_candidate, address, FIELD_NAME),
	TEXT(file_candidate, metadata, FIELD_DATA),
};

static const struct field order_fields[] = {
	COUNT(file_order, id, 1, UINT64_MAX),
	COUNT(file_order, term, 1, INT64_MAX),
	COUNT(file_order, quiet_ms, 0, UINT64_MAX),
	COUNT(file_order, kind, 1, 2),
	SIGNED(file_order, issued_ms, INT64_MAX, INT64_MAX),
	TEXT(file_order, target, FIELD_NAME),
	TEXT(file_order, note, FIELD_NAME),
};

static const struct shape claim_shape = {"baton claim 1", N_OF(claim_fields), claim_fields};
static const struct shape end_shape = {"baton end 1", N_OF(end_fields), end_fields};
static const struct shape lease_shape = {"baton lease 1", N_OF(lease_fields), lease_fields};
static const struct shape candidate_shape = {"baton candidate 1", N_OF(candidate_fields),
					     candidate_fields};
static const struct shape order_shape = {"baton order 1", N_OF(order_fields), order_fields};

static const char tail[] = "complete";
static const char hex[] = "0123456789abcdef";

static int parse_record(const struct shape *shape, const char *text, size_t n, void *out);
static size_t write_record(const struct shape *shape, const void *from, char *out);

int file_parse_claim(const char *text, size_t n, struct file_claim *out)
{
	return parse_record(&claim_shape, text, n, out);
}

int file_parse_end(const char *text, size_t n, struct file_end *out)
{
	return parse_record(&end_shape, text, n, out);
}

int file_parse_lease(const char *text, size_t n, struct file_lease *out)
{
	return parse_record(&lease_shape, text, n, out);
}

int file_parse_candidate(const char *text, size_t n, struct file_candidate *out)
{
	return parse_record(&candidate_shape, text, n, out);
}

int file_parse_order(const char *text, size_t n, struct file_order *out)
{
	return parse_record(&order_shape, text, n, out);
}

size_t file_write_claim(const struct file_claim *claim, char *out)
{
	return write_record(&claim_shape, claim, out);
}

size_t file_write_end(const struct file_end *end, char *out)
{
	return write_record(&end_shape, end, out);
}

size_t file_write_lease(const struct file_lease *lease, char *out)
{
	return write_record(&lease_shape, lease, out);
}

size_t file_write_candidate(const struct file_candidate *candidate, char *out)
{
	return write_record(&candidate_shape, candidate, out);
}

size_t file_write_order(const struct file_order *order, char *out)
{
	return write_record(&order_shape, order, out);
}

/* ---- values ---- */

/* Whether the text is UTF-8 in its shortest form, without surrogates and control characters. */
static bool is_clean_text(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p != '\0') {
		uint32_t c = *p++;
		int more = c < 0x80 ? 0 : c < 0xc2 ? -1 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
		uint32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;

		if (more == 0 && (c < 0x20 || c == 0x7f))
			return false;
		if (more == 0)
			continue;
		if (more < 0 || c > 0xf4)
			return false;
		c &= 0x3fu >> more;
		for (int i = 0; i < more; i++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			c = c << 6 | (*p++ & 0x3f);
		}
		if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
	}
	return true;
}

bool file_is_lease_id(const char *id)
{
	size_t n = strspn(id, "0123456789abcdef-");

	return n > 0 && n <= BATON_LEASE_ID_MAX && id[n] == '\0';
}

static bool is_boot_id(const char *id)
{
	return strspn(id, "0123456789abcdef-") == FILE_BOOT_ID && id[FILE_BOOT_ID] == '\0';
}

static bool suits(const struct field *f, const char *value)
{
	switch (f->type) {
	case FIELD_NAME: return is_clean_text(value);
	case FIELD_ID: return file_is_lease_id(value);
	case FIELD_BOOT: return is_boot_id(value);
	default: return true;
	}
}

/* Decimal, without sign, blanks or zeros in front. */
static int parse_number(const char *text, size_t n, uint64_t *out)
{
	uint64_t value = 0;

	if (n == 0 || n > 20 || (n > 1 && text[0] == '0'))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' ||
		    __builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -1;
	}
	*out = value;
	return 0;
}

static int parse_signed(const struct field *f, const char *text, size_t n, int64_t *out)
{
	bool minus = n > 0 && text[0] == '-';
	uint64_t value;

	if (parse_number(text + minus, n - minus, &value) != 0 ||
	    value > (minus ? f->min : f->max) || (minus && value == 0))
		return -1;
	*out = minus ? -(int64_t)value : (int64_t)value;
	return 0;
}

static int hex_digit(char c)
{
	const char *at = c != '\0' ? strchr(hex, c) : NULL;

	return at != NULL ? (int)(at - hex) : -1;
}

static bool stands_for_itself(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '%';
}

/* Decodes only what encode_text() makes, so that each string has only one text. */
static int decode_text(const char *text, size_t n, char *out, size_t size,
		       bool (*plain)(unsigned char c))
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '%') {
			int high = n - i > 2 ? hex_digit(text[i + 1]) : -1;
			int low = n - i > 2 ? hex_digit(text[i + 2]) : -1;

			c = (unsigned char)(high * 16 + low);
			if (high < 0 || low < 0 || c == '\0' || plain(c))
				return -1;
			i += 2;
		} else if (!plain(c)) {
			return -1;
		}
		if (used + 1 >= size)
			return -1;
		out[used++] = (char)c;
	}
	out[used] = '\0';
	return 0;
}

static size_t encode_text(const char *from, char *out, size_t room, bool (*plain)(unsigned char c))
{
	size_t used = 0;

	for (; *from != '\0'; from++) {
		unsigned char c = (unsigned char)*from;

		if (room - used < 4)
			return SIZE_MAX;
		if (plain(c)) {
			out[used++] = (char)c;
			continue;
		}
		out[used++] = '%';
		out[used++] = hex[c >> 4];
		out[used++] = hex[c & 15];
	}
	out[used] = '\0';
	return used;
}

/* ---- files ---- */

static int parse_field(const struct field *f, const char *value, size_t n, void *out)
{
	char *at = (char *)out + f->at;
	uint64_t count;
	int64_t number;

	switch (f->type) {
	case FIELD_COUNT:
		if (parse_number(value, n, &count) != 0 || count < f->min || count > f->max)
			return -1;
		memcpy(at, &count, sizeof(count));
		return 0;
	case FIELD_SIGNED:
		if (parse_signed(f, value, n, &number) != 0)
			return -1;
		memcpy(at, &number, sizeof(number));
		return 0;
	default:
		if (decode_text(value, n, at, f->size, stands_for_itself) != 0 || !suits(f, at))
			return -1;
		return 0;
	}
}

/* Takes a line off the text; it must begin with these words. The rest of the line is the value. */
static int take_line(const char **text, size_t *n, const char *words, const char **value,
		     size_t *value_n)
{
	size_t skip = strlen(words);
	const char *end = memchr(*text, '\n', *n);

	if (end == NULL)
		return -1;
	size_t line = (size_t)(end - *text);

	if (line < skip || memcmp(*text, words, skip) != 0)
		return -1;
	*value = *text + skip;
	*value_n = line - skip;
	*text += line + 1;
	*n -= line + 1;
	return 0;
}

static int parse_record(const struct shape *shape, const char *text, size_t n, void *out)
{
	const char *value;
	size_t value_n;
	char words[FILE_WORD_MAX + 2];

	if (n > FILE_TEXT_MAX || take_line(&text, &n, shape->head, &value, &value_n) != 0 ||
	    value_n != 0)
		return -1;
	for (size_t i = 0; i < shape->n; i++) {
		const struct field *f = &shape->fields[i];

		(void)snprintf(words, sizeof(words), "%s ", f->key);
		if (take_line(&text, &n, words, &value, &value_n) != 0 ||
		    parse_field(f, value, value_n, out) != 0)
			return -1;
	}
	if (take_line(&text, &n, tail, &value, &value_n) != 0 || value_n != 0 || n != 0)
		return -1;
	return 0;
}

static size_t write_field(const struct field *f, const void *from, char *out, size_t room)
{
	const char *at = (const char *)from + f->at;
	uint64_t count;
	int64_t number;
	int n;

	switch (f->type) {
	case FIELD_COUNT:
		memcpy(&count, at, sizeof(count));
		if (count < f->min || count > f->max)
			return SIZE_MAX;
		n = snprintf(out, room, "%llu", (unsigned long long)count);
		return (size_t)n < room ? (size_t)n : SIZE_MAX;
	case FIELD_SIGNED:
		memcpy(&number, at, sizeof(number));
		if (number < -(int64_t)f->min || (number > 0 && (uint64_t)number > f->max))
			return SIZE_MAX;
		n = snprintf(out, room, "%lld", (long long)number);
		return (size_t)n < room ? (size_t)n : SIZE_MAX;
	default:
		if (memchr(at, '\0', f->size) == NULL || !suits(f, at))
			return SIZE_MAX;
		return encode_text(at, out, room, stands_for_itself);
	}
}

static size_t write_record(const struct shape *shape, const void *from, char *out)
{
	size_t used = (size_t)snprintf(out, FILE_TEXT_MAX, "%s\n", shape->head);

	for (size_t i = 0; i < shape->n; i++) {
		const struct field *f = &shape->fields[i];
		int n = snprintf(out + used, FILE_TEXT_MAX - used, "%s ", f->key);

		if (n < 0 || (size_t)n + 64 >= FILE_TEXT_MAX - used)
			return 0;
		used += (size_t)n;
		size_t value = write_field(f, from, out + used, FILE_TEXT_MAX - used - 32);

		if (value == SIZE_MAX)
			return 0;
		used += value;
		out[used++] = '\n';
	}
	return used + (size_t)snprintf(out + used, FILE_TEXT_MAX - used, "%s\n", tail);
}

/* ---- names as paths ---- */

static bool stands_in_path(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

void file_path_of(const char *name, char out[FILE_PATH_SIZE])
{
	char flat[BATON_NAME_MAX * 3 + 4];
	size_t used = 0;
	size_t piece = 0;
	size_t n = encode_text(name, flat, sizeof(flat), stands_in_path);

	for (size_t i = 0; n != SIZE_MAX && i < n;) {
		size_t take = flat[i] == '%' ? 3 : 1;

		if (piece + take > PIECE_MAX) {
			out[used++] = '+';
			out[used++] = '/';
			piece = 0;
		}
		if (flat[i] == '.' && piece == 0) { /* so that no piece is hidden, or ".." */
			memcpy(out + used, "%2e", 3);
			used += 3;
			piece += 3;
			i++;
			continue;
		}
		memcpy(out + used, flat + i, take);
		used += take;
		piece += take;
		i += take;
	}
	out[used] = '\0';
}

int file_name_of(const char *path, char out[BATON_NAME_MAX + 1])
{
	char flat[FILE_PATH_SIZE];
	char again[FILE_PATH_SIZE];
	size_t used = 0;
	size_t n = strlen(path);

	if (n >= sizeof(flat))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (path[i] == '+' && path[i + 1] == '/') {
			i++;
		} else if (strncmp(path + i, "%2e", 3) == 0) {
			flat[used++] = '.';
			i += 2;
		} else {
			flat[used++] = path[i];
		}
	}
	if (used == 0 || decode_text(flat, used, out, BATON_NAME_MAX + 1, stands_in_path) != 0)
		return -1;
	/* Each name has only one path, so a path that isn't this one is not ours. */
	file_path_of(out, again);
	return strcmp(path, again) == 0 ? 0 : -1;
}
