/* --http: one POST becomes options and a payload on stdin. */
#ifndef PUBLISH_POST_H
#define PUBLISH_POST_H

#include "options.h"

/* Receives a request.  Returns in a child process, with what its headers say in the
 * options and its body on stdin; the program itself answers and ends. */
void post_serve(struct options *);

#endif
