/*
 * serve.c: `baton serve` is a program of its own, so that `baton run` never loads an HTTP library:
 * this verb starts it in its place. The other verb here, `baton page`, reads what that program
 * writes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

int verb_serve(struct settings *s)
{
	(void)execv(BATON_LIBEXEC_DIR "/serve", s->argv);
	log_say(BATON_LOG_ERROR, "%s can't be run: %s; the package baton-serve has it",
		BATON_LIBEXEC_DIR "/serve", strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANT_RUN;
}

int verb_page(struct settings *s)
{
	struct baton_page *page;
	struct baton_error err = {0};

	if (baton_page_open(s->page_dir, s->name, &page, &err) != 0)
		return open_fail(&err) == EXIT_USAGE ? EXIT_USAGE : EXIT_UNAVAILABLE;
	uint64_t term = baton_page_term(page);

	baton_page_close(page);
	if (s->json != 0)
		(void)printf("{\"leads\":%s,\"term\":\"%llu\"}\n", term != 0 ? "true" : "false",
			     (unsigned long long)term);
	else if (term != 0)
		(void)printf("leads in term %llu\n", (unsigned long long)term);
	else
		(void)printf("doesn't lead\n");
	return term != 0 ? EXIT_OK : EXIT_NO;
}
