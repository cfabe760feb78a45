/* For tls.c and tls-cause.c: what went wrong with TLS, as a text. */
#ifndef MQ_TLS_CAUSE_H
#define MQ_TLS_CAUSE_H

#include <stddef.h>

/* Where the text goes. */
struct mq_tls_cause {
	char *text;
	size_t size;
};

/* Writes the text, behind "TLS: ".  Returns the status. */
int mq_tls_blame(const struct mq_tls_cause *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
