/*
 * test_kubernetes.c: the parts of the Kubernetes driver that need no server: URLs, kubeconfigs,
 * names, Leases, and how long one was seen unchanged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* ---- URLs ---- */

static void test_url(void **state)
{
	struct kube_options o;
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(kube_options_parse(&o, "kubernetes:", &err), BATON_OK);
	assert_string_equal(o.space, "");
	assert_false(o.process_lease);
	assert_int_equal(kube_options_parse(&o,
					    "kubernetes://my-space?kubeconfig=/k%20k&context=a/b"
					    "&process_lease=1&pod_label=baton/role&pod=p.q",
					    &err),
			 BATON_OK);
	assert_string_equal(o.space, "my-space");
	assert_string_equal(o.kubeconfig, "/k k");
	assert_string_equal(o.context, "a/b");
	assert_true(o.process_lease);
	assert_string_equal(o.pod_label, "baton/role");
	assert_string_equal(o.pod, "p.q");
}

static void test_bad_urls(void **state)
{
	static const char *const bad[] = {
		"kubernetes://",
		"kubernetes://-a",
		"kubernetes://a-",
		"kubernetes://A",
		"kubernetes://a/b",
		"kubernetes://a.b",
		"kubernetes://a%2Fb",
		"kubernetes://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"kubernetes:path",
		"kubernetes:?token=canary",
		"kubernetes:?kubeconfig=relative",
		"kubernetes:?process_lease=yes",
		"kubernetes:?pod_label=a%22b&pod=p",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kube_options o;
		struct baton_error err = {0};

		if (kube_options_parse(&o, bad[i], &err) != BATON_E_URL)
			fail_msg("%s was taken", bad[i]);
		assert_null(strstr(err.text, "canary"));
	}
}

/* ---- kubeconfigs ---- */

static char folder[] = "/tmp/baton-kube-XXXXXX";

static const char *write_file(const char *name, const char *text)
{
	static char path[100];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static int find(struct kube_config *c, const char *text, struct baton_error *err)
{
	struct kube_options o = {0};

	*c = (struct kube_config){0};
	snprintf(o.kubeconfig, sizeof(o.kubeconfig), "%s", write_file("k", text));
	return kube_config_find(c, &o, err);
}

static void test_kubeconfig(void **state)
{
	struct kube_config c;
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(
		find(&c,
		     "# as kubectl writes it\napiVersion: v1\nclusters:\n- cluster:\n"
		     "    server: https://[fd00::1]:6443/k8s/c-1/\n"
		     "    certificate-authority-data: SGVsbG8=\n"
		     "    tls-server-name: api\n  name: one\n"
		     "users: [{name: me, user: {tokenFile: tokens/mine, client-certificate: /c}}]\n"
		     "contexts:\n- {name: x, context: {cluster: one, user: me, namespace: space}}\n"
		     "current-context: x\n",
		     &err),
		BATON_OK);
	assert_string_equal(c.host.name, "fd00::1");
	assert_string_equal(c.host.port, "6443");
	assert_true(c.host.tls);
	assert_string_equal(c.prefix, "/k8s/c-1");
	assert_string_equal(c.ca_text, "Hello");
	assert_string_equal(c.server_name, "api");
	assert_string_equal(c.cert, "/c");
	assert_string_equal(c.space, "space");
	assert_string_equal(c.token_file + strlen(folder), "/tokens/mine");
	kube_config_done(&c);
}

/* A cluster, a user and a context of that. */
#define WITH(cluster, user)                                                             \
	"clusters: [{name: c, cluster: {" cluster "}}]\nusers: [{name: u, user: {" user \
	"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"

static void test_bad_kubeconfigs(void **state)
{
	static const char *const bad[] = {
		"",
		"[",
		"- canary",
		"a: &a [*a, *a]",
		WITH("", ""),
		WITH("server: ftp://one", ""),
		WITH("server: 'https://'", ""),
		WITH("server: 'https://one:x'", ""),
		WITH("server: 'https://me:canary@one'", ""),
		WITH("server: 'https://[::1'", ""),
		WITH("server: 'https://one', insecure-skip-tls-verify: true", ""),
		WITH("server: 'https://one', proxy-url: 'http://two'", ""),
		WITH("server: 'https://one', certificate-authority-data: '%'", ""),
		WITH("server: 'https://one'", "password: canary"),
		WITH("server: 'https://one'", "auth-provider: {name: canary}"),
		WITH("server: 'https://one'", "token: \"can\\nary\""),
		"contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
		"current-context: y\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kube_config c;
		struct baton_error err = {0};

		if (find(&c, bad[i], &err) == BATON_OK || err.text[0] == '\0')
			fail_msg("%s was taken", bad[i]);
		assert_null(strstr(err.text, "canary"));
		kube_config_done(&c);
	}
}

/* ---- names ---- */

static void test_names(void **state)
{
	static const char *const plain[] = {"e", "nightly-report", "a.b-c.9"};
	static const char *const odd[] = {"A",   "-a",  "a-",        "a..b", ".a", "a.",
					  "a_b", "a b", "baton--1f", "ä",    "a/b"};
	char out[KUBE_NAME_MAX + 1], other[KUBE_NAME_MAX + 1];
	char longest[BATON_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		kube_object_name(plain[i], out);
		assert_string_equal(out, plain[i]);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		kube_object_name(odd[i], out);
		assert_int_equal(strlen(out), strlen("baton--") + 64);
		kube_object_name(out, other); /* nobody can take another's name */
		assert_string_not_equal(out, other);
	}
	kube_object_name("A", out); /* printf A | sha256sum */
	assert_string_equal(
		out, "baton--559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd");
	memset(longest, 'a', sizeof(longest));
	longest[BATON_NAME_MAX] = '\0';
	kube_object_name(longest, out);
	assert_string_equal(out, longest);
}

/* ---- Leases ---- */

#define LEASE(annotations, spec)                                                                 \
	"{\"metadata\":{\"name\":\"e\",\"resourceVersion\":\"70\",\"annotations\":{" annotations \
	"}},\"spec\":{" spec "}}"
#define CLAIM                              \
	"\"baton/claim\":\"ab-0-1 7 41\"," \
	"\"baton/leader\":\"{\\\"leader\\\":\\\"me\\\",\\\"nonce\\\":\\\"7\\\"}\""
#define OURS "\"baton/term\":\"41\",\"baton/transitions\":\"3\"," CLAIM

static void read_lease(struct kube_lease *l, const char *text)
{
	json_t *object = js_parse(text, strlen(text));

	assert_non_null(object);
	kube_lease_read(l, object, 0);
}

static void test_leases(void **state)
{
	struct kube_lease l;

	(void)state;
	read_lease(&l, LEASE(OURS, "\"holderIdentity\":\"me\",\"leaseTransitions\":3"));
	assert_true(l.is_ours);
	assert_int_equal(l.term, 41);
	assert_int_equal(l.nonce, 7);
	assert_int_equal(l.rv, 70);
	assert_string_equal(l.lease_id, "ab-0-1");
	kube_lease_done(&l);
	/* client-go takes over, and leaves our annotations: the term counts on. */
	read_lease(&l, LEASE(OURS, "\"holderIdentity\":\"you\",\"leaseTransitions\":5"));
	assert_false(l.is_ours);
	assert_int_equal(l.term, 43);
	kube_lease_done(&l);
	/* The same id, but another leadership. */
	read_lease(&l, LEASE(OURS, "\"holderIdentity\":\"me\",\"leaseTransitions\":4"));
	assert_false(l.is_ours);
	kube_lease_done(&l);
	read_lease(&l, LEASE(OURS, "\"holderIdentity\":\"\",\"leaseTransitions\":3"));
	assert_false(l.is_ours);
	assert_int_equal(l.term, 41);
	kube_lease_done(&l);
	/* A term that was damaged, or set back: the claim has it, too. */
	read_lease(&l, LEASE("\"baton/term\":\"41x\",\"baton/transitions\":\"3\"," CLAIM,
			     "\"holderIdentity\":\"me\",\"leaseTransitions\":3"));
	assert_true(l.is_ours);
	assert_int_equal(l.term, 41);
	kube_lease_done(&l);
	read_lease(&l, LEASE("\"baton/term\":\"4\",\"baton/transitions\":\"3\"," CLAIM,
			     "\"holderIdentity\":\"you\",\"leaseTransitions\":5"));
	assert_false(l.is_ours);
	assert_int_equal(l.term, 43);
	kube_lease_done(&l);
	/* Others made it. */
	read_lease(&l, LEASE("", "\"holderIdentity\":\"you\""));
	assert_int_equal(l.term, 0);
	kube_lease_done(&l);
	read_lease(&l, LEASE("\"baton/term\":\"-1\",\"baton/claim\":\"rubbish\"",
			     "\"holderIdentity\":7,\"leaseDurationSeconds\":-4"));
	assert_int_equal(l.term, 0);
	assert_int_equal(l.duration_s, 0);
	assert_string_equal(l.holder, "");
	kube_lease_done(&l);
}

/* S9: a claim on a process lease lasts as long as that also where there was no memory to read how
 * its leader shows itself. */
static void test_unread_leader(void **state)
{
	static const char claim[] = "{\"metadata\":{\"annotations\":{\"baton/term\":\"41\","
				    "\"baton/transitions\":\"3\",\"baton/claim\":\"ab-0-1 7 41\","
				    "\"baton/process\":\"baton--p-1\",\"baton/leader\":\"%s\"}},"
				    "\"spec\":{\"holderIdentity\":\"%s\",\"leaseTransitions\":%d}}";
	static const struct {
		const char *leader, *holder;
		int transitions;
		const char *process;
	} cases[] = {
		{"{\\\"leader\\\":\\\"me\\\"}", "me", 3, "baton--p-1"},
		{"{\\\"lea", "me", 3, "baton--p-1"},
		{"{\\\"lea", "me", 4, ""}, /* somebody else has it by now */
		{"{\\\"lea", "", 3, ""},
		{"{\\\"leader\\\":\\\"me\\\"}", "you", 3, ""},
		{"", "me", 3, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[500];
		struct kube_lease l;

		snprintf(text, sizeof(text), claim, cases[i].leader, cases[i].holder,
			 cases[i].transitions);
		read_lease(&l, text);
		assert_int_equal(l.is_ours, i == 0);
		assert_string_equal(l.process, cases[i].process);
		kube_lease_done(&l);
	}
}

/* ---- expiry ---- */

/* As it was read at that second. */
static uint64_t seen_at(struct kube_store *s, const char *rv, const char *renew, const char *order,
			uint64_t second, bool is_event)
{
	struct kube_lease l;
	char text[400];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"e\",\"resourceVersion\":\"%s\",\"annotations\":{"
		 "\"baton/order\":\"%s\"}},\"spec\":{\"holderIdentity\":\"you\","
		 "\"leaseDurationSeconds\":10,\"renewTime\":\"%s\"}}",
		 rv, order, renew);
	read_lease(&l, text);
	kube_expiry_note(s, "e", &l, second * CLOCK_NS_PER_S, is_event);
	uint64_t end_ns = kube_lease_end_ns(&l, 0);

	kube_lease_done(&l);
	return end_ns / CLOCK_NS_PER_S;
}

static void test_sights(void **state)
{
	struct kube_store s = {.next_end_ns = BATON_STORE_NEVER, .web.wake = -1};
	struct kube_lease l;

	(void)state;
	assert_int_equal(store_base_init(&s.web.base), 0);
	s.web.watches = web_index_new(0);
	assert_true(web_index_add(s.web.watches, "e", 17));
	assert_int_equal(seen_at(&s, "10", "a", "", 100, true), 110);
	assert_int_equal(seen_at(&s, "11", "a", "o", 104, true), 110); /* an order is no renewal */
	assert_int_equal(seen_at(&s, "12", "b", "o", 105, true), 115);
	assert_int_equal(seen_at(&s, "11", "a", "o", 106, true), 115); /* an old event */
	assert_int_equal(s.next_end_ns / CLOCK_NS_PER_S, 110);
	assert_true(kube_expiry_recall(&s, "e", &l));
	assert_int_equal(l.rv, 12);
	kube_lease_done(&l);
	/* Its end is told once, and only then. */
	uint64_t cookies[4];

	assert_int_equal(kube_expiry_hint(&s, 114 * CLOCK_NS_PER_S) / CLOCK_NS_PER_S, 115);
	assert_int_equal(web_index_take(s.web.watches, cookies, 4), 0);
	assert_int_equal(kube_expiry_hint(&s, 115 * CLOCK_NS_PER_S), BATON_STORE_NEVER);
	assert_int_equal(web_index_take(s.web.watches, cookies, 4), 1);
	assert_int_equal(cookies[0], 17);
	assert_int_equal(kube_expiry_hint(&s, 116 * CLOCK_NS_PER_S), BATON_STORE_NEVER);
	assert_int_equal(web_index_take(s.web.watches, cookies, 4), 0);
	/* A store that was put back: an answer counts, whatever its number. */
	assert_int_equal(seen_at(&s, "5", "a", "", 120, false), 130);
	kube_expiry_forget(&s, "e");
	assert_false(kube_expiry_recall(&s, "e", &l));
	kube_lease_done(&l);
	kube_expiry_done(&s);
	web_index_free(s.web.watches);
	store_base_done(&s.web.base);
}

static void test_times(void **state)
{
	char now[KUBE_TIME_MAX];

	(void)state;
	assert_int_equal(kube_time_ms("2026-11-16T15:10:12Z"), 1794841812000);
	assert_int_equal(kube_time_ms("2026-11-16T15:10:12.228321Z"), 1794841812228);
	assert_int_equal(kube_time_ms("yesterday"), 0);
	kube_now(now);
	assert_int_equal(strlen(now), strlen("2026-11-16T15:10:12.228321Z"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_url),           cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_kubeconfig),    cmocka_unit_test(test_bad_kubeconfigs),
		cmocka_unit_test(test_names),         cmocka_unit_test(test_leases),
		cmocka_unit_test(test_sights),        cmocka_unit_test(test_times),
		cmocka_unit_test(test_unread_leader),
	};

	if (mkdtemp(folder) == NULL)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(write_file("k", ""));
	rmdir(folder);
	return failed;
}
