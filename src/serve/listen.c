/*
 * listen.c: where `baton serve` can be reached, and by whom: a unix socket always, TCP when asked
 * for, or what systemd hands over. What is open to other hosts without TLS and tokens is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/secret.h"
#include "serve/server.h"

#define BACKLOG 256
#define SOCKET_MODE 0660
#define FIRST_FD 3 /* of those that systemd hands over */
#define BORN_AT 22 /* a word of /proc/PID/stat */
#define TOKEN_MIN 16
#define TOKEN_MAX 512

/* ---- systemd ---- */

static void take_activated(struct server *s)
{
	const char *pid = getenv("LISTEN_PID");
	const char *fds = getenv("LISTEN_FDS");

	if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != (long)getpid())
		return;
	for (int fd = FIRST_FD; fd < FIRST_FD + (int)strtol(fds, NULL, 10); fd++) {
		int family = 0;
		socklen_t n = sizeof(family);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) != 0)
			continue;
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (family == AF_UNIX && s->unix_fd < 0)
			s->unix_fd = fd;
		else if (family != AF_UNIX && s->tcp_fd < 0)
			s->tcp_fd = fd;
		else
			s->config->say(BATON_LOG_WARN,
				       "one unix socket and one TCP socket are served; further "
				       "sockets of the service manager are ignored");
	}
	s->is_activated = s->unix_fd >= 0;
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
}

/* ---- the unix socket ---- */

/* Whether a process answers there. */
static bool is_answered(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool answers = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return answers;
}

static int open_unix(struct server *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const char *path = s->config->socket;
	char folder[sizeof(at.sun_path)];
	struct stat st;

	if (strlen(path) >= sizeof(at.sun_path)) {
		s->config->say(BATON_LOG_ERROR, "%s is too long for a socket's path", path);
		return SERVE_WRONG;
	}
	(void)strcpy(at.sun_path, path);
	(void)strcpy(folder, path);
	char *slash = strrchr(folder, '/');

	if (slash != NULL && slash != folder) {
		*slash = '\0';
		(void)mkdir(folder, 0755); /* where it is missing */
	}
	if (is_answered(&at)) {
		s->config->say(BATON_LOG_ERROR,
			       "%s is served already; name another one with --socket", path);
		return SERVE_REFUSED;
	}
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	s->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0777 & ~SOCKET_MODE);
	bool good = s->unix_fd >= 0 && bind(s->unix_fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	(void)umask(mask);
	if (good && listen(s->unix_fd, BACKLOG) == 0)
		return SERVE_ENDED;
	s->config->say(BATON_LOG_ERROR, "the socket %s can't be made: %s", path, strerror(errno));
	return SERVE_REFUSED;
}

/* ---- TCP ---- */

static bool is_loopback_address(const struct sockaddr *at)
{
	if (at->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
	return at->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

static bool is_guarded(const struct server *s)
{
	return s->config->tls_cert != NULL && s->config->read_token_file != NULL;
}

/* An address that other hosts can reach needs TLS and a token as well. */
static int check_reach(const struct server *s, const struct sockaddr *at, const char *where)
{
	if (is_loopback_address(at) || is_guarded(s))
		return SERVE_ENDED;
	s->config->say(BATON_LOG_ERROR,
		       "%s is open to other hosts: that needs --tls-cert, --tls-key and "
		       "--read-token-file",
		       where);
	return SERVE_WRONG;
}

/* The same for a socket that was handed over. */
static int check_activated(const struct server *s)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);

	if (s->tcp_fd < 0)
		return SERVE_ENDED;
	(void)getsockname(s->tcp_fd, (struct sockaddr *)&at, &n);
	return check_reach(s, (struct sockaddr *)&at, "the socket of the service manager");
}

static int listen_at(struct server *s, const struct addrinfo *at)
{
	const int one = 1;

	if (check_reach(s, at->ai_addr, s->config->listen) != SERVE_ENDED)
		return SERVE_WRONG;
	s->tcp_fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->tcp_fd >= 0)
		(void)setsockopt(s->tcp_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (s->tcp_fd >= 0 && bind(s->tcp_fd, at->ai_addr, at->ai_addrlen) == 0 &&
	    listen(s->tcp_fd, BACKLOG) == 0)
		return SERVE_ENDED;
	s->config->say(BATON_LOG_ERROR, "%s can't be listened on: %s", s->config->listen,
		       strerror(errno));
	return SERVE_REFUSED;
}

static int open_tcp(struct server *s)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found = NULL;
	char host[256];
	const char *colon = strrchr(s->config->listen, ':');
	size_t n = colon != NULL ? (size_t)(colon - s->config->listen) : 0;

	if (colon == NULL || n == 0 || n >= sizeof(host)) {
		s->config->say(BATON_LOG_ERROR,
			       "--listen: \"%s\" is not an address such as 127.0.0.1:8080",
			       s->config->listen);
		return SERVE_WRONG;
	}
	(void)memcpy(host, s->config->listen, n);
	host[n] = '\0';
	if (host[0] == '[' && host[n - 1] == ']') {
		(void)memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	int code = getaddrinfo(host, colon + 1, &hints, &found);

	if (code != 0) {
		s->config->say(BATON_LOG_ERROR, "--listen: %s: %s", s->config->listen,
			       gai_strerror(code));
		return SERVE_WRONG;
	}
	code = listen_at(s, found);
	freeaddrinfo(found);
	return code;
}

/* Says where it listens, also for port 0. */
static void say_address(const struct server *s)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	char host[NI_MAXHOST];
	char port[NI_MAXSERV];

	if (s->tcp_fd >= 0 && getsockname(s->tcp_fd, (struct sockaddr *)&at, &n) == 0 &&
	    getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		s->config->say(BATON_LOG_INFO, "serves http%s://%s%s%s:%s/",
			       s->config->tls_cert != NULL ? "s" : "", strchr(host, ':') ? "[" : "",
			       host, strchr(host, ':') ? "]" : "", port);
	s->config->say(BATON_LOG_INFO, "serves the socket %s",
		       s->is_activated ? "of the service manager" : s->config->socket);
}

int listen_open(struct server *s)
{
	int code = SERVE_ENDED;

	if ((s->config->tls_cert != NULL) != (s->config->tls_key != NULL)) {
		s->config->say(BATON_LOG_ERROR,
			       "--tls-cert and --tls-key need each other; give both");
		return SERVE_WRONG;
	}
	take_activated(s);
	code = check_activated(s);
	if (code == SERVE_ENDED && s->unix_fd < 0)
		code = open_unix(s);
	if (code == SERVE_ENDED && s->tcp_fd < 0 && s->config->listen != NULL)
		code = open_tcp(s);
	if (code == SERVE_ENDED)
		say_address(s);
	return code;
}

void listen_close(struct server *s)
{
	if (s->unix_fd >= 0 && !s->is_activated)
		(void)unlink(s->config->socket);
	if (s->unix_fd >= 0)
		(void)close(s->unix_fd);
	if (s->tcp_fd >= 0)
		(void)close(s->tcp_fd);
	s->unix_fd = s->tcp_fd = -1;
}

/* ---- who may ---- */

static bool is_in_group(const char *name, const struct passwd *user)
{
	const struct group *group = getgrnam(name);

	if (group == NULL)
		return false;
	if (group->gr_gid == user->pw_gid)
		return true;
	for (char **member = group->gr_mem; *member != NULL; member++)
		if (strcmp(*member, user->pw_name) == 0)
			return true;
	return false;
}

/* "USER,@GROUP". The user that runs this is always listed; without a list, so is root. */
static bool is_listed(const char *list, uid_t uid)
{
	const struct passwd *user;
	bool found = false;

	if (uid == geteuid())
		return true;
	if (list == NULL)
		return uid == 0;
	user = getpwuid(uid);
	char *copy = strdup(list);
	char *next = copy;

	while (user != NULL && next != NULL && !found) {
		const char *word = strsep(&next, ",");

		found = word[0] == '@' ? is_in_group(word + 1, user)
				       : strcmp(word, user->pw_name) == 0;
	}
	free(copy);
	return found;
}

void listen_credit(struct link *link)
{
	const struct serve_config *config = link->server->config;
	struct ucred peer = {0};
	socklen_t n = sizeof(peer);

	if (getsockopt(link->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0)
		return;
	link->pid = peer.pid;
	link->rights = (is_listed(config->operators, peer.uid) ? SERVE_OPERATE : 0U) |
		       (is_listed(config->applications, peer.uid) ? SERVE_APPLY : 0U);
}

/* When a process has begun, in ticks of this boot; 0: the kernel doesn't tell. */
static uint64_t born_at(pid_t pid)
{
	char path[64];
	char line[1024] = "";
	uint64_t at = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	FILE *in = pid > 0 ? fopen(path, "re") : NULL;

	if (in == NULL)
		return 0;
	const char *word = fgets(line, sizeof(line), in) != NULL ? strrchr(line, ')') : NULL;

	(void)fclose(in);
	for (int i = 2; i < BORN_AT && word != NULL; i++)
		word = strchr(word + 1, ' '); /* the name, which is the second, may have spaces */
	if (word != NULL)
		at = strtoull(word, NULL, 10);
	return at;
}

void listen_identify(struct link *link)
{
	link->born_at = born_at(link->pid);
}

/* A number is given to another process when its own has ended: when it began decides. */
bool listen_is_one_process(const struct link *identified, const struct link *other)
{
	return identified->pid != 0 && identified->pid == other->pid && identified->born_at != 0 &&
	       identified->born_at == born_at(other->pid);
}

/* ---- tokens ---- */

/* The first line of the file. NULL after saying why not. */
static char *read_token(const struct server *s, const char *path)
{
	char line[TOKEN_MAX + 1] = "";
	char reason[SECRET_REASON_MAX];

	if (secret_read(path, line, sizeof(line), reason) != 0) {
		s->config->say(BATON_LOG_ERROR, "the token file %s: %s", path, reason);
		return NULL;
	}
	char *token = strlen(line) >= TOKEN_MIN ? strdup(line) : NULL;

	explicit_bzero(line, sizeof(line));
	if (token == NULL)
		s->config->say(BATON_LOG_ERROR, "the token in %s has less than %d bytes", path,
			       TOKEN_MIN);
	return token;
}

bool listen_read_tokens(struct server *s)
{
	const char *paths[3] = {s->config->token_file, s->config->app_token_file,
				s->config->read_token_file};
	char *tokens[3] = {NULL};
	bool good = true;

	for (size_t i = 0; i < 3; i++) {
		if (paths[i] != NULL)
			tokens[i] = read_token(s, paths[i]);
		good = good && (paths[i] == NULL || tokens[i] != NULL);
	}
	for (size_t i = 0; i < 3; i++) {
		char *old = good ? s->tokens[i] : tokens[i];

		if (good)
			s->tokens[i] = tokens[i];
		if (old != NULL)
			explicit_bzero(old, strlen(old));
		free(old);
	}
	s->view.operator_token = s->tokens[0];
	s->view.apply_token = s->tokens[1];
	s->view.read_token = s->tokens[2];
	return good;
}
