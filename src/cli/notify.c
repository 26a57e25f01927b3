/*
 * notify.c: what a service manager wants to hear (sd_notify(3)), in a datagram: no library needed.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run.h"

void notify_setup(struct run *r)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	r->notify_ns = UINT64_MAX;
	if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return;
	/* Half of what is asked for, as its manual says. */
	r->notify_every_ns = strtoull(usec, NULL, 10) * 1000 / 2;
	if (r->notify_every_ns != 0)
		r->notify_ns = clock_boot_ns();
}

void notify_status(const struct run *r, const char *format, ...)
{
	char text[512];
	va_list args;

	if (r->is_stopping)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	notify_say("STATUS=%s", text);
}

void notify_say(const char *format, ...)
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

	if (fd < 0 || n <= 0)
		return;
	size_t size = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	(void)sendto(fd, text, size, MSG_NOSIGNAL, (const struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
	(void)close(fd);
}

void notify_tick(struct run *r)
{
	uint64_t now_ns = clock_boot_ns();

	if (now_ns < r->notify_ns)
		return;
	notify_say("WATCHDOG=1");
	r->notify_ns = now_ns + r->notify_every_ns;
}
