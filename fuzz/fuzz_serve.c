/*
 * fuzz_serve.c: requests to `baton serve`: a method, a target, headers and a body, in lines.
 * Whatever they are, the answer is one that HTTP knows, the room is kept, and nobody without rights
 * is let in.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "serve/answer/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct serve_election web = {.name = "web",
						  .takes_part = true,
						  .leads = true,
						  .my_term = 7,
						  .term = 7,
						  .deadline_boot_ns = 2,
						  .leader = "a",
						  .address = "",
						  .wait = "",
						  .error = "",
						  .reason = "",
						  .state_name = "",
						  .condition_name = ""};
	static const struct serve_election *const rows[] = {&web};
	const struct serve_view view = {.now_boot_ns = 1,
					.version = "",
					.boot_id = "",
					.id = "",
					.store = "",
					.promises = "",
					.operator_token = "a-token-nobody-guesses",
					.elections = rows,
					.n_elections = 1};
	char *text = malloc(size + 1);
	char *lines[10] = {NULL};
	char *next = text;
	char room[600];
	struct serve_reply reply;

	MUST(text != NULL);
	if (size > 0)
		(void)memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < 10 && next != NULL; i++)
		lines[i] = strsep(&next, "\n");
	struct serve_request request = {.method = lines[0],
					.target = lines[1] != NULL ? lines[1] : "/",
					.host = lines[2],
					.content_type = lines[3],
					.baton_request = lines[4],
					.if_match = lines[5],
					.authorization = lines[6],
					.origin = lines[7],
					.accept = lines[8],
					.body = lines[9] != NULL ? lines[9] : "",
					.n_body = lines[9] != NULL ? strlen(lines[9]) : 0};

	(void)memset(room, '#', sizeof(room));
	reply.body = (struct serve_text){room, sizeof(room) - 8, 0};
	serve_answer(&request, &view, &reply);
	MUST(reply.status >= 200 && reply.status <= 599);
	MUST(memcmp(room + sizeof(room) - 8, "########", 8) == 0);
	MUST(reply.task < SERVE_RESIGN || reply.task > SERVE_RESUME ||
	     strstr(request.authorization, "a-token-nobody-guesses") != NULL);
	MUST(reply.task != SERVE_LEAD && reply.task != SERVE_DONE);
	free(text);
	return 0;
}
