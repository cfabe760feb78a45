/*
 * The reader.  Everything goes through one buffer: read(2) appends to it,
 * records are handed out from its front, and the part of a record that is
 * left over moves to the front before the next read.  A byte moves at most
 * once this way, and is searched for a separator once.
 */
#include "frame.h"

#include <sys/param.h>
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

#define BUFFER_SIZE ((size_t)256 * 1024)
/* Room for less than this is not worth a read. */
#define READ_SIZE     ((size_t)64 * 1024)
#define LENGTH_DIGITS 10

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
	uintmax_t size = 0;
	struct stat st;

	*r = (struct mq_frame_reader){.fd = fd, .framing = framing, .max = max};
	/* A file that is one record fits into the first buffer. */
	if (framing == MQ_FRAME_WHOLE && fstat(fd, &st) == 0 &&
	    S_ISREG(st.st_mode))
		size = MIN((uintmax_t)st.st_size, max) + READ_SIZE;
	set_capacity(&r->buf, MAX((size_t)size, BUFFER_SIZE));
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

/* Returns MQ_FRAME_BAD. */
static enum mq_frame_result __attribute__((format(printf, 2, 3)))
fail_record(struct mq_frame_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	return MQ_FRAME_BAD;
}

static enum mq_frame_result
fail_too_long(struct mq_frame_reader *r)
{
	return fail_record(r, "longer than %zu bytes", r->max);
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

/* Reads "LEN:"; its own length goes into *digits and LEN into *n. */
static enum mq_frame_result
take_length(struct mq_frame_reader *r, size_t *digits, size_t *n)
{
	const char *p = r->buf.data + r->start;
	size_t have = r->buf.len - r->start, i;
	uint64_t length = 0;
	const char *why = NULL;

	for (i = 0; i < have && p[i] >= '0' && p[i] <= '9'; i++) {
		if (i == LENGTH_DIGITS)
			return fail_record(
			    r, "netstring: length has more than 10 digits");
		length = length * 10 + (uint64_t)(p[i] - '0');
	}
	if (i > 1 && p[0] == '0')
		why = "has a leading zero";
	else if (i == have && !r->eof)
		return MQ_FRAME_WAIT;
	else if (i == have)
		why = "is cut off";
	else if (i == 0 || p[i] != ':')
		why = "is not a number";
	else if (length > r->max)
		return fail_too_long(r);
	if (why != NULL)
		return fail_record(r, "netstring: length %s", why);
	*digits = i;
	*n = (size_t)length;
	return MQ_FRAME_RECORD;
}

static enum mq_frame_result
take_netstring(struct mq_frame_reader *r, const char **p, size_t *n)
{
	const char *from = r->buf.data + r->start;
	size_t have = r->buf.len - r->start, digits = 0;
	enum mq_frame_result result;

	/* Editors and echo(1) leave one newline at the very end. */
	if (have == 0 || (have == 1 && *from == '\n'))
		return r->eof ? MQ_FRAME_END : MQ_FRAME_WAIT;
	result = take_length(r, &digits, n);
	if (result != MQ_FRAME_RECORD)
		return result;
	from += digits + 1;
	have -= digits + 1;
	if (have > *n && from[*n] == ',')
		return deliver_record(r, digits + 1, *n, 1, p);
	if (have > *n)
		return fail_record(r,
		    "netstring: no comma after its payload (length %zu)", *n);
	if (r->eof)
		return fail_record(r,
		    "netstring: cut off after %zu of %zu bytes%s", have, *n,
		    have == *n ? ", no comma" : "");
	r->want = digits + 1 + *n + 1;
	return MQ_FRAME_WAIT;
}

enum mq_frame_result
mq_frame_read(struct mq_frame_reader *r, const char **p, size_t *n)
{
	int separator = r->framing == MQ_FRAME_NULL ? '\0' : '\n';
	enum mq_frame_result result;

	do {
		result = r->framing == MQ_FRAME_WHOLE ?
		    take_whole(r, p, n) :
		    r->framing == MQ_FRAME_NETSTRING ?
		    take_netstring(r, p, n) :
		    take_until(r, separator, p, n);
		if (result != MQ_FRAME_WAIT)
			return result;
		result = fill_buffer(r);
	} while (result == MQ_FRAME_RECORD);
	return result;
}
