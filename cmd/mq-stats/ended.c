/* mq-stats --list done and --list ended: what has ended, from the results that --keep keeps. */
#include "stats.h"

#define SLICE	     1000
#define HOST_COLUMNS 12
#define TEXT_COLUMNS 30 /* least width of a text */

struct ends {
	const struct stats_options *options;
	const char *queue;
	bool json, people, terminal;
	long limit; /* -1: none */
	long seen, skipped, shown;
	bool more; /* the limit left some out */
};

/* An element that filters take for the message that has ended: the last text is its payload and
 * its reason, and the end the time of its last failure. */
static void
write_element(const struct mq_ending *e, struct mq_envelope *v)
{
	const struct mq_failure last = {.at_ms = e->finished_ms,
	    .attempt = e->attempts,
	    .status = e->status,
	    .text = e->text};

	*v = (struct mq_envelope){.payload = e->text != NULL ? e->text : ""};
	v->payload_len = strlen(v->payload);
	mq_envelope_set(v, MQ_HEADER_ID, e->id);
	mq_envelope_set(v, MQ_HEADER_ERROR, v->payload);
	mq_history_add(v, &last);
}

static void
print_row(const struct ends *l, const struct mq_ending *e)
{
	time_t t = (time_t)(e->finished_ms / 1000);
	int room = text_view().width - 75 - HOST_COLUMNS;
	char at[16], how[16] = "-", took[24] = "-", *host, *text;
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(at, sizeof(at), "%m-%d %H:%M:%S", &tm);
	if (e->signal != NULL)
		strlcpy(how, e->signal, sizeof(how));
	else if (e->status >= 0)
		snprintf(how, sizeof(how), "%d", e->status);
	if (e->seconds > 0)
		snprintf(took, sizeof(took), "%.1f", e->seconds);
	host = text_clipped(e->host != NULL ? e->host : "-",
	    e->host != NULL ? strlen(e->host) : 1, HOST_COLUMNS);
	text = text_clipped(e->text != NULL ? e->text : "",
	    e->text != NULL ? strlen(e->text) : 0, MAX(room, TEXT_COLUMNS));
	printf("%-14s  %s", at, e->id);
	if (l->options->list.ends == ENDS_ALL)
		printf("  %-8s", mq_end_name(e->state));
	printf("  %4s  %7s  %8ld  %s%*s  %s\n", how, took, e->attempts, host,
	    MAX(0, HOST_COLUMNS - text_width(host)), "", text);
	free(host);
	free(text);
}

static void
print_framed(const struct ends *l, const struct mq_ending *e,
    const struct mq_envelope *v)
{
	enum mq_framing framing = l->options->list.framing;
	struct mq_frame_meta meta = {.id = e->id, .queue = l->queue};
	struct mq_buf out = {0};
	json_t *facts;

	if (!l->json && framing != MQ_FRAME_JSONL) {
		mq_frame_write(&out, framing, v, &meta);
	} else {
		facts = json_pack(
		    "{ss so}", "id", e->id, "queue", mq_json_name(l->queue));
		json_object_update(facts, e->json);
		mq_json_dump(facts, &out);
		json_decref(facts);
		if (l->json)
			fputs(l->shown == 0 ? "[" : ",\n", stdout);
		else
			mq_buf_add(&out, "\n", 1);
		framing = MQ_FRAME_JSONL;
	}
	list_print_framed(&out, framing, l->terminal);
	mq_buf_free(&out);
}

/* Returns false when no other end is to be looked at. */
static bool
show_end(struct ends *l, const struct mq_ending *e)
{
	const struct list_options *o = &l->options->list;
	struct mq_envelope v;
	struct mq_buf element = {0};
	bool more = true, meant;

	if (e->id[0] == '\0' ||
	    (o->ends == ENDS_DONE && e->state != MQ_END_DONE))
		return true;
	l->seen++;
	write_element(e, &v);
	mq_envelope_write(&v, &element);
	meant = mq_filter_match(&o->filter, element.data, element.len);
	if (meant && l->skipped < o->offset) {
		l->skipped++;
	} else if (meant && l->shown == l->limit) {
		l->more = true;
		more = false;
	} else if (meant) {
		if (l->people && l->shown == 0)
			printf("FINISHED        %-*s%s  EXIT  SECONDS  "
			       "ATTEMPTS  %-*s  TEXT\n",
			    MQ_ID_LEN, "ID",
			    o->ends == ENDS_ALL ? "  STATE   " : "",
			    HOST_COLUMNS, "HOST");
		if (l->people)
			print_row(l, e);
		else
			print_framed(l, e, &v);
		l->shown++;
		more = !ferror(stdout);
	}
	mq_buf_free(&element);
	mq_envelope_free(&v);
	return more;
}

static void
tell_number(const struct ends *l)
{
	const char *what =
	    l->options->list.ends == ENDS_DONE ? "done" : "ended";

	if (l->shown > 0 && l->more && l->people &&
	    l->options->order.limit == -1)
		mq_say("%s: only %ld %s messages shown; use --limit or "
		       "--offset for more",
		    l->queue, l->shown, what);
	else if (l->shown == 0 && l->seen > 0)
		mq_say("%s: none of %ld %s message%s matched", l->queue,
		    l->seen, what, l->seen == 1 ? "" : "s");
	else if (l->shown == 0)
		mq_say("%s: no end is kept (mq-consume --keep, mq-set keep)",
		    l->queue);
}

bool
ended_print(
    struct collector *c, const struct stats_options *o, const struct model *m)
{
	struct ends l = {.options = o,
	    .queue = m->stats.queues[0].name,
	    .json = o->format == FORMAT_JSON,
	    .people =
		o->format != FORMAT_JSON && o->list.framing == MQ_FRAME_WHOLE,
	    .terminal = isatty(STDOUT_FILENO),
	    .limit = o->order.limit};
	struct mq_ended walk = {.queue = l.queue};
	bool more = true;
	int i, n = SLICE;

	if (l.limit == -1 && (o->list.newest || (l.terminal && l.people)))
		l.limit = SCREENFUL;
	if (l.limit != -1 && l.limit < SLICE && o->list.offset < SLICE)
		n = (int)MIN(SLICE, l.limit + o->list.offset + 1);
	while (more && !walk.end) {
		mq_option_must(
		    &c->redis, mq_ended_next(&c->redis, c->layout, &walk, n));
		for (i = 0; i < walk.count && more; i++)
			more = show_end(&l, &walk.list[i]);
		n = SLICE;
	}
	mq_ended_free(&walk);
	if (l.json)
		fputs(l.shown == 0 ? "[]\n" : "]\n", stdout);
	if (!o->shared.quiet && !ferror(stdout))
		tell_number(&l);
	return l.shown > 0;
}
