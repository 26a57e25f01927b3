/*
 * list.c: the names of elections, from the Leases of the namespace that baton has written to: those
 * that have had a term, or are paused. Leases that only other programs use are not listed.
 */
#include "store/kubernetes/kube.h"
#include "store/names.h"

static void list_take_item(void *arg, const char *name, json_t *object, uint64_t rv)
{
	(void)rv;
	if (object != NULL && name[0] != '\0' &&
	    (kube_annotation(object, "baton/term")[0] != '\0' ||
	     kube_annotation(object, "baton/paused")[0] != '\0'))
		store_names_add(arg, name);
}

int kube_list_elections(void *l, struct baton_call *call, const char *prefix, const char *after,
			size_t max, void (*found)(void *arg, const char *name), void *arg)
{
	struct store_names names = {.prefix = prefix, .after = after, .max = max};
	int outcome = kube_list(l, call, "labelSelector=%21baton%2Fcandidate%2C%21baton%2Fprocess",
				"list", list_take_item, &names);

	if (outcome == BATON_OUTCOME_OK && store_names_tell(&names, found, arg) != 0) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list");
		outcome = BATON_OUTCOME_FAILED;
	}
	store_names_done(&names);
	return outcome;
}
