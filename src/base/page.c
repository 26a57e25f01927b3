/* page.c: where pages are, and which clock they count by. */
#include "base/page.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

#define FLAT_MAX 200

/* A letter, a digit, '-' or '_' stands for itself, and so does a '.' that is not the first
 * character; the rest is %xx. A name that gets too long is replaced by its hash. The page has the
 * name itself, so that no page is taken for another one. */
int page_path(const char *dir, const char *name, char path[PAGE_PATH_MAX])
{
	char flat[3 * PAGE_WORD_MAX + 1];
	size_t n = 0;

	for (const char *c = name; *c != '\0' && n + 4 < sizeof(flat); c++) {
		if (isalnum((unsigned char)*c) || *c == '-' || *c == '_' ||
		    (*c == '.' && c != name))
			flat[n++] = *c;
		else
			n += (size_t)sprintf(flat + n, "%%%02x", (unsigned)(unsigned char)*c);
	}
	flat[n] = '\0';
	if (n > FLAT_MAX)
		sha256_hex(name, strlen(name), flat);
	int size = snprintf(path, PAGE_PATH_MAX, "%s/%s.page", dir, flat);

	return size > 0 && size < PAGE_PATH_MAX ? 0 : -1;
}

void page_default_dir(char dir[PAGE_PATH_MAX])
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (geteuid() != 0 && own != NULL && own[0] == '/')
		(void)snprintf(dir, PAGE_PATH_MAX, "%.4000s/baton", own);
	else
		(void)snprintf(dir, PAGE_PATH_MAX, "/run/baton");
}

int page_clock(char boot_id[16], uint64_t *time_namespace)
{
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");
	struct stat st;
	size_t n = 0;
	int c;

	if (in == NULL)
		return -1;
	while (n < 32 && (c = fgetc(in)) != EOF) {
		int digit = isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;

		if (digit < 0)
			continue;
		boot_id[n / 2] = (char)(n % 2 == 0 ? digit << 4 : (boot_id[n / 2] | digit));
		n++;
	}
	(void)fclose(in);
	*time_namespace = stat("/proc/self/ns/time", &st) == 0 ? (uint64_t)st.st_ino : 0;
	return n == 32 ? 0 : -1;
}
