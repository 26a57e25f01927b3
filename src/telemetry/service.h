/*
 * service.h: what a service manager wants to hear (sd_notify(3)), in a datagram: no library needed.
 * Nothing waits for it, and without a manager nothing is said.
 */
#ifndef BATON_SERVICE_H
#define BATON_SERVICE_H

#include <stdint.h>

/* "READY=1", "STATUS=...". */
void service_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How often the manager wants a sign of life; 0: it wants none. */
uint64_t service_watchdog_ns(void);

#endif
