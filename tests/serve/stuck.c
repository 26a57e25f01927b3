/*
 * stuck.c: a module for the tests: the file store as "stuck:DIR". Its calls hang past their
 * deadlines until the test lets them go, as those of a driver with a mistake would. The environment
 * variable BATON_TEST_STUCK names a folder. While that has a pipe `calls`, to which nobody writes,
 * calls to the store hang. While it has a pipe `wake`, the function that wakes the watch hangs: the
 * library's loop calls that one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton-store.h>

extern const struct baton_driver baton_file_driver;
extern BATON_API struct baton_driver baton_driver;
struct baton_driver baton_driver;

static const char *const schemes[] = {"stuck", NULL};

/* Opening a pipe waits for its writer; where there is no pipe nothing is waited for. */
static void hang_at(const char *name)
{
	const char *folder = getenv("BATON_TEST_STUCK");
	char path[4096];

	if (folder == NULL)
		return;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
}

static int open_stuck(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	char url[4096];
	struct baton_store_config inner = {.size = sizeof(inner), .url = url};

	(void)snprintf(url, sizeof(url), "file:%s", strchr(config->url, ':') + 1);
	return baton_file_driver.open(&inner, store, err);
}

static int lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	hang_at("calls");
	return baton_file_driver.lease_open(lane, call, lease);
}

static int lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *held)
{
	hang_at("calls");
	return baton_file_driver.lease_renew(lane, call, lease, held);
}

static void campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *campaigns, size_t n)
{
	hang_at("calls");
	baton_file_driver.campaign(lane, call, lease, campaigns, n);
}

static void observe(void *lane, struct baton_call *call, struct baton_observation *observations,
		    size_t n)
{
	hang_at("calls");
	baton_file_driver.observe(lane, call, observations, n);
}

static void watch_wake(void *lane)
{
	hang_at("wake");
	baton_file_driver.watch_wake(lane);
}

__attribute__((constructor)) static void make(void)
{
	baton_driver = baton_file_driver;
	baton_driver.name = "stuck";
	baton_driver.schemes = schemes;
	baton_driver.open = open_stuck;
	baton_driver.lease_open = lease_open;
	baton_driver.lease_renew = lease_renew;
	baton_driver.campaign = campaign;
	baton_driver.observe = observe;
	baton_driver.watch_wake = watch_wake;
}
