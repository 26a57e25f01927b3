/* machine.c: see machine.h. */
#include "cli/machine.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
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

void machine_read_pressure(struct machine *m, const char *text)
{
	const char *line = text != NULL ? strstr(text, "some ") : NULL;
	const char *total = line != NULL ? strstr(line, "total=") : NULL;

	m->has_pressure = total != NULL && sscanf(total, "total=%" SCNu64, &m->pressure_us) == 1;
}

void machine_read_stat(struct machine *m, const char *text)
{
	uint64_t f[FIELDS];
	int n = text == NULL ? 0
			     : sscanf(text,
				      "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
				      " %" SCNu64 " %" SCNu64 " %" SCNu64,
				      &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7]);

	m->has_steal = n == FIELDS;
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
