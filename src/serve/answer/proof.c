/*
 * proof.c: reads a history as evidence. Terms rise strictly (S3), and where both leaderships were
 * written down by one clock of the store, the end of the earlier comes first. Wall clocks are for
 * people: those of two processes prove nothing.
 */
#include <string.h>

#include "serve/answer/answer.h"
#include "serve/answer/proof.h"

static bool shares_clock(const struct baton_leadership *a, const struct baton_leadership *b)
{
	return a->clock[0] != '\0' && strcmp(a->clock, b->clock) == 0;
}

static const char *find_overlap(const struct baton_leadership *earlier,
				const struct baton_leadership *later)
{
	bool same_clock = shares_clock(earlier, later);

	if (later->term <= earlier->term)
		return "the later one's term is not higher";
	if (earlier->ended[0] == '\0')
		return "the earlier one never ended";
	if (same_clock && later->since_ns <= earlier->since_ns)
		return "the later one began first";
	if (same_clock && earlier->until_ns != 0 && later->since_ns < earlier->until_ns)
		return "the later one began before the earlier one's end";
	return NULL;
}

static const char *contradiction(const struct baton_leadership *l)
{
	if (l->until_ns != 0 && l->until_ns < l->since_ns)
		return "it ended before it began";
	return l->until_ns != 0 && l->ended[0] == '\0' ? "it has an end, and goes on" : NULL;
}

struct proof proof_of(const struct baton_leadership *list, size_t n)
{
	struct proof p = {0};

	for (p.at = 0; p.at < n; p.at++) {
		p.wrong = contradiction(&list[p.at]);
		if (p.wrong != NULL)
			return p;
	}
	p.is_pair = true;
	for (p.at = 0; p.at + 1 < n; p.at++) {
		p.wrong = find_overlap(&list[p.at + 1], &list[p.at]);
		if (p.wrong != NULL)
			return p;
		p.by_terms += !shares_clock(&list[p.at], &list[p.at + 1]);
	}
	return p;
}

static void write_leadership(struct serve_text *out, const struct baton_leadership *l)
{
	text_add(out, "{\"term\":\"");
	text_unsigned(out, l->term);
	text_add(out, "\",\"leader\":");
	text_string(out, l->leader);
	text_add(out, ",\"since\":");
	text_time(out, l->since_ms);
	text_add(out, ",\"until\":");
	text_time(out, l->until_ms);
	text_add(out, ",\"ended\":");
	text_string(out, l->ended);
	text_add(out, ",\"note\":");
	text_string(out, l->note);
	text_add(out, ",\"clock\":");
	text_string(out, l->clock);
	text_add(out, ",\"since_ns\":\"");
	text_unsigned(out, l->since_ns);
	text_add(out, "\",\"until_ns\":\"");
	text_unsigned(out, l->until_ns);
	text_add(out, "\"}");
}

void serve_write_history(struct serve_text *out, const struct baton_leadership *list, size_t n)
{
	struct proof p = proof_of(list, n);

	text_add(out, "{\"leaderships\":[");
	for (size_t i = 0; i < n; i++) {
		text_add(out, i > 0 ? "," : "");
		write_leadership(out, &list[i]);
	}
	text_add(out, p.wrong == NULL ? "],\"proven\":true" : "],\"proven\":false");
	text_add(out, ",\"by_terms\":");
	text_unsigned(out, p.by_terms);
	text_add(out, ",\"finding\":");
	text_string(out, p.wrong != NULL ? p.wrong : "");
	text_add(out, "}\n");
}
