/*
 * The environment of a script: the caller's, without what an outer consumer
 * put there, and for each message MQ_* and, for old scripts, RQ's RQ_*.
 * Nothing that a message says can make a name of its own: its headers only
 * ever become MQ_HEADER_…, and traceparent becomes TRACEPARENT.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "consume.h"
#include "message/headers.h"

extern char **environ;

#define RQ_VERSION "3.0.0"

/* Whether a variable of the caller's is one that we set. */
static bool
ours(const char *variable)
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
put(struct mq_buf *text, const char *name, const char *value)
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
	put(text, name, number);
}

/* name=prefix middle suffix */
static void
put_url(struct mq_buf *text, const char *name, const char *host,
    const char *queue, const char *id)
{
	mq_buf_addstr(text, name);
	mq_buf_addstr(text, "=http://");
	mq_buf_addstr(text, host);
	mq_buf_addstr(text, "/");
	if (queue != NULL) {
		mq_buf_addstr(text, "q/");
		mq_buf_addstr(text, queue);
		mq_buf_addstr(text, "/");
	}
	mq_buf_addstr(text, id);
	mq_buf_add(text, "", 1);
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
put_header(struct mq_buf *text, const char *name, json_t *values)
{
	size_t start = text->len;
	const char *p;
	char ch;

	if (strcasecmp(name, "traceparent") == 0) {
		mq_buf_addstr(text, "TRACEPARENT");
	} else {
		mq_buf_addstr(text, "MQ_HEADER_");
		for (p = name; *p != '\0'; p++) {
			ch = '_';
			if (isascii((unsigned char)*p) &&
			    isalnum((unsigned char)*p))
				ch = (char)toupper((unsigned char)*p);
			mq_buf_add(text, &ch, 1);
		}
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
	/* The history can be longer than a variable may be. */
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
		put(text, names[i][1], value);
		put(text, names[i][2], value);
	}
}

/* A duplicate has that of its first ancestor. */
static void
put_origin(struct mq_buf *text, const struct message *m)
{
	const char *origin = mq_envelope_get(&m->envelope, MQ_HEADER_ORIGIN);
	const char *queue = m->c->opt->queues[m->queue];

	if (origin != NULL)
		put(text, "RQ_ORIG_MSG_ID", origin);
	else
		put_url(text, "RQ_ORIG_MSG_ID", m->c->host, queue, m->id);
}

/* One to be relayed tells where to, and the queue there. */
static void
put_dest(struct mq_buf *text, const struct message *m)
{
	const char *web = mq_envelope_get(&m->envelope, MQ_HEADER_DEST);
	const char *queue = m->c->opt->queues[m->queue];
	const char *there = web != NULL ? strstr(web, "/q/") : NULL;
	char *name;

	if (web != NULL)
		put(text, "RQ_DEST", web);
	else
		put_url(text, "RQ_DEST", m->c->host, queue, "");
	name = there == NULL ? mq_xstrdup(queue) :
			       mq_xstrndup(there + 3, strcspn(there + 3, "/"));
	put(text, "RQ_DEST_QUEUE", name);
	free(name);
}

/* What every script is told, always the same. */
static void
put_fixed(struct mq_buf *text, const struct consumer *c)
{
	put_long(text, "MQ_ATTEMPTS", c->opt->attempts);
	put(text, "MQ_WRITE", "3");
	put(text, "MQ_READ", "4");
	put(text, "RQ_VER", RQ_VERSION);
	put(text, "RQ_SCRIPT", c->script);
	put_url(text, "RQ_HOST", c->host, NULL, "");
	put(text, "RQ_PORT", "80");
	put(text, "RQ_WRITE", "3");
	put(text, "RQ_PIPE", "3");
	put(text, "RQ_READ", "4");
}

/* What one is told that has one message. */
static void
put_message(struct mq_buf *text, const struct message *m)
{
	const struct consumer *c = m->c;

	put(text, "MQ_ID", m->id);
	put(text, "MQ_QUEUE", c->opt->queues[m->queue]);
	put_long(text, "MQ_ATTEMPT", m->attempts + 1);
	put(text, "RQ_MSG_ID", m->id);
	put_url(
	    text, "RQ_FULL_MSG_ID", c->host, c->opt->queues[m->queue], m->id);
	put_origin(text, m);
	put_dest(text, m);
	put_long(text, "RQ_COUNT", m->attempts);
	put_params(text, &m->envelope);
	put_headers(text, &m->envelope);
}

/* What one is told that has a batch of them. */
static void
put_batch(struct mq_buf *text, const struct slot *s)
{
	put(text, "MQ_QUEUE", s->c->opt->queues[slot_on(s)->queue]);
	put_long(text, "MQ_BATCH", s->count);
}

/* Appends the strings of a text to the first n of c->env; how many then. */
static size_t
append(struct consumer *c, size_t n, const struct mq_buf *text)
{
	const char *end = text->data + text->len;
	char *p;

	for (p = text->data; p < end; p += strlen(p) + 1) {
		if (n + 1 >= c->env_cap) {
			c->env_cap = 2 * c->env_cap + 64;
			c->env = mq_xreallocarray(
			    c->env, c->env_cap, sizeof(*c->env));
		}
		c->env[n++] = p;
	}
	c->env[n] = NULL;
	return n;
}

char **
env_for(const struct slot *s, const char *real, const char *dir)
{
	struct consumer *c = s->c;
	struct mq_buf *text = &c->env_text;

	mq_buf_clear(text);
	put(text, "RQ_REALSCRIPT", real);
	put(text, "RQ_MSG_DIR", dir);
	if (s->ones != NULL)
		put_batch(text, s);
	else if (slot_on(s) != NULL)
		put_message(text, slot_on(s));
	else if (c->opt->queue_count == 1)
		put(text, "MQ_QUEUE", c->opt->queues[0]);
	append(c, c->env_base, text);
	return c->env;
}

void
env_init(struct consumer *c)
{
	size_t n;

	for (n = 0; environ[n] != NULL; n++)
		;
	if (gethostname(c->host, sizeof(c->host) - 1) == -1)
		strlcpy(c->host, "localhost", sizeof(c->host));
	c->env_cap = n + 2;
	c->env = mq_xcalloc(c->env_cap, sizeof(*c->env));
	c->env_base = 0;
	for (n = 0; environ[n] != NULL; n++)
		if (!ours(environ[n]))
			c->env[c->env_base++] = environ[n];
	if (getenv("RQ_ENV") == NULL)
		c->env[c->env_base++] = (char *)(uintptr_t) "RQ_ENV=production";
	put_fixed(&c->env_fixed, c);
	c->env_base = append(c, c->env_base, &c->env_fixed);
}

void
env_end(struct consumer *c)
{
	free(c->env);
	mq_buf_free(&c->env_fixed);
	mq_buf_free(&c->env_text);
}
