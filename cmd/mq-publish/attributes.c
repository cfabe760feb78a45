#include "publish.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "shared/options.h"

void
attribute_header(struct mq_envelope *e, const char *option, const char *arg)
{
	char *name, *value;
	const char *why;

	if (mq_header_split(arg, &name, &value, &why) == -1)
		mq_die(MQ_EXIT_USAGE, "%s: %s: %s", option, arg, why);
	if (strncmp(name, "Mq-", 3) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: names that begin with Mq- are reserved", option,
		    name);
	mq_envelope_add(e, name, value);
	free(name);
	free(value);
}

void
attribute_param(struct mq_envelope *e, const char *option, const char *arg)
{
	char name[sizeof(MQ_HEADER_PARAM) + 1];

	if (arg[0] < '1' || arg[0] > '4' || arg[1] != '=')
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not of the form N=VALUE, N from 1 to 4", option,
		    arg);
	if (!mq_utf8(arg, strlen(arg)))
		mq_die(MQ_EXIT_USAGE, "%s: %s: not UTF-8", option, arg);
	snprintf(name, sizeof(name), "%s%c", MQ_HEADER_PARAM, arg[0]);
	mq_envelope_set(e, name, arg + 2);
}

void
attribute_number(struct mq_envelope *e, const char *header, int64_t n)
{
	char number[24];

	snprintf(number, sizeof(number), "%jd", (intmax_t)n);
	mq_envelope_set(e, header, number);
}

void
attribute_name(struct mq_envelope *e, const char *option, const char *header,
    const char *name)
{
	if (!mq_utf8(name, strlen(name)))
		mq_die(MQ_EXIT_USAGE, "%s: %s: not UTF-8", option, name);
	if (*name == '\0')
		mq_die(MQ_EXIT_USAGE, "%s: must not be empty", option);
	mq_envelope_set(e, header, name);
}

/* Above 0, in ms. */
static int64_t
read_duration(const char *option, const char *arg)
{
	int64_t ms = mq_option_duration(option, arg);

	if (ms == 0)
		mq_die(MQ_EXIT_USAGE, "%s: %s: must be greater than 0", option,
		    arg);
	return ms;
}

void
attribute_unique(struct mq_envelope *e, const char *option, const char *arg)
{
	if (strcmp(arg, "queued") == 0 || strcmp(arg, "done") == 0)
		mq_envelope_set(e, MQ_HEADER_UNIQUE, arg);
	else
		attribute_number(
		    e, MQ_HEADER_UNIQUE, read_duration(option, arg));
}

int64_t
attribute_tick(const char *option, const char *arg)
{
	return mq_option_number(option, arg, 0, MQ_TICK_MAX);
}

void
attribute_max(const char *option, char *arg, long *max, long *high)
{
	char *colon = strchr(arg, ':');

	if (colon != NULL)
		*colon = '\0';
	*max = mq_option_number(option, arg, 0, LONG_MAX);
	*high = colon == NULL ?
	    *max :
	    mq_option_number(option, colon + 1, *max, LONG_MAX);
}
