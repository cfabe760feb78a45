/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "dup.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "message/verdict.h"

/* Beginnings of a DEST that is a URL. */
static const char *const web[] = {"http://", "https://", NULL};
static const char *const remotes[] = {"redis://", "rediss://", "unix://",
    "redis-cluster://", "rediss-cluster://", "redis-sentinel://",
    "rediss-sentinel://", "private:", NULL};

static bool
begins_with_any(const char *s, const char *const *prefixes)
{
	for (; *prefixes != NULL; prefixes++)
		if (strncmp(s, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return false;
}

/* The last ?queue= or &queue= in a text, or NULL. */
static const char *
find_queue(const char *s)
{
	static const char name[] = "queue=";
	const char *p, *found = NULL;

	for (p = s; (p = strpbrk(p, "?&")) != NULL; p++)
		if (strncmp(p + 1, name, sizeof(name) - 1) == 0)
			found = p;
	return found;
}

static char *
without_password(const char *s)
{
	char *out = mq_xstrdup(s);

	mq_password_hide(out);
	return out;
}

static const char *
parse_remote(const char *dest, struct mq_dup *d)
{
	const char *at = find_queue(dest), *hidden = find_queue(d->shown), *why;
	struct mq_url u;
	char name[256], *rest;

	/* queue= in a password does not count. */
	if (at == NULL || hidden == NULL)
		return "the URL of a server is followed by ?queue=NAME";
	d->remote = mq_xstrndup(dest, (size_t)(at - dest));
	if (mq_url_parse(d->remote, &u, &why) == -1)
		return why;
	mq_url_show(&u, name, sizeof(name));
	d->layout = u.layout;
	d->ns = u.ns;
	u.layout = u.ns = NULL;
	mq_url_free(&u);
	/* NAME may be a URL by mistake, with a password. */
	rest = without_password(hidden + 1);
	free(d->shown);
	d->shown = mq_xasprintf(
	    "%s%c%s", name, strchr(name, '?') != NULL ? '&' : '?', rest);
	free(rest);
	at += strlen("?queue=");
	why = mq_percent_decode(at, strlen(at), &d->queue);
	if (why == NULL && d->queue == NULL)
		d->queue = mq_xstrdup("");
	return why;
}

const char *
mq_dup_parse(const char *text, struct mq_dup *d)
{
	const char *dest = strchr(text, '-');

	dest = dest != NULL ? strchr(dest + 1, '-') : NULL;
	*d = (struct mq_dup){.due_s = mq_verb_due(text),
	    .shown = without_password(dest != NULL ? dest + 1 : "")};
	if (dest == NULL)
		return "dup is followed by DUE-X-DEST";
	dest++;
	if (begins_with_any(dest, remotes))
		return parse_remote(dest, d);
	if (!begins_with_any(dest, web)) {
		d->queue = mq_xstrdup(dest);
		return NULL;
	}
	/* The header would show the password to everybody. */
	if (strcmp(dest, d->shown) != 0)
		return "an http URL with a password cannot be passed on";
	d->web = mq_xstrdup(dest);
	d->queue = mq_xstrdup(MQ_DUP_RELAY);
	return NULL;
}

void
mq_dup_free(struct mq_dup *d)
{
	if (d->remote != NULL)
		explicit_bzero(d->remote, strlen(d->remote));
	free(d->remote);
	free(d->queue);
	free(d->layout);
	free(d->ns);
	free(d->web);
	free(d->shown);
	*d = (struct mq_dup){0};
}
