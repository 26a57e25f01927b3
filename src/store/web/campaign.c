/* campaign.c: the result of a campaign, for every driver: see web.h. */
#include "store/web/web.h"

void web_campaign_set(struct baton_campaign *c, int outcome, int code)
{
	c->outcome = outcome;
	c->code = code;
	c->term = 0;
	*c->record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
}

void web_campaign_without_lease(struct baton_campaign *c)
{
	web_campaign_set(c, BATON_OUTCOME_REFUSED, 0);
	c->record->free_in_ns = 0;
}
