/*
 * TLS on a connection of hiredis, for builds with hiredis_ssl.  A build without has these
 * functions, too: mq_tls_start() fails.
 */
#ifndef MQ_TLS_H
#define MQ_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "url.h"

#ifdef MQ_TLS
#define MQ_TLS_FEATURES "tls"
#else
#define MQ_TLS_FEATURES "none"
#endif

/* OpenSSL's side of a connection; NULL: the connection is plain. */
typedef struct ssl_st mq_tls;

/* From now on OpenSSL allocates as xalloc.h says. */
void mq_tls_memory(void);

/* Why a build without TLS cannot use such a URL; NULL: a build with TLS. */
const char *mq_tls_missing(void);

/*
 * Begins TLS, on a connection that does not block, with the files of the URL, which are
 * read each time.  The server's certificate must be for the URL's sni, or else for host, a name
 * or an address.  Returns 0 and *tls, for mq_tls_free(), or an mq_exit status with why.
 */
int mq_tls_start(mq_tls **tls, redisContext *, const struct mq_url *,
    const char *host, char *why, size_t size);

/* Goes on with the handshake: 0 when it is over, -1 as long as it is not; else the status,
 * with why.  (A connection of libev goes on by itself.) */
int mq_tls_shake(mq_tls *, char *why, size_t size);

/*
 * The cause of the failure that the connection has just had, in why: TLS has more to say
 * than the library.  Early: the server has ended it without any answer.  Returns the
 * mq_exit status; 0: TLS knows of none.
 */
int mq_tls_failure(mq_tls *, bool early, char *why, size_t size);

/* Whether a text is from here: it waits for somebody to mend it. */
bool mq_tls_says(const char *why);

/* Whether the handshake is over, or none is needed. */
bool mq_tls_ready(const mq_tls *);

/* Whether the last operation stopped only because the socket takes no more. */
bool mq_tls_wants_room(const mq_tls *);

/* Lets go of it; the connection is closed by its owner. */
void mq_tls_free(mq_tls *);

#endif
