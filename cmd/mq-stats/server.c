/*
 * mq-stats --server: the server itself, and what its operator should know.
 */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/json.h"

#define BYTES 24

/* "12.3 MiB" */
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

static void
warn(json_t *warnings, const char *text)
{
	mq_json_must(json_array_append_new(warnings, mq_json_text(text)) == 0);
}

static void
warn_of_memory(const struct mq_report *r, json_t *warnings)
{
	char text[128];

	if (r->maxmemory > 0 && r->memory >= r->maxmemory / 10 * 9)
		warn(warnings,
		    "memory is nearly full: at maxmemory, messages are "
		    "refused or dropped");
	if (r->policy[0] == '\0' || strcmp(r->policy, "noeviction") == 0)
		return;
	snprintf(text, sizeof(text),
	    "maxmemory-policy is %s: the server may drop queues or leases; "
	    "set it to noeviction",
	    r->policy);
	warn(warnings, text);
}

static json_t *
find_warnings(const struct mq_report *r)
{
	json_t *warnings = json_array();

	warn_of_memory(r, warnings);
	if (r->aof == 0)
		warn(warnings,
		    r->snapshots == 0 ?
			"nothing is kept on disk: a restart loses all "
			"messages" :
			"snapshots alone are kept: if the server is killed, it "
			"loses all messages since the last one");
	if (r->save_failed)
		warn(warnings, "the last snapshot could not be saved");
	if (r->aof_failed)
		warn(warnings,
		    "the append-only file could not be written or rewritten");
	if (r->disk_free >= 0 && r->disk_free < r->disk_bytes / 20)
		warn(warnings,
		    "the disk is nearly full: a private server ends when it "
		    "cannot write");
	return warnings;
}

static void
print_memory(const struct mq_report *r)
{
	char used[BYTES], most[BYTES], text[3 * BYTES];

	if (r->memory < 0)
		return;
	bytes_text(used, r->memory);
	bytes_text(most, r->maxmemory);
	snprintf(text, sizeof(text), "%s of %s", used,
	    r->maxmemory > 0 ? most : "any size");
	text_line("memory", text);
}

static void
print_disk(const struct mq_report *r)
{
	char used[BYTES], left[BYTES], text[3 * BYTES] = "";

	if (r->aof_bytes >= 0) {
		bytes_text(used, r->aof_bytes);
		snprintf(text, sizeof(text), "%s used%s", used,
		    r->disk_free >= 0 ? ", " : "");
	}
	if (r->disk_free >= 0) {
		bytes_text(left, r->disk_free);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s free", left);
	}
	if (text[0] != '\0')
		text_line("disk", text);
}

static void
print_kept(const struct mq_report *r)
{
	char text[64];

	if (r->aof < 0)
		return;
	snprintf(text, sizeof(text), "%s%s%s%s",
	    r->aof == 1 ? "each write" : "",
	    r->aof == 1 && r->fsync[0] != '\0' ? ", synced " : "",
	    r->aof == 1 ? r->fsync : "",
	    r->aof == 1		  ? "" :
		r->snapshots == 0 ? "nothing" :
		r->snapshots == 1 ? "snapshots" :
				    "snapshots, if any");
	text_line("kept", text);
}

static void
print_text(const char *name, const char *text)
{
	if (*text != '\0')
		text_line(name, text);
}

static void
print_report(const char *name, const struct mq_report *r)
{
	char text[TEXT_AGE];

	print_text("server", name);
	print_text("version", r->version);
	print_text("directory", r->dir);
	if (r->pid >= 0) {
		snprintf(text, sizeof(text), "%lld", r->pid);
		text_line("pid", text);
	}
	if (r->uptime_s >= 0) {
		text_age(text, (double)r->uptime_s);
		text_line("uptime", text);
	}
	print_memory(r);
	print_text("policy", r->policy);
	print_kept(r);
	print_disk(r);
}

static const struct field report_fields[] = {
    {"version", KIND_CHARS, FIELD_OF(mq_report, version)},
    {"directory", KIND_CHARS, FIELD_OF(mq_report, dir)},
    {"pid", KIND_COUNT, FIELD_OF(mq_report, pid)},
    {"uptime_s", KIND_COUNT, FIELD_OF(mq_report, uptime_s)},
    {"memory", KIND_COUNT, FIELD_OF(mq_report, memory)},
    {"maxmemory", KIND_COUNT, FIELD_OF(mq_report, maxmemory)},
    {"maxmemory_policy", KIND_CHARS, FIELD_OF(mq_report, policy)},
    {"appendonly", KIND_FLAG, FIELD_OF(mq_report, aof)},
    {"appendfsync", KIND_CHARS, FIELD_OF(mq_report, fsync)},
    {"snapshots", KIND_FLAG, FIELD_OF(mq_report, snapshots)},
    {"appendonly_bytes", KIND_COUNT, FIELD_OF(mq_report, aof_bytes)},
    {"disk_free", KIND_COUNT, FIELD_OF(mq_report, disk_free)},
    {0},
};

static void
print_json(const char *name, const struct mq_report *r, json_t *warnings)
{
	json_t *v = mq_json_pack("{so}", "server", mq_json_text(name));
	const struct field *f;

	for (f = report_fields; f->kind != KIND_END; f++)
		field_set(v, f, r, 0);
	mq_json_set(v, "warnings", json_incref(warnings));
	text_json_line(v);
}

void
server_print(const char *name, const struct mq_report *r, bool json)
{
	json_t *warnings = find_warnings(r);
	size_t i;

	if (json)
		print_json(name, r, warnings);
	else
		print_report(name, r);
	for (i = 0; !json && i < json_array_size(warnings); i++)
		print_text(
		    "WARNING", json_string_value(json_array_get(warnings, i)));
	if (!json && r->aof == 0)
		puts("To mend that, type:\n"
		     "  redis-cli CONFIG SET appendonly yes\n"
		     "  redis-cli CONFIG REWRITE");
	json_decref(warnings);
}
