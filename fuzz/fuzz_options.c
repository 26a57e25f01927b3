/* fuzz_options.c: any numbers as timings. What is accepted keeps every rule of timing.h. */
#include <string.h>

#include "core/timing.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct timing t = {0};
	struct options o;
	uint64_t least_ns = 0;

	options_init(&o);
	(void)memcpy(&t, data, size < sizeof(t) ? size : sizeof(t));
	if (size >= sizeof(t) + 28) {
		(void)memcpy(&least_ns, data + sizeof(t), 8);
		(void)memcpy(&o.work_timeout_ns, data + sizeof(t) + 8, 8);
		(void)memcpy(&o.preempt_ns, data + sizeof(t) + 16, 8);
		(void)memcpy(&o.priority, data + sizeof(t) + 24, 4);
	}
	timing_fill(&t);
	enum timing_fault fault = timing_check(&t, least_ns);

	if (fault != TIMING_OK && fault != TIMING_WARN_RENEW)
		return 0;
	MUST(t.lease_ns >= least_ns && t.renew_ns <= t.lease_ns / 2);
	MUST(t.renew_ns + t.grace_ns + timing_drain_ns(&t) == timing_end_ns(&t));
	MUST(timing_drain_ns(&t) >= t.lease_ns / 20 && timing_end_ns(&t) <= t.lease_ns);
	MUST(timing_call_ns(&t) * 3 <= t.grace_ns && timing_call_ns(&t) > 0);
	for (unsigned i = 0; i < 70; i++)
		MUST(timing_backoff_ns(&t, i, ~(uint64_t)0) <= t.retry_max_ns);
	(void)options_check(&o, &t);
	return 0;
}
