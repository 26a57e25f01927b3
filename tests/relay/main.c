/*
 * main.c: the fault proxy as a program, between any client and a server of this machine.
 *
 *     relay [--protocol=resp|postgres|mysql|memcached|mongodb|tds|http|h2|bytes] [--address=A]
 *           [--seed=N] [--rules=TEXT] PORT
 *
 * says `port=N`, the port that it listens on, and then does what stands on its input: `rules TEXT`
 * replaces the rules (see rules.h; without a text there are none), `down` and `up`, `hole` and
 * `open`, `text` shows the rules and how often they fired. Each line is answered with one that
 * says `ok`, or why not. It ends with its input, and shows what would repeat it.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay.h"

static const char usage[] =
	"usage: relay [--protocol=resp|postgres|mysql|memcached|mongodb|tds|http|h2|bytes]\n"
	"             [--address=A] [--seed=N] [--rules=TEXT] PORT\n";

static void show(struct relay *r)
{
	static char text[RULES_TEXT_SIZE];
	struct relay_counts counts;

	relay_counts(r, &counts);
	relay_text(r, text, sizeof(text));
	printf("# %" PRIu64 " requests\n%s", counts.requests, text);
}

static void obey(struct relay *r, const char *line)
{
	char why[200] = "not understood";
	bool ok = true;

	if (strcmp(line, "down") == 0 || strcmp(line, "up") == 0)
		relay_down(r, line[0] == 'd');
	else if (strcmp(line, "hole") == 0 || strcmp(line, "open") == 0)
		relay_hole(r, line[0] == 'h');
	else if (strcmp(line, "text") == 0)
		show(r);
	else if (strncmp(line, "rules", 5) == 0 && (line[5] == ' ' || line[5] == '\0'))
		ok = relay_rules(r, 0, line + 5 + (line[5] == ' '), why, sizeof(why));
	else
		ok = false;
	printf("%s\n", ok ? "ok" : why);
	(void)fflush(stdout);
}

static int run(const struct relay_options *o, const char *rules)
{
	static char line[RULES_TEXT_SIZE];
	char why[200];
	struct relay *r = relay_new(o);

	if (r == NULL) {
		perror("relay");
		return 1;
	}
	if (!relay_rules(r, 0, rules, why, sizeof(why))) {
		(void)fprintf(stderr, "relay: %s\n", why);
		relay_free(r);
		return 2;
	}
	printf("port=%u\n", relay_port(r));
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		obey(r, line);
	}
	show(r);
	relay_free(r);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"protocol", required_argument, NULL, 's'},
						{"address", required_argument, NULL, 'a'},
						{"seed", required_argument, NULL, 'n'},
						{"rules", required_argument, NULL, 'r'},
						{NULL, 0, NULL, 0}};
	struct relay_options o = {.protocol = &protocol_bytes, .seed = 1};
	const char *rules = "";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's': o.protocol = protocol_find(optarg); break;
		case 'a': o.address = optarg; break;
		case 'n': o.seed = strtoull(optarg, NULL, 10); break;
		case 'r': rules = optarg; break;
		default: o.protocol = NULL; break;
		}
	}
	o.server_port = optind + 1 == argc ? (unsigned)strtoul(argv[optind], NULL, 10) : 0;
	if (o.protocol == NULL || o.server_port == 0 || o.server_port > UINT16_MAX) {
		(void)fputs(usage, stderr);
		return 2;
	}
	return run(&o, rules);
}
