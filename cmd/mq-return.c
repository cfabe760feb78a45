/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-return: make rejected, delayed or unacked messages ready again. */
#include <signal.h>

#include "shared/options.h"

static const char usage[] =
    "usage: mq-return [options] QUEUE...\n"
    "\n"
    "Makes rejected messages ready again, the oldest first, and prints how many,\n"
    "or changes what waits: its priority, time or queue.\n"
    "Their attempts begin anew.  Of several filters, all must match.\n"
    "Exit status 1: no message matched.\n"
    "\n"
    "  mq-return jobs\n"
    "  mq-return --reason 'timed out' --since 2h --rate 10/s jobs\n"
    "\n";

struct options {
	struct mq_place from;
	const char *from_arg; /* argument of --from; NULL: not given */
	const char *to;	      /* argument of --to; NULL: not given */
	struct mq_filter filter;
	bool json, clone, running;
	long priority;	  /* UNORDERED: not given */
	int64_t delay_ms; /* -1: not given */
	const char *at;	  /* argument of --at; NULL: not given */
	struct mq_change change;
	const char *changing; /* first option of a change; NULL: none */
};

#define UNORDERED LONG_MIN

static const struct mq_option places[] = {
    {0, "--clone", NULL,
	"make copies ready instead, and print their new ids;\n"
	"also --from ready or unacked",
	MQ_FLAG(struct options, clone)},
    {0, "--from", "PLACE",
	"+rejected, delayed, or unacked:CONNECTION of a dead\n"
	"one (default: rejected); ready, to change messages",
	MQ_TEXT(struct options, from_arg)},
    {0, "--to", "QUEUE", "+make them ready in another queue",
	MQ_TEXT(struct options, to)},
    {'d', "--delay", "DUR", "they wait in their queue for DUR (2h)",
	MQ_DURATION(struct options, delay_ms, 0)},
    {0, "--at", "TIME", "they wait until TIME, as of mq-publish",
	MQ_TEXT(struct options, at)},
    {'p', "--priority", "N", "they get this priority, -100 to 100",
	MQ_LONG(struct options, priority, -100, 100)},
    {0, "--running", NULL, "+the one message of --id, whose script is ended",
	MQ_FLAG(struct options, running)},
    {0},
};
static const struct mq_option pace[] = {
    {0, "--rate", "N[/s|m|h]", "+N messages a second, or a minute or hour",
	MQ_RATE(struct selection, rate)},
    {0},
};
static const struct mq_option form[] = {
    {0, "--json", NULL, "print the result as JSON",
	MQ_FLAG(struct options, json)},
    {0},
};

/* Sets the place of --from.  Ready messages can only change, or go to another queue; these, and
 * those of all consumers, can be copied. */
static void
take_from(struct options *o)
{
	static const char unacked[] = "unacked:";
	const char *arg = o->from_arg;
	struct mq_place *from = &o->from;
	bool valid = arg == NULL || mq_state_parse(arg, &from->state) == 0;

	if (!valid && strncmp(arg, unacked, sizeof(unacked) - 1) == 0 &&
	    arg[sizeof(unacked) - 1] != '\0') {
		from->state = MQ_UNACKED;
		from->connection = arg + sizeof(unacked) - 1;
		valid = true;
	}
	if (valid &&
	    (o->clone ||
		(from->state == MQ_READY ?
			o->changing != NULL || o->to != NULL :
			from->state != MQ_UNACKED || from->connection != NULL)))
		return;
	mq_die(MQ_EXIT_USAGE,
	    o->clone  ? "--from: %s: must be ready, delayed, unacked, "
			"unacked:CONNECTION or rejected" :
		valid ? "--from: %s: needs --clone" :
			"--from: %s: must be rejected, delayed or "
			"unacked:CONNECTION",
	    arg);
}

static void
check_change(const struct options *o, const struct mq_layout *layout,
    char *const queues[], int n)
{
	int i;

	for (i = 0; i < n && o->changing == NULL && !o->clone; i++)
		forbid(o->from.state == MQ_READY && o->to != NULL &&
			strcmp(o->to, queues[i]) == 0,
		    "--to: %s: must be another queue", o->to);
	if (o->changing == NULL)
		return;
	forbid(!(layout->has & MQ_HAS_BATCHES),
	    "%s: the layout %s has no changes of messages", o->changing,
	    layout->name);
	if (o->at != NULL)
		(void)mq_option_time(o->at, mq_clock_unix_us() / 1000);
}

/* Sets the change, whose time is the same for all messages. */
static void
set_change(struct options *o, struct selection *s, bool quiet)
{
	struct mq_change *change = &o->change;
	int64_t now_ms = 0;

	if (o->changing == NULL)
		return;
	*change = (struct mq_change){.ordered = o->priority != UNORDERED,
	    .priority = (int)o->priority,
	    .due_ms = -1};
	if (o->at != NULL || o->delay_ms >= 0)
		mq_option_must(s->redis, mq_server_time(s->redis, &now_ms));
	if (o->at != NULL)
		change->due_ms =
		    mq_option_at(o->at, now_ms, quiet ? NULL : "ready at once");
	else if (o->delay_ms >= 0)
		change->due_ms = now_ms + o->delay_ms;
	s->change = change;
}

static void
parse_options(struct options *o, struct selection *s, struct mq_shared *shared,
    int argc, char *argv[])
{
	const struct mq_options tables[] = {{places, o},
	    {mq_filter_options, &o->filter}, {selection_options, s}, {pace, s},
	    {form, o}, {mq_makes_options, shared}, {mq_shared_options, shared},
	    {0}};

	mq_option_read(shared, tables, argc, argv);
	mq_option_target(shared, o->to);
	mq_option_rights(shared,
	    MQ_RETURNS | (o->clone ? MQ_CLONES : 0) |
		(o->running ? MQ_STOPS : 0),
	    argv + optind, argc - optind);
	forbid(optind == argc, "no queue given (try --help)");
	forbid(o->delay_ms >= 0 && o->at != NULL,
	    "--delay and --at cannot be used together");
	o->changing = o->priority != UNORDERED ? "--priority" :
	    o->delay_ms >= 0		       ? "--delay" :
	    o->at != NULL		       ? "--at" :
						 NULL;
	forbid(o->changing != NULL && o->clone,
	    "--clone and %s cannot be used together", o->changing);
	if (o->running)
		selection_check_running(s, argc - optind,
		    o->clone		    ? "--clone" :
			o->to != NULL	    ? "--to" :
			o->changing != NULL ? o->changing :
			o->from_arg != NULL ? "--from" :
			s->rate.per_s > 0   ? "--rate" :
					      NULL);
	take_from(o);
	forbid(o->changing != NULL && o->from.state == MQ_UNACKED,
	    "%s: not with --from unacked", o->changing);
	/* A crash of a Go program may have left the message twice. */
	if (o->filter.id != NULL)
		s->limit = 1;
}

static void
print_result(const struct options *o, const struct selection *s, bool quiet)
{
	json_t *v;

	if (o->json) {
		v = json_pack("{s:o, s:I, s:b}", "queue",
		    mq_json_name(o->from.queue), s->word, (json_int_t)s->done,
		    "dry_run", s->dry_run);
		if (s->clone)
			mq_json_set(v, "ids", json_incref(s->clones.ids));
		if (o->from.state == MQ_DELAYED)
			mq_json_set(v, "in_line", json_integer(s->in_line));
		if (s->too_long > 0)
			mq_json_set(v, "too_long", json_integer(s->too_long));
		output_json_line(v);
	} else if (!quiet || !s->clone || s->dry_run) {
		selection_print(s);
	}
	if (s->in_line > 0 && !quiet)
		mq_say("%s: %ld stay%s in line for %s group", o->from.queue,
		    s->in_line, s->in_line == 1 ? "s" : "",
		    s->in_line == 1 ? "its" : "their");
	if (s->too_long > 0 && !quiet)
		mq_say("%s: %ld message%s: longer than its maxsize of %ld",
		    s->to, s->too_long, s->too_long == 1 ? " stays" : "s stay",
		    s->maxsize);
}

/* Returns messages of all queues; false: there was nothing to return. */
static bool
return_all(struct options *o, struct selection *s,
    const struct mq_shared *shared, struct mq_server *server,
    char *const queues[], int n)
{
	struct mq_redis *r = s->redis;
	bool any = false, quiet = shared->quiet;
	long left = s->limit;
	int i;

	s->word = s->clone ? "cloned" :
	    s->change != NULL && o->to == NULL && o->from.state != MQ_REJECTED ?
			     "changed" :
			     "returned";
	for (i = 0; i < n && left > 0; i++) {
		/* The publisher of copies leaves a reply unread. */
		if (i > 0 && o->clone) {
			mq_redis_close(r);
			mq_option_must(r, mq_redis_open(r, server));
		}
		o->from.queue = queues[i];
		s->queue = n > 1 ? queues[i] : NULL;
		s->to = o->to != NULL ? o->to : queues[i];
		s->limit = left;
		s->clones =
		    (struct clones){.ids = o->json ? json_array() : NULL};
		selection_begin(s, quiet);
		if (o->running) {
			selection_stop(s, queues[i], MQ_STOP_RETURN);
		} else {
			selection_place(s, &o->from);
			selection_unknown(s, queues[i]);
		}
		if (s->made)
			mq_option_made(shared, r, s->to);
		if (s->clones.open)
			mq_publisher_free(&s->clones.publisher);
		print_result(o, s, quiet);
		json_decref(s->clones.ids);
		/* A run that was stopped at its last attempt is rejected. */
		any |= s->done > 0 || o->running;
		left -= left != LONG_MAX ? s->done : 0;
	}
	return any;
}

int
main(int argc, char *argv[])
{
	struct mq_shared shared = {.usage = usage, .names_server = true};
	struct options options = {.from = {.state = MQ_REJECTED},
	    .priority = UNORDERED,
	    .delay_ms = -1};
	struct mq_server server;
	struct mq_redis redis;
	struct selection selection = {
	    .redis = &redis, .filter = &options.filter, .limit = LONG_MAX};
	bool any, known = true;
	int i;

	mq_option_begin();
	parse_options(&options, &selection, &shared, argc, argv);
	mq_option_prints(true);
	selection.layout = mq_option_server(&shared, &server);
	selection.clone = options.clone;
	mq_filter_check(&options.filter, selection.layout);
	mq_option_queues(&shared, &server, argv + optind, argc - optind);
	if (options.to != NULL)
		options.to = mq_option_queue(&shared, &server, options.to);
	check_change(&options, selection.layout, argv + optind, argc - optind);
	for (i = optind; i < argc && options.to != NULL && options.clone; i++)
		forbid(server.url.kind == MQ_URL_CLUSTER &&
			strcmp(options.to, argv[i]) != 0,
		    "--clone: cannot copy to another queue on a cluster; "
		    "remove --to");
	mq_option_must(&redis, mq_redis_open(&redis, &server));
	interrupt_catch(SA_RESTART);
	if (shared.existing && options.to != NULL)
		mq_option_must(&redis,
		    mq_queue_known(
			&redis, selection.layout, options.to, &known));
	if (!known) {
		mq_option_unknown(&redis, selection.layout, options.to);
		exit(MQ_EXIT_NO);
	}
	set_change(&options, &selection, shared.quiet);
	any = return_all(&options, &selection, &shared, &server, argv + optind,
	    argc - optind);
	mq_filter_free(&options.filter);
	mq_option_end(&shared, &server, &redis);
	mq_close_stdout();
	return any ? MQ_EXIT_OK : MQ_EXIT_NO;
}
