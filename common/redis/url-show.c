#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/percent.h"
#include "url.h"

static bool
is_ipv6(const char *host)
{
	return strchr(host, ':') != NULL;
}

static void
show_hosts(struct mq_buf *out, const struct mq_url *u)
{
	int port = mq_url_scheme(u)->port;
	size_t i;

	for (i = 0; i < u->hosts_n; i++) {
		mq_buf_printf(out, "%s%s%s%s", i > 0 ? "," : "",
		    is_ipv6(u->hosts[i].name) ? "[" : "", u->hosts[i].name,
		    is_ipv6(u->hosts[i].name) ? "]" : "");
		if (u->hosts[i].port != port)
			mq_buf_printf(out, ":%d", u->hosts[i].port);
	}
}

/* Behind the hosts of a sentinel stands a slash. */
static void
show_path(struct mq_buf *out, const struct mq_url *u)
{
	bool sentinel = u->kind == MQ_URL_SENTINEL;
	char *path;

	if (u->path == NULL)
		return;
	path = mq_percent_encode(u->path, sentinel ? "%/?" : "%?");
	mq_buf_printf(out, "%s%s", sentinel ? "/" : "", path);
	free(path);
}

/* Appends a parameter, if it has a value: behind a '?', or one more. */
static void
show_parameter(struct mq_buf *out, const char *name, const char *value)
{
	char *text;

	if (value == NULL)
		return;
	/* Right behind a host, an @ would make it a user. */
	text = mq_percent_encode(value, "%&@");
	mq_buf_printf(out, "%c%s%s",
	    memchr(out->data, '?', out->len) != NULL ? '&' : '?', name, text);
	free(text);
}

void
mq_url_show(const struct mq_url *u, char *out, size_t size)
{
	const struct mq_url_text *p;
	struct mq_buf text = {0};
	char db[16];

	snprintf(db, sizeof(db), "%d", u->db);
	mq_buf_printf(&text, "%s", mq_url_scheme(u)->prefix);
	show_hosts(&text, u);
	show_path(&text, u);
	if (u->kind == MQ_URL_UNIX && u->db != 0)
		show_parameter(&text, "db=", db);
	else if (u->db != 0)
		mq_buf_printf(&text, "/%s", db);
	for (p = mq_url_texts; p->name != NULL; p++)
		show_parameter(&text, p->name, *mq_url_text(u, p));
	if (u->insecure)
		show_parameter(&text, "insecure=", "1");
	snprintf(out, size, "%s", mq_buf_str(&text));
	mq_buf_free(&text);
}
