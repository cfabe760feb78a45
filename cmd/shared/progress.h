/*
 * A bar on stderr that shows the progress of long work.  The bar is there only if
 * stderr is a terminal and the work takes longer than a second; at the end it goes
 * away.
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

#endif
