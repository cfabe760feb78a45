/* --html: everything on one page.  The model has connections, runs, and what was
 * rejected. */
#ifndef MQ_STATS_HTML_H
#define MQ_STATS_HTML_H

#include "model.h"

/* refresh: seconds after which the page reads itself again, 0: it does not. */
void html_print(const struct model *, long refresh);

#endif
