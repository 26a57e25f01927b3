/*
 * main.c: the front door: finds the verb, reads its options, calls it. A word that isn't understood
 * is answered with one sentence and the nearest word that would be.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

static int run_verb(int argc, char **argv);
static void fill_stdio(void);
static int end_output(int code);
static const struct cli_verb *find_verb(const char *word);
static int show_help(const char *word);
static void verb_help(const struct cli_verb *verb);
static const char *verb_name(unsigned bit);

static const struct cli_verb verbs[] = {
	{"run", VERB_RUN, "NAME -- COMMAND [ARGUMENT...]",
	 "Run COMMAND while this candidate leads NAME, and nowhere else.",
	 "Exits with COMMAND's own code; 128+N: signal N; 64: usage; 69: store failed;\n"
	 "70: guard failed; 75: another candidate leads; 126: can't run; 127: not found.\n"
	 "JSON: time, level, message, election, term, detail, trace_id, span_id.\n",
	 verb_run, true},
	{"status", VERB_STATUS, "NAME", "Show the leader, its term, since when, and the standbys.",
	 "Exits with 0 if there is a leader, 1 if there is none, 2 if the store fails.\n"
	 "JSON: election, health, leader, term, since, time_left_ms, paused, functions,\n"
	 "wait_ms, wait, address, metadata, candidates, error.\n",
	 verb_status, true},
	{"watch", VERB_WATCH, "NAME", "Print one line for each change of leader.",
	 "JSON: time, election, leader, term, old_leader, old_term; or time, election,\n"
	 "error; or time, election, wait_ms, wait.\n",
	 verb_watch, true},
	{"candidates", VERB_CANDIDATES, "NAME", "List the candidates, with health and priority.",
	 "JSON: a list of id, leader, healthy, score, priority, updated, address,\n"
	 "metadata.\n",
	 verb_candidates, true},
	{"resign", VERB_RESIGN, "NAME", "Order the leader to step down.",
	 "Exits with 0 if the order is in the store, 1 if there is no leader, or the\n"
	 "leader has another term than --term.\n",
	 verb_resign, true},
	{"transfer", VERB_TRANSFER, "NAME --to ID", "Order the leader to hand over to ID.",
	 "Exits with 0 if the order is in the store, 1 if there is no leader, or the\n"
	 "leader has another term than --term, or ID can't take over.\n",
	 verb_transfer, true},
	{"pause", VERB_PAUSE, "NAME", "Pause the election: no candidate leads until resume.", "",
	 verb_pause, true},
	{"resume", VERB_RESUME, "NAME", "End the pause.", "", verb_resume, true},
	{"history", VERB_HISTORY, "NAME", "List past leaderships: leader, term, times, end.",
	 "With --check, exits with 0 if no two leaderships overlapped, else with 1.\n"
	 "JSON: a list of term, leader, since, until, ended, clock, since_ns, until_ns,\n"
	 "note.\n",
	 verb_history, true},
	{"list", VERB_LIST, "[PREFIX]", "List the elections in the store, by name.",
	 "JSON: a list of election.\n", verb_list, false},
	{"check", VERB_CHECK, "NAME --term N", "Tell a script whether term N still leads.",
	 "Exits with 0 if the term leads, 1 if it doesn't, 69 if the store can't tell.\n",
	 verb_check, true},
	{"doctor", VERB_DOCTOR, "", "Examine the store: what is wrong, and what would help.",
	 "Exits with 0: no warnings; 1: warnings; 2: errors.\n"
	 "JSON: level, findings; of each finding: check, level, text, fix. --measure:\n"
	 "samples, p50_ms, p99_ms, p999_ms, worst_ms, outage_ms, pause_ms,\n"
	 "pressure_percent, steal_percent, floor_ms, stop_ms, timings, renewals_ms.\n",
	 verb_doctor, false},
	{"simulate", VERB_SIMULATE, "",
	 "Simulate years of an election: how often the leader would change.",
	 "JSON: a list of name, lease_ms, renew_ms, grace_ms, years, crash, freeze,\n"
	 "outage, slow, without_ms, longest_ms, half_ms, p99_ms, renewals, overlaps.\n",
	 verb_simulate, false},
	{"serve", VERB_SERVE, "[NAME...]",
	 "Tell programs over HTTP which candidate leads; show a dashboard.",
	 "Always serves a unix socket; --listen=127.0.0.1:8080 adds TCP. SIGTERM ends it.\n"
	 "Exits with 0 on SIGTERM; 64: usage; 69: the store denies access; 70: can't\n"
	 "serve.\n",
	 verb_serve, false},
	{"page", VERB_PAGE, "NAME", "Tell whether this host's baton serve leads the election.",
	 "Exits with 0 if the candidate leads, 1 if it doesn't, 69 if there is no page.\n"
	 "JSON: leads, term.\n",
	 verb_page, true},
	{"stores", VERB_STORES, "", "List the kinds of store, and what each promises.", "",
	 verb_stores, false},
	{"schema", VERB_SCHEMA, "STORE", "Print the SQL that makes baton's tables.",
	 "For the store's own client: baton schema postgres | psql mydb\n", verb_schema, false},
	{"version", VERB_VERSION, "", "Show the version of the command and the library.", "",
	 verb_version, false},
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

int main(int argc, char **argv)
{
	fill_stdio();
	log_guess(argv);
	return end_output(run_verb(argc, argv));
}

/*
 * Descriptors that were closed stay closed for the command of run, but no file of ours may take
 * their numbers.
 */
static void fill_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* An answer that can't be written is a failure, whatever the verb has found out. */
static int end_output(int code)
{
	bool failed = ferror(stdout) != 0;

	errno = 0;
	if (fclose(stdout) == 0 && !failed)
		return code;
	log_say(BATON_LOG_ERROR, "standard output can't be written%s%s", errno != 0 ? ": " : "",
		errno != 0 ? strerror(errno) : "");
	return EXIT_INTERNAL;
}

static int run_verb(int argc, char **argv)
{
	static struct settings s; /* what it points to lives as long as the process */

	if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return show_help(argc > 2 ? argv[2] : NULL);
	if (strcmp(argv[1], "--version") == 0)
		return verb_version(&s);
	if (strcmp(argv[1], "--list-options") == 0) {
		options_list(stdout, verb_name);
		return EXIT_OK;
	}
	const struct cli_verb *verb = find_verb(argv[1]);

	if (verb == NULL)
		return EXIT_USAGE;
	s.argv = argv;
	int code = options_read(&s, verb, argc - 2, argv + 2);

	if (code != 0)
		return code;
	if (s.help != 0) {
		verb_help(verb);
		return EXIT_OK;
	}
	log_setup(&s);
	return verb->main(&s);
}

/* NULL after saying what would have been right. */
static const struct cli_verb *find_verb(const char *word)
{
	const char *names[N_VERBS + 1] = {NULL};

	for (size_t i = 0; i < N_VERBS; i++) {
		names[i] = verbs[i].name;
		if (strcmp(word, verbs[i].name) == 0)
			return &verbs[i];
	}
	const char *near = nearest_word(word, names);

	if (near != NULL)
		(void)cli_usage("there is no verb \"%s\"; did you mean \"baton %s\"?", word, near);
	else
		(void)cli_usage("there is no verb \"%s\"; \"baton help\" lists what there is",
				word);
	return NULL;
}

static const char *verb_name(unsigned bit)
{
	for (size_t i = 0; i < N_VERBS; i++)
		if (verbs[i].bit == bit)
			return verbs[i].name;
	return "-";
}

static int show_help(const char *word)
{
	if (word != NULL) {
		const struct cli_verb *verb = find_verb(word);

		if (verb == NULL)
			return EXIT_USAGE;
		verb_help(verb);
		return EXIT_OK;
	}
	(void)printf(
		"baton: run a program on exactly one of many machines\n"
		"    baton run NAME -- COMMAND    on every machine; one works, the others wait\n"
		"    baton status NAME            who leads\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		(void)printf("  %-11s %s\n", verbs[i].name, verbs[i].summary);
	(void)printf("\n\"baton VERB --help\" shows a verb's options. "
		     "Without --store: this host only.\n");
	return EXIT_OK;
}

static void verb_help(const struct cli_verb *verb)
{
	(void)printf("usage: baton %s [OPTION...] %s\n%s\n\n", verb->name, verb->args,
		     verb->summary);
	options_help(stdout, verb->bit);
	(void)printf("%s%s", verb->notes[0] != '\0' ? "\n" : "", verb->notes);
}
