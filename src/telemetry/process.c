/* process.c: see process.h. What the system doesn't tell is left out. */
#include "telemetry/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct teller {
	void (*emit)(void *arg, const struct baton_metric *metric);
	void *arg;
};

static void tell(const struct teller *t, const char *name, const char *help, const char *unit,
		 int type, double value)
{
	struct baton_metric m = {.size = sizeof(m),
				 .name = name,
				 .help = help,
				 .unit = unit,
				 .type = type,
				 .value = value};

	t->emit(t->arg, &m);
}

/* -1: not known. */
static double n_descriptors(void)
{
	struct stat st;

	/* Newer kernels tell their number here: there may be thousands to count. */
	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (double)st.st_size;
	DIR *folder = opendir("/proc/self/fd");
	double n = -1; /* the one that we have just opened doesn't count */

	if (folder == NULL)
		return -1;
	for (const struct dirent *d; (d = readdir(folder)) != NULL;)
		n += d->d_name[0] != '.';
	(void)closedir(folder);
	return n;
}

/* Fields of /proc/self/stat, behind the name in brackets; false: it can't be read. */
static bool read_stat(double *cpu_s, double *start_s, double *virtual_bytes, double *pages)
{
	unsigned long long user, system, start, size;
	long long resident;
	char text[1024];
	FILE *file = fopen("/proc/self/stat", "re");

	if (file == NULL)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, file);

	(void)fclose(file);
	text[n] = '\0';
	const char *at = strrchr(text, ')');

	/* NOLINTNEXTLINE(cert-err34-c): numbers that the kernel writes */
	if (at == NULL || sscanf(at + 1,
				 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d "
				 "%*d %*d %*d %*d %llu %llu %lld",
				 &user, &system, &start, &size, &resident) != 5)
		return false;
	double per_second = (double)sysconf(_SC_CLK_TCK);

	*cpu_s = (double)(user + system) / per_second;
	*start_s = (double)start / per_second;
	*virtual_bytes = (double)size;
	*pages = (double)resident;
	return true;
}

/* Wall time of the boot, as the clocks say it now. */
static double boot_time_s(void)
{
	struct timespec wall, boot;

	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) / 1e9;
}

void process_metrics(void (*emit)(void *arg, const struct baton_metric *metric), void *arg)
{
	const struct teller t = {emit, arg};
	struct rlimit limit = {0};
	double cpu_s, start_s, virtual_bytes, pages;
	double n = n_descriptors();

	if (read_stat(&cpu_s, &start_s, &virtual_bytes, &pages)) {
		tell(&t, "process_cpu_seconds_total",
		     "Total user and system CPU time spent in seconds.", "seconds",
		     BATON_METRIC_COUNTER, cpu_s);
		tell(&t, "process_start_time_seconds",
		     "Start time of the process since unix epoch in seconds.", "seconds",
		     BATON_METRIC_GAUGE, boot_time_s() + start_s);
		tell(&t, "process_virtual_memory_bytes", "Virtual memory size in bytes.", "bytes",
		     BATON_METRIC_GAUGE, virtual_bytes);
		tell(&t, "process_resident_memory_bytes", "Resident memory size in bytes.", "bytes",
		     BATON_METRIC_GAUGE, pages * (double)sysconf(_SC_PAGESIZE));
	}
	if (n >= 0)
		tell(&t, "process_open_fds", "Number of open file descriptors.", "",
		     BATON_METRIC_GAUGE, n);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		tell(&t, "process_max_fds", "Maximum number of open file descriptors.", "",
		     BATON_METRIC_GAUGE, (double)limit.rlim_cur);
}

void process_add_unwritten(void *log, const struct baton_metric *metric)
{
	const struct process_log *l = log;
	struct baton_metric m = *metric;

	if (strcmp(m.name, "baton_log_dropped_total") == 0)
		m.value += (double)l->n_unwritten;
	l->emit(l->arg, &m);
}
