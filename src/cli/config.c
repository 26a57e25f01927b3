/*
 * config.c: the configuration file: "key = value" lines; what stands before the first section is
 * for all elections, what stands in [NAME] for the election NAME. Lines that begin with '#' or ';'
 * are comments. Keys are the long options' names.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

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

/*
 * Twice through the file: what is for all first, then what is for this election, so that the
 * section wins wherever it stands.
 */
static int pass(FILE *in, const char *path, const char *election, bool sections,
		int (*set)(void *arg, const char *key, const char *value, const char *where),
		void *arg)
{
	bool is_meant = !sections;
	char *buffer = NULL;
	size_t size = 0;
	int code = 0;

	for (int number = 1; code == 0 && getline(&buffer, &size, in) >= 0; number++) {
		char where[400];
		char *line = trim(buffer);

		(void)snprintf(where, sizeof(where), "%.300s:%d", path, number);
		if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
			continue;
		if (line[0] == '[') {
			int meant = section(line, election);

			if (meant < 0)
				code = cli_usage("%s: a section is written [NAME]", where);
			is_meant = sections && meant == 1;
			continue;
		}
		char *equals = strchr(line, '=');

		if (equals == NULL) {
			code = cli_usage("%s: a line is \"key = value\"", where);
		} else if (is_meant) {
			*equals = '\0';
			code = set(arg, trim(line), trim(equals + 1), where);
		}
	}
	free(buffer);
	return code;
}

int config_read(const char *path, bool must_exist, const char *election,
		int (*set)(void *arg, const char *key, const char *value, const char *where),
		void *arg)
{
	FILE *in = fopen(path, "re");

	if (in == NULL && !must_exist && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (in == NULL)
		return cli_usage("the configuration file %s can't be read: %s", path,
				 strerror(errno));
	int code = pass(in, path, election, false, set, arg);

	rewind(in);
	if (code == 0)
		code = pass(in, path, election, true, set, arg);
	(void)fclose(in);
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
