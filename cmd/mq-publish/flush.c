/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-publish --flush, and before --spool: what waits on this host's disk goes to the server. */
#include "shared/spool.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "publish.h"

/* Whether some messages must wait further, or be set aside, before more can be published. */
static bool
must_stop(const struct transport *t)
{
	return t->count[MQ_PUBLISHED_FULL] + t->count[MQ_PUBLISHED_TOO_LONG] +
	    t->count[MQ_PUBLISHED_NO_BATCH] >
	    0;
}

/* Publishes those batches of a file that have no mark, until must_stop(): 0, or -1: the file is
 * damaged. */
static int
publish_batches(struct transport *t, struct spool_reader *r)
{
	struct mq_publisher *p = &t->publisher;
	struct mq_publishing how;
	char unique[MQ_ID_LEN + 1];
	int64_t now_ms = mq_clock_unix_us() / 1000;
	int n;

	while ((n = spool_next(r, &how)) > 0) {
		if (how.when.kind == MQ_WHEN_AT && how.when.ms <= now_ms)
			how.when.kind = MQ_WHEN_NOW;
		if (how.has_options && !t->how.has_options)
			batch_flush(t);
		t->how = how;
		while (r->left > 0 && spool_read(r, unique))
			mq_publisher_add(p, &t->how, unique, NULL, &r->header,
			    r->payload.data, r->payload.len);
		if (r->left > 0)
			return -1;
		/* Behind a batch that was refused, others may have a mark.  A later one must not take its
		 * place among the marks before it is published. */
		if (mq_publisher_skip(p))
			batch_flush(t);
		else if (must_stop(t))
			mq_publisher_pass(p);
		else
			batch_cut(t);
	}
	batch_flush(t);
	return n;
}

/* The exit status of a child: messages were set aside, and others of the file may wait. */
#define GO_ON 100

static int
set_aside(const char *name)
{
	mq_say("--flush: %s.refused: damaged", name);
	return spool_set_aside(name, "damaged") == 0 ? GO_ON : MQ_EXIT_IO;
}

/* Publishes a file: the exit status. */
static int
flush_file(struct transport *t, const char *name, struct spool_reader *r)
{
	const struct spool_head *h = &r->head;
	int attempt = spool_attempt(t, h->begun_ms);

	if (attempt == -1)
		mq_die(MQ_EXIT_IO, "--flush: %s", strerror(errno));
	if (attempt == 1)
		return GO_ON;
	mq_publisher_continue(&t->publisher, h->publisher, h->begun, h->before);
	if (mq_publisher_read_marks(&t->publisher) != MQ_CALL_DONE) {
		mq_say("%s", t->redis.error);
		outcome_end(t, t->redis.status);
	}
	if (publish_batches(t, r) == -1) {
		/* The marks stay, in case that it is tried again. */
		batch_flush(t);
		mq_publisher_forget(&t->publisher);
		return set_aside(name);
	}
	if (spool_keep_left(t) == -1)
		mq_die(MQ_EXIT_IO, "--flush: %s: %s", name, strerror(errno));
	if (t->count[MQ_PUBLISHED_FULL] > 0) {
		mq_say("%s: the queue is full", h->queue);
		spool_note(t, MQ_EXIT_AGAIN, "the queue is full");
		return MQ_EXIT_AGAIN;
	}
	return must_stop(t) ? GO_ON : MQ_EXIT_OK;
}

struct flush {
	struct options *opt;
	struct mq_server *server;
	unsigned long *flushed; /* messages; all children share it */
	struct mq_names held;	/* queues of which messages must wait further */
	int64_t since_ms; /* unix time: this program waits for others since */
};

/* Whether another program has found out, while this one waited for it, that the server is away: of
 * many that begin while it is silent, each would else wait for all before. */
static bool
was_away(const struct flush *f, const char *name)
{
	struct spool_state state;
	bool yes;

	spool_read_state(name, &state);
	/* A clock that was ahead has left a time in the future. */
	yes = state.status == MQ_EXIT_UNAVAILABLE &&
	    state.tried_ms >= f->since_ms &&
	    state.tried_ms <= mq_clock_unix_us() / 1000;
	if (yes && f->opt->flush)
		mq_say("%s", state.why);
	free(state.why);
	return yes;
}

static void __attribute__((noreturn))
flush_in_child(struct flush *f, const char *name, struct spool_reader *r)
{
	struct options *o = f->opt;
	struct transport t = {.opt = o};
	int status;

	/* For --spool, the state of the file tells how it went. */
	if (!o->flush)
		mq_say_to(fopen("/dev/null", "we"));
	o->flush = true;
	o->spool_max = 0;
	o->queue = r->head.queue;
	o->shared.layout = mq_layout_find(r->head.layout);
	o->attributes = r->head.attributes;
	spool_prepare_flush(&t, name, &r->head, f->flushed);
	transport_begin(&t, f->server);
	status = flush_file(&t, name, r);
	transport_free(&t);
	exit(status);
}

/* A child publishes a file, as other queues get theirs whatever ends it: the exit status. */
static int
publish_file(struct flush *f, const char *name, struct spool_reader *r)
{
	int status = 0, rv;
	pid_t pid = fork();

	if (pid == 0)
		flush_in_child(f, name, r);
	while (pid != -1 && (rv = waitpid(pid, &status, 0)) == -1 &&
	    errno == EINTR)
		;
	return pid != -1 && rv != -1 && WIFEXITED(status) ?
	    WEXITSTATUS(status) :
	    MQ_EXIT_AGAIN;
}

/* Publishes a file, if it is for the server: the exit status. */
static int
flush_name(struct flush *f, const char *name)
{
	struct spool_reader r;
	int status = MQ_EXIT_OK, rv = spool_open(&r, name);

	if (rv == -1 && errno == EILSEQ) {
		status = set_aside(name);
	} else if (rv == -1 && errno != ENOENT) {
		mq_say("--flush: %s: %s", name, strerror(errno));
		status = MQ_EXIT_IO;
	} else if (rv == 0 && strcmp(r.head.server, f->server->name) == 0 &&
	    !mq_names_have(&f->held, r.head.queue)) {
		status = was_away(f, name) ? MQ_EXIT_UNAVAILABLE :
					     publish_file(f, name, &r);
	}
	if (status != MQ_EXIT_OK && status != GO_ON && rv != -1) {
		mq_names_add(&f->held, r.head.queue, NULL);
		mq_names_sort(&f->held);
	}
	spool_close(&r);
	return status;
}

/* Whether nothing can be published after this end of an attempt: a cluster may lack the node of one
 * queue only. */
static bool
is_away(const struct mq_server *server, int status)
{
	return status == MQ_EXIT_UNAVAILABLE &&
	    server->url.kind != MQ_URL_CLUSTER;
}

int
flush_spool(struct options *o, struct mq_server *server)
{
	struct flush f = {
	    .opt = o, .server = server, .since_ms = mq_clock_unix_us() / 1000};
	struct mq_names names;
	int fd = spool_lock(), status = MQ_EXIT_OK, one = MQ_EXIT_OK;
	size_t i;

	if (fd == -1 || spool_list(&names, false) == -1)
		mq_die(MQ_EXIT_IO, "--flush: %s", strerror(errno));
	f.flushed = mmap(NULL, sizeof(*f.flushed), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f.flushed == MAP_FAILED)
		mq_die(MQ_EXIT_AGAIN, "--flush: %s", strerror(errno));
	for (i = 0; i < names.n && !is_away(server, one); i++) {
		while ((one = flush_name(&f, names.list[i].name)) == GO_ON)
			status = MQ_EXIT_DATA;
		status = one != MQ_EXIT_OK ? one : status;
	}
	if (o->flush && *f.flushed > 0 && !o->shared.quiet)
		mq_say("flushed: %lu message%s", *f.flushed,
		    *f.flushed == 1 ? "" : "s");
	munmap(f.flushed, sizeof(*f.flushed));
	mq_names_free(&f.held);
	mq_names_free(&names);
	close(fd);
	return status;
}

/* Whether one of these files has messages of the queue for this server. */
static bool
have_queue(const struct mq_names *names, const struct options *o,
    const struct mq_server *server)
{
	struct spool_reader r;
	bool yes = false;
	size_t i;

	for (i = 0; i < names->n && !yes; i++) {
		yes = spool_open(&r, names->list[i].name) == 0 &&
		    strcmp(r.head.server, server->name) == 0 &&
		    strcmp(r.head.queue, o->queue) == 0;
		spool_close(&r);
	}
	return yes;
}

static void
list_files(struct mq_names *names)
{
	if (spool_list(names, false) == -1)
		mq_die(MQ_EXIT_IO, "--spool: %s", strerror(errno));
}

bool
flush_first(struct options *o, struct mq_server *server)
{
	struct mq_names names;
	bool behind = false;

	list_files(&names);
	if (names.n > 0) {
		behind = is_away(server, flush_spool(o, server));
		mq_names_free(&names);
		list_files(&names);
		behind = behind || have_queue(&names, o, server);
	}
	mq_names_free(&names);
	return behind;
}
