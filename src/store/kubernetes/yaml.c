/*
 * yaml.c: reads a kubeconfig, which is YAML, as the JSON that it stands for. Every scalar becomes a
 * text: we read nothing else from a kubeconfig, and YAML's guesses at types don't matter then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "store/kubernetes/kube.h"

#define DEPTH_MAX 24
#define SIZE_MAX_BYTES (4L << 20)
/* With aliases a short text can stand for a huge one. */
#define NODES_MAX 100000

struct reader {
	yaml_document_t document;
	unsigned n_nodes;
};

static json_t *yaml_convert(struct reader *r, int at, int depth);

static json_t *yaml_convert_list(struct reader *r, const yaml_node_t *node, int depth)
{
	json_t *list = json_array();

	for (const yaml_node_item_t *i = node->data.sequence.items.start;
	     i < node->data.sequence.items.top; i++)
		if (json_array_append_new(list, yaml_convert(r, *i, depth + 1)) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *yaml_convert_map(struct reader *r, const yaml_node_t *node, int depth)
{
	json_t *map = json_object();

	for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
	     p < node->data.mapping.pairs.top; p++) {
		json_t *key = yaml_convert(r, p->key, depth + 1);
		const char *text = json_string_value(key);
		int rc = text != NULL ? json_object_set_new(map, text,
							    yaml_convert(r, p->value, depth + 1))
				      : -1;

		json_decref(key);
		if (rc != 0) {
			json_decref(map);
			return NULL;
		}
	}
	return map;
}

/* NULL: no memory, or the YAML isn't text, or it has more than we take. */
static json_t *yaml_convert(struct reader *r, int at, int depth)
{
	const yaml_node_t *node = yaml_document_get_node(&r->document, at);

	if (node == NULL || depth > DEPTH_MAX || ++r->n_nodes > NODES_MAX)
		return NULL;
	switch (node->type) {
	case YAML_SCALAR_NODE:
		return json_stringn((const char *)node->data.scalar.value,
				    node->data.scalar.length);
	case YAML_SEQUENCE_NODE: return yaml_convert_list(r, node, depth);
	case YAML_MAPPING_NODE: return yaml_convert_map(r, node, depth);
	default: return NULL;
	}
}

static json_t *yaml_parse(FILE *file, const char *path, char reason[HTTP_TEXT_MAX])
{
	struct reader r = {.n_nodes = 0};
	yaml_parser_t parser;
	json_t *root = NULL;

	if (yaml_parser_initialize(&parser) == 0) {
		(void)snprintf(reason, HTTP_TEXT_MAX, "no memory for a kubeconfig");
		return NULL;
	}
	yaml_parser_set_input_file(&parser, file);
	if (yaml_parser_load(&parser, &r.document) == 0) {
		/* The parser's own message isn't shown: it could quote the file, which has
		 * secrets. */
		(void)snprintf(reason, HTTP_TEXT_MAX, "%.120s is not valid YAML, at line %zu", path,
			       parser.problem_mark.line + 1);
	} else {
		root = yaml_document_get_root_node(&r.document) != NULL ? yaml_convert(&r, 1, 0)
									: json_object();
		if (root == NULL)
			(void)snprintf(reason, HTTP_TEXT_MAX, "%.120s is not a valid kubeconfig",
				       path);
		yaml_document_delete(&r.document);
	}
	yaml_parser_delete(&parser);
	return root;
}

json_t *kube_yaml_read(const char *path, char reason[HTTP_TEXT_MAX])
{
	FILE *file = fopen(path, "re");
	json_t *root = NULL;

	if (file == NULL) {
		char words[64];

		(void)snprintf(reason, HTTP_TEXT_MAX, "can't read %.120s: %s", path,
			       strerror_r(errno, words, sizeof(words)));
		return NULL;
	}
	if (fseek(file, 0, SEEK_END) != 0 || ftell(file) > SIZE_MAX_BYTES ||
	    fseek(file, 0, SEEK_SET) != 0)
		(void)snprintf(reason, HTTP_TEXT_MAX, "%.150s is not a valid kubeconfig", path);
	else
		root = yaml_parse(file, path, reason);
	(void)fclose(file);
	return root;
}
