/* For url.c and url-show.c: the names in a URL. */
#ifndef MQ_URL_PARTS_H
#define MQ_URL_PARTS_H

#include "url.h"

struct mq_url_scheme {
	const char *prefix; /* NULL: behind the last one */
	enum mq_url_kind kind;
	bool tls;
	int port; /* of a host without one; 0: there are no hosts */
};

extern const struct mq_url_scheme mq_url_schemes[];

const struct mq_url_scheme *mq_url_scheme(const struct mq_url *);

/* A parameter whose value is a text. */
struct mq_url_text {
	const char *name; /* with its =; NULL: behind the last one */
	size_t at;	  /* its member of struct mq_url */
	bool tls;	  /* only known with TLS */
};

extern const struct mq_url_text mq_url_texts[];

/* The member of the URL. */
char **mq_url_text(const struct mq_url *, const struct mq_url_text *);

#endif
