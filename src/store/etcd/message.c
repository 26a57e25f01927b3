/*
 * message.c: etcd's messages, as far as we send or read them: the methods, the shapes of their
 * answers (any other answer is refused before a field is read), and the parts of requests. etcd.h
 * has the numbers of the fields.
 */
#include "store/etcd/etcd.h"

/* ---- answers ---- */

static const struct proto_shape header[] = {
	{ETCD_HEADER_REVISION, PROTO_NUMBER, NULL},
	{ETCD_HEADER_RAFT_TERM, PROTO_NUMBER, NULL},
	{0},
};
static const struct proto_shape kv[] = {
	{ETCD_KV_KEY, PROTO_BYTES, NULL},    {ETCD_KV_CREATE, PROTO_NUMBER, NULL},
	{ETCD_KV_MOD, PROTO_NUMBER, NULL},   {ETCD_KV_VALUE, PROTO_BYTES, NULL},
	{ETCD_KV_LEASE, PROTO_NUMBER, NULL}, {0},
};
static const struct proto_shape range[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_RANGE_KVS, PROTO_MESSAGE, kv},
	{ETCD_RANGE_COUNT, PROTO_NUMBER, NULL},
	{0},
};
static const struct proto_shape txn[4];
static const struct proto_shape response[] = {
	{ETCD_OP_RANGE, PROTO_MESSAGE, range},
	{ETCD_OP_TXN, PROTO_MESSAGE, txn},
	{0},
};
static const struct proto_shape txn[4] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_TXN_SUCCEEDED, PROTO_NUMBER, NULL},
	{ETCD_TXN_RESPONSES, PROTO_MESSAGE, response},
	{0},
};
/* The answer to granting a lease, keeping it alive, and asking how much time it has left. */
static const struct proto_shape lease[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_LEASE_ID, PROTO_NUMBER, NULL},
	{ETCD_LEASE_TTL, PROTO_NUMBER, NULL},
	{0},
};
static const struct proto_shape nothing[] = {{ETCD_HEADER, PROTO_MESSAGE, header}, {0}};
static const struct proto_shape event[] = {
	{ETCD_EVENT_TYPE, PROTO_NUMBER, NULL},
	{ETCD_EVENT_KV, PROTO_MESSAGE, kv},
	{0},
};
static const struct proto_shape watch[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_WATCH_CREATED, PROTO_NUMBER, NULL},
	{ETCD_WATCH_CANCELED, PROTO_NUMBER, NULL},
	{ETCD_WATCH_COMPACTED, PROTO_NUMBER, NULL},
	{ETCD_WATCH_REASON, PROTO_BYTES, NULL},
	{ETCD_WATCH_EVENTS, PROTO_MESSAGE, event},
	{0},
};
static const struct proto_shape token[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_AUTH_TOKEN, PROTO_BYTES, NULL},
	{0},
};
static const struct proto_shape members[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_MEMBERS_LIST, PROTO_BYTES, NULL},
	{0},
};
static const struct proto_shape alarm[] = {{ETCD_ALARM_KIND, PROTO_NUMBER, NULL}, {0}};
static const struct proto_shape alarms[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_ALARMS_LIST, PROTO_MESSAGE, alarm},
	{0},
};
static const struct proto_shape status[] = {
	{ETCD_HEADER, PROTO_MESSAGE, header},
	{ETCD_STATUS_VERSION, PROTO_BYTES, NULL},
	{0},
};

const struct etcd_method etcd_range = {"/etcdserverpb.KV/Range", NULL, range};
const struct etcd_method etcd_txn = {"/etcdserverpb.KV/Txn", NULL, txn};
const struct etcd_method etcd_txn_campaign = {"/etcdserverpb.KV/Txn", "baton: campaign", txn};
const struct etcd_method etcd_txn_release = {"/etcdserverpb.KV/Txn", "baton: release", txn};
const struct etcd_method etcd_txn_observe = {"/etcdserverpb.KV/Txn", "baton: observe", txn};
const struct etcd_method etcd_grant = {"/etcdserverpb.Lease/LeaseGrant", "baton: open", lease};
const struct etcd_method etcd_keep_alive = {"/etcdserverpb.Lease/LeaseKeepAlive", "baton: renew",
					    lease};
const struct etcd_method etcd_revoke = {"/etcdserverpb.Lease/LeaseRevoke", NULL, nothing};
const struct etcd_method etcd_time_left = {"/etcdserverpb.Lease/LeaseTimeToLive", NULL, lease};
const struct etcd_method etcd_watch = {"/etcdserverpb.Watch/Watch", NULL, watch};
const struct etcd_method etcd_authenticate = {"/etcdserverpb.Auth/Authenticate", NULL, token};
const struct etcd_method etcd_members = {"/etcdserverpb.Cluster/MemberList", NULL, members};
const struct etcd_method etcd_alarms = {"/etcdserverpb.Maintenance/Alarm", NULL, alarms};
const struct etcd_method etcd_status = {"/etcdserverpb.Maintenance/Status", NULL, status};

/* ---- what is in answers ---- */

struct proto etcd_response(struct proto txn_answer, size_t i, unsigned kind)
{
	return proto_get(proto_item(txn_answer, ETCD_TXN_RESPONSES, i), kind);
}

struct proto etcd_kv(struct proto txn_answer, size_t i)
{
	return proto_item(etcd_response(txn_answer, i, ETCD_OP_RANGE), ETCD_RANGE_KVS, 0);
}

/* ---- requests ---- */

/* Numbers of fields that only requests have. */
enum {
	RANGE_LIMIT = 3,
	RANGE_SORT_ORDER = 5,
	RANGE_SORT_TARGET = 6,
	RANGE_KEYS_ONLY = 8,
	RANGE_COUNT_ONLY = 9
};
enum { PUT_KEY = 1, PUT_VALUE = 2, PUT_LEASE = 3 };
enum { COMPARE_TARGET = 2, COMPARE_KEY = 3, COMPARE_VALUE = 7, COMPARE_RANGE_END = 64 };
enum { ASCEND = 1, BY_CREATE = 2, TARGET_VALUE = 3 };

void etcd_ask_range(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		    uint64_t limit, bool count_only)
{
	proto_put_text(b, ETCD_RANGE_KEY, from->text);
	if (end != NULL)
		proto_put_text(b, ETCD_RANGE_END, end->text);
	if (limit > 0)
		proto_put_number(b, RANGE_LIMIT, limit);
	if (count_only)
		proto_put_number(b, RANGE_COUNT_ONLY, 1);
}

struct etcd_nest etcd_begin_txn(struct bytes *b, enum etcd_part part)
{
	struct etcd_nest nest = {.op = proto_begin(b, part)};

	nest.txn = proto_begin(b, ETCD_OP_TXN);
	return nest;
}

void etcd_end_txn(struct bytes *b, struct etcd_nest nest)
{
	proto_end(b, nest.txn);
	proto_end(b, nest.op);
}

void etcd_put(struct bytes *b, enum etcd_part part, const struct etcd_key *key, const char *value,
	      uint64_t lease_number)
{
	size_t op = proto_begin(b, part);
	size_t put = proto_begin(b, ETCD_OP_PUT);

	proto_put_text(b, PUT_KEY, key->text);
	proto_put_text(b, PUT_VALUE, value);
	proto_put_number(b, PUT_LEASE, lease_number);
	proto_end(b, put);
	proto_end(b, op);
}

void etcd_delete(struct bytes *b, enum etcd_part part, const struct etcd_key *key)
{
	size_t op = proto_begin(b, part);
	size_t deletion = proto_begin(b, ETCD_OP_DELETE);

	proto_put_text(b, PUT_KEY, key->text);
	proto_end(b, deletion);
	proto_end(b, op);
}

void etcd_ask_keys(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		   uint64_t limit)
{
	etcd_ask_range(b, from, end, limit, false);
	proto_put_number(b, RANGE_KEYS_ONLY, 1);
}

void etcd_get(struct bytes *b, enum etcd_part part, const struct etcd_key *key)
{
	struct etcd_key end = etcd_key_end(key);

	etcd_get_range(b, part, key, &end, false);
}

void etcd_get_count(struct bytes *b, enum etcd_part part, const struct etcd_key *key)
{
	struct etcd_key end = etcd_key_end(key);
	size_t op = proto_begin(b, part);
	size_t get = proto_begin(b, ETCD_OP_RANGE);

	etcd_ask_range(b, key, &end, 0, true);
	proto_end(b, get);
	proto_end(b, op);
}

void etcd_get_range(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
		    const struct etcd_key *end, bool first)
{
	size_t op = proto_begin(b, part);
	size_t get = proto_begin(b, ETCD_OP_RANGE);

	etcd_ask_range(b, from, end, first ? 1 : 0, false);
	if (first) {
		proto_put_number(b, RANGE_SORT_ORDER, ASCEND);
		proto_put_number(b, RANGE_SORT_TARGET, BY_CREATE);
	}
	proto_end(b, get);
	proto_end(b, op);
}

void etcd_compare(struct bytes *b, const struct etcd_key *key, const struct etcd_key *end,
		  enum etcd_target target, uint64_t revision)
{
	size_t compare = proto_begin(b, ETCD_COMPARE);

	proto_put_number(b, COMPARE_TARGET, target);
	proto_put_text(b, COMPARE_KEY, key->text);
	if (end != NULL)
		proto_put_text(b, COMPARE_RANGE_END, end->text);
	proto_put_number(b, target == ETCD_IS_CREATE ? 5 : 6, revision);
	proto_end(b, compare);
}

void etcd_compare_value(struct bytes *b, const struct etcd_key *key, const char *value)
{
	size_t compare = proto_begin(b, ETCD_COMPARE);

	proto_put_number(b, COMPARE_TARGET, TARGET_VALUE);
	proto_put_text(b, COMPARE_KEY, key->text);
	proto_put_text(b, COMPARE_VALUE, value);
	proto_end(b, compare);
}
