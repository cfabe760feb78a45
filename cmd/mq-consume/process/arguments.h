/*
 * -I: the payload as an argument.  No shell sees it: a payload is part of one
 * argument, whatever its bytes are.
 */
#ifndef MQ_CONSUME_ARGUMENTS_H
#define MQ_CONSUME_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the token is in an argument behind the command's name. */
bool arguments_have(char *const *argv, const char *token);

/* Why no argument can hold these n bytes; NULL: one may. */
const char *arguments_refuse(const char *payload, size_t n);

/*
 * The command with the payload in place of each token, but for the command's name
 * and without one newline at the payload's end; allocated in one piece.  The payload
 * must be one that arguments_refuse() lets pass.  NULL with errno E2BIG: the
 * kernel takes no argument or no command line of that length.
 */
char **arguments_fill(
    char *const *argv, const char *token, const char *payload, size_t n);

#endif
