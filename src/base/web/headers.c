/* headers.c: what stands in requests and replies beside the body. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/web/request.h"

bool http_encode(const char *text, char *out, size_t size)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-._~";
	size_t used = 0;

	for (; *text != '\0'; text++) {
		bool is_plain = strchr(plain, *text) != NULL;
		size_t n = is_plain ? 1 : 3;

		if (used + n >= size)
			return false;
		if (is_plain)
			out[used] = *text;
		else
			(void)snprintf(out + used, size - used, "%%%02X", (unsigned char)*text);
		used += n;
	}
	if (size == 0)
		return false;
	out[used] = '\0';
	return true;
}

const char *http_header(const struct http_reply *reply, const char *name, char *out, size_t size)
{
	const struct answer *a = reply->answer;
	const char *at = a != NULL && a->head.at != NULL ? a->head.at : "";
	size_t n = strlen(name);

	out[0] = '\0';
	while (*at != '\0') {
		size_t line = strcspn(at, "\r\n");

		if (line > n && at[n] == ':' && strncasecmp(at, name, n) == 0) {
			const char *from = at + n + 1;
			const char *end = at + line;

			while (from < end && (*from == ' ' || *from == '\t'))
				from++;
			while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
				end--;
			(void)snprintf(out, size, "%.*s", (int)(end - from), from);
			return out;
		}
		at += line;
		at += strspn(at, "\r\n");
	}
	return out;
}

static int no_secret(char reason[HTTP_TEXT_MAX], const char *path, const char *why)
{
	(void)snprintf(reason, HTTP_TEXT_MAX, "can't use the secret in %.100s: %.60s", path, why);
	return -1;
}

int http_secret(const char *path, char *out, size_t size, char reason[HTTP_TEXT_MAX])
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
