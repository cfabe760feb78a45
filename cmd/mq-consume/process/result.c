/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* --result: the standard output of a run, in memory until its end. */
#include "process.h"

struct run_result *
run_result_new(const struct options *opt, const struct message *m)
{
	struct run_result *r;

	if (opt->result == 0 || m == NULL ||
	    (!m->awaited && rules_of(opt, m->queue)->keep_ms <= 0))
		return NULL;
	r = mq_xcalloc(1, sizeof(*r));
	r->most = opt->result;
	return r;
}

void
run_result_add(struct run_result *r, const char *p, size_t n)
{
	size_t room = r->most - r->bytes.len;

	r->cut = r->cut || n > room;
	mq_buf_add(&r->bytes, p, MIN(n, room));
}

void
run_result_free(struct run_result *r)
{
	if (r != NULL)
		mq_buf_free(&r->bytes);
	free(r);
}
