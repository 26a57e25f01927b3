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
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/net/net.h"

struct net_tls {
	SSL_CTX *context;   /* made when it is first needed: it reads files */
	BIO_METHOD *method; /* the socket, without SIGPIPE: see bio_write() */
	struct net_files files;
};

struct net_tls *net_tls_new(const struct net_files *files)
{
	struct net_tls *tls = calloc(1, sizeof(*tls));

	if (tls != NULL)
		tls->files = *files;
	return tls;
}

void net_tls_free(struct net_tls *tls)
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
	const struct net *n = BIO_get_data(bio);
	ssize_t sent = send(n->fd, data, (size_t)size, MSG_NOSIGNAL);
	int rc = bio_result(bio, sent);

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return rc;
}

static int bio_read(BIO *bio, char *data, int size)
{
	const struct net *n = BIO_get_data(bio);
	ssize_t got = recv(n->fd, data, (size_t)size, 0);
	int rc = bio_result(bio, got);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
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

static bool tls_make_method(struct net_tls *tls)
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

static int tls_fail(struct net *n, int code, const char *what)
{
	char reason[120] = "no reason given";
	unsigned long error = ERR_get_error();

	if (error != 0)
		ERR_error_string_n(error, reason, sizeof(reason));
	ERR_clear_error();
	return net_fail(n, code, "TLS: %s: %.110s", what, reason);
}

static int tls_load_files(struct net *n, const struct net_files *files, SSL_CTX *context)
{
	if (files->ca[0] != '\0' ? SSL_CTX_load_verify_locations(context, files->ca, NULL) != 1
				 : SSL_CTX_set_default_verify_paths(context) != 1)
		return tls_fail(n, NET_UNTRUSTED, "can't read the authorities' certificates (ca=)");
	if (files->cert[0] == '\0')
		return 0;
	if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
		return tls_fail(n, NET_UNTRUSTED, "can't read our certificate (cert=)");
	if (SSL_CTX_use_PrivateKey_file(context, files->key[0] != '\0' ? files->key : files->cert,
					SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(context) != 1)
		return tls_fail(n, NET_UNTRUSTED, "can't use our private key (key=)");
	return 0;
}

static int tls_make_context(struct net_tls *tls, struct net *n)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL)
		return tls_fail(n, NET_MEMORY, "no context");
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
	    tls_load_files(n, &tls->files, context) != 0) {
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

static int tls_refuse(struct net *n, const SSL *ssl, const char *name)
{
	long why = SSL_get_verify_result(ssl);

	if (why == X509_V_OK)
		return tls_fail(n, NET_UNAVAILABLE,
				"no handshake; expected a server that speaks TLS here and accepts "
				"our certificate");
	ERR_clear_error();
	return net_fail(n, NET_UNTRUSTED, "TLS: the certificate of %.80s is refused: %.80s", name,
			X509_verify_cert_error_string(why));
}

static int tls_handshake(struct net *n, SSL *ssl, const char *name)
{
	for (;;) {
		ERR_clear_error();
		int rc = SSL_connect(ssl);

		if (rc == 1)
			return 0;
		short events = tls_wanted(ssl, rc);

		if (events == 0)
			return tls_refuse(n, ssl, name);
		rc = net_wait(n, events);
		if (rc != 0)
			return net_fail_system(n, "finish the TLS handshake",
					       rc == NET_WOKEN ? ECANCELED : errno);
	}
}

int net_tls_open(struct net_tls *tls, struct net *n, const char *name)
{
	if (tls->context == NULL && tls_make_context(tls, n) != 0)
		return -1;
	SSL *ssl = SSL_new(tls->context);
	BIO *bio = tls_make_method(tls) ? BIO_new(tls->method) : NULL;

	if (ssl == NULL || bio == NULL || !tls_expect(ssl, name)) {
		SSL_free(ssl);
		BIO_free(bio);
		return tls_fail(n, NET_MEMORY, "no connection");
	}
	BIO_set_data(bio, n);
	SSL_set_bio(ssl, bio, bio);
	if (tls_handshake(n, ssl, name) == 0) {
		SSL_set_mode(ssl,
			     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		n->ssl = ssl;
		return 0;
	}
	SSL_free(ssl);
	/* Files may have been renewed since they were read. */
	SSL_CTX_free(tls->context);
	tls->context = NULL;
	return -1;
}

void net_tls_close(struct net *n)
{
	SSL_free(n->ssl);
	n->ssl = NULL;
}

static long tls_result(struct net *n, int rc, short *events)
{
	if (rc > 0)
		return rc;
	*events = tls_wanted(n->ssl, rc);
	if (*events != 0) {
		errno = EAGAIN;
		return -1;
	}
	if (SSL_get_error(n->ssl, rc) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = ECONNRESET;
	return -1;
}

long net_tls_read(struct net *n, char *to, size_t size, short *events)
{
	ERR_clear_error();
	return tls_result(n, SSL_read(n->ssl, to, size < INT32_MAX ? (int)size : INT32_MAX),
			  events);
}

long net_tls_write(struct net *n, const char *from, size_t size, short *events)
{
	ERR_clear_error();
	return tls_result(n, SSL_write(n->ssl, from, size < INT32_MAX ? (int)size : INT32_MAX),
			  events);
}
