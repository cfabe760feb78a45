/* The options of mq-stats that look at single messages, runs, and the page. */
#include <limits.h>
#include <locale.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "look.h"

static const char *const names[] = {
    [LOOK_LIST] = "--list",
    [LOOK_REASONS] = "--reasons",
    [LOOK_RUNNING] = "--running",
    [LOOK_ID] = "--id",
    [LOOK_HTML] = "--html",
};

const char *
look_name(const struct look_options *o)
{
	return names[o->kind];
}

static void
want(struct look_options *o, enum look_kind kind)
{
	if (o->kind != LOOK_NONE && o->kind != kind)
		mq_die(MQ_EXIT_USAGE, "%s and %s cannot be used together",
		    names[o->kind], names[kind]);
	o->kind = kind;
}

static void
set_state(struct look_options *o, const char *arg)
{
	want(o, LOOK_LIST);
	if (mq_state_parse(arg, &o->list.state) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--list: %s: neither ready, delayed, unacked nor rejected",
		    arg);
}

bool
look_option(struct look_options *o, int ch, const char *arg)
{
	switch (ch) {
	case 'n':
		o->list.limit = mq_option_number("--limit", arg, 1, LONG_MAX);
		break;
	case LOOK_OPT_OFFSET:
		o->list.offset = mq_option_number("--offset", arg, 0, LONG_MAX);
		o->offset = true;
		break;
	case LOOK_OPT_LIST:
		set_state(o, arg);
		break;
	case LOOK_OPT_REASONS:
		want(o, LOOK_REASONS);
		break;
	case LOOK_OPT_RUNNING:
		want(o, LOOK_RUNNING);
		break;
	case LOOK_OPT_HTML:
		want(o, LOOK_HTML);
		break;
	case LOOK_OPT_REFRESH:
		o->refresh = mq_option_number("--refresh", arg, 1, 86400);
		break;
	default:
		if (mq_option_framing(&o->list.framing, ch))
			o->list.framed = true;
		else if (!mq_filter_option(&o->list.filter, ch, arg))
			return false;
		if (ch == MQ_OPT_ID)
			want(o, LOOK_ID);
	}
	return true;
}

/* What belongs to --list only. */
static const char *
list_only(const struct look_options *o)
{
	if (o->offset)
		return "--offset";
	return o->list.framed ? "a framing" : NULL;
}

/* The option that says which messages, or how many; NULL: none. */
static const char *
choice(const struct look_options *o)
{
	const struct mq_filter *f = &o->list.filter;

	if (o->list.limit != -1)
		return "--limit";
	if (f->match)
		return "--match";
	if (f->reason)
		return "--reason";
	if (f->errors)
		return "--stderr";
	return f->since_ms != 0 ? "--since" : NULL;
}

void
look_check(const struct look_options *o, bool json, int operands)
{
	bool of_one = o->kind == LOOK_LIST || o->kind == LOOK_REASONS;

	if (o->kind != LOOK_LIST && list_only(o) != NULL)
		mq_die(MQ_EXIT_USAGE, "%s needs --list", list_only(o));
	if (!of_one && choice(o) != NULL)
		mq_die(
		    MQ_EXIT_USAGE, "%s needs --list or --reasons", choice(o));
	if (o->refresh > 0 && o->kind != LOOK_HTML)
		mq_die(MQ_EXIT_USAGE, "--refresh needs --html");
	if (o->kind == LOOK_HTML && json)
		mq_die(
		    MQ_EXIT_USAGE, "--html and --json cannot be used together");
	if (of_one && operands != 1)
		mq_die(MQ_EXIT_USAGE, "%s needs one queue (try --help)",
		    names[o->kind]);
	if (json && o->list.framed)
		mq_die(MQ_EXIT_USAGE,
		    "--json and a framing cannot be used together");
}

int
look_run(struct look *look, const struct look_options *o)
{
	int status = MQ_EXIT_OK;

	/* For the ellipsis of what is cut; regular expressions are compiled. */
	setlocale(LC_CTYPE, "");
	switch (o->kind) {
	case LOOK_LIST:
		status = look_list(look, &o->list);
		break;
	case LOOK_REASONS:
		status = look_reasons(look, &o->list);
		break;
	case LOOK_RUNNING:
		status = look_running(look);
		break;
	case LOOK_ID:
		status = look_id(look, o->list.filter.id);
		break;
	case LOOK_HTML:
		status = look_html(look, o->refresh);
		break;
	case LOOK_NONE:
		break;
	}
	return status;
}
