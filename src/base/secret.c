/* secret.c: see secret.h. */
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int no_secret(char reason[SECRET_REASON_MAX], const char *path, const char *why)
{
	(void)snprintf(reason, SECRET_REASON_MAX, "can't use the secret in %.100s: %.60s", path,
		       why);
	return -1;
}

int secret_read(const char *path, char *out, size_t size, char reason[SECRET_REASON_MAX])
{
	char words[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	out[0] = '\0';
	if (fd >= 0)
		n = read(fd, out, size - 1);
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0)
		return no_secret(reason, path, strerror_r(error, words, sizeof(words)));
	out[n] = '\0';
	if ((size_t)n == size - 1)
		return no_secret(reason, path, "it is too long");
	while (n > 0 && strchr("\r\n", out[n - 1]) != NULL)
		out[--n] = '\0';
	if (n == 0)
		return no_secret(reason, path, "it is empty");
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
			return no_secret(reason, path, "it has control characters");
	return 0;
}
