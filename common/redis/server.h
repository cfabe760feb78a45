/*
 * Which server, and where.
 */
#ifndef MQ_SERVER_H
#define MQ_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "url.h"

/* Bytes of an address as text, with the zone of an IPv6 address and the NUL. */
#define MQ_ADDRESS_SIZE 64

/* --- server ------------------------------------------------------------ */

/*
 * The floor common/redis: URLs, servers, the private one included, connections that
 * wait or do not, commands, replies and scripts.  Files here may call common/message,
 * common/base and hiredis.  Nothing here knows of queues or spells one of their keys.
 * Callers in cmd/ may use servers, URLs and connections, but no commands or replies.
 *
 * Which server the tools talk to, and how to reach it.
 */

struct mq_server {
	struct mq_url url; /* with the password from wherever it was given */
	char name[256];	   /* for people; never has a password */
	char socket[108];  /* unix and private: the path; else empty */
	bool waits;	   /* private: if it was shut down, it is not started */
	char *layout;	   /* MQ_LAYOUT of the env file; NULL: none */
	char *layout_from; /* which file that is; NULL without */
	char note[512];	   /* what the user should know; empty: nothing */
	/* redis, sentinel, cluster: where a connection was made to last, and the name or
	 * address that stood for it; else empty */
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
 * Contacts nothing.  Returns 0, or an mq_exit status with one line in error.
 */
int mq_server_find(
    struct mq_server *, const char *url, char *error, size_t error_size);

/*
 * The server of this URL, and with no other password than that in it; but sentinels that
 * are those of a server that is known get their password, if no less TLS protects it.
 */
int mq_server_at(struct mq_server *, const char *url,
    const struct mq_server *known, char *error, size_t error_size);

/*
 * Makes the server reachable: starts the private one when it does not run.
 * May take as long as that takes.  Returns 0, or an mq_exit status with one
 * line in error.
 */
int mq_server_wake(struct mq_server *, char *error, size_t error_size);

/*
 * Whether the disk of a private server, which ends when it is full, has room for a
 * write of this many bytes: 0, or MQ_EXIT_IO with one line in error.  For all other
 * servers, whose disks are unknown, 0.
 */
int mq_server_room(
    const struct mq_server *, size_t bytes, char *error, size_t error_size);

void mq_server_free(struct mq_server *);

#endif
