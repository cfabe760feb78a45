/*
 * The slot of a key, by which the nodes of a Redis Cluster share all keys: CRC16
 * (XMODEM) of the key, or of what is between its first { and the next }, if that is
 * not empty.
 */
#ifndef MQ_SLOT_H
#define MQ_SLOT_H

#include <stddef.h>

#define MQ_SLOTS 16384

/* The n bytes of the key may be anything. */
int mq_slot_of(const char *key, size_t n);
/* That of a namespace (NULL: none) in braces, which keeps all its keys there; else -1. */
int mq_slot_home(const char *ns);

#endif
