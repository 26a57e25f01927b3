/*
 * tree.c: processes as /proc shows them. A reaper of orphans finds here all that is left of what it
 * has started: a process that left the process group, or became a daemon, is its child by now.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/guard.h"

/* The field of /proc/PID/stat with this number, 0 for the dead; the name may hold anything. */
static uint64_t stat_field(pid_t pid, int number)
{
	char path[32];
	char text[1024];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	char *at = strrchr(text, ')');

	/* The third is the state: a process that waits to be reaped is dead, and may wait for
	 * long. */
	if (at != NULL && strlen(at) > 2 && strchr("ZX", at[2]) != NULL)
		return 0;
	for (int i = 2; at != NULL && i < number; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

/* False: there is no such link, or it can't be read. */
static bool same_target(const char *a, const char *b)
{
	struct stat sa;
	struct stat sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

bool tree_boot_offset(int64_t *ns)
{
	FILE *in = fopen("/proc/self/timens_offsets", "re");
	char line[128];
	bool found = false;

	*ns = 0;
	if (in == NULL) /* a kernel without time namespaces: there is one clock */
		return errno == ENOENT;
	while (!found && fgets(line, sizeof(line), in) != NULL) {
		char *at = line + strcspn(line, " \t");
		bool is_boot = strncmp(line, "boottime", 8) == 0 || strtol(line, NULL, 10) == 7;
		long long seconds = strtoll(at, &at, 10);

		found = is_boot;
		if (found)
			*ns = seconds * (int64_t)CLOCK_NS_PER_S + strtoll(at, NULL, 10);
	}
	(void)fclose(in);
	/* The file is about the namespace of our children, which need not be ours. */
	return found && same_target("/proc/self/ns/time", "/proc/self/ns/time_for_children");
}

/* The kernel shows it on the clock of the asking process: here it is shifted back to the host's. */
uint64_t tree_start_time(pid_t pid)
{
	const int64_t tick_ns = (int64_t)CLOCK_NS_PER_S / sysconf(_SC_CLK_TCK);
	uint64_t shown = stat_field(pid, 22);
	int64_t offset_ns;

	if (shown == 0 || !tree_boot_offset(&offset_ns))
		return shown;
	return shown - (uint64_t)(offset_ns / tick_ns);
}

bool tree_is_same_start(uint64_t a, uint64_t b)
{
	/* Both were shifted and rounded, so they may differ by one; 0 is for the dead. */
	return a != 0 && b != 0 && a - b + 1 <= 2;
}

pid_t tree_pid(const char *entry)
{
	return isdigit((unsigned char)entry[0]) ? (pid_t)strtol(entry, NULL, 10) : 0;
}

/*
 * A process that forks and leaves is gone before its signal comes, but its session isn't. A session
 * that is neither ours nor our parent's was begun by a process that we have started, so all in it
 * are ours to kill. And no process forks its way out of a group that is killed.
 */
static void signal_one(pid_t pid, int sig)
{
	pid_t group = getpgid(pid); /* of the dead, too, as long as they wait to be reaped */
	pid_t session = getsid(pid);

	if (sig == SIGKILL && group > 0 && session != getsid(0) && session != getsid(getppid()))
		(void)kill(-group, sig);
	(void)kill(pid, sig);
}

/* "12 34 56 " */
static bool signal_list(pid_t task, int sig)
{
	char path[48];
	char text[4096];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)task);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	/* What doesn't fit is found when these are gone: a caller that kills calls again. */
	ssize_t n = read(fd, text, sizeof(text) - 1);

	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text; *at != '\0';) {
		long pid = strtol(at, &at, 10);

		at += strspn(at, " ");
		if (pid > 0 && *at == '\0' && n == (ssize_t)sizeof(text) - 1)
			break; /* may be cut */
		if (pid > 0)
			signal_one((pid_t)pid, sig);
	}
	return true;
}

/* Where the kernel keeps no lists. */
static void signal_by_parent(int sig)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc != NULL && (e = readdir(proc)) != NULL) {
		pid_t pid = tree_pid(e->d_name);

		if (pid > 0 && stat_field(pid, 4) == (uint64_t)getpid())
			signal_one(pid, sig);
	}
	if (proc != NULL)
		(void)closedir(proc);
}

void tree_signal(int sig)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	bool listed = false;

	/* Each thread has the children that it has made; orphans come to any of them. */
	while (tasks != NULL && (e = readdir(tasks)) != NULL) {
		pid_t task = tree_pid(e->d_name);

		if (task > 0)
			listed = signal_list(task, sig) || listed;
	}
	if (tasks != NULL)
		(void)closedir(tasks);
	if (!listed)
		signal_by_parent(sig);
}
