#include "process.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "message/headers.h"

extern char **environ;

#define RQ_VERSION "3.0.0"

/* Whether an inherited variable is one that we set. */
static bool
is_ours(const char *variable)
{
	static const char *const names[] = {
	    "MQ_ID=", "MQ_QUEUE=", "MQ_BATCH=", "MQ_ATTEMPT=", "MQ_ATTEMPTS=",
	    "MQ_WRITE=", "MQ_READ=", "MQ_HEADER_", "MQ_PARAM1=", "MQ_PARAM2=",
	    "MQ_PARAM3=", "MQ_PARAM4=", "TRACEPARENT=", "MQ_ATTACH_DIR="};
	size_t i;

	if (strncmp(variable, "RQ_", 3) == 0)
		return strncmp(variable, "RQ_ENV=", 7) != 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Without printf(3): each run has many of these. */
static void
put_bytes(struct mq_buf *text, const char *name, const char *value, size_t len)
{
	size_t n = strlen(name);
	char *to = mq_buf_reserve(text, n + len + 2);

	memcpy(to, name, n);
	to[n] = '=';
	memcpy(to + n + 1, value, len);
	to[n + 1 + len] = '\0';
	text->len += n + len + 2;
}

static void
put_string(struct mq_buf *text, const char *name, const char *value)
{
	put_bytes(text, name, value, strlen(value));
}

static void
put_long(struct mq_buf *text, const char *name, long value)
{
	mq_buf_printf(text, "%s=%ld", name, value);
	mq_buf_add(text, "", 1);
}

/* Every value, joined as HTTP does; nothing when one has a NUL. */
static void
put_header(struct mq_buf *text, const char *name, json_t *values)
{
	bool fits = json_is_array(values) && json_array_size(values) > 0;
	size_t start = text->len, i;
	json_t *value;
	char *to;

	/* A history can be too long for a variable. */
	if (strcmp(name, MQ_HEADER_HISTORY) == 0)
		return;
	if (strcasecmp(name, "traceparent") == 0) {
		mq_buf_addstr(text, "TRACEPARENT");
	} else {
		mq_buf_addstr(text, "MQ_HEADER_");
		to = mq_buf_reserve(text, strlen(name));
		for (; *name != '\0'; name++, text->len++)
			*to++ = isascii((unsigned char)*name) &&
				isalnum((unsigned char)*name) ?
			    (char)toupper((unsigned char)*name) :
			    '_';
	}
	mq_buf_add(text, "=", 1);
	json_array_foreach(values, i, value) {
		fits = fits &&
		    strlen(json_string_value(value)) ==
			json_string_length(value);
		if (i > 0)
			mq_buf_addstr(text, ", ");
		mq_buf_add(
		    text, json_string_value(value), json_string_length(value));
	}
	mq_buf_add(text, "", 1);
	if (!fits)
		text->len = start;
}

static void
put_message(struct mq_buf *text, const struct environment *e,
    const struct message *m, const char *files)
{
	static const char *const params[][3] = {
	    {MQ_HEADER_PARAM "1", "MQ_PARAM1", "RQ_PARAM1"},
	    {MQ_HEADER_PARAM "2", "MQ_PARAM2", "RQ_PARAM2"},
	    {MQ_HEADER_PARAM "3", "MQ_PARAM3", "RQ_PARAM3"},
	    {MQ_HEADER_PARAM "4", "MQ_PARAM4", "RQ_PARAM4"}};
	const char *origin = mq_envelope_get(&m->envelope, MQ_HEADER_ORIGIN);
	/* A message to be relayed has a header with the URL, which names the queue. */
	const char *dest = mq_envelope_get(&m->envelope, MQ_HEADER_DEST);
	const char *there = dest != NULL ? strstr(dest, "/q/") : NULL;
	const char *name = there != NULL ? there + 3 : m->queue_name, *value;
	char *queue = mq_xasprintf("http://%s/q/%s/", e->host, m->queue_name);
	char *url = mq_xasprintf("%s%s", queue, m->id);
	json_t *values;
	size_t i;

	put_string(text, "MQ_ID", m->id);
	put_long(text, "MQ_ATTEMPT", m->attempts + 1);
	put_string(text, "RQ_MSG_ID", m->id);
	if (files != NULL)
		put_string(text, "MQ_ATTACH_DIR", files);
	put_string(text, "RQ_FULL_MSG_ID", url);
	put_string(text, "RQ_ORIG_MSG_ID", origin != NULL ? origin : url);
	put_string(text, "RQ_DEST", dest != NULL ? dest : queue);
	put_bytes(text, "RQ_DEST_QUEUE", name,
	    there != NULL ? strcspn(name, "/") : strlen(name));
	put_long(text, "RQ_COUNT", m->attempts);
	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		value = mq_envelope_get(&m->envelope, params[i][0]);
		put_string(text, params[i][1], value != NULL ? value : "");
		put_string(text, params[i][2], value != NULL ? value : "");
	}
	json_object_foreach(m->envelope.headers, name, values)
		put_header(text, name, values);
	if (message_is_stamped(m))
		put_string(text, "MQ_HEADER_MQ_ID", m->id);
	free(queue);
	free(url);
}

char *const *
environment_of(struct environment *e, const struct run_info *run,
    const char *script, const char *real, const char *dir)
{
	struct mq_buf *text = &e->text;
	size_t n = e->inherited;
	const char *p;

	mq_buf_clear(text);
	put_string(text, "MQ_WRITE", "3");
	put_string(text, "MQ_READ", "4");
	put_string(text, "RQ_VER", RQ_VERSION);
	put_string(text, "RQ_SCRIPT", script);
	mq_buf_printf(text, "RQ_HOST=http://%s/", e->host);
	mq_buf_add(text, "", 1);
	put_string(text, "RQ_PORT", "80");
	put_string(text, "RQ_WRITE", "3");
	put_string(text, "RQ_PIPE", "3");
	put_string(text, "RQ_READ", "4");
	put_long(text, "MQ_ATTEMPTS", run->attempts_max);
	put_string(text, "RQ_REALSCRIPT", real);
	put_string(text, "RQ_MSG_DIR", dir);
	if (run->batch > 0)
		put_long(text, "MQ_BATCH", run->batch);
	if (run->queue != NULL)
		put_string(text, "MQ_QUEUE", run->queue);
	if (run->message != NULL && run->batch == 0)
		put_message(text, e, run->message, run->files);
	for (p = text->data; p < text->data + text->len; p += strlen(p) + 1) {
		if (n + 1 >= e->cap) {
			e->cap = 2 * e->cap + 64;
			e->list =
			    mq_xreallocarray(e->list, e->cap, sizeof(*e->list));
		}
		e->list[n++] = p;
	}
	e->list[n] = NULL;
	return (char *const *)(uintptr_t)e->list;
}

void
environment_init(struct environment *e)
{
	size_t n;

	for (n = 0; environ[n] != NULL; n++)
		;
	if (gethostname(e->host, sizeof(e->host) - 1) == -1)
		strlcpy(e->host, "localhost", sizeof(e->host));
	e->cap = n + 2;
	e->list = mq_xcalloc(e->cap, sizeof(*e->list));
	for (n = 0; environ[n] != NULL; n++)
		if (!is_ours(environ[n]))
			e->list[e->inherited++] = environ[n];
	if (getenv("RQ_ENV") == NULL)
		e->list[e->inherited++] = "RQ_ENV=production";
}
