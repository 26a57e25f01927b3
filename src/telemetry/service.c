/* service.c: see service.h. */
#include "telemetry/service.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

uint64_t service_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	/* Half of what is asked for, as its manual says. */
	return strtoull(usec, NULL, 10) * 1000 / 2;
}

void service_say(const char *format, ...)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	char text[512];
	va_list args;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(to.sun_path))
		return;
	(void)memcpy(to.sun_path, path, strlen(path));
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);

	va_end(args);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	size_t size = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	if (n > 0)
		(void)sendto(fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)&to,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
	(void)close(fd);
}
