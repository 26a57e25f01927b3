/*
 * metrics_file.c: see metrics_file.h. A reader sees the old text or the new one, never a part: the
 * text is written to a temporary file beside the path, which is renamed.
 */
#include "telemetry/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

struct metrics_file {
	const char *path;
	void (*failed)(const char *path, int error);
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *text; /* not written yet; NULL: none */
	size_t n;
	bool is_ending;
	bool has_ended;
};

static void *write_texts(void *arg);
static void wait_for_end(struct metrics_file *f, unsigned timeout_ms);

struct metrics_file *metrics_file_new(const char *path, void (*failed)(const char *path, int error))
{
	struct metrics_file *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;
	pthread_t thread;

	if (f == NULL)
		return NULL;
	f->path = path;
	f->failed = failed;
	(void)pthread_mutex_init(&f->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&f->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (!thread_start(&thread, write_texts, f)) {
		free(f);
		return NULL;
	}
	(void)pthread_detach(thread); /* a write that hangs must not hold up the end */
	return f;
}

bool metrics_file_put(struct metrics_file *f, const char *text, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy == NULL)
		return false;
	(void)memcpy(copy, text, n);
	(void)pthread_mutex_lock(&f->lock);
	char *old = f->text;

	f->text = copy;
	f->n = n;
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
	free(old);
	return true;
}

void metrics_file_end(struct metrics_file *f, unsigned timeout_ms)
{
	if (f == NULL)
		return;
	(void)pthread_mutex_lock(&f->lock);
	f->is_ending = true;
	(void)pthread_cond_broadcast(&f->changed);
	wait_for_end(f, timeout_ms);
	bool is_over = f->has_ended;

	(void)pthread_mutex_unlock(&f->lock);
	if (is_over) { /* else a thread still uses it, and the process is about to end */
		(void)pthread_cond_destroy(&f->changed);
		(void)pthread_mutex_destroy(&f->lock);
		free(f);
	}
}

static void wait_for_end(struct metrics_file *f, unsigned timeout_ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!f->has_ended)
		if (pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT)
			break;
}

/* ---- the writer's thread ---- */

/* 0, or an errno. */
static int write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		text += done;
		n -= (size_t)done;
	}
	return 0;
}

static int replace_file(const char *path, const char *text, size_t n)
{
	char temporary[PATH_MAX];
	int length = snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());

	if (length < 0 || (size_t)length >= sizeof(temporary))
		return ENAMETOOLONG;
	/* Removes what an earlier process of our number has left; a link would lead elsewhere. */
	(void)unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return errno;
	int error = write_all(fd, text, n);

	if (close(fd) != 0 && error == 0)
		error = errno;
	if (error == 0 && rename(temporary, path) != 0)
		error = errno;
	if (error != 0)
		(void)unlink(temporary);
	return error;
}

static void *write_texts(void *arg)
{
	struct metrics_file *f = arg;
	int last_error = 0;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		while (f->text == NULL && !f->is_ending)
			(void)pthread_cond_wait(&f->changed, &f->lock);
		if (f->text == NULL)
			break;
		char *text = f->text;
		size_t n = f->n;

		f->text = NULL;
		(void)pthread_mutex_unlock(&f->lock);
		int error = replace_file(f->path, text, n);

		free(text);
		if (error != last_error)
			f->failed(f->path, error);
		last_error = error;
		(void)pthread_mutex_lock(&f->lock);
	}
	f->has_ended = true;
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}
