/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The framings: a stream gives the same records in whatever pieces it comes,
 * and records that are written are read again.  An input is one letter for the
 * framing, one byte for the pieces and one for the longest record, in 16 bytes;
 * then the stream.
 */
#include "message/frame.h"

#include <unistd.h>

#include "fuzz.h"

/* What fits into any pipe. */
#define STREAM_MAX 4096

static enum mq_framing
framing_of(uint8_t letter)
{
	static const char letters[] = "wl0nj";
	const char *at = letter != 0 ? strchr(letters, letter) : NULL;

	return at == NULL ? MQ_FRAME_LINES : (enum mq_framing)(at - letters);
}

/* Notes what there is to read until more is needed; false: that was all. */
static bool
read_on(struct mq_frame_reader *r, struct mq_buf *log)
{
	enum mq_frame_result result;
	const char *p;
	size_t n;

	while ((result = mq_frame_read(r, &p, &n)) == MQ_FRAME_RECORD) {
		assert(n <= r->max);
		mq_buf_printf(log, "%zu:", n);
		mq_buf_add(log, p, n);
		mq_buf_add(log, ",", 1);
	}
	assert(result != MQ_FRAME_FAILED);
	if (result == MQ_FRAME_WAIT)
		return true;
	/* What was wrong may be told differently, if more was there to see. */
	mq_buf_addstr(log, result == MQ_FRAME_BAD ? "bad" : "end");
	assert(mq_frame_read(r, &p, &n) == result);
	return false;
}

static void
read_all(struct mq_buf *log, enum mq_framing framing, size_t max,
    const uint8_t *p, size_t n, uint32_t seed)
{
	struct mq_frame_reader r;
	bool more = true;
	size_t piece;
	int fd[2];

	assert(pipe(fd) == 0);
	r = (struct mq_frame_reader){
	    .fd = fd[0], .framing = framing, .max = max};
	for (; more && n > 0; p += piece, n -= piece) {
		piece = seed == 0 ? n : fuzz_piece(&seed);
		if (piece > n)
			piece = n;
		assert(write(fd[1], p, piece) == (ssize_t)piece);
		more = read_on(&r, log);
	}
	close(fd[1]);
	if (more)
		assert(!read_on(&r, log));
	mq_buf_free(&r.buf);
	close(fd[0]);
}

/* One line of jsonl: what it says can be written, and then says the same. */
static void
decode(const char *line, size_t n)
{
	const struct mq_frame_meta meta = {.id = "\xff", .attempt = 1};
	struct mq_buf payload = {0}, text = {0}, back = {0};
	struct mq_frame_line one, two;
	struct mq_envelope e;
	const char *why;

	if (mq_frame_decode_json(line, n, &payload, &one, &why) == -1) {
		assert(payload.len == 0 && one.headers == NULL);
		mq_buf_free(&payload);
		return;
	}
	e = (struct mq_envelope){
	    one.headers, mq_buf_str(&payload), payload.len};
	mq_frame_write(&text, MQ_FRAME_JSONL, &e, &meta);
	assert(memchr(text.data, '\n', text.len) == text.data + text.len - 1);
	assert(mq_frame_decode_json(
		   text.data, text.len - 1, &back, &two, &why) == 0);
	assert(back.len == payload.len &&
	    memcmp(mq_buf_str(&back), payload.data, back.len) == 0);
	assert((one.headers == NULL) == (two.headers == NULL));
	assert(one.headers == NULL || json_equal(one.headers, two.headers));
	json_decref(one.headers);
	json_decref(two.headers);
	mq_buf_free(&payload);
	mq_buf_free(&text);
	mq_buf_free(&back);
}

/* The stream as one payload: all framings but lines and null bring it back. */
static void
write_one(enum mq_framing framing, const uint8_t *p, size_t n)
{
	struct mq_envelope e = {.payload = (const char *)p, .payload_len = n};
	const struct mq_frame_meta meta = {0};
	struct mq_buf out = {0}, log = {0}, want = {0};

	mq_frame_write(&out, framing, &e, &meta);
	read_all(&log, framing, SIZE_MAX, (const uint8_t *)mq_buf_str(&out),
	    out.len, 0);
	mq_buf_printf(&want, "%zu:", n);
	mq_buf_add(&want, p, n);
	mq_buf_addstr(&want, ",end");
	assert(
	    log.len == want.len && memcmp(log.data, want.data, log.len) == 0);
	mq_buf_free(&out);
	mq_buf_free(&log);
	mq_buf_free(&want);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	enum mq_framing framing = framing_of(fuzz_byte(&in));
	uint32_t seed = fuzz_byte(&in);
	size_t max = (size_t)fuzz_byte(&in) * 16;
	struct mq_buf whole = {0}, pieces = {0};

	if (in.n > STREAM_MAX)
		return 0;
	read_all(&whole, framing, max, in.p, in.n, 0);
	read_all(&pieces, framing, max, in.p, in.n, seed + 1);
	assert(whole.len == pieces.len &&
	    memcmp(whole.data, pieces.data, whole.len) == 0);
	if (framing == MQ_FRAME_JSONL)
		decode((const char *)in.p, in.n);
	if (framing == MQ_FRAME_WHOLE || framing == MQ_FRAME_NETSTRING)
		write_one(framing, in.p, in.n);
	mq_buf_free(&whole);
	mq_buf_free(&pieces);
	return 0;
}
