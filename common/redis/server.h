/*
 * The floor common/redis: URLs, servers, the private one included, connections that
 * wait or do not, commands, replies and scripts.  Nothing here knows of queues or spells
 * one of their keys.  Here: which server the tools talk to, and how to reach it.
 */
#ifndef MQ_SERVER_H
#define MQ_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* --- url ----------------------------------------------------------------- */

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

/* Whether a host is an address itself, so that there is nothing to ask. */
bool mq_address_is(const char *host);

/* --- server ------------------------------------------------------------ */

/* Bytes of an address as text, with the zone of an IPv6 address and the NUL. */
#define MQ_ADDRESS_SIZE 64

struct mq_server {
	struct mq_url url; /* with the password from wherever it was given */
	bool node;	   /* of a cluster: it is wanted as such */
	char name[256];	   /* for people; never has a password */
	char socket[108];  /* unix and private: the path; else empty */
	bool waits;	   /* private: if it was shut down, it is not started */
	char *layout;	   /* MQ_LAYOUT of the env file; NULL: none */
	char *layout_from; /* the file that has the URL; NULL: none */
	char note[512];	   /* what the user should know; empty: nothing */
	char error[512];   /* why a function below has failed */
	/* redis, sentinel, cluster: the address in the URL, or where a connection was
	 * made to last, and the name or address that stood for it; else empty */
	char host[256];
	char address[MQ_ADDRESS_SIZE];
	int port;
	/* sentinel: which of them answered last, and where */
	size_t sentinel;
	char sentinel_address[MQ_ADDRESS_SIZE];
	char *sentinel_password; /* of the sentinels themselves; NULL: none */
	int failover_s; /* how long a failover is waited for; 0: as usual */
};

/*
 * Finds the server: the URL given (from -u; may be NULL), else MQ_URL, else
 * an MQ_URL= line in $XDG_CONFIG_HOME/mq/env (~/.config/mq/env), then in
 * /etc/mq/env, else the private server.  A password that the URL lacks comes
 * from the file MQ_PASSWORD_FILE names, else from REDISCLI_AUTH; a file that
 * gives the URL can give these two and the layout as well, for that server.  The
 * sentinels' own password is in the file that MQ_SENTINEL_PASSWORD_FILE names.
 * Contacts nothing.  Returns 0, or an mq_exit status with one line in server->error.
 */
int mq_server_find(struct mq_server *, const char *url);

/* The server of this URL, and with no other password than that in it; but sentinels that
 * are those of a server that is known get their password, if no less TLS protects it. */
int mq_server_at(
    struct mq_server *, const char *url, const struct mq_server *known);

/* Whether the disk of a private server, which ends when it is full, has room for a write
 * of this many bytes: 0, or MQ_EXIT_IO with one line in error.  The disks of all others
 * are unknown: 0. */
int mq_server_room(
    const struct mq_server *, size_t bytes, char *error, size_t error_size);

void mq_server_free(struct mq_server *);

/* --- tls ----------------------------------------------------------------- */

#ifdef MQ_TLS
#define MQ_TLS_FEATURES "tls"
#define MQ_TLS_MISSING	NULL
#else
#define MQ_TLS_FEATURES "none"
/* Why this build cannot use a URL with TLS. */
#define MQ_TLS_MISSING                                                         \
	"this build does not support TLS, which needs hiredis_ssl "            \
	"(hiredis 1.0 or newer) and OpenSSL 3"
#endif

/* OpenSSL's side of a connection; NULL: the connection is plain. */
typedef struct ssl_st mq_tls;

/* Each error of TLS begins so: it waits for somebody to mend it. */
#define MQ_TLS_ERROR "TLS: "
/* Room for its text. */
#define MQ_TLS_WHY 256

#endif
