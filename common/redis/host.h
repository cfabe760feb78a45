/* A host and its port, as a URL names them: "name", "name:port", "[IPv6]:port". */
#ifndef MQ_HOST_H
#define MQ_HOST_H

#include <stddef.h>

/*
 * Splits the n bytes at s, behind which no digit follows.  The host, without [], is
 * the *len bytes at *host; *port stays unchanged if none is given.  Returns NULL, or
 * a constant text that says what is wrong.
 */
const char *mq_host_parse(
    const char *s, size_t n, const char **host, size_t *len, int *port);

#endif
