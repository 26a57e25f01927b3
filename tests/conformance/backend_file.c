/*
 * backend_file.c: the file store, as somebody with a shell on the same machine treats it: files are
 * removed, overwritten and edited, folders moved away and locked up. It knows the layout that
 * baton-file(7) describes, and uses nothing of the driver.
 */
#include "backend.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEQ_DIGITS 20
#define PATH_SIZE 2048
#define TEXT_SIZE 8192

static const char *const parts[] = {"leases", "elections", "tmp"};

static const char *folder(const struct testcase *t)
{
	return t->url + strlen("file:");
}

/* ---- small files ---- */

static bool read_text(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

/* Complete or not at all, as an editor saves. */
static bool write_text(const char *path, const char *text)
{
	char fresh[PATH_SIZE + 8];

	snprintf(fresh, sizeof(fresh), "%s.new~", path);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t n = strlen(text);
	bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;

	if (fd >= 0)
		close(fd);
	return ok && rename(fresh, path) == 0;
}

/* The value of a line "key value"; false: there is none. */
static bool get_line(const char *text, const char *key, char *value, size_t size)
{
	char words[32];

	snprintf(words, sizeof(words), "\n%s ", key);
	const char *at = strstr(text, words);

	if (at == NULL)
		return false;
	at += strlen(words);
	snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* The text with another value in that line. */
static bool set_line(char *text, const char *key, const char *value)
{
	char words[32];
	char rest[TEXT_SIZE];

	snprintf(words, sizeof(words), "\n%s ", key);
	char *at = strstr(text, words);

	if (at == NULL)
		return false;
	at += strlen(words);
	snprintf(rest, sizeof(rest), "%s", at + strcspn(at, "\n"));
	snprintf(at, TEXT_SIZE - (size_t)(at - text), "%s%s", value, rest);
	return true;
}

static int unhex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static void decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		if (from[0] == '%' && isxdigit((unsigned char)from[1]) &&
		    isxdigit((unsigned char)from[2])) {
			*to++ = (char)(unhex(from[1]) * 16 + unhex(from[2]));
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* ---- finding an election by what stands in its claims ---- */

struct found {
	const char *name;
	int n;
	uint64_t seq; /* the highest claim */
	char dir[PATH_SIZE];
	char claim[PATH_SIZE];
};

static uint64_t highest_in(const char *dir)
{
	DIR *d = opendir(dir);
	uint64_t highest = 0;

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		if (strlen(e->d_name) != SEQ_DIGITS ||
		    strspn(e->d_name, "0123456789") != SEQ_DIGITS)
			continue;
		uint64_t seq = strtoull(e->d_name, NULL, 10);

		highest = seq > highest ? seq : highest;
	}
	if (d != NULL)
		closedir(d);
	return highest;
}

static void look(const char *dir, struct found *f)
{
	uint64_t seq = highest_in(dir);
	char claim[PATH_SIZE + 32];
	char text[TEXT_SIZE];
	char name[TEXT_SIZE];

	snprintf(claim, sizeof(claim), "%s/%020" PRIu64, dir, seq);
	if (seq == 0 || !read_text(claim, text) || !get_line(text, "election", name, sizeof(name)))
		return;
	decode(name);
	if (strcmp(name, f->name) != 0)
		return;
	f->n++;
	f->seq = seq;
	snprintf(f->dir, sizeof(f->dir), "%s", dir);
	snprintf(f->claim, sizeof(f->claim), "%.*s", PATH_SIZE - 1, claim);
}

static void walk(const char *dir, struct found *f)
{
	DIR *d = opendir(dir);

	look(dir, f);
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char sub[PATH_SIZE];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		int n = snprintf(sub, sizeof(sub), "%s/%s", dir, e->d_name);

		if (n > 0 && (size_t)n < sizeof(sub))
			walk(sub, f);
	}
	if (d != NULL)
		closedir(d);
}

static bool find(struct testcase *t, const char *name, struct found *f)
{
	char top[PATH_SIZE];

	*f = (struct found){.name = name};
	snprintf(top, sizeof(top), "%s/elections", folder(t));
	walk(top, f);
	return f->n == 1;
}

/* ---- places ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Root may do everything, also what its own permissions forbid; here it shall feel them. */
static bool drop_override(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (geteuid() != 0)
		return true;
	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	data[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
	return syscall(SYS_capset, &header, data) == 0;
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	snprintf(t->url, sizeof(t->url), "%s/%s", base_url, label);
	if (mkdir(base_url + strlen("file:"), 0700) != 0 && errno != EEXIST)
		return false;
	return mkdir(folder(t), 0700) == 0 && drop_override();
}

static void clean(const char *base_url, const char *label)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", base_url + strlen("file:"), label);
	remove_all(path);
	static const char *const beside[] = {"away", "pulse1", "pulse2"};

	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s.%s", base_url + strlen("file:"), label,
			 beside[i]);
		remove_all(path);
	}
}

static void pulse(struct testcase *t)
{
	char from[PATH_SIZE];
	char to[PATH_SIZE];

	snprintf(from, sizeof(from), "%s.pulse1", folder(t));
	snprintf(to, sizeof(to), "%s.pulse2", folder(t));
	int fd = open(from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	/* And now and then what a claim does. */
	if (write(fd, from, strlen(from)) > 0 && (now_ns() / (20 * MS)) % 8 == 0)
		fsync(fd);
	rename(from, to);
	close(fd);
}

/* ---- claims that end ---- */

static bool overwrite(const struct found *f)
{
	char text[TEXT_SIZE];
	char value[64];
	char path[PATH_SIZE + 64];

	if (!read_text(f->claim, text) || !get_line(text, "term", value, sizeof(value)))
		return false;
	snprintf(path, sizeof(path), "%s/%020" PRIu64, f->dir, f->seq + 1);
	uint64_t term = strtoull(value, NULL, 10) + 1;

	snprintf(value, sizeof(value), "%" PRIu64, term);
	if (!set_line(text, "term", value))
		return false;
	snprintf(value, sizeof(value), "%" PRIu64, f->seq + 1);
	return set_line(text, "seq", value) && set_line(text, "owner", "somebody-else") &&
	       set_line(text, "lease", "0123456789abcdef0123456789abcdef-1-1") &&
	       write_text(path, text);
}

/* The path of the lease that the present claim stands on. */
static bool lease_of(struct testcase *t, const struct found *f, char *path, size_t size)
{
	char text[TEXT_SIZE];
	char id[128];

	if (!read_text(f->claim, text) || !get_line(text, "lease", id, sizeof(id)))
		return false;
	snprintf(path, size, "%s/leases/%s", folder(t), id);
	return true;
}

static bool expire(const char *lease)
{
	char text[TEXT_SIZE];

	return read_text(lease, text) && set_line(text, "expires_ns", "1") &&
	       write_text(lease, text);
}

static bool unlock(struct testcase *t, const char *name)
{
	struct found f;
	char lease[PATH_SIZE];
	char alive[PATH_SIZE + 8];

	if (!find(t, name, &f) || !lease_of(t, &f, lease, sizeof(lease)))
		return false;
	snprintf(alive, sizeof(alive), "%s.alive", lease);
	return unlink(alive) == 0;
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	struct found f;
	char lease[PATH_SIZE];

	if (!find(t, name, &f) || !lease_of(t, &f, lease, sizeof(lease)))
		return false;
	switch (way) {
	case WAY_DELETED: remove_all(f.dir); return true;
	case WAY_OVERWRITTEN: return overwrite(&f);
	case WAY_SESSION: return unlink(lease) == 0 && unlock(t, name);
	case WAY_EXPIRED: return expire(lease);
	default: return false;
	}
}

/* ---- faults ---- */

/* A file stands where the folder was, so that it can't be made anew; in one step, so that it isn't
 * made in between. */
static bool down(struct testcase *t, bool is_down)
{
	char away[PATH_SIZE];

	snprintf(away, sizeof(away), "%s.away", folder(t));
	if (is_down && !write_text(away, "not a folder\n"))
		return false;
	if (renameat2(AT_FDCWD, away, AT_FDCWD, folder(t), RENAME_EXCHANGE) != 0)
		return false;
	return is_down || unlink(away) == 0;
}

static bool change_mode(struct testcase *t, const char *part, mode_t mode)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", folder(t), part);
	return chmod(path, mode) == 0 || errno == ENOENT;
}

/* A campaign in an election that is no folder but a file can't succeed. */
static bool fail_campaign(struct testcase *t, bool fails)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/elections", folder(t));
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return false;
	snprintf(path, sizeof(path), "%s/elections/%s", folder(t), t->name);
	return fails ? write_text(path, "not a folder\n") : unlink(path) == 0;
}

/* All else that writes does so in tmp first; it is told no until the next call of this. */
static bool fail(struct testcase *t, enum verb verb, unsigned n)
{
	if (verb == VERB_CAMPAIGN)
		return fail_campaign(t, n > 0);
	return change_mode(t, "tmp", n > 0 ? 0500 : 0700);
}

static bool forget(struct testcase *t)
{
	for (unsigned i = 0; i < 3; i++) {
		char path[PATH_SIZE];

		snprintf(path, sizeof(path), "%s/%s", folder(t), parts[i]);
		remove_all(path);
	}
	return true;
}

/* Also when the folder itself is away, which is where N7 forgets. */
static bool forget_anywhere(struct testcase *t)
{
	struct stat st;
	char away[PATH_SIZE];

	if (stat(folder(t), &st) == 0 && S_ISDIR(st.st_mode))
		return forget(t);
	snprintf(away, sizeof(away), "%s.away", folder(t));
	remove_all(away);
	return mkdir(away, 0700) == 0;
}

static bool deny(struct testcase *t, bool is_denied)
{
	bool ok = true;

	for (unsigned i = 0; i < 3; i++)
		ok = change_mode(t, parts[i], is_denied ? 0 : 0700) && ok;
	return ok;
}

static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct found f;
	char text[TEXT_SIZE];
	char value[32];

	snprintf(value, sizeof(value), "%" PRIu64, term);
	return find(t, name, &f) && read_text(f.claim, text) && set_line(text, "term", value) &&
	       write_text(f.claim, text);
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct found f;

	if (strlen(name) != length)
		return -1;
	find(t, name, &f);
	return f.n;
}

const struct backend backend_file = {
	.scheme = "file",
	.has_processes = true,
	.pushes = true,
	.proves_death = true,
	.shares_leases = true,
	.keeps_history = true,
	.is_durable = true,
	.place = place,
	.clean = clean,
	.pulse = pulse,
	.destroy = destroy,
	.ways = {[WAY_DELETED] = true,
		 [WAY_OVERWRITTEN] = true,
		 [WAY_SESSION] = true,
		 [WAY_EXPIRED] = true},
	.unlock = unlock,
	.down = down,
	.fail = fail,
	.forget = forget_anywhere,
	.deny = deny,
	.set_term = set_term,
	.count_name = count_name,
};
