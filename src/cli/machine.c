/* machine.c: see machine.h. */
#include "cli/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define FIELDS 8 /* user to steal; what guests use is part of user */

/* NULL: it is not there, or can't be read. */
static const char *read_file(const char *path, char *text, size_t size)
{
	FILE *in = fopen(path, "re");

	if (in == NULL)
		return NULL;
	size_t n = fread(text, 1, size - 1, in);

	(void)fclose(in);
	text[n] = '\0';
	return n > 0 ? text : NULL;
}

/* The number that `*at` begins with (after blanks). Then `*at` is behind it. False: none. */
static bool take_number(const char **at, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(*at, &end, 10);
	bool is_number = end != *at && errno == 0;

	*at = end;
	return is_number;
}

void machine_read_pressure(struct machine *m, const char *text)
{
	const char *line = text != NULL ? strstr(text, "some ") : NULL;
	const char *total = line != NULL ? strstr(line, "total=") : NULL;

	if (total != NULL)
		total += strlen("total=");
	m->has_pressure = total != NULL && take_number(&total, &m->pressure_us);
}

void machine_read_stat(struct machine *m, const char *text)
{
	uint64_t f[FIELDS];

	m->has_steal = text != NULL && strncmp(text, "cpu ", 4) == 0;
	if (m->has_steal)
		text += strlen("cpu ");
	for (int i = 0; i < FIELDS && m->has_steal; i++)
		m->has_steal = take_number(&text, &f[i]);
	m->steal = m->ticks = 0;
	if (!m->has_steal)
		return;
	for (int i = 0; i < FIELDS; i++)
		m->ticks += f[i];
	m->steal = f[FIELDS - 1];
}

void machine_look(struct machine *m)
{
	char text[1024];

	m->boot_ns = clock_boot_ns();
	machine_read_pressure(m, read_file("/proc/pressure/cpu", text, sizeof(text)));
	machine_read_stat(m, read_file("/proc/stat", text, sizeof(text)));
}

static double percent(uint64_t part, uint64_t all)
{
	double value = all > 0 ? 100.0 * (double)part / (double)all : 0;

	return value < 100 ? value : 100; /* the two clocks are not read in one instant */
}

double machine_pressure(const struct machine *before, const struct machine *after)
{
	if (!before->has_pressure || !after->has_pressure ||
	    after->pressure_us < before->pressure_us)
		return MACHINE_NOT_TOLD;
	return percent(after->pressure_us - before->pressure_us,
		       (after->boot_ns - before->boot_ns) / 1000);
}

double machine_steal(const struct machine *before, const struct machine *after)
{
	if (!before->has_steal || !after->has_steal || after->steal < before->steal ||
	    after->ticks < before->ticks)
		return MACHINE_NOT_TOLD;
	return percent(after->steal - before->steal, after->ticks - before->ticks);
}
