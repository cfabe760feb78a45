/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-publish --spool and --flush: files of messages whose server is away, and what is left of them after
 * an attempt to publish them.  A file goes on with the numbers and marks of the publisher that could not
 * finish, so that each of its batches is published once, whoever is killed. */
#include "shared/spool.h"

#include "publish.h"

#define KEEP_BYTES 262144 /* most memory that an unused copy keeps */

/* Batches of which a copy is kept: those under way, the next one, and some more. */
#define COPIES 32

/* A batch of the publisher, as it would stand in the file. */
struct copy {
	unsigned long number; /* the publisher's first batch is 1 */
	long long before;     /* messages in batches before this one */
	struct mq_publishing how;
	int count;
	bool done;		 /* the verdicts are there */
	struct mq_buf text, ids; /* ids as struct mq_batch has them */
};

struct spool {
	struct spool_writer writer;
	struct copy copies[COPIES];
	struct copy *answered; /* the last one that is done */
	unsigned long
	    refused; /* the first batch that the server could not take; 0: none */
	unsigned long
	    number; /* the next batch has it, while the server is away */
	bool open;  /* a file is begun */
	unsigned long written; /* messages in it */
	const char *server;    /* the name for people */
	/* With --flush: */
	const char *name; /* the file has it */
	long long before,
	    messages; /* the publisher's before the file, and those in it */
	struct spool_state state;
	struct mq_buf
	    verdicts; /* a byte for each message: enum mq_published and 1; 0: none */
	unsigned long *flushed; /* messages, of all files */
};

static void
drop_copy(struct copy *c)
{
	c->number = 0;
	if (c->text.cap > KEEP_BYTES)
		mq_buf_free(&c->text);
}

/* Drops the copies that are done, and not behind one that is not. */
static void
drop_done(struct spool *s, const struct mq_publisher *p)
{
	long long before = p->batches[0].how.mark.before;
	struct copy *c;
	int i;

	for (i = 0; i < COPIES; i++) {
		c = &s->copies[i];
		if (c->done && c->before < before)
			drop_copy(c);
	}
}

static struct copy *
copy_of(struct spool *s, unsigned long number)
{
	struct copy *c = &s->copies[number % COPIES];

	if (c->number != number) {
		mq_buf_clear(&c->text);
		mq_buf_clear(&c->ids);
		c->number = number;
		c->count = 0;
		c->done = false;
	}
	return c;
}

void
spool_copy(struct transport *t, const char unique[MQ_ID_LEN + 1],
    const char *id, const struct mq_buf *header, const char *payload, size_t n)
{
	struct spool *s = t->spool;
	struct copy *c = copy_of(s, t->away ? s->number : t->publisher.begun);

	if (c->count++ == 0) {
		if (!t->away)
			drop_done(s, &t->publisher);
		c->how = t->how;
		c->before = t->away ?
		    0 :
		    mq_publisher_next(&t->publisher)->how.mark.before;
	}
	spool_add(&c->text, unique, header, payload, n);
	if (t->opt->ids)
		mq_buf_add(&c->ids, id, MQ_ID_LEN);
}

bool
spool_is_full(const struct transport *t, int count, size_t bytes)
{
	const struct spool *s = t->spool;
	const struct copy *c = &s->copies[s->number % COPIES];

	return c->number == s->number &&
	    (c->count >= count || c->text.len > bytes);
}

/* Writes a batch.  Unless it is done, which only its mark says to who publishes the file, its messages
 * are spooled, and their ids are printed once they are on disk. */
static int
write_copy(struct transport *t, struct copy *c)
{
	size_t at;

	if (spool_batch(&t->spool->writer, &c->how, c->count, &c->text) == -1)
		return -1;
	for (at = 0; at < c->ids.len && !c->done; at += MQ_ID_LEN)
		mq_buf_printf(
		    &t->unsafe_ids, "%.*s\n", MQ_ID_LEN, c->ids.data + at);
	t->spool->written += c->done ? 0 : (unsigned long)c->count;
	drop_copy(c);
	return 0;
}

/* Begins a file; kept: the first batch that it goes on with, or NULL. */
static int
begin_file(struct transport *t, const struct copy *kept)
{
	const struct options *o = t->opt;
	struct spool_head head = {.server = (char *)(uintptr_t)t->spool->server,
	    .layout = (char *)(uintptr_t)o->shared.layout->name,
	    .queue = (char *)(uintptr_t)o->queue,
	    .since_ms = mq_clock_unix_us() / 1000,
	    .attributes = o->attributes};

	if (kept != NULL) {
		strlcpy(
		    head.publisher, t->publisher.id, sizeof(head.publisher));
		head.begun = kept->number - 1;
		head.before = kept->before;
		head.begun_ms = (t->clock_us + mq_clock_steady_us()) / 1000;
	}
	if (spool_begin(&t->spool->writer, &head, o->spool_max) == -1)
		return -1;
	t->spool->open = true;
	return 0;
}

int
spool_cut(struct transport *t)
{
	struct spool *s = t->spool;
	struct copy *c = copy_of(s, s->number);

	if (c->count == 0)
		return 0;
	if ((!s->open && begin_file(t, NULL) == -1) || write_copy(t, c) == -1)
		return -1;
	s->number++;
	return 0;
}

int
spool_sync(struct transport *t)
{
	struct spool *s = t->spool;
	int rv = s->open ? spool_end(&s->writer, NULL) : 0;

	if (rv == 0)
		t->spooled += s->written;
	s->open = false;
	s->written = 0;
	return rv;
}

static bool
has_message(const struct copy *c, long long number)
{
	return c->number != 0 && c->before < number &&
	    number <= c->before + c->count;
}

/* The copy with the message of this number, from 1; NULL: there is none. */
static struct copy *
find_copy(struct spool *s, long long number)
{
	int i;

	for (i = 0; i < COPIES; i++)
		if (has_message(&s->copies[i], number))
			return &s->copies[i];
	return NULL;
}

void
spool_done(struct transport *t, long long number, bool dropped)
{
	struct spool *s = t->spool;

	if (s->answered == NULL || !has_message(s->answered, number))
		s->answered = find_copy(s, number);
	if (s->answered == NULL)
		return;
	s->answered->done = true;
	if (dropped)
		s->answered->number = 0;
}

void
spool_refuse(struct transport *t, long long number)
{
	struct copy *c = find_copy(t->spool, number);

	if (c != NULL && t->spool->refused == 0)
		t->spool->refused = c->number;
}

int
spool_take_over(struct transport *t)
{
	struct mq_publisher *p = &t->publisher;
	struct spool *s = t->spool;
	bool any = p->kept > 0 || mq_publisher_next(p)->count > 0;
	const struct copy *c =
	    any ? find_copy(s, p->batches[0].how.mark.before + 1) : NULL;
	unsigned long first = s->refused, i;

	if (!mq_publisher_can_resume(p) || (any && c == NULL))
		return 0;
	if (first == 0)
		first = any ? c->number : p->begun + 1;
	/* Without one that was dropped, numbers would not go on. */
	for (i = first; i <= p->begun; i++)
		if (s->copies[i % COPIES].number != i)
			return 0;
	if (first <= p->begun &&
	    begin_file(t, &s->copies[first % COPIES]) == -1)
		return -1;
	for (i = first; i <= p->begun; i++)
		if (write_copy(t, &s->copies[i % COPIES]) == -1)
			return -1;
	mq_publisher_forget(p);
	t->away = true;
	s->number = p->begun + 1;
	return 1;
}

void
spool_prepare(struct transport *t, const struct mq_server *server)
{
	t->spool = mq_xcalloc(1, sizeof(*t->spool));
	t->spool->server = server->name;
	t->spool->number = 1;
}

void
spool_free(struct transport *t)
{
	int i;

	if (t->spool == NULL)
		return;
	for (i = 0; i < COPIES; i++) {
		mq_buf_free(&t->spool->copies[i].text);
		mq_buf_free(&t->spool->copies[i].ids);
	}
	mq_buf_free(&t->spool->verdicts);
	free(t->spool->state.why);
	free(t->spool);
}

/* --- after an attempt --------------------------------------------------------------- */

void
spool_judge(struct transport *t, enum mq_published verdict, long long number)
{
	struct spool *s = t->spool;
	struct mq_buf *all = &s->verdicts;
	size_t at = (size_t)(number - 1 - s->before);

	if (verdict == MQ_PUBLISHED_REPLACED)
		return; /* MQ_PUBLISHED follows */
	*s->flushed += verdict == MQ_PUBLISHED;
	while (all->len <= at)
		mq_buf_add(all, "", 1);
	all->data[at] = (char)(verdict + 1);
}

#define NO_VERDICT (-1)

/* Whether the server will never take messages with this verdict. */
static bool
is_refused(int verdict)
{
	return verdict == MQ_PUBLISHED_TOO_LONG ||
	    verdict == MQ_PUBLISHED_NO_BATCH;
}

static bool
is_left(const struct spool *s, size_t i, bool refused)
{
	int verdict =
	    i < s->verdicts.len ? s->verdicts.data[i] - 1 : NO_VERDICT;

	return refused ? is_refused(verdict) :
			 verdict == NO_VERDICT || verdict == MQ_PUBLISHED_FULL;
}

/* Reads a batch, and appends those of its messages that are left to a text: their number; -1: the
 * file is damaged.  *i: messages of the file before. */
static int
read_left(const struct spool *s, struct spool_reader *r, bool refused,
    size_t *i, struct mq_buf *text)
{
	char unique[MQ_ID_LEN + 1];
	int n = 0;

	mq_buf_clear(text);
	for (; r->left > 0; ++*i) {
		if (!spool_read(r, unique))
			return -1;
		if (!is_left(s, *i, refused))
			continue;
		spool_add(
		    text, unique, &r->header, r->payload.data, r->payload.len);
		n++;
	}
	return n;
}

/* Copies the messages that are left to a new file, for a new publisher, which takes the place of the
 * old one; or, if they are set aside, with the reason, it has a place of its own.  0, or -1 with
 * errno. */
static int
copy_left(const struct spool *s, bool refused, const char *aside)
{
	struct spool_reader r;
	struct spool_writer w = {0};
	struct spool_head head;
	struct mq_publishing how;
	struct mq_buf text = {0};
	const struct spool_state state = {
	    .tried_ms = s->state.tried_ms, .why = (char *)(uintptr_t)aside};
	char *name;
	size_t i = 0;
	int n = 0, rv = spool_open(&r, s->name);

	/* A program that is killed here leaves no second copy: the next one takes the same name. */
	name = aside != NULL ? mq_xasprintf("%s.refused", r.head.publisher) :
			       mq_xstrdup(s->name);
	head = r.head;
	head.publisher[0] = '\0';
	head.begun = 0;
	head.before = head.begun_ms = head.messages = 0;
	rv = rv == 0 ? spool_begin(&w, &head, SIZE_MAX) : rv;
	while (rv == 0 && (n = spool_next(&r, &how)) > 0) {
		n = read_left(s, &r, refused, &i, &text);
		if (n > 0)
			rv = spool_batch(&w, &how, n, &text);
		if (n == -1)
			break;
	}
	if (rv == 0 && n == -1) {
		errno = EILSEQ;
		rv = spool_discard(&w);
	}
	rv = rv == 0 ? spool_end(&w, name) : rv;
	if (rv == 0)
		rv = spool_write_state(name, &state);
	free(name);
	mq_buf_free(&text);
	spool_close(&r);
	return rv;
}

static bool
any_left(const struct spool *s, bool refused)
{
	size_t i;

	for (i = 0; i < (size_t)s->messages; i++)
		if (is_left(s, i, refused))
			return true;
	return false;
}

int
spool_keep_left(struct transport *t)
{
	struct spool *s = t->spool;
	int rv = 0;

	if (any_left(s, true))
		rv = copy_left(s, true,
		    t->count[MQ_PUBLISHED_TOO_LONG] > 0 ?
			"too long" :
			"they wait for an unknown batch");
	if (rv == 0 && any_left(s, false))
		rv = copy_left(s, false, NULL);
	else if (rv == 0)
		rv = spool_remove(s->name);
	if (rv == 0) {
		mq_publisher_free(&t->publisher);
		t->publisher = (struct mq_publisher){0};
		s->state.begun_ms = 0;
	}
	return rv;
}

void
spool_note(struct transport *t, int status, const char *why)
{
	struct spool *s = t->spool;

	free(s->state.why);
	s->state.why = mq_xstrdup(why);
	s->state.status = status;
	s->state.tried_ms = mq_clock_unix_us() / 1000;
	(void)spool_write_state(s->name, &s->state);
}

#define TOO_OLD                                                                \
	"publishing it began 29 days ago: how far, the server has forgotten"

int
spool_attempt(struct transport *t, int64_t head_ms)
{
	struct spool *s = t->spool;
	int64_t now_ms = (mq_clock_steady_us() + t->clock_us) / 1000;
	bool begun;

	if (s->state.begun_ms == 0)
		s->state.begun_ms = head_ms;
	begun = s->state.begun_ms != 0;
	if (begun && now_ms - s->state.begun_ms > MQ_MARKS_LONG_SURE_MS) {
		mq_say("--flush: %s: %s", t->opt->queue, TOO_OLD);
		return copy_left(s, false, TOO_OLD) == 0 &&
			spool_remove(s->name) == 0 ?
		    1 :
		    -1;
	}
	if (!begun)
		s->state.begun_ms = now_ms;
	s->state.status = 0;
	return spool_write_state(s->name, &s->state);
}

void
spool_prepare_flush(struct transport *t, const char *name,
    const struct spool_head *head, unsigned long *flushed)
{
	t->spool = mq_xcalloc(1, sizeof(*t->spool));
	t->spool->name = name;
	t->spool->before = head->before;
	t->spool->messages = head->messages;
	t->spool->flushed = flushed;
	spool_read_state(name, &t->spool->state);
	t->spool->state.tried_ms = mq_clock_unix_us() / 1000;
}
