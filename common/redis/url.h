/*
 * Where a server is, as a URL:
 *
 *   redis://[user[:password]@]host[:port][/db]
 *   redis://:password@host is a password without a user; IPv6 hosts in [].
 *   unix:///path/redis.sock[?db=N]                 (user:password@ allowed)
 *   redis-cluster://[user[:password]@]host[:port][,host[:port]...]
 *   redis-sentinel://[user[:password]@]host[:port][,...]/master-name[/db]
 *   rediss://  rediss-cluster://  rediss-sentinel://    the same through TLS
 *   private:[DIR]
 *
 * Behind each there may be parameters, ?layout=NAME&ns=NAME: the layout of its
 * keys, and their namespace if the layout has namespaces.  Both are not checked here.
 * Through TLS there may be cacert=FILE, cert=FILE, key=FILE, sni=NAME and insecure=1.
 *
 * %XX is decoded in user, password, path and parameters; an empty user or
 * password counts as not given.  The authority ends at the first slash and the
 * user at its last @, so a slash in a password is written %2F.
 */
#ifndef MQ_URL_H
#define MQ_URL_H

#include <stdbool.h>
#include <stddef.h>

enum mq_url_kind {
	MQ_URL_REDIS,
	MQ_URL_UNIX,
	MQ_URL_CLUSTER,
	MQ_URL_SENTINEL,
	MQ_URL_PRIVATE
};

struct mq_url_host {
	char *name; /* without [] */
	int port;   /* as given, else 6379, and of a sentinel 26379 */
};

struct mq_url {
	enum mq_url_kind kind;
	char *user;		   /* NULL when not given */
	char *password;		   /* NULL when not given */
	struct mq_url_host *hosts; /* redis: one; cluster, sentinel: at least
				    * one; else NULL */
	size_t hosts_n;
	char *path;   /* unix: socket; private: DIR or NULL; sentinel: name */
	int db;	      /* 0 when not given */
	char *layout; /* NULL when not given */
	char *ns;     /* NULL when not given */
	bool tls;
	/* Only with tls: */
	char *cacert; /* files; NULL when not given */
	char *cert;
	char *key;
	char *sni;     /* the name that the certificate must have, instead of
			* the host's; NULL when not given */
	bool insecure; /* the certificate is not verified */
};

/*
 * Fills *u, which mq_url_free() releases.  Returns 0, or -1 with *why set to
 * a constant text that never holds any part of s (s may hold a password);
 * *u is then empty.
 */
int mq_url_parse(const char *s, struct mq_url *u, const char **why);
void mq_url_free(struct mq_url *u);

/*
 * Writes the URL for people: no user, no password, no defaults.  Truncates at
 * size.  u has been parsed.
 */
void mq_url_show(const struct mq_url *u, char *out, size_t size);

/* Whether a host is an address itself, so that there is nothing to ask. */
bool mq_address_is(const char *host);

#endif
