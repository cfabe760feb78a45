/*
 * Bars on stderr that show the progress of long work.
 */
#ifndef MQ_PROGRESS_H
#define MQ_PROGRESS_H

#include <stdbool.h>

/* The longest line, with its NUL. */
#define PROGRESS_LINE 256

/* Whether fd is a terminal on which a line can be drawn anew. */
bool progress_can_draw(int fd);
/* How many columns of stderr a line may have. */
int progress_columns(void);
/* Makes a line for stderr: the text, cut to the columns, and a bar if there is room for
 * one.  part: of the work, 0 to 1; below 0: not known. */
void progress_line(
    char line[static PROGRESS_LINE], const char *text, double part);

#define PROGRESS_TIME 24
/* A duration such as "2m05s", for people. */
void progress_time(char out[static PROGRESS_TIME], double seconds);

#endif
