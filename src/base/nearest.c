/* nearest.c: the word that was meant: see nearest.h. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/nearest.h"

#define WORD_MAX 32

/* Letters to add, remove, change or swap. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1] = {{0}};
	size_t n = strlen(a);
	size_t m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (unsigned j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3];
		const unsigned *up = row[(i - 1) % 3];
		const unsigned *upup = row[(i + 1) % 3]; /* i - 2 */

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    upup[j - 2] + 1 < best)
				best = upup[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[n % 3][m];
}

const char *nearest_word(const char *word, const char *const *list)
{
	const char *best = NULL;
	unsigned least = (unsigned)strlen(word) / 3 + 1;

	for (; *list != NULL; list++) {
		bool begins = strlen(word) >= 3 && strncmp(*list, word, strlen(word)) == 0;
		unsigned d = begins ? 1 : edit_distance(word, *list);

		if (d <= least && (best == NULL || d < least)) {
			best = *list;
			least = d;
		}
	}
	return best;
}
