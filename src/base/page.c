/* page.c: where pages are, which clock they count by, and whose they are. */
#include "base/page.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

#define FLAT_MAX 200
#define TRIES 1000 /* each takes less than a microsecond, and so does a writer */

/* In any locale: writer and readers have to agree. */
static bool stands_for_itself(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/*
 * An ASCII letter, a digit, '-' or '_' stands for itself, and so does a '.' that is not the first
 * character; the rest is %xx. A name that gets too long is replaced by its hash. The page has the
 * name itself, so that no page is taken for another one.
 *
 * Not as the file store does it: there a folder has to tell the name, on any file system. A page is
 * only looked for, by its name, and lies in memory; it is one file that others find easily.
 */
int page_path(const char *dir, const char *name, char path[PAGE_PATH_MAX])
{
	char flat[3 * PAGE_WORD_MAX + 1];
	size_t n = 0;

	for (const char *c = name; *c != '\0' && n + 4 < sizeof(flat); c++) {
		if (stands_for_itself((unsigned char)*c) || (*c == '.' && c != name))
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

static void put_word(_Atomic uint64_t *to, const char *text)
{
	uint64_t words[PAGE_WORD_MAX / 8] = {0};

	(void)memcpy(words, text, strnlen(text, sizeof(words) - 1));
	for (size_t i = 0; i < PAGE_WORD_MAX / 8; i++)
		atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

static void get_word(const _Atomic uint64_t *from, char text[PAGE_WORD_MAX])
{
	uint64_t words[PAGE_WORD_MAX / 8];

	for (size_t i = 0; i < PAGE_WORD_MAX / 8; i++)
		words[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
	(void)memcpy(text, words, sizeof(words));
	text[PAGE_WORD_MAX - 1] = '\0';
}

/* A writer that died between the two has left an odd number: the next one goes on from there. */
void page_put_names(struct page *p, const char *name, const char *id)
{
	uint64_t odd = atomic_load(&p->names) | 1;

	atomic_store(&p->names, odd);
	atomic_thread_fence(memory_order_release);
	put_word(p->name, name);
	put_word(p->id, id);
	atomic_store(&p->names, odd + 1);
}

int page_get_names(const struct page *p, char name[PAGE_WORD_MAX], char id[PAGE_WORD_MAX])
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = atomic_load(&p->names);

		get_word(p->name, name);
		get_word(p->id, id);
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load(&p->names) == before)
			return 0;
	}
	return -1;
}
