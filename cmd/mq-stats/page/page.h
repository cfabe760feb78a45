/* The parts of the page of mq-stats --html that are files of their own, and what it
 * may load and run.  Made by embed.sh. */
#ifndef MQ_PAGE_H
#define MQ_PAGE_H

extern const char page_css[], page_js[];

/* The Content-Security-Policy: on the page, and in the header of whoever serves it. */
extern const char page_policy[];

#endif
