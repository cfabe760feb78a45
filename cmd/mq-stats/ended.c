/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-stats --list done and --list ended: what has ended, from the results that --keep keeps, and the
 * rejected messages. */
#include "stats.h"

#define SLICE	     1000
#define HOST_COLUMNS 12
#define TEXT_COLUMNS 30 /* least width of a text */

struct ends {
	struct listing out;
	long seen;
	/* Copies of the rejected messages, the newest last, and how many are to be shown. */
	struct mq_scan rejected;
	int left;
	json_t *shown; /* ids of messages that are not done, as keys */
};

static const char *
text_of(const struct mq_ending *e)
{
	return e->text != NULL ? e->text : "";
}

/* An element that filters take for the message that has ended: the last text is its payload and
 * its reason, and the end the time of its last failure. */
static void
write_element(const struct mq_ending *e, struct mq_envelope *v)
{
	const struct mq_failure last = {.at_ms = e->finished_ms,
	    .attempt = e->attempts,
	    .status = e->status,
	    .text = e->text};

	*v = (struct mq_envelope){.payload = text_of(e)};
	v->payload_len = strlen(v->payload);
	mq_envelope_set(v, MQ_HEADER_ID, e->id);
	mq_envelope_set(v, MQ_HEADER_ERROR, v->payload);
	mq_history_add(v, &last);
}

static void
print_row(const struct ends *l, const char *id, const struct mq_ending *e)
{
	time_t t = (time_t)(e->finished_ms / 1000);
	int room = text_view().width - 75 - HOST_COLUMNS;
	char at[16] = "-", how[16] = "-", took[24] = "-", *host, *text;
	struct tm tm;

	if (t != 0)
		strftime(
		    at, sizeof(at), "%m-%d %H:%M:%S", localtime_r(&t, &tm));
	if (e->signal != NULL)
		strlcpy(how, e->signal, sizeof(how));
	else if (e->status >= 0)
		snprintf(how, sizeof(how), "%d", e->status);
	if (e->seconds > 0)
		snprintf(took, sizeof(took), "%.1f", e->seconds);
	host = text_clipped(e->host != NULL ? e->host : "-",
	    e->host != NULL ? strlen(e->host) : 1, HOST_COLUMNS);
	text = text_clipped(
	    text_of(e), strlen(text_of(e)), MAX(room, TEXT_COLUMNS));
	printf("%-14s  %-*s", at, MQ_ID_LEN, id != NULL ? id : "-");
	if (l->out.options->list.ends == ENDS_ALL)
		printf("  %-8s", mq_end_name(e->state));
	printf("  %4s  %7s  %8ld  %s%*s  %s\n", how, took, e->attempts, host,
	    MAX(0, HOST_COLUMNS - text_width(host)), "", text);
	free(host);
	free(text);
}

/* id: NULL: none.  Returns false when no other end is to be looked at. */
static bool
show_end(struct ends *l, const char *id, const struct mq_ending *e)
{
	struct listing *out = &l->out;
	bool all = out->options->list.ends == ENDS_ALL, more;
	struct mq_envelope v = {.payload = text_of(e)};
	json_t *facts;

	if (!listing_takes(out, &more))
		return more;
	v.payload_len = strlen(v.payload);
	if (out->people && out->shown == 0)
		printf("FINISHED        %-*s%s  EXIT  SECONDS  "
		       "ATTEMPTS  %-*s  TEXT\n",
		    MQ_ID_LEN, "ID", all ? "  STATE   " : "", HOST_COLUMNS,
		    "HOST");
	if (out->people) {
		print_row(l, id, e);
	} else {
		facts = json_object();
		mq_json_set(facts, "id", mq_json_name(id));
		mq_json_set(
		    facts, "queue", mq_json_name(out->options->queues[0]));
		json_object_update(facts, e->json);
		listing_frame(out, id, &v, facts, false);
	}
	out->shown++;
	return more;
}

/* Whether a message that is not done has not been met before. */
static bool
is_new(struct ends *l, const char *id)
{
	if (id == NULL)
		return true;
	if (json_object_get(l->shown, id) != NULL)
		return false;
	json_object_set_new(l->shown, id, json_true());
	return true;
}

static bool
show_kept(struct ends *l, const struct mq_ending *e)
{
	const struct list_options *o = &l->out.options->list;
	struct mq_envelope v;
	struct mq_buf element = {0};
	bool more = true;

	if (e->id[0] == '\0' ||
	    (o->ends == ENDS_DONE && e->state != MQ_END_DONE))
		return true;
	l->seen++;
	write_element(e, &v);
	mq_envelope_write(&v, &element);
	/* With a NUL behind it, as elements of the server have it. */
	if (mq_filter_match(&o->filter, mq_buf_str(&element), element.len) &&
	    (e->state == MQ_END_DONE || is_new(l, e->id)))
		more = show_end(l, e->id, e);
	mq_buf_free(&element);
	mq_envelope_free(&v);
	return more;
}

/* --- rejected ---------------------------------------------------------------- */

/* Reads the last failure of a message as its end. */
static void
read_rejected(const struct message *m, struct mq_ending *e)
{
	json_t *list = mq_history_list(&m->envelope, true), *v, *status;

	v = json_incref(json_array_get(list, 0));
	if (v == NULL)
		v = json_object();
	json_decref(list);
	status = json_object_get(v, "status");
	*e = (struct mq_ending){.state = MQ_END_REJECTED,
	    .text = m->reason,
	    .status = status != NULL ? (int)json_integer_value(status) : -1,
	    .signal = json_string_value(json_object_get(v, "signal")),
	    .attempts = m->attempts,
	    .host = json_string_value(json_object_get(v, "host")),
	    .finished_ms = m->since_ms,
	    .json = v};
	json_object_del(v, "at_ms");
	json_object_del(v, "attempt");
	json_object_del(v, "stderr");
	mq_json_set(v, "state", json_string(mq_end_name(e->state)));
	mq_json_set(v, "text", mq_json_text(m->reason));
	mq_json_set(v, "attempts", json_integer(m->attempts));
	if (m->since_ms > 0)
		mq_json_set(v, "finished_ms", json_integer(m->since_ms));
}

/* Shows the rejected messages whose last failure came after this time.  Returns false when no other
 * end is to be looked at. */
static bool
show_rejected(struct ends *l, int64_t after_ms)
{
	struct message m;
	struct mq_ending e;
	bool more = true, later = true;

	while (more && later && l->left > 0) {
		message_unpack(
		    &m, &l->rejected.items[l->left - 1], MQ_REJECTED);
		later = m.since_ms > after_ms;
		l->left -= later;
		if (later && is_new(l, m.id)) {
			read_rejected(&m, &e);
			more = show_end(l, m.id, &e);
			mq_ending_free(&e);
		}
		mq_envelope_free(&m.envelope);
	}
	return more;
}

static void
find_rejected(struct ends *l, struct collector *c, long long count)
{
	const struct stats_options *o = l->out.options;
	struct mq_search search = {c->layout, &c->redis, &o->list.filter,
	    .scan = {{.queue = o->queues[0], .state = MQ_REJECTED},
		.needle = o->list.filter.id}};
	long wanted;

	search.scan.skip = list_skip(&l->out, count, &wanted);
	l->out.more = search.scan.skip > 0;
	list_newest(&search, wanted + 1, &l->rejected);
	l->seen = search.scan.seen;
	l->left = l->rejected.count;
	mq_scan_free(&search.scan);
}

static void
tell_none(const struct ends *l, const char *what)
{
	const char *queue = l->out.options->queues[0];

	if (l->seen > 0)
		mq_say("%s: none of %ld %s message%s matched", queue, l->seen,
		    what, l->seen == 1 ? "" : "s");
	else
		mq_say("%s: no end is kept (mq-consume --keep, mq-set keep)",
		    queue);
}

bool
ended_print(
    struct collector *c, const struct stats_options *o, const struct model *m)
{
	struct ends l = {.shown = json_object()};
	const char *what = o->list.ends == ENDS_DONE ? "done" : "ended";
	struct mq_ended walk = {.queue = o->queues[0]};
	bool more = true;
	int i, n = SLICE;

	listing_begin(&l.out, o);
	if (o->list.ends == ENDS_ALL)
		find_rejected(&l, c, m->stats.queues[0].rejected);
	if (l.out.limit != -1 && l.out.limit < SLICE && o->list.offset < SLICE)
		n = (int)MIN(SLICE, l.out.limit + o->list.offset + 1);
	while (more && !walk.end) {
		mq_option_must(
		    &c->redis, mq_ended_next(&c->redis, c->layout, &walk, n));
		for (i = 0; i < walk.count && more; i++)
			more = show_rejected(&l, walk.list[i].finished_ms) &&
			    show_kept(&l, &walk.list[i]);
		n = SLICE;
	}
	if (more)
		show_rejected(&l, -1);
	mq_ended_free(&walk);
	list_free(&l.rejected);
	json_decref(l.shown);
	listing_end(&l.out, what);
	if (l.out.shown == 0 && !o->shared.quiet && !ferror(stdout))
		tell_none(&l, what);
	return l.out.shown > 0;
}
