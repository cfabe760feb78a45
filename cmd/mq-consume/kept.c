/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "kept.h"

#include <inttypes.h>

/* Bytes of a run that can wait to be sent, unless SIZE is less. */
#define WAITING_MAX ((size_t)1 << 20)
/* Bytes that all runs together may send in a second. */
#define SECOND_MAX ((size_t)1 << 20)
/* Bytes of an entry; less if SIZE is small, as the oldest entries are dropped as a whole. */
#define ENTRY_MAX ((size_t)16 << 10)
/* Bytes that the server needs for an entry beside its output, about. */
#define ENTRY_COST 128
/* Names and values of an entry. */
#define ENTRY_PARTS 64
/* Pieces of standard output or standard error, in turn, that wait of a run. */
#define PIECES 256
/* While a run goes on, its output is cut behind a newline among this many last bytes. */
#define LINE_MAX_CUT 256
/* Runs that are over, while the server is away. */
#define ENDED_MAX 64

/* An entry at the server, or on its way. */
struct entry {
	uint64_t ms, seq; /* id; ms 0: none yet, or not stored */
	size_t size;	  /* bytes at the server */
	size_t output;	  /* bytes of output, and of the gap before them */
	bool last;	  /* says how the run has ended */
};

struct piece {
	int stream;
	size_t len;
};

struct kept_run {
	TAILQ_ENTRY(kept_run) link;
	struct kept *kept;
	const char *queue;
	char id[MQ_ID_MAX + 1];
	long attempt;
	pid_t pid;
	int64_t started_ms;	     /* unix time */
	char connection[NAME_SIZE];  /* as sent; empty: nothing is sent */
	char *ring;		     /* NULL: no output yet */
	size_t start, len;	     /* bytes that wait */
	struct piece pieces[PIECES]; /* kinds of the bytes that wait */
	int first, count;	     /* index and number of pieces */
	size_t gap;		     /* bytes left out before these */
	size_t offset;		     /* bytes of output before the next entry */
	struct entry *entries;	     /* the oldest first */
	size_t oldest, answered, sent, cap; /* indices of entries */
	size_t stored; /* bytes of entries, from `oldest` on */
	bool ended, end_sent, refused;
	int status; /* as of waitpid(2), once ended */
};

TAILQ_HEAD(kept_runs, kept_run);

struct kept {
	const struct options *opt;
	struct mq_consumer *consumer;
	const char *host;
	struct kept_runs runs; /* longest without a flush first */
	int ended;	       /* runs that are over */
	size_t ring_size, entry_max;
	size_t left; /* bytes that may be sent in this second */
	bool up;     /* as of the last tick */
};

/* --- the ring --------------------------------------------------------------- */

static char
byte_at(const struct kept_run *r, size_t i)
{
	return r->ring[(r->start + i) % r->kept->ring_size];
}

/* Removes the oldest n bytes, of one piece. */
static void
remove_bytes(struct kept_run *r, size_t n)
{
	struct piece *p = &r->pieces[r->first];

	r->start = (r->start + n) % r->kept->ring_size;
	r->len -= n;
	p->len -= n;
	if (p->len > 0)
		return;
	r->first = (r->first + 1) % PIECES;
	r->count--;
}

/* Leaves out the oldest bytes, and the rest of a character that is cut. */
static void
leave_out(struct kept_run *r, size_t n)
{
	size_t some;

	while (n > 0 && r->len > 0) {
		some = MIN(n, r->pieces[r->first].len);
		remove_bytes(r, some);
		r->gap += some;
		n -= some;
		if (n == 0 && r->len > 0 &&
		    ((unsigned char)byte_at(r, 0) & 0xc0) == 0x80)
			n = 1;
	}
}

void
kept_take(struct kept_run *r, int stream, const char *p, size_t n)
{
	struct piece *last;
	size_t size, end, some;

	if (r == NULL || r->refused)
		return;
	size = r->kept->ring_size;
	last = &r->pieces[(r->first + r->count + PIECES - 1) % PIECES];
	if (r->ring == NULL)
		r->ring = mq_xcalloc(size, 1);
	if (r->len + n > size)
		leave_out(r, r->len + n - size);
	if (n > size) {
		r->gap += n - size;
		p += n - size;
		n = size;
	}
	if (r->count == 0 || last->stream != stream) {
		if (r->count == PIECES)
			leave_out(r, r->pieces[r->first].len);
		last = &r->pieces[(r->first + r->count++) % PIECES];
		*last = (struct piece){.stream = stream};
	}
	for (; n > 0; p += some, n -= some) {
		end = (r->start + r->len) % size;
		some = MIN(n, size - end);
		memcpy(r->ring + end, p, some);
		r->len += some;
		last->len += some;
	}
}

/* How many of the first n bytes to send while the run goes on: up to a newline near their end,
 * else whole characters. */
static size_t
cut_bytes(const struct kept_run *r, size_t n)
{
	size_t i;
	unsigned char c;

	for (i = n; i > 0 && n - i < LINE_MAX_CUT; i--)
		if (byte_at(r, i - 1) == '\n')
			return i;
	for (i = n; i > 0 && n - i < 4; i--) {
		c = (unsigned char)byte_at(r, i - 1);
		if ((c & 0xc0) == 0x80)
			continue;
		/* A character's first byte tells how many bytes follow. */
		return c >= 0xc0 &&
			n - i < (size_t)(c >= 0xf0 ? 3 :
					c >= 0xe0  ? 2 :
						     1) ?
		    i - 1 :
		    n;
	}
	return n;
}

/* --- entries ---------------------------------------------------------------- */

static void
free_run(struct kept_run *r)
{
	TAILQ_REMOVE(&r->kept->runs, r, link);
	r->kept->ended -= r->ended;
	free(r->ring);
	free(r->entries);
	free(r);
}

/* A run that is over is freed with its last answer. */
static void
free_if_over(struct kept_run *r)
{
	if (r->ended && r->answered == r->sent && (r->end_sent || r->refused))
		free_run(r);
}

static void
refuse(struct kept_run *r, const char *error)
{
	if (!r->refused && r->kept->opt->verbose)
		mq_say(
		    "%s: %s: output is not kept: %s", r->queue, r->id, error);
	r->refused = true;
	leave_out(r, r->len);
	free(r->ring);
	r->ring = NULL;
}

static void
on_added(void *run, const struct mq_answer *a)
{
	struct kept_run *r = run;
	struct entry *e = &r->entries[r->answered++];

	if (a == NULL || a->missing) {
		/* The server may have stored the entry, or not. */
		r->gap += e->output;
		r->offset -= e->output;
		if (e->last)
			r->end_sent = false;
	} else if (a->error != NULL) {
		refuse(r, a->error);
	} else if (a->text == NULL ||
	    sscanf(a->text, "%" SCNu64 "-%" SCNu64, &e->ms, &e->seq) != 2) {
		e->ms = 0;
	}
	free_if_over(r);
}

/* Drops the oldest entries that leave no room for n more bytes.  first: the id of the first entry
 * that stays; empty: all stay. */
static void
drop_entries(struct kept_run *r, size_t n, char first[48])
{
	struct entry *e;

	*first = '\0';
	while (r->oldest < r->answered &&
	    r->stored + n > r->kept->opt->output_keep) {
		e = &r->entries[r->oldest++];
		r->stored -= e->size;
		if (e->ms != 0)
			snprintf(first, 48, "%" PRIu64 "-%" PRIu64, e->ms,
			    e->seq + 1);
	}
	/* Indices begin anew before the array grows. */
	if (r->oldest > r->cap / 2) {
		memmove(r->entries, r->entries + r->oldest,
		    (r->sent - r->oldest) * sizeof(*e));
		r->sent -= r->oldest;
		r->answered -= r->oldest;
		r->oldest = 0;
	}
}

struct filling {
	struct mq_part parts[ENTRY_PARTS];
	int n;
	size_t bytes; /* output only */
	char run[sizeof("run") + 512], gap[32], end[64];
};

static void
add_pair(struct filling *f, const char *name, const char *p, size_t n)
{
	f->parts[f->n++] = (struct mq_part){name, strlen(name)};
	f->parts[f->n++] = (struct mq_part){p, n};
}

/* Fills an entry with up to n bytes of output. */
static void
fill_entry(struct kept_run *r, size_t n, struct filling *f)
{
	const struct mq_consumer *k = r->kept->consumer;
	size_t some, size = r->kept->ring_size;

	f->n = 0;
	f->bytes = 0;
	strlcpy(r->connection, k->session.connection, sizeof(r->connection));
	snprintf(f->run, sizeof(f->run), "%ld %ld %" PRId64 " %zu %s %s",
	    r->attempt, (long)r->pid, r->started_ms, r->offset, r->connection,
	    r->kept->host);
	add_pair(f, "run", f->run, strlen(f->run));
	if (r->gap > 0) {
		snprintf(f->gap, sizeof(f->gap), "%zu", r->gap);
		add_pair(f, "gap", f->gap, strlen(f->gap));
	}
	/* Two parts are left for the end. */
	while (
	    n > 0 && f->bytes < r->kept->entry_max && f->n < ENTRY_PARTS - 2) {
		some = MIN(n, r->kept->entry_max - f->bytes);
		some = MIN(some, r->pieces[r->first].len);
		some = MIN(some, size - r->start);
		add_pair(f, r->pieces[r->first].stream == 1 ? "1" : "2",
		    r->ring + r->start, some);
		remove_bytes(r, some);
		f->bytes += some;
		n -= some;
	}
}

static void
send_entry(struct kept_run *r, const struct filling *f, bool last)
{
	struct mq_consumer *k = r->kept->consumer;
	size_t size = f->bytes + ENTRY_COST;
	char first[48];

	drop_entries(r, size, first);
	if (r->sent == r->cap) {
		r->cap = 2 * r->cap + 16;
		r->entries =
		    mq_xreallocarray(r->entries, r->cap, sizeof(*r->entries));
	}
	r->entries[r->sent++] = (struct entry){
	    .size = size, .output = f->bytes + r->gap, .last = last};
	r->stored += size;
	r->offset += f->bytes + r->gap;
	r->gap = 0;
	r->end_sent = last;
	mq_consumer_keep_output(k, r->queue, r->id, first, f->parts, f->n,
	    r->kept->opt->output_keep_ms, on_added, r);
}

/* Sends the first n bytes that wait, and behind the last byte of a run that is over how it has
 * ended. */
static void
flush_run(struct kept_run *r, size_t n)
{
	struct filling f;
	size_t left = r->len - n;
	bool renamed = *r->connection != '\0' &&
	    strcmp(r->connection, r->kept->consumer->session.connection) != 0;
	bool more, last;

	if (n == 0 && !r->ended && !renamed)
		return;
	r->kept->left -= MIN(n, r->kept->left);
	do {
		fill_entry(r, r->len - left, &f);
		more = r->len > left;
		last = r->ended && r->len == 0;
		if (last) {
			mq_verdict_end(r->status, f.end, sizeof(f.end));
			add_pair(&f, "end", f.end, strlen(f.end));
		}
		/* The answer to the last entry frees the run, maybe at once. */
		send_entry(r, &f, last);
	} while (more);
}

/* --- runs ------------------------------------------------------------------- */

struct kept_run *
kept_begin(struct kept *k, const struct message *m, pid_t pid)
{
	struct kept_run *r = mq_xcalloc(1, sizeof(*r));

	r->kept = k;
	r->queue = m->queue_name;
	strlcpy(r->id, m->id, sizeof(r->id));
	r->attempt = m->attempts + 1;
	r->pid = pid;
	r->started_ms = mq_clock_unix_us() / 1000;
	TAILQ_INSERT_TAIL(&k->runs, r, link);
	return r;
}

void
kept_end(struct kept_run *r, int status)
{
	struct kept_run *old;
	struct kept *k;

	if (r == NULL)
		return;
	k = r->kept;
	r->ended = true;
	r->status = status;
	k->ended++;
	/* A run without output leaves nothing. */
	if (r->refused || (r->len == 0 && *r->connection == '\0')) {
		r->end_sent = true;
		free_if_over(r);
		return;
	}
	if (k->up) {
		leave_out(r, r->len - MIN(r->len, k->left));
		flush_run(r, r->len);
		return;
	}
	if (k->ended <= ENDED_MAX)
		return;
	TAILQ_FOREACH(old, &k->runs, link)
		if (old->ended && old->answered == old->sent) {
			free_run(old);
			return;
		}
}

void
kept_tick(struct kept *k, bool up)
{
	struct kept_run *r, *next, *last = TAILQ_LAST(&k->runs, kept_runs);
	size_t n;

	k->up = up;
	k->left = SECOND_MAX;
	for (r = TAILQ_FIRST(&k->runs); up && r != NULL; r = next) {
		next = r == last ? NULL : TAILQ_NEXT(r, link);
		/* One flush of a run is under way at most. */
		if (r->answered != r->sent || r->refused || r->end_sent)
			continue;
		if (k->left == 0 && r->len > 0)
			break;
		TAILQ_REMOVE(&k->runs, r, link);
		TAILQ_INSERT_TAIL(&k->runs, r, link);
		n = MIN(r->len, k->left);
		flush_run(r, r->ended && n == r->len ? n : cut_bytes(r, n));
	}
}

struct kept *
kept_new(
    const struct options *opt, struct mq_consumer *consumer, const char *host)
{
	struct kept *k = mq_xcalloc(1, sizeof(*k));

	*k = (struct kept){.opt = opt,
	    .consumer = consumer,
	    .host = host,
	    .ring_size = MIN(opt->output_keep, WAITING_MAX),
	    .entry_max = MIN(opt->output_keep / 8, ENTRY_MAX),
	    .left = SECOND_MAX,
	    .up = true};
	TAILQ_INIT(&k->runs);
	return k;
}

void
kept_free(struct kept *k)
{
	struct kept_run *r, *next;

	TAILQ_FOREACH_SAFE(r, &k->runs, link, next)
		free_run(r);
	free(k);
}
