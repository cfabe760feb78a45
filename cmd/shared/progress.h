/*
 * A bar on stderr that shows the progress of long work.  The bar is there only if
 * stderr is a terminal and the work takes longer than a second; at the end it goes
 * away.  The functions at the end are for tools that draw by themselves.
 */
#ifndef MQ_PROGRESS_H
#define MQ_PROGRESS_H

#include <stdbool.h>

struct progress {
	bool on;      /* there can be a bar */
	bool shown;   /* there is one now */
	double start; /* monotonic seconds */
	double last;  /* when it was drawn */
	long total;   /* what all of the work is; 0: not known */
};

/* Starts anew; quiet: there will be none. */
void progress_start(struct progress *, bool quiet);
/* Adds to what all of it is. */
void progress_expect(struct progress *, long more);
/* at of total are behind us, and count messages have been done. */
void progress_show(struct progress *, long at, long count);
/* To be called before anything else is printed. */
void progress_end(struct progress *);

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
