/*
 * test_fence.c: the fences accept equal terms and refuse lower ones (C22, S4), from many threads,
 * after crashes at any write, and never on a file that can't be trusted (S9).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baton.h"

#define SLOT_SIZE 4096
#define THREADS 8
#define ROUNDS 100000

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/baton-fence-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/fence", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(folder); /* fails if anything else was left behind */
}

static void read_file(char data[2 * SLOT_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char more;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, data, 2 * SLOT_SIZE), 2 * SLOT_SIZE);
	assert_int_equal(read(fd, &more, 1), 0);
	(void)close(fd);
}

static void write_file(const char *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	(void)close(fd);
}

/* ---- in memory ---- */

static void test_check_accepts_equal_and_refuses_lower(void **state)
{
	struct baton_fence fence = {0};

	(void)state;
	assert_int_equal(baton_fence_check(&fence, 5), BATON_OK);
	assert_int_equal(baton_fence_check(&fence, 5), BATON_OK);
	assert_int_equal(baton_fence_check(&fence, 4), BATON_E_STALE);
	assert_int_equal(baton_fence_check(&fence, 7), BATON_OK);
	assert_int_equal(baton_fence_check(&fence, 5), BATON_E_STALE);
	assert_int_equal(fence.highest, 7);
	assert_int_equal(baton_fence_check(&fence, UINT64_MAX), BATON_OK);
	assert_int_equal(baton_fence_check(&fence, UINT64_MAX - 1), BATON_E_STALE);
}

/* 0 is what baton_term() says to who doesn't lead. */
static void test_check_refuses_term_0(void **state)
{
	struct baton_fence fence = {0};

	(void)state;
	assert_int_equal(baton_fence_check(&fence, 0), BATON_E_STALE);
	assert_int_equal(fence.highest, 0);
}

struct racer {
	struct baton_fence *fence;
	uint64_t *next; /* terms are drawn from one heap, so that they meet */
	pthread_barrier_t *start;
	pthread_t thread;
	uint64_t first;
	bool went_back;
};

/* What was accepted for one thread never makes a lower one acceptable for it later. */
static void *race(void *arg)
{
	struct racer *r = arg;

	(void)pthread_barrier_wait(r->start);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t term = __atomic_add_fetch(r->next, 1, __ATOMIC_SEQ_CST);

		if (baton_fence_check(r->fence, term) == BATON_OK) {
			if (term > 1 && baton_fence_check(r->fence, term - 1) == BATON_OK)
				r->went_back = true;
		} else if (__atomic_load_n(&r->fence->highest, __ATOMIC_SEQ_CST) <= term) {
			r->went_back = true; /* refused without a reason */
		}
	}
	return NULL;
}

static void test_check_from_many_threads(void **state)
{
	struct baton_fence fence = {0};
	struct racer racers[THREADS];
	pthread_barrier_t start;
	uint64_t next = 0;

	(void)state;
	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (uint64_t i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){.fence = &fence, .start = &start, .next = &next};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_false(racers[i].went_back);
	}
	(void)pthread_barrier_destroy(&start);
	assert_int_equal(fence.highest, (uint64_t)ROUNDS * THREADS);
}

/* ---- in a file ---- */

static void test_file_accepts_equal_and_refuses_lower(void **state)
{
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(baton_fence_file(path, 5, &err), BATON_OK);
	assert_int_equal(baton_fence_file(path, 5, &err), BATON_OK);
	assert_int_equal(baton_fence_file(path, 4, &err), BATON_E_STALE);
	assert_int_equal(err.code, BATON_E_STALE);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(baton_fence_file(path, 9, NULL), BATON_OK);
	assert_int_equal(baton_fence_file(path, 5, NULL), BATON_E_STALE);
	assert_int_equal(baton_fence_file(path, UINT64_MAX, NULL), BATON_OK);
	assert_int_equal(baton_fence_file(path, UINT64_MAX - 1, NULL), BATON_E_STALE);
}

static void test_file_refuses_what_is_no_term_or_no_path(void **state)
{
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(baton_fence_file(path, 0, &err), BATON_E_STALE);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(baton_fence_file(NULL, 1, &err), BATON_E_INVALID);
	assert_int_equal(baton_fence_file("", 1, &err), BATON_E_INVALID);
	assert_int_equal(baton_fence_file("/nowhere/at/all", 1, &err), BATON_E_SYSTEM);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

/* Both slots say it, and the usual call doesn't write. */
static void test_file_at_rest(void **state)
{
	char data[2 * SLOT_SIZE];
	struct stat before, after;

	(void)state;
	for (uint64_t term = 1; term < 5; term++) {
		assert_int_equal(baton_fence_file(path, term, NULL), BATON_OK);
		read_file(data);
		assert_memory_equal(data, data + SLOT_SIZE, SLOT_SIZE);
	}
	assert_memory_equal(data, "baton-fence 1 00000000000000000004 ", 35);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(baton_fence_file(path, 4, NULL), BATON_OK);
	assert_int_equal(baton_fence_file(path, 3, NULL), BATON_E_STALE);
	assert_int_equal(stat(path, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(baton_fence_file(path, 5, NULL), BATON_OK);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_mode & 07777, 0640);
	assert_int_equal(after.st_ino, before.st_ino);
}

/*
 * A crash can leave the slot that was being written in any state: old, new, or torn at any byte.
 * The highest term that was accepted must be refused below in all of them, and the next term heals.
 */
static void test_file_survives_a_torn_write(void **state)
{
	static const size_t cuts[] = {0, 1, 14, 20, 33, 34, 35, 40, 51, 52, 100, 4095, 4096};
	char old[2 * SLOT_SIZE], new[2 * SLOT_SIZE], torn[2 * SLOT_SIZE];

	(void)state;
	assert_int_equal(baton_fence_file(path, 41, NULL), BATON_OK);
	read_file(old);
	assert_int_equal(baton_fence_file(path, 1042, NULL), BATON_OK);
	read_file(new);
	for (size_t slot = 0; slot < 2; slot++) {
		for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
			memcpy(torn, old, sizeof(torn));
			memcpy(torn + slot * SLOT_SIZE, new, cuts[i]);
			write_file(torn, sizeof(torn));
			assert_int_equal(baton_fence_file(path, 40, NULL), BATON_E_STALE);
			assert_int_equal(baton_fence_file(path, 1042, NULL), BATON_OK);
			assert_int_equal(baton_fence_file(path, 1041, NULL), BATON_E_STALE);
			read_file(torn);
			assert_memory_equal(torn, new, sizeof(torn));
		}
	}
}

/* Whoever is equal to a term that may not have reached the disk makes it so: both slots again. */
static void test_file_finishes_what_a_crash_left(void **state)
{
	char old[2 * SLOT_SIZE], new[2 * SLOT_SIZE], half[2 * SLOT_SIZE];

	(void)state;
	assert_int_equal(baton_fence_file(path, 1, NULL), BATON_OK);
	read_file(old);
	assert_int_equal(baton_fence_file(path, 2, NULL), BATON_OK);
	read_file(new);
	for (size_t slot = 0; slot < 2; slot++) {
		memcpy(half, old, sizeof(half));
		memcpy(half + slot * SLOT_SIZE, new, SLOT_SIZE);
		write_file(half, sizeof(half));
		assert_int_equal(baton_fence_file(path, 1, NULL), BATON_E_STALE);
		assert_int_equal(baton_fence_file(path, 2, NULL), BATON_OK);
		read_file(half);
		assert_memory_equal(half, new, sizeof(half));
	}
}

/* In a process of its own, where nothing can be written behind the first slot. */
static int ask_with_little_room(uint64_t term)
{
	const struct rlimit limit = {.rlim_cur = SLOT_SIZE, .rlim_max = SLOT_SIZE};
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGXFSZ, SIG_IGN);
		(void)setrlimit(RLIMIT_FSIZE, &limit);
		_exit(-baton_fence_file(path, term, NULL));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* The slot with the highest term is never the first to be written. */
static void test_file_that_can_not_be_written(void **state)
{
	char old[2 * SLOT_SIZE], new[2 * SLOT_SIZE], half[2 * SLOT_SIZE], after[2 * SLOT_SIZE];

	(void)state;
	assert_int_equal(ask_with_little_room(1), BATON_E_SYSTEM); /* nor can it be made */
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(baton_fence_file(path, 1, NULL), BATON_OK);
	read_file(old);
	assert_int_equal(baton_fence_file(path, 2, NULL), BATON_OK);
	read_file(new);
	/* The first slot is the good one: the second can't be written, so the answer is no. */
	memcpy(half, new, SLOT_SIZE);
	memcpy(half + SLOT_SIZE, old, SLOT_SIZE);
	write_file(half, sizeof(half));
	assert_int_equal(ask_with_little_room(3), BATON_E_SYSTEM);
	read_file(after);
	assert_memory_equal(after, half, sizeof(half));
	assert_int_equal(baton_fence_file(path, 1, NULL), BATON_E_STALE);
	/* The other way round it gets as far as it must. */
	memcpy(half, old, SLOT_SIZE);
	memcpy(half + SLOT_SIZE, new, SLOT_SIZE);
	write_file(half, sizeof(half));
	assert_int_equal(ask_with_little_room(3), BATON_OK);
	assert_int_equal(baton_fence_file(path, 2, NULL), BATON_E_STALE);
	assert_int_equal(baton_fence_file(path, 3, NULL), BATON_OK);
}

/* L7: who holds the lock may be stopped for ever. That is an error, after a while. */
static void test_file_that_stays_locked(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct baton_error err = {0};
	int fd;

	(void)state;
	assert_int_equal(baton_fence_file(path, 5, NULL), BATON_OK);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(baton_fence_file(path, 9, &err), BATON_E_SYSTEM);
	assert_non_null(strstr(err.text, path));
	(void)close(fd);
	assert_int_equal(baton_fence_file(path, 6, NULL), BATON_OK); /* 9 was not written */
}

static void assert_corrupt(const char *data, size_t size)
{
	struct baton_error err = {0};
	struct stat st;

	write_file(data, size);
	assert_int_equal(baton_fence_file(path, 99, &err), BATON_E_CORRUPT);
	assert_int_equal(err.code, BATON_E_CORRUPT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, size); /* nothing was written */
}

static void test_file_that_is_damaged(void **state)
{
	char good[2 * SLOT_SIZE], bad[2 * SLOT_SIZE], after[2 * SLOT_SIZE];

	(void)state;
	assert_int_equal(baton_fence_file(path, 42, NULL), BATON_OK);
	read_file(good);
	assert_corrupt("", 0);
	assert_corrupt("42\n", 3);
	assert_corrupt(good, SLOT_SIZE);
	assert_corrupt(good, sizeof(good) - 1);
	memset(bad, 0, sizeof(bad));
	assert_corrupt(bad, sizeof(bad));
	/* One bit, anywhere, in both slots: in the magic, the term, the checksum, the blanks. */
	for (size_t at = 0; at < SLOT_SIZE; at += at < 60 ? 1 : 577) {
		memcpy(bad, good, sizeof(bad));
		bad[at] ^= 1;
		bad[SLOT_SIZE + at] ^= 1;
		assert_corrupt(bad, sizeof(bad));
		read_file(after);
		assert_memory_equal(after, bad, sizeof(bad));
	}
}

static void test_file_that_is_none(void **state)
{
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(baton_fence_file(folder, 1, &err), BATON_E_SYSTEM);
	assert_non_null(strstr(err.text, folder));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(baton_fence_file(path, 1, &err), BATON_E_CORRUPT);
}

/* Each thread walks up; whatever it got a yes for, nobody may get a yes below it afterwards. */
static void *race_file(void *arg)
{
	struct racer *r = arg;

	for (uint64_t i = 0; i < 20; i++) {
		uint64_t term = r->first + i * THREADS;
		int rc = baton_fence_file(path, term, NULL);

		if (rc == BATON_OK) {
			r->went_back |= term > 1 && baton_fence_file(path, term - 1, NULL) == 0;
		} else if (rc != BATON_E_STALE) {
			r->went_back = true;
		}
	}
	return NULL;
}

static void test_file_from_many_threads(void **state)
{
	struct racer racers[THREADS];

	(void)state;
	for (uint64_t i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){.first = i + 1};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race_file, &racers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_false(racers[i].went_back);
	}
	assert_int_equal(baton_fence_file(path, 20 * THREADS, NULL), BATON_OK);
	assert_int_equal(baton_fence_file(path, 20 * THREADS - 1, NULL), BATON_E_STALE);
}

static void test_file_from_many_processes(void **state)
{
	pid_t children[4];
	int status;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct racer r = {.first = i + 1};

			(void)race_file(&r);
			_exit(r.went_back ? 1 : 0);
		}
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	/* The child that asked for the highest term got it, whoever was before or behind it. */
	assert_int_equal(baton_fence_file(path, 3 + 19 * THREADS, NULL), BATON_E_STALE);
	assert_int_equal(baton_fence_file(path, 4 + 19 * THREADS, NULL), BATON_OK);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_accepts_equal_and_refuses_lower),
		cmocka_unit_test(test_check_refuses_term_0),
		cmocka_unit_test(test_check_from_many_threads),
		IN_FOLDER(test_file_accepts_equal_and_refuses_lower),
		IN_FOLDER(test_file_refuses_what_is_no_term_or_no_path),
		IN_FOLDER(test_file_at_rest),
		IN_FOLDER(test_file_survives_a_torn_write),
		IN_FOLDER(test_file_finishes_what_a_crash_left),
		IN_FOLDER(test_file_that_can_not_be_written),
		IN_FOLDER(test_file_that_stays_locked),
		IN_FOLDER(test_file_that_is_damaged),
		IN_FOLDER(test_file_that_is_none),
		IN_FOLDER(test_file_from_many_threads),
		IN_FOLDER(test_file_from_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
