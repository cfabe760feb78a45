/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "shared/options.h"

#include "record.h"

static int
parse(struct http_request *r, const char *text)
{
	size_t n = strlen(text);

	assert_int_equal(http_request_end(text, n), n);
	return http_request_parse(r, text, n);
}

TEST(test_good)
{
	static const char *const methods[] = {[METHOD_GET] = "GET",
	    [METHOD_HEAD] = "HEAD",
	    [METHOD_POST] = "POST",
	    [METHOD_OTHER] = "other"};
	/* Method, path, host and length of what follows. */
	static const struct {
		const char *text, *want;
	} all[] = {
	    {"GET / HTTP/1.0\r\n\r\n", "GET / none -1"},
	    {"GET / HTTP/1.1\nHost: x:80\n\n", "GET / x -1"},
	    {"GET / HTTP/1.0\nHost: [::1]\n\n", "GET / [::1] -1"},
	    {"GET / HTTP/1.1\nHost: [::1]:0\n\n", "GET / [::1] -1"},
	    {"GET / HTTP/1.1\nHost: x:8y\n\n", "GET / x:8y -1"},
	    {"HEAD /a%2Fb%20c?d=%zz HTTP/1.1\r\nhost:\r\n\r\n",
		"HEAD /a/b c  -1"},
	    {"get / HTTP/1.0\r\n\r\n", "other / none -1"},
	    {"DELETE /x HTTP/1.9\r\nHost: x\r\n\r\n", "other /x x -1"},
	    {"GET http://h:1 HTTP/1.1\r\nHost: x\r\n\r\n", "GET / h -1"},
	    {"GET HTTP://h?a/b HTTP/1.1\r\nHost: x\r\n\r\n", "GET / h -1"},
	    {"POST http://h/p/q HTTP/1.1\r\nHost: x\r\n"
	     "content-length: \t 12 \r\n\r\n",
		"POST /p/q h 12"},
	};
	struct http_request r;
	size_t i;

	for (i = 0; i < COUNT(all); i++) {
		assert_int_equal(parse(&r, all[i].text), 0);
		record("%s %s %s %jd", methods[r.method], r.path,
		    r.host != NULL ? r.host : "none", (intmax_t)r.length);
		assert_string_equal(recorded(), all[i].want);
		http_request_free(&r);
	}
	record_clear();
}

TEST(test_bad)
{
	static const struct {
		int status;
		const char *in[26];
	} all[] = {
	    {400,
		{"GET / HTTP/1.1\r\n\r\n",
		    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		    "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
		    "GET / HTTP/1.0\r\nHost : a\r\n\r\n",
		    "GET / HTTP/1.0\r\nA: b\r\n c\r\n\r\n",
		    "GET / HTTP/1.0\r\nA: b\rc\r\n\r\n",
		    "GET / HTTP/1.0\r\nA: b\x1b\r\n\r\n",
		    "GET / HTTP/1.0\r\nA\r\n\r\n",
		    "GET / HTTP/1.0\r\n: b\r\n\r\n", "GET  / HTTP/1.0\r\n\r\n",
		    "GET / HTTP/1.0 \r\n\r\n", "GET /\r\n\r\n",
		    "GET x HTTP/1.0\r\n\r\n", "GET * HTTP/1.0\r\n\r\n",
		    "GET /%zz HTTP/1.0\r\n\r\n", "GET /%00 HTTP/1.0\r\n\r\n",
		    "G@T / HTTP/1.0\r\n\r\n", "GET / http/1.0\r\n\r\n",
		    "GET / HTTP/1.10\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length: +1\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length:\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length: 1, 1\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length: 9999999999999999999\r\n\r\n",
		    "POST / HTTP/1.0\r\nContent-Length: 1\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n"}},
	    {505, {"GET / HTTP/2.0\r\n\r\n"}},
	    {501, {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"}},
	    {417, {"POST / HTTP/1.0\r\nExpect: magic\r\n\r\n"}},
	};
	const char *const *in;
	struct http_request r;
	size_t i;
	int status;

	for (i = 0; i < COUNT(all); i++)
		for (in = all[i].in; *in != NULL; in++) {
			status = parse(&r, *in);
			if (status != all[i].status)
				fail_msg("%s: %d", *in, status);
			http_request_free(&r);
		}
}

TEST(test_headers)
{
	struct http_request r;

	assert_int_equal(parse(&r,
			     "POST / HTTP/1.1\r\nHost: x\r\nexpect: "
			     "100-Continue\r\nA:  b c\t\r\n\r\n"),
	    0);
	assert_true(r.continues);
	assert_string_equal(http_request_get(&r, "a"), "b c");
	assert_null(http_request_get(&r, "b"));
	http_request_free(&r);
	/* HTTP/1.0 knows no such answer. */
	assert_int_equal(
	    parse(&r, "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), 0);
	assert_false(r.continues);
	http_request_free(&r);
}
