/*
 * options.c: the URL of a Consul store.
 *
 *     consul://[:token@]host[:port][,host[:port]...][?option=value&...]
 *     consuls://...                                                with TLS
 *
 * A URL that isn't valid is refused with a sentence; nothing is guessed. A token never stands in a
 * sentence. If the URL has none, it is taken from where Consul's own command takes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/consul/consul.h"

#define NODE "baton"
#define TTL_MIN_MS 100
#define TTL_MAX_MS 86400000

static const struct option_known known[] = {
	{"prefix", OPTION_IS_TEXT(CONSUL_PREFIX_MAX) ", without a '/' at the front"},
	{"token_file", OPTION_IS_PATH},
	{"dc", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"ns", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"partition", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"node", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"checks", "names of health checks: a,b,c"},
	{"lock_delay", OPTION_IS_MS(0, CONSUL_LOCK_DELAY_MAX_MS)},
	{"session_ttl_min", OPTION_IS_MS(TTL_MIN_MS, TTL_MAX_MS)},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct consul_options *o = options;

	if (strcmp(key, "prefix") == 0)
		return value[0] != '/' && web_set_prefix(value, o->prefix, sizeof(o->prefix));
	if (strcmp(key, "token_file") == 0)
		return option_path(value, o->token_file, sizeof(o->token_file));
	if (strcmp(key, "dc") == 0)
		return option_text(value, o->dc, sizeof(o->dc));
	if (strcmp(key, "ns") == 0)
		return option_text(value, o->ns, sizeof(o->ns));
	if (strcmp(key, "partition") == 0)
		return option_text(value, o->partition, sizeof(o->partition));
	if (strcmp(key, "node") == 0)
		return option_text(value, o->node, sizeof(o->node));
	if (strcmp(key, "checks") == 0)
		return option_text(value, o->checks, sizeof(o->checks));
	if (strcmp(key, "lock_delay") == 0)
		return option_number(value, CONSUL_LOCK_DELAY_MAX_MS, &o->lock_delay_ms);
	if (strcmp(key, "session_ttl_min") == 0)
		return option_number(value, TTL_MAX_MS, &o->ttl_min_ms) &&
		       o->ttl_min_ms >= TTL_MIN_MS;
	return option_tls(&o->web.files, key, value);
}

static const struct option_list options = {
	.store = "a Consul store",
	.page = "baton-consul(7)",
	.known = known,
	.set = set_option,
};

/* Looks where Consul's own command looks, in its order: a file before a variable. */
static int ask_environment(struct consul_options *o, struct baton_error *err)
{
	const char *file = getenv("CONSUL_HTTP_TOKEN_FILE");
	const char *token = getenv("CONSUL_HTTP_TOKEN");

	if (o->token[0] != '\0' || o->token_file[0] != '\0')
		return 0;
	if (file != NULL && file[0] != '\0' &&
	    !option_path(file, o->token_file, sizeof(o->token_file)))
		return store_fail(err, BATON_E_URL,
				  "CONSUL_HTTP_TOKEN_FILE is not the full path of a file");
	if (o->token_file[0] == '\0' && token != NULL && token[0] != '\0' &&
	    !option_text(token, o->token, sizeof(o->token)))
		return store_fail(err, BATON_E_URL, "CONSUL_HTTP_TOKEN is too long for a token");
	return 0;
}

static int options_check(struct consul_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->web.files, o->web.tls, "consuls://", err) != 0)
		return -1;
	if (web_check_prefix(o->prefix, err) != 0)
		return -1;
	if (o->token[0] != '\0' && o->token_file[0] != '\0')
		return store_fail(err, BATON_E_URL, "there are two tokens, one in a file");
	for (const char *c = o->token; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return store_fail(err, BATON_E_URL,
					  "the token has a blank in it; expected one word");
	if (o->node[0] != '\0' && o->checks[0] != '\0')
		return store_fail(err, BATON_E_URL,
				  "checks= are those of the agent's own node: there is no node= "
				  "beside them");
	/* With checks=, a session must be on the node that has these checks. */
	if (o->checks[0] == '\0' && o->node[0] == '\0')
		(void)option_text(NODE, o->node, sizeof(o->node));
	return ask_environment(o, err);
}

static int parse_query(struct consul_options *o, struct url_part query, struct baton_error *err)
{
	if (option_each(query, &options, o, err) != 0)
		return -1;
	return options_check(o, err);
}

static void add_query(struct consul_options *o, const char *key, const char *value)
{
	char encoded[3 * BATON_NAME_MAX + 1];
	size_t n = strlen(o->query);

	if (value[0] != '\0' && http_encode(value, encoded, sizeof(encoded)))
		(void)snprintf(o->query + n, sizeof(o->query) - n, "%s%s=%s", n > 0 ? "&" : "", key,
			       encoded);
}

int consul_options_parse(struct consul_options *o, const char *text, struct baton_error *err)
{
	char user[BATON_NAME_MAX + 1] = "";
	struct url url;

	*o = (struct consul_options){
		.prefix = "baton", .ttl_min_ms = 10000, .web = {.probe = "/v1/status/leader"}};
	if (!url_split(text, &url) || !url.has_authority ||
	    (url.path.n > 0 && (url.path.n > 1 || url.path.at[0] != '/'))) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a Consul store; say consul://host:8500, and "
				 "write special characters as %%XX");
		return BATON_E_URL;
	}
	o->web.tls = url.scheme.n == strlen("consuls");
	if (!url_take_login(&url.authority, user, sizeof(user), o->token, sizeof(o->token)) ||
	    user[0] != '\0') {
		(void)store_fail(err, BATON_E_URL,
				 "Consul knows no users: a token stands behind a colon, "
				 "consul://:TOKEN@host; better in a file, with token_file=/path");
		return BATON_E_URL;
	}
	if (!web_parse_hosts(&o->web, url.authority, o->web.tls ? "8501" : "8500")) {
		(void)store_fail(
			err, BATON_E_URL,
			"not valid names of servers; expected host:port,host:port, %d at most: "
			"consul://host:8500,host:8500",
			WEB_HOSTS_MAX);
		return BATON_E_URL;
	}
	if (parse_query(o, url.query, err) != 0)
		return BATON_E_URL;
	add_query(o, "dc", o->dc);
	add_query(o, "ns", o->ns);
	add_query(o, "partition", o->partition);
	return BATON_OK;
}
