/*
 * The addresses of a host.  Asking the system for them can take minutes and cannot
 * be broken off, so a child asks, and is killed if that takes too long.
 */
#ifndef MQ_ADDRESS_H
#define MQ_ADDRESS_H

#include <sys/types.h>

#include <stdbool.h>

/* Bytes of an address as text, with the zone of an IPv6 address and the NUL. */
#define MQ_ADDRESS_SIZE 64

struct mq_addresses {
	const char *host; /* the caller's */
	int found;	  /* addresses so far */
	pid_t pid;	  /* the child; 0: none */
	int fd;		  /* the child writes what it finds */
	double until;	  /* the end of the search, steady seconds */
	char why[128];	  /* what went wrong, if none was found */
};

/* Whether the text is an address itself, so that there is nothing to ask. */
bool mq_address_is(const char *host);

/* Begins to look for the addresses of a host, at most until then. */
void mq_addresses_begin(struct mq_addresses *, const char *host, double until);

/*
 * Waits for the next address, of at most MQ_ADDRESS_SIZE bytes with its NUL; those
 * of IPv4 come first.  False: there are no more, or a signal came.
 */
bool mq_addresses_next(struct mq_addresses *, char *address);

void mq_addresses_end(struct mq_addresses *);

#endif
