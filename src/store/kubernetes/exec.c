/*
 * exec.c: credentials from a program that the kubeconfig names (client.authentication.k8s.io). The
 * program may take longer than a call has time: then it runs on, and the next call takes its
 * output. One lane at a time looks after it. As long as the last credential is good, no call waits
 * for the next one (L6).
 *
 * The program gets no descriptor of ours but its output and our standard error. It gets our
 * environment, because such programs look for their own secrets there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define LIFE_NS (60 * CLOCK_NS_PER_S)
/* The next credential is asked for that long before the end of this one. */
#define EARLY_NS (30 * CLOCK_NS_PER_S)
/* ... and if that fails, again after that long. */
#define RETRY_NS (5 * CLOCK_NS_PER_S)
#define ARGS_MAX 64
#define VERSION "client.authentication.k8s.io/v1"

static uint64_t min_ms(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void forget_secret(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/*
 * Waits for the plugin's end, and kills it before if kill_it. Returns its status as waitpid() gives
 * it. It is 0 if the program that we are part of has taken the status away (it waits for all its
 * children, or ignores SIGCHLD): then the plugin's output has to be enough.
 */
static int plugin_reap(struct kube_plugin *p, bool kill_it)
{
	int status = -1;

	if (p->out >= 0)
		(void)close(p->out);
	p->out = -1;
	if (p->pid > 0) {
		if (kill_it)
			(void)syscall(SYS_pidfd_send_signal, p->process, SIGKILL, NULL, 0);
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status == -1 && errno == ECHILD)
			status = 0;
		(void)close(p->process);
	}
	p->pid = 0;
	return status;
}

void kube_plugin_done(struct kube_plugin *p)
{
	(void)plugin_reap(p, true);
	forget_secret(&p->token);
	forget_secret(&p->key_text);
	free(p->cert_text);
	if (p->said.at != NULL)
		explicit_bzero(p->said.at, p->said.n);
	bytes_done(&p->said);
}

/* ---- starting it ---- */

/* The environment variable that tells the plugin about us; the caller frees it. */
static char *plugin_info(const struct kube_config *c)
{
	const char *version = js_text(c->exec, "apiVersion");
	char url[KUBE_TEXT_MAX + HTTP_NAME_MAX + 32];
	bool is_v6 = strchr(c->host.name, ':') != NULL;
	char *text = NULL;

	(void)snprintf(url, sizeof(url), "http%s://%s%s%s:%s%s", c->host.tls ? "s" : "",
		       is_v6 ? "[" : "", c->host.name, is_v6 ? "]" : "", c->host.port, c->prefix);
	json_t *spec =
		strcmp(js_text(c->exec, "provideClusterInfo"), "true") == 0
			? json_pack("{s:b,s:{s:s}}", "interactive", 0, "cluster", "server", url)
			: json_pack("{s:b}", "interactive", 0);
	json_t *info =
		json_pack("{s:s,s:s,s:o}", "apiVersion", version[0] != '\0' ? version : VERSION,
			  "kind", "ExecCredential", "spec", spec);
	char *json = json_dumps(info, JSON_COMPACT);

	if (json != NULL && asprintf(&text, "KUBERNETES_EXEC_INFO=%s", json) < 0)
		text = NULL;
	free(json);
	json_decref(info);
	return text;
}

/* Our environment, and the variables that the kubeconfig adds to it. */
static char **plugin_environment(const struct kube_config *c)
{
	const json_t *extra = js_get(c->exec, "env");
	size_t n_extra = json_array_size(extra);
	size_t n = 0;

	while (environ[n] != NULL)
		n++;
	char **list = calloc(n + n_extra + 2, sizeof(char *));

	if (list == NULL)
		return NULL;
	size_t at = 0;

	list[at++] = plugin_info(c); /* of two with one name, the first one counts */
	for (size_t i = 0; i < n_extra && list[at - 1] != NULL; i++) {
		const json_t *one = json_array_get(extra, i);

		if (asprintf(&list[at++], "%s=%s", js_text(one, "name"), js_text(one, "value")) < 0)
			list[at - 1] = NULL;
	}
	bool is_whole = list[at - 1] != NULL;

	for (size_t i = 0; i < n && is_whole; i++)
		if ((list[at] = strdup(environ[i])) != NULL)
			at++;
	return list;
}

static void free_list(char **list)
{
	for (char **at = list; at != NULL && *at != NULL; at++)
		free(*at);
	free(list);
}

/* With a pidfd the plugin can be killed safely; if we can't have one, the plugin is killed at
 * once. */
static int plugin_open_pidfd(struct kube_plugin *p)
{
	p->process = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->process >= 0 || errno == ESRCH) /* ESRCH: it has ended already */
		return 0;
	int rc = errno;

	(void)kill(p->pid, SIGKILL);
	(void)plugin_reap(p, false);
	return rc;
}

static int plugin_spawn(struct kube_plugin *p, const char *command, char **args, char **env,
			int out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;

	(void)sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files) != 0)
		return ENOMEM;
	int rc = posix_spawnattr_init(&how);

	if (rc == 0) {
		(void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
		(void)posix_spawn_file_actions_adddup2(&files, out, 1);
		(void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
		(void)posix_spawnattr_setsigmask(&how, &none);
		rc = posix_spawnp(&p->pid, command, &files, &how, args, env);
		(void)posix_spawnattr_destroy(&how);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return rc != 0 ? rc : plugin_open_pidfd(p);
}

static int plugin_start(struct kube_store *s, struct baton_call *call)
{
	const struct kube_config *c = &s->config;
	struct kube_plugin *p = &s->plugin;
	const char *name = js_text(c->exec, "command");
	const json_t *list = js_get(c->exec, "args");
	char command[2 * KUBE_TEXT_MAX];
	char *args[ARGS_MAX + 2] = {command};
	char **env = plugin_environment(c);
	int ends[2];

	(void)snprintf(command, sizeof(command), "%s%s",
		       strchr(name, '/') != NULL && name[0] != '/' ? c->exec_folder : "", name);
	for (size_t i = 0; i < json_array_size(list) && i < ARGS_MAX; i++)
		args[i + 1] = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
	if (env == NULL || env[0] == NULL || pipe2(ends, O_CLOEXEC) != 0) {
		free_list(env);
		return store_fail(&call->error, BATON_E_SYSTEM,
				  "no memory or descriptor to run \"%.80s\" for a credential",
				  name);
	}
	int rc = plugin_spawn(p, command, args, env, ends[1]);

	free_list(env);
	(void)close(ends[1]);
	if (rc != 0) {
		p->pid = 0;
		(void)close(ends[0]);
		return store_fail(&call->error, BATON_E_DENIED,
				  "can't run \"%.80s\", which the kubeconfig names for "
				  "credentials: %.60s",
				  name, strerror(rc)); /* NOLINT: glibc's is safe */
	}
	p->out = ends[0];
	p->started_ns = clock_boot_ns();
	bytes_clear(&p->said);
	return 0;
}

/* ---- what it says ---- */

/* When the credential ends, on our clock; NEVER if the plugin doesn't say. */
static uint64_t plugin_end_of(const char *expires)
{
	int64_t left_ms = kube_time_ms(expires) - clock_wall_ms();

	if (expires[0] == '\0')
		return BATON_STORE_NEVER;
	return clock_boot_ns() + (left_ms > 0 ? (uint64_t)left_ms : 0) * CLOCK_NS_PER_MS;
}

static bool is_header(const char *token)
{
	return strlen(token) < KUBE_SECRET_MAX && strpbrk(token, "\r\n") == NULL;
}

/* The caller holds the lock. */
static bool plugin_take(struct kube_plugin *p, const json_t *status)
{
	const char *token = js_text(status, "token");
	const char *cert = js_text(status, "clientCertificateData");
	const char *key = js_text(status, "clientKeyData");

	if ((token[0] == '\0' && cert[0] == '\0') || !is_header(token))
		return false;
	forget_secret(&p->token);
	forget_secret(&p->key_text);
	free(p->cert_text);
	p->cert_text = cert[0] != '\0' ? strdup(cert) : NULL;
	p->key_text = key[0] != '\0' ? strdup(key) : NULL;
	p->token = token[0] != '\0' ? strdup(token) : NULL;
	p->end_ns = plugin_end_of(js_text(status, "expirationTimestamp"));
	p->until_ns = p->end_ns == BATON_STORE_NEVER ? p->end_ns
		      : p->end_ns > EARLY_NS         ? p->end_ns - EARLY_NS
						     : 0;
	p->retry_ns = 0;
	p->n_logins += cert[0] != '\0';
	p->is_known = true;
	return true;
}

static int plugin_finish(struct kube_store *s, struct baton_call *call)
{
	struct kube_plugin *p = &s->plugin;
	int status = plugin_reap(p, false);
	json_t *said = js_parse(p->said.at != NULL ? p->said.at : "", p->said.n);

	store_lock(&s->web.base);
	bool is_taken = status == 0 && plugin_take(p, js_get(said, "status"));

	store_unlock(&s->web.base);
	json_decref(said);
	if (p->said.at != NULL)
		explicit_bzero(p->said.at, p->said.n);
	bytes_clear(&p->said);
	if (is_taken)
		return 0;
	return store_fail(&call->error, BATON_E_DENIED,
			  "\"%.80s\", which the kubeconfig names for credentials, gave none%s",
			  js_text(s->config.exec, "command"), status != 0 ? ": it failed" : "");
}

enum heard { HEARD_NOTHING, HEARD_SOMETHING, HEARD_END };

/* Reads what the plugin says within that time. Waits for its end, too: a plugin that has closed its
 * output may still run (L7). */
static enum heard plugin_hear_some(struct kube_plugin *p, int ms)
{
	struct pollfd ready = {.fd = p->out >= 0 ? p->out : p->process, .events = POLLIN};
	char piece[4096];

	if (ready.fd < 0) /* it ended before it had a pidfd */
		return HEARD_END;
	if (poll(&ready, 1, ms) <= 0)
		return HEARD_NOTHING;
	if (p->out < 0)
		return HEARD_END;
	ssize_t n = read(p->out, piece, sizeof(piece));

	if (n > 0)
		(void)bytes_add(&p->said, piece, (size_t)n, OUTPUT_MAX);
	explicit_bzero(piece, sizeof(piece));
	if (n == 0) {
		(void)close(p->out);
		p->out = -1;
	}
	return HEARD_SOMETHING;
}

/* Reads until the plugin has ended: 0; or until the deadline, if nothing more comes: -1. */
static int plugin_hear(struct kube_store *s, struct baton_call *call)
{
	struct kube_plugin *p = &s->plugin;

	for (;;) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t left_ns = now_ns < call->deadline_ns ? call->deadline_ns - now_ns : 0;

		if (now_ns > p->started_ns + LIFE_NS || p->said.has_failed) {
			(void)plugin_reap(p, true);
			return store_fail(&call->error, BATON_E_DENIED,
					  "\"%.80s\", which the kubeconfig names for credentials, "
					  "does not end",
					  js_text(s->config.exec, "command"));
		}
		enum heard heard =
			plugin_hear_some(p, (int)min_ms(left_ns / CLOCK_NS_PER_MS, 60000));

		if (heard == HEARD_END)
			return 0;
		if (heard == HEARD_NOTHING && clock_boot_ns() >= call->deadline_ns)
			return store_fail(&call->error, BATON_E_TIMEOUT,
					  "waiting for \"%.80s\", which the kubeconfig names for "
					  "credentials",
					  js_text(s->config.exec, "command"));
	}
}

/* The state of the credential. */
enum state {
	GOOD,
	ENDING,  /* good, and this lane is to ask for the next one */
	MISSING, /* there is none, and this lane is to ask for one */
	BUSY,    /* there is none, and another lane asks for one */
};

static enum state plugin_state(struct kube_store *s)
{
	struct kube_plugin *p = &s->plugin;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->web.base);
	bool is_good = p->is_known && now_ns < p->end_ns;
	bool is_ours =
		!p->is_busy && (!is_good || (now_ns >= p->until_ns && now_ns >= p->retry_ns));

	p->is_busy = p->is_busy || is_ours;
	store_unlock(&s->web.base);
	return is_good ? (is_ours ? ENDING : GOOD) : (is_ours ? MISSING : BUSY);
}

/* Takes the credential of a plugin that has ended, and starts the plugin before if need be. 0; or
 * -1: it hasn't ended, or has failed. */
static int plugin_ask(struct kube_store *s, struct baton_call *call)
{
	int rc = s->plugin.pid == 0 ? plugin_start(s, call) : 0;

	if (rc == 0)
		rc = plugin_hear(s, call);
	if (rc == 0)
		rc = plugin_finish(s, call);
	store_lock(&s->web.base);
	if (rc != 0 && s->plugin.pid == 0)
		s->plugin.retry_ns = clock_boot_ns() + RETRY_NS;
	s->plugin.is_busy = false;
	store_unlock(&s->web.base);
	return rc;
}

int kube_plugin_run(struct kube_store *s, struct baton_call *call)
{
	struct baton_call at_once = {.deadline_ns = 0};

	for (;;) {
		switch (plugin_state(s)) {
		case GOOD: return 0;
		case ENDING: (void)plugin_ask(s, &at_once); return 0;
		case MISSING: return plugin_ask(s, call);
		case BUSY: break;
		}
		if (clock_boot_ns() >= call->deadline_ns)
			return store_fail(&call->error, BATON_E_TIMEOUT,
					  "waiting for a credential");
		(void)poll(NULL, 0, 5); /* another lane looks after the plugin */
	}
}
