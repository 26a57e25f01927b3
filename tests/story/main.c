/*
 * main.c: the command `story`.
 *
 *   story FILE...                checks that every story comes true
 *   story --only NAME FILE...    checks one of them
 *   story --list FILE...         names them, with the sentence that each begins with
 *   story --update FILE...       writes what the core does now into the files, to be reviewed
 */
#include <stdio.h>
#include <string.h>

#include "story.h"

static int usage(void)
{
	(void)fputs("usage: story [--list | --update | --only NAME] FILE...\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	enum tale_mode mode = TALE_CHECK;
	struct tally_of_tales sum = {0};
	const char *only = NULL;
	int i = 1;

	if (i < argc && strcmp(argv[i], "--list") == 0) {
		mode = TALE_LIST;
		i++;
	} else if (i < argc && strcmp(argv[i], "--update") == 0) {
		mode = TALE_UPDATE;
		i++;
	} else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
		only = argv[i + 1];
		i += 2;
	}
	if (i >= argc || argv[i][0] == '-')
		return usage();
	for (; i < argc; i++) {
		if (!tale_file(argv[i], mode, only, &sum)) {
			perror(argv[i]);
			return 2;
		}
	}
	if (mode == TALE_LIST)
		return 0;
	printf("story: %zu passed, %zu failed\n", sum.passed, sum.failed);
	/* A run without a story proves nothing. */
	return sum.failed > 0 || sum.passed == 0;
}
