/*
 * A command: where it is, and where it runs.
 */
#ifndef MQ_CONSUME_COMMAND_H
#define MQ_CONSUME_COMMAND_H

struct command {
	char **argv;
	char *path;	      /* absolute, but links are not resolved */
	char *here;	      /* the directory that we run in */
	const char *work_dir; /* --work-dir; NULL: none */
};

/* Where a command is, as the shell would find it; allocated.  NULL: nowhere. */
char *command_find(const char *name);

/* Ends the program if there is no such command. */
void command_init(struct command *, char **argv, const char *work_dir);
void command_end(struct command *);

/*
 * The directory of a message, made if need be; allocated.  The directory is kept
 * over attempts.  -1 with errno, and *dir is what could not be made; *dir is
 * NULL without --work-dir.
 */
int command_make_dir(const struct command *, const char *id, char **dir);

/* Removes the directory when the script has left nothing there. */
void command_remove_dir(const struct command *, const char *id);

#endif
