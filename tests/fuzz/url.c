/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * URLs: what is shown of one parses as the same but for user and password, no
 * password is shown or stays in the text that was hidden, and none in what a
 * dup is shown as.
 */
#include "redis/server.h"

#include "base/text.h"
#include "fuzz.h"
#include "queue/dup.h"

/* No URL that the target makes has it in any other place. */
#define SECRET "\x01s3cret\x02"

/* The text with another password in the place of its own, or NULL. */
static char *
with_secret(const char *s)
{
	size_t start, len;

	mq_password_find(s, &start, &len);
	assert(start + len <= strlen(s));
	if (len == 0)
		return NULL;
	return mq_xasprintf("%.*s%s%s", (int)start, s, SECRET, s + start + len);
}

static void
hide(char *s)
{
	mq_password_hide(s);
	assert(strstr(s, SECRET) == NULL);
}

static void
show(const char *s)
{
	struct mq_url u, again;
	char *text, *twice, *secret = with_secret(s);
	size_t size = strlen(s) * 3 + 64;
	const char *why = NULL;
	size_t i;

	if (mq_url_parse(s, &u, &why) == -1) {
		assert(why != NULL && u.hosts == NULL && u.password == NULL);
		free(secret);
		return;
	}
	/* What parses as a password is found as one. */
	assert(u.password == NULL || secret != NULL);
	text = mq_xcalloc(size, 1);
	twice = mq_xcalloc(size, 1);
	mq_url_show(&u, text, size);
	assert(strlen(text) < size - 1);
	assert(mq_url_parse(text, &again, &why) == 0);
	assert(again.kind == u.kind && again.db == u.db && again.user == NULL &&
	    again.password == NULL && fuzz_same(again.path, u.path));
	assert(again.tls == u.tls && again.insecure == u.insecure &&
	    fuzz_same(again.cacert, u.cacert) &&
	    fuzz_same(again.cert, u.cert) && fuzz_same(again.key, u.key) &&
	    fuzz_same(again.sni, u.sni));
	assert(again.hosts_n == u.hosts_n);
	for (i = 0; i < u.hosts_n; i++)
		assert(again.hosts[i].port == u.hosts[i].port &&
		    strcmp(again.hosts[i].name, u.hosts[i].name) == 0);
	assert(fuzz_same(again.layout, u.layout) && fuzz_same(again.ns, u.ns));
	mq_url_show(&again, twice, size);
	assert(strcmp(text, twice) == 0);
	mq_url_show(&u, twice, 8);
	assert(strlen(twice) < 8);
	mq_url_free(&u);
	mq_url_free(&again);
	free(text);
	free(twice);
	free(secret);
}

static void
dup_to(const char *s)
{
	char *text = mq_xasprintf("1-x-%s", s), *secret = with_secret(text);
	struct mq_dup d;

	if (secret != NULL) {
		(void)mq_dup_parse(secret, &d);
		assert(strstr(d.shown, SECRET) == NULL);
		assert(d.web == NULL || strstr(d.web, SECRET) == NULL);
		mq_dup_free(&d);
		hide(secret);
	}
	free(secret);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	char *s = fuzz_string(&in, n);

	if (strstr(s, SECRET) == NULL) {
		show(s);
		dup_to(s);
	}
	free(s);
	return 0;
}
