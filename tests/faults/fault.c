/* fault.c: see fault.h. The real calls, and now and then an error in their place. */
#include "fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define DONE 0x10000 /* with an error: it is carried out first, and then reported as failed */

const char *const fault_names[FAULT_KINDS] = {
	[FAULT_MEMORY] = "memory", [FAULT_DESCRIPTORS] = "descriptors",
	[FAULT_DISK] = "disk",     [FAULT_SYNC] = "sync",
	[FAULT_READ] = "read",     [FAULT_THREADS] = "threads",
};

static const int errors[FAULT_KINDS][4] = {
	[FAULT_MEMORY] = {ENOMEM, ENOMEM, ENOMEM, ENOMEM},
	[FAULT_DESCRIPTORS] = {EMFILE, ENFILE, EMFILE, ENFILE},
	[FAULT_DISK] = {ENOSPC, EIO | DONE, EDQUOT, EIO},
	[FAULT_SYNC] = {EIO, EIO, EIO, EIO},
	[FAULT_READ] = {EIO, EIO, EIO, EIO},
	[FAULT_THREADS] = {EAGAIN, EAGAIN, EAGAIN, EAGAIN},
};

/* Set while nothing of the library runs, or atomically. */
static _Atomic uint64_t target;
static _Atomic int target_kind;
static _Atomic uint64_t calls[FAULT_KINDS];
static _Atomic uint64_t fired;
static const char *_Atomic fired_in;
static _Atomic uint64_t chance_seed;
static _Atomic uint32_t chance;

void fault_nth(enum fault_kind kind, uint64_t n)
{
	atomic_store(&calls[kind], 0);
	atomic_store(&target_kind, (int)kind);
	atomic_store(&target, n);
}

const char *fault_fired(void)
{
	return atomic_load(&fired_in);
}

void fault_random(uint64_t seed, uint32_t per_million)
{
	atomic_store(&chance_seed, seed);
	atomic_store(&chance, per_million);
}

uint64_t fault_count(void)
{
	return atomic_load(&fired);
}

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* 0, or with what error this call is to fail. */
static int strike(enum fault_kind kind, const char *function)
{
	uint64_t n = atomic_fetch_add(&calls[kind], 1) + 1;
	uint64_t wanted = atomic_load(&target);
	uint32_t rate = atomic_load(&chance);
	uint64_t dice = rate != 0 ? mix(atomic_load(&chance_seed) ^ n << 8 ^ kind) : 0;
	bool hit = (wanted == n && atomic_load(&target_kind) == (int)kind) ||
		   (rate != 0 && dice % 1000000 < rate);

	if (!hit)
		return 0;
	atomic_fetch_add(&fired, 1);
	atomic_store(&fired_in, function);
	return errors[kind][(rate != 0 ? dice >> 32 : n) % 4];
}

/* True: it fails, with errno. */
static bool fails(enum fault_kind kind, const char *function)
{
	int error = strike(kind, function);

	if (error != 0)
		errno = error & ~DONE;
	return error != 0;
}

/* Only files fail here: descriptors of the kernel's own things don't know these errors. */
static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

/* Declared here, for nobody else calls them by these names. */
void *fault_malloc(size_t size);
void *fault_calloc(size_t n, size_t size);
void *fault_realloc(void *p, size_t size);
char *fault_strdup(const char *text);
void *fault_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int fault_open(const char *path, int flags, ...);
int fault_openat(int dir, const char *path, int flags, ...);
int fault_fcntl(int fd, int command, ...);
int fault_socket(int domain, int type, int protocol);
int fault_eventfd(unsigned count, int flags);
int fault_timerfd_create(int clock, int flags);
int fault_inotify_init1(int flags);
int fault_inotify_add_watch(int fd, const char *path, uint32_t mask);
ssize_t fault_write(int fd, const void *data, size_t n);
ssize_t fault_pwrite(int fd, const void *data, size_t n, off_t at);
int fault_link(const char *from, const char *to);
int fault_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int fault_renameat(int from_dir, const char *from, int to_dir, const char *to);
int fault_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int fault_mkdir(const char *path, mode_t mode);
int fault_mkdirat(int dir, const char *path, mode_t mode);
int fault_fsync(int fd);
int fault_fdatasync(int fd);
ssize_t fault_read(int fd, void *data, size_t n);
ssize_t fault_getdents64(int fd, void *data, size_t n);
int fault_stat(const char *path, struct stat *st);
int fault_fstat(int fd, struct stat *st);
int fault_fstatat(int dir, const char *path, struct stat *st, int flags);
int fault_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *arg),
			 void *arg);

/* ---- memory ---- */

void *fault_malloc(size_t size)
{
	return fails(FAULT_MEMORY, "malloc") ? NULL : malloc(size);
}

void *fault_calloc(size_t n, size_t size)
{
	return fails(FAULT_MEMORY, "calloc") ? NULL : calloc(n, size);
}

void *fault_realloc(void *p, size_t size)
{
	return fails(FAULT_MEMORY, "realloc") ? NULL : realloc(p, size);
}

char *fault_strdup(const char *text)
{
	return fails(FAULT_MEMORY, "strdup") ? NULL : strdup(text);
}

void *fault_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fails(FAULT_MEMORY, "mmap"))
		return MAP_FAILED;
	return mmap(at, size, protection, flags, fd, offset);
}

/* ---- descriptors ---- */

int fault_open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fails(FAULT_DESCRIPTORS, "open") ? -1 : open(path, flags, mode);
}

int fault_openat(int dir, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if ((flags & O_CREAT) != 0 && fails(FAULT_DISK, "openat"))
		return -1;
	return fails(FAULT_DESCRIPTORS, "openat") ? -1 : openat(dir, path, flags, mode);
}

/* The library locks with it, and nothing else. */
int fault_fcntl(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	void *lock = va_arg(args, void *);
	va_end(args);
	if (fails(FAULT_DESCRIPTORS, "fcntl")) {
		errno = ENOLCK;
		return -1;
	}
	return fcntl(fd, command, lock);
}

int fault_socket(int domain, int type, int protocol)
{
	return fails(FAULT_DESCRIPTORS, "socket") ? -1 : socket(domain, type, protocol);
}

int fault_eventfd(unsigned count, int flags)
{
	return fails(FAULT_DESCRIPTORS, "eventfd") ? -1 : eventfd(count, flags);
}

int fault_timerfd_create(int clock, int flags)
{
	return fails(FAULT_DESCRIPTORS, "timerfd_create") ? -1 : timerfd_create(clock, flags);
}

int fault_inotify_init1(int flags)
{
	return fails(FAULT_DESCRIPTORS, "inotify_init1") ? -1 : inotify_init1(flags);
}

int fault_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (fails(FAULT_DESCRIPTORS, "inotify_add_watch")) {
		errno = ENOSPC; /* how it says that there are too many */
		return -1;
	}
	return inotify_add_watch(fd, path, mask);
}

/* ---- the disk ---- */

ssize_t fault_write(int fd, const void *data, size_t n)
{
	int error = is_file(fd) ? strike(FAULT_DISK, "write") : 0;
	ssize_t done = 0;

	if (error == 0)
		return write(fd, data, n);
	if ((error & DONE) != 0 && n > 1) /* the half of it */
		done = write(fd, data, n / 2);
	errno = error & ~DONE;
	return done > 0 ? done : -1;
}

ssize_t fault_pwrite(int fd, const void *data, size_t n, off_t at)
{
	return fails(FAULT_DISK, "pwrite") ? -1 : pwrite(fd, data, n, at);
}

/* Ends a call that was to fail, and was carried out first where it should be. */
static int ended(int error)
{
	errno = error & ~DONE;
	return -1;
}

int fault_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	int error = strike(FAULT_DISK, "linkat");

	if (error == 0)
		return linkat(from_dir, from, to_dir, to, flags);
	if ((error & DONE) != 0)
		(void)!linkat(from_dir, from, to_dir, to, flags);
	return ended(error);
}

int fault_link(const char *from, const char *to)
{
	return fault_linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int fault_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int error = strike(FAULT_DISK, "renameat");

	if (error == 0)
		return renameat(from_dir, from, to_dir, to);
	if ((error & DONE) != 0)
		(void)!renameat(from_dir, from, to_dir, to);
	return ended(error);
}

int fault_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	int error = strike(FAULT_DISK, "renameat2");

	if (error == 0)
		return renameat2(from_dir, from, to_dir, to, flags);
	if ((error & DONE) != 0)
		(void)!renameat2(from_dir, from, to_dir, to, flags);
	return ended(error);
}

int fault_mkdir(const char *path, mode_t mode)
{
	int error = strike(FAULT_DISK, "mkdir");

	if (error == 0)
		return mkdir(path, mode);
	if ((error & DONE) != 0)
		(void)!mkdir(path, mode);
	return ended(error);
}

int fault_mkdirat(int dir, const char *path, mode_t mode)
{
	int error = strike(FAULT_DISK, "mkdirat");

	if (error == 0)
		return mkdirat(dir, path, mode);
	if ((error & DONE) != 0)
		(void)!mkdirat(dir, path, mode);
	return ended(error);
}

int fault_fsync(int fd)
{
	return fails(FAULT_SYNC, "fsync") ? -1 : fsync(fd);
}

int fault_fdatasync(int fd)
{
	return fails(FAULT_SYNC, "fdatasync") ? -1 : fdatasync(fd);
}

ssize_t fault_read(int fd, void *data, size_t n)
{
	return is_file(fd) && fails(FAULT_READ, "read") ? -1 : read(fd, data, n);
}

ssize_t fault_getdents64(int fd, void *data, size_t n)
{
	return fails(FAULT_READ, "getdents64") ? -1 : getdents64(fd, data, n);
}

int fault_stat(const char *path, struct stat *st)
{
	return fails(FAULT_READ, "stat") ? -1 : stat(path, st);
}

int fault_fstat(int fd, struct stat *st)
{
	return fails(FAULT_READ, "fstat") ? -1 : fstat(fd, st);
}

int fault_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return fails(FAULT_READ, "fstatat") ? -1 : fstatat(dir, path, st, flags);
}

/* ---- threads ---- */

int fault_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *arg),
			 void *arg)
{
	int error = strike(FAULT_THREADS, "pthread_create");

	return error != 0 ? error : pthread_create(thread, attr, start, arg);
}
