/* A list of names of connections or queues. */
#ifndef MQ_RMQ_NAMES_H
#define MQ_RMQ_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* One name, or a connection and a queue. */
struct rmq_name {
	char *name;
	char *queue; /* or NULL */
};

struct rmq_names {
	struct rmq_name *list;
	size_t n, cap;
};

/* Adds copies; queue may be NULL. */
void rmq_names_add(struct rmq_names *, const char *name, const char *queue);
/* Sorts by name, then queue, and drops what is there twice. */
void rmq_names_sort(struct rmq_names *);
/* Whether a sorted list has an entry with this name. */
bool rmq_names_have(const struct rmq_names *, const char *name);
void rmq_names_free(struct rmq_names *);

#endif
