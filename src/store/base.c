/*
 * base.c: what every driver has: see base.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "baton-store.h"
#include "store/base.h"

int store_fail(struct baton_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return -1;
	err->code = code;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int store_base_init(struct store_base *base)
{
	base->lanes = NULL;
	base->forgotten = false;
	return pthread_mutex_init(&base->lock, NULL) == 0 ? 0 : -1;
}

void store_base_done(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_destroy(&base->lock);
}

void store_lock(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_lock(&base->lock);
}

void store_unlock(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_unlock(&base->lock);
}

void store_lane_add(struct store_base *base, struct store_lane *lane)
{
	store_lock(base);
	lane->next = base->lanes;
	base->lanes = lane;
	store_unlock(base);
}

void store_lane_remove(struct store_base *base, struct store_lane *lane)
{
	store_lock(base);
	struct store_lane **at = &base->lanes;

	while (*at != NULL && *at != lane)
		at = &(*at)->next;
	if (*at != NULL)
		*at = lane->next;
	store_unlock(base);
}
