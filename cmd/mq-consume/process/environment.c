#include "environment.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"

extern char **environ;

#define RQ_VERSION "3.0.0"

/* Whether an inherited variable is one that we set. */
static bool
is_ours(const char *variable)
{
	static const char *const names[] = {
	    "MQ_ID=", "MQ_QUEUE=", "MQ_BATCH=", "MQ_ATTEMPT=", "MQ_ATTEMPTS=",
	    "MQ_WRITE=", "MQ_READ=", "MQ_HEADER_", "MQ_PARAM1=", "MQ_PARAM2=",
	    "MQ_PARAM3=", "MQ_PARAM4=", "TRACEPARENT="};
	size_t i;

	if (strncmp(variable, "RQ_", 3) == 0)
		return strncmp(variable, "RQ_ENV=", 7) != 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void
put_string(struct mq_buf *text, const char *name, const char *value)
{
	mq_buf_addstr(text, name);
	mq_buf_add(text, "=", 1);
	mq_buf_add(text, value, strlen(value) + 1);
}

static void
put_long(struct mq_buf *text, const char *name, long value)
{
	char number[24];

	snprintf(number, sizeof(number), "%ld", value);
	put_string(text, name, number);
}

/* name=http://host/[q/queue/]id */
static void
put_url(struct mq_buf *text, const char *name, const char *host,
    const char *queue, const char *id)
{
	const char *const parts[] = {name, "=http://", host,
	    queue != NULL ? "/q/" : "", queue != NULL ? queue : "", "/"};
	size_t i;

	/* Without printf(3): each run has some of these. */
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		mq_buf_addstr(text, parts[i]);
	mq_buf_add(text, id, strlen(id) + 1);
}

/* Every value of a header, joined as HTTP does; none when one has a NUL. */
static bool
join_values(struct mq_buf *text, json_t *values)
{
	json_t *value;
	size_t i;

	json_array_foreach(values, i, value) {
		if (strlen(json_string_value(value)) !=
		    json_string_length(value))
			return false;
		if (i > 0)
			mq_buf_addstr(text, ", ");
		mq_buf_add(
		    text, json_string_value(value), json_string_length(value));
	}
	mq_buf_add(text, "", 1);
	return true;
}

static void
put_header_name(struct mq_buf *text, const char *name)
{
	char *to = mq_buf_reserve(text, strlen(name));

	for (; *name != '\0'; name++, text->len++) {
		*to = '_';
		if (isascii((unsigned char)*name) &&
		    isalnum((unsigned char)*name))
			*to = (char)toupper((unsigned char)*name);
		to++;
	}
}

static void
put_header(struct mq_buf *text, const char *name, json_t *values)
{
	size_t start = text->len;

	if (strcasecmp(name, "traceparent") == 0) {
		mq_buf_addstr(text, "TRACEPARENT");
	} else {
		mq_buf_addstr(text, "MQ_HEADER_");
		put_header_name(text, name);
	}
	mq_buf_add(text, "=", 1);
	if (!json_is_array(values) || json_array_size(values) == 0 ||
	    !join_values(text, values))
		text->len = start;
}

static void
put_headers(struct mq_buf *text, const struct mq_envelope *e)
{
	const char *name;
	json_t *values;

	if (!json_is_object(e->headers))
		return;
	/* A history can be too long for a variable. */
	json_object_foreach(e->headers, name, values)
		if (strcmp(name, MQ_HEADER_HISTORY) != 0)
			put_header(text, name, values);
}

static void
put_params(struct mq_buf *text, const struct mq_envelope *e)
{
	static const char *const names[4][3] = {
	    {MQ_HEADER_PARAM "1", "MQ_PARAM1", "RQ_PARAM1"},
	    {MQ_HEADER_PARAM "2", "MQ_PARAM2", "RQ_PARAM2"},
	    {MQ_HEADER_PARAM "3", "MQ_PARAM3", "RQ_PARAM3"},
	    {MQ_HEADER_PARAM "4", "MQ_PARAM4", "RQ_PARAM4"}};
	const char *value;
	int i;

	for (i = 0; i < 4; i++) {
		value = mq_envelope_get(e, names[i][0]);
		if (value == NULL)
			value = "";
		put_string(text, names[i][1], value);
		put_string(text, names[i][2], value);
	}
}

/* A duplicate has that of its first ancestor. */
static void
put_origin(struct mq_buf *text, const struct environment *e,
    const struct run_info *run)
{
	const char *origin = mq_envelope_get(run->envelope, MQ_HEADER_ORIGIN);

	if (origin != NULL)
		put_string(text, "RQ_ORIG_MSG_ID", origin);
	else
		put_url(text, "RQ_ORIG_MSG_ID", e->host, run->queue, run->id);
}

/* A message to be relayed has a header with the URL, which names the queue. */
static void
put_dest(struct mq_buf *text, const struct environment *e,
    const struct run_info *run)
{
	const char *web = mq_envelope_get(run->envelope, MQ_HEADER_DEST);
	const char *there = web != NULL ? strstr(web, "/q/") : NULL;

	if (web != NULL)
		put_string(text, "RQ_DEST", web);
	else
		put_url(text, "RQ_DEST", e->host, run->queue, "");
	mq_buf_addstr(text, "RQ_DEST_QUEUE=");
	if (there != NULL)
		mq_buf_add(text, there + 3, strcspn(there + 3, "/"));
	else
		mq_buf_addstr(text, run->queue);
	mq_buf_add(text, "", 1);
}

/* Variables that are the same for every run. */
static void
put_fixed(
    struct mq_buf *text, const char *host, const char *script, int attempts)
{
	put_long(text, "MQ_ATTEMPTS", attempts);
	put_string(text, "MQ_WRITE", "3");
	put_string(text, "MQ_READ", "4");
	put_string(text, "RQ_VER", RQ_VERSION);
	put_string(text, "RQ_SCRIPT", script);
	put_url(text, "RQ_HOST", host, NULL, "");
	put_string(text, "RQ_PORT", "80");
	put_string(text, "RQ_WRITE", "3");
	put_string(text, "RQ_PIPE", "3");
	put_string(text, "RQ_READ", "4");
}

static void
put_message(struct mq_buf *text, const struct environment *e,
    const struct run_info *run)
{
	put_string(text, "MQ_ID", run->id);
	put_long(text, "MQ_ATTEMPT", run->attempts + 1);
	put_string(text, "RQ_MSG_ID", run->id);
	put_url(text, "RQ_FULL_MSG_ID", e->host, run->queue, run->id);
	put_origin(text, e, run);
	put_dest(text, e, run);
	put_long(text, "RQ_COUNT", run->attempts);
	put_params(text, run->envelope);
	put_headers(text, run->envelope);
}

/* Appends the strings of a text behind n strings of the list; returns their
 * number. */
static size_t
append_strings(struct environment *e, size_t n, const struct mq_buf *text)
{
	const char *end = text->data + text->len, *p;

	for (p = text->data; p < end; p += strlen(p) + 1) {
		if (n + 1 >= e->cap) {
			e->cap = 2 * e->cap + 64;
			e->list =
			    mq_xreallocarray(e->list, e->cap, sizeof(*e->list));
		}
		e->list[n++] = p;
	}
	e->list[n] = NULL;
	return n;
}

char *const *
environment_of(struct environment *e, const struct run_info *run,
    const char *real, const char *dir)
{
	struct mq_buf *text = &e->text;

	mq_buf_clear(text);
	put_string(text, "RQ_REALSCRIPT", real);
	put_string(text, "RQ_MSG_DIR", dir);
	if (run->queue != NULL)
		put_string(text, "MQ_QUEUE", run->queue);
	if (run->batch > 0)
		put_long(text, "MQ_BATCH", run->batch);
	if (run->id != NULL)
		put_message(text, e, run);
	append_strings(e, e->fixed_count, text);
	return (char *const *)(uintptr_t)e->list;
}

void
environment_init(struct environment *e, const char *script, int attempts)
{
	size_t n;

	for (n = 0; environ[n] != NULL; n++)
		;
	if (gethostname(e->host, sizeof(e->host) - 1) == -1)
		strlcpy(e->host, "localhost", sizeof(e->host));
	e->cap = n + 2;
	e->list = mq_xcalloc(e->cap, sizeof(*e->list));
	e->fixed_count = 0;
	for (n = 0; environ[n] != NULL; n++)
		if (!is_ours(environ[n]))
			e->list[e->fixed_count++] = environ[n];
	if (getenv("RQ_ENV") == NULL)
		e->list[e->fixed_count++] = "RQ_ENV=production";
	put_fixed(&e->fixed, e->host, script, attempts);
	e->fixed_count = append_strings(e, e->fixed_count, &e->fixed);
}

void
environment_end(struct environment *e)
{
	free(e->list);
	mq_buf_free(&e->fixed);
	mq_buf_free(&e->text);
}
