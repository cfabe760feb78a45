/*
 * What is said of the messages in the end.
 */
#include <stdio.h>
#include <string.h>

#include "publish.h"
#include "say.h"

/* ", N duplicates", when there are any; appended to a line. */
static void
add(char *line, size_t size, unsigned long n, const char *one, const char *many)
{
	size_t len = strlen(line);

	if (n > 0)
		snprintf(
		    line + len, size - len, ", %lu %s", n, n == 1 ? one : many);
}

void
publish_report(const struct publisher *p, unsigned long unknown)
{
	char more[128] = "";
	size_t len;

	add(more, sizeof(more), p->duplicates, "duplicate", "duplicates");
	add(more, sizeof(more), p->stale, "too late", "too late");
	len = strlen(more);
	if (unknown > 0)
		snprintf(more + len, sizeof(more) - len, ", and up to %lu more",
		    unknown);
	mq_say("%lu message%s accepted%s", p->accepted,
	    p->accepted == 1 ? "" : "s", more);
}

void
publish_verdict(const struct publisher *p, const struct mq_shared *shared)
{
	unsigned long refused = p->duplicates + p->stale;

	if (refused == 1 && p->accepted == 0 && !shared->quiet)
		mq_say("%s: not published: %s", p->opt->queue,
		    p->duplicates == 1 ? "another message has its key" :
					 "its last tick is over");
	else if (shared->verbose || (refused > 0 && !shared->quiet))
		publish_report(p, 0);
}
