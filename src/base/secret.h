/*
 * secret.h: a password or token in a file of its own: one line, without its end. It is read for
 * every login, because such files are replaced. A secret never stands in a reason.
 */
#ifndef BATON_SECRET_H
#define BATON_SECRET_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

#define SECRET_REASON_MAX 200

/* 0, or -1 with the reason, which begins in lower case and has no full stop. */
int secret_read(const char *path, char *out, size_t size, char reason[SECRET_REASON_MAX]);

#pragma GCC visibility pop

#endif
