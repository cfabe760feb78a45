/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The floor common/redis: URLs, servers, the private one included, connections that
 * wait or do not, commands, replies and scripts; but no queues and no names of keys.  This
 * header: the server that the tools talk to, and how to reach it.
 */
#ifndef MQ_SERVER_H
#define MQ_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* --- url ----------------------------------------------------------------- */

/*
 * The URL of a server:
 *
 *   redis://[user[:password]@]host[:port][/db]
 *   redis://:password@host is a password without a user; IPv6 hosts in [].
 *   unix:///path/redis.sock[?db=N]                 (user:password@ allowed)
 *   redis-cluster://[user[:password]@]host[:port][,host[:port]...]
 *   redis-sentinel://[user[:password]@]host[:port][,...]/master-name[/db]
 *   rediss://  rediss-cluster://  rediss-sentinel://    the same through TLS
 *   private:[DIR]
 *
 * Parameters may follow each: ?layout=NAME&ns=NAME, unchecked here, for the layout of keys
 * and its namespace; with TLS also cacert=FILE, cert=FILE, key=FILE, sni=NAME, insecure=1.
 *
 * %XX is decoded in user, password, path and parameters; an empty user or
 * password counts as not given.  The authority ends at the first slash and the
 * user at its last @, so a slash in a password is written %2F.
 */

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
	char *user, *password;	   /* NULL when not given */
	struct mq_url_host *hosts; /* redis: one; cluster, sentinel: some */
	size_t hosts_n;
	char *path; /* unix: socket; private: DIR or NULL; sentinel: name */
	int db;	    /* 0 when not given */
	char *layout, *ns; /* NULL when not given */
	bool tls;
	/* Only with tls: */
	char *cacert, *cert, *key; /* files; NULL when not given */
	char *sni;     /* the certificate's name, if not the host's; or NULL */
	bool insecure; /* the certificate is not verified */
};

/* Fills *u, which mq_url_free() releases.  Returns 0, or -1 with *why set to a constant
 * text that never holds any part of s (s may hold a password); *u is then empty. */
int mq_url_parse(const char *s, struct mq_url *u, const char **why);
void mq_url_free(struct mq_url *u);

/* Writes the URL for people: no user, no password, no defaults.  Truncates at size. */
void mq_url_show(const struct mq_url *u, char *out, size_t size);

/* Whether a host is an address already, and not a name. */
bool mq_address_is(const char *host);

/* --- server ------------------------------------------------------------ */

/* Bytes of an address as text, with the zone of an IPv6 address and the NUL. */
#define MQ_ADDRESS_SIZE 64

struct mq_server {
	struct mq_url url; /* with the password, wherever it was given */
	bool node;	   /* a node of a cluster is expected */
	char name[256];	   /* for people; never has a password */
	char socket[108];  /* unix and private: the path; else empty */
	bool waits;	   /* private: not started if it was shut down */
	char *layout;	   /* MQ_LAYOUT of the env file; NULL: none */
	char *layout_from; /* the file with the URL; NULL: none */
	char note[512];	   /* warning for the user; or empty */
	char error[512];   /* cause if a function below fails */
	/* redis, sentinel, cluster: the last connection, or the address in the URL; host is
	 * its name or address.  Else empty. */
	char host[256];
	char address[MQ_ADDRESS_SIZE];
	int port;
	/* The sentinel that answered last: index of its host in the URL, and address. */
	size_t sentinel;
	char sentinel_address[MQ_ADDRESS_SIZE];
	char *sentinel_password; /* for the sentinels themselves; NULL: none */
	int failover_s; /* longest wait for a failover in seconds; 0: 30 */
};

/*
 * Finds the server: the URL given (from -u; may be NULL), else MQ_URL, else
 * an MQ_URL= line in $XDG_CONFIG_HOME/mq/env (~/.config/mq/env), then in
 * /etc/mq/env, else the private server.  If the URL has no password, it is read from the
 * file named by MQ_PASSWORD_FILE, else from REDISCLI_AUTH; the sentinels' own password from
 * the file named by MQ_SENTINEL_PASSWORD_FILE.  An env file with a URL can set these, and
 * the layout, for its server.  Contacts nothing.  Returns 0, or an mq_exit status with one
 * line in server->error.
 */
int mq_server_find(struct mq_server *, const char *url);

/* The server of this URL, with no other password than the URL's.  Sentinels that the known
 * server has as well get their password, if TLS protects it no less. */
int mq_server_at(
    struct mq_server *, const char *url, const struct mq_server *known);

/* Whether a private server's disk has room for a write of `bytes`: 0, or MQ_EXIT_IO with one
 * line in error.  A private server ends when its disk is full.  Other servers' disks are not
 * known: 0. */
int mq_server_room(
    const struct mq_server *, size_t bytes, char *error, size_t error_size);

void mq_server_free(struct mq_server *);

/* --- tls ----------------------------------------------------------------- */

#ifdef MQ_TLS
#define MQ_TLS_FEATURES "tls"
#define MQ_TLS_MISSING	NULL
#else
#define MQ_TLS_FEATURES "none"
#define MQ_TLS_MISSING                                                         \
	"this build does not support TLS, which needs hiredis_ssl "            \
	"(hiredis 1.0 or newer) and OpenSSL 3"
#endif

/* OpenSSL's side of a connection; NULL: the connection is plain. */
typedef struct ssl_st mq_tls;

/* Each error of TLS begins so; trying again does not help. */
#define MQ_TLS_ERROR "TLS: "
#define MQ_TLS_WHY   256 /* bytes for its text */

#endif
