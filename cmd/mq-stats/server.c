/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * mq-stats --server: the server itself, and what its operator should know.
 */
#include "stats.h"

#define BYTES 24

/* Writes a size such as "12.3 MiB". */
static void
bytes_text(char out[BYTES], long long n)
{
	static const char *const units[] = {
	    "bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)n;
	size_t i = 0;

	while (value >= 1024 && i < sizeof(units) / sizeof(units[0]) - 1) {
		value /= 1024;
		i++;
	}
	snprintf(out, BYTES, i > 0 && value < 100 ? "%.1f %s" : "%.0f %s",
	    value, units[i]);
}

static json_t *
find_warnings(const struct mq_info *r, const char *lacking)
{
	char evicts[128], lacks[512];
	const struct {
		bool is;
		const char *text;
	} all[] = {
	    {r->maxmemory > 0 && r->memory >= r->maxmemory / 10 * 9,
		"memory is nearly full: at maxmemory, messages are "
		"refused or dropped"},
	    {r->evicts, evicts},
	    {r->aof == 0 && r->snapshots == 0,
		"nothing is kept on disk: a restart loses all messages"},
	    {r->aof == 0 && r->snapshots != 0,
		"snapshots alone are kept: if the server is killed, it "
		"loses all messages since the last one"},
	    {*lacking != '\0', lacks},
	    {r->save_failed, "the last snapshot could not be saved"},
	    {r->aof_failed,
		"the append-only file could not be written or rewritten"},
	    {r->disk_free >= 0 && r->disk_free < r->disk_bytes / 20,
		"the disk is nearly full: a private server ends when it "
		"cannot write"},
	};
	json_t *list = json_array();
	size_t i;

	snprintf(evicts, sizeof(evicts),
	    "maxmemory-policy is %s: the server may drop queues or leases; "
	    "set it to noeviction",
	    r->policy);
	snprintf(lacks, sizeof(lacks),
	    "the server lacks commands that the tools use: %s", lacking);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].is)
			json_array_append_new(list, mq_json_text(all[i].text));
	return list;
}

static void
print_text(const char *name, const char *text)
{
	if (*text != '\0')
		text_line(name, text);
}

static void
print_report(const char *name, const struct mq_info *r)
{
	char text[TEXT_AGE], used[BYTES], most[BYTES], kept[64] = "";
	bool aof = r->aof_bytes >= 0, disk = r->disk_free >= 0;

	print_text("server", name);
	print_text("version", r->version);
	print_text("directory", r->dir);
	if (r->pid >= 0)
		printf("%-12s%lld\n", "pid", r->pid);
	if (r->uptime_s >= 0) {
		text_age(text, (double)r->uptime_s);
		text_line("uptime", text);
	}
	if (r->memory >= 0) {
		bytes_text(used, r->memory);
		bytes_text(most, r->maxmemory);
		printf("%-12s%s of %s\n", "memory", used,
		    r->maxmemory > 0 ? most : "any size");
	}
	print_text("policy", r->policy);
	if (r->aof == 1)
		snprintf(kept, sizeof(kept), "each write%s%s",
		    r->fsync[0] != '\0' ? ", synced " : "", r->fsync);
	else if (r->aof == 0)
		strlcpy(kept,
		    r->snapshots == 0	  ? "nothing" :
			r->snapshots == 1 ? "snapshots" :
					    "snapshots, if any",
		    sizeof(kept));
	print_text("kept", kept);
	if (aof || disk) {
		bytes_text(used, r->aof_bytes);
		bytes_text(most, r->disk_free);
		printf("%-12s%s%s%s%s%s\n", "disk", aof ? used : "",
		    aof ? " used" : "", aof && disk ? ", " : "",
		    disk ? most : "", disk ? " free" : "");
	}
}

static const struct field report_fields[] = {
    {"version", KIND_CHARS, FIELD_OF(mq_info, version)},
    {"directory", KIND_CHARS, FIELD_OF(mq_info, dir)},
    {"pid", KIND_COUNT, FIELD_OF(mq_info, pid)},
    {"uptime_s", KIND_COUNT, FIELD_OF(mq_info, uptime_s)},
    {"memory", KIND_COUNT, FIELD_OF(mq_info, memory)},
    {"maxmemory", KIND_COUNT, FIELD_OF(mq_info, maxmemory)},
    {"maxmemory_policy", KIND_CHARS, FIELD_OF(mq_info, policy)},
    {"appendonly", KIND_FLAG, FIELD_OF(mq_info, aof)},
    {"appendfsync", KIND_CHARS, FIELD_OF(mq_info, fsync)},
    {"snapshots", KIND_FLAG, FIELD_OF(mq_info, snapshots)},
    {"appendonly_bytes", KIND_COUNT, FIELD_OF(mq_info, aof_bytes)},
    {"disk_free", KIND_COUNT, FIELD_OF(mq_info, disk_free)},
    {0},
};

void
server_print(struct collector *c, bool json)
{
	struct mq_info report, *r = &report;
	const struct field *f;
	struct mq_buf lacking = {0};
	json_t *warnings, *v;
	const char *cli;
	size_t i;

	forbid(c->server.url.kind == MQ_URL_CLUSTER,
	    "--server: not supported on a cluster; use redis-cli INFO on "
	    "each node");
	mq_option_must(&c->redis, collect_open(c));
	mq_option_must(&c->redis, mq_info_ask(&c->redis, r));
	mq_option_must(
	    &c->redis, mq_rights_lacking(&c->redis, c->layout, &lacking));
	warnings = find_warnings(r, mq_buf_str(&lacking));
	mq_buf_free(&lacking);
	if (json) {
		v = json_pack("{so}", "server", mq_json_text(c->server.name));
		for (f = report_fields; f->kind != KIND_END; f++)
			field_set(v, f, r, 0);
		mq_json_set(v, "warnings", warnings);
		output_json_line(v);
		return;
	}
	print_report(c->server.name, r);
	json_array_foreach(warnings, i, v)
		print_text("WARNING", json_string_value(v));
	cli =
	    strncmp(r->version, "valkey ", 7) == 0 ? "valkey-cli" : "redis-cli";
	if (r->aof == 0)
		printf("To mend that, type:\n"
		       "  %s CONFIG SET appendonly yes\n"
		       "  %s CONFIG REWRITE\n",
		    cli, cli);
	json_decref(warnings);
}
