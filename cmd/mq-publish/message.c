/*
 * What a message looks like: its id, its headers, when it is due.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "message/headers.h"
#include "publish.h"

/* Unix milliseconds have 13 digits until the year 2286, and those of an --at,
 * which may have more, stay the same. */
#define DUE_DIGITS 13
#define DUE_SIZE   24

/*
 * unique makes it one of its own among the delayed, even when its id, which
 * -i prints, came with it and may come again.
 */
static void
add(struct publisher *p, const char *unique, const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct batch *b = publish_batch(p);

	if (b->count > 0 && b->command.wire.len + n > BATCH_BYTES) {
		publish_send(p);
		b = publish_batch(p);
	}
	if (b->count == 0)
		publish_begin(p, b);
	p->layout->publish_add(
	    &b->command, &p->how, unique, header, payload, n);
	if (p->opt->ids || p->opt->wait)
		mq_buf_add(&b->ids, id, MQ_ID_LEN);
	if (++b->count == BATCH_COUNT || b->command.wire.len > BATCH_BYTES)
		publish_send(p);
}

/*
 * The server's time for the next id, a microsecond after the last one at the
 * least, so that ids sort in the order of publishing.  The clock is asked for
 * every 64th only, since that is a system call on some machines.
 */
static uint64_t
next_us(struct publisher *p)
{
	uint64_t now;

	p->last_us++;
	if (p->made++ % 64 == 0) {
		now = (uint64_t)(mq_clock_steady_us() + p->clock_us);
		if (now > p->last_us)
			p->last_us = now;
	}
	return p->last_us;
}

/* When a message that is published now falls due, and so long after that. */
static void
print_due(
    const struct publisher *p, int64_t after_ms, char due[static DUE_SIZE])
{
	int64_t ms = p->when.ms;

	if (p->when.kind == MQ_WHEN_NOW)
		ms = (int64_t)p->last_us / 1000;
	else if (p->when.kind == MQ_WHEN_IN)
		ms += (int64_t)p->last_us / 1000;
	snprintf(due, DUE_SIZE, "%0*jd", DUE_DIGITS, (intmax_t)(ms + after_ms));
}

/* The same into the gap at `at` of the header, if there is one. */
static void
fill_in(struct publisher *p, size_t at, int64_t after_ms)
{
	char due[DUE_SIZE];

	if (at == 0)
		return;
	print_due(p, after_ms, due);
	memcpy(p->header.data + at, due, strlen(due));
}

/* Other programs would take other bytes out than were put in. */
static void
check_text(struct publisher *p, const char *payload, size_t n)
{
	p->seen++;
	if (!p->opt->raw && !mq_layout_reads(p->layout, payload, n))
		publish_bad(p, p->seen,
		    "not UTF-8, as node takes it (--raw publishes it)");
}

/* What a message asks for must not be forgotten silently. */
static void
check_wishes(struct publisher *p, const struct mq_envelope *e)
{
	struct mq_buf why = {0};

	if (!mq_layout_obeys(p->layout, e, &why))
		publish_bad(p, p->seen, mq_buf_str(&why));
	if (!mq_message_unique_good(e))
		publish_bad(
		    p, p->seen, "Mq-Unique: not queued, done, or milliseconds");
	mq_buf_free(&why);
}

/* Whether readers would take the payload for a header, where there are any. */
static bool
takes_for_header(const struct publisher *p, const char *payload, size_t n)
{
	return !(p->layout->has & MQ_HAS_IDS) && mq_envelope_signed(payload, n);
}

/* Without a header.  It needs something to be one of its own when delayed. */
static void
publish_bare(struct publisher *p, const char *payload, size_t n)
{
	static const struct mq_buf none;
	char id[MQ_ID_LEN + 1] = "";

	check_text(p, payload, n);
	/* Without --raw, the payload is a copy, of --jsonl, and stays as it is. */
	if (p->opt->raw && takes_for_header(p, payload, n))
		publish_bad(p, p->seen,
		    "it begins as a header of rmq does, so that readers would "
		    "take it for one (publish it without --raw)");
	if (p->how.special || p->how.when.kind != MQ_WHEN_NOW ||
	    p->layout->has & MQ_HAS_IDS)
		mq_id_make(&p->idgen, next_us(p), id);
	add(p, id, id, &none, payload, n);
}

void
publish_message(struct publisher *p, const char *payload, size_t n)
{
	char id[MQ_ID_LEN + 1] = "";

	if (p->opt->raw) {
		publish_bare(p, payload, n);
		return;
	}
	check_text(p, payload, n);
	mq_id_make(&p->idgen, next_us(p), id);
	memcpy(p->header.data + p->id_at, id, MQ_ID_LEN);
	if (p->reply_at > 0)
		memcpy(p->header.data + p->reply_at, id, MQ_ID_LEN);
	fill_in(p, p->due_at, 0);
	fill_in(p, p->expires_at, p->opt->expires_ms);
	add(p, id, id, &p->header, payload, n);
}

static void
set_times(const struct publisher *p, struct mq_envelope *e)
{
	char due[DUE_SIZE];

	if (p->when.kind != MQ_WHEN_NOW) {
		print_due(p, 0, due);
		mq_envelope_set(e, MQ_HEADER_DUE, due);
	}
	if (p->opt->expires_ms > 0) {
		print_due(p, p->opt->expires_ms, due);
		mq_envelope_set(e, MQ_HEADER_EXPIRES, due);
	}
}

/*
 * Headers from the command line join those that the message has; ours, of
 * which there can be only one, take their place.
 */
static void
add_headers(struct mq_envelope *e, const json_t *headers)
{
	const char *name;
	json_t *values, *value;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)headers, name, values)
		json_array_foreach(values, i, value)
			if (strncmp(name, "Mq-", 3) == 0)
				mq_envelope_set(
				    e, name, json_string_value(value));
			else
				mq_envelope_add(
				    e, name, json_string_value(value));
}

/* From now on batches go out so. */
static void
set_when(struct publisher *p, struct mq_when when)
{
	if (when.kind == p->how.when.kind && when.ms == p->how.when.ms)
		return;
	publish_send(p);
	p->how.when = when;
}

/* When a message of another queue was due there, it is due here, unless the
 * options know better. */
static void
set_due(struct publisher *p, const struct mq_frame_line *line)
{
	const struct mq_envelope e = {.headers = line->headers};
	int64_t due = mq_envelope_get_long(&e, MQ_HEADER_DUE, 0);

	if (p->when.kind != MQ_WHEN_NOW)
		return;
	if (due < line->due_ms)
		due = line->due_ms;
	if (due > MQ_TIME_MAX)
		due = MQ_TIME_MAX;
	if (due > 0)
		(void)next_us(p);
	if (due > (int64_t)p->last_us / 1000)
		set_when(p, (struct mq_when){MQ_WHEN_AT, due, true});
	else
		set_when(p, p->when);
}

static void
publish_with_headers(
    struct publisher *p, json_t *headers, const char *payload, size_t n)
{
	struct mq_envelope e = {.headers = headers};
	struct mq_buf header = {0};
	char unique[MQ_ID_LEN + 1];

	check_text(p, payload, n);
	check_wishes(p, &e);
	mq_id_make(&p->idgen, next_us(p), unique);
	if (mq_message_id(&e) == NULL)
		mq_envelope_set(&e, MQ_HEADER_ID, unique);
	set_times(p, &e);
	add_headers(&e, p->opt->headers.headers);
	if (p->opt->wait)
		mq_envelope_set(&e, MQ_HEADER_REPLY_TO, mq_message_id(&e));
	if (!p->how.special && mq_message_special(&e)) {
		/* Those before it come first. */
		publish_flush(p);
		p->how.special = true;
	}
	mq_envelope_write_header(&e, &header);
	add(p, unique, mq_message_id(&e), &header, payload, n);
	mq_buf_free(&header);
}

/* Whether the options ask for something that only a header can say. */
static bool
needs_header(const struct options *o)
{
	return o->ids || o->wait || o->headers.headers != NULL ||
	    o->expires_ms > 0;
}

void
publish_line(struct publisher *p, const struct mq_frame_line *line,
    const char *payload, size_t n)
{
	set_due(p, line);
	if (line->headers != NULL)
		publish_with_headers(p, line->headers, payload, n);
	else if (line->raw && !needs_header(p->opt))
		publish_bare(p, payload, n);
	else
		publish_message(p, payload, n);
}

/* Where the value of a header of ours, which is there, stands in the text. */
static size_t
place_of(const struct publisher *p, const char *name)
{
	const char *at =
	    memmem(p->header.data, p->header.len, name, strlen(name));

	/* Behind it come ":[" and a quote. */
	return (size_t)(at - p->header.data) + strlen(name) + strlen("\":[\"");
}

void
publish_prepare(struct publisher *p)
{
	static const char gap[] = "--------------------------------";
	struct mq_envelope e = {0};

	if (p->opt->raw)
		return;
	(void)next_us(p);
	mq_envelope_set(&e, MQ_HEADER_ID, gap);
	if (p->opt->wait)
		mq_envelope_set(&e, MQ_HEADER_REPLY_TO, gap);
	set_times(p, &e);
	if (p->opt->headers.headers != NULL)
		add_headers(&e, p->opt->headers.headers);
	mq_envelope_write_header(&e, &p->header);
	mq_envelope_free(&e);
	/* Ours come first, so this finds no others. */
	p->id_at = place_of(p, MQ_HEADER_ID);
	if (p->opt->wait)
		p->reply_at = place_of(p, MQ_HEADER_REPLY_TO);
	if (p->when.kind != MQ_WHEN_NOW)
		p->due_at = place_of(p, MQ_HEADER_DUE);
	if (p->opt->expires_ms > 0)
		p->expires_at = place_of(p, MQ_HEADER_EXPIRES);
}
