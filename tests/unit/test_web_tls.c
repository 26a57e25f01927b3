/*
 * test_web_tls.c: whom the HTTP client trusts, and whom it doesn't. Keys and certificates are made
 * for each run; each certificate is its own authority.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/http.h"
#include "web_server.h"

#define LATER_MS 20000

/* ---- certificates ---- */

struct identity {
	EVP_PKEY *key;
	X509 *cert;
	char cert_text[4096];
	char key_text[4096];
};

static void put_pem(BIO *bio, char *out, size_t size)
{
	int n = BIO_read(bio, out, (int)size - 1);

	assert_true(n > 0);
	out[n] = '\0';
	BIO_free(bio);
}

/* names: as in a subjectAltName. Good from `from_s` on, for an hour. */
static void make(struct identity *id, const char *names, long from_s)
{
	X509V3_CTX context;

	id->key = EVP_EC_gen("P-256");
	id->cert = X509_new();
	X509_set_version(id->cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(id->cert), (long)clock_boot_ns());
	X509_gmtime_adj(X509_getm_notBefore(id->cert), from_s);
	X509_gmtime_adj(X509_getm_notAfter(id->cert), from_s + 3600);
	X509_set_pubkey(id->cert, id->key);
	X509_NAME *name = X509_get_subject_name(id->cert);

	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
				   0);
	X509_set_issuer_name(id->cert, name);
	X509V3_set_ctx(&context, id->cert, id->cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &context, NID_subject_alt_name, names);

	assert_non_null(e);
	X509_add_ext(id->cert, e, -1);
	X509_EXTENSION_free(e);
	assert_true(X509_sign(id->cert, id->key, EVP_sha256()) > 0);
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_X509(bio, id->cert);
	put_pem(bio, id->cert_text, sizeof(id->cert_text));
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, id->key, NULL, NULL, 0, NULL, NULL);
	put_pem(bio, id->key_text, sizeof(id->key_text));
}

static void unmake(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->cert);
}

/* ---- a server with TLS ---- */

static void *tls_accept(void *arg, int fd)
{
	SSL *ssl = SSL_new(arg);

	SSL_set_fd(ssl, fd);
	if (SSL_accept(ssl) == 1)
		return ssl;
	SSL_free(ssl);
	return NULL;
}

static long tls_read(void *session, char *to, size_t n)
{
	return SSL_read(session, to, (int)n);
}

static long tls_write(void *session, const char *from, size_t n)
{
	return SSL_write(session, from, (int)n);
}

static void tls_end(void *session)
{
	SSL_free(session);
}

struct world {
	struct identity id, client;
	SSL_CTX *context;
	struct web_layer layer;
	struct web_server *server;
};

static void open_world(struct world *w, const char *names, long from_s)
{
	make(&w->id, names, from_s);
	make(&w->client, "DNS:client", -60);
	w->context = SSL_CTX_new(TLS_server_method());
	SSL_CTX_use_certificate(w->context, w->id.cert);
	SSL_CTX_use_PrivateKey(w->context, w->id.key);
	w->layer = (struct web_layer){.accept = tls_accept,
				      .read = tls_read,
				      .write = tls_write,
				      .end = tls_end,
				      .arg = w->context};
	w->server = web_server_new(&w->layer);
	assert_non_null(w->server);
}

static void close_world(struct world *w)
{
	web_server_free(w->server);
	SSL_CTX_free(w->context);
	unmake(&w->id);
	unmake(&w->client);
}

static int call_port(unsigned port, const struct http_config *config, struct http_reply *r)
{
	struct http *h = http_new(config);
	struct http_host host = {.name = "127.0.0.1", .tls = true};
	struct http_request q = {.method = "GET", .host = &host, .path = "/hello"};

	snprintf(host.port, sizeof(host.port), "%u", port);
	int result = http_call(h, &q, clock_boot_ns() + LATER_MS * CLOCK_NS_PER_MS, r);

	r->body = r->result == HTTP_OK ? "hello" : "";
	http_free(h);
	return result;
}

static int call(struct world *w, const struct http_config *config, struct http_reply *r)
{
	return call_port(web_server_port(w->server), config, r);
}

/* ---- the tests ---- */

static void test_trusted(void **state)
{
	char path[] = "/tmp/baton-ca-XXXXXX";
	struct http_reply r;
	struct world w;

	(void)state;
	open_world(&w, "IP:127.0.0.1", -60);
	assert_int_equal(call(&w, &(struct http_config){.ca_text = w.id.cert_text}, &r), HTTP_OK);
	assert_int_equal(r.status, 200);
	FILE *f = fdopen(mkstemp(path), "w");

	fputs(w.id.cert_text, f);
	fclose(f);
	assert_int_equal(call(&w, &(struct http_config){.ca = path}, &r), HTTP_OK);
	unlink(path);
	assert_int_equal(call(&w, &(struct http_config){.ca = path}, &r), HTTP_UNTRUSTED);
	close_world(&w);
}

static void refused(struct world *w, const struct http_config *config)
{
	struct http_reply r;

	assert_int_equal(call(w, config, &r), HTTP_UNTRUSTED);
	assert_false(r.sent);
	assert_int_equal(r.status, 0);
	assert_true(r.text[0] != '\0');
	assert_int_equal(web_server_requests(w->server), 0);
}

static void test_untrusted(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, "IP:127.0.0.1", -60);
	refused(&w, &(struct http_config){.ca_text = w.client.cert_text});
	refused(&w, &(struct http_config){0}); /* no authority of this system */
	close_world(&w);
}

static void test_expired(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, "IP:127.0.0.1", -7200);
	refused(&w, &(struct http_config){.ca_text = w.id.cert_text});
	close_world(&w);
}

static void test_name(void **state)
{
	struct http_reply r;
	struct world w;

	(void)state;
	open_world(&w, "DNS:store.example", -60);
	refused(&w, &(struct http_config){.ca_text = w.id.cert_text});
	refused(&w,
		&(struct http_config){.ca_text = w.id.cert_text, .server_name = "other.example"});
	assert_int_equal(call(&w,
			      &(struct http_config){.ca_text = w.id.cert_text,
						    .server_name = "store.example"},
			      &r),
			 HTTP_OK);
	close_world(&w);
}

/* A server that wants to know who we are. */
static void test_client(void **state)
{
	struct http_reply r;
	struct world w;

	(void)state;
	open_world(&w, "IP:127.0.0.1", -60);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(w.context), w.client.cert);
	SSL_CTX_set_verify(w.context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	struct http_config config = {.ca_text = w.id.cert_text};

	assert_int_equal(call(&w, &config, &r), HTTP_UNTRUSTED);
	assert_int_equal(web_server_requests(w.server), 0);
	config.cert_text = w.client.cert_text;
	config.key_text = w.client.key_text;
	assert_int_equal(call(&w, &config, &r), HTTP_OK);
	config.cert_text = w.id.cert_text; /* a key of another certificate */
	assert_int_equal(call(&w, &config, &r), HTTP_UNTRUSTED);
	close_world(&w);
}

/* There is no way back to plain text. */
static void test_plain(void **state)
{
	struct web_server *server = web_server_new(NULL);
	struct http_reply r;

	(void)state;
	assert_int_equal(call_port(web_server_port(server), &(struct http_config){0}, &r),
			 HTTP_UNTRUSTED);
	assert_false(r.sent);
	web_server_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trusted), cmocka_unit_test(test_untrusted),
		cmocka_unit_test(test_expired), cmocka_unit_test(test_name),
		cmocka_unit_test(test_client),  cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
