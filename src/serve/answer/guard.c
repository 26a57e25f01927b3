/*
 * guard.c: the rights of a client. A page in a user's browser must not reach us by a host name of
 * its own (DNS rebinding), nor send forms. A client over TCP shows a token; a client over the unix
 * socket is known by its credentials. No reply may ever say which part of a token was wrong.
 */
#include <string.h>

#include "serve/answer/route.h"

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool equals_case(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b[i] == '\0' || lower(a[i]) != lower(b[i]))
			return false;
	return b[n] == '\0';
}

bool header_has(const char *header, const char *word)
{
	size_t n = strlen(word);

	for (; header != NULL && *header != '\0'; header++) {
		size_t i = 0;

		while (i < n && header[i] != '\0' && lower(header[i]) == lower(word[i]))
			i++;
		if (i == n)
			return true;
	}
	return false;
}

/* The length of a host without its port: "[::1]:80" has 5. */
static size_t host_length(const char *host)
{
	size_t n = strlen(host);
	size_t end = n;

	while (end > 0 && host[end - 1] >= '0' && host[end - 1] <= '9')
		end--;
	return end > 0 && end < n && host[end - 1] == ':' ? end - 1 : n;
}

static bool is_known_host(const struct way *w, const char *host)
{
	static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]", "baton", NULL};
	size_t n = host_length(host);

	for (size_t i = 0; loopback[i] != NULL; i++)
		if (equals_case(host, loopback[i], n))
			return true;
	for (size_t i = 0; w->view->hosts != NULL && w->view->hosts[i] != NULL; i++)
		if (equals_case(host, w->view->hosts[i], n))
			return true;
	return false;
}

/* "http://localhost:8080" where the host is "localhost:8080". */
static bool is_own_origin(const char *origin, const char *host)
{
	const char *at = origin;

	while (*at != '\0' && *at != ':')
		at++;
	return strlen(at) > 3 && at[1] == '/' && at[2] == '/' && strlen(at + 3) == strlen(host) &&
	       equals_case(at + 3, host, strlen(host));
}

static bool is_safe(const struct way *w)
{
	return is_method(w, "GET") || is_method(w, "HEAD") || is_method(w, "OPTIONS");
}

static bool is_json(const char *type)
{
	size_t n = 0;

	while (type != NULL && type[n] != '\0' && type[n] != ';' && type[n] != ' ')
		n++;
	return n > 0 && equals_case(type, "application/json", n);
}

/*
 * A browser sends none of these from a page of another site without asking first, and we never say
 * yes.
 */
static bool guard_change(struct way *w)
{
	const struct serve_request *r = w->request;
	if (!is_json(r->content_type)) {
		serve_problem(w->reply, 415, "invalid",
			      "a change needs the header Content-Type: application/json");
		return false;
	}
	if (r->baton_request == NULL || strcmp(r->baton_request, "1") != 0) {
		serve_problem(w->reply, 403, "denied",
			      "a change needs the header Baton-Request: 1");
		return false;
	}
	if ((r->sec_fetch_site != NULL && strcmp(r->sec_fetch_site, "same-origin") != 0 &&
	     strcmp(r->sec_fetch_site, "none") != 0) ||
	    (r->origin != NULL && (r->host == NULL || !is_own_origin(r->origin, r->host)))) {
		serve_problem(w->reply, 403, "denied",
			      "this change was sent by a page of another site");
		return false;
	}
	return true;
}

bool guard_admits(struct way *w)
{
	const char *host = w->request->host;

	if (host == NULL || host[0] == '\0') {
		serve_problem(w->reply, 400, "invalid", "the header Host is missing");
		return false;
	}
	if (!is_known_host(w, host)) {
		serve_problem(w->reply, 421, "invalid",
			      "this host name is not allowed; allow it with --host=NAME");
		return false;
	}
	return is_safe(w) || guard_change(w);
}

/* Takes as long for a wrong token as for the right one, however much of it is right. */
static bool is_token(const char *given, const char *token)
{
	size_t n = token != NULL ? strlen(token) : 0;
	size_t n_given = strlen(given);
	volatile unsigned differs = n != n_given || n == 0;

	for (size_t i = 0; i < n_given && n > 0; i++)
		differs |= (unsigned)(unsigned char)given[i] ^ (unsigned char)token[i % n];
	return differs == 0;
}

static unsigned rights_of(const struct way *w, bool *is_wrong)
{
	const struct serve_view *v = w->view;
	const char *given = w->request->authorization;
	unsigned rights = w->request->is_unix     ? SERVE_READ | w->request->peer_rights
			  : v->read_token == NULL ? SERVE_READ
						  : 0;

	*is_wrong = false;
	if (given == NULL)
		return rights;
	if (strlen(given) > 7 && equals_case(given, "bearer ", 7)) {
		const char *token = given + 7;
		bool reads = is_token(token, v->read_token);
		bool applies = is_token(token, v->apply_token);
		bool operates = is_token(token, v->operator_token);

		if (reads || applies || operates)
			return rights | SERVE_READ | (applies ? SERVE_APPLY : 0U) |
			       (operates ? SERVE_OPERATE : 0U);
	}
	*is_wrong = true;
	return 0;
}

unsigned guard_rights(const struct way *w)
{
	bool is_wrong;

	return rights_of(w, &is_wrong);
}

bool guard_allows(struct way *w, unsigned right)
{
	bool is_wrong;
	unsigned rights = rights_of(w, &is_wrong);

	if ((rights & right) != 0)
		return true;
	if (is_wrong || (w->request->authorization == NULL && !w->request->is_unix)) {
		serve_problem(w->reply, 401, "denied",
			      is_wrong ? "this token is not known"
				       : "this needs a token: Authorization: Bearer TOKEN");
		w->reply->challenge = true;
		return false;
	}
	serve_problem(w->reply, 403, "denied",
		      right == SERVE_APPLY     ? "this needs the rights of the application"
		      : right == SERVE_OPERATE ? "this needs the rights of an operator"
					       : "this needs the right to read");
	return false;
}
