/*
 * Options that say what is to become of the messages.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "message/headers.h"
#include "publish.h"
#include "shared/options.h"

void
publish_option_header(struct options *o, const char *arg)
{
	char *name, *value;
	const char *why;

	if (mq_header_split(arg, &name, &value, &why) == -1)
		mq_die(MQ_EXIT_USAGE, "--header: %s: %s", arg, why);
	if (strncmp(name, "Mq-", 3) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "--header: %s: names that begin with Mq- are ours", name);
	mq_envelope_add(&o->headers, name, value);
	free(name);
	free(value);
}

void
publish_option_param(struct options *o, const char *arg)
{
	char name[sizeof(MQ_HEADER_PARAM) + 1];

	if (arg[0] < '1' || arg[0] > '4' || arg[1] != '=')
		mq_die(MQ_EXIT_USAGE,
		    "--param: %s: not of the form N=VALUE, N from 1 to 4", arg);
	snprintf(name, sizeof(name), "%s%c", MQ_HEADER_PARAM, arg[0]);
	mq_envelope_set(&o->headers, name, arg + 2);
}

/* What all messages ask for, as a header. */
static void
ask_number(struct options *o, const char *header, int64_t n)
{
	char number[24];

	snprintf(number, sizeof(number), "%jd", (intmax_t)n);
	mq_envelope_set(&o->headers, header, number);
	o->special = true;
}

/* Two different names must never become the same one. */
static void
ask_name(
    struct options *o, const char *option, const char *header, const char *name)
{
	json_t *text = json_string(name);

	if (text == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s: not UTF-8", option, name);
	json_decref(text);
	if (*name == '\0')
		mq_die(MQ_EXIT_USAGE, "%s: it is empty", option);
	mq_envelope_set(&o->headers, header, name);
	o->special = true;
}

static int64_t
positive_duration(const char *option, const char *arg)
{
	int64_t ms = mq_option_duration(option, arg);

	if (ms == 0)
		mq_die(MQ_EXIT_USAGE, "%s: %s: no time at all", option, arg);
	return ms;
}

void
publish_option_key(struct options *o, const char *arg)
{
	ask_name(o, "--key", MQ_HEADER_KEY, arg);
	o->key = true;
}

void
publish_option_unique(struct options *o, const char *arg)
{
	if (strcmp(arg, "queued") == 0 || strcmp(arg, "done") == 0)
		mq_envelope_set(&o->headers, MQ_HEADER_UNIQUE, arg);
	else
		ask_number(
		    o, MQ_HEADER_UNIQUE, positive_duration("--unique", arg));
	o->unique = true;
}

void
publish_option_group(struct options *o, const char *arg)
{
	ask_name(o, "--group", MQ_HEADER_GROUP, arg);
}

void
publish_option_priority(struct options *o, const char *arg)
{
	long n = mq_option_number("--priority", arg, -100, 100);

	ask_number(o, MQ_HEADER_PRIORITY, n);
	o->low = n < 0;
}

void
publish_option_expires(struct options *o, const char *arg)
{
	o->expires_ms = positive_duration("--expires", arg);
	o->special = true;
}

int64_t
publish_option_tick(const char *option, const char *arg)
{
	return mq_option_number(option, arg, 0, MQ_TICK_MAX);
}

void
publish_option_ticks(
    struct options *o, const char *option, const char *arg, bool until)
{
	int64_t tick = publish_option_tick(option, arg);

	ask_number(o, until ? MQ_HEADER_UNTIL_TICK : MQ_HEADER_FROM_TICK, tick);
	*(until ? &o->until_tick : &o->from_tick) = tick;
}

void
publish_option_max(const char *option, char *arg, long *max, long *high)
{
	char *colon = strchr(arg, ':');

	if (colon != NULL)
		*colon = '\0';
	*max = mq_option_number(option, arg, 0, LONG_MAX);
	*high = colon == NULL ?
	    *max :
	    mq_option_number(option, colon + 1, *max, LONG_MAX);
}

static void
check_nothing(const struct options *o, int operands)
{
	if (operands > 0 || o->framing != MQ_FRAME_WHOLE || o->raw || o->ids ||
	    o->wait || o->headers.headers != NULL || o->expires_ms > 0 ||
	    o->when.kind != MQ_WHEN_NOW || o->limits.ready >= 0 ||
	    o->limits.delayed >= 0 || o->realtime || o->durable ||
	    (o->set && o->tick >= 0))
		mq_die(MQ_EXIT_USAGE,
		    "%s publishes nothing: it goes with no messages and "
		    "none of their options",
		    o->set ? "--set" : "--tick");
}

void
publish_options_check(struct options *o, char *const operands[], int count)
{
	if (o->raw &&
	    (o->headers.headers != NULL || o->wait || o->expires_ms > 0))
		mq_die(MQ_EXIT_USAGE, "--raw messages have no headers");
	if (o->unique && !o->key)
		mq_die(MQ_EXIT_USAGE, "--unique needs a --key");
	if (o->from_tick >= 0 && o->until_tick >= 0 &&
	    o->from_tick > o->until_tick)
		mq_die(MQ_EXIT_USAGE,
		    "--from-tick %jd is behind --until-tick %jd",
		    (intmax_t)o->from_tick, (intmax_t)o->until_tick);
	if (o->tick >= 0 || o->set)
		check_nothing(o, count);
	if (count > 0 && o->framing != MQ_FRAME_WHOLE)
		mq_die(MQ_EXIT_USAGE,
		    "a framing is for stdin; %s is an operand", operands[0]);
	if (o->at != NULL)
		(void)publish_time(o->at, mq_clock_unix_us() / 1000);
	o->limited = o->limits.ready >= 0 || o->limits.delayed >= 0;
	o->special |= o->limited;
}

void
publish_options_suit(const struct options *o, const struct mq_shared *shared)
{
	if (o->low)
		mq_option_needs(shared, "--priority", MQ_HAS_LOW_PRIORITY);
	if (o->raw && o->ids)
		mq_option_needs(shared, "--raw --ids", MQ_HAS_IDS);
}
