#include "options.h"

#include <string.h>

#include "base/exit.h"
#include "base/say.h"

/* As node has them. */
#define MAXSIZE_MIN 1024
#define MAXSIZE_MAX 65536

long
mq_attribute_seconds(const char *name, const char *arg)
{
	int64_t ms = mq_option_duration(name, arg);

	if (ms % 1000 != 0 || ms / 1000 > MQ_ATTRIBUTE_SECONDS_MAX)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not whole seconds, %d of them at most", name, arg,
		    MQ_ATTRIBUTE_SECONDS_MAX);
	return (long)(ms / 1000);
}

long
mq_attribute_maxsize(const char *name, const char *arg)
{
	return strcmp(arg, "-1") == 0 ?
	    -1 :
	    mq_option_number(name, arg, MAXSIZE_MIN, MAXSIZE_MAX);
}
