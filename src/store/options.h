/*
 * options.h: options that the URLs of several drivers have, and the values of options. Unless its
 * comment says otherwise, a function returns false for a value that is not valid, and the driver
 * writes the sentence.
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

/* All of them refuse a value that is empty or has no room. */
bool option_text(const char *value, char *out, size_t size);
bool option_path(const char *value, char *out, size_t size); /* must begin with '/' */
bool option_flag(const char *value, bool *out);              /* 0 or 1 */
bool option_number(const char *value, uint32_t max, uint32_t *out);

/* What a valid value is, for sentences: "expected 0 or 1". Limits are plain numbers. */
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
	const char *expected; /* what a valid value is */
};

/* The options of a driver's URLs. Each table ends with a row without a key. */
struct option_list {
	const char *store; /* "a Redis store" */
	const char *page;  /* of the manual: "baton-redis(7)" */
	const struct option_known *known;
	/* Options that no sentence suggests: other spellings, and options that the driver refuses
	 * with a sentence of its own. May be NULL. */
	const struct option_known *also;
	bool ignores_case; /* of keys */
	/* False: the value is not valid. The key is from one of the tables, in its spelling
	 * there. */
	bool (*set)(void *o, const char *key, const char *value);
};

/* Sets all options of a URL. 0, or -1 with a sentence about the first option that is unknown or has
 * a value that is not valid. The sentence never shows a value that may be a secret. */
int option_each(struct url_part query, const struct option_list *list, void *o,
		struct baton_error *err);

/* The sentences of option_each(), for a driver that reads its URLs in a way of its own. All return
 * -1. The key and the value lose their control characters. */
int option_unknown(const struct option_list *list, char *key, struct baton_error *err);
int option_invalid(const struct option_known *row, char *value, struct baton_error *err);
int option_unreadable(const char *page, int value_max, struct baton_error *err);

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
 * a sentence that shows the example. */
int option_login(struct option_login *login, struct url_part authority, size_t max,
		 const char *port, const char *example, struct baton_error *err);
/* The only name in a URL's path: /DATABASE. 0, or -1 with a sentence that names the `kind`
 * ("MySQL") and shows the example. */
int option_database(const char *text, struct url *url, char *out, size_t size, const char *kind,
		    const char *example, struct baton_error *err);
/* 0, or -1 with a sentence: there is one password in the URL and another one in a file. */
int option_login_check(const struct option_login *login, struct baton_error *err);
/* The password, from its file if there is one. False: err says why not. */
bool option_password(const struct option_login *login, char *out, size_t size,
		     struct baton_error *err);

/* Which authorities to trust, and our certificate. If empty: the authorities that the system
 * trusts, no certificate, and the server's name as in the URL. */
struct option_tls {
	char ca[OPTION_PATH_MAX];
	char cert[OPTION_PATH_MAX];
	char key[OPTION_PATH_MAX]; /* empty: it is in cert */
	char server_name[BATON_NAME_MAX + 1];
};

/* False: the key is not one of these, or the value is not valid. */
bool option_tls(struct option_tls *tls, const char *key, const char *value);
/* 0, or -1 with a sentence. `say` is what a URL of this store must say for TLS. */
int option_tls_check(const struct option_tls *tls, bool is_on, const char *say,
		     struct baton_error *err);

#endif
