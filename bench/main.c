/*
 * main.c: runs the measurements, prints the table, writes bench.json, bench.svg and bench.samples,
 * and counts what is within budget. Not part of the tests: a test never asserts a time.
 */
#include <dirent.h>
#include <ftw.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define ROWS_MAX 64
/* Names bench.samples to bench/peers, which adds to it. */
#define SAMPLES_FILE "BATON_BENCH_SAMPLES"

struct one_row {
	char what[80];
	char beside[96];
	char unit[16];
	double value;
	double budget;
};

static struct one_row rows[ROWS_MAX];
static int n_rows;
static char dir[256];
static const char *folder;

static void write_files(void);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A directory of its own for each. */
static const char *file_url(const char *part)
{
	static char url[512];

	(void)snprintf(url, sizeof(url), "file:%s/%s", dir, part);
	return url;
}

static void handoff(bool quick)
{
	bench_handoff("memory:bench", "memory", quick);
	bench_handoff(file_url("handoff"), "file", quick);
}

static void orders(bool quick)
{
	bench_orders(file_url("orders"), "file", NULL, quick);
}

static void growth(bool quick)
{
	bench_growth(file_url("growth"), "file", NULL, quick);
}

/* Without a server; only: one part of it, or NULL. */
static void measure(bool quick, const char *only)
{
	static const struct {
		const char *name;
		void (*run)(bool quick);
	} parts[] = {
		{"memory", bench_memory},   {"is_leader", bench_is_leader},
		{"handoff", handoff},       {"orders", orders},
		{"growth", growth},         {"crash", bench_crash},
		{"command", bench_command}, {"serve", bench_serve},
		{"many", bench_many},
	};
	bool is_any = false;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (only != NULL && strcmp(only, parts[i].name) != 0)
			continue;
		parts[i].run(quick);
		is_any = true;
	}
	if (!is_any)
		bench_die("There is nothing to measure that is called %s.", only);
}

struct plan {
	const char *store; /* NULL: those without a server */
	const char *only;  /* NULL: all rows */
	const char *out;
	bool quick;
};

static void usage(int status)
{
	(void)fputs(
		"usage: bench [--quick | --command] [FOLDER]\n"
		"       bench [--quick] [--only memory|is_leader|handoff|orders|growth|crash|\n"
		"             command|serve|many] [FOLDER]\n"
		"       bench [--quick] --store URL\n"
		"             [--only PART[,PART...]]\n"
		"Measures the library, `baton run` and `baton serve` without a server\n"
		"(--command: `baton run` alone), or a store on a server that is thrown away\n"
		"afterwards (parts: handoff, orders, growth, status, peers, crash, fast, standby,\n"
		"many);\n"
		"--quick takes a tenth of the samples. The rows also go to FOLDER/bench.json and\n"
		"bench.svg, the samples of distributions to FOLDER/bench.samples, a line of JSON\n"
		"for each.\n"
		"FOLDER is `build` unless it is named.\n",
		status == 0 ? stdout : stderr);
	exit(status);
}

static struct plan read_plan(int argc, char **argv)
{
	static const struct option options[] = {
		{"quick", no_argument, NULL, 'q'},       {"command", no_argument, NULL, 'c'},
		{"store", required_argument, NULL, 's'}, {"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
	};
	struct plan p = {.out = "build"};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'q': p.quick = true; break;
		case 'c': p.only = "command"; break;
		case 's': p.store = optarg; break;
		case 'o': p.only = optarg; break;
		case 'h': usage(0); break;
		default: usage(2);
		}
	}
	if (optind < argc)
		p.out = argv[optind++];
	if (optind < argc)
		usage(2);
	return p;
}

/* Empties the file: those who measure add to it. */
static void begin_samples(const char *out)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/bench.samples", out);
	f = fopen(path, "we");
	if (f == NULL || setenv(SAMPLES_FILE, path, 1) != 0)
		bench_die("%s can't be written.", path);
	(void)fclose(f);
}

int main(int argc, char **argv)
{
	struct plan p = read_plan(argc, argv);
	int within = 0;
	int over = 0;

	(void)snprintf(dir, sizeof(dir), "%s/bench-XXXXXX", p.out);
	if (mkdtemp(dir) == NULL)
		bench_die("No directory can be made in that FOLDER for the measurements.");
	(void)atexit(remove_dir);
	folder = p.out;
	begin_samples(p.out);
	(void)atexit(write_files); /* also when it gives up: what is measured is measured */
	if (p.store != NULL)
		bench_store(p.store, p.quick, p.only);
	else
		measure(p.quick, p.only);
	for (int i = 0; i < n_rows; i++) {
		within += rows[i].budget > 0 && rows[i].value <= rows[i].budget;
		over += rows[i].budget > 0 && rows[i].value > rows[i].budget;
	}
	(void)printf("bench: %d rows, %d within budget, %d over budget\n", n_rows, within, over);
	return over == 0 ? 0 : 1;
}

void row(const char *what, double value, double budget, const char *unit, const char *beside)
{
	struct one_row *r = &rows[n_rows];

	if (n_rows == 0)
		(void)printf("%-44s %12s %12s  %-6s %s\n", "what", "measured", "budget", "",
			     "beside");
	if (n_rows == ROWS_MAX)
		bench_die("There are more rows than ROWS_MAX.");
	n_rows++;
	(void)snprintf(r->what, sizeof(r->what), "%s", what);
	(void)snprintf(r->beside, sizeof(r->beside), "%s", beside);
	(void)snprintf(r->unit, sizeof(r->unit), "%s", unit);
	r->value = value;
	r->budget = budget;
	if (budget > 0)
		(void)printf("%-44s %12.3f %12.3f  %-6s %s%s\n", what, value, budget, unit, beside,
			     value > budget ? "  OVER" : "");
	else
		(void)printf("%-44s %12.3f %12s  %-6s %s\n", what, value, "-", unit, beside);
	(void)fflush(stdout);
}

static FILE *create(const char *name)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	if (f == NULL)
		(void)fprintf(stderr, "%s can't be written.\n", path);
	return f;
}

static void write_json(void)
{
	FILE *f = create("bench.json");

	if (f == NULL)
		return;
	(void)fprintf(f, "[\n");
	for (int i = 0; i < n_rows; i++)
		(void)fprintf(f,
			      "  {\"what\": \"%s\", \"value\": %.6f, \"budget\": %.6f, "
			      "\"unit\": \"%s\", \"beside\": \"%s\"}%s\n",
			      rows[i].what, rows[i].value, rows[i].budget, rows[i].unit,
			      rows[i].beside, i + 1 < n_rows ? "," : "");
	(void)fprintf(f, "]\n");
	(void)fclose(f);
}

/* Bars of value / budget; the line is the budget. */
static void write_svg(void)
{
	FILE *f = create("bench.svg");
	int y = 40;

	if (f == NULL)
		return;
	(void)fprintf(f,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"%d\" "
		      "font-family=\"sans-serif\" font-size=\"12\">\n"
		      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		      "<text x=\"10\" y=\"20\">measured / budget (the line is the budget)</text>\n",
		      n_rows * 22 + 60);
	for (int i = 0; i < n_rows; i++) {
		double ratio = rows[i].budget > 0 ? rows[i].value / rows[i].budget : 0;

		if (rows[i].budget <= 0)
			continue;
		(void)fprintf(f,
			      "<text x=\"10\" y=\"%d\">%s</text><rect x=\"340\" y=\"%d\" "
			      "width=\"%.1f\" height=\"14\" fill=\"%s\"/>"
			      "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n",
			      y + 12, rows[i].what, y, (ratio > 2 ? 2 : ratio) * 240,
			      ratio > 1 ? "#c0392b" : "#2980b9",
			      346 + (ratio > 2 ? 2 : ratio) * 240, y + 12, ratio);
		y += 22;
	}
	(void)fprintf(
		f, "<line x1=\"580\" y1=\"34\" x2=\"580\" y2=\"%d\" stroke=\"black\"/>\n</svg>\n",
		y);
	(void)fclose(f);
}

static void write_files(void)
{
	write_json();
	write_svg();
}

/* ---- what all measurements use ---- */

uint64_t bench_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const char *bench_dir(void)
{
	return dir;
}

void bench_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(2);
}

struct baton *bench_open(const char *url, const char *id)
{
	return bench_open_lease(url, id, 0);
}

struct baton *bench_open_lease(const char *url, const char *id, uint64_t lease_ms)
{
	struct baton_options o;
	struct baton_error err;
	struct baton *b;

	baton_options_init(&o);
	o.id = id;
	if (lease_ms != 0)
		o.lease_ms = lease_ms;
	if (baton_open(url, &o, &b, &err) != 0)
		bench_die("%s: %s", url, err.text);
	return b;
}

struct baton_election *bench_election(struct baton *b, const char *name)
{
	struct baton_error err;
	struct baton_election *e;

	if (baton_election_new(b, name, NULL, &e, &err) != 0)
		bench_die("%s: %s", name, err.text);
	return e;
}

void bench_until_leader(struct baton *b, const struct baton_election *e)
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;
	struct baton_event event;

	while (!baton_is_leader(e)) {
		if (bench_now_ns() > limit_ns)
			bench_die("%s has no leader after a minute.", baton_election_name(e));
		(void)baton_wait(b, 1000, &event);
	}
}

void bench_until_standby(struct baton *b, const struct baton_election *e)
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;
	struct baton_event event;
	struct baton_status s;

	while (baton_get_status(e, &s) == 0 &&
	       (s.state != BATON_STATE_STANDBY || s.leader[0] == '\0')) {
		if (bench_now_ns() > limit_ns)
			bench_die("The standby doesn't see a leader.");
		(void)baton_wait(b, 10, &event);
	}
}

void samples_init(struct samples *s)
{
	s->n = 0;
	s->list = calloc(SAMPLES_MAX, sizeof(*s->list));
	if (s->list == NULL)
		bench_die("Out of memory.");
}

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->n < SAMPLES_MAX)
		s->list[s->n++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t samples_at(struct samples *s, double percent)
{
	if (s->n == 0)
		return 0;
	qsort(s->list, s->n, sizeof(*s->list), compare);
	size_t i = (size_t)((double)(s->n - 1) * percent / 100.0);

	return s->list[i];
}

void samples_keep(const struct samples *s, const char *what, const char *whose)
{
	const char *path = getenv(SAMPLES_FILE);
	FILE *f = path != NULL ? fopen(path, "ae") : NULL;

	if (f == NULL)
		bench_die("The samples can't be written.");
	(void)fprintf(f, "{\"what\": \"%s\", \"whose\": \"%s\", \"ms\": [", what, whose);
	for (size_t i = 0; i < s->n; i++)
		(void)fprintf(f, "%s%.4f", i > 0 ? ", " : "", (double)s->list[i] / 1e6);
	(void)fprintf(f, "]}\n");
	(void)fclose(f);
}

void samples_done(struct samples *s)
{
	free(s->list);
}
