/*
 * notify.c: what `baton run` tells the service manager, and how often it shows that it lives.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/run.h"
#include "telemetry/service.h"

void notify_setup(struct run *r)
{
	r->notify_every_ns = service_watchdog_ns();
	r->notify_ns = r->notify_every_ns != 0 ? clock_boot_ns() : UINT64_MAX;
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
	service_say("STATUS=%s", text);
}

void notify_tick(struct run *r)
{
	uint64_t now_ns = clock_boot_ns();

	if (now_ns < r->notify_ns)
		return;
	service_say("WATCHDOG=1");
	r->notify_ns = now_ns + r->notify_every_ns;
}
