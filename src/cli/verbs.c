/* verbs.c: the short verbs. */
#include "cli/cli.h"

#ifndef BATON_VERSION
#define BATON_VERSION "unknown"
#endif

int verb_version(struct settings *s)
{
	if (s->json != 0)
		(void)printf("{\"command\":\"%s\",\"library\":\"%s\"}\n", BATON_VERSION,
			     baton_version());
	else
		(void)printf("baton %s (library %s)\n", BATON_VERSION, baton_version());
	return EXIT_OK;
}
int verb_status(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_watch(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_candidates(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_resign(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_transfer(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_pause(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_resume(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_history(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_stores(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
int verb_check(struct settings *s)
{
	(void)s;
	return EXIT_INTERNAL;
}
