/* The password inside the text of a URL, which may be invalid or any other text. */
#ifndef MQ_PASSWORD_H
#define MQ_PASSWORD_H

#include <stddef.h>

/* Sets *start and *len, in bytes, to where the password is; both 0: there is none. */
void mq_password_find(const char *s, size_t *start, size_t *len);

/* Replaces the password, if there is one, by at most "***". */
void mq_password_hide(char *s);

#endif
