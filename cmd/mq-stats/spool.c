/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-stats --spool: the messages that mq-publish --spool has put on this host's disk, for any server,
 * which is not asked. */
#include "shared/spool.h"

#include "stats.h"

/* A file that cannot be read has only a name, and why. */
static void
read_file(const char *name, struct spooled *f)
{
	struct spool_reader r;
	struct spool_state state;
	int rv = spool_open(&r, name);

	spool_read_state(name, &state);
	*f = (struct spooled){.file = mq_xstrdup(name), .why = state.why};
	if (rv == 0) {
		f->queue = mq_xstrdup(r.head.queue);
		f->layout = mq_xstrdup(r.head.layout);
		f->server = mq_xstrdup(r.head.server);
		f->messages = r.head.messages;
		f->since_ms = r.head.since_ms;
		f->tried_ms = state.tried_ms;
	} else {
		free(f->why);
		f->why =
		    mq_xstrdup(errno == EILSEQ ? "damaged" : strerror(errno));
	}
	spool_close(&r);
}

/* All files; the caller frees them by free_files(). */
static struct spooled *
read_files(size_t *n)
{
	struct mq_names names;
	struct spooled *files;
	size_t i;

	if (spool_list(&names, true) == -1)
		mq_die(MQ_EXIT_IO, "--spool: %s", strerror(errno));
	files = mq_xcalloc(names.n + 1, sizeof(*files));
	for (i = 0; i < names.n; i++)
		read_file(names.list[i].name, &files[i]);
	*n = names.n;
	mq_names_free(&names);
	return files;
}

static void
free_files(struct spooled *files, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		free(files[i].file);
		free(files[i].queue);
		free(files[i].layout);
		free(files[i].server);
		free(files[i].why);
	}
	free(files);
}

int64_t
spool_since(void)
{
	size_t n, i;
	struct spooled *files = read_files(&n);
	int64_t since_ms = 0;

	for (i = 0; i < n; i++)
		if (files[i].since_ms > 0 &&
		    (since_ms == 0 || files[i].since_ms < since_ms))
			since_ms = files[i].since_ms;
	free_files(files, n);
	return since_ms;
}

int
spool_print(bool json, bool quiet)
{
	size_t n, i;
	struct spooled *files = read_files(&n);
	int64_t now_ms = mq_clock_unix_us() / 1000;
	struct table table;

	if (json) {
		output_json_line(fields_list(
		    spool_fields, files, sizeof(*files), (int)n, now_ms));
	} else if (n > 0) {
		table_begin(&table, spool_fields, NULL, now_ms);
		for (i = 0; i < n; i++)
			table_add(&table, &files[i], NULL);
		table_print(&table);
	}
	if (n == 0 && !quiet)
		mq_say("no message waits on this host");
	free_files(files, n);
	return n > 0 ? MQ_EXIT_OK : MQ_EXIT_NO;
}
