/*
 * list.c: the names of elections, from the keys below .election/: `term`, which every claim writes,
 * and `paused`. Only keys are read, page after page. Elections that only other programs use have no
 * such keys.
 */
#include <stdio.h>
#include <string.h>

#include "store/etcd/etcd.h"
#include "store/names.h"

#define PAGE 1000

static bool list_tells(const char *key)
{
	const char *last = strrchr(key, '/');

	return last != NULL && (strcmp(last, "/term") == 0 || strcmp(last, "/paused") == 0);
}

/* Reads a page of keys from `from` on, and moves `from`. "": that was the last page. */
static int list_page(struct etcd_lane *lane, struct baton_call *call, struct etcd_key *from,
		     const struct etcd_key *end, struct store_names *names)
{
	char key[ETCD_KEY_MAX] = "";
	char name[BATON_NAME_MAX + 1];
	struct proto answer, kv;

	etcd_ask_keys(etcd_begin(lane), from, end, PAGE);
	int outcome = etcd_call(lane, call, &etcd_range, &answer);
	bool is_last = proto_count(answer, ETCD_RANGE_KVS) < PAGE;

	for (struct proto rest = answer;
	     outcome == BATON_OUTCOME_OK && proto_next(&rest, ETCD_RANGE_KVS, &kv);)
		if (proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) && list_tells(key) &&
		    etcd_key_read(lane->store, key, name) == 's')
			store_names_add(names, name);
	etcd_done(&answer);
	from->text[0] = '\0';
	if (outcome == BATON_OUTCOME_OK && !is_last)
		(void)snprintf(from->text, sizeof(from->text), "%.*s\x01",
			       (int)sizeof(from->text) - 2, key);
	return outcome;
}

int etcd_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	      void (*found)(void *arg, const char *name), void *arg)
{
	struct etcd_lane *lane = l;
	struct store_names names = {.prefix = prefix, .after = after, .max = max};
	struct etcd_key from = etcd_state_key(lane->store, prefix, "");
	int outcome = BATON_OUTCOME_OK;

	/* Names are encoded letter by letter, so names with the same beginning stand together. */
	from.text[strlen(from.text) - 1] = '\0';
	struct etcd_key end = etcd_key_end(&from);

	while (outcome == BATON_OUTCOME_OK && from.text[0] != '\0')
		outcome = list_page(lane, call, &from, &end, &names);
	if (outcome == BATON_OUTCOME_OK && store_names_tell(&names, found, arg) != 0) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list");
		outcome = BATON_OUTCOME_FAILED;
	}
	store_names_done(&names);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}
