/*
 * doctor.c: what the library finds out about a store, for people and for programs. The URL is not
 * repeated: it may hold a password.
 */
#include "cli/cli.h"

#define INDENT 9
#define COLUMNS 80

static const char *const levels[] = {"ok", "note", "warning", "error"};

struct report {
	bool json;
	int n;
	int by_level[4];
};

static void show_json(const struct report *r, const struct baton_finding *f)
{
	(void)printf("%s{\"check\":", r->n > 0 ? "," : "{\"findings\":[");
	text_json(stdout, f->check);
	(void)printf(",\"level\":\"%s\",\"text\":", levels[f->level]);
	text_json(stdout, f->text);
	(void)printf(",\"fix\":");
	text_json(stdout, f->fix);
	(void)printf("}");
}

static void show_text(const struct baton_finding *f)
{
	(void)printf("%-*s%s\n", INDENT, levels[f->level], f->check);
	text_wrap(stdout, f->text, INDENT, COLUMNS);
	if (f->fix[0] != '\0') {
		char fix[1024];

		(void)snprintf(fix, sizeof(fix), "Fix: %s", f->fix);
		text_wrap(stdout, fix, INDENT, COLUMNS);
	}
}

static void show(void *arg, const struct baton_finding *f)
{
	struct report *r = arg;

	if (r->json)
		show_json(r, f);
	else
		show_text(f);
	r->by_level[f->level]++;
	r->n++;
}

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

static void summarize(const struct report *r, int worst)
{
	int errors = r->by_level[BATON_FINDING_ERROR];
	int warnings = r->by_level[BATON_FINDING_WARNING];
	int notes = r->by_level[BATON_FINDING_NOTE];

	if (r->json)
		(void)printf("%s],\"level\":\"%s\"}\n", r->n > 0 ? "" : "{\"findings\":[",
			     levels[worst]);
	else
		(void)printf("\n%d error%s, %d warning%s, %d note%s\n", errors, plural(errors),
			     warnings, plural(warnings), notes, plural(notes));
}

int verb_doctor(struct settings *s)
{
	struct report r = {.json = s->json != 0};
	struct baton_error err = {0};
	struct baton *b;
	int code = open_store_url(s);

	if (code == 0 && s->measure_ms != 0)
		return measure_run(s);
	if (code == 0)
		code = open_handle(s, &b);
	if (code != 0)
		return code;
	int worst = baton_examine(b, show, &r, &err);

	baton_close(b);
	if (worst < 0) {
		if (r.json && r.n > 0)
			summarize(&r, BATON_FINDING_ERROR); /* the JSON that was begun is ended */
		return open_fail(&err);
	}
	summarize(&r, worst);
	return worst == BATON_FINDING_ERROR     ? EXIT_FAILING
	       : worst == BATON_FINDING_WARNING ? EXIT_NO
						: EXIT_OK;
}
