/* replay.c: runs a fuzz target once on each file that it is given, as the tests do. */
#include <stdio.h>

#include "fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)

int main(int argc, char **argv)
{
	uint8_t *data = malloc(INPUT_MAX);
	int n = 0;

	for (int i = 1; data != NULL && i < argc; i++) {
		FILE *f = fopen(argv[i], "rbe");

		if (f == NULL) {
			(void)fprintf(stderr, "%s can't be read.\n", argv[i]);
			free(data);
			return 1;
		}
		size_t size = fread(data, 1, INPUT_MAX, f);

		(void)fclose(f);
		(void)LLVMFuzzerTestOneInput(data, size);
		n++;
	}
	free(data);
	(void)printf("%d inputs\n", n);
	return n > 0 ? 0 : 1;
}
