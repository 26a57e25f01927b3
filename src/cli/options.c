/*
 * options.c: one table says what can be set; flags, variables and configuration keys all come from
 * it, so that none can be forgotten. What is given on the command line wins over the environment
 * (BATON_LEASE for --lease), that over the configuration file, that over the profile.
 *
 * Values are kept as int64_t or string at the row's offset; `given` remembers which source a value
 * came from.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

enum kind { TIME, SPAN, PERMILLE, NUMBER, YES, WORD, TEXT, SIGNAL };

struct row {
	const char *name;
	const char *arg; /* for the help */
	const char *help;
	unsigned verbs;
	int kind;
	size_t at;
	const char *const *words; /* WORD: the value is the index */
	const char *fallback;
	bool is_election; /* also a variable and a configuration key */
};

static const char *const profiles[] = {"fast", "normal", "unreliable", NULL};
static const char *const held_words[] = {"wait", "exit", NULL};
static const char *const compat_words[] = {"none", "client-go", NULL};
static const char *const levels[] = {"", "error", "warn", "info", "debug", NULL};
static const char *const formats[] = {"text", "json", NULL};

#define AT(field) offsetof(struct settings, field)
static const char *const attach_words[] = {"any", "require", NULL};

#define STORE_VERBS \
	(VERB_ALL & \
	 ~(unsigned)(VERB_STORES | VERB_SCHEMA | VERB_VERSION | VERB_PAGE | VERB_SIMULATE))
#define TIMED_VERBS (VERB_RUN | VERB_DOCTOR | VERB_SERVE) /* they keep a lease */
#define PLANNED_VERBS (TIMED_VERBS | VERB_SIMULATE)       /* simulate keeps a simulated one */
#define LEADING_VERBS (VERB_RUN | VERB_SERVE)

static const struct row rows[] = {
	{"store", "URL", "where elections live: file:/var/lib/myapp", STORE_VERBS, TEXT, AT(store),
	 NULL, NULL, true},
	{"profile", "WORD", "timings: fast (3s), normal (15s), unreliable (60s)", PLANNED_VERBS,
	 WORD, AT(profile), profiles, "normal", true},
	{"lease", "TIME", "how long a frozen leader blocks the others (15s)", PLANNED_VERBS, SPAN,
	 AT(lease_ms), NULL, "0", true},
	{"renew", "TIME", "how often the lease is renewed (a third of the lease)", PLANNED_VERBS,
	 SPAN, AT(renew_ms), NULL, "0", true},
	{"grace", "TIME", "how long a renewal may fail (a third of the lease)", PLANNED_VERBS, SPAN,
	 AT(grace_ms), NULL, "0", true},
	{"retry", "TIME", "first pause after a failure (2s)", TIMED_VERBS, SPAN, AT(retry_ms), NULL,
	 "0", true},
	{"retry-max", "TIME", "longest pause after failures (five times retry)", TIMED_VERBS, SPAN,
	 AT(retry_max_ms), NULL, "0", true},
	{"drift", "PART", "how much clock rates may differ: 0.1 or 10%", PLANNED_VERBS, PERMILLE,
	 AT(drift_permille), NULL, "0.1", true},
	{"id", "ID", "this candidate's id (made from the host's name)", LEADING_VERBS, TEXT, AT(id),
	 NULL, NULL, true},
	{"address", "TEXT", "where others reach this candidate; status shows it", LEADING_VERBS,
	 TEXT, AT(address), NULL, NULL, true},
	{"metadata", "TEXT", "text that is shown beside the id", LEADING_VERBS, TEXT, AT(metadata),
	 NULL, NULL, true},
	{"priority", "N", "this candidate's rank, for --preempt (0)", LEADING_VERBS, NUMBER,
	 AT(priority), NULL, "0", true},
	{"preempt", "TIME", "replace a leader of lower priority after this (never)", LEADING_VERBS,
	 TIME, AT(preempt_ms), NULL, "0", true},
	{"min-score", "PART", "the least score that counts as healthy (0.8)", LEADING_VERBS,
	 PERMILLE, AT(min_score_permille), NULL, "0.8", true},
	{"check-health", "yes|no", "an unhealthy candidate doesn't campaign", VERB_RUN, YES,
	 AT(check_health), NULL, "yes", true},
	{"step-down-unhealthy", "yes|no", "an unhealthy leader steps down", LEADING_VERBS, YES,
	 AT(step_down_unhealthy), NULL, "yes", true},
	{"release-on-stop", "yes|no", "give the leadership back at the end", LEADING_VERBS, YES,
	 AT(release_on_stop), NULL, "yes", true},
	{"work-timeout", "TIME", "step down if the work shows no life for this long", LEADING_VERBS,
	 TIME, AT(work_timeout_ms), NULL, "0", true},
	{"health-cmd", "COMMAND", "exit 0 is healthy; a last line of 0.0-1.0 is the score",
	 VERB_RUN, TEXT, AT(health_cmd), NULL, NULL, true},
	{"health-interval", "TIME", "how often --health-cmd runs (5s)", VERB_RUN, SPAN,
	 AT(health_interval_ms), NULL, "5s", true},
	{"on-held", "wait|exit", "while another candidate leads: wait, or exit with 75", VERB_RUN,
	 WORD, AT(on_held), held_words, "wait", true},
	{"wait", "TIME", "stop waiting after this time, and exit with 75 (never)", VERB_RUN, TIME,
	 AT(wait_ms), NULL, NULL, true},
	{"on-loss", "SIGNAL", "the first signal when the leadership ends (TERM)", VERB_RUN, SIGNAL,
	 AT(on_loss), NULL, "TERM", true},
	{"stop-timeout", "TIME", "how long COMMAND has to end until KILL (10s)", VERB_RUN, TIME,
	 AT(stop_timeout_ms), NULL, "10s", true},
	{"restart", "yes|no", "keep leading when COMMAND ends, and start it again", VERB_RUN, YES,
	 AT(restart), NULL, "no", true},
	{"isolate", "yes|no", "use a PID namespace or cgroup: no process escapes", VERB_RUN, YES,
	 AT(isolate), NULL, "no", true},
	{"on-elected", "COMMAND", "run first; the work starts only if this exits with 0",
	 LEADING_VERBS, TEXT, AT(on_elected), NULL, NULL, true},
	{"on-lost", "COMMAND", "run after the work has stopped, before others lead", LEADING_VERBS,
	 TEXT, AT(on_lost), NULL, NULL, true},
	{"on-change", "COMMAND", "run whenever the leader changes", LEADING_VERBS, TEXT,
	 AT(on_change), NULL, NULL, true},
	{"notify-fifo", "PATH", "a pipe that gets one JSON line per event", LEADING_VERBS, TEXT,
	 AT(notify_fifo), NULL, NULL, true},
	{"callback-timeout", "TIME", "kill a callback that takes longer than this (10s)",
	 LEADING_VERBS, SPAN, AT(callback_timeout_ms), NULL, "10s", true},
	{"agent-check", "PORT", "answer HAProxy on this port: \"ready up\" or \"maint\"",
	 LEADING_VERBS, TEXT, AT(agent_check), NULL, NULL, true},
	{"metrics-file", "PATH", "write metrics to this file, for node_exporter", VERB_RUN, TEXT,
	 AT(metrics_file), NULL, NULL, true},
	{"metrics-compat", "none|client-go", "client-go: also write client-go's metric",
	 LEADING_VERBS, WORD, AT(metrics_compat), compat_words, "none", true},
	{"metrics-elections", "N", "how many elections get series of their own (200)", VERB_SERVE,
	 NUMBER, AT(metrics_elections), NULL, "200", false},
	{"measure", "TIME", "renew for this long, then recommend timings", VERB_DOCTOR, SPAN,
	 AT(measure_ms), NULL, NULL, false},
	{"stop-time", "TIME", "how long the work needs to stop (2s)", VERB_DOCTOR | VERB_SIMULATE,
	 SPAN, AT(stop_time_ms), NULL, "2s", false},
	{"from", "FILE", "the output of baton doctor --measure --json", VERB_SIMULATE, TEXT,
	 AT(from), NULL, NULL, false},
	{"years", "N", "how many years to simulate (1)", VERB_SIMULATE, NUMBER, AT(years), NULL,
	 "1", false},
	{"candidates", "N", "how many candidates there are (3)", VERB_SIMULATE, NUMBER,
	 AT(candidates), NULL, "3", false},
	{"crashes", "N", "crashes of each candidate in a year (12)", VERB_SIMULATE, NUMBER,
	 AT(crashes), NULL, "12", false},
	{"freezes", "N", "freezes of each candidate in a year (52)", VERB_SIMULATE, NUMBER,
	 AT(freezes), NULL, "52", false},
	{"freeze", "TIME", "how long a freeze lasts on average (1s)", VERB_SIMULATE, SPAN,
	 AT(freeze_ms), NULL, "1s", false},
	{"outages", "N", "outages of the store in a year (12)", VERB_SIMULATE, NUMBER, AT(outages),
	 NULL, "12", false},
	{"outage", "TIME", "how long an outage lasts on average (5s)", VERB_SIMULATE, SPAN,
	 AT(outage_ms), NULL, "5s", false},
	{"seed", "N", "the same seed gives the same years (1)", VERB_SIMULATE, NUMBER, AT(seed),
	 NULL, "1", false},
	{"socket", "PATH", "the unix socket (/run/baton/serve.sock)", VERB_SERVE, TEXT, AT(socket),
	 NULL, NULL, false},
	{"listen", "HOST:PORT", "also listen on TCP: 127.0.0.1:8080", VERB_SERVE, TEXT, AT(listen),
	 NULL, NULL, false},
	{"observe", "PREFIX*", "only observe; PREFIX*: all elections with this prefix", VERB_SERVE,
	 TEXT, AT(observe), NULL, NULL, false},
	{"attach", "any|require", "require: campaign only while a client has /lead open",
	 VERB_SERVE, WORD, AT(attach), attach_words, "any", false},
	{"read-only", NULL, "refuse all orders", VERB_SERVE, YES, AT(read_only), NULL, "no", false},
	{"host", "NAMES", "host names that clients may use, separated by commas", VERB_SERVE, TEXT,
	 AT(host), NULL, NULL, false},
	{"token-file", "FILE", "the token of operators, for TCP", VERB_SERVE, TEXT, AT(token_file),
	 NULL, NULL, false},
	{"app-token-file", "FILE", "the token of the application, for TCP", VERB_SERVE, TEXT,
	 AT(app_token_file), NULL, NULL, false},
	{"read-token-file", "FILE", "the token of readers, for TCP", VERB_SERVE, TEXT,
	 AT(read_token_file), NULL, NULL, false},
	{"operators", "NAMES", "users and @groups that may give orders by the socket", VERB_SERVE,
	 TEXT, AT(operators), NULL, NULL, false},
	{"applications", "NAMES", "users and @groups that count as the application", VERB_SERVE,
	 TEXT, AT(applications), NULL, NULL, false},
	{"tls-cert", "FILE", "TLS on TCP: the server's certificate chain", VERB_SERVE, TEXT,
	 AT(tls_cert), NULL, NULL, false},
	{"tls-key", "FILE", "TLS on TCP: the server's private key", VERB_SERVE, TEXT, AT(tls_key),
	 NULL, NULL, false},
	{"client-ca", "FILE", "clients need a certificate that this CA has signed", VERB_SERVE,
	 TEXT, AT(client_ca), NULL, NULL, false},
	{"page-dir", "PATH", "the folder of the pages (/run/baton)", VERB_SERVE | VERB_PAGE, TEXT,
	 AT(page_dir), NULL, NULL, false},
	{"quiet", "TIME", "the old leader doesn't campaign for this long (0)", VERB_RESIGN, TIME,
	 AT(quiet_ms), NULL, "0", false},
	{"to", "ID", "the candidate that takes over", VERB_TRANSFER, TEXT, AT(to), NULL, NULL,
	 false},
	{"term", "N", "only for the leadership with this term",
	 VERB_CHECK | VERB_RESIGN | VERB_TRANSFER, NUMBER, AT(term), NULL, "-1", false},
	{"note", "TEXT", "who gives the order and why, for the history",
	 VERB_RESIGN | VERB_TRANSFER, TEXT, AT(note), NULL, NULL, false},
	{"limit", "N", "list at most this many (100)", VERB_HISTORY, NUMBER, AT(limit), NULL, "100",
	 false},
	{"check", NULL, "prove that no two leaderships overlapped", VERB_HISTORY, YES, AT(check),
	 NULL, "no", false},
	{"fence", NULL, "print the guard against older terms, not the tables", VERB_SCHEMA, YES,
	 AT(fence), NULL, "no", false},
	{"functions", NULL, "print SQL functions for other programs, not the tables", VERB_SCHEMA,
	 YES, AT(functions), NULL, "no", false},
	{"json", NULL, "print JSON, for programs", VERB_ALL & ~(unsigned)(VERB_SCHEMA | VERB_SERVE),
	 YES, AT(json), NULL, "no", false},
	{"config", "FILE", "configuration (BATON_CONFIG, ~/.config/baton.conf)", STORE_VERBS, TEXT,
	 AT(config), NULL, NULL, false},
	{"log-level", "WORD", "error, warn, info or debug (info)", STORE_VERBS, WORD, AT(log_level),
	 levels, "info", true},
	{"log-format", "text|json", "the format of the log on standard error (text)", STORE_VERBS,
	 WORD, AT(log_format), formats, "text", true},
	{"help", NULL, "show this help", VERB_ALL, YES, AT(help), NULL, "no", false},
};

#define HELP_COLUMNS 80
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

enum { FROM_NOBODY, FROM_CONFIG, FROM_VARIABLE, FROM_FLAG };

struct reader {
	struct settings *s;
	const struct cli_verb *verb;
	int given[N_ROWS];
	int source;
};

static int read_flags(struct reader *r, int argc, char **argv);
static int read_variables(struct reader *r);
static int read_config(struct reader *r);
static void apply_profile(struct reader *r);
static int set_row(struct reader *r, size_t i, const char *value, const char *where);
static int32_t find_row(const char *name, size_t n);
static void variable_of(const char *name, char out[64]);

int options_read(struct settings *s, const struct cli_verb *verb, int argc, char **argv)
{
	struct reader r = {.s = s, .verb = verb};

	s->wait_ms = -1;
	for (size_t i = 0; i < N_ROWS; i++) {
		if (rows[i].fallback != NULL && set_row(&r, i, rows[i].fallback, "") != 0)
			abort();
	}
	r.source = FROM_FLAG;
	int code = read_flags(&r, argc, argv);

	if (code != 0 || s->help != 0)
		return code;
	if (verb->takes_name && s->name == NULL)
		return cli_usage("the name of the election is missing; write baton %s %s",
				 verb->name, verb->args);
	if (verb->bit == VERB_SCHEMA && s->name == NULL)
		return cli_usage("the kind of store is missing; write baton %s %s", verb->name,
				 verb->args);
	if (verb->bit == VERB_SIMULATE)
		apply_profile(&r);
	if ((verb->bit & STORE_VERBS) == 0)
		return 0;
	r.source = FROM_VARIABLE;
	code = read_variables(&r);
	r.source = FROM_CONFIG;
	if (code == 0)
		code = read_config(&r);
	if (code == 0 && (verb->bit & TIMED_VERBS) != 0)
		apply_profile(&r);
	if (code == 0 && verb->bit == VERB_RUN && s->command == NULL)
		return cli_usage("the command is missing; write baton run %s -- COMMAND", s->name);
	return code;
}

/* ---- the three sources ---- */

static int unknown_flag(const struct reader *r, const char *name)
{
	const char *names[N_ROWS + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; i < N_ROWS; i++)
		if ((rows[i].verbs & r->verb->bit) != 0)
			names[n++] = rows[i].name;
	int n_name = (int)strcspn(name, "=");
	char word[64];

	(void)snprintf(word, sizeof(word), "%.*s", n_name, name);
	const char *near = nearest_word(word, names);

	if (near != NULL)
		return cli_usage("there is no option --%s; did you mean --%s?", word, near);
	return cli_usage("there is no option --%s; see baton %s --help", word, r->verb->name);
}

/* One "--name=value", "--name value", "--name" or "--no-name". Returns arguments used, or -code. */
static int read_flag(struct reader *r, int argc, char **argv)
{
	const char *name = argv[0] + 2;
	const char *equals = strchr(name, '=');
	int32_t i = find_row(name, equals != NULL ? (size_t)(equals - name) : strlen(name));
	const char *value = equals != NULL ? equals + 1 : NULL;
	int used = 1;

	if (i < 0 && strncmp(name, "no-", 3) == 0 && equals == NULL) {
		i = find_row(name + 3, strlen(name + 3));
		if (i >= 0 && rows[i].kind != YES)
			i = -1;
		value = "no";
	}
	/* --observe may stand alone. */
	if (i >= 0 && value == NULL && rows[i].at == AT(observe))
		value = "";
	if (i < 0 || (rows[i].verbs & r->verb->bit) == 0)
		return -unknown_flag(r, name);
	if (value == NULL && rows[i].kind == YES) {
		value = "yes";
	} else if (value == NULL && argc > 1) {
		value = argv[1];
		used = 2;
	} else if (value == NULL) {
		return -cli_usage("--%s needs a value: --%s=%s", name, name, rows[i].arg);
	}
	char where[80];

	(void)snprintf(where, sizeof(where), "--%s", rows[i].name);
	int code = set_row(r, (size_t)i, value, where);

	return code != 0 ? -code : used;
}

static int unexpected_argument(const struct cli_verb *verb, const char *arg)
{
	return cli_usage("unexpected argument \"%s\"; expected baton %s%s%s", arg, verb->name,
			 verb->args[0] != '\0' ? " " : "", verb->args);
}

static int read_flags(struct reader *r, int argc, char **argv)
{
	struct settings *s = r->s;
	int i = 0;

	while (i < argc) {
		char *arg = argv[i];

		if (strcmp(arg, "--") == 0) {
			i++;
			break;
		}
		if (strcmp(arg, "-h") == 0) {
			s->help = 1;
			i++;
		} else if (strncmp(arg, "--", 2) == 0) {
			int used = read_flag(r, argc - i, argv + i);

			if (used < 0)
				return -used;
			i += used;
		} else if (arg[0] == '-' && arg[1] != '\0') {
			return cli_usage("there is no option %s; options are words, as --lease",
					 arg);
		} else if (s->name == NULL &&
			   (r->verb->takes_name || r->verb->bit == VERB_SCHEMA)) {
			s->name = arg;
			i++;
		} else if (s->prefix == NULL && r->verb->bit == VERB_LIST) {
			s->prefix = arg;
			i++;
		} else if (r->verb->bit == VERB_SERVE) {
			if (s->names == NULL)
				s->names = calloc((size_t)argc, sizeof(*s->names));
			if (s->names == NULL)
				return EXIT_INTERNAL;
			s->names[s->n_names++] = arg;
			i++;
		} else if (r->verb->bit == VERB_RUN) {
			break; /* the command, without a "--" before it */
		} else {
			return unexpected_argument(r->verb, arg);
		}
	}
	if (i < argc && r->verb->bit != VERB_RUN)
		return unexpected_argument(r->verb, argv[i]);
	if (i < argc)
		s->command = argv + i;
	return 0;
}

/* Inside the command of another `baton run`, BATON_ID is the id of that candidate. A second
 * candidate with the same id would be a duplicate. */
static bool is_inherited(const struct row *row)
{
	return row->at == AT(id) && getenv("BATON_TERM") != NULL;
}

static int read_variables(struct reader *r)
{
	char name[64];
	int code = 0;

	for (size_t i = 0; i < N_ROWS && code == 0; i++) {
		if (!rows[i].is_election || (rows[i].verbs & r->verb->bit) == 0 ||
		    r->given[i] > FROM_VARIABLE || is_inherited(&rows[i]))
			continue;
		variable_of(rows[i].name, name);
		const char *value = getenv(name);

		if (value != NULL && value[0] != '\0')
			code = set_row(r, i, value, name);
	}
	return code;
}

static int set_key(void *arg, const char *key, const char *value, const char *where)
{
	struct reader *r = arg;
	int32_t i = find_row(key, strlen(key));
	char place[512];

	if (i < 0 || !rows[i].is_election) {
		const char *names[N_ROWS + 1] = {NULL};
		size_t n = 0;

		for (size_t k = 0; k < N_ROWS; k++)
			if (rows[k].is_election)
				names[n++] = rows[k].name;
		const char *near = nearest_word(key, names);

		return near != NULL ? cli_usage("%s: unknown key \"%s\"; did you mean \"%s\"?",
						where, key, near)
				    : cli_usage("%s: unknown key \"%s\"", where, key);
	}
	if (r->given[i] > FROM_CONFIG || (rows[i].verbs & r->verb->bit) == 0)
		return 0;
	(void)snprintf(place, sizeof(place), "%s: %s", where, key);
	return set_row(r, (size_t)i, value, place);
}

static int read_config(struct reader *r)
{
	const char *path = r->s->config;
	const char *election = r->s->name != NULL ? r->s->name : ""; /* "": no section is meant */
	const char *home = getenv("XDG_CONFIG_HOME");
	char own[PATH_MAX];
	int n;
	int code;

	if (path == NULL)
		path = getenv("BATON_CONFIG");
	if (path != NULL && path[0] != '\0')
		return config_read(path, true, election, set_key, r);
	if (home != NULL && home[0] == '/')
		n = snprintf(own, sizeof(own), "%s/baton.conf", home);
	else
		n = snprintf(own, sizeof(own), "%s/.config/baton.conf",
			     getenv("HOME") != NULL ? getenv("HOME") : "/nonexistent");
	if (n < 0 || (size_t)n >= sizeof(own))
		return cli_usage("the path of your configuration file is too long; name it with "
				 "--config");
	/* The user's own keys win over the host's: read last. */
	code = config_read("/etc/baton.conf", false, election, set_key, r);
	return code != 0 ? code : config_read(own, false, election, set_key, r);
}

/* Timings as the guide gives them; what was given stays. */
static void apply_profile(struct reader *r)
{
	static const struct {
		const char *name;
		const char *value[3];
	} sets[] = {
		{"lease", {"3s", "15s", "60s"}},
		{"renew", {"1s", "5s", "15s"}},
		{"grace", {"1s", "5s", "30s"}},
		{"retry", {"250ms", "2s", "3s"}},
	};
	int32_t lease = find_row("lease", 5);

	/* Timings follow from the lease: a user who gives only the lease wants thirds of it. */
	if (r->given[lease] != FROM_NOBODY)
		return;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		int32_t row = find_row(sets[i].name, strlen(sets[i].name));

		if (r->given[row] == FROM_NOBODY)
			(void)set_row(r, (size_t)row, sets[i].value[r->s->profile], "--profile");
	}
}

/* ---- values ---- */

static bool parse_yes(const char *value, int64_t *out)
{
	static const char *const words[] = {"no", "yes", "false", "true", "0", "1", "off", "on"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(value, words[i]) == 0) {
			*out = (int64_t)(i % 2);
			return true;
		}
	}
	return false;
}

static bool parse_number(const char *value, int64_t *out)
{
	char *end;

	errno = 0;
	long long n = strtoll(value, &end, 10);

	*out = n;
	return errno == 0 && end != value && *end == '\0';
}

static bool parse_signal(const char *value, int64_t *out)
{
	const char *name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;

	if (isdigit((unsigned char)name[0]))
		return parse_number(name, out) && *out > 0 && *out < NSIG;
	for (int sig = 1; sig < NSIG; sig++) {
		const char *known = sigabbrev_np(sig);

		if (known != NULL && strcmp(known, name) == 0) {
			*out = sig;
			return true;
		}
	}
	return false;
}

static bool parse_word(const struct row *row, const char *value, int64_t *out)
{
	for (int64_t i = 0; row->words[i] != NULL; i++) {
		if (value[0] != '\0' && strcmp(row->words[i], value) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* What would have been right. */
static int bad_value(const struct row *row, const char *value, const char *where)
{
	const char *near = row->kind == WORD ? nearest_word(value, row->words) : NULL;
	static const char *const right[] = {
		[TIME] = "a time such as 500ms, 15s or 2m",
		[SPAN] = "a time above 0 such as 500ms, 15s or 2m",
		[PERMILLE] = "a part such as 0.8 or 80%",
		[NUMBER] = "a whole number",
		[YES] = "yes or no",
		[WORD] = "one of its words",
		[SIGNAL] = "a signal such as TERM or INT",
	};

	if (near != NULL)
		return cli_usage("%s: \"%s\" is not known; did you mean \"%s\"?", where, value,
				 near);
	return cli_usage("%s: \"%s\" is not %s", where, value,
			 row->kind == WORD ? row->arg : right[row->kind]);
}

static int set_row(struct reader *r, size_t i, const char *value, const char *where)
{
	const struct row *row = &rows[i];
	char *at = (char *)r->s + row->at;
	int64_t n = 0;
	bool good = true;

	switch (row->kind) {
	case TIME: good = text_parse_time(value, &n); break;
	case SPAN: /* the library's default is 0, which a user can't ask for */
		good = text_parse_time(value, &n) && (n > 0 || r->source == FROM_NOBODY);
		break;
	case PERMILLE: good = text_parse_part(value, &n) > 0; break;
	case NUMBER: good = parse_number(value, &n); break;
	case YES: good = parse_yes(value, &n); break;
	case WORD: good = parse_word(row, value, &n); break;
	case SIGNAL: good = parse_signal(value, &n); break;
	default: break;
	}
	if (!good)
		return bad_value(row, value, where);
	r->given[i] = r->source;
	if (row->kind == TEXT) {
		char *copy = strdup(value);
		char *old;

		if (copy == NULL)
			return EXIT_INTERNAL;
		(void)memcpy(&old, at, sizeof(old)); /* the value of a lower source, or NULL */
		free(old);
		(void)memcpy(at, &copy, sizeof(copy));
	} else {
		(void)memcpy(at, &n, sizeof(n));
	}
	return 0;
}

/* ---- the table itself ---- */

static int32_t find_row(const char *name, size_t n)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (strncmp(rows[i].name, name, n) == 0 && rows[i].name[n] == '\0')
			return (int32_t)i;
	return -1;
}

static void variable_of(const char *name, char out[64])
{
	size_t n = (size_t)snprintf(out, 64, "BATON_%s", name);

	for (size_t i = 0; i < n; i++)
		out[i] = (char)(out[i] == '-' ? '_' : toupper((unsigned char)out[i]));
}

/* run has more than fit on a screen: these are only named there. */
static bool is_rare(const struct row *row)
{
	static const char *const rare[] = {"renew",
					   "grace",
					   "retry",
					   "retry-max",
					   "drift",
					   "address",
					   "metadata",
					   "priority",
					   "preempt",
					   "min-score",
					   "log-level",
					   "check-health",
					   "step-down-unhealthy",
					   "log-format",
					   "release-on-stop",
					   "work-timeout",
					   "health-interval",
					   "on-loss",
					   "on-elected",
					   "on-lost",
					   "on-change",
					   "notify-fifo",
					   "callback-timeout",
					   "agent-check",
					   "metrics-file",
					   "metrics-compat",
					   "json",
					   "help",
					   NULL};

	for (size_t i = 0; rare[i] != NULL; i++)
		if (strcmp(row->name, rare[i]) == 0)
			return true;
	return false;
}

static void name_rare(FILE *out, unsigned verb)
{
	char text[1024] = "more options, explained in baton-run(1):";

	for (size_t i = 0; i < N_ROWS; i++) {
		size_t n = strlen(text);

		if ((rows[i].verbs & verb) != 0 && is_rare(&rows[i]))
			(void)snprintf(text + n, sizeof(text) - n, " --%s", rows[i].name);
	}
	text_wrap(out, text, 2, HELP_COLUMNS);
}

void options_help(FILE *out, unsigned verb)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		char left[48];

		if ((rows[i].verbs & verb) == 0 || (verb == VERB_RUN && is_rare(&rows[i])))
			continue;
		(void)snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
			       rows[i].arg != NULL ? "=" : "",
			       rows[i].arg != NULL ? rows[i].arg : "");
		(void)fprintf(out, "  %-22s %s\n", left, rows[i].help);
	}
	if (verb == VERB_RUN)
		name_rare(out, verb);
}

/* What can stand after the "=", with commas; "-" where it is free. */
static void list_values(FILE *out, const struct row *row)
{
	const char *comma = "";

	if (row->kind == YES && row->arg != NULL)
		(void)fputs("yes,no", out);
	else if (row->kind != WORD)
		(void)fputc('-', out);
	for (size_t i = 0; row->kind == WORD && row->words[i] != NULL; i++) {
		if (row->words[i][0] == '\0')
			continue;
		(void)fprintf(out, "%s%s", comma, row->words[i]);
		comma = ",";
	}
}

void options_list(FILE *out, const char *(*verb_name)(unsigned bit))
{
	static const char *const kinds[] = {"time", "time", "part", "number",
					    "yes",  "word", "text", "signal"};
	char variable[64];

	for (size_t i = 0; i < N_ROWS; i++) {
		const char *comma = "";

		variable_of(rows[i].name, variable);
		(void)fprintf(out, "--%s %s %s %s %s ", rows[i].name,
			      rows[i].is_election ? variable : "-",
			      rows[i].is_election ? rows[i].name : "-", kinds[rows[i].kind],
			      rows[i].arg != NULL ? rows[i].arg : "-");
		list_values(out, &rows[i]);
		(void)fputc(' ', out);
		for (unsigned bit = 1; bit < VERB_ALL; bit <<= 1) {
			if ((rows[i].verbs & bit) == 0)
				continue;
			(void)fprintf(out, "%s%s", comma, verb_name(bit));
			comma = ",";
		}
		(void)fprintf(out, " %s\n", rows[i].help);
	}
}
