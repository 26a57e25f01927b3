/*
 * clock.h: the seam through which all code reads the time.
 *
 * Deadlines are on CLOCK_BOOTTIME, which counts suspend and never jumps (A4). Wall time is for
 * people only: nothing is decided by it.
 */
#ifndef BATON_CLOCK_H
#define BATON_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_MS ((uint64_t)1000000)
#define CLOCK_NS_PER_S ((uint64_t)1000000000)

uint64_t clock_boot_ns(void);
int64_t clock_wall_ms(void);

#endif
