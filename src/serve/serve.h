/*
 * serve.h: `baton serve` as a function: takes part in elections by the public interface of the
 * library, and answers HTTP. One thread does all: a loop (serve.c) with the HTTP library
 * (http.c), the events of the elections (members.c) with their callbacks (hooks.c), and the streams
 * (streams.c) on it. What has to ask the store, and so may wait, is done by two other threads
 * (worker.c).
 */
#ifndef BATON_SERVE_H
#define BATON_SERVE_H

#include <baton.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_config {
	struct baton *baton; /* the caller's; closed by the caller, if serve_run() says so */
	/* Another handle with the same options, for what would hold up the first one; serve_run()
	 * closes it. A code of the library. */
	int (*open_another)(struct baton **out, struct baton_error *err);
	const struct baton_election_options *election;
	const char *const *names; /* of elections to take part in, or to observe */
	size_t n_names;
	bool observe;               /* the names are only observed */
	const char *observe_prefix; /* all that the store lists and that begin so; NULL: none */
	bool attach_require;        /* campaign only while a client holds a /lead open */
	bool read_only;
	const char *store; /* its kind */
	const char *version;
	const char *socket; /* a path */
	const char *listen; /* HOST:PORT, or NULL */
	const char *hosts;  /* with commas; NULL: loopback alone */
	const char *token_file;
	const char *app_token_file;
	const char *read_token_file;
	const char *operators; /* USER,@GROUP, besides the user that runs this; NULL: root */
	const char *applications;
	const char *tls_cert;
	const char *tls_key;
	const char *client_ca;
	const char *page_dir; /* NULL: no page is written */
	const char *store_url;
	const char *address;    /* ours; NULL: none */
	const char *on_elected; /* lines of shell; NULL: none */
	const char *on_lost;
	const char *on_change;
	const char *notify_fifo;
	int64_t callback_timeout_ms;
	const char *agent_check;  /* PORT or ADDRESS:PORT */
	size_t metrics_elections; /* that have series of their own */
	bool metrics_client_go;
	void (*say)(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
	/* About an election, and a term of it; 0: none. */
	void (*say_of)(int level, const char *election, uint64_t term, const char *format, ...)
		__attribute__((format(printf, 4, 5)));
	void (*say_text)(int level, const char *text);
	void (*say_text_of)(int level, const char *election, const char *text);
	/* How many of all these lines there was no room for. */
	uint64_t (*n_unwritten)(void);
	/* The span that lines about an election belong to; NULL: they don't tell it. */
	void (*trace)(const char *election, const uint8_t trace[16], const uint8_t span[8]);
};

enum serve_end {
	SERVE_ENDED = 0, /* all is given back */
	SERVE_WRONG,     /* a setting; it was said which */
	SERVE_REFUSED,   /* the system refused something; it was said what */
	SERVE_ABANDONED, /* work still runs: claims expire; the handle is not to be closed */
};

/* Runs until SIGTERM or SIGINT. */
int serve_run(const struct serve_config *config);

#endif
