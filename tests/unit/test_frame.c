/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Framings: common/message/frame.c and frame-json.c. */
#include "unit.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"
#include "message/frame.h"
#include "message/json.h"

#define MIB ((size_t)1 << 20)

/* --- streams and what they must give -------------------------------------- */

struct stream {
	enum mq_framing framing;
	struct bytes in;
	size_t count;
	struct bytes out[4];
	const char *error; /* how it ends: NULL at a good end */
};

#define MAX_RECORD 12

static const struct stream streams[] = {
    {MQ_FRAME_WHOLE, {B("")}, 1, {{B("")}}, NULL},
    {MQ_FRAME_WHOLE, {B("a\nb\0c\n")}, 1, {{B("a\nb\0c\n")}}, NULL},
    {MQ_FRAME_WHOLE, {B("123456789012")}, 1, {{B("123456789012")}}, NULL},

    {MQ_FRAME_LINES, {B("")}, 0, {{0}}, NULL},
    {MQ_FRAME_LINES, {B("\n")}, 1, {{B("")}}, NULL},
    {MQ_FRAME_LINES, {B("a\nbc\n")}, 2, {{B("a")}, {B("bc")}}, NULL},
    {MQ_FRAME_LINES, {B("a\nbc")}, 2, {{B("a")}, {B("bc")}}, NULL},
    {MQ_FRAME_LINES, {B("\n\na\r\n\0\xff")}, 4,
	{{B("")}, {B("")}, {B("a\r")}, {B("\0\xff")}}, NULL},
    {MQ_FRAME_LINES, {B("123456789012\n123456789012")}, 2,
	{{B("123456789012")}, {B("123456789012")}}, NULL},

    {MQ_FRAME_NULL, {B("")}, 0, {{0}}, NULL},
    {MQ_FRAME_NULL, {B("\0")}, 1, {{B("")}}, NULL},
    {MQ_FRAME_NULL, {B("a\n\0\0b\0c")}, 4,
	{{B("a\n")}, {B("")}, {B("b")}, {B("c")}}, NULL},

    {MQ_FRAME_JSONL, {B("{\"a\":1}\n\n{}")}, 3,
	{{B("{\"a\":1}")}, {B("")}, {B("{}")}}, NULL},

    {MQ_FRAME_NETSTRING, {B("")}, 0, {{0}}, NULL},
    {MQ_FRAME_NETSTRING, {B("\n")}, 0, {{0}}, NULL},
    {MQ_FRAME_NETSTRING, {B("5:hello,0:,3:a,\0,")}, 3,
	{{B("hello")}, {B("")}, {B("a,\0")}}, NULL},
    {MQ_FRAME_NETSTRING, {B("12:123456789012,1:\n,\n")}, 2,
	{{B("123456789012")}, {B("\n")}}, NULL},
};

/* Streams that end badly, some of them behind a record "a". */
static const struct {
	const char *error;
	enum mq_framing framing;
	size_t count;
	struct bytes in[5];
} bad_streams[] = {
    {"longer than 12 bytes", MQ_FRAME_WHOLE, 0, {{B("1234567890123")}}},
    {"longer than 12 bytes", MQ_FRAME_LINES, 0, {{B("1234567890123")}}},
    {"longer than 12 bytes", MQ_FRAME_LINES, 1, {{B("a\n1234567890123\nb")}}},
    {"longer than 12 bytes", MQ_FRAME_NULL, 0, {{B("1234567890123\0")}}},
    {"longer than 12 bytes", MQ_FRAME_NETSTRING, 0,
	{{B("13:1234567890123,")}, {B("9999999999:")}}},
    {"netstring: length is not a number", MQ_FRAME_NETSTRING, 1,
	{{B("1:a,\n\n")}, {B("1:a,\n1:b,")}, {B("1:a, 1:b,")}, {B("1:a,x")}}},
    {"netstring: length is not a number", MQ_FRAME_NETSTRING, 0,
	{{B(":a,")}, {B("-1:a,")}, {B("1a:a,")}}},
    {"netstring: length has a leading zero", MQ_FRAME_NETSTRING, 0,
	{{B("01:a,")}, {B("00:,")}}},
    {"netstring: length has more than 10 digits", MQ_FRAME_NETSTRING, 0,
	{{B("10000000000:")}}},
    {"netstring: length is cut off", MQ_FRAME_NETSTRING, 1, {{B("1:a,5")}}},
    {"netstring: cut off after 0 of 5 bytes", MQ_FRAME_NETSTRING, 0,
	{{B("5:")}}},
    {"netstring: cut off after 3 of 5 bytes", MQ_FRAME_NETSTRING, 0,
	{{B("5:hel")}}},
    {"netstring: cut off after 5 of 5 bytes, no comma", MQ_FRAME_NETSTRING, 0,
	{{B("5:hello")}}},
    {"netstring: no comma after its payload (length 5)", MQ_FRAME_NETSTRING, 0,
	{{B("5:hello;")}}},
    {"netstring: no comma after its payload (length 4)", MQ_FRAME_NETSTRING, 0,
	{{B("4:hello,")}}},
};

static void
put(int fd, const char *p, size_t n)
{
	assert_int_equal(write(fd, p, n), n);
}

static struct mq_frame_reader
open_pipe(int fd[2], enum mq_framing framing, size_t max)
{
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	return (struct mq_frame_reader){
	    .fd = fd[0], .framing = framing, .max = max};
}

static void
expect_record(const struct mq_frame_reader *r, const struct stream *s,
    const char *p, size_t n)
{
	const struct bytes *want;

	assert_between(r->records, 1, s->count);
	want = &s->out[r->records - 1];
	assert_int_equal(n, want->n);
	assert_memory_equal(p, want->p, n);
}

/* Reads all that is there now. */
static enum mq_frame_result
read_on(struct mq_frame_reader *r, const struct stream *s)
{
	enum mq_frame_result result;
	const char *p;
	size_t n;

	while ((result = mq_frame_read(r, &p, &n)) == MQ_FRAME_RECORD)
		expect_record(r, s, p, n);
	return result;
}

static void
expect_end(struct mq_frame_reader *r, const struct stream *s)
{
	int again;

	for (again = 0; again < 2; again++) {
		assert_int_equal(read_on(r, s),
		    s->error != NULL ? MQ_FRAME_BAD : MQ_FRAME_END);
		if (s->error != NULL)
			assert_string_equal(r->error, s->error);
		assert_int_equal(r->records, s->count);
	}
}

/* The stream in two parts: the second comes when the first is read. */
static void
read_split(const struct stream *s, size_t at)
{
	struct mq_frame_reader r;
	enum mq_frame_result result;
	int fd[2];

	r = open_pipe(fd, s->framing, MAX_RECORD);
	put(fd[1], s->in.p, at);
	result = read_on(&r, s);
	if (result != MQ_FRAME_BAD)
		assert_int_equal(result, MQ_FRAME_WAIT);
	put(fd[1], s->in.p + at, s->in.n - at);
	close(fd[1]);
	expect_end(&r, s);
	mq_buf_free(&r.buf);
	close(fd[0]);
}

TEST(every_split_of_every_stream)
{
	struct stream s;
	size_t i, k, at;

	for (i = 0; i < COUNT(streams); i++)
		for (at = 0; at <= streams[i].in.n; at++)
			read_split(&streams[i], at);
	for (i = 0; i < COUNT(bad_streams); i++)
		for (k = 0; bad_streams[i].in[k].p != NULL; k++) {
			s = (struct stream){bad_streams[i].framing,
			    bad_streams[i].in[k], bad_streams[i].count,
			    {{B("a")}}, bad_streams[i].error};
			for (at = 0; at <= s.in.n; at++)
				read_split(&s, at);
		}
}

/* --- long streams --------------------------------------------------------- */

/* n bytes without newline and NUL, and not the same everywhere. */
static char *
filler(size_t n)
{
	char *p = malloc(n);
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (char)(' ' + i * 7 % 89);
	return p;
}

/* A record without end must not fill the memory before it is refused. */
TEST(limit_holds_before_the_end_is_seen)
{
	static const enum mq_framing framings[] = {
	    MQ_FRAME_WHOLE, MQ_FRAME_LINES, MQ_FRAME_NULL};
	char *text = filler(8 * MIB);
	struct mq_frame_reader r;
	const char *p;
	size_t i, n;
	int fd = memfd_create("in", 0);

	put(fd, text, 8 * MIB);
	for (i = 0; i < COUNT(framings); i++) {
		lseek(fd, 0, SEEK_SET);
		r = (struct mq_frame_reader){
		    .fd = fd, .framing = framings[i], .max = MIB};
		assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_BAD);
		assert_string_equal(r.error, "longer than 1048576 bytes");
		assert_true(r.buf.len <= 2 * MIB);
		mq_buf_free(&r.buf);
	}
	close(fd);
	free(text);
}

TEST(long_line_is_searched_once)
{
	struct mq_frame_reader r;
	const char *p;
	size_t n, i;
	int fd[2];

	r = open_pipe(fd, MQ_FRAME_LINES, MIB);
	for (i = 1; i <= 10; i++) {
		put(fd[1], "0123456789", 10);
		assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_WAIT);
		assert_int_equal(r.scanned, 10 * i);
	}
	put(fd[1], "\n", 1);
	assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_RECORD);
	assert_int_equal(n, 100);
	assert_int_equal(r.scanned, 0);
	close(fd[1]);
	close(fd[0]);
	mq_buf_free(&r.buf);
}

TEST(netstring_in_pieces)
{
	char *text = filler(MIB);
	struct mq_envelope e = {NULL, text, MIB};
	struct mq_buf in = {0};
	struct mq_frame_reader r;
	const char *p;
	size_t n, at, piece;
	int fd[2];

	mq_frame_write(&in, MQ_FRAME_NETSTRING, &e, NULL);
	r = open_pipe(fd, MQ_FRAME_NETSTRING, MIB);
	for (at = 0; at < in.len; at += piece) {
		assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_WAIT);
		piece = in.len - at < 60000 ? in.len - at : 60000;
		put(fd[1], in.data + at, piece);
	}
	close(fd[1]);
	assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_RECORD);
	assert_int_equal(n, MIB);
	assert_true(r.buf.cap < 2 * MIB);
	assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_END);
	close(fd[0]);
	mq_buf_free(&r.buf);
	mq_buf_free(&in);
	free(text);
}

/* --- failing -------------------------------------------------------------- */

TEST(failing)
{
	struct mq_frame_reader r;
	const char *p;
	size_t n;
	struct rlimit limit, none = {0};
	int fd = open("/", O_RDONLY), k;

	r = (struct mq_frame_reader){
	    .fd = fd, .framing = MQ_FRAME_WHOLE, .max = MIB};
	for (k = 0; k < 2; k++) {
		assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_FAILED);
		assert_int_equal(errno, EISDIR);
	}
	mq_buf_free(&r.buf);
	close(fd);
	r.framing = MQ_FRAME_LINES;
	assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_FAILED);
	assert_int_equal(errno, EBADF);
	/* poll(2) refuses more descriptors than may be open. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(mq_frame_read(&r, &p, &n), MQ_FRAME_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	mq_buf_free(&r.buf);
}

/* --- jsonl ---------------------------------------------------------------- */

#define HEADERS                                                                \
	"{\"headers\":{\"z-b\":\"1\",\"A\":[\"2\",\"3\"],\"n\":null,"          \
	"\"e\":[],\"\":\"\\u0000\"},\"payload\":\"a\"}"

TEST(good_json)
{
	static const struct {
		struct bytes line, payload;
		const char *headers;
		bool raw;
		int64_t due_ms;
	} good[] = {
	    {{B("{\"payload\":\"\"}")}, {B("")}, NULL, false, 0},
	    {{B(" { \"payload\" : \"a\" } \r")}, {B("a")}, NULL, false, 0},
	    {{B("{\"payload\":\"a\\u0000\\n\xc3\xa4\"}")}, {B("a\0\n\xc3\xa4")},
		NULL, false, 0},
	    {{B("{\"payload_base64\":\"\"}")}, {B("")}, NULL, false, 0},
	    {{B("{\"payload_base64\":\"/wA+\"}")}, {B("\xff\0>")}, NULL, false,
		0},
	    {{B("{\"x\":{},\"payload\":\"a\",\"id\":7}")}, {B("a")}, NULL,
		false, 0},
	    {{B("{\"payload\":\"a\",\"headers\":null}")}, {B("a")}, NULL, false,
		0},
	    {{B(HEADERS)}, {B("a")},
		"{\"z-b\":[\"1\"],\"A\":[\"2\",\"3\"],\"n\":null,\"e\":[],"
		"\"\":[\"\\u0000\"]}",
		false, 0},
	    /* Copies say of which queue they were, and are as they were. */
	    {{B("{\"queue\":\"q\",\"payload\":\"a\"}")}, {B("a")}, NULL, true,
		0},
	    {{B("{\"queue\":\"q\",\"headers\":null,\"payload\":\"a\"}")},
		{B("a")}, NULL, false, 0},
	    {{B("{\"queue\":\"q\",\"headers\":{},\"payload\":\"a\"}")},
		{B("a")}, "{}", false, 0},
	    {{B("{\"queue\":\"q\",\"due_ms\":7,\"payload\":\"a\"}")}, {B("a")},
		NULL, true, 7},
	    {{B("{\"queue\":\"q\",\"due_ms\":-7,\"payload\":\"a\"}")}, {B("a")},
		NULL, true, 0},
	    {{B("{\"queue\":\"q\",\"due_ms\":\"7\",\"payload\":\"a\"}")},
		{B("a")}, NULL, true, 0},
	    {{B("{\"due_ms\":7,\"payload\":\"a\"}")}, {B("a")}, NULL, false, 0},
	};
	struct mq_buf payload = {0}, text = {0};
	struct mq_frame_line line;
	const char *why;
	size_t i;

	for (i = 0; i < COUNT(good); i++) {
		mq_buf_clear(&payload);
		mq_buf_add(&payload, "+", 1);
		assert_int_equal(mq_frame_decode_json(good[i].line.p,
				     good[i].line.n, &payload, &line, &why),
		    0);
		assert_int_equal(payload.len, good[i].payload.n + 1);
		assert_memory_equal(
		    payload.data + 1, good[i].payload.p, good[i].payload.n);
		assert_int_equal(line.raw, good[i].raw);
		assert_int_equal(line.due_ms, good[i].due_ms);
		assert_int_equal(line.headers != NULL, good[i].headers != NULL);
		if (line.headers == NULL)
			continue;
		mq_buf_clear(&text);
		mq_json_dump(line.headers, &text);
		assert_string_equal(mq_buf_str(&text), good[i].headers);
		json_decref(line.headers);
	}
	mq_buf_free(&payload);
	mq_buf_free(&text);
}

#define PAYLOAD "{\"payload\":\"a\",\"headers\":"

TEST(bad_json)
{
	static const struct {
		const char *why;
		struct bytes lines[6];
	} bad[] = {
	    {"invalid JSON",
		{{B("")}, {B("{")}, {B("{\"payload\":\"a\"}x")},
		    {B("{\"payload\":\"a\"}\0")},
		    {B("{\"payload\":\"\xff\"}")}}},
	    {"not a JSON object",
		{{B("null")}, {B("[\"payload\"]")}, {B("\"payload\"")}}},
	    {"neither payload nor payload_base64",
		{{B("{}")}, {B("{\"Payload\":\"a\"}")}}},
	    {"both payload and payload_base64",
		{{B("{\"payload\":\"a\",\"payload_base64\":\"\"}")},
		    {B("{\"payload\":null,\"payload_base64\":null}")}}},
	    {"payload is not a string",
		{{B("{\"payload\":null}")}, {B("{\"payload\":1}")},
		    {B("{\"payload\":[\"a\"]}")}}},
	    {"payload_base64 is not base64",
		{{B("{\"payload_base64\":1}")},
		    {B("{\"payload_base64\":\"YQ\"}")},
		    {B("{\"payload_base64\":\"YWJjZ*==\"}")}}},
	    {"headers is not an object",
		{{B(PAYLOAD "[]}")}, {B(PAYLOAD "\"a\"}")}}},
	    {"a header is neither",
		{{B(PAYLOAD "{\"a\":1}}")}, {B(PAYLOAD "{\"a\":{}}}")},
		    {B(PAYLOAD "{\"a\":true}}")},
		    {B(PAYLOAD "{\"b\":\"x\",\"a\":[1]}}")},
		    {B(PAYLOAD "{\"a\":[\"x\",null]}}")}}},
	};
	struct mq_buf payload = {0};
	struct mq_frame_line line;
	const struct bytes *b;
	const char *why;
	size_t i;

	mq_buf_add(&payload, "+", 1);
	for (i = 0; i < COUNT(bad); i++)
		for (b = bad[i].lines; b->p != NULL; b++) {
			why = "";
			assert_int_equal(mq_frame_decode_json(
					     b->p, b->n, &payload, &line, &why),
			    -1);
			if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
				fail_msg("%s: \"%s\"", b->p, why);
			assert_null(line.headers);
			assert_int_equal(payload.len, 1);
		}
	mq_buf_free(&payload);
}

static void
expect_jsonl(const struct mq_envelope *e, const struct mq_frame_meta *meta,
    const char *want)
{
	struct mq_buf out = {0};

	mq_frame_write(&out, MQ_FRAME_JSONL, e, meta);
	assert_string_equal(mq_buf_str(&out), want);
	mq_buf_free(&out);
}

#define STAMP "hoemmt78nx2RH1fEFu3Zr5uvXhhd9EQw"

TEST(written_json)
{
	struct mq_frame_meta meta = {"i1", "q\xff", 2, NULL, NULL};
	const struct mq_frame_meta none = {NULL, NULL, 0, NULL, NULL};
	struct mq_envelope e = {NULL, B("a\0\n")};
	const char *why;

	expect_jsonl(&e, &meta,
	    "{\"id\":\"i1\",\"queue\":\"q\\\\xff\",\"attempt\":2,"
	    "\"payload\":\"a\\u0000\\n\"}\n");
	e = (struct mq_envelope){NULL, B("\xff")};
	mq_envelope_add(&e, "Z", "1");
	mq_envelope_add(&e, "A", "2");
	/* The envelope's own headers come first. */
	meta = (struct mq_frame_meta){.queue = "q", .stamp = STAMP};
	meta.more = json_pack("{s:s, s:[n, i]}", "n", "\x1f", "list", 5);
	expect_jsonl(&e, &meta,
	    "{\"queue\":\"q\",\"n\":\"\\u001F\",\"list\":[null,5],"
	    "\"headers\":{\"Z\":[\"1\"],\"A\":[\"2\"]},"
	    "\"payload_base64\":\"/w==\"}\n");
	json_decref(meta.more);
	mq_envelope_free(&e);
	e = (struct mq_envelope){NULL, NULL, 0};
	meta.more = NULL;
	expect_jsonl(&e, &meta,
	    "{\"queue\":\"q\",\"headers\":{\"Mq-Id\":[\"" STAMP
	    "\"]},\"payload\":\"\"}\n");
	expect_jsonl(&e, &none, "{\"payload\":\"\"}\n");
	assert_int_equal(
	    mq_envelope_parse(B("\xff\0\xbe\xbe\x4anull\nx"), &e, &why), 0);
	expect_jsonl(&e, &none, "{\"headers\":null,\"payload\":\"x\"}\n");
	mq_envelope_free(&e);
	/* A name with a NUL in a header, U+FDD0 in the payload. */
	assert_int_equal(
	    mq_envelope_parse(
		B("\xff\0\xbe\xbe\x4a{\"a\\u0000\":[\"\"]}\n\xef\xb7\x90"), &e,
		&why),
	    0);
	expect_jsonl(&e, &none,
	    "{\"headers\":{\"a\\u0000\":[\"\"]},\"payload\":\"\xef\xb7\x90\"}\n");
	mq_envelope_free(&e);
}

/* Text as jansson writes it, or not at all. */
static void
expect_text(const char *p, size_t n)
{
	json_t *v = json_stringn(p, n);
	struct mq_buf want = {0}, got = {0};

	mq_buf_addstr(&want, "before");
	mq_buf_addstr(&got, "before");
	assert_int_equal(mq_json_add_text(&got, p, n), v != NULL);
	if (v != NULL)
		mq_json_dump(v, &want);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	json_decref(v);
	mq_buf_free(&want);
	mq_buf_free(&got);
}

/* Each byte at each place among eight, and behind each other byte. */
TEST(texts_are_as_jansson_writes_them)
{
	static const struct bytes texts[] = {{B("\xc3\xa4\xe2\x82\xac")},
	    {B("12345678\xf0\x9f\x98\x80")}, {B("1234567\xf0\x9f\x98")},
	    {B("\xed\xa0\x80")}, {B("\xf4\x90\x80\x80")}, {B("\xe0\x80\x80")},
	    {B("\xf0\x80\x80\x80")}, {B("\xf8\x88\x80\x80\x80")},
	    {B("\xef\xb7\x90:")}};
	char text[24];
	size_t at, i;
	int c, d;

	expect_text("", 0);
	assert_int_equal(mq_utf8_len("", 0), 0);
	for (i = 0; i < COUNT(texts); i++)
		expect_text(texts[i].p, texts[i].n);
	for (c = 0; c < 256; c++) {
		for (at = 0; at < sizeof(text); at++) {
			memset(text, at % 2 == 0 ? ' ' : '~', sizeof(text));
			text[at] = (char)c;
			expect_text(text, sizeof(text));
			expect_text(text, at + 1);
		}
		for (d = 0; d < 256; d++) {
			text[9] = (char)d;
			text[10] = (char)c;
			expect_text(text, sizeof(text));
		}
	}
}

TEST(utf8_as_jansson_sees_it)
{
	/* Bytes at the borders of what UTF-8 allows. */
	static const char edge[] =
	    "\x00\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1"
	    "\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xf8\xff";
	size_t i, n = sizeof(edge) - 1;
	json_t *v;

	for (i = 0; i < n * n * n * n; i++) {
		const char s[] = {edge[i % n], edge[i / n % n],
		    edge[i / n / n % n], edge[i / n / n / n]};

		v = json_stringn(s, sizeof(s));
		assert_int_equal(mq_utf8(s, sizeof(s)), v != NULL);
		json_decref(v);
	}
}
