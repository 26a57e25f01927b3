/*
 * fuzz.h: what all fuzz targets share. Each is one LLVMFuzzerTestOneInput(), built twice: with
 * libFuzzer by `make fuzz`, and with replay.c in every test run, on the corpus that is kept here.
 */
#ifndef BATON_FUZZ_H
#define BATON_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for any input; stays on in every build. */
#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

#endif
