/*
 * path.c: which of the known paths a request names. Requests are counted by it, because names of
 * elections must not become labels. The files of the dashboard, and unknown paths, are "other".
 */
#include <string.h>

#include "serve/answer/route.h"

static const char *const paths[] = {
	"other",
	"/",
	"/livez",
	"/readyz",
	"/healthz",
	"/leader/{name}",
	"/standby/{name}",
	"/any/{name}",
	"/sse",
	"/metrics",
	"/openapi.json",
	"/v1",
	"/v1/doctor",
	"/v1/events",
	"/v1/elections",
	"/v1/elections/{name}",
	"/v1/elections/{name}/alive",
	"/v1/elections/{name}/candidates",
	"/v1/elections/{name}/done",
	"/v1/elections/{name}/health",
	"/v1/elections/{name}/history",
	"/v1/elections/{name}/lead",
	"/v1/elections/{name}/leadership",
	"/v1/elections/{name}/paused",
	"/v1/elections/{name}/resign",
	"/v1/elections/{name}/terms/{term}",
	"/v1/elections/{name}/transfer",
};

_Static_assert(sizeof(paths) / sizeof(paths[0]) == SERVE_PATHS, "one name for each path");

/* Whether the segments are those of the path; a word in braces is any. */
static bool is_path(const struct parsed *p, const char *path)
{
	size_t i = 0;

	while (path[0] == '/' && path[1] != '\0') {
		size_t n = 0;

		while (path[1 + n] != '\0' && path[1 + n] != '/')
			n++;
		if (i == p->n_segments)
			return false;
		if (path[1] != '{' &&
		    (strlen(p->segments[i]) != n || memcmp(p->segments[i], path + 1, n) != 0))
			return false;
		i++;
		path += 1 + n;
	}
	return i == p->n_segments;
}

size_t serve_path(const char *target)
{
	struct parsed p = {0};

	if (!parse_target(target, &p))
		return 0;
	for (size_t i = 1; i < SERVE_PATHS; i++)
		if (is_path(&p, paths[i]))
			return i;
	return 0;
}

const char *serve_path_name(size_t path)
{
	return paths[path < SERVE_PATHS ? path : 0];
}
