/*
 * request.c: one request as a handle of libcurl: everything that is set on it, and what its result
 * means.
 */
#include "base/web/request.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX ((size_t)64 << 10)
#define BASE_MAX (2 * HTTP_NAME_MAX + 32)
/*
 * libcurl 7.88 takes up to 32 KiB of HTTP/2 from a socket. It keeps to itself what finds no room
 * here, and then waits for the socket: for ever, if nothing more comes.
 */
#define ROOM (64L << 10)

/* ---- what libcurl calls ---- */

static size_t take_body(char *data, size_t one, size_t n, void *arg)
{
	struct request *s = arg;

	if (bytes_add(&s->answer->body, data, one * n, s->http->body_max))
		return one * n;
	s->is_too_much = true;
	return 0;
}

static size_t take_head(char *data, size_t one, size_t n, void *arg)
{
	struct request *s = arg;

	if (one * n > 5 && memcmp(data, "HTTP/", 5) == 0)
		bytes_clear(&s->answer->head); /* after a "100 Continue" */
	if (bytes_add(&s->answer->head, data, one * n, HEAD_MAX))
		return one * n;
	s->is_too_much = true;
	return 0;
}

/*
 * Called before the first byte of a request is sent. libcurl sends a request once more if a
 * connection that was used before ends without a reply. But the server may have carried it out, so
 * nothing is sent twice.
 */
static int about_to_send(void *arg, char *to, char *from, int to_port, int from_port)
{
	struct request *s = arg;

	(void)to;
	(void)from;
	(void)to_port;
	(void)from_port;
	return s->n_sent++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* A peer that is gone is noticed in some ten seconds, also by a client that only listens. */
static void set_keepalive(int fd)
{
	static const struct {
		int level, option, value;
	} settings[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPIDLE, 5},
		{IPPROTO_TCP, TCP_KEEPINTVL, 3},        {IPPROTO_TCP, TCP_KEEPCNT, 2},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, 10000},
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		(void)setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value,
				 sizeof(settings[i].value));
}

/* Sockets are known by us, so that a child of fork() can close them. */
static curl_socket_t request_open_socket(void *arg, curlsocktype purpose,
					 struct curl_sockaddr *address)
{
	const struct request *s = arg;
	struct http *h = s->http;
	size_t i = 0;

	(void)purpose;
	if (s->is_again)
		return CURL_SOCKET_BAD;
	while (i < HTTP_SOCKETS_MAX && h->sockets[i] >= 0)
		i++;
	if (i == HTTP_SOCKETS_MAX)
		return CURL_SOCKET_BAD;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

	if (fd < 0)
		return CURL_SOCKET_BAD;
	set_keepalive(fd);
	h->sockets[i] = fd;
	return fd;
}

static int close_socket(void *arg, curl_socket_t fd)
{
	struct http *h = arg;

	for (size_t i = 0; i < HTTP_SOCKETS_MAX; i++)
		if (h->sockets[i] == fd)
			h->sockets[i] = -1;
	return close(fd);
}

/* ---- what is set ---- */

#define SET(option, value)                                                          \
	do {                                                                        \
		if (curl_easy_setopt(s->easy, CURLOPT_##option, value) != CURLE_OK) \
			return -1;                                                  \
	} while (0)

static int request_set_habits(struct request *s)
{
	SET(NOSIGNAL, 1L);
	SET(PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(PROXY, "");
	SET(NOPROXY, "*");
	SET(NETRC, (long)CURL_NETRC_IGNORED);
	SET(HTTP09_ALLOWED, 0L);
	SET(PATH_AS_IS, 1L);
	SET(USERAGENT, "baton");
	SET(BUFFERSIZE, ROOM);
	SET(WRITEFUNCTION, take_body);
	SET(WRITEDATA, s);
	SET(HEADERFUNCTION, take_head);
	SET(HEADERDATA, s);
	SET(PREREQFUNCTION, about_to_send);
	SET(PREREQDATA, s);
	SET(OPENSOCKETFUNCTION, request_open_socket);
	SET(OPENSOCKETDATA, s);
	SET(CLOSESOCKETFUNCTION, close_socket);
	SET(CLOSESOCKETDATA, s->http);
	SET(ERRORBUFFER, s->error);
	return 0;
}

/*
 * libcurl 7.88 breaks a connection that is known to speak HTTP/2 whenever it is used again: it
 * switches that connection to HTTP/2 once more (curl issue 10634). If it isn't told that the server
 * speaks HTTP/2, it uses the connection rightly. Only a fresh connection would then begin with
 * HTTP/1.1, and ask for more: so none is made then.
 */
static bool is_again(const struct http *h)
{
	bool is_connected = false;

	for (size_t i = 0; i < HTTP_SOCKETS_MAX; i++)
		is_connected = is_connected || h->sockets[i] >= 0;
	return is_connected && h->is_7_88;
}

/* No other version is tried than the one that the server is known to speak. */
static int request_set_version(struct request *s, bool tls, bool fresh)
{
	long version = CURL_HTTP_VERSION_1_1;

	s->is_again = s->http->h2 && !tls && !fresh && is_again(s->http);
	if (s->http->h2)
		version = tls           ? CURL_HTTP_VERSION_2TLS
			  : s->is_again ? CURL_HTTP_VERSION_2_0
					: CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
	SET(HTTP_VERSION, version);
	return 0;
}

static int set_pem(struct request *s, CURLoption file, const char *path, CURLoption blob,
		   const char *text)
{
	struct curl_blob pem = {.flags = CURL_BLOB_COPY};

	if (path != NULL)
		return curl_easy_setopt(s->easy, file, path) == CURLE_OK ? 0 : -1;
	if (text == NULL)
		return 0;
	pem.data = (void *)(uintptr_t)text;
	pem.len = strlen(text);
	return curl_easy_setopt(s->easy, blob, &pem) == CURLE_OK ? 0 : -1;
}

static int request_set_tls(struct request *s)
{
	const struct http *h = s->http;

	SET(SSL_VERIFYPEER, 1L);
	SET(SSL_VERIFYHOST, 2L);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CA_CACHE_TIMEOUT, 60L);
	if (h->ca != NULL || h->ca_text != NULL)
		SET(CAPATH, NULL); /* no other authorities */
	if (set_pem(s, CURLOPT_CAINFO, h->ca, CURLOPT_CAINFO_BLOB, h->ca_text) != 0 ||
	    set_pem(s, CURLOPT_SSLCERT, h->cert, CURLOPT_SSLCERT_BLOB, h->cert_text) != 0)
		return -1;
	if (h->key != NULL || h->key_text != NULL)
		return set_pem(s, CURLOPT_SSLKEY, h->key, CURLOPT_SSLKEY_BLOB, h->key_text);
	return set_pem(s, CURLOPT_SSLKEY, h->cert, CURLOPT_SSLKEY_BLOB, h->cert_text);
}

static bool slist_add(struct curl_slist **list, const char *text)
{
	struct curl_slist *more = curl_slist_append(*list, text);

	if (more != NULL)
		*list = more;
	return more != NULL;
}

/* IPv6 addresses in brackets. */
static void put_host(const char *name, const char *port, char *out, size_t size)
{
	(void)snprintf(out, size, strchr(name, ':') != NULL ? "[%s]:%s" : "%s:%s", name, port);
}

/* The name in the URL is the one that the certificate is checked for. */
static int request_set_target(struct request *s, const struct http_request *request,
			      const struct name *name)
{
	const struct http_host *host = request->host;
	const char *shown = s->http->server_name;
	char target[BASE_MAX], connect[2 * BASE_MAX + 2];
	struct bytes url = {0};

	put_host(shown != NULL ? shown : host->name, host->port, target, sizeof(target));
	if (shown != NULL) {
		int n = snprintf(connect, sizeof(connect), "%s:", target);

		put_host(host->name, host->port, connect + n, sizeof(connect) - (size_t)n);
		if (!slist_add(&s->connect_to, connect))
			return -1;
		SET(CONNECT_TO, s->connect_to);
	}
	if (name->n > 0) {
		if (!slist_add(&s->resolve, name->entries[name->at]))
			return -1;
		SET(RESOLVE, s->resolve);
	}
	bytes_print(&url, "%s://%s%s", host->tls ? "https" : "http", target, request->path);
	CURLcode code =
		url.has_failed ? CURLE_FAILED_INIT : curl_easy_setopt(s->easy, CURLOPT_URL, url.at);

	bytes_done(&url);
	return code == CURLE_OK ? 0 : -1;
}

static int request_set_message(struct request *s, const struct http_request *request)
{
	if (request->body != NULL) {
		SET(POST, 1L);
		SET(POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
		SET(COPYPOSTFIELDS, request->body);
	}
	SET(CUSTOMREQUEST, request->method);
	/* libcurl must neither ask whether a body is welcome nor say that the body is a form. */
	if (!slist_add(&s->headers, "Expect:") || !slist_add(&s->headers, "Content-Type:"))
		return -1;
	for (const char *const *h = request->headers; h != NULL && *h != NULL; h++)
		if (!slist_add(&s->headers, *h))
			return -1;
	SET(HTTPHEADER, s->headers);
	return 0;
}

void request_clear(struct request *s)
{
	if (s->easy != NULL)
		curl_easy_reset(s->easy);
	curl_slist_free_all(s->headers);
	curl_slist_free_all(s->resolve);
	curl_slist_free_all(s->connect_to);
	s->headers = s->resolve = s->connect_to = NULL;
	s->reply = NULL;
}

int request_fill(struct request *s, const struct http_request *request, const struct name *name,
		 uint64_t connect_ms, bool fresh)
{
	if (s->easy == NULL)
		s->easy = curl_easy_init();
	if (s->easy == NULL)
		return -1;
	bytes_clear(&s->answer->head);
	bytes_clear(&s->answer->body);
	s->n_sent = 0;
	s->is_done = false;
	s->is_too_much = false;
	s->error[0] = '\0';
	SET(CONNECTTIMEOUT_MS, (long)(connect_ms < 1000000 ? connect_ms : 1000000));
	if (request_set_habits(s) != 0 || request_set_version(s, request->host->tls, fresh) != 0 ||
	    request_set_target(s, request, name) != 0 || request_set_message(s, request) != 0)
		return -1;
	return request->host->tls ? request_set_tls(s) : 0;
}

/* ---- what it means ---- */

static bool says(const struct request *s, const char *word)
{
	return strstr(s->error, word) != NULL;
}

static int request_result(const struct request *s)
{
	switch (s->code) {
	case CURLE_OK: return HTTP_OK;
	case CURLE_OPERATION_TIMEDOUT: return HTTP_LATE;
	case CURLE_OUT_OF_MEMORY: return HTTP_MEMORY;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS: return HTTP_UNTRUSTED;
	case CURLE_SSL_CONNECT_ERROR: /* a connection that is reset says the same */
		return says(s, "SYSCALL") || says(s, "reset") ? HTTP_UNAVAILABLE : HTTP_UNTRUSTED;
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR: /* it doesn't like our certificate, or that we have none */
		return says(s, "alert") ? HTTP_UNTRUSTED : HTTP_UNAVAILABLE;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_WRITE_ERROR: return HTTP_STRANGE;
	default: return HTTP_UNAVAILABLE;
	}
}

void request_judge(const struct request *s, const struct http_host *host, struct http_reply *out)
{
	long status = 0;
	const char *why = s->error[0] != '\0' ? s->error : curl_easy_strerror(s->code);

	(void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	out->result = request_result(s);
	out->status = (int)status;
	out->sent = s->n_sent > 0;
	out->answer = s->answer;
	out->body = s->answer->body.at != NULL ? s->answer->body.at : "";
	out->body_size = s->answer->body.n;
	out->text[0] = '\0';
	if (s->is_too_much)
		why = "the reply is larger than we take";
	else if (s->code == CURLE_ABORTED_BY_CALLBACK)
		why = "the connection ended before the reply";
	if (out->result != HTTP_OK)
		(void)snprintf(out->text, sizeof(out->text), "%.60s:%s: %.120s", host->name,
			       host->port, why);
}
