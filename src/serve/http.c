/*
 * http.c: the HTTP library around serve_answer(): connections with a limit for everything, requests
 * in, replies out. A client that says nothing must never keep another from being heard: the oldest
 * silent connection makes room.
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/answer/parse.h"
#include "serve/server.h"
#include "telemetry/exposition.h"

#define REPLY_ROOM 4096
#define POOL (32 * 1024) /* of a connection: a head of 16 kB, and what is sent */
#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)
#define POLICY                                                                          \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

static enum MHD_Result send_reply(struct call *call);

/* ---- connections ---- */

static bool is_loopback(int fd)
{
	struct sockaddr_storage from = {0};
	socklen_t n = sizeof(from);

	if (getpeername(fd, (struct sockaddr *)&from, &n) != 0)
		return false;
	if (from.ss_family == AF_INET)
		return ntohl(((struct sockaddr_in *)&from)->sin_addr.s_addr) >> 24 == 127;
	if (from.ss_family != AF_INET6)
		return from.ss_family == AF_UNIX;
	const struct in6_addr *at = &((struct sockaddr_in6 *)&from)->sin6_addr;

	return IN6_IS_ADDR_LOOPBACK(at) || (IN6_IS_ADDR_V4MAPPED(at) && at->s6_addr[12] == 127);
}

static int family_of(int fd)
{
	int family = AF_UNSPEC;
	socklen_t n = sizeof(family);

	(void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n);
	return family;
}

static void connection_changes(void *cls, struct MHD_Connection *connection, void **context,
			       enum MHD_ConnectionNotificationCode code)
{
	struct server *s = cls;
	struct link *link = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		link = calloc(1, sizeof(*link));
		if (link == NULL || info == NULL) {
			free(link);
			return;
		}
		link->server = s;
		link->fd = info->connect_fd;
		link->since_ns = server_now_ns();
		link->is_unix = family_of(link->fd) == AF_UNIX;
		link->is_local = is_loopback(link->fd);
		if (link->is_unix)
			listen_credit(link);
		link->for_probes = s->n_links >= SERVER_CONNECTIONS - SERVER_FOR_PROBES;
		link->next = s->links;
		if (s->links != NULL)
			s->links->previous = link;
		s->links = link;
		s->n_links++;
		*context = link;
	} else if (link != NULL) {
		if (link->previous != NULL)
			link->previous->next = link->next;
		else
			s->links = link->next;
		if (link->next != NULL)
			link->next->previous = link->previous;
		s->n_links--;
		free(link);
		*context = NULL;
	}
}

/* The oldest connection without a request makes room. False: all connections have one. */
static bool evict_oldest(struct server *s)
{
	struct link *oldest = NULL;

	for (struct link *link = s->links; link != NULL; link = link->next)
		if (!link->is_busy && (oldest == NULL || link->since_ns < oldest->since_ns))
			oldest = link;
	if (oldest == NULL)
		return false;
	size_t before = s->n_links;

	(void)shutdown(oldest->fd, SHUT_RDWR);
	http_run(s);
	return s->n_links < before;
}

void http_accept(struct server *s, int listener)
{
	struct MHD_Daemon *daemon = listener == s->tcp_fd && s->tls != NULL ? s->tls : s->plain;

	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage from = {0};
		socklen_t n = sizeof(from);
		int fd = accept4(listener, (struct sockaddr *)&from, &n,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (s->n_links >= SERVER_CONNECTIONS && !evict_oldest(s)) {
			(void)close(fd);
			continue;
		}
		/* MHD closes the descriptor if it doesn't take it. */
		(void)MHD_add_connection(daemon, fd, (struct sockaddr *)&from, n);
	}
}

void http_tick(struct server *s)
{
	int64_t now_ns = server_now_ns();

	for (struct link *link = s->links; link != NULL; link = link->next) {
		int64_t limit_ms = link->for_probes ? SERVER_HEAD_MS / 5 : SERVER_HEAD_MS;

		if (!link->is_busy && now_ns - link->since_ns > limit_ms * NS_PER_MS)
			(void)shutdown(link->fd, SHUT_RDWR);
	}
	for (struct call *call = s->waiting; call != NULL; call = call->next)
		if (now_ns > call->until_ns)
			call->is_late = true;
}

/* ---- calls ---- */

/*
 * A suspended call must go on although its client has closed its side meanwhile. But libmicrohttpd
 * reads from a resumed connection before it asks for the answer, and gives the call up at the end
 * of the input. It asks first only if the connection has a time limit of its own. So the call gets
 * a limit that is too long to matter.
 */
#define ASKED_FIRST_S 86400U

static void call_suspend(struct call *call)
{
	(void)MHD_set_connection_option(call->connection, MHD_CONNECTION_OPTION_TIMEOUT,
					ASKED_FIRST_S);
	MHD_suspend_connection(call->connection);
	call->has_limit = true;
}

static void *call_new(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct call *call = calloc(1, sizeof(*call));
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (call == NULL)
		return NULL;
	call->server = cls;
	call->connection = connection;
	call->link = info != NULL ? info->socket_context : NULL;
	call->target = strdup(uri);
	call->room = malloc(REPLY_ROOM);
	call->reply.body = (struct serve_text){call->room, REPLY_ROOM, 0};
	return call;
}

static void begin_wait(struct call *call)
{
	struct server *s = call->server;
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = call};

	call->is_waiting = true;
	call->until_ns = server_now_ns() + call->reply.wait_ms * NS_PER_MS;
	call->next = s->waiting;
	s->waiting = call;
	s->n_waiting++;
	(void)epoll_ctl(s->gone_fd, EPOLL_CTL_ADD, call->link->fd, &event);
}

static void forget_wait(struct call *call)
{
	struct server *s = call->server;
	struct call **at = &s->waiting;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	s->n_waiting--;
	(void)epoll_ctl(s->gone_fd, EPOLL_CTL_DEL, call->link->fd, NULL);
	call->is_waiting = false;
}

/* Over a network it is the same whether a client has left or has only ended its request: the wait
 * for news is over. What came of an order is told when it is known. */
void call_left(struct call *call, bool is_whole)
{
	if (is_whole || !call->is_order)
		call->is_late = true;
}

static void call_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
			   enum MHD_RequestTerminationCode code)
{
	struct call *call = *con_cls;

	(void)cls;
	(void)code;
	*con_cls = NULL;
	if (call == NULL)
		return;
	if (call->has_limit)
		(void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
	if (call->is_waiting)
		forget_wait(call);
	if (call->stream != NULL)
		stream_free(call->stream);
	if (call->link != NULL) {
		call->link->is_busy = false;
		call->link->since_ns = server_now_ns();
	}
	free(call->target);
	free(call->room);
	bytes_done(&call->body);
	free(call);
}

void call_resume(struct call *call)
{
	call->is_asked = true;
	call->server->is_resumed = true;
	MHD_resume_connection(call->connection);
}

/* An order was taken, and the client wants to hear what came of it. */
static bool call_waits_on(struct call *call)
{
	struct serve_reply *r = &call->reply;

	if (r->status != 202 || r->wait_ms == 0)
		return false;
	call->is_asked = false;
	call->is_order = true;
	begin_wait(call);
	r->task = SERVE_STATUS;
	r->status = 200;
	call_suspend(call);
	return true;
}

/* What the call waits for: another leader, or any news. */
static bool has_come(const struct call *call)
{
	const struct serve_election *e = call->reply.election;

	return call->is_order ? e->leader[0] != '\0' && e->term != call->seen_term
			      : e->seq > call->seen_seq;
}

/* Calls whose election has changed, or whose time is over, go on. */
static void wake_waiting(struct server *s)
{
	struct call *next;

	for (struct call *call = s->waiting; call != NULL; call = next) {
		bool is_late = !has_come(call);

		next = call->next;
		if (is_late && !call->is_late)
			continue;
		forget_wait(call);
		member_refresh(call->reply.election->owner);
		call->reply.wait_ms = 0;
		if (call->is_order && is_late)
			call->reply.status = 202; /* it was taken; there is no successor yet */
		if (!worker_ask(call)) {
			serve_problem(&call->reply, 503, "memory", "there is no memory");
			call_resume(call);
		}
	}
}

/* ---- requests ---- */

static const char *header(struct call *call, const char *name)
{
	return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* Brings up to date what the answer is about: the library's pulse, one election, or all. */
static void refresh_for(struct call *call)
{
	struct server *s = call->server;
	struct parsed p = {0};
	const char *name = NULL;

	if (!parse_target(call->target, &p))
		return;
	if (p.n_segments == 1 && strcmp(p.segments[0], "livez") == 0) {
		pulse_take(s);
		return;
	}
	if (p.n_segments == 1 && strcmp(p.segments[0], "metrics") == 0)
		return; /* they refresh by themselves */
	if (p.n_segments == 2 && strcmp(p.segments[0], "v1") != 0)
		name = p.segments[1];
	else if (p.n_segments > 2)
		name = p.segments[2];
	struct member *m = name != NULL ? members_find(s, name) : NULL;

	if (m != NULL)
		member_refresh(m);
	else
		members_refresh_all(s);
}

static bool is_probe(const char *target)
{
	static const char *const probes[] = {"/livez",   "/readyz",   "/healthz",
					     "/leader/", "/standby/", "/any/"};

	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (strncmp(target, probes[i], strlen(probes[i])) == 0)
			return true;
	return false;
}

static bool has_client_certificate(struct call *call)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned status = 1;

	if (call->link->is_unix || call->server->config->client_ca == NULL)
		return true;
	return info != NULL && info->tls_session != NULL &&
	       gnutls_certificate_verify_peers2((gnutls_session_t)info->tls_session, &status) ==
		       0 &&
	       status == 0;
}

static void ask_answer(struct call *call, const char *method)
{
	struct serve_request request = {
		.method = method,
		.target = call->target,
		.host = header(call, "Host"),
		.content_type = header(call, "Content-Type"),
		.baton_request = header(call, "Baton-Request"),
		.origin = header(call, "Origin"),
		.sec_fetch_site = header(call, "Sec-Fetch-Site"),
		.accept = header(call, "Accept"),
		.if_match = header(call, "If-Match"),
		.if_none_match = header(call, "If-None-Match"),
		.authorization = header(call, "Authorization"),
		.last_event_id = header(call, "Last-Event-ID"),
		.body = call->body.at != NULL ? call->body.at : "",
		.n_body = call->is_full ? SERVE_BODY_MAX + 1 : call->body.n,
		.is_unix = call->link->is_unix,
		.peer_rights = call->link->rights,
	};
	struct serve_reply *r = &call->reply;
	const struct serve_view *view = server_view(call->server);

	serve_answer(&request, view, r);
	if (r->body.n > r->body.room) {
		char *room = realloc(call->room, r->body.n + REPLY_ROOM);

		if (room == NULL) {
			serve_problem(r, 503, "memory", "there is no memory");
			return;
		}
		call->room = room;
		r->body = (struct serve_text){room, r->body.n + REPLY_ROOM, 0};
		serve_answer(&request, view, r);
	}
}

static void write_metrics(struct call *call)
{
	struct serve_reply *r = &call->reply;
	int format = exposition_choose(header(call, "Accept"));
	size_t n = 0;
	const char *text = telemetry_text(call->server, format, &n);

	if (text == NULL) {
		serve_problem(r, 503, "memory", "there is no memory");
		return;
	}
	r->type = exposition_content_type(format);
	r->is_copied = true;
	r->body_at = text;
	r->n_body = n;
}

/* Does what needs no store: done, health, signs of life, a deadline that was told. */
static void call_execute(struct call *call)
{
	struct serve_reply *r = &call->reply;
	struct member *m = r->election != NULL ? r->election->owner : NULL;

	switch (r->task) {
	case SERVE_TELL:
		if (r->term != 0)
			member_told(m, call->link, m->v.deadline_boot_ns);
		break;
	case SERVE_DONE:
		if (member_done(m, r->term) != 0)
			serve_problem(r, 409, "stale", "another term leads or drains");
		break;
	case SERVE_HEALTH:
		m->score = (uint32_t)r->score_permille;
		member_report(m, r->has_metadata ? r->metadata : NULL);
		break;
	case SERVE_ALIVE: baton_alive(m->election); break;
	case SERVE_METRICS: write_metrics(call); break;
	default: break;
	}
}

static bool are_many_open(const struct server *s)
{
	return s->n_streams + s->n_waiting >= SERVER_STREAMS;
}

static enum MHD_Result refuse_another(struct call *call)
{
	serve_problem(&call->reply, 429, "busy",
		      "there are 64 streams and requests that wait already");
	return send_reply(call);
}

static enum MHD_Result begin_stream(struct call *call)
{
	struct server *s = call->server;
	struct member *m = call->reply.election != NULL ? call->reply.election->owner : NULL;

	if (are_many_open(s))
		return refuse_another(call);
	if (call->reply.task == SERVE_ELECTOR_EVENTS)
		m = s->members[0];
	if (stream_new(call, m) == NULL)
		return MHD_NO;
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, 4096, stream_read, call->stream, NULL);

	if (response == NULL)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", call->reply.type);
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	(void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	enum MHD_Result sent = MHD_queue_response(call->connection, 200, response);

	telemetry_count(s, call->target, 200);

	MHD_destroy_response(response);
	return sent;
}

static bool is_stream(int task)
{
	return task == SERVE_LEAD || task == SERVE_EVENTS || task == SERVE_ELECTOR_EVENTS;
}

/* The store has to be asked: meanwhile the connection is suspended. */
static enum MHD_Result ask_store(struct call *call)
{
	struct serve_reply *r = &call->reply;

	r->status = r->status != 0 ? r->status : 200;
	call->seen_term = r->election != NULL ? r->election->term : 0;
	if (r->task == SERVE_STATUS && r->after != UINT64_MAX && r->wait_ms > 0 &&
	    r->election->seq <= r->after) {
		if (are_many_open(call->server))
			return refuse_another(call);
		call->seen_seq = r->after;
		begin_wait(call);
	} else if (!worker_ask(call)) {
		serve_problem(r, 503, "memory", "there is no memory");
		return send_reply(call);
	}
	call_suspend(call);
	return MHD_YES;
}

static bool has_long_head(struct call *call)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info != NULL && info->header_size > SERVER_HEAD;
}

/* Its head is there. */
static enum MHD_Result begin_call(struct call *call)
{
	call->is_begun = true;
	if (!has_long_head(call))
		return MHD_YES;
	call->link->is_busy = true;
	serve_problem(&call->reply, 431, "invalid", "the head has more than 16384 bytes");
	return send_reply(call);
}

static enum MHD_Result answer_call(struct call *call, const char *method)
{
	struct serve_reply *r = &call->reply;

	call->link->is_busy = true;
	if (call->link->for_probes && !is_probe(call->target)) {
		serve_problem(r, 429, "busy", "there are too many connections");
		return send_reply(call);
	}
	if (!is_probe(call->target) && !has_client_certificate(call)) {
		serve_problem(r, 403, "denied", "this needs a certificate of the client");
		return send_reply(call);
	}
	refresh_for(call);
	ask_answer(call, method);
	if (is_stream(r->task) && strcmp(method, "HEAD") != 0)
		return begin_stream(call);
	if (r->task >= SERVE_STATUS && r->task != SERVE_METRICS)
		return ask_store(call);
	call_execute(call);
	return send_reply(call);
}

static enum MHD_Result handle_request(void *cls, struct MHD_Connection *connection, const char *url,
				      const char *method, const char *version, const char *data,
				      size_t *n_data, void **con_cls)
{
	struct call *call = *con_cls;

	(void)cls;
	(void)connection;
	(void)url;
	(void)version;
	if (call == NULL || call->link == NULL || call->target == NULL || call->room == NULL)
		return MHD_NO;
	if (!call->is_begun)
		return begin_call(call);
	if (*n_data > 0) {
		if (!bytes_add(&call->body, data, *n_data, SERVE_BODY_MAX))
			call->is_full = true;
		*n_data = 0;
		return MHD_YES;
	}
	if (!call->is_asked)
		return answer_call(call, method);
	return call_waits_on(call) ? MHD_YES : send_reply(call);
}

/* ---- replies ---- */

static void add_role(struct MHD_Response *response, struct call *call)
{
	const struct serve_election *e = call->reply.election;
	const struct serve_view *view = server_view(call->server);
	bool leads = serve_leads(view, e);
	char number[32];

	(void)snprintf(number, sizeof(number), "%llu",
		       (unsigned long long)(leads ? e->my_term : e->term));
	(void)MHD_add_response_header(response, "Baton-Term", number);
	(void)MHD_add_response_header(response, "Baton-Leader", e->leader);
	(void)snprintf(number, sizeof(number), "%lld",
		       leads ? (long long)((e->deadline_boot_ns - view->now_boot_ns) / NS_PER_MS)
			     : 0);
	(void)MHD_add_response_header(response, "Baton-Time-Left-Ms", number);
}

static void add_headers(struct MHD_Response *response, struct call *call)
{
	struct serve_reply *r = &call->reply;

	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	(void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	if (strncmp(r->type, "text/html", 9) == 0)
		(void)MHD_add_response_header(response, "Content-Security-Policy", POLICY);
	if (r->type[0] != '\0')
		(void)MHD_add_response_header(response, "Content-Type", r->type);
	if (r->allow != NULL)
		(void)MHD_add_response_header(response, "Allow", r->allow);
	if (r->challenge)
		(void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (r->etag[0] != '\0')
		(void)MHD_add_response_header(response, "ETag", r->etag);
	if (call->link->for_probes)
		(void)MHD_add_response_header(response, "Connection", "close");
	if (r->has_role)
		add_role(response, call);
}

static enum MHD_Result send_reply(struct call *call)
{
	struct serve_reply *r = &call->reply;
	bool is_elsewhere = r->is_asset || r->is_copied;
	size_t n = is_elsewhere ? r->n_body : r->body.n < r->body.room ? r->body.n : r->body.room;
	void *body = is_elsewhere ? (void *)(uintptr_t)r->body_at : call->room;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		r->type[0] != '\0' ? n : 0, body,
		r->is_asset ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);

	if (response == NULL)
		return MHD_NO;
	add_headers(response, call);
	enum MHD_Result sent = MHD_queue_response(call->connection, (unsigned)r->status, response);

	/* A client that takes nothing of it for so long is let go. */
	(void)MHD_set_connection_option(call->connection, MHD_CONNECTION_OPTION_TIMEOUT,
					SERVER_SEND_MS / 1000U);
	call->has_limit = true;
	telemetry_count(call->server, call->target, (unsigned)r->status);
	MHD_destroy_response(response);
	return sent;
}

/* ---- the library ---- */

static void say_nothing(void *cls, const char *format, va_list args)
{
	(void)cls;
	(void)format;
	(void)args;
}

static char *read_file(struct server *s, const char *path)
{
	struct bytes text = {0};
	char room[4096];
	size_t n;
	FILE *in = fopen(path, "re");

	if (in == NULL) {
		s->config->say(BATON_LOG_ERROR, "%s can't be read: %s", path, strerror(errno));
		return NULL;
	}
	while ((n = fread(room, 1, sizeof(room), in)) > 0)
		(void)bytes_add(&text, room, n, (size_t)1 << 20);
	(void)fclose(in);
	return text.at;
}

static struct MHD_Daemon *start_daemon(struct server *s, bool tls)
{
	struct MHD_OptionItem secure[4] = {{MHD_OPTION_END, 0, NULL}};
	unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			 MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0U);

	if (tls) {
		secure[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls_texts[0]};
		secure[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls_texts[1]};
		secure[2] = s->tls_texts[2] != NULL
				    ? (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
							      s->tls_texts[2]}
				    : (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	}
	return MHD_start_daemon(
		flags, 0, NULL, NULL, handle_request, s, MHD_OPTION_EXTERNAL_LOGGER, say_nothing,
		NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)SERVER_CONNECTIONS + 8, MHD_OPTION_NOTIFY_CONNECTION, connection_changes,
		s, MHD_OPTION_NOTIFY_COMPLETED, call_completed, s, MHD_OPTION_URI_LOG_CALLBACK,
		call_new, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, secure,
		MHD_OPTION_END);
}

bool http_start(struct server *s)
{
	const char *paths[] = {s->config->tls_key, s->config->tls_cert, s->config->client_ca};
	bool tls = s->config->tls_cert != NULL && s->tcp_fd >= 0;

	for (size_t i = 0; tls && i < 3; i++) {
		s->tls_texts[i] = paths[i] != NULL ? read_file(s, paths[i]) : NULL;
		if (paths[i] != NULL && s->tls_texts[i] == NULL)
			return false;
	}
	s->plain = start_daemon(s, false);
	s->tls = tls ? start_daemon(s, true) : NULL;
	return s->plain != NULL && (!tls || s->tls != NULL);
}

/* Whether a connection could go on without anything coming in: a stream takes several steps. */
static bool has_more(struct MHD_Daemon *daemon)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 1;

	return daemon != NULL && MHD_get_timeout(daemon, &wait_ms) == MHD_YES && wait_ms == 0;
}

void http_run(struct server *s)
{
	int rounds = 0;

	do {
		s->is_resumed = false;
		wake_waiting(s);
		(void)MHD_run(s->plain);
		if (s->tls != NULL)
			(void)MHD_run(s->tls);
		if (has_more(s->plain) || has_more(s->tls))
			s->is_resumed = true; /* the loop comes back at once */
	} while (s->is_resumed && ++rounds < 4);
}

void http_stop(struct server *s)
{
	for (struct stream *st = s->streams; st != NULL; st = st->next)
		stream_end(st);
	if (s->plain != NULL) {
		http_run(s);
		while (s->waiting != NULL) {
			struct call *call = s->waiting;

			forget_wait(call);
			serve_problem(&call->reply, 503, "unavailable", "baton serve has stopped");
			call_resume(call);
		}
		http_run(s);
		MHD_stop_daemon(s->plain);
	}
	if (s->tls != NULL)
		MHD_stop_daemon(s->tls);
	s->plain = s->tls = NULL;
}
