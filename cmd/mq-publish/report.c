/*
 * What is said of the messages in the end.
 */
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "publish.h"

/* ", N duplicates", when there are any; appended to a line. */
static void
add(char *line, size_t size, unsigned long n, const char *one, const char *many)
{
	size_t len = strlen(line);

	if (n > 0)
		snprintf(
		    line + len, size - len, ", %lu %s", n, n == 1 ? one : many);
}

/* How many of the accepted ones are safe. */
static void
add_durable(const struct publisher *p, char *line, size_t size)
{
	unsigned long unsure = p->accepted - p->durable.safe;
	size_t len = strlen(line);

	if (unsure > 0)
		snprintf(line + len, size - len,
		    ", %lu of them in the queue but not known to be%s; "
		    "published again without -k they come twice",
		    unsure, p->durable.where);
	else if (p->accepted > 0)
		snprintf(line + len, size - len, ",%s", p->durable.where);
}

void
publish_report(const struct publisher *p, unsigned long unknown)
{
	char more[256] = "";
	size_t len;

	add(more, sizeof(more), p->duplicates, "duplicate", "duplicates");
	add(more, sizeof(more), p->stale, "too late", "too late");
	add(more, sizeof(more), p->too_long, "too long", "too long");
	len = strlen(more);
	if (unknown > 0)
		snprintf(more + len, sizeof(more) - len, ", and up to %lu more",
		    unknown);
	if (p->opt->durable)
		add_durable(p, more, sizeof(more));
	mq_say("%lu message%s accepted%s", p->accepted,
	    p->accepted == 1 ? "" : "s", more);
}

void
publish_verdict(const struct publisher *p, const struct mq_shared *shared)
{
	unsigned long refused = p->duplicates + p->stale + p->too_long;
	const char *why = "another message has its key";

	if (p->too_long > 0)
		why = "it is longer than the queue's maxsize";
	else if (p->stale > 0)
		why = "its last tick is over";
	if (refused == 1 && p->accepted == 0 && !shared->quiet)
		mq_say("%s: not published: %s", p->opt->queue, why);
	else if (shared->verbose || (refused > 0 && !shared->quiet))
		publish_report(p, 0);
}
