/*
 * The output of one run in the form of --output, on its way to a target:
 *
 *	live	as it comes
 *	lines	whole lines, each behind the label of its run and a tab
 *	runs	all of a run in one piece, when the run is over
 *
 * What has to wait takes at most 32 KiB of memory, and a file beyond that.
 */
#ifndef MQ_CONSUME_GATHER_H
#define MQ_CONSUME_GATHER_H

#include "base/id.h"
#include "mq-consume/options.h"
#include "target.h"

#define GATHER_LABEL (MQ_ID_MAX + 16)

struct gather {
	struct target *target;
	enum output_form form;
	char label[GATHER_LABEL];
	struct spill *kept; /* a begun line, or a run; NULL: nothing */
	bool open_line;	    /* the last byte of kept ended no line */
	char cut[4];	    /* the beginning of a character, for a terminal */
	size_t cut_len;
};

void gather_init(struct gather *, struct target *, enum output_form);
void gather_label(struct gather *, const char *label);

/* Whether bytes should come only when the target is ready. */
bool gather_waits(const struct gather *);
void gather_put(struct gather *, const char *, size_t n);
/* A line of ours, which begins a line. */
void gather_say(struct gather *, const char *line);
/* The run is over.  Bytes that come later are gathered by lines, if not live. */
void gather_end(struct gather *);

#endif
