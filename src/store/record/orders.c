/*
 * orders.c: orders for a leader, and the pause of an election. Both are written into its record.
 */
#include <stdlib.h>

#include "store/record/layer.h"

static int edit_run(struct record_lane *lane, struct baton_call *call, const char *name,
		    const struct record_edit *edit)
{
	struct record_job *job = record_jobs_new(call, 1);

	if (job == NULL)
		return BATON_OUTCOME_FAILED;
	record_job_init(job, lane->store, RECORD_JOB_EDIT, name);
	job->u.edit = *edit;
	record_jobs_run(lane, call, job, 1);
	int outcome = record_job_task(job)->outcome;

	free(job);
	return outcome;
}

int record_driver_order(void *l, struct baton_call *call, const char *name,
			const struct baton_order *order)
{
	return edit_run(l, call, name, &(struct record_edit){.order = order});
}

int record_driver_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	return edit_run(l, call, name, &(struct record_edit){.pause = paused});
}
