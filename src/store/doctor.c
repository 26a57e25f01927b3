/* doctor.c: findings about a store: their form, round trips, and the clock of a server. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"

/* The wall clocks of two machines with NTP are never further apart. */
#define CLOCK_APART_US 1000000

void doctor_tell(struct doctor *d, int level, const char *check, const char *fix,
		 const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	const struct baton_finding finding = {.size = sizeof(finding),
					      .level = level,
					      .check = check,
					      .text = text,
					      .fix = fix != NULL ? fix : ""};

	if (level > d->worst)
		d->worst = level;
	d->found(d->arg, &finding);
}

bool doctor_is_local(const char *host)
{
	return host == NULL || host[0] == '\0' || host[0] == '/' ||
	       strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "::1") == 0;
}

void doctor_tell_encryption(struct doctor *d, bool has_tls, bool is_local, const char *secret,
			    const char *fix)
{
	if (has_tls)
		doctor_tell(d, BATON_FINDING_OK, "encryption", NULL,
			    "TLS, and the server's certificate is verified.");
	else if (is_local)
		doctor_tell(d, BATON_FINDING_OK, "encryption", NULL,
			    "No encryption, and nothing leaves this machine.");
	else if (secret != NULL)
		doctor_tell(d, BATON_FINDING_WARNING, "encryption", fix,
			    "No encryption: a machine in between can read everything, also the %s.",
			    secret);
	else
		doctor_tell(d, BATON_FINDING_NOTE, "encryption", fix,
			    "No encryption: a machine in between can read and change everything.");
}

/* ---- round trips ---- */

void doctor_trip(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns)
{
	if (t->n < DOCTOR_TRIPS)
		t->ns[t->n++] = ended_ns - began_ns;
}

void doctor_trip_clock(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns,
		       int64_t server_us)
{
	uint64_t took_ns = ended_ns - began_ns;
	int64_t ours_us = clock_wall_ms() * 1000 - (int64_t)(took_ns / 2000);

	doctor_trip(t, began_ns, ended_ns);
	if (t->fastest_ns != 0 && took_ns >= t->fastest_ns)
		return;
	t->fastest_ns = took_ns;
	t->ahead_us = server_us - ours_us;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t doctor_trips_median_ns(struct doctor_trips *t)
{
	qsort(t->ns, t->n, sizeof(t->ns[0]), compare);
	return t->n > 0 ? t->ns[t->n / 2] : 0;
}

uint64_t doctor_trips_slowest_ns(const struct doctor_trips *t)
{
	uint64_t slowest = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->ns[i] > slowest)
			slowest = t->ns[i];
	return slowest;
}

void doctor_tell_trips(struct doctor *d, struct doctor_trips *t, const char *what)
{
	doctor_tell(d, BATON_FINDING_OK, "round trip", NULL,
		    "%s takes %.2f ms; the slowest of %zu %.2f ms.", what,
		    (double)doctor_trips_median_ns(t) / 1e6, t->n,
		    (double)doctor_trips_slowest_ns(t) / 1e6);
}

void doctor_tell_clock(struct doctor *d, const struct doctor_trips *t, const char *harm)
{
	double s = (double)t->ahead_us / 1e6;

	if (t->fastest_ns == 0)
		return;
	if (llabs((long long)t->ahead_us) < CLOCK_APART_US + (long long)t->fastest_ns / 2000)
		doctor_tell(d, BATON_FINDING_OK, "clock", NULL,
			    "The clocks of the server and of this machine agree.");
	else
		doctor_tell(d, BATON_FINDING_WARNING, "clock",
			    "Let NTP (chrony, systemd-timesyncd) set the clocks of both "
			    "machines.",
			    "The server's clock is %.1f s %s this machine's. %s", s < 0 ? -s : s,
			    s < 0 ? "behind" : "ahead of", harm);
}

void doctor_tell_connections(struct doctor *d, int64_t used, int64_t most, const char *fix)
{
	bool is_full = most > 0 && used * 10 > most * 9;

	if (most > 0)
		doctor_tell(d, is_full ? BATON_FINDING_WARNING : BATON_FINDING_OK, "connections",
			    is_full ? fix : NULL,
			    "%lld of %lld connections are in use; a process takes three.",
			    (long long)used, (long long)most);
}
