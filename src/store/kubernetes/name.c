/*
 * name.c: names of elections as names of objects. A name that Kubernetes takes stays as it is, so
 * that other programs find the same Lease under it. Any other name is replaced by a hash, and
 * stands in an annotation: a name is never cut, and no two names share an object.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "store/kubernetes/kube.h"

#define OURS "baton--"

static void hash_hex(const char *a, const char *b, char out[65])
{
	unsigned char sum[EVP_MAX_MD_SIZE] = {0};
	char text[BATON_NAME_MAX + BATON_LEASE_ID_MAX + 2];
	int n = snprintf(text, sizeof(text), "%s%s%s", a, a[0] != '\0' ? "\n" : "", b);

	(void)EVP_Digest(text, (size_t)n, sum, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < 32; i++)
		(void)snprintf(out + (size_t)2 * (size_t)i, 3, "%02x", sum[i]);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The name is a subdomain as RFC 1123 defines it, and doesn't begin like our own objects. */
static bool is_plain(const char *name)
{
	char last = '.';

	if (strncmp(name, OURS, strlen(OURS)) == 0)
		return false;
	for (const char *c = name; *c != '\0'; c++) {
		bool is_edge = last == '.' || c[1] == '\0' || c[1] == '.';

		if (!is_letter(*c) &&
		    (is_edge ? *c != '.' || last == '.' || c[1] == '\0' : *c != '-' && *c != '.'))
			return false;
		last = *c;
	}
	return name[0] != '\0';
}

void kube_object_name(const char *name, char out[KUBE_NAME_MAX + 1])
{
	char hex[65];

	if (is_plain(name)) {
		(void)snprintf(out, KUBE_NAME_MAX + 1, "%s", name);
		return;
	}
	hash_hex("", name, hex);
	(void)snprintf(out, KUBE_NAME_MAX + 1, OURS "%s", hex);
}

void kube_candidate_name(const char *who, const char *name, char out[KUBE_NAME_MAX + 1])
{
	char hex[65];

	hash_hex(who, name, hex);
	(void)snprintf(out, KUBE_NAME_MAX + 1, OURS "c-%s", hex);
}

void kube_process_name(const char *id, char out[KUBE_NAME_MAX + 1])
{
	(void)snprintf(out, KUBE_NAME_MAX + 1, OURS "p-%s", id);
}

void kube_label_of(const char *name, char out[64])
{
	char hex[65];

	hash_hex("", name, hex);
	(void)snprintf(out, 64, "%.63s", hex);
}

bool kube_name_of(const json_t *object, char out[BATON_NAME_MAX + 1])
{
	const char *is = js_text(js_get(object, "metadata"), "name");
	const char *name = kube_annotation(object, "baton/name");
	char expected[KUBE_NAME_MAX + 1];

	if (name[0] == '\0')
		name = is;
	if (strlen(name) > BATON_NAME_MAX)
		return false;
	/* An annotation can say anything: it has to fit the object's name, under which claims are
	 * made. */
	kube_object_name(name, expected);
	(void)snprintf(out, BATON_NAME_MAX + 1, "%s", name);
	return strcmp(expected, is) == 0;
}

void kube_who(const char *lease_id, int n_parts, char out[BATON_LEASE_ID_MAX + 1])
{
	(void)snprintf(out, BATON_LEASE_ID_MAX + 1, "%s", lease_id);
	for (; n_parts > 0; n_parts--) {
		char *dash = strrchr(out, '-');

		if (dash != NULL)
			*dash = '\0';
	}
}
