/*
 * main.c of the program behind `baton serve`: reads the same options as the command does, opens the
 * handle, and serves. Programs that outlive it trust the deadlines that it tells, and the handle
 * says so.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/page.h"
#include "cli/cli.h"
#include "serve/serve.h"

static const struct cli_verb serve_verb = {
	.name = "serve", .bit = VERB_SERVE, .args = "[NAME...]", .summary = "", .notes = ""};

/* "redis" of "redis://host". */
static const char *store_kind(const char *url)
{
	static char kind[32];
	size_t n = strcspn(url, ":+");

	(void)snprintf(kind, sizeof(kind), "%.*s", (int)(n < sizeof(kind) ? n : 0), url);
	return kind;
}

static struct settings settings; /* what they point to lives as long as the process */

static int open_outliving(struct baton **out, struct baton_error *err)
{
	const struct settings *s = &settings;
	struct baton_options o;

	baton_options_init(&o);
	o.id = s->id;
	o.address = s->address;
	o.lease_ms = (uint64_t)s->lease_ms;
	o.renew_ms = (uint64_t)s->renew_ms;
	o.grace_ms = (uint64_t)s->grace_ms;
	o.retry_ms = (uint64_t)s->retry_ms;
	o.retry_max_ms = (uint64_t)s->retry_max_ms;
	o.drift_permille = (uint32_t)s->drift_permille;
	o.dispatchers = 1; /* we pull our events */
	o.log = log_record;
	/* A server that only observes tells no deadlines. */
	o.outlive = s->observe == NULL;
	return baton_open(s->store, &o, out, err);
}

/* "" for --observe alone; else the part before the star. NULL after saying what is wrong. */
static char *observed_prefix(const struct settings *s)
{
	size_t n = strlen(s->observe);

	if (s->observe[0] == '\0' || s->observe[n - 1] != '*' ||
	    memchr(s->observe, '*', n - 1) != NULL) {
		(void)cli_usage(
			"--observe: \"%s\" is not a prefix with a star behind it, as 'web*'",
			s->observe);
		return NULL;
	}
	return strndup(s->observe, n - 1);
}

static void say_text(int level, const char *text)
{
	log_say(level, "%s", text);
}

static void say_text_of(int level, const char *election, const char *text)
{
	log_say_of(level, election, 0, "%s", text);
}

static int serve_by(struct settings *s, const char *prefix)
{
	static char socket_path[PAGE_PATH_MAX];
	static char page_dir[PAGE_PATH_MAX];
	struct baton_election_options o;
	struct baton_error err = {0};
	struct baton *b;
	int code = open_outliving(&b, &err);

	if (code != 0)
		return open_fail(&err);
	open_election_options(s, &o);
	page_default_dir(page_dir);
	(void)snprintf(socket_path, sizeof(socket_path), "%.4000s/serve.sock", page_dir);
	struct serve_config config = {
		.baton = b,
		.open_another = open_outliving,
		.election = &o,
		.names = s->names,
		.n_names = s->n_names,
		.observe = s->observe != NULL,
		.observe_prefix = prefix,
		.attach_require = s->attach == 1,
		.read_only = s->read_only != 0,
		.store = store_kind(s->store),
		.version = baton_version(),
		.socket = s->socket != NULL ? s->socket : socket_path,
		.listen = s->listen,
		.hosts = s->host,
		.token_file = s->token_file,
		.app_token_file = s->app_token_file,
		.read_token_file = s->read_token_file,
		.operators = s->operators,
		.applications = s->applications,
		.tls_cert = s->tls_cert,
		.tls_key = s->tls_key,
		.client_ca = s->client_ca,
		.page_dir = s->page_dir != NULL ? s->page_dir : page_dir,
		.store_url = s->store,
		.address = s->address,
		.on_elected = s->on_elected,
		.on_lost = s->on_lost,
		.on_change = s->on_change,
		.notify_fifo = s->notify_fifo,
		.callback_timeout_ms = s->callback_timeout_ms,
		.agent_check = s->agent_check,
		.metrics_elections = (size_t)s->metrics_elections,
		.metrics_client_go = s->metrics_compat == METRICS_CLIENT_GO,
		.say = log_say,
		.say_of = log_say_of,
		.say_text = say_text,
		.say_text_of = say_text_of,
		.n_unwritten = log_n_dropped,
		.trace = log_is_json() ? log_trace : NULL,
	};

	code = serve_run(&config);
	if (code != SERVE_ABANDONED)
		baton_close(b);
	return code == SERVE_ENDED || code == SERVE_ABANDONED ? EXIT_OK
	       : code == SERVE_WRONG                          ? EXIT_USAGE
							      : EXIT_INTERNAL;
}

/* A page needs a descriptor, and so does a connection: we take as many as we may have. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct settings *s = &settings;
	char *prefix = NULL;

	(void)mallopt(M_ARENA_MAX,
		      1); /* an arena that threads share needs less; none of them is in a hurry */
	raise_limit();
	log_guess(argv);
	s->argv = argv;
	if (argc < 2)
		return cli_usage("start it as baton serve");
	int code = options_read(s, &serve_verb, argc - 2, argv + 2);

	if (code != 0)
		return code;
	log_setup(s);
	log_never_wait(); /* a slow reader of the log must never delay an answer */
	if (s->observe != NULL && s->observe[0] != '\0') {
		prefix = observed_prefix(s);
		if (prefix == NULL)
			return EXIT_USAGE;
	} else if (s->n_names == 0) {
		return cli_usage(
			"no election is named; write baton serve NAME..., or --observe='*'");
	}
	if (s->metrics_elections < 0) {
		free(prefix);
		return cli_usage("--metrics-elections: %lld is not a number from 0 on",
				 (long long)s->metrics_elections);
	}
	if (s->attach == 1 && s->min_score_permille == 0) {
		free(prefix);
		return cli_usage("--min-score: 0 is not possible with --attach=require, because a "
				 "candidate without its program has the score 0; expected more");
	}
	code = open_store_url(s);
	code = code != 0 ? code : serve_by(s, prefix);
	free(prefix);
	return code;
}
