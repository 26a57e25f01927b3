/*
 * worklock.c: the work lock, on stores that have one (baton_work_lock): an open file description
 * lock on the election's file `work`. The child takes it on a description that it shares with its
 * guard and its descendants. So no second child starts while the guard of the first one has
 * something left to end. And none starts while a descendant lives that has kept the descriptor,
 * whatever became of supervisor and guard.
 *
 * The holder writes down who it is, and where its guard's page can be read. A child that finds the
 * lock held waits, because the old guard is ending the old work. When that guard is dead, or the
 * old work's time is over, the child kills the processes that still hold the lock: only those of
 * its own PID namespace, and those that it may kill. The page says when the time is over, by the
 * word that the old guard itself goes by; where it can't be read, the child waits for the length of
 * a lease. A guard that still lives then was frozen: it is woken up, because only the guard can
 * find processes that have closed the descriptor.
 *
 * It must never start a command without the lock; how long it waits is only politeness.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/guard.h"

#define HIGH_FD 60 /* out of the way of scripts */
#define LOOK_MS 20
#define CHASED 64 /* of the newest processes */
#define CHASE_NS (5 * CLOCK_NS_PER_MS)
#define EAGER_TICKS 250u               /* 5 s; then only each 250th */
#define THOROUGH_TICKS 50u             /* once a second */
#define WAKING_NS (2 * CLOCK_NS_PER_S) /* a guard that was woken up has so long to act */

/* The holder of the lock, as it describes itself. */
struct record {
	unsigned long long pid;
	unsigned long long start;
	unsigned long long guard;
	unsigned long long guard_start;
	unsigned long long pidns;
	unsigned long long page; /* the guard's descriptor of its page; 0: none */
	unsigned long long limit_ms;
	unsigned long long term;
	char cgroup[PATH_MAX]; /* "-": none */
};

/* How the lock's holders are looked for: by the lock's file, and sparing two guards. */
struct hunt {
	struct stat file;
	pid_t own_guard;
	pid_t spared; /* a frozen guard, which is woken up instead */
};

static int wait_for_it(const struct guard_plan *plan, int fd);
static void write_record(const struct guard_plan *plan, int fd, uint64_t term);
static bool read_record(int fd, struct record *r);
static void end_holders(const struct guard_plan *plan, int fd, pid_t spared, unsigned tick);
static bool is_abandoned(const struct record *r);
static void end_left(int fd);

/* O_CREAT is only used to make the file: on a file of another user in a sticky directory, the
 * kernel can refuse it (fs.protected_regular). */
static int open_or_make(const char *path, mode_t mode)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	int fd;

	do {
		fd = open(path, flags);
		if (fd < 0 && errno == ENOENT)
			fd = open(path, flags | O_CREAT | O_EXCL, mode);
	} while (fd < 0 && errno == EEXIST); /* another process was faster */
	return fd;
}

int worklock_open(const struct guard_plan *plan)
{
	mode_t mode = plan->page->work_mode;
	int low = open_or_make(plan->page->work, mode);
	int fd = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD) : -1;

	if (fd < 0)
		return low;
	(void)close(low);
	(void)fchmod(fd, mode); /* against the umask; fails if it isn't our file */
	return fd;
}

int worklock_take(const struct guard_plan *plan, uint64_t term)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = plan->work_fd;

	if (fcntl(fd, F_SETFD, 0) != 0) /* inherited: that is the point */
		return -1;
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0 &&
	    ((errno != EAGAIN && errno != EACCES) || wait_for_it(plan, fd) != 0))
		return -1;
	end_left(fd);
	write_record(plan, fd, term);
	return 0;
}

/*
 * The lock is ours; but a process that closed all descriptors may live on in a dead guard's cgroup.
 */
static void end_left(int fd)
{
	struct record r = {0};

	if (read_record(fd, &r) && is_abandoned(&r))
		isolate_end_left(r.cgroup, r.guard, r.guard_start);
}

/* ---- waiting ---- */

static void no_op(int sig)
{
	(void)sig;
}

/* Makes the lock call return now and then, so that we can look around. */
static void set_tick(suseconds_t us)
{
	struct itimerval tick = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};

	(void)setitimer(ITIMER_REAL, &tick, NULL);
}

static unsigned long long own_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

/* The holder's guard is dead, so no process ends the old work in time. */
static bool is_abandoned(const struct record *r)
{
	return r->pidns == own_pidns() &&
	       !tree_is_same_start(tree_start_time((pid_t)r->guard), r->guard_start);
}

static void say_whom(const struct guard_plan *plan, const struct record *r, bool known)
{
	char text[GUARD_TEXT] = "a process that left no name";

	if (known)
		(void)snprintf(text, sizeof(text), "process group %llu of term %llu", r->pid,
			       r->term);
	guard_send(plan->socket, GUARD_WAITING, 0, 0, text);
}

/* The old guard's page, open; -1: it can't be read. Only a file that looks like a page is opened at
 * all: any process that may write to the store may have written the record. */
static int open_page(const struct record *r)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%llu/fd/%llu", r->guard, r->page);
	if (r->page == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 0)
		return -1;
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* When the old guard must have ended everything, on our own clock; false: not known. */
static bool old_word(const struct record *r, uint64_t *word)
{
	struct guard_page old;
	const size_t n = offsetof(struct guard_page, drain_ns);
	int64_t own_offset_ns;
	int fd = r->pidns == own_pidns() ? open_page(r) : -1;
	bool good = fd >= 0 && pread(fd, &old, n, 0) == (ssize_t)n && old.has_offset &&
		    tree_boot_offset(&own_offset_ns);

	if (fd >= 0)
		(void)close(fd);
	if (good)
		*word = atomic_load(&old.kill_ns) - (uint64_t)old.offset_ns +
			(uint64_t)own_offset_ns;
	return good;
}

/* When the old work's time is over: no later than if its lease had just been renewed when we came
 * here. */
static uint64_t over_ns(const struct guard_plan *plan, const struct record *r, bool known,
			uint64_t since_ns)
{
	uint64_t limit_ns = known ? r->limit_ms * CLOCK_NS_PER_MS : plan->page->limit_ns;
	uint64_t word;

	if (known && is_abandoned(r))
		return 0;
	if (known && old_word(r, &word) && word < since_ns + limit_ns)
		return word;
	return since_ns + limit_ns;
}

/* Has the lock call return now and then. */
static void tick_begin(void)
{
	struct sigaction wake = {.sa_handler = no_op};
	sigset_t alarm;

	(void)sigaction(SIGALRM, &wake, NULL);
	(void)sigemptyset(&alarm);
	(void)sigaddset(&alarm, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	set_tick(LOOK_MS * 1000);
}

/* Timers and masks would outlive exec. */
static void tick_end(const struct guard_plan *plan)
{
	int error = errno;

	set_tick(0);
	(void)signal(SIGALRM, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
	errno = error;
}

static int wait_for_it(const struct guard_plan *plan, int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	uint64_t since_ns = clock_boot_ns();
	uint64_t woken_ns = 0;
	struct record r = {0};
	bool known = read_record(fd, &r);
	unsigned tick = 0;
	int result;

	say_whom(plan, &r, known);
	tick_begin();
	for (;;) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns + plan->page->drain_ns >= atomic_load(&plan->page->kill_ns)) {
			errno = ETIMEDOUT;
			result = -1;
			break;
		}
		if (now_ns >= over_ns(plan, &r, known, since_ns)) {
			woken_ns = woken_ns != 0 ? woken_ns : now_ns;
			bool patient = now_ns - woken_ns < WAKING_NS;

			end_holders(plan, fd, known && patient ? (pid_t)r.guard : 0, tick++);
		}
		result = fcntl(fd, F_OFD_SETLKW, &lock);
		if (result == 0 || errno != EINTR)
			break;
		known = read_record(fd, &r);
	}
	tick_end(plan);
	return result;
}

/* ---- the record ---- */

static void write_record(const struct guard_plan *plan, int fd, uint64_t term)
{
	char text[PATH_MAX + 512];
	const char *cgroup = plan->page->cgroup;
	bool has_one = cgroup[0] != '\0' && strpbrk(cgroup, " \n") == NULL;
	int n = snprintf(text, sizeof(text),
			 "baton-work 2 pid %d start %llu guard %d guard-start %llu pidns %llu "
			 "page %d limit-ms %llu term %llu cgroup %s end\n",
			 (int)getpid(), (unsigned long long)tree_start_time(getpid()),
			 (int)plan->pid, (unsigned long long)tree_start_time(plan->pid),
			 own_pidns(), plan->page_fd > 0 ? plan->page_fd : 0,
			 (unsigned long long)(plan->page->limit_ns / CLOCK_NS_PER_MS),
			 (unsigned long long)term, has_one ? cgroup : "-");

	/* The record is for those who wait; the lock itself needs none. */
	(void)!ftruncate(fd, 0);
	(void)!pwrite(fd, text, (size_t)n, 0);
}

/* Takes "WORD NUMBER "; false: something else stands there. */
static bool take_number(const char **at, const char *word, unsigned long long *out)
{
	size_t n = strlen(word);
	char *end;

	if (strncmp(*at, word, n) != 0 || !isdigit((unsigned char)(*at)[n]))
		return false;
	errno = 0;
	*out = strtoull(*at + n, &end, 10);
	*at = end + 1;
	return errno == 0 && *end == ' ';
}

/* The same for "WORD VALUE ". */
static bool take_word(const char **at, const char *word, char *out, size_t size)
{
	size_t n = strlen(word);
	size_t length = strncmp(*at, word, n) == 0 ? strcspn(*at + n, " ") : 0;

	if (length == 0 || length >= size || (*at)[n + length] != ' ')
		return false;
	(void)memcpy(out, *at + n, length);
	out[length] = '\0';
	*at += n + length + 1;
	return true;
}

/* False: not complete, or not ours. */
static bool read_record(int fd, struct record *r)
{
	static const char head[] = "baton-work 2 ";
	char text[PATH_MAX + 512];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *at = text + sizeof(head) - 1;

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strncmp(text, head, sizeof(head) - 1) == 0 && take_number(&at, "pid ", &r->pid) &&
	       take_number(&at, "start ", &r->start) && take_number(&at, "guard ", &r->guard) &&
	       take_number(&at, "guard-start ", &r->guard_start) &&
	       take_number(&at, "pidns ", &r->pidns) && take_number(&at, "page ", &r->page) &&
	       take_number(&at, "limit-ms ", &r->limit_ms) && take_number(&at, "term ", &r->term) &&
	       take_word(&at, "cgroup ", r->cgroup, sizeof(r->cgroup)) &&
	       strncmp(at, "end", 3) == 0;
}

/* ---- the end of the patience ---- */

/* Whether this descriptor of the process has the lock, and not only the file. */
static bool has_lock(pid_t pid, const char *number, const struct stat *file)
{
	char path[300];
	char text[1024];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, number);
	if (stat(path, &st) != 0 || st.st_dev != file->st_dev || st.st_ino != file->st_ino)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, number);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, "lock:") != NULL;
}

static bool is_holder(pid_t pid, bool thorough, const struct stat *file)
{
	char path[32];
	struct dirent *e;
	bool found = false;

	(void)snprintf(path, sizeof(path), "%d", HIGH_FD);
	if (!thorough)
		return has_lock(pid, path, file);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *fds = opendir(path);

	while (fds != NULL && !found && (e = readdir(fds)) != NULL)
		found = has_lock(pid, e->d_name, file);
	if (fds != NULL)
		(void)closedir(fds);
	return found;
}

/* The pidfd is opened before the look, so that the signal goes to the process that we looked at. */
static void end_holder(const struct hunt *hunt, pid_t pid, bool thorough)
{
	if (pid <= 0 || pid == getpid() || pid == hunt->own_guard)
		return;
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int sig = pid == hunt->spared ? SIGCONT : SIGKILL;

	if (process >= 0 && is_holder(pid, thorough, &hunt->file))
		(void)syscall(SYS_pidfd_send_signal, process, sig, NULL, 0);
	if (process >= 0)
		(void)close(process);
}

/* The process that was made last: those that come and go are near it. */
static pid_t newest_pid(void)
{
	char text[128];
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *last = strrchr(text, ' ');

	return last != NULL ? (pid_t)strtol(last, NULL, 10) : 0;
}

/*
 * A process that forks and leaves all the time is gone before a look at every process has come to
 * it. So the newest ones are looked at again and again, for a moment.
 */
static void chase(const struct hunt *hunt)
{
	uint64_t until_ns = clock_boot_ns() + CHASE_NS;

	do {
		pid_t newest = newest_pid();

		for (pid_t pid = newest; pid > 0 && pid > newest - CHASED; pid--)
			end_holder(hunt, pid, false);
	} while (clock_boot_ns() < until_ns);
}

/* Looks where the descriptor nearly always is, or at all descriptors, which takes long. */
static void look_at_all(const struct hunt *hunt, bool thorough)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc != NULL && (e = readdir(proc)) != NULL)
		end_holder(hunt, tree_pid(e->d_name), thorough);
	if (proc != NULL)
		(void)closedir(proc);
}

/* `tick`: how often we were here. A process that can't be caught in a while is no longer worth a
 * processor. */
static void end_holders(const struct guard_plan *plan, int fd, pid_t spared, unsigned tick)
{
	struct hunt hunt = {.own_guard = plan->pid, .spared = spared};

	if (fstat(fd, &hunt.file) != 0 || (tick >= EAGER_TICKS && tick % EAGER_TICKS != 0))
		return;
	look_at_all(&hunt, false);
	if (tick % THOROUGH_TICKS == 1)
		look_at_all(&hunt, true);
	chase(&hunt);
}
