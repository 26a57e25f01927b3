/*
 * metrics_file.h: metrics in a file, for the textfile collector of node_exporter. A thread of its
 * own writes, since a disk may keep a writer waiting, and the supervisor must never wait (L7). Only
 * the newest text counts: one that was not written yet is replaced.
 */
#ifndef BATON_METRICS_FILE_H
#define BATON_METRICS_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct metrics_file;

/* failed() is called on the writer's thread when writing begins to fail, with an errno, and with 0
 * when writing works again. The path is kept by the caller. NULL: no memory, or no thread. */
struct metrics_file *metrics_file_new(const char *path,
				      void (*failed)(const char *path, int error));
/* Hands over a copy of the text. Never waits. False: no memory. */
bool metrics_file_put(struct metrics_file *f, const char *text, size_t n);
/* Waits until the last text is written, for at most so long, and ends. Takes NULL. */
void metrics_file_end(struct metrics_file *f, unsigned timeout_ms);

#endif
