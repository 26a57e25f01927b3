/*
 * list.c: the names of elections, from the keys below the prefix: an election has a lock or a state
 * there, its own or another program's, until that is deleted.
 */
#include <stdio.h>
#include <string.h>

#include "store/consul/consul.h"
#include "store/names.h"

static int list_ask(struct consul_lane *lane, struct baton_call *call, struct consul_answer *answer)
{
	struct consul_key tree = consul_tree_key(lane->store, "");
	char path[3 * CONSUL_KEY_MAX + 128];

	*answer = (struct consul_answer){.json = NULL};
	if (!consul_put_path(tree.text, path, sizeof(path) - 100)) {
		(void)store_fail(&call->error, BATON_E_URL, "the prefix is too long for Consul");
		return BATON_OUTCOME_FAILED;
	}
	size_t n = strlen(path);

	(void)snprintf(path + n, sizeof(path) - n, "?keys&consistent");
	(void)web_begin(&lane->web);
	return consul_call(lane, call, path, answer);
}

int consul_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
		void (*found)(void *arg, const char *name), void *arg)
{
	struct consul_lane *lane = l;
	struct store_names names = {.prefix = prefix, .after = after, .max = max};
	struct consul_answer answer;
	int outcome = list_ask(lane, call, &answer);

	/* 404: there is no key. UNKNOWN is FAILED here, because nothing was written. */
	if (outcome == BATON_OUTCOME_OK && answer.status != 404 && !json_is_array(answer.json))
		outcome = consul_strange(call);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < json_array_size(answer.json); i++) {
		const char *key = json_string_value(json_array_get(answer.json, i));
		char name[BATON_NAME_MAX + 1];

		if (key != NULL && consul_key_read(lane->store, key, name) != 0)
			store_names_add(&names, name);
	}
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK && store_names_tell(&names, found, arg) != 0) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list");
		outcome = BATON_OUTCOME_FAILED;
	}
	store_names_done(&names);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}
