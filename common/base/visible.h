/*
 * Text of several lines, made fit for a terminal.
 */
#ifndef MQ_VISIBLE_H
#define MQ_VISIBLE_H

#include "buf.h"

/* Appends n bytes as mq_visible() makes them fit; newlines and tabs stay. */
void mq_add_visible(struct mq_buf *, const char *p, size_t n);

#endif
