/* What the log of the private server says about its end. */
#ifndef MQ_PRIVATE_LOG_H
#define MQ_PRIVATE_LOG_H

#include "place.h"

/* The last line of the log since log_start, without its stamp; "" if none. */
char *private_last_words(struct place *, char *text, size_t size);

/* The server ended before it answered: a status, with the reason from its log. */
int private_did_not_start(struct place *);

#endif
