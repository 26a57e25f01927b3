/*
 * isolate.c: --isolate: no descendant of the command escapes, whatever it does. In a PID namespace,
 * where one may be made: the kernel kills all in it when its first process ends. Else in a cgroup
 * of version 2 that was delegated to us, by its file cgroup.kill. Where neither can be had, nothing
 * is started.
 *
 * A cgroup is named after its guard, baton-PID-START. If supervisor and guard are killed together,
 * a successor that reads the work lock's record can tell that the guard is dead, and ends what the
 * guard has left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/guard.h"

/* 0, or why we may make no PID namespace. */
static int try_namespace(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare(CLONE_NEWPID) == 0 ? 0 : errno & 127);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

/* ---- where our cgroup is ---- */

/* The path of our cgroup in its hierarchy: the line "0::PATH". */
static bool own_path(char *out, size_t size)
{
	FILE *in = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 8];
	bool found = false;

	while (in != NULL && !found && fgets(line, sizeof(line), in) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0 && strstr(line, "/..") == NULL;
	}
	if (in != NULL)
		(void)fclose(in);
	return found && (size_t)snprintf(out, size, "%s", line + 3) < size;
}

/* "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT ... - cgroup2 ..." */
static bool is_mount(char *line, char **root, char **point)
{
	char *rest = strstr(line, " - ");
	char *save = NULL;

	if (rest == NULL || strncmp(rest + 3, "cgroup2 ", 8) != 0)
		return false;
	(void)strtok_r(line, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	*root = strtok_r(NULL, " ", &save);
	*point = strtok_r(NULL, " ", &save);
	return *point != NULL;
}

/* Our cgroup's directory. A mount may show only a part of the hierarchy: below its root. */
static bool own_folder(char *out, size_t size)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX];
	char path[PATH_MAX];
	bool found = false;

	while (in != NULL && !found && own_path(path, sizeof(path)) &&
	       fgets(line, sizeof(line), in) != NULL) {
		char *root = NULL;
		char *point = NULL;

		if (!is_mount(line, &root, &point))
			continue;
		size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

		found = strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
			(size_t)snprintf(out, size, "%s%s", point,
					 strcmp(path + n, "/") == 0 ? "" : path + n) < size;
	}
	if (in != NULL)
		(void)fclose(in);
	return found;
}

/* ---- the supervisor's part ---- */

void isolate_choose(struct guard_plan *plan)
{
	if (plan->isolate != ISOLATE_NO)
		plan->isolate = try_namespace() == 0 ? ISOLATE_NAMESPACE : ISOLATE_CGROUP;
}

static int make_group(char *path, size_t size, pid_t guard)
{
	char folder[PATH_MAX];
	char file[PATH_MAX + 16];

	if (!own_folder(folder, sizeof(folder))) {
		errno = ENOENT;
		return -1;
	}
	(void)snprintf(file, sizeof(file), "/baton-%d-%llu", (int)guard,
		       (unsigned long long)tree_start_time(guard));
	if (strlen(folder) + strlen(file) >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)sprintf(path, "%s%s", folder, file);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return -1;
	(void)snprintf(file, sizeof(file), "%s/cgroup.kill", path);
	if (access(file, W_OK) == 0)
		return 0;
	int error = errno == ENOENT ? ENOSYS : errno; /* a kernel before 5.14 */

	(void)rmdir(path);
	errno = error;
	return -1;
}

int isolate_make(const struct guard_plan *plan, pid_t guard)
{
	char *path = plan->page->cgroup;

	if (plan->isolate != ISOLATE_CGROUP ||
	    make_group(path, sizeof(plan->page->cgroup), guard) == 0)
		return 0;
	log_say(BATON_LOG_ERROR,
		"--isolate: neither a PID namespace nor a cgroup can be made here (%s: %s); run it "
		"as root, or in a unit with Delegate=yes",
		path[0] != '\0' ? path : "no cgroup of version 2", strerror(errno));
	path[0] = '\0';
	return EXIT_INTERNAL;
}

/* ---- entering, ending ---- */

static int write_to(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, strlen(text));
	int error = errno;

	(void)close(fd);
	errno = error;
	return n > 0 ? 0 : -1;
}

int isolate_enter(const struct guard_plan *plan)
{
	return plan->page->cgroup[0] != '\0' ? write_to(plan->page->cgroup, "cgroup.procs", "0")
					     : 0;
}

void isolate_kill(const struct guard_plan *plan)
{
	if (plan->page->cgroup[0] != '\0')
		(void)write_to(plan->page->cgroup, "cgroup.kill", "1");
}

void isolate_done(const struct guard_plan *plan)
{
	if (plan->page->cgroup[0] != '\0')
		(void)rmdir(plan->page->cgroup);
}

void isolate_end_left(const char *path, unsigned long long guard, unsigned long long start)
{
	const char *name = strrchr(path, '/');
	char wanted[64];
	struct stat st;

	(void)snprintf(wanted, sizeof(wanted), "/baton-%llu-%llu", guard, start);
	/* Only a cgroup that this dead guard of our own user has made. */
	if (path[0] != '/' || name == NULL || strcmp(name, wanted) != 0 || stat(path, &st) != 0 ||
	    st.st_uid != geteuid())
		return;
	(void)write_to(path, "cgroup.kill", "1");
	/* The cgroup is busy until the last process in it is dead. */
	for (int i = 0; i < 1000 && rmdir(path) != 0 && errno == EBUSY; i++)
		(void)poll(NULL, 0, 1);
}
