/*
 * cli.h: what the files of the command share.
 *
 * main.c finds the verb; options.c reads flags, variables and the configuration file into one
 * struct settings by one table; each verb is a function of its settings. `run` is made of a
 * supervisor (run.c), a guard (guard.c) and what stands between fork and exec (child.c).
 */
#ifndef BATON_CLI_H
#define BATON_CLI_H

#include <baton.h>
#include <stdio.h>

/* Exit codes that are ours: the rest are the child's. As of sysexits.h and the shell. */
enum cli_exit {
	EXIT_OK = 0,
	EXIT_NO = 1,           /* check: that term no longer leads. status: no leader... */
	EXIT_FAILING = 2,      /* status: the store fails. doctor: it can't be used like that */
	EXIT_USAGE = 64,       /* the command line, a variable or the configuration file */
	EXIT_UNAVAILABLE = 69, /* the store doesn't answer, or refuses us */
	EXIT_INTERNAL = 70,    /* the guard was killed, or could not be made */
	EXIT_HELD = 75,        /* another leads, and we were told not to wait (any longer) */
	EXIT_CANT_RUN = 126,   /* the command is there, but can't be run */
	EXIT_NOT_FOUND = 127,  /* there is no such command */
	EXIT_SIGNAL = 128,     /* plus the signal that ended the child */
};

enum cli_verb_bit {
	VERB_RUN = 1 << 0,
	VERB_STATUS = 1 << 1,
	VERB_WATCH = 1 << 2,
	VERB_CANDIDATES = 1 << 3,
	VERB_RESIGN = 1 << 4,
	VERB_TRANSFER = 1 << 5,
	VERB_PAUSE = 1 << 6,
	VERB_RESUME = 1 << 7,
	VERB_HISTORY = 1 << 8,
	VERB_STORES = 1 << 9,
	VERB_VERSION = 1 << 10,
	VERB_CHECK = 1 << 11,
	VERB_SCHEMA = 1 << 12,
	VERB_DOCTOR = 1 << 13,
	VERB_LIST = 1 << 14,
	VERB_SERVE = 1 << 15,
	VERB_PAGE = 1 << 16,
	VERB_SIMULATE = 1 << 17,
	VERB_ALL = (1 << 18) - 1,
};

enum cli_on_held { ON_HELD_WAIT, ON_HELD_EXIT };
enum cli_metrics_compat { METRICS_NONE, METRICS_CLIENT_GO };
enum cli_log_format { LOG_TEXT, LOG_JSON };

/* All that can be set, by flag, variable or key. Strings live as long as the process. */
struct settings {
	/* the election's */
	const char *store;
	const char *id;
	const char *address;
	const char *metadata;
	int64_t profile;
	int64_t lease_ms;
	int64_t renew_ms;
	int64_t grace_ms;
	int64_t retry_ms;
	int64_t retry_max_ms;
	int64_t drift_permille;
	int64_t priority;
	int64_t preempt_ms;
	int64_t work_timeout_ms;
	int64_t min_score_permille;
	int64_t check_health;
	int64_t step_down_unhealthy;
	int64_t release_on_stop;
	/* run's */
	int64_t on_held;
	int64_t on_loss;
	int64_t wait_ms; /* -1: without limit */
	int64_t stop_timeout_ms;
	int64_t restart;
	int64_t isolate;
	const char *health_cmd;
	int64_t health_interval_ms;
	const char *on_elected;
	const char *on_lost;
	const char *on_change;
	const char *notify_fifo;
	int64_t callback_timeout_ms;
	const char *agent_check;
	const char *metrics_file;
	int64_t metrics_compat;
	int64_t metrics_elections;
	/* the other verbs' */
	int64_t measure_ms; /* 0: not */
	int64_t stop_time_ms;
	const char *to;
	int64_t fence;
	int64_t functions;
	int64_t quiet_ms;
	int64_t term; /* -1: not given */
	const char *note;
	int64_t limit;
	int64_t check;
	int64_t json;
	/* simulate's */
	const char *from;
	int64_t years;
	int64_t candidates;
	int64_t crashes; /* a year, as the next ones */
	int64_t freezes;
	int64_t freeze_ms;
	int64_t outages;
	int64_t outage_ms;
	int64_t seed;
	/* serve's */
	const char *socket;
	const char *listen;
	const char *observe; /* NULL: takes part; "": observes the named ones; else a prefix */
	int64_t attach;
	const char *host;
	const char *token_file;
	const char *app_token_file;
	const char *read_token_file;
	const char *operators;
	const char *applications;
	int64_t read_only;
	const char *tls_cert;
	const char *tls_key;
	const char *client_ca;
	const char *page_dir;
	/* of all verbs */
	const char *config;
	int64_t log_level;
	int64_t log_format;
	int64_t help;
	/* what is left of the command line */
	const char *name;      /* an election's; of schema: a kind of store's */
	const char *prefix;    /* list: what names begin with; NULL: anything */
	const char **names;    /* serve: elections, ... */
	size_t n_names;        /* ... as many */
	char **argv;           /* all of it */
	char **command;        /* run: what stands after the name, or "--" */
	bool is_default_store; /* the user named no store */
};

struct cli_verb {
	const char *name;
	unsigned bit;
	const char *args;
	const char *summary;
	const char *notes; /* the last lines of its help */
	int (*main)(struct settings *s);
	bool takes_name; /* of an election */
};

/* ---- options.c, config.c ---- */

/* Reads the command line after the verb. 0, or an exit code after saying why. */
int options_read(struct settings *s, const struct cli_verb *verb, int argc, char **argv);
/* Prints the options of a verb. */
void options_help(FILE *out, unsigned verb);
/* A line per option, for tests, gates and completion: flag, variable, configuration key, kind,
 * argument, values, verbs ("-" where there is none, commas between several), and its help. */
void options_list(FILE *out, const char *(*verb_name)(unsigned bit));
/* Calls set() for each key of the file that is meant for this election. 0, or an exit code. */
int config_read(const char *path, bool must_exist, const char *election,
		int (*set)(void *arg, const char *key, const char *value, const char *where),
		void *arg);

/* ---- format.c ---- */

/* "500ms", "15s", "2m", "1h", "0" as milliseconds. False: none of these. */
bool text_parse_time(const char *text, int64_t *ms);
/* "0.1" or "10%" as 100. 1; or 0: not a number; or -1: a number, but not a part. */
int text_parse_part(const char *text, int64_t *permille);
/* A length of time for people: "850ms", "12s", "3m 5s", "2h 10m". */
const char *text_span(int64_t ms, char *out, size_t size);
/* A wall time for people, local; and for programs, in UTC. */
const char *text_local(int64_t wall_ms, char *out, size_t size);
const char *text_utc(int64_t wall_ms, char *out, size_t size);
/* "; raise ..." for an errno that is about a limit, else "". */
const char *text_limit(int error);
/* Writes a JSON string with its quotes. */
void text_json(FILE *out, const char *text);
/* Prints a paragraph, each line with that many blanks before it. */
void text_wrap(FILE *out, const char *text, int indent, int columns);

/* ---- log.c ---- */

/* Guesses, from the arguments, the form of what is said before the options are understood. */
void log_guess(char **argv);
void log_setup(const struct settings *s);
/* From now on no line waits for the reader of standard error. */
void log_never_wait(void);
/* So many lines there was no room for. */
uint64_t log_n_dropped(void);
bool log_is_json(void);
/* The span that JSON lines about this election belong to from now on. */
void log_trace(const char *election, const uint8_t trace[16], const uint8_t span[8]);
/* One sentence on standard error. */
void log_say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A sentence that names this election, and is about this term; 0: about none. */
void log_say_of(int level, const char *election, uint64_t term, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What the library logs. */
void log_record(void *arg, const struct baton_log_record *record);
/* Says what is wrong with the use, and returns EXIT_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a number that is too low or too high; INT64_MAX: no number is too high. */
int cli_out_of_range(const char *option, int64_t value, int64_t min, int64_t max);

/* ---- open.c ---- */

/* Fills in the store's URL if the user gave none, and makes its directory. 0, or an exit code. */
int open_store_url(struct settings *s);
/* Opens a handle by the settings. 0, or an exit code after saying why. */
int open_handle(const struct settings *s, struct baton **out);
void open_election_options(const struct settings *s, struct baton_election_options *o);
/* The exit code for a code of the library. */
int open_exit_code(int code);
/* Says what went wrong, and returns the exit code. */
int open_fail(const struct baton_error *err);

/* ---- the verbs ---- */

int verb_run(struct settings *s);
int verb_status(struct settings *s);
int verb_watch(struct settings *s);
int verb_candidates(struct settings *s);
int verb_resign(struct settings *s);
int verb_transfer(struct settings *s);
int verb_pause(struct settings *s);
int verb_resume(struct settings *s);
int verb_history(struct settings *s);
int verb_stores(struct settings *s);
int verb_schema(struct settings *s);
int verb_version(struct settings *s);
int verb_check(struct settings *s);
int verb_doctor(struct settings *s);
/* doctor --measure */
int measure_run(struct settings *s);
int verb_list(struct settings *s);
int verb_serve(struct settings *s);
int verb_page(struct settings *s);
int verb_simulate(struct settings *s);

#endif
