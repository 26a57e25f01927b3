/*
 * tale.c: a file of stories. A story is told again line by line: what the author wrote about
 * the world is kept, what the core did is written anew. If the two texts differ, it failed, and
 * the difference is the message; `--update` writes the new text into the file instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "story.h"
#include "text.h"

#define LINES_BEFORE 12u
#define INDENT "    "
#define TRACE_INDENT "                "
#define NOW_INDENT "            "

enum line_kind {
	LINE_OTHER, /* blank, comment */
	LINE_STORY,
	LINE_PROSE,
	LINE_WITH,
	LINE_GIVEN,
	LINE_EVENT,
	LINE_NOW,
	LINE_TRACE,
};

struct tale {
	const char *path;
	const struct lines *source;
	struct lines told;
	struct world world;
	const char *name;
	const char *error;
	size_t error_line;
	bool began;
};

/* ---- lines ---- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* Text after the word, or NULL if the line begins with another one. */
static const char *after_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	line = skip_blanks(line);
	if (strncmp(line, word, n) != 0 || (line[n] != ' ' && line[n] != '\0'))
		return NULL;
	return skip_blanks(line + n);
}

static enum line_kind kind_of(const char *line, bool in_prose)
{
	const char *text = skip_blanks(line);

	if (*text == '\0' || *text == '#')
		return LINE_OTHER;
	if (after_word(text, "story") != NULL && text == line)
		return LINE_STORY;
	if (after_word(text, "with") != NULL)
		return LINE_WITH;
	if (after_word(text, "given") != NULL)
		return LINE_GIVEN;
	if (in_prose)
		return LINE_PROSE;
	if (*text >= '0' && *text <= '9')
		return LINE_EVENT;
	return after_word(text, "now") != NULL ? LINE_NOW : LINE_TRACE;
}

static bool is_story(const char *line)
{
	return kind_of(line, false) == LINE_STORY;
}

static bool read_lines(const char *path, struct lines *l)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return false;
	while ((n = getline(&line, &room, f)) >= 0) {
		while (n > 0 && strchr("\n\r \t", line[n - 1]) != NULL)
			line[--n] = '\0';
		lines_add(l, "%s", line);
	}
	free(line);
	bool ok = ferror(f) == 0;

	return fclose(f) == 0 && ok;
}

static bool write_lines(const char *path, const struct lines *l)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return false;
	for (size_t i = 0; i < l->n; i++)
		(void)fprintf(f, "%s\n", l->v[i]);
	bool ok = ferror(f) == 0;

	return fclose(f) == 0 && ok;
}

/* ---- telling ---- */

static void tell_trace(struct tale *t)
{
	struct lines *trace = &t->world.trace;

	for (size_t i = 0; i < trace->n; i++)
		lines_add(&t->told, TRACE_INDENT "%s", trace->v[i]);
	lines_clear(trace);
}

static void tell_event(struct tale *t, uint64_t at_ns, const char *event)
{
	char time[40];

	text_span(at_ns - STORY_BEGIN_NS, time, sizeof(time));
	lines_add(&t->told, INDENT "%-7s %s", time, event);
}

/* Lets time pass until then; what timers do on the way is told at its own time. */
static void pass_time(struct tale *t, uint64_t until_ns, bool told_then)
{
	struct world *w = &t->world;

	for (;;) {
		uint64_t wake_ns = max_ns(world_wake_ns(w), w->now_ns);

		if (wake_ns > until_ns || w->broken)
			break;
		w->now_ns = wake_ns;
		world_settle(w);
		if (wake_ns == until_ns && told_then)
			return;
		if (w->trace.n > 0)
			tell_event(t, wake_ns, "...");
		tell_trace(t);
	}
	w->now_ns = until_ns;
}

static bool take_event(struct tale *t, const char *line)
{
	char time[32];
	const char *text = skip_blanks(line);
	size_t n = strcspn(text, " \t");
	uint64_t at_ns;

	(void)snprintf(time, sizeof(time), "%.*s", (int)n, text);
	text = skip_blanks(text + n);
	if (!parse_span(time, &at_ns) || at_ns > UINT64_MAX / 2) {
		t->error = "this is no time";
		return false;
	}
	at_ns += STORY_BEGIN_NS;
	if (at_ns < t->world.now_ns) {
		t->error = "time never goes back";
		return false;
	}
	bool wait = strcmp(text, "...") == 0;

	pass_time(t, at_ns, wait);
	tell_event(t, at_ns, text);
	bool ok = wait || play_event(&t->world, text, &t->error);

	tell_trace(t);
	return ok;
}

static bool take_now(struct tale *t, const char *line)
{
	char answer[LINE_MAX_CHARS];

	if (!play_question(&t->world, after_word(line, "now"), answer, sizeof(answer), &t->error))
		return false;
	lines_add(&t->told, NOW_INDENT "%s", answer);
	return true;
}

static bool take_setting(struct tale *t, const char *line, bool given)
{
	const char *word = given ? "given" : "with";
	const char *text = skip_blanks(skip_blanks(line) + strlen(word));

	lines_add(&t->told, INDENT "%s %s", word, text);
	if (!given && t->began) {
		t->error = "settings come first";
		return false;
	}
	if (!given)
		return play_setting(&t->world, text, &t->error);
	if (!t->began)
		world_begin(&t->world);
	t->began = true;
	bool ok = play_given(&t->world, text, &t->error);

	lines_clear(&t->world.trace);
	return ok;
}

static bool take_line(struct tale *t, const char *line, enum line_kind kind)
{
	switch (kind) {
	case LINE_WITH:
	case LINE_GIVEN: return take_setting(t, line, kind == LINE_GIVEN);
	case LINE_EVENT:
		if (!t->began)
			world_begin(&t->world);
		t->began = true;
		return take_event(t, line);
	case LINE_NOW: return take_now(t, line);
	case LINE_TRACE: /* what the core did is told anew */ return true;
	case LINE_PROSE: lines_add(&t->told, INDENT "%s", skip_blanks(line)); return true;
	default: lines_add(&t->told, "%s", line); return true;
	}
}

/* Tells the story in source lines [begin, end) again, into t->told. */
static bool tell(struct tale *t, size_t begin, size_t end)
{
	bool in_prose = true;

	world_init(&t->world);
	for (size_t i = begin; i < end; i++) {
		const char *line = t->source->v[i];
		enum line_kind kind = kind_of(line, in_prose);

		in_prose = in_prose && (kind == LINE_STORY || kind == LINE_PROSE);
		if (!take_line(t, line, kind)) {
			t->error_line = i + 1;
			return false;
		}
	}
	return !t->world.broken;
}

/* ---- comparing ---- */

/* Blanks, empty lines and comments make no difference. */
static bool is_same(const char *a, const char *b)
{
	for (;;) {
		a = skip_blanks(a);
		b = skip_blanks(b);
		size_t n = strcspn(a, " \t");

		if (n != strcspn(b, " \t") || strncmp(a, b, n) != 0)
			return false;
		if (n == 0)
			return true;
		a += n;
		b += n;
	}
}

static bool counts(const char *line)
{
	return *skip_blanks(line) != '\0' && *skip_blanks(line) != '#';
}

/* The length of the longest common part from a[i] and b[j] on, for all i and j. */
static size_t *common_lengths(char **a, size_t n, char **b, size_t m)
{
	size_t *common = calloc((n + 1) * (m + 1), sizeof(*common));

	for (size_t i = n; common != NULL && i-- > 0;) {
		for (size_t j = m; j-- > 0;) {
			size_t *here = &common[i * (m + 1) + j];
			size_t below = here[m + 1];

			if (is_same(a[i], b[j]))
				*here = here[m + 2] + 1;
			else
				*here = below > here[1] ? below : here[1];
		}
	}
	return common;
}

static void print_line(const struct tale *t, size_t line, char sign, const char *text)
{
	if (counts(text))
		printf("%s:%zu: %c %s\n", t->path, line, sign, text);
}

/* Expected lines with '-', lines that came instead with '+'. True: there are none of them. */
static bool compare(const struct tale *t, size_t begin, size_t end, bool print)
{
	char **a = t->source->v + begin;
	char **b = t->told.v;
	size_t n = end - begin;
	size_t m = t->told.n;
	size_t *common = common_lengths(a, n, b, m);
	size_t i = 0;
	size_t j = 0;
	bool same = common != NULL;

	while (common != NULL && (i < n || j < m)) {
		if (i < n && j < m && is_same(a[i], b[j])) {
			if (print)
				print_line(t, begin + i + 1, ' ', a[i]);
			i++;
			j++;
		} else if (j == m || (i < n && common[(i + 1) * (m + 1) + j] >=
						       common[i * (m + 1) + j + 1])) {
			same = same && !counts(a[i]);
			if (print)
				print_line(t, begin + i + 1, '-', a[i]);
			i++;
		} else {
			same = same && !counts(b[j]);
			if (print)
				print_line(t, begin + i, '+', b[j]);
			j++;
		}
	}
	free(common);
	return same;
}

/* ---- files ---- */

/* A line that makes no sense, and what was told before it. */
static void explain(const struct tale *t)
{
	size_t from = t->told.n > LINES_BEFORE ? t->told.n - LINES_BEFORE : 0;

	for (size_t i = from; i < t->told.n; i++)
		printf("%s\n", t->told.v[i]);
	printf("%s:%zu: %s: %s\n", t->path, t->error_line, t->error,
	       t->source->v[t->error_line - 1]);
}

static void check(struct tale *t, size_t begin, size_t end, struct tally_of_tales *sum)
{
	bool told = tell(t, begin, end);

	if (told && compare(t, begin, end, false)) {
		sum->passed++;
		return;
	}
	sum->failed++;
	printf("%s:%zu: story %s failed ('-' expected, '+' told)\n", t->path, begin + 1, t->name);
	if (t->error != NULL)
		explain(t);
	else
		(void)compare(t, begin, end, true);
}

static void list(const struct tale *t, size_t begin, size_t end)
{
	printf("%s:", t->name);
	for (size_t i = begin + 1; i < end && counts(t->source->v[i]); i++) {
		const char *line = skip_blanks(t->source->v[i]);
		const char *stop = strstr(line, ". ");

		if (stop != NULL || line[strlen(line) - 1] == '.') {
			printf(" %.*s", stop != NULL ? (int)(stop - line + 1) : -1, line);
			break;
		}
		printf(" %s", line);
	}
	printf("\n");
}

/* What couldn't be told to its end is left as it is. */
static void update(struct tale *t, size_t begin, size_t end, struct lines *out,
		   struct tally_of_tales *sum)
{
	bool told = tell(t, begin, end);

	if (t->error != NULL)
		explain(t);
	else if (!told)
		printf("%s:%zu: story %s breaks a promise\n", t->path, begin + 1, t->name);
	sum->passed += told;
	sum->failed += !told;
	for (size_t i = 0; t->error == NULL && i < t->told.n; i++)
		lines_add(out, "%s", t->told.v[i]);
	for (size_t i = begin; t->error != NULL && i < end; i++)
		lines_add(out, "%s", t->source->v[i]);
}

static void one_story(struct tale *t, size_t begin, size_t end, enum tale_mode mode,
		      struct lines *out, struct tally_of_tales *sum)
{
	t->name = after_word(t->source->v[begin], "story");
	if (mode == TALE_LIST)
		list(t, begin, end);
	else if (mode == TALE_UPDATE)
		update(t, begin, end, out, sum);
	else
		check(t, begin, end, sum);
	world_done(&t->world);
	lines_done(&t->told);
}

bool tale_file(const char *path, enum tale_mode mode, const char *only, struct tally_of_tales *sum)
{
	struct lines source = {0};
	struct lines out = {0};
	bool ok = read_lines(path, &source);
	size_t begin = 0;

	while (begin < source.n && !is_story(source.v[begin]))
		lines_add(&out, "%s", source.v[begin++]);
	while (begin < source.n) {
		struct tale t = {.path = path, .source = &source};
		size_t end = begin + 1;

		while (end < source.n && !is_story(source.v[end]))
			end++;
		if (only == NULL || strcmp(after_word(source.v[begin], "story"), only) == 0)
			one_story(&t, begin, end, mode, &out, sum);
		begin = end;
	}
	if (ok && mode == TALE_UPDATE)
		ok = write_lines(path, &out);
	lines_done(&source);
	lines_done(&out);
	return ok;
}
