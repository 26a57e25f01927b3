/*
 * list.c: the names of elections, from the folders in elections/. A folder that has neither a claim
 * nor a pause in it is only watched, and not an election yet. Nothing here decides who leads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/file/file.h"
#include "store/names.h"

#define DEPTH_MAX 8 /* folders of one name, with PIECE_MAX bytes each */

static int list_folder(struct file_lane *lane, int at, const char *path, int depth,
		       struct store_names *names);

/* The path of an entry below elections/: a piece of a longer name ends in '+'. */
static int list_entry(struct file_lane *lane, int at, const char *path, const char *entry,
		      int depth, struct store_names *names)
{
	char below[FILE_PATH_SIZE];
	char name[BATON_NAME_MAX + 1];
	int n = snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "/" : "", entry);
	size_t length = strlen(entry);

	if (n < 0 || (size_t)n >= sizeof(below))
		return 0;
	if (length > 0 && entry[length - 1] == '+') {
		int dir = openat(at, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (dir < 0)
			return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
				       ? 0
				       : file_errno(lane, "open", "elections", below);
		return list_folder(lane, dir, below, depth + 1, names);
	}
	if (file_name_of(below, name) == 0)
		store_names_add(names, name);
	return 0;
}

/* Closes the descriptor. */
static int list_folder(struct file_lane *lane, int at, const char *path, int depth,
		       struct store_names *names)
{
	DIR *stream = at >= 0 && depth < DEPTH_MAX ? fdopendir(at) : NULL;
	int result = 0;

	if (stream == NULL) {
		if (at >= 0)
			(void)close(at);
		return depth < DEPTH_MAX ? file_errno(lane, "read", "elections", path) : 0;
	}
	for (struct dirent *e; result == 0 && (e = readdir(stream)) != NULL;)
		if (e->d_name[0] != '.')
			result = file_in_time(lane) != 0 ? -1
							 : list_entry(lane, dirfd(stream), path,
								      e->d_name, depth, names);
	(void)closedir(stream);
	return result;
}

/* 1: the election has had a leader, or is paused; 0: it is only watched, or was removed
 * meanwhile. */
static int is_election(struct file_lane *lane, const char *name)
{
	struct file_folder folder;
	char path[FILE_PATH_SIZE];
	bool missing;

	if (file_in_time(lane) != 0)
		return -1;
	file_path_of(name, path);
	int dir = file_open_election(lane, path, false, &missing);

	if (dir < 0)
		return missing ? 0 : -1;
	int result = file_read_folder(lane, dir, name, &folder);

	(void)close(dir);
	return result != 0 ? -1 : folder.highest != 0 || folder.paused;
}

/* Lists one page of folders. Adds to *told how many of them are elections. */
static int list_page(struct file_lane *lane, struct store_names *names,
		     void (*found)(void *arg, const char *name), void *arg, size_t *told)
{
	int at = openat(lane->root->elections, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = list_folder(lane, at, "", 0, names);

	if (result == 0 && names->failed)
		result = store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a list");
	store_names_sort(names);
	for (size_t i = 0; result == 0 && i < names->n; i++) {
		int is = is_election(lane, names->list[i]);

		if (is == 1) {
			found(arg, names->list[i]);
			(*told)++;
		}
		result = is < 0 ? -1 : 0;
	}
	return result;
}

int file_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	      void (*found)(void *arg, const char *name), void *arg)
{
	struct file_lane *lane = l;
	char last[BATON_NAME_MAX + 1];
	size_t told = 0;
	bool more = max > 0;
	int result = file_enter(lane, call, false);

	(void)snprintf(last, sizeof(last), "%s", after);
	/* A page of folders that are only watched must not look like the end. */
	while (result == 0 && more && told == 0) {
		struct store_names names = {.prefix = prefix, .after = last, .max = max};

		result = list_page(lane, &names, found, arg, &told);
		more = names.n == max;
		if (result == 0 && more)
			(void)snprintf(last, sizeof(last), "%s", names.list[names.n - 1]);
		store_names_done(&names);
	}
	file_leave(lane);
	return result == 0 ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}
