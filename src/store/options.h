/*
 * options.h: what the URLs of several drivers can say, and the values of options. False: the value
 * is not valid; the driver says so, and knows the rest.
 */
#ifndef BATON_STORE_OPTIONS_H
#define BATON_STORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/url.h"
#include "baton-store.h"

#define OPTION_PATH_MAX 512
#define OPTION_PATH_LENGTH 511 /* without the NUL */
/* Limits of poll= and max_lease=. */
#define OPTION_POLL_MIN_MS 100
#define OPTION_POLL_MAX_MS 60000
#define OPTION_MAX_LEASE_MIN_MS 100
#define OPTION_MAX_LEASE_MAX_MS 86400000

/* All refuse what is empty, or has no room. */
bool option_text(const char *value, char *out, size_t size);
bool option_path(const char *value, char *out, size_t size); /* from the root on */
bool option_flag(const char *value, bool *out);              /* 0 or 1 */
bool option_number(const char *value, uint32_t max, uint32_t *out);

/* What would be right, for sentences: "expected 0 or 1". Limits are plain numbers. */
#define OPTION_IS_FLAG "0 or 1"
#define OPTION_IS_PATH "the full path of a file"
#define OPTION_IS_SERVER_NAME "the name in the server's certificate"
#define OPTION_IS_NUMBER(min, max) OPTION_DIGITS(min) " to " OPTION_DIGITS(max)
#define OPTION_IS_MS(min, max) OPTION_IS_NUMBER(min, max) ", in milliseconds"
#define OPTION_IS_POLL OPTION_IS_MS(OPTION_POLL_MIN_MS, OPTION_POLL_MAX_MS)
#define OPTION_IS_MAX_LEASE OPTION_IS_MS(OPTION_MAX_LEASE_MIN_MS, OPTION_MAX_LEASE_MAX_MS)
#define OPTION_IS_TEXT(max) "1 to " OPTION_DIGITS(max) " bytes"
#define OPTION_IS_NAMES(max) \
	"names of letters, digits and -_. with one '/' between them, " OPTION_IS_TEXT(max)
#define OPTION_DIGITS(number) OPTION_DIGITS_OF_VALUE(number)
#define OPTION_DIGITS_OF_VALUE(number) #number

struct option_known {
	const char *key;
	const char *expected; /* what would be right */
};

/* The options of a driver's URLs. Each table ends with a row without a key. */
struct option_list {
	const char *store; /* "a Redis store" */
	const char *page;  /* of the manual: "baton-redis(7)" */
	const struct option_known *known;
	/* NULL, or options that sentences don't suggest: other spellings, and those that the driver
	 * refuses with a sentence of its own. */
	const struct option_known *also;
	bool ignores_case; /* of keys */
	/* False: the value is not valid. The key is one of the tables, as it is spelled there. */
	bool (*set)(void *o, const char *key, const char *value);
};

/* Sets all options of a URL. 0, or -1 with the sentence about the first that is unknown or has a
 * value that is not valid. A value that may be a secret is not in the sentence. */
int option_each(struct url_part query, const struct option_list *list, void *o,
		struct baton_error *err);

#define OPTION_HOSTS_MAX 16
#define OPTION_TEXT_MAX 256
#define OPTION_TEXT_LENGTH 255 /* without the NUL */

struct option_host {
	char name[OPTION_TEXT_MAX];
	char port[8];
};

/* Servers of a URL, and the user that logs in there. */
struct option_login {
	struct option_host hosts[OPTION_HOSTS_MAX];
	size_t n_hosts;
	char user[OPTION_TEXT_MAX];
	char password[OPTION_TEXT_MAX];
	char password_file[OPTION_PATH_MAX];
};

/* user:password@host:port,host:port, with at most `max` hosts; `port` is the default. 0, or -1 with
 * the sentence, which shows the example. */
int option_login(struct option_login *login, struct url_part authority, size_t max,
		 const char *port, const char *example, struct baton_error *err);
/* The only name in a URL's path: /DATABASE. 0, or -1 with the sentence, for which `kind` ("MySQL")
 * and the example are. */
int option_database(const char *text, struct url *url, char *out, size_t size, const char *kind,
		    const char *example, struct baton_error *err);
/* 0, or -1 with the sentence: a password stands in the URL and in a file. */
int option_login_check(const struct option_login *login, struct baton_error *err);
/* The password, from its file if there is one. False: err says why not. */
bool option_password(const struct option_login *login, char *out, size_t size,
		     struct baton_error *err);

/* Which authorities to trust, and our certificate. Empty: those that the system trusts, no
 * certificate, the name in the URL. */
struct option_tls {
	char ca[OPTION_PATH_MAX];
	char cert[OPTION_PATH_MAX];
	char key[OPTION_PATH_MAX]; /* empty: it is in cert */
	char server_name[BATON_NAME_MAX + 1];
};

/* False: the key is not one of these, or the value is not valid. */
bool option_tls(struct option_tls *tls, const char *key, const char *value);
/* 0, or -1 with the sentence. `say` names the way to TLS in this store's URLs. */
int option_tls_check(const struct option_tls *tls, bool is_on, const char *say,
		     struct baton_error *err);

#endif
