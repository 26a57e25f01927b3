/*
 * config.c: the configuration file: "key = value" lines; what stands before the first section is
 * for all elections, what stands in [NAME] for the election NAME. Lines that begin with '#' or ';'
 * are comments. Keys are the long options' names.
 *
 * It must never take a file that is there but can't be read for an empty one: the defaults would
 * name another store, and each host would have a leader of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define SIZE_LIMIT (1 << 20) /* of the file: a longer file is not a configuration */

/* A file, and the function that wants to know what is in it. */
struct source {
	const char *path;
	const char *election;
	int (*set)(void *arg, const char *key, const char *value, const char *where);
	void *arg;
};

static char *trim(char *text);

/* 1: the section is meant; 0: it isn't; negative: not a section. */
static int section(char *line, const char *election)
{
	size_t n = strlen(line);

	if (n < 2 || line[n - 1] != ']')
		return -1;
	line[n - 1] = '\0';
	return election[0] != '\0' && strcmp(trim(line + 1), election) == 0;
}

/* One line that says something. 0, or an exit code. */
static int read_line(const struct source *from, char *line, const char *where, bool is_meant)
{
	char *equals = strchr(line, '=');

	if (equals == NULL)
		return cli_usage("%s: the line has no \"=\"; write key = value", where);
	if (!is_meant)
		return 0;
	*equals = '\0';
	return from->set(from->arg, trim(line), trim(equals + 1), where);
}

/*
 * The text is read twice: first what is for all elections, then what is for this one, so that the
 * section wins wherever it stands. A pass takes the text apart, so each needs a copy of its own.
 */
static int config_pass(const struct source *from, char *text, bool sections)
{
	bool is_meant = !sections;
	int code = 0;
	char *next = text;

	for (int number = 1; code == 0 && next != NULL; number++) {
		char where[400];
		char *line = trim(strsep(&next, "\n"));

		(void)snprintf(where, sizeof(where), "%.300s:%d", from->path, number);
		if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
			continue;
		if (line[0] == '[') {
			int meant = section(line, from->election);

			if (meant < 0)
				code = cli_usage(
					"%s: the section does not end with \"]\"; write [NAME]",
					where);
			is_meant = sections && meant == 1;
		} else {
			code = read_line(from, line, where, is_meant);
		}
	}
	return code;
}

/* All of it, or NULL with errno. */
static char *config_read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	char *text = fd >= 0 ? malloc(SIZE_LIMIT + 1) : NULL;
	ssize_t n = text != NULL ? 1 : -1;

	*size = 0;
	while (n > 0 && *size <= SIZE_LIMIT) {
		n = read(fd, text + *size, SIZE_LIMIT + 1 - *size);
		*size += n > 0 ? (size_t)n : 0;
	}
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0) {
		free(text);
		text = NULL;
	}
	errno = error;
	return text;
}

/* A link that leads nowhere is not missing: a file was wanted. */
static bool is_missing(const char *path)
{
	struct stat st;

	return (errno == ENOENT || errno == ENOTDIR) && lstat(path, &st) != 0 &&
	       (errno == ENOENT || errno == ENOTDIR);
}

static int config_read_text(const struct source *from, char *text, size_t size)
{
	if (size > SIZE_LIMIT)
		return cli_usage("the configuration file %.300s has more than %d bytes", from->path,
				 SIZE_LIMIT);
	if (memchr(text, '\0', size) != NULL)
		return cli_usage("the configuration file %.300s has a zero byte; it must be UTF-8",
				 from->path);
	text[size] = '\0';
	char *copy = strdup(text);

	if (copy == NULL)
		return EXIT_INTERNAL;
	int code = config_pass(from, copy, false);

	free(copy);
	return code != 0 ? code : config_pass(from, text, true);
}

int config_read(const char *path, bool must_exist, const char *election,
		int (*set)(void *arg, const char *key, const char *value, const char *where),
		void *arg)
{
	const struct source from = {.path = path, .election = election, .set = set, .arg = arg};
	size_t size;
	char *text = config_read_file(path, &size);
	int error = errno;

	if (text == NULL && !must_exist && is_missing(path))
		return 0;
	if (text == NULL)
		return cli_usage("the configuration file %.300s can't be read: %s; make it "
				 "readable, or name another one with --config",
				 path, strerror(error));
	int code = config_read_text(&from, text, size);

	free(text);
	return code;
}

/* Without the blanks at both ends. */
static char *trim(char *text)
{
	size_t n = strlen(text);

	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}
