/* exporter.c: see exporter.h: finds the module, and nothing else. */
#include "telemetry/exporter.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0';
}

bool exporter_is_wanted(void)
{
	const char *disabled = getenv("OTEL_SDK_DISABLED");

	if (disabled != NULL && strcmp(disabled, "true") == 0)
		return false;
	return is_set("OTEL_EXPORTER_OTLP_ENDPOINT") ||
	       is_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") ||
	       is_set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
}

int exporter_open(struct exporter *e, const char *instance,
		  void (*say)(int level, const char *text), struct baton_error *err)
{
	const char *folder =
		is_set("BATON_MODULE_DIR") ? getenv("BATON_MODULE_DIR") : BATON_MODULE_DIR;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/telemetry-otlp.so", folder);
	void *module =
		n > 0 && (size_t)n < sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	const struct exporter_ops *ops = module != NULL ? dlsym(module, "baton_exporter") : NULL;

	if (ops == NULL || ops->version != EXPORTER_VERSION) {
		const char *why = ops == NULL ? dlerror() : NULL;

		err->code = BATON_E_NO_DRIVER;
		(void)snprintf(err->text, sizeof(err->text), "the exporter can't be loaded: %.200s",
			       why != NULL ? why : "it is of another version");
		return err->code;
	}
	e->x = ops->open(instance, say, err);
	if (e->x == NULL)
		return err->code;
	e->ops = ops; /* the module stays loaded: its thread may outlive us */
	return 0;
}

void exporter_close(struct exporter *e, unsigned timeout_ms)
{
	if (e->ops != NULL)
		e->ops->close(e->x, timeout_ms);
	*e = (struct exporter){0};
}
