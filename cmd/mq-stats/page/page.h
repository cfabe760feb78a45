/* The parts of the page of mq-stats --html that are files of their own, and
 * their SHA-256 in base64.  Made by embed.sh. */
#ifndef MQ_PAGE_H
#define MQ_PAGE_H

extern const char page_css[], page_css_sha256[];
extern const char page_js[], page_js_sha256[];

#endif
