/*
 * The rmq layout: attachments, published, fetched and removed.  Their keys, where {SET}
 * keeps them in one slot:
 *
 *	mq::attach::{SET}::refs		hash: the ids of the messages that refer to the
 *					set, and when each was noted, unix ms
 *	mq::attach::{SET}::files	hash: by name "FIRST SIZE SHA256": the number of
 *					its first chunk, bytes, and the hexadecimal sum
 *	mq::attach::{SET}::N		a chunk, from 0 on
 *	mq::attach::sets		set: all sets that may be there
 */
#include "queue/attach.h"

#include <sys/param.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "rmq.h"

void
rmq_attach_key(struct mq_command *c, const char *set, const char *what)
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
	rmq_attach_key(c, set, number);
}

void
rmq_attach_keys(struct mq_command *c, const struct mq_attach *a)
{
	long long i;

	rmq_attach_key(c, a->set, "refs");
	rmq_attach_key(c, a->set, "files");
	for (i = 0; i < a->chunks; i++)
		add_chunk_key(c, a->set, i);
}

static void
rmq_attach_refer(
    struct mq_command *c, const char *set, const char *id, bool made)
{
	mq_command_script(c, &rmq_script_attach);
	rmq_attach_key(c, set, "refs");
	mq_command_str(c, id);
	mq_command_str(c, made ? "new" : "");
}

struct chunks {
	const char *set, *verb;
};

static void
ask_chunk(void *arg, size_t i, struct mq_command *c)
{
	const struct chunks *all = arg;

	mq_command_plain(c, all->verb);
	add_chunk_key(c, all->set, (long long)i);
	if (strcmp(all->verb, "EXPIRE") == 0)
		mq_command_str(c, RMQ_ATTACH_S);
}

static int
take_chunk(void *arg, size_t i, redisReply *reply)
{
	(void)arg;
	(void)i;
	return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
}

int
rmq_attach_each(
    struct mq_redis *r, const char *set, const char *verb, long long n)
{
	struct chunks all = {set, verb};

	return mq_ask_all(r, (size_t)n, ask_chunk, take_chunk, &all);
}

int
rmq_attach_one(struct mq_redis *r, const char *set, const char *verb,
    const char *what, long long *done)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, verb);
	rmq_attach_key(&c, set, what);
	if (strcmp(verb, "EXPIRE") == 0)
		mq_command_str(&c, RMQ_ATTACH_S);
	return mq_call_number(r, &c, done);
}

/* Of the list of files, which says how many chunks there are, and of these. */
static int
change_files(struct mq_redis *r, const char *set, const char *verb, long long n)
{
	bool last = strcmp(verb, "UNLINK") == 0;
	long long done;

	if (!last && rmq_attach_one(r, set, verb, "files", &done) == -1)
		return -1;
	if (rmq_attach_each(r, set, verb, n) == -1)
		return -1;
	return last ? rmq_attach_one(r, set, verb, "files", &done) : 0;
}

/* --- the list of files ------------------------------------------------------ */

/* Chunks of a set: 16 TiB.  More are nonsense. */
#define CHUNKS_MAX (1LL << 24)

struct file {
	const char *name;
	long long first, bytes;
	char sum[SHA256_DIGEST_STRING_LENGTH];
};

static long long
chunks_of(long long bytes)
{
	return (bytes + RMQ_ATTACH_CHUNK - 1) / RMQ_ATTACH_CHUNK;
}

/* What a field says; false: nothing that makes sense. */
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

redisReply *
rmq_attach_files(struct mq_redis *r, const char *set, long long *chunks)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *reply;
	struct file f;
	size_t i;

	mq_command_plain(&c, "HGETALL");
	rmq_attach_key(&c, set, "files");
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

static int
write_all(int fd, const char *p, size_t n)
{
	ssize_t wrote;

	for (; n > 0; p += wrote, n -= (size_t)wrote) {
		wrote = write(fd, p, n);
		if (wrote == -1 && errno == EINTR)
			wrote = 0;
		if (wrote == -1)
			return -1;
	}
	return 0;
}

/* Returns 1 if the chunk is not the one that was published. */
static int
fetch_chunk(struct mq_redis *r, const char *set, const struct file *f,
    long long i, int fd, SHA2_CTX *sum)
{
	struct mq_command c = mq_redis_command(r);
	size_t want =
	    (size_t)MIN(RMQ_ATTACH_CHUNK, f->bytes - i * RMQ_ATTACH_CHUNK);
	redisReply *reply;
	int rv = 1;

	mq_command_plain(&c, "GET");
	add_chunk_key(&c, set, f->first + i);
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_STRING && reply->len == want) {
		SHA256Update(sum, (uint8_t *)reply->str, reply->len);
		rv = write_all(fd, reply->str, reply->len);
		if (rv == -1)
			(void)fail_to_write(r, f->name);
	}
	freeReplyObject(reply);
	return rv;
}

static int
fetch_file(struct mq_redis *r, const char *set, const struct file *f, int dir)
{
	int fd = openat(dir, f->name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	SHA2_CTX sum;
	long long i;
	int rv = 0;

	if (fd == -1)
		return fail_to_write(r, f->name);
	SHA256Init(&sum);
	for (i = 0; i < chunks_of(f->bytes) && rv == 0; i++)
		rv = fetch_chunk(r, set, f, i, fd, &sum);
	if (close(fd) == -1 && rv == 0)
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
	files = rmq_attach_files(r, set, &chunks);
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

/* --- the end ---------------------------------------------------------------- */

int
rmq_attach_remove(struct mq_redis *r, const char *set)
{
	struct mq_command c = mq_redis_command(r);
	long long chunks;
	redisReply *files = rmq_attach_files(r, set, &chunks);

	if (files == NULL)
		return -1;
	freeReplyObject(files);
	if (change_files(r, set, "UNLINK", chunks) == -1)
		return -1;
	mq_command_plain(&c, "SREM");
	rmq_key_all(&c, RMQ_ATTACH_SETS);
	mq_command_str(&c, set);
	return mq_call_done(r, &c);
}

static int
rmq_attach_release(struct mq_redis *r, const char *set, const char *id)
{
	struct mq_command c = mq_redis_command(r);
	long long was, there;

	mq_command_plain(&c, "HDEL");
	rmq_attach_key(&c, set, "refs");
	mq_command_str(&c, id);
	if (mq_call_number(r, &c, &was) == -1 ||
	    rmq_attach_one(r, set, "EXISTS", "refs", &there) == -1)
		return -1;
	return was == 1 && there == 0 ? rmq_attach_remove(r, set) : 0;
}

/* --- publishing ---------------------------------------------------------- */

/* When a long upload begins the hour of its chunks anew. */
#define RENEW_S 1200.0

/* One step publishes the message and makes the set stay, so on a cluster the id is one
 * in the slot of the queue: each 16384th is. */
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

static int
put_chunk(struct mq_attach *a, const char *p, size_t n)
{
	struct mq_redis *r = a->redis;
	struct mq_command c = mq_redis_command(r);
	double now;

	if (mq_redis_room(r, n) == -1)
		return -1;
	mq_command_plain(&c, "SET");
	add_chunk_key(&c, a->set, a->chunks);
	mq_command_arg(&c, p, n);
	mq_command_words(&c, "EX " RMQ_ATTACH_S);
	a->chunks++;
	if (mq_call_done(r, &c) == -1)
		return -1;
	/* A server that is slower than an hour must not lose the first chunks. */
	now = mq_clock_s(CLOCK_MONOTONIC);
	if (now - a->renewed_s < RENEW_S)
		return 0;
	a->renewed_s = now;
	return change_files(r, a->set, "EXPIRE", a->chunks);
}

/* Fills the buffer, but for the end of the file; -1 with errno. */
static ssize_t
read_chunk(int fd, char *buf)
{
	size_t n = 0;
	ssize_t got = 1;

	while (n < RMQ_ATTACH_CHUNK && got != 0) {
		got = read(fd, buf + n, RMQ_ATTACH_CHUNK - n);
		if (got == -1 && errno != EINTR)
			return -1;
		if (got > 0)
			n += (size_t)got;
	}
	return (ssize_t)n;
}

static bool
is_unchanged(const struct stat *was, int fd, long long bytes)
{
	struct stat is;

	return !S_ISREG(was->st_mode) ||
	    (fstat(fd, &is) == 0 && is.st_size == was->st_size &&
		timespeccmp(&is.st_mtim, &was->st_mtim, ==) &&
		timespeccmp(&is.st_ctim, &was->st_ctim, ==) &&
		(was->st_size == 0 || bytes == was->st_size));
}

/* The server has no part in it. */
static int
fail_file(struct mq_attach *a, int status, const char *name, const char *why)
{
	struct mq_redis *r = a->redis;

	r->status = status;
	snprintf(r->error, sizeof(r->error), "%s: %s", name, why);
	return -1;
}

/* How many bytes there were, unless more than size; -1: it failed. */
static long long
put_chunks(struct mq_attach *a, const char *name, int fd, long long size,
    SHA2_CTX *sum)
{
	char *buf = mq_xcalloc(1, RMQ_ATTACH_CHUNK);
	long long bytes = 0;
	ssize_t n = 1;
	int rv = 0;

	while (rv == 0 && bytes <= size && (n = read_chunk(fd, buf)) > 0) {
		SHA256Update(sum, (uint8_t *)buf, (size_t)n);
		bytes += n;
		rv = put_chunk(a, buf, (size_t)n);
	}
	if (n == -1)
		rv = fail_file(a, MQ_EXIT_IO, name, strerror(errno));
	free(buf);
	return rv == 0 ? bytes : -1;
}

static int
add_file(struct mq_attach *a, const char *name, int fd)
{
	struct mq_command c = mq_redis_command(a->redis);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	long long first = a->chunks, size = LLONG_MAX, bytes, done;
	struct stat st;
	SHA2_CTX sum;

	SHA256Init(&sum);
	if (fstat(fd, &st) == -1)
		return fail_file(a, MQ_EXIT_IO, name, strerror(errno));
	/* Files of /proc and what is no file do not say how many bytes they have. */
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		size = st.st_size;
	bytes = put_chunks(a, name, fd, size, &sum);
	if (bytes == -1)
		return -1;
	if (!is_unchanged(&st, fd, bytes)) {
		/* At once what nobody will publish goes: a retry a minute must not
		 * fill the server. */
		if (change_files(a->redis, a->set, "UNLINK", a->chunks) == -1)
			return -1;
		return fail_file(a, MQ_EXIT_AGAIN, name,
		    "the file changed while it was read; publish it again");
	}
	mq_command_script(&c, &rmq_script_attach);
	rmq_attach_key(&c, a->set, "files");
	mq_command_str(&c, name);
	mq_command_str(&c, "new");
	mq_command_fmt(&c, "%lld %lld %s", first, bytes, SHA256End(&sum, hex));
	return mq_call_number(a->redis, &c, &done);
}

/* Once it is listed, a cleaner finds what an end of the message leaves. */
static int
close_set(struct mq_attach *a, const char *id)
{
	struct mq_command c = mq_redis_command(a->redis);
	long long done;

	rmq_attach_refer(&c, a->set, id, true);
	if (mq_call_number(a->redis, &c, &done) == -1)
		return -1;
	mq_command_plain(&c, "SADD");
	rmq_key_all(&c, RMQ_ATTACH_SETS);
	mq_command_str(&c, a->set);
	return mq_call_done(a->redis, &c);
}

static int
count_sets(struct mq_redis *r, long long *n)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, "SCARD");
	c.optional = true;
	rmq_key_all(&c, RMQ_ATTACH_SETS);
	return mq_call_number(r, &c, n);
}

const struct mq_attachments rmq_attachments = {.begin = begin_set,
    .add = add_file,
    .close = close_set,
    .fetch = rmq_attach_fetch,
    .release = rmq_attach_release,
    .count = count_sets,
    .refer = rmq_attach_refer};
