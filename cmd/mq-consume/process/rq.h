/*
 * --rq: the directory that RQ gives a script.  DIR/ID has
 *
 *	job	where the script runs, kept over its attempts
 *	msg	the message, as RQ writes it
 *	attach	its attachments
 */
#ifndef MQ_CONSUME_RQ_H
#define MQ_CONSUME_RQ_H

/* Makes DIR/ID/job, which *dir becomes instead of DIR/ID.  0, or -1 with errno. */
int rq_make_dir(char **dir);
/* Writes what is beside it, from the environment of the run.  0, or -1 with errno. */
int rq_fill_dir(const char *job, char *const *environment);
/* Removes what is in DIR/ID, but for what a script has left. */
void rq_empty_dir(const char *dir);

#endif
