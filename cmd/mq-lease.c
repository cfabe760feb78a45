/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-lease: hand out messages by receipt, and settle them later, by queue/lease.h. */
#include "queue/lease.h"
#include "shared/options.h"

static const char usage[] =
    "usage: mq-lease --for DUR [options] QUEUE\n"
    "       mq-lease --ack | --reject | --extend | --return RECEIPT [options] QUEUE\n"
    "\n"
    "Takes messages, prints each with a receipt as a line of JSON, and ends.\n"
    "Until the lease is over, nobody else gets them.  Use the receipt to ack,\n"
    "reject or extend.  Exit status 1: there is no message, or the message of a\n"
    "receipt is settled, or its lease is over.\n"
    "\n"
    "  mq-lease --for 5m -n 10 jobs\n"
    "  mq-lease --ack RECEIPT jobs\n"
    "  mq-lease --reject RECEIPT --text 'no such user' jobs\n"
    "  mq-lease --extend RECEIPT --for 10m jobs\n"
    "\n";

struct options {
	struct mq_shared shared;
	struct mq_lease lease; /* ms -1: not given */
	const char *receipt;   /* NULL: take messages */
	enum mq_receipt_act act;
	const char *text; /* NULL: none */
	int64_t idle_ms;
	bool quiet, jsonl;
};

/* --- the command line ------------------------------------------------------- */

static void
take_receipt(void *into, const struct mq_given *given)
{
	struct options *o = into;

	forbid(o->receipt != NULL,
	    "only one of --ack, --reject, --extend and --return is possible");
	o->receipt = given->arg;
	o->act = (enum mq_receipt_act)given->option->which;
}

static const struct mq_option taking[] = {
    {0, "--for", "DUR", "+duration of the lease, from now",
	MQ_DURATION(struct options, lease.ms, 0)},
    {'n', "--limit", "N", "+take up to N messages, at most 1000 (1)",
	MQ_INT(struct options, lease.max, 1, MQ_LEASE_MAX)},
    {0, "--idle", "DUR", "wait up to DUR for a message (0)",
	MQ_DURATION(struct options, idle_ms, 0)},
    {0, "--attempts", "N", "reject a message after N attempts (15)",
	MQ_INT(struct options, lease.attempts, 1, MQ_ATTEMPTS_MAX)},
    {0, "--tag", "NAME", "first part of the connection's name (mq-lease)",
	MQ_TEXT(struct options, lease.tag), .high = MQ_LEASE_TAG},
    {0},
};
static const struct mq_option settling[] = {
    {0, "--jsonl", NULL, "print lines of JSON, the default",
	MQ_FLAG(struct options, jsonl)},
    {0, "--ack", "RECEIPT", "+the message is done", .take = take_receipt,
	.which = MQ_RECEIPT_ACK},
    {0, "--reject", "RECEIPT", "+the message has failed", .take = take_receipt,
	.which = MQ_RECEIPT_REJECT},
    {0, "--extend", "RECEIPT", "+end the lease after --for DUR, from now",
	.take = take_receipt, .which = MQ_RECEIPT_EXTEND},
    {0, "--return", "RECEIPT", "+return the message to its queue at once",
	.take = take_receipt, .which = MQ_RECEIPT_RETURN},
    {0, "--text", "TEXT", "the result of --ack, the reason of --reject",
	MQ_TEXT(struct options, text)},
    {0, "--keep", "DUR", "keep the outcome for mq-stats --id",
	MQ_DURATION(struct options, lease.keep_ms, 0)},
    {0},
};

static void
parse(struct options *o, int argc, char *argv[])
{
	const struct mq_options tables[] = {{taking, o},
	    {mq_makes_options, &o->shared}, {settling, o},
	    {mq_shared_options, &o->shared}, {0}};
	bool settles, extends;

	mq_option_read(&o->shared, tables, argc, argv);
	settles = o->receipt != NULL;
	extends = settles && o->act == MQ_RECEIPT_EXTEND;
	/* Without an action, --print-acl prints the rights for all. */
	mq_option_rights(&o->shared,
	    (settles ? 0 : MQ_LEASES) |
		(settles || o->lease.ms == -1 ? MQ_SETTLES : 0),
	    argv + optind, argc - optind);
	forbid(o->text != NULL &&
		(!settles || extends || o->act == MQ_RECEIPT_RETURN),
	    "--text needs --ack or --reject");
	forbid(!settles && o->lease.ms == -1,
	    "no --for, --ack, --reject, --extend or --return given "
	    "(try --help)");
	forbid(
	    !settles && o->lease.ms == 0, "--for: 0: must be greater than 0");
	forbid(extends && o->lease.ms == -1, "--extend needs --for");
	forbid(settles && !extends && o->lease.ms != -1,
	    "--for cannot be used with --ack, --reject or --return");
	forbid(settles && mq_receipt_number(o->receipt) == NULL &&
		!mq_id_safe(o->receipt, strlen(o->receipt)),
	    "%s: not a receipt", o->receipt);
	/* Extending a lease by 0 ms ends it, and returns the message. */
	if (extends && o->lease.ms == 0)
		o->act = MQ_RECEIPT_RETURN;
	forbid(optind == argc, "no queue given (try --help)");
	forbid(optind + 1 < argc, "%s: only one queue at a time",
	    argv[optind + 1]);
	o->lease.queue = argv[optind];
	o->quiet = o->shared.quiet || o->shared.fresh;
}

/* --- taking ----------------------------------------------------------------- */

#define LOOK_MS 200 /* pause between two looks at an empty queue */

/* Whether the queue exists.  Ends the program if it cannot be used. */
static bool
look_at_queue(const struct options *o)
{
	const struct mq_lease *l = &o->lease;
	struct mq_idgen ids = {0};
	char connection[MQ_LEASE_NAME], random[7];
	const struct mq_session session = {
	    .connection = connection, .queues = &l->queue, .queue_count = 1};
	struct mq_known known = {0};
	bool there;

	mq_id_random(&ids, random, 6);
	snprintf(connection, sizeof(connection), "%s-%s", o->lease.tag, random);
	mq_option_must(
	    l->redis, mq_known_ask(l->redis, l->layout, &session, &known));
	there = known.there[0];
	free(known.there);
	if (!there && !o->quiet && (known.status == 0 || o->shared.existing))
		mq_option_unknown(l->redis, l->layout, l->queue);
	if (!there && o->shared.existing)
		exit(mq_queue_unlisted(l->redis, l->layout, l->queue) != NULL ?
			MQ_EXIT_UNAVAILABLE :
			MQ_EXIT_NO);
	if (known.status != 0)
		mq_die(known.status, "%s", known.error);
	return there;
}

/* mq_lease_take() until there is a message, or --wait is over.  Reports rejected ones. */
static int
take_messages(struct options *o, const struct mq_leased **messages)
{
	struct mq_lease *l = &o->lease;
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = mq_clock_steady_ms() + o->idle_ms;
	const struct mq_leased *m;
	int i, n, good;

	for (;;) {
		n = mq_lease_take(l, messages);
		mq_option_must(l->redis, n);
		for (i = 0, good = 0; i < n; i++) {
			m = *messages + i;
			good += m->receipt != NULL;
			if (m->receipt == NULL && m->why[0] != '\0')
				mq_say("%s: %s%srejected: %s", l->queue, m->id,
				    m->id[0] != '\0' ? ": " : "", m->why);
		}
		if (good > 0)
			return n;
		/* Rejected messages may have been before others. */
		if (n > 0)
			continue;
		if (mq_clock_steady_ms() >= until)
			return n;
		nanosleep(&pause, NULL);
	}
}

/* Prints messages; false, with errno: failed. */
static bool
print_messages(const char *queue, const struct mq_leased *m, int n)
{
	struct mq_buf out = {0};
	struct mq_frame_meta meta = {.queue = queue};
	bool good;

	for (; n > 0; n--, m++) {
		if (m->receipt == NULL)
			continue;
		meta.id = m->id[0] != '\0' ? m->id : NULL;
		meta.attempt = 1 +
		    mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0);
		meta.more =
		    json_pack("{s:o}", "receipt", mq_json_text(m->receipt));
		mq_frame_write(&out, MQ_FRAME_JSONL, &m->envelope, &meta);
		json_decref(meta.more);
	}
	output_json(out.data, out.len);
	good = !ferror(stdout) && fflush(stdout) == 0;
	mq_buf_free(&out);
	return good;
}

static int
lease_messages(struct options *o)
{
	struct mq_lease *l = &o->lease;
	const struct mq_leased *messages;
	int n, status = MQ_EXIT_OK;

	l->make = look_at_queue(o);
	n = take_messages(o, &messages);
	if (n <= 0) {
		if (n == MQ_CLAIM_LOST)
			mq_say("%s: the lease was over before a message could "
			       "be taken; use a longer --for",
			    l->queue);
		status = n == 0 ? MQ_EXIT_NO : MQ_EXIT_AGAIN;
	} else if (!print_messages(l->queue, messages, n)) {
		mq_say("standard output: %s; the messages are returned",
		    strerror(errno));
		status = MQ_EXIT_IO;
	}
	mq_option_must(l->redis, mq_lease_free(l, status != MQ_EXIT_OK));
	return status;
}

int
main(int argc, char *argv[])
{
	struct options o = {.shared = {.usage = usage, .names_server = true},
	    .lease = {.tag = "mq-lease", .attempts = -1, .max = 1, .ms = -1}};
	struct mq_server server;
	struct mq_redis redis;
	const char *why;
	int used, status;

	mq_option_begin();
	parse(&o, argc, argv);
	mq_option_prints(o.receipt == NULL);
	o.lease.layout = mq_option_server(&o.shared, &server);
	/* A tag becomes part of keys, like a queue's name. */
	why = o.lease.layout->queue_error(o.lease.tag);
	forbid(why != NULL, "--tag: %s: %s", o.lease.tag, why);
	o.lease.queue = mq_option_queue(&o.shared, &server, o.lease.queue);
	if (o.lease.keep_ms > 0)
		mq_option_needs(&o.shared, "--keep", MQ_HAS_RESULTS);
	mq_option_must(&redis, mq_redis_open(&redis, &server));
	o.lease.redis = &redis;
	if (o.receipt == NULL) {
		status = lease_messages(&o);
	} else {
		used = mq_receipt_use(&o.lease, o.receipt, o.act, o.text);
		mq_option_must(&redis, used);
		why = strchr(o.receipt, '.') != NULL ?
		    "its lease is over, or it is settled already" :
		    o.lease.layout->has & MQ_HAS_IDS ?
		    "no such message, or it is handed out by receipt" :
		    "not a receipt";
		if (used == 0 && !o.quiet)
			mq_say("%s: %s: %s", o.lease.queue, o.receipt, why);
		status = used == 1 ? MQ_EXIT_OK : MQ_EXIT_NO;
	}
	mq_option_end(&o.shared, &server, &redis);
	return status;
}
