/*
 * The file mq/env, which says where the server is: lines NAME=VALUE as sh(1)
 * and systemd(1) read them.  Blanks may stand around the '=', "export" before
 * the name, quotes around the value, and a comment behind it (" # ...").
 */
#ifndef MQ_ENVFILE_H
#define MQ_ENVFILE_H

#include <stdbool.h>
#include <stddef.h>

/* The values, allocated; NULL: the file has no such line, or an empty value. */
struct mq_envfile {
	char *url, *layout, *password_file, *password; /* REDISCLI_AUTH */
	char *sentinel_password_file;
	bool exposed; /* it has a password, and everybody can read it */
};

/*
 * Reads the file into a zeroed struct, which mq_envfile_free() releases.  A file that
 * does not exist says nothing.  Lines of other programs are ignored.  Errors are: any
 * other name with MQ_ in front, a line with MQ_ that is no assignment, and lines for
 * a server that the file does not name.  Returns 0, or an mq_exit status with one
 * line in error, which never has a value in it.
 */
int mq_envfile_read(
    struct mq_envfile *, const char *path, char *error, size_t error_size);
void mq_envfile_free(struct mq_envfile *);

#endif
