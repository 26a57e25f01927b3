/*
 * connect.c: a client of libmongoc, and one command on it.
 *
 * A client is made for a connection and ends with it: else the library would refuse for seconds to
 * try a server again that was away. The library's habits are switched off: no retries, no pings
 * before a command, no periodic look for other servers. (A server that is no longer the primary
 * says so.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/mongodb/mongodb.h"

/* How long each of several servers may take to say what it is. */
#define GREETING_MS 1000
#define NEVER_MS (30 * 60 * 1000)
/* Error codes of the server. */
#define E_BAD_VALUE 2
#define E_FAILED_TO_PARSE 9
#define E_UNAUTHORIZED 13
#define E_AUTHENTICATION 18
#define E_NO_COMMAND 59
#define E_NAMESPACE 73
#define E_TOO_OLD 8000 /* Atlas: not allowed */
#define E_NOT_PRIMARY 10107
#define E_NOT_PRIMARY_OK 13435

/* ---- what went wrong ---- */

bool mongodb_is_harmless(int code)
{
	return code == E_BAD_VALUE || code == E_FAILED_TO_PARSE || code == E_UNAUTHORIZED ||
	       code == E_AUTHENTICATION || code == E_NO_COMMAND || code == E_NAMESPACE ||
	       code == E_TOO_OLD || code == E_NOT_PRIMARY || code == E_NOT_PRIMARY_OK;
}

int mongodb_code(int code)
{
	switch (code) {
	case E_UNAUTHORIZED:
	case E_AUTHENTICATION:
	case E_TOO_OLD: return BATON_E_DENIED;
	case E_BAD_VALUE:
	case E_FAILED_TO_PARSE:
	case E_NO_COMMAND:
	case E_NAMESPACE: return BATON_E_CORRUPT;
	default: return BATON_E_UNAVAILABLE;
	}
}

/* The library's own text is used only if neither a socket nor the server has given a reason. */
static void tell_error(struct mongodb_lane *lane, struct baton_call *call,
		       const bson_error_t *error)
{
	bool is_answer = error->domain == MONGOC_ERROR_SERVER;
	bool is_login = error->domain == MONGOC_ERROR_CLIENT &&
			error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE;
	const char *advice = "";

	if (lane->why != 0 && !is_answer) {
		(void)store_fail(&call->error, lane->why, "%s", lane->text);
		return;
	}
	if (clock_boot_ns() >= call->deadline_ns) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT,
				 "MongoDB did not answer in time; the connection is given up");
		return;
	}
	if (is_answer && error->code == E_UNAUTHORIZED)
		advice = "; give the user the role readWrite on the database";
	else if (is_answer && (error->code == E_NOT_PRIMARY || error->code == E_NOT_PRIMARY_OK))
		advice = "; name all members in the URL, and no directConnection";
	(void)store_fail(&call->error,
			 is_login    ? BATON_E_DENIED
			 : is_answer ? mongodb_code((int)error->code)
				     : BATON_E_UNAVAILABLE,
			 "%s: %.150s (%u)%s", is_answer ? "the server says" : "MongoDB",
			 error->message, error->code, advice);
}

/* ---- connecting ---- */

void mongodb_disconnect(struct mongodb_lane *lane)
{
	lane->deadline_ns = 0; /* so that the library can't send a goodbye */
	mongodb_streams_cut(lane);
	if (lane->client != NULL)
		mongoc_client_destroy(lane->client);
	lane->client = NULL;
	lane->cursor = 0;
}

int32_t mongodb_left_ms(const struct baton_call *call)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ms =
		now_ns < call->deadline_ns ? (call->deadline_ns - now_ns) / CLOCK_NS_PER_MS : 0;

	return left_ms < 1 ? 1 : left_ms > NEVER_MS ? NEVER_MS : (int32_t)left_ms;
}

static bool set_login(const struct mongodb_lane *lane, mongoc_uri_t *uri, const char *auth_source,
		      struct baton_call *call)
{
	const struct mongodb_options *o = &lane->store->options;
	char password[MONGODB_TEXT_MAX];
	bool is_set = true;

	if (!option_password(&o->login, password, sizeof(password), &call->error))
		return false;
	if (o->mechanism[0] != '\0')
		is_set = mongoc_uri_set_auth_mechanism(uri, o->mechanism);
	if (o->login.user[0] != '\0')
		is_set = is_set && mongoc_uri_set_username(uri, o->login.user);
	if (password[0] != '\0')
		is_set = is_set && mongoc_uri_set_password(uri, password);
	if (strcmp(o->mechanism, "MONGODB-X509") == 0 || strcmp(o->mechanism, "PLAIN") == 0)
		auth_source = "$external";
	is_set = is_set && mongoc_uri_set_auth_source(uri, auth_source);
	explicit_bzero(password, sizeof(password));
	if (!is_set)
		(void)store_fail(&call->error, BATON_E_URL, "the login can't be used");
	return is_set;
}

static void set_habits(mongoc_uri_t *uri, const struct baton_call *call, bool is_one)
{
	int32_t left_ms = mongodb_left_ms(call);
	int32_t greeting_ms = is_one || left_ms / 3 > GREETING_MS ? left_ms : left_ms / 3 + 1;

	if (!is_one && greeting_ms > GREETING_MS)
		greeting_ms = GREETING_MS;
	(void)mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
	(void)mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYREADS, false);
	(void)mongoc_uri_set_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true);
	(void)mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, left_ms);
	(void)mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, greeting_ms);
	(void)mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, NEVER_MS);
	(void)mongoc_uri_set_option_as_int32(uri, MONGOC_URI_HEARTBEATFREQUENCYMS, NEVER_MS);
	(void)mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETCHECKINTERVALMS, NEVER_MS);
	(void)mongoc_uri_set_option_as_utf8(uri, MONGOC_URI_APPNAME, "baton");
}

/* Finds the servers: in the URL, or with the name service. */
static bool find_servers(struct mongodb_lane *lane, struct mongodb_servers *out)
{
	const struct mongodb_options *o = &lane->store->options;

	*out = (struct mongodb_servers){0};
	if (!o->is_srv) {
		(void)memcpy(out->hosts, o->login.hosts, sizeof(out->hosts));
		out->n_hosts = o->login.n_hosts;
	} else if (!mongodb_srv_find(lane, o->login.hosts[0].name, out)) {
		return false;
	}
	if (o->replica_set[0] != '\0')
		(void)snprintf(out->replica_set, sizeof(out->replica_set), "%s", o->replica_set);
	if (o->auth_source[0] != '\0' || out->auth_source[0] == '\0')
		(void)snprintf(out->auth_source, sizeof(out->auth_source), "%s",
			       o->auth_source[0] != '\0' ? o->auth_source : o->database);
	return true;
}

static mongoc_uri_t *make_uri(const struct mongodb_lane *lane, struct baton_call *call,
			      const struct mongodb_servers *servers)
{
	struct bytes text = {0};

	for (size_t i = 0; i < servers->n_hosts; i++) {
		const struct option_host *h = &servers->hosts[i];
		bool is_v6 = strchr(h->name, ':') != NULL;

		bytes_print(&text, "%s%s%s%s:%s", i == 0 ? "mongodb://" : ",", is_v6 ? "[" : "",
			    h->name, is_v6 ? "]" : "", h->port);
	}
	bytes_print(&text, "/");
	mongoc_uri_t *uri = text.has_failed ? NULL : mongoc_uri_new(text.at);

	bytes_done(&text);
	if (uri == NULL) {
		(void)store_fail(&call->error, BATON_E_URL, "the servers' names can't be used");
		return NULL;
	}
	set_habits(uri, call, servers->n_hosts == 1);
	if (servers->replica_set[0] != '\0')
		(void)mongoc_uri_set_option_as_utf8(uri, MONGOC_URI_REPLICASET,
						    servers->replica_set);
	if (lane->store->options.is_direct)
		(void)mongoc_uri_set_option_as_bool(uri, MONGOC_URI_DIRECTCONNECTION, true);
	if ((lane->store->options.login.user[0] != '\0' ||
	     lane->store->options.mechanism[0] != '\0') &&
	    !set_login(lane, uri, servers->auth_source, call)) {
		mongoc_uri_destroy(uri);
		return NULL;
	}
	return uri;
}

static bool make_client(struct mongodb_lane *lane, struct baton_call *call)
{
	const struct mongodb_options *o = &lane->store->options;
	struct mongodb_servers servers;

	if (!find_servers(lane, &servers)) {
		(void)store_fail(&call->error, lane->why, "%s", lane->text);
		return false;
	}
	mongoc_uri_t *uri = make_uri(lane, call, &servers);

	if (uri == NULL)
		return false;
	lane->client = mongoc_client_new_from_uri(uri);
	mongoc_uri_destroy(uri);
	if (lane->client == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no client for MongoDB");
		return false;
	}
	(void)mongoc_client_set_error_api(lane->client, MONGOC_ERROR_API_VERSION_2);
	if (o->tls && o->files.cert[0] != '\0') {
		/* The library only reads the user's name from this file. The connection is ours. */
		mongoc_ssl_opt_t ssl = {.pem_file = o->files.cert};

		mongoc_client_set_ssl_opts(lane->client, &ssl);
	}
	mongoc_client_set_stream_initiator(lane->client, mongodb_stream_open, lane);
	return true;
}

/* Notes the server's clock, and whether there are several servers. */
static void note_server(struct mongodb_lane *lane, const mongoc_server_description_t *server)
{
	const bson_t *hello =
		mongoc_server_description_hello_response((mongoc_server_description_t *)server);
	bson_iter_t at;

	if (mongodb_has(hello, "localTime", &at) && BSON_ITER_HOLDS_DATE_TIME(&at))
		lane->ahead_ms =
			bson_iter_date_time(&at) - (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
	lane->is_set = mongodb_has(hello, "setName", &at) || mongodb_has(hello, "msg", &at);
}

static bool greet_server(struct mongodb_lane *lane, struct baton_call *call)
{
	bson_error_t error = {0};
	bson_t reply, ping = BSON_INITIALIZER;
	mongoc_server_description_t *server =
		mongoc_client_select_server(lane->client, true, NULL, &error);
	bool is_fine = server != NULL;

	if (is_fine) {
		note_server(lane, server);
		mongoc_server_description_destroy(server);
		/* The library logs in with the first command. So a refused login is never the
		 * answer to a write. */
		(void)BSON_APPEND_INT32(&ping, "ping", 1);
		is_fine = mongoc_client_command_simple(lane->client, lane->store->options.database,
						       &ping, NULL, &reply, &error);
		bson_destroy(&reply);
	}
	bson_destroy(&ping);
	if (!is_fine)
		tell_error(lane, call, &error);
	return is_fine;
}

bool mongodb_connect(struct mongodb_lane *lane, struct baton_call *call)
{
	if (lane->client != NULL && !mongodb_streams_are_sound(lane))
		mongodb_disconnect(lane);
	lane->deadline_ns = call->deadline_ns;
	lane->why = 0;
	lane->is_woken = false;
	if (lane->client != NULL)
		return true;
	if (clock_boot_ns() >= call->deadline_ns) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a request");
		return false;
	}
	if (make_client(lane, call) && greet_server(lane, call))
		return true;
	mongodb_disconnect(lane);
	return false;
}

/* ---- a command ---- */

int mongodb_run(struct mongodb_lane *lane, struct baton_call *call, const bson_t *command,
		bson_t *reply)
{
	bson_error_t error = {0};

	lane->deadline_ns = call->deadline_ns;
	lane->has_sent = false;
	lane->why = 0;
	lane->code = 0;
	if (lane->client == NULL || clock_boot_ns() >= call->deadline_ns) {
		bson_init(reply);
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "there was no time for a request");
		return MONGODB_UNSENT;
	}
	if (mongoc_client_command_simple(lane->client, lane->store->options.database, command, NULL,
					 reply, &error))
		return MONGODB_DONE;
	tell_error(lane, call, &error);
	if (error.domain == MONGOC_ERROR_SERVER && lane->why == 0) {
		lane->code = (int)error.code;
		if (mongodb_code(lane->code) == BATON_E_UNAVAILABLE)
			mongodb_disconnect(lane); /* another server may be the primary by now */
		return MONGODB_REFUSED;
	}
	int end = lane->has_sent ? MONGODB_NO_ANSWER : MONGODB_UNSENT;

	mongodb_disconnect(lane);
	return end;
}

/* ---- keys and answers ---- */

int mongodb_id(const struct mongodb_lane *lane, const char *key, char out[MONGODB_ID_MAX])
{
	const char *prefix = lane->store->prefix;

	return snprintf(out, MONGODB_ID_MAX, "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", key);
}

const char *mongodb_key(const struct mongodb_lane *lane, const char *id)
{
	size_t n = strlen(lane->store->prefix);

	if (n > 0 && (strncmp(id, lane->store->prefix, n) != 0 || id[n] != '/'))
		return NULL;
	id += n > 0 ? n + 1 : 0;
	return strlen(id) <= MONGODB_KEY_MAX ? id : NULL;
}

bool mongodb_has(const bson_t *doc, const char *dotted, bson_iter_t *out)
{
	bson_iter_t at;

	return bson_iter_init(&at, doc) && bson_iter_find_descendant(&at, dotted, out);
}
