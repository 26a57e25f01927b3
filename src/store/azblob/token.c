/*
 * token.c: tokens of Microsoft Entra for this program. A workload identity gets one in exchange for
 * its pod's token, and a managed identity asks the machine or App Service.
 *
 * All lanes use one token. When half of its time has passed, a lane that nothing depends on asks
 * for a new one. The lane that renews leases asks only if no token is still good. If asking early
 * fails, the old token is used on, and a lane tries again after a while.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "base/web/json.h"
#include "store/azblob/azblob.h"
#include "store/web/web.h"

#define BEARER "Authorization: Bearer "
#define RESOURCE "https%%3A%%2F%%2Fstorage.azure.com%%2F"
#define EARLY_NS (2 * CLOCK_NS_PER_S)
#define RETRY_NS (10 * CLOCK_NS_PER_S)
/* A token that ends so soon is not used: it could end while a request is on its way. */
#define MARGIN_NS CLOCK_NS_PER_S

enum token_state { TOKEN_NONE, TOKEN_DUE, TOKEN_GOOD };

/* Copies the token into the lane's header, and returns its state. */
static int token_copy(struct azblob_lane *lane)
{
	struct azblob_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();
	int state = TOKEN_NONE;

	store_lock(&s->base);
	if (s->token != NULL && now_ns + MARGIN_NS < s->token_end_ns) {
		(void)snprintf(lane->secret, sizeof(lane->secret), BEARER "%s", s->token);
		state = now_ns < s->token_due_ns || now_ns < s->token_retry_ns ? TOKEN_GOOD
									       : TOKEN_DUE;
	}
	store_unlock(&s->base);
	return state;
}

static void token_set(struct azblob_store *s, char *text, uint64_t sent_ns, uint64_t life_s)
{
	store_lock(&s->base);
	if (s->token != NULL)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	s->token = text;
	s->token_due_ns = sent_ns + life_s * CLOCK_NS_PER_S / 2;
	s->token_end_ns = sent_ns + life_s * CLOCK_NS_PER_S;
	s->token_retry_ns = 0;
	store_unlock(&s->base);
}

void azblob_token_drop(struct azblob_lane *lane)
{
	struct azblob_store *s = lane->store;

	store_lock(&s->base);
	if (s->token != NULL && strcmp(lane->secret + strlen(BEARER), s->token) == 0)
		s->token_end_ns = 0;
	store_unlock(&s->base);
}

/* ---- asking for one ---- */

static int ask_workload(struct azblob_lane *lane, struct baton_call *call, struct bytes *path,
			struct bytes *body)
{
	const struct azblob_options *o = &lane->store->options;
	char reason[SECRET_REASON_MAX], id[3 * AZBLOB_ID_MAX + 1];
	size_t size = 3 * sizeof(lane->secret);
	char *encoded = malloc(size);

	if (encoded == NULL ||
	    secret_read(o->file, lane->secret, sizeof(lane->secret), reason) != 0) {
		free(encoded);
		return store_fail(&call->error, BATON_E_DENIED, "%s",
				  encoded != NULL ? reason : "no memory for a login");
	}
	(void)http_encode(lane->secret, encoded, size);
	(void)http_encode(o->client_id, id, sizeof(id));
	bytes_print(body,
		    "grant_type=client_credentials&scope=" RESOURCE ".default&client_id=%s"
		    "&client_assertion_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Aclient-assertion-type"
		    "%%3Ajwt-bearer&client_assertion=%s",
		    id, encoded);
	explicit_bzero(encoded, size);
	free(encoded);
	(void)http_encode(o->tenant_id, id, sizeof(id));
	bytes_print(path, "%s/%s/oauth2/v2.0/token", o->authority.base, id);
	return 0;
}

static void ask_managed(const struct azblob_options *o, struct bytes *path)
{
	char id[3 * AZBLOB_ID_MAX + 1];

	if (o->identity_header[0] != '\0')
		bytes_print(path, "%s?api-version=2019-08-01&resource=" RESOURCE,
			    o->authority.base);
	else
		bytes_print(path,
			    "%s/metadata/identity/oauth2/token?api-version=2018-02-01"
			    "&resource=" RESOURCE,
			    o->authority.base);
	if (o->client_id[0] != '\0' && http_encode(o->client_id, id, sizeof(id)))
		bytes_print(path, "&client_id=%s", id);
}

/* For how many seconds the token is good. The answer tells it as seconds from now, or as a wall
 * clock time. */
static uint64_t life_of(const json_t *answer)
{
	uint64_t life_s = 0, end_s = 0, now_s = (uint64_t)(clock_wall_ms() / 1000);

	if (js_u64(answer, "expires_in", &life_s))
		return life_s;
	return js_u64(answer, "expires_on", &end_s) && end_s > now_s ? end_s - now_s : 0;
}

static bool is_token(const char *text)
{
	size_t n = strlen(text);

	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return false;
	return n > 0 && n + strlen(BEARER) < AZBLOB_SECRET_MAX;
}

/* The sentence has the issuer's own words: they are for people, and have no secret in them. */
static int token_refused(const struct http_reply *reply, struct baton_call *call)
{
	json_t *answer = js_parse(reply->body, reply->body_size);
	const char *why = js_text(answer, "error_description");

	if (why[0] == '\0')
		why = js_text(answer, "error");
	int n = (int)strcspn(why, "\r\n");

	(void)store_fail(
		&call->error, reply->status >= 500 ? BATON_E_UNAVAILABLE : BATON_E_DENIED,
		"no token was given (%d): %.*s; check the identity, and that it may be used on "
		"this machine or in this pod",
		reply->status, n < 120 ? n : 120, why);
	json_decref(answer);
	return -1;
}

static int token_read(struct azblob_store *s, const struct http_reply *reply, uint64_t sent_ns,
		      struct baton_call *call)
{
	json_t *answer = js_parse(reply->body, reply->body_size);
	const char *text = js_text(answer, "access_token");
	uint64_t life_s = life_of(answer);
	char *copy = is_token(text) && life_s > 0 ? strdup(text) : NULL;

	json_decref(answer);
	if (copy == NULL)
		return store_fail(&call->error, BATON_E_CORRUPT,
				  "the answer to the question for a token can't be read");
	token_set(s, copy, sent_ns, life_s);
	return 0;
}

static int token_fetch(struct azblob_lane *lane, struct baton_call *call, uint64_t deadline_ns)
{
	const struct azblob_options *o = &lane->store->options;
	struct bytes path = {0}, body = {0};
	char header[AZBLOB_ID_MAX + 32] = "Metadata: true";
	const char *headers[] = {header, NULL};
	struct http_request ask = {.method = "GET", .host = &o->authority.host, .headers = headers};
	struct http_reply reply;
	uint64_t sent_ns = clock_boot_ns();
	int rc = 0;

	if (o->login == AZBLOB_WORKLOAD) {
		rc = ask_workload(lane, call, &path, &body);
		(void)snprintf(header, sizeof(header),
			       "Content-Type: application/x-www-form-urlencoded");
		ask.method = "POST";
		ask.body = body.at;
		ask.body_size = body.n;
	} else {
		ask_managed(o, &path);
		if (o->identity_header[0] != '\0')
			(void)snprintf(header, sizeof(header), "X-IDENTITY-HEADER: %s",
				       o->identity_header);
	}
	ask.path = path.at;
	if (rc == 0 && (path.has_failed || body.has_failed))
		rc = store_fail(&call->error, BATON_E_MEMORY, "no memory for a login");
	if (rc == 0 && http_call(lane->http, &ask, deadline_ns, &reply) != HTTP_OK)
		rc = store_fail(&call->error, web_code_of(reply.result),
				"can't ask for a token: %.150s", reply.text);
	else if (rc == 0)
		rc = reply.status == 200 ? token_read(lane->store, &reply, sent_ns, call)
					 : token_refused(&reply, call);
	if (body.at != NULL)
		explicit_bzero(body.at, body.n);
	bytes_done(&body);
	bytes_done(&path);
	return rc;
}

/* The token is still good, and it is time for the next one: asks for it, unless another lane
 * does. Returns the state of the token that the lane has then: the old one may have ended
 * meanwhile. */
static int token_renew(struct azblob_lane *lane, const struct baton_call *call)
{
	struct azblob_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();
	uint64_t end_ns = now_ns + EARLY_NS;
	struct baton_call quiet = {.deadline_ns =
					   end_ns < call->deadline_ns ? end_ns : call->deadline_ns};

	if (!store_turn_take(&s->turn, now_ns, false))
		return TOKEN_DUE;
	store_lock(&s->base);
	s->token_retry_ns = now_ns + RETRY_NS;
	store_unlock(&s->base);
	(void)token_fetch(lane, &quiet, quiet.deadline_ns);
	store_turn_give(&s->turn);
	return token_copy(lane);
}

int azblob_token(struct azblob_lane *lane, struct baton_call *call)
{
	struct azblob_store *s = lane->store;
	int state = token_copy(lane);

	if (state == TOKEN_DUE && lane->kind != BATON_LANE_RENEW)
		state = token_renew(lane, call);
	if (state != TOKEN_NONE)
		return 0;
	if (!store_turn_take(&s->turn, call->deadline_ns, lane->kind == BATON_LANE_RENEW))
		return store_fail(&call->error, BATON_E_TIMEOUT, "there was no token in time");
	int rc = token_copy(lane) != TOKEN_NONE ? 0 : token_fetch(lane, call, call->deadline_ns);

	store_turn_give(&s->turn);
	if (rc == 0 && token_copy(lane) == TOKEN_NONE)
		rc = store_fail(&call->error, BATON_E_DENIED, "the token that was given has ended");
	return rc;
}
