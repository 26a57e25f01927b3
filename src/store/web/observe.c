/* observe.c: observing many elections, in batches: see web.h. */
#include "store/web/web.h"

void web_observe(web_observe_part *part, size_t chunk, void *lane, struct baton_call *call,
		 struct baton_observation *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = n - done < chunk ? n - done : chunk;
		int outcome = part(lane, call, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome =
				outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
			list[i].code = call->error.code;
			*list[i].record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
		}
		done += k;
	}
}
