/*
 * fuzz_xml.c: what a server says, as XML. Whatever it is, events nest, texts end within their room,
 * and a bad document stays bad.
 */
#include <string.h>

#include "base/web/xml.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xml x;
	char out[64];
	char first[XML_NAME_MAX] = "";
	unsigned depth = 0;
	size_t n_events = 0;
	int event;

	xml_init(&x, (const char *)data, size);
	while ((event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE) {
		MUST(++n_events <= size + 1); /* each costs a byte, but the end of <a/> */
		depth += event == XML_OPEN;
		MUST(depth > 0 && depth <= XML_DEPTH_MAX);
		depth -= event == XML_CLOSE;
		MUST(strlen(x.text) < XML_TEXT_MAX && strlen(x.name) < XML_NAME_MAX);
		MUST(xml_is(&x, NULL, x.name));
		if (event == XML_CLOSE && first[0] == '\0' && x.text[0] != '\0')
			(void)strcpy(first, x.name);
	}
	MUST(event == XML_BAD || (event == XML_DONE && depth == 0 && n_events > 0));
	MUST(xml_next(&x) == event);
	bool is_found = xml_find((const char *)data, size, first, out, sizeof(out));

	MUST(!is_found || (event == XML_DONE && out[0] != '\0'));
	return 0;
}
