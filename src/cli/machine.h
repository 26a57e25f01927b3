/*
 * machine.h: what the kernel tells of a busy machine: for how long something waited for a processor
 * (pressure, PSI), and how much of the processors' time the host took for others (steal). Both
 * explain pauses that no program can see coming. Not every machine tells them.
 */
#ifndef BATON_MACHINE_H
#define BATON_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_NOT_TOLD (-1.0)

/* What was counted since the machine was started. */
struct machine {
	uint64_t boot_ns; /* when we looked */
	bool has_pressure;
	uint64_t pressure_us; /* in which something waited */
	bool has_steal;
	uint64_t steal; /* in ticks, of ... */
	uint64_t ticks; /* ... all processors */
};

/* Reads /proc/pressure/cpu and /proc/stat. */
void machine_look(struct machine *m);
/* Their texts; NULL: there is none. */
void machine_read_pressure(struct machine *m, const char *text);
void machine_read_stat(struct machine *m, const char *text);

/* Percent of the time between two looks, or MACHINE_NOT_TOLD. */
double machine_pressure(const struct machine *before, const struct machine *after);
double machine_steal(const struct machine *before, const struct machine *after);

#endif
