/*
 * The reader.  Everything goes through one buffer: read(2) appends to it,
 * records are handed out from its front, and the part of a record that is
 * left over moves to the front before the next read.  A byte moves at most
 * once this way, and is searched for a separator once.
 */
#include "frame.h"

#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

enum {
	BUFFER_SIZE = 256 * 1024,
	READ_SIZE = 64 * 1024, /* room for less than this is not worth a read */
	LENGTH_DIGITS = 10
};

/* The size of the first buffer; for a file that is one record, all of it. */
static size_t
first_size(int fd, enum mq_framing framing, size_t max)
{
	struct stat st;
	uintmax_t size;

	if (framing != MQ_FRAME_WHOLE || fstat(fd, &st) == -1 ||
	    !S_ISREG(st.st_mode))
		return BUFFER_SIZE;
	size = (uintmax_t)st.st_size < max ? (uintmax_t)st.st_size : max;
	if (size <= BUFFER_SIZE - READ_SIZE || size > SIZE_MAX / 2)
		return BUFFER_SIZE;
	return (size_t)size + READ_SIZE;
}

static void
set_capacity(struct mq_buf *b, size_t cap)
{
	b->data = mq_xreallocarray(b->data, cap, 1);
	b->cap = cap;
}

void
mq_frame_reader_init(
    struct mq_frame_reader *r, int fd, enum mq_framing framing, size_t max)
{
	*r = (struct mq_frame_reader){.fd = fd, .framing = framing, .max = max};
	set_capacity(&r->buf, first_size(fd, framing, max));
}

void
mq_frame_reader_free(struct mq_frame_reader *r)
{
	mq_buf_free(&r->buf);
}

static void
make_room(struct mq_frame_reader *r)
{
	struct mq_buf *b = &r->buf;

	if (r->start > 0) {
		b->len -= r->start;
		memmove(b->data, b->data + r->start, b->len);
		r->start = 0;
	}
	if (r->want > b->cap)
		set_capacity(b, r->want);
	else if (r->want <= b->len && b->cap - b->len < READ_SIZE)
		mq_buf_reserve(b, READ_SIZE);
}

/* MQ_FRAME_RECORD stands for "there is more to look at" here. */
static enum mq_frame_result
fill_buffer(struct mq_frame_reader *r)
{
	struct pollfd input = {.fd = r->fd, .events = POLLIN};
	struct mq_buf *b = &r->buf;
	ssize_t n;
	int ready;

	make_room(r);
	ready = poll(&input, 1, 0);
	if (ready == 0)
		return MQ_FRAME_WAIT;
	n = ready == -1 ? -1 : read(r->fd, b->data + b->len, b->cap - b->len);
	/* Another reader may have been faster on an O_NONBLOCK descriptor. */
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? MQ_FRAME_WAIT :
							   MQ_FRAME_FAILED;
	b->len += (size_t)n;
	r->eof = n == 0;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
fail_too_long(struct mq_frame_reader *r)
{
	snprintf(r->error, sizeof(r->error), "longer than %zu bytes", r->max);
	return MQ_FRAME_BAD;
}

/* The functions below return MQ_FRAME_WAIT when they need more input. */

/* Hands out n bytes, and steps over what frames them on both sides. */
static enum mq_frame_result
deliver_record(struct mq_frame_reader *r, size_t before, size_t n,
    size_t behind, const char **p)
{
	*p = r->buf.data + r->start + before;
	r->start += before + n + behind;
	r->scanned = 0;
	r->want = 0;
	r->records++;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
take_whole(struct mq_frame_reader *r, const char **p, size_t *n)
{
	*n = r->buf.len - r->start;
	if (*n > r->max)
		return fail_too_long(r);
	if (!r->eof)
		return MQ_FRAME_WAIT;
	if (r->records > 0)
		return MQ_FRAME_END;
	return deliver_record(r, 0, *n, 0, p);
}

static enum mq_frame_result
take_until(struct mq_frame_reader *r, int separator, const char **p, size_t *n)
{
	const char *from = r->buf.data + r->start, *end;
	size_t have = r->buf.len - r->start;

	end = memchr(from + r->scanned, separator, have - r->scanned);
	*n = end != NULL ? (size_t)(end - from) : have;
	if (*n > r->max)
		return fail_too_long(r);
	if (end != NULL)
		return deliver_record(r, 0, *n, 1, p);
	r->scanned = have;
	if (!r->eof)
		return MQ_FRAME_WAIT;
	return have == 0 ? MQ_FRAME_END : deliver_record(r, 0, have, 0, p);
}

static enum mq_frame_result
fail_length(struct mq_frame_reader *r, const char *what)
{
	snprintf(r->error, sizeof(r->error), "netstring: length %s", what);
	return MQ_FRAME_BAD;
}

/* Reads "LEN:"; its own length goes into *digits and LEN into *n. */
static enum mq_frame_result
take_length(struct mq_frame_reader *r, size_t *digits, size_t *n)
{
	const char *p = r->buf.data + r->start;
	size_t have = r->buf.len - r->start, i;
	uint64_t length = 0;

	for (i = 0; i < have && p[i] >= '0' && p[i] <= '9'; i++) {
		if (i == LENGTH_DIGITS)
			return fail_length(r, "has more than 10 digits");
		length = length * 10 + (uint64_t)(p[i] - '0');
	}
	if (i > 1 && p[0] == '0')
		return fail_length(r, "has a leading zero");
	if (i == have)
		return r->eof ? fail_length(r, "is cut off") : MQ_FRAME_WAIT;
	if (i == 0 || p[i] != ':')
		return fail_length(r, "is not a number");
	if (length > r->max)
		return fail_too_long(r);
	*digits = i;
	*n = (size_t)length;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
take_content(struct mq_frame_reader *r, size_t digits, size_t n, const char **p)
{
	size_t have = r->buf.len - r->start - digits - 1;

	if (have > n) {
		if (r->buf.data[r->start + digits + 1 + n] == ',')
			return deliver_record(r, digits + 1, n, 1, p);
		snprintf(r->error, sizeof(r->error),
		    "netstring: no comma after its payload (length %zu)", n);
		return MQ_FRAME_BAD;
	}
	if (r->eof) {
		snprintf(r->error, sizeof(r->error),
		    "netstring: cut off after %zu of %zu bytes%s", have, n,
		    have == n ? ", no comma" : "");
		return MQ_FRAME_BAD;
	}
	r->want = digits + 1 + n + 1;
	return MQ_FRAME_WAIT;
}

static enum mq_frame_result
take_netstring(struct mq_frame_reader *r, const char **p, size_t *n)
{
	size_t have = r->buf.len - r->start, digits;
	enum mq_frame_result result;

	/* Editors and echo(1) leave one newline at the very end. */
	if (have == 0 || (have == 1 && r->buf.data[r->start] == '\n'))
		return r->eof ? MQ_FRAME_END : MQ_FRAME_WAIT;
	result = take_length(r, &digits, n);
	if (result != MQ_FRAME_RECORD)
		return result;
	return take_content(r, digits, *n, p);
}

static enum mq_frame_result
take_record(struct mq_frame_reader *r, const char **p, size_t *n)
{
	switch (r->framing) {
	case MQ_FRAME_WHOLE:
		return take_whole(r, p, n);
	case MQ_FRAME_NULL:
		return take_until(r, '\0', p, n);
	case MQ_FRAME_NETSTRING:
		return take_netstring(r, p, n);
	case MQ_FRAME_LINES:
	case MQ_FRAME_JSONL:
		break;
	}
	return take_until(r, '\n', p, n);
}

enum mq_frame_result
mq_frame_read(struct mq_frame_reader *r, const char **p, size_t *n)
{
	enum mq_frame_result result;

	do {
		result = take_record(r, p, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		result = fill_buffer(r);
	} while (result == MQ_FRAME_RECORD);
	return result;
}
