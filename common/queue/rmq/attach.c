/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: publishing, fetching and removing attachments.  Their keys, where {SET}
 * keeps them in one slot:
 *
 *	mq::attach::{SET}::refs		hash: the ids of the messages that refer to the
 *					set, and when each was noted, unix ms
 *	mq::attach::{SET}::files	hash: by name "FIRST SIZE SHA256": the number of
 *					its first chunk, bytes, and the hexadecimal sum
 *	mq::attach::{SET}::N		a chunk, from 0 on
 *	mq::attach::sets		set: all sets that may exist
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/text.h"
#include "rmq.h"

#define SETS "mq::attach::sets"
/* Time to live of keys without a message, in seconds. */
#define HOUR_S "3600"
/* Bytes of each chunk of a file but the last. */
#define CHUNK (1LL << 20)

static void
attach_key(struct mq_command *c, const char *set, const char *what)
{
	const struct mq_part parts[] = {{"mq::attach::{", 13},
	    {set, strlen(set)}, {"}::", 3}, {what, strlen(what)}};

	mq_command_key(c, parts, 4);
}

static void
add_chunk_key(struct mq_command *c, const char *set, long long i)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", i);
	attach_key(c, set, number);
}

void
rmq_attach_keys(struct mq_command *c, const struct mq_attach *a)
{
	long long i;

	attach_key(c, a->set, "refs");
	attach_key(c, a->set, "files");
	for (i = 0; i < a->chunks; i++)
		add_chunk_key(c, a->set, i);
}

static void
rmq_attach_refer(
    struct mq_command *c, const char *set, const char *id, bool made)
{
	mq_command_script(c, &rmq_script_attach);
	attach_key(c, set, "refs");
	MQ_COMMAND_ARGV(c, rmq_attach_argv, .name = mq_str(id),
	    .new = mq_str(made ? "new" : ""));
}

struct change {
	const char *set, *verb;
};

static void
ask_chunk(void *arg, size_t i, struct mq_command *c)
{
	const struct change *all = arg;

	mq_command_plain(c, all->verb);
	add_chunk_key(c, all->set, (long long)i);
	if (strcmp(all->verb, "EXPIRE") == 0)
		mq_command_str(c, HOUR_S);
}

/* PERSIST, EXPIRE, UNLINK, EXISTS or PTTL of one key; *done is the reply. */
static int
change_one(struct mq_redis *r, const char *set, const char *verb,
    const char *what, long long *done)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, verb);
	attach_key(&c, set, what);
	if (strcmp(verb, "EXPIRE") == 0)
		mq_command_str(&c, HOUR_S);
	return mq_call_number(r, &c, done);
}

/* Changes the list of files and n chunks.  The list, from which n comes, may name chunks that
 * are gone, but must not lack any: PERSIST begins with it, EXPIRE and UNLINK end with it. */
static int
change_files(struct mq_redis *r, const char *set, const char *verb, long long n)
{
	struct change chunks = {set, verb};
	bool stays = strcmp(verb, "PERSIST") == 0;
	long long done;

	if (stays && change_one(r, set, verb, "files", &done) == -1)
		return -1;
	if (mq_ask_all(r, (size_t)n, ask_chunk, NULL, &chunks) == -1)
		return -1;
	return stays ? 0 : change_one(r, set, verb, "files", &done);
}

/* --- the list of files ------------------------------------------------------ */

/* Most chunks of a set: 16 TiB. */
#define CHUNKS_MAX (1LL << 24)

struct file {
	const char *name;
	long long first, bytes;
	char sum[SHA256_DIGEST_STRING_LENGTH];
};

static long long
chunks_of(long long bytes)
{
	return (bytes + CHUNK - 1) / CHUNK;
}

/* Parses a field; false: malformed. */
static bool
parse_file(const redisReply *name, const redisReply *text, struct file *f)
{
	int end = 0;

	f->name = name->str;
	return strlen(name->str) == name->len &&
	    mq_attach_name_error(name->str) == NULL &&
	    sscanf(text->str, "%18lld %18lld %64[0-9a-f]%n", &f->first,
		&f->bytes, f->sum, &end) == 3 &&
	    (size_t)end == text->len && f->first >= 0 && f->bytes >= 0 &&
	    f->first <= CHUNKS_MAX && chunks_of(f->bytes) <= CHUNKS_MAX;
}

/* The files, as HGETALL has them; *chunks: number of chunks of all. */
static redisReply *
read_files(struct mq_redis *r, const char *set, long long *chunks)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *reply;
	struct file f;
	size_t i;

	mq_command_plain(&c, "HGETALL");
	attach_key(&c, set, "files");
	reply = mq_call(r, &c, MQ_STRINGS);
	*chunks = 0;
	for (i = 0; reply != NULL && i + 1 < reply->elements; i += 2)
		if (parse_file(reply->element[i], reply->element[i + 1], &f))
			*chunks = MAX(*chunks, f.first + chunks_of(f.bytes));
	return reply;
}

/* --- fetching --------------------------------------------------------------- */

static int
fail_to_write(struct mq_redis *r, const char *name)
{
	return mq_redis_fail(
	    r, MQ_EXIT_IO, "attachment %s: %s", name, strerror(errno));
}

/* Returns 1 if the file is not the one that was published. */
static int
fetch_file(struct mq_redis *r, const char *set, const struct file *f, int dir)
{
	int fd = openat(dir, f->name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd != -1 ? fdopen(fd, "w") : NULL;
	struct mq_command c = mq_redis_command(r);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	redisReply *reply;
	SHA2_CTX sum;
	long long i, left;
	int rv = 0;

	if (out == NULL) {
		rv = fail_to_write(r, f->name);
		if (fd != -1)
			(void)close(fd);
		return rv;
	}
	SHA256Init(&sum);
	for (i = 0; i < chunks_of(f->bytes) && rv == 0; i++) {
		mq_command_plain(&c, "GET");
		add_chunk_key(&c, set, f->first + i);
		reply = mq_call(r, &c, -1);
		left = f->bytes - i * CHUNK;
		if (reply == NULL) {
			rv = -1;
		} else if (reply->type != REDIS_REPLY_STRING ||
		    reply->len != (size_t)MIN(CHUNK, left)) {
			rv = 1;
		} else {
			SHA256Update(&sum, (uint8_t *)reply->str, reply->len);
			if (fwrite(reply->str, reply->len, 1, out) != 1)
				rv = fail_to_write(r, f->name);
		}
		freeReplyObject(reply);
	}
	if (fclose(out) == EOF && rv == 0)
		rv = fail_to_write(r, f->name);
	if (rv == 0 && strcmp(SHA256End(&sum, hex), f->sum) != 0)
		rv = 1;
	return rv;
}

static int
rmq_attach_fetch(struct mq_redis *r, const char *set, const char *id, int dir,
    struct mq_buf *why)
{
	struct mq_command c = mq_redis_command(r);
	long long there, chunks;
	redisReply *files;
	struct file f;
	size_t i;
	int rv;

	if (!mq_id_valid(set, strlen(set))) {
		mq_buf_addstr(why, "a name is damaged");
		return 1;
	}
	rmq_attach_refer(&c, set, id, false);
	if (mq_call_number(r, &c, &there) == -1)
		return -1;
	files = read_files(r, set, &chunks);
	if (files == NULL)
		return -1;
	if (there == 0 || files->elements == 0) {
		mq_buf_addstr(why, "they are gone");
		freeReplyObject(files);
		return 1;
	}
	/* A cleaner that missed the message may have begun to let them expire. */
	rv = change_files(r, set, "PERSIST", chunks);
	for (i = 0; i + 1 < files->elements && rv == 0; i += 2) {
		if (!parse_file(files->element[i], files->element[i + 1], &f)) {
			mq_buf_addstr(why, "their list is damaged");
			rv = 1;
		} else {
			rv = fetch_file(r, set, &f, dir);
			if (rv == 1)
				mq_buf_printf(
				    why, "%s is incomplete or damaged", f.name);
		}
	}
	freeReplyObject(files);
	return rv;
}

/* --- removing --------------------------------------------------------------- */

/* Changes all keys of a set; with UNLINK, of a set without references. */
static int
change_set(struct mq_redis *r, const char *set, const char *verb)
{
	long long chunks, done;
	redisReply *files = read_files(r, set, &chunks);

	if (files == NULL)
		return -1;
	freeReplyObject(files);
	if (strcmp(verb, "UNLINK") != 0 &&
	    change_one(r, set, verb, "refs", &done) == -1)
		return -1;
	return change_files(r, set, verb, chunks);
}

static int
remove_set(struct mq_redis *r, const char *set)
{
	long long done;

	return change_set(r, set, "UNLINK") == -1 ?
	    -1 :
	    rmq_call_number(r, "SREM A:" SETS " %n", set, NULL, &done);
}

static int
rmq_attach_release(struct mq_redis *r, const char *set, const char *id)
{
	struct mq_command c = mq_redis_command(r);
	long long was, there;

	mq_command_plain(&c, "HDEL");
	attach_key(&c, set, "refs");
	mq_command_str(&c, id);
	if (mq_call_number(r, &c, &was) == -1 ||
	    change_one(r, set, "EXISTS", "refs", &there) == -1)
		return -1;
	return was == 1 && there == 0 ? remove_set(r, set) : 0;
}

/* --- publishing ---------------------------------------------------------- */

/* After each 20 minutes, a long upload begins the hour of its chunks anew. */
#define RENEW_S 1200.0

/* One script publishes the message and makes the set stay, so on a cluster the id must be in
 * the slot of the queue, as each 16384th is. */
static void
begin_set(struct mq_attach *a, const char *queue)
{
	bool cluster = mq_redis_command(a->redis).cluster;
	struct mq_idgen ids = {0};

	do
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), a->set);
	while (cluster &&
	    mq_slot_of(a->set, MQ_ID_LEN) != mq_slot_of(queue, strlen(queue)));
	a->renewed_s = mq_clock_s(CLOCK_MONOTONIC);
}

/* Reads CHUNK bytes, or up to the end of the file; -1 with errno. */
static ssize_t
read_chunk(int fd, char *buf)
{
	size_t n = 0;
	ssize_t got = 1;

	while (n < CHUNK && got != 0) {
		got = read(fd, buf + n, CHUNK - n);
		if (got == -1 && errno != EINTR)
			return -1;
		if (got > 0)
			n += (size_t)got;
	}
	return (ssize_t)n;
}

/* Stores a file; returns its bytes, maybe only somewhat more than size, or -1. */
static long long
put_chunks(struct mq_attach *a, const char *name, int fd, long long size,
    SHA2_CTX *sum)
{
	struct mq_redis *r = a->redis;
	struct mq_command c = mq_redis_command(r);
	char *buf = mq_xcalloc(1, CHUNK);
	long long bytes = 0;
	double now;
	ssize_t n = 1;
	int rv = 0;

	while (rv == 0 && bytes <= size && (n = read_chunk(fd, buf)) > 0) {
		SHA256Update(sum, (uint8_t *)buf, (size_t)n);
		bytes += n;
		rv = mq_redis_room(r, (size_t)n);
		if (rv == -1)
			break;
		mq_command_plain(&c, "SET");
		add_chunk_key(&c, a->set, a->chunks++);
		mq_command_arg(&c, buf, (size_t)n);
		mq_command_words(&c, "EX " HOUR_S);
		rv = mq_call_done(r, &c);
		/* The first chunks of a long upload must not expire. */
		now = mq_clock_s(CLOCK_MONOTONIC);
		if (rv == 0 && now - a->renewed_s >= RENEW_S) {
			a->renewed_s = now;
			rv = change_files(r, a->set, "EXPIRE", a->chunks);
		}
	}
	if (n == -1)
		rv =
		    mq_layout_fail(a->redis, MQ_EXIT_IO, name, strerror(errno));
	free(buf);
	return rv == 0 ? bytes : -1;
}

static int
add_file(struct mq_attach *a, const char *name, int fd)
{
	struct mq_command c = mq_redis_command(a->redis);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	char about[sizeof(hex) + 48];
	long long first = a->chunks, size = LLONG_MAX, bytes, done;
	struct stat st, now;
	SHA2_CTX sum;

	SHA256Init(&sum);
	if (fstat(fd, &st) == -1)
		return mq_layout_fail(
		    a->redis, MQ_EXIT_IO, name, strerror(errno));
	/* Files of /proc, pipes and devices have an unknown size. */
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		size = st.st_size;
	bytes = put_chunks(a, name, fd, size, &sum);
	if (bytes == -1)
		return -1;
	if (S_ISREG(st.st_mode) &&
	    (fstat(fd, &now) == -1 || now.st_size != st.st_size ||
		timespeccmp(&now.st_mtim, &st.st_mtim, !=) ||
		timespeccmp(&now.st_ctim, &st.st_ctim, !=) ||
		(st.st_size != 0 && bytes != st.st_size))) {
		/* Chunks that will not be published go now: many retries in the hour
		 * must not fill the server. */
		if (change_files(a->redis, a->set, "UNLINK", a->chunks) == -1)
			return -1;
		return mq_layout_fail(a->redis, MQ_EXIT_AGAIN, name,
		    "the file changed while it was read; publish it again");
	}
	mq_command_script(&c, &rmq_script_attach);
	attach_key(&c, a->set, "files");
	snprintf(about, sizeof(about), "%lld %lld %s", first, bytes,
	    SHA256End(&sum, hex));
	MQ_COMMAND_ARGV(&c, rmq_attach_argv, .name = mq_str(name),
	    .new = mq_str("new"), .about = mq_str(about));
	return mq_call_number(a->redis, &c, &done);
}

/* Refers to the set, then lists it, so that a cleaner finds it once the message is gone. */
static int
close_set(struct mq_attach *a, const char *id)
{
	struct mq_command c = mq_redis_command(a->redis);
	long long done;

	rmq_attach_refer(&c, a->set, id, true);
	return mq_call_number(a->redis, &c, &done) == -1 ?
	    -1 :
	    rmq_call_number(
		a->redis, "SADD A:" SETS " %n", a->set, NULL, &done);
}

static int
count_sets(struct mq_redis *r, long long *n)
{
	struct mq_command c = mq_redis_command(r);

	rmq_ask(&c, "SCARD A:" SETS, NULL, NULL);
	c.optional = true;
	return mq_call_number(r, &c, n);
}

/* --- attachments whose messages are gone ------------------------------------- */

/*
 * A Go program that acks or purges a message knows of no attachments, and a crash may come
 * between the end of a message and the removal of its files.  So a cleaner looks for the
 * messages that refer to a set, and if none is left, the set expires in an hour; census.c says
 * why no message loses its files so.
 */

/* The message of a younger reference may be about to be published.  Each run begins that hour
 * anew. */
#define YOUNG_MS 3600000

struct sweep {
	struct rmq_cleaner *w;
	struct mq_redis *redis;
	int64_t now_ms;
	struct mq_names doubted; /* sets that may have no message */
	struct mq_names refs;	 /* "SET ID" of these sets; sorted */
	struct rmq_census census;
};

static int
let_expire(struct sweep *s, const char *set)
{
	long long ttl = 0;

	s->w->out->orphans++;
	if (s->w->how->dry_run)
		return 0;
	if (change_set(s->redis, set, "EXPIRE") == -1 ||
	    change_one(s->redis, set, "PTTL", "refs", &ttl) == -1)
		return -1;
	/* If a run has begun meanwhile, it has made some keys stay. */
	return ttl == -1 ? change_set(s->redis, set, "PERSIST") : 0;
}

/* Before the census (counted: false), decides whether a set is in doubt, and removes a set
 * without references; after it, decides whether the set expires. */
static int
judge_set(struct sweep *s, const char *set, bool counted)
{
	struct mq_command c = mq_redis_command(s->redis);
	bool young = false, seen = false, dry_run = s->w->how->dry_run, doubted;
	redisReply *refs, **e;
	long long ttl = 0;
	size_t i, n;
	char *ref;
	int rv;

	mq_command_plain(&c, "HGETALL");
	attach_key(&c, set, "refs");
	refs = mq_call(s->redis, &c, MQ_STRINGS);
	rv =
	    refs == NULL ? -1 : change_one(s->redis, set, "PTTL", "refs", &ttl);
	n = rv == 0 ? refs->elements & ~(size_t)1 : 0;
	e = rv == 0 ? refs->element : NULL;
	for (i = 0; i < n; i += 2)
		young |= s->now_ms -
			mq_number(e[i + 1]->str, e[i + 1]->len, INT64_MAX) <
		    YOUNG_MS;
	doubted = !counted && n > 0 && (!young || ttl >= 0);
	for (i = 0; i < n; i += 2) {
		ref = mq_xasprintf("%s %s", set, e[i]->str);
		seen |= mq_names_have(&s->census.seen, ref);
		if (doubted)
			mq_names_add(&s->refs, ref, NULL);
		free(ref);
	}
	if (doubted)
		mq_names_add(&s->doubted, set, NULL);
	if (rv == 0 && n == 0 && !dry_run)
		rv = remove_set(s->redis, set);
	else if (counted && seen && ttl >= 0 && !dry_run)
		rv = change_set(s->redis, set, "PERSIST");
	else if (counted && n > 0 && !seen && ttl < 0 && !young)
		rv = let_expire(s, set);
	freeReplyObject(refs);
	return rv;
}

/* If the server refuses to show messages, the census is incomplete. */
static int
count_all(struct sweep *s)
{
	struct mq_names queues = {0};
	size_t i;
	int rv = 0;

	s->census.complete &=
	    rmq_call_names(s->redis, RMQ_QUEUES, &queues, NULL) == 0;
	for (i = 0; i < queues.n && s->census.complete && rv == 0; i++)
		rv = rmq_census(&s->census, queues.list[i].name);
	mq_names_sort(&s->census.seen);
	mq_names_free(&s->census.idle);
	mq_names_free(&queues);
	return mq_redis_lost(s->redis) ? -1 : rv;
}

int
rmq_attach_sweep(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	/* Errors of the census do not fail the round. */
	struct rmq_cleaner quiet = {.round.r = r, .how = w->how, .out = w->out};
	struct sweep s = {.w = w,
	    .redis = r,
	    .census = {.w = &quiet, .scope = RMQ_ANYWHERE, .complete = true}};
	struct mq_names sets = {0};
	int pass, rv = mq_server_time(r, &s.now_ms);
	size_t i;

	s.census.wanted = &s.refs;
	if (rv == 0)
		rv = rmq_call_names(r, SETS, &sets, NULL);
	for (i = 0; rv == 0 && i < sets.n; i++)
		if (mq_id_valid(sets.list[i].name, strlen(sets.list[i].name)))
			rv = judge_set(&s, sets.list[i].name, false);
	mq_names_sort(&s.refs);
	for (pass = 0; pass < 2 && rv == 0 && s.census.seen.n < s.refs.n;
	     pass++)
		rv = count_all(&s);
	/* A lost node may have messages with attachments. */
	if (s.census.complete && mq_partial_lost(r, 0) == NULL)
		for (i = 0; rv == 0 && i < s.doubted.n; i++)
			rv = judge_set(&s, s.doubted.list[i].name, true);
	mq_names_free(&sets);
	mq_names_free(&s.doubted);
	mq_names_free(&s.refs);
	mq_names_free(&s.census.seen);
	/* A user without the right to look at attachments has none to clean. */
	return rv == -1 && mq_redis_lost(r) ? -1 : 0;
}

const struct mq_attachments rmq_attachments = {.begin = begin_set,
    .add = add_file,
    .close = close_set,
    .fetch = rmq_attach_fetch,
    .release = rmq_attach_release,
    .count = count_sets,
    .refer = rmq_attach_refer};
