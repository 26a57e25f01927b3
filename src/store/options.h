/*
 * options.h: what the URLs of several drivers can say, and the values of options. False: that is no
 * value for it; the driver says so, and knows the rest.
 */
#ifndef BATON_STORE_OPTIONS_H
#define BATON_STORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/url.h"
#include "baton-store.h"

#define OPTION_PATH_MAX 512

/* All refuse what is empty, or has no room. */
bool option_text(const char *value, char *out, size_t size);
bool option_path(const char *value, char *out, size_t size); /* from the root on */
bool option_flag(const char *value, bool *out);              /* 0 or 1 */
bool option_number(const char *value, uint32_t max, uint32_t *out);

/* Each key=value of a URL to `set`, which says false where that is nothing for it. 0, or -1 with
 * the sentence; store and page name the driver and its manual: "Redis", "baton-redis(7)". */
int option_each(struct url_part query, bool (*set)(void *o, const char *key, const char *value),
		void *o, const char *store, const char *page, struct baton_error *err);

/* Whom to trust, and who we are. Empty: what the system trusts, nobody, the name in the URL. */
struct option_tls {
	char ca[OPTION_PATH_MAX];
	char cert[OPTION_PATH_MAX];
	char key[OPTION_PATH_MAX]; /* empty: it is in cert */
	char server_name[BATON_NAME_MAX + 1];
};

/* False: it is none of these, or that is no value for it. */
bool option_tls(struct option_tls *tls, const char *key, const char *value);
/* 0, or -1 with the sentence. `say` names the way to TLS in this store's URLs. */
int option_tls_check(const struct option_tls *tls, bool is_on, const char *say,
		     struct baton_error *err);

#endif
