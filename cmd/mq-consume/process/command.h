/*
 * A command: where it is, and where it runs.
 */
#ifndef MQ_CONSUME_COMMAND_H
#define MQ_CONSUME_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"

struct command {
	char **argv;
	char *path;   /* absolute, but links are not resolved */
	char *script; /* the same, behind a prefix such as "bash -lc" if --rq */
	bool rq;      /* its directories are those of RQ */
	char *line;   /* as given, for people; quoted for a shell, cut */
	char *here;   /* our own directory */
	const char *work_dir; /* --work-dir; NULL: none */
};

/* The path of a command, as the shell finds it; allocated.  NULL: none. */
char *command_find(const char *name);

/* Appends a word to a command line, quoted for a shell. */
void command_add_word(struct mq_buf *line, const char *word);

/* Ends the program if there is no such command. */
void command_init(struct command *, char **argv, const char *work_dir, bool rq);
void command_end(struct command *);

/*
 * Makes the directory of a message, or keeps that of an earlier attempt.  Sets *dir
 * to its name, allocated; NULL without --work-dir.  0, or -1 with errno.
 */
int command_make_dir(const struct command *, const char *id, char **dir);

/* Removes the directory if it is empty. */
void command_remove_dir(const struct command *, const char *id);

#endif
