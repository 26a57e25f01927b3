/*
 * fuzz_name.c: names of elections. What is accepted as a name makes a path that leads back to the
 * same name and nowhere else; what isn't is refused before any I/O.
 */
#include <string.h>

#include "baton.h"
#include "fuzz.h"
#include "lib/messages.h"
#include "store/file/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);
	char path[FILE_PATH_SIZE];
	char back[BATON_NAME_MAX + 1];

	MUST(text != NULL);
	if (size > 0)
		(void)memcpy(text, data, size);
	(void)text_is_metadata(text);
	if (text_is_name(text, BATON_NAME_MAX)) {
		MUST(strlen(text) >= 1 && strlen(text) <= BATON_NAME_MAX);
		file_path_of(text, path);
		MUST(strstr(path, "..") == NULL || strstr(text, "..") != NULL);
		MUST(path[0] != '/' && path[0] != '.');
		MUST(file_name_of(path, back) == 0 && strcmp(back, text) == 0);
	}
	if (file_name_of(text, back) == 0) { /* and no two paths lead to one name */
		file_path_of(back, path);
		MUST(strcmp(path, text) == 0);
	}
	free(text);
	return 0;
}
