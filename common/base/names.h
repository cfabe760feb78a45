/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* A list of names of connections, queues or messages. */
#ifndef MQ_NAMES_H
#define MQ_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A name alone, or a connection and a queue, or a message and a connection. */
struct mq_name {
	char *name;
	char *queue; /* or NULL */
};

struct mq_names {
	struct mq_name *list;
	size_t n, cap;
};

/* Adds copies; queue may be NULL. */
void mq_names_add(struct mq_names *, const char *name, const char *queue);
/* Adds a name of n bytes for display only: U+2400 stands for each NUL.  If the list is
 * NULL, nothing is added. */
void mq_names_add_odd(struct mq_names *, const char *name, size_t n);
/* Sorts by name, then queue, and drops duplicate entries. */
void mq_names_sort(struct mq_names *);
/* Whether a sorted list has an entry with this name. */
bool mq_names_have(const struct mq_names *, const char *name);
/* The *count entries with this name in a sorted list; NULL: there are none. */
const struct mq_name *mq_names_find(
    const struct mq_names *, const char *name, size_t *count);
void mq_names_free(struct mq_names *);

#endif
