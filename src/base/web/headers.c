/* headers.c: what stands in requests and replies beside the body. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

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
