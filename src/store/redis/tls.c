/*
 * tls.c: TLS on a connection, by OpenSSL. The chain *and* the name are verified, always: there is
 * no switch against it, and no way back to plain text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "store/redis/redis.h"

struct redis_tls {
	SSL_CTX *context;   /* made when it is first needed: it reads files */
	BIO_METHOD *method; /* the socket, without SIGPIPE: see bio_write() */
	const struct redis_options *options;
};

struct redis_tls *redis_tls_new(const struct redis_options *o)
{
	struct redis_tls *tls = calloc(1, sizeof(*tls));

	if (tls != NULL)
		tls->options = o;
	return tls;
}

void redis_tls_free(struct redis_tls *tls)
{
	if (tls == NULL)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls);
}

/* ---- the socket as OpenSSL wants it; its own would raise SIGPIPE in the application ---- */

static int bio_result(BIO *bio, ssize_t n)
{
	BIO_clear_retry_flags(bio);
	return (int)n;
}

static int bio_write(BIO *bio, const char *data, int size)
{
	const struct redis_wire *w = BIO_get_data(bio);
	ssize_t n = send(w->fd, data, (size_t)size, MSG_NOSIGNAL);
	int rc = bio_result(bio, n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return rc;
}

static int bio_read(BIO *bio, char *data, int size)
{
	const struct redis_wire *w = BIO_get_data(bio);
	ssize_t n = recv(w->fd, data, (size_t)size, 0);
	int rc = bio_result(bio, n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	return rc;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

static bool tls_make_method(struct redis_tls *tls)
{
	if (tls->method != NULL)
		return true;
	tls->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "baton");
	return tls->method != NULL && BIO_meth_set_write(tls->method, bio_write) == 1 &&
	       BIO_meth_set_read(tls->method, bio_read) == 1 &&
	       BIO_meth_set_ctrl(tls->method, bio_ctrl) == 1 &&
	       BIO_meth_set_create(tls->method, bio_create) == 1;
}

/* ---- who we are, and whom we trust ---- */

static int tls_fail(struct redis_wire *w, int code, const char *what)
{
	char reason[120] = "no reason given";
	unsigned long error = ERR_get_error();

	if (error != 0)
		ERR_error_string_n(error, reason, sizeof(reason));
	ERR_clear_error();
	return store_fail(w->error, code, "TLS: %s: %.110s", what, reason);
}

static int tls_load_files(struct redis_wire *w, const struct redis_options *o, SSL_CTX *context)
{
	if (o->files.ca[0] != '\0' ? SSL_CTX_load_verify_locations(context, o->files.ca, NULL) != 1
				   : SSL_CTX_set_default_verify_paths(context) != 1)
		return tls_fail(w, BATON_E_DENIED,
				"can't read the authorities' certificates (ca=)");
	if (o->files.cert[0] == '\0')
		return 0;
	if (SSL_CTX_use_certificate_chain_file(context, o->files.cert) != 1)
		return tls_fail(w, BATON_E_DENIED, "can't read our certificate (cert=)");
	if (SSL_CTX_use_PrivateKey_file(context,
					o->files.key[0] != '\0' ? o->files.key : o->files.cert,
					SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(context) != 1)
		return tls_fail(w, BATON_E_DENIED, "can't use our private key (key=)");
	return 0;
}

static int tls_make_context(struct redis_tls *tls, struct redis_wire *w)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL)
		return tls_fail(w, BATON_E_MEMORY, "no context");
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
	    tls_load_files(w, tls->options, context) != 0) {
		SSL_CTX_free(context);
		return -1;
	}
	tls->context = context;
	return 0;
}

/* A certificate names hosts or addresses; which of them depends on what we were told to call. */
static bool tls_expect(SSL *ssl, const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* What to wait for, or 0: it failed for good. */
static short tls_wanted(const SSL *ssl, int rc)
{
	switch (SSL_get_error(ssl, rc)) {
	case SSL_ERROR_WANT_READ: return POLLIN;
	case SSL_ERROR_WANT_WRITE: return POLLOUT;
	default: return 0;
	}
}

static int tls_refuse(struct redis_wire *w, const SSL *ssl, const char *name)
{
	long why = SSL_get_verify_result(ssl);

	if (why == X509_V_OK)
		return tls_fail(w, BATON_E_UNAVAILABLE,
				"no handshake: is that a port that speaks TLS, and wants no other "
				"certificate of ours");
	ERR_clear_error();
	return store_fail(w->error, BATON_E_DENIED,
			  "TLS: the certificate of %.80s is refused: %.80s", name,
			  X509_verify_cert_error_string(why));
}

static int tls_handshake(struct redis_wire *w, SSL *ssl, const char *name)
{
	for (;;) {
		ERR_clear_error();
		int rc = SSL_connect(ssl);

		if (rc == 1)
			return 0;
		short events = tls_wanted(ssl, rc);

		if (events == 0)
			return tls_refuse(w, ssl, name);
		rc = redis_wire_wait(w, events);
		if (rc != 0)
			return redis_wire_fail(w, "finish the TLS handshake",
					       rc == WIRE_WOKEN ? ECANCELED : errno);
	}
}

int redis_tls_open(struct redis_tls *tls, struct redis_wire *w, const char *name)
{
	if (tls->context == NULL && tls_make_context(tls, w) != 0)
		return -1;
	SSL *ssl = SSL_new(tls->context);
	BIO *bio = tls_make_method(tls) ? BIO_new(tls->method) : NULL;

	if (ssl == NULL || bio == NULL || !tls_expect(ssl, name)) {
		SSL_free(ssl);
		BIO_free(bio);
		return tls_fail(w, BATON_E_MEMORY, "no connection");
	}
	BIO_set_data(bio, w);
	SSL_set_bio(ssl, bio, bio);
	if (tls_handshake(w, ssl, name) == 0) {
		SSL_set_mode(ssl,
			     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		w->ssl = ssl;
		return 0;
	}
	SSL_free(ssl);
	/* Files may have been renewed since they were read. */
	SSL_CTX_free(tls->context);
	tls->context = NULL;
	return -1;
}

void redis_tls_close(struct redis_wire *w)
{
	SSL_free(w->ssl);
	w->ssl = NULL;
}

static long tls_result(struct redis_wire *w, int rc, short *events)
{
	if (rc > 0)
		return rc;
	*events = tls_wanted(w->ssl, rc);
	if (*events != 0) {
		errno = EAGAIN;
		return -1;
	}
	if (SSL_get_error(w->ssl, rc) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = ECONNRESET;
	return -1;
}

long redis_tls_read(struct redis_wire *w, char *to, size_t n, short *events)
{
	ERR_clear_error();
	return tls_result(w, SSL_read(w->ssl, to, n < INT32_MAX ? (int)n : INT32_MAX), events);
}

long redis_tls_write(struct redis_wire *w, const char *from, size_t n, short *events)
{
	ERR_clear_error();
	return tls_result(w, SSL_write(w->ssl, from, n < INT32_MAX ? (int)n : INT32_MAX), events);
}
