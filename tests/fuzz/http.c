/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Requests: what is taken of one has the form that it promises, whatever comes, and
 * the end of a head is where its parser finds it, in whatever pieces it comes.
 */
#include "shared/options.h"

#include "fuzz.h"

static void
check_request(const struct http_request *r)
{
	size_t i;
	const char *p;

	assert(r->path[0] == '/' && r->method <= METHOD_OTHER);
	assert(r->length >= -1);
	for (i = 0; i < r->header_count; i++) {
		assert(r->headers[i].name[0] != '\0');
		assert(http_request_get(r, r->headers[i].name) != NULL);
		for (p = r->headers[i].value; *p != '\0'; p++)
			assert(*p == '\t' || (unsigned char)*p >= ' ');
	}
	assert((http_request_get(r, "Content-Length") != NULL) ==
	    (r->length >= 0));
	assert(http_request_get(r, "Transfer-Encoding") == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *head = mq_xcalloc(n + 1, 1);
	size_t end, part;
	struct http_request r;
	int status;

	if (n > 0)
		memcpy(head, data, n);
	end = http_request_end(head, n);
	assert(end <= n && (end == 0 || head[end - 1] == '\n'));
	for (part = 0; part < end; part++)
		assert(http_request_end(head, part) == 0);
	status = http_request_parse(&r, head, end != 0 ? end : n);
	assert(status == 0 || (status >= 400 && status <= 505));
	if (status == 0)
		check_request(&r);
	http_request_free(&r);
	free(head);
	return 0;
}
