/*
 * The rmq layout: publishing attachments.
 */
#include "queue/attach.h"

#include <sys/stat.h>

#include <errno.h>
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

/* When a long upload begins the hour of its chunks anew. */
#define RENEW_S 1200.0

/* One step publishes the message and makes the set stay, so on a cluster the id is one
 * in the slot of the queue: each 16384th is. */
static void
begin_set(struct mq_attach *a, const char *queue)
{
	struct mq_command c = mq_redis_command(a->redis);
	struct mq_idgen ids = {0};
	int slot;

	mq_command_plain(&c, "EXISTS");
	rmq_key_queue(&c, queue, "ready");
	slot = c.slot;
	do {
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), a->set);
		mq_command_plain(&c, "EXISTS");
		rmq_attach_key(&c, a->set, "refs");
	} while (c.slot != slot);
	mq_command_free(&c);
	a->renewed_s = mq_clock_s(CLOCK_MONOTONIC);
}

static int
put_chunk(struct mq_attach *a, const char *p, size_t n)
{
	struct mq_redis *r = a->redis;
	struct mq_command c = mq_redis_command(r);
	char number[24];

	if (mq_redis_room(r, n) == -1)
		return -1;
	snprintf(number, sizeof(number), "%lld", a->chunks);
	mq_command_plain(&c, "SET");
	rmq_attach_key(&c, a->set, number);
	mq_command_arg(&c, p, n);
	mq_command_words(&c, "EX " RMQ_ATTACH_S);
	a->chunks++;
	return mq_call_done(r, &c);
}

/* A server that is slower than an hour must not lose the first chunks. */
static int
renew_chunks(struct mq_attach *a)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	long long files;

	if (now - a->renewed_s < RENEW_S)
		return 0;
	a->renewed_s = now;
	if (rmq_attach_one(a->redis, a->set, "EXPIRE", "files", &files) == -1)
		return -1;
	return rmq_attach_each(a->redis, a->set, "EXPIRE", a->chunks, NULL);
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

static int
put_file(struct mq_attach *a, const char *name, long long first,
    long long bytes, SHA2_CTX *sum)
{
	struct mq_command c = mq_redis_command(a->redis);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	long long done;

	mq_command_script(&c, &rmq_script_attach, 1);
	rmq_attach_key(&c, a->set, "files");
	mq_command_str(&c, name);
	mq_command_str(&c, "new");
	mq_command_fmt(&c, "%lld %lld %s", first, bytes, SHA256End(sum, hex));
	return mq_call_number(a->redis, &c, &done);
}

/* The bytes to read: files of /proc and what is no file say nothing of that. */
static long long
size_of(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > 0 ? st->st_size :
							 LLONG_MAX;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool
is_unchanged(const struct stat *was, int fd, long long bytes)
{
	struct stat is;

	return !S_ISREG(was->st_mode) ||
	    (fstat(fd, &is) == 0 && is.st_size == was->st_size &&
		same_time(&is.st_mtim, &was->st_mtim) &&
		same_time(&is.st_ctim, &was->st_ctim) &&
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

static int
fail_to_read(struct mq_attach *a, const char *name)
{
	return fail_file(a, MQ_EXIT_IO, name, strerror(errno));
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
		if (rv == 0)
			rv = renew_chunks(a);
	}
	if (n == -1)
		rv = fail_to_read(a, name);
	free(buf);
	return rv == 0 ? bytes : -1;
}

/* Removes at once what nobody will publish: a retry a minute must not fill the server. */
static int
fail_changed(struct mq_attach *a, const char *name)
{
	struct mq_redis *r = a->redis;
	long long done;

	if (rmq_attach_each(r, a->set, "UNLINK", a->chunks, NULL) == -1 ||
	    rmq_attach_one(r, a->set, "UNLINK", "files", &done) == -1)
		return -1;
	return fail_file(a, MQ_EXIT_AGAIN, name,
	    "the file changed while it was read; publish it again");
}

static int
add_file(struct mq_attach *a, const char *name, int fd)
{
	long long first = a->chunks, bytes;
	struct stat st;
	SHA2_CTX sum;

	SHA256Init(&sum);
	if (fstat(fd, &st) == -1)
		return fail_to_read(a, name);
	bytes = put_chunks(a, name, fd, size_of(&st), &sum);
	if (bytes == -1)
		return -1;
	return is_unchanged(&st, fd, bytes) ?
	    put_file(a, name, first, bytes, &sum) :
	    fail_changed(a, name);
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
	rmq_attach_sets(&c, "SADD", a->set);
	return mq_call_done(a->redis, &c);
}

static int
count_sets(struct mq_redis *r, long long *n)
{
	struct mq_command c = mq_redis_command(r);

	rmq_attach_sets(&c, "SCARD", NULL);
	c.optional = true;
	return mq_call_number(r, &c, n);
}

const struct mq_attachments rmq_attachments = {.begin = begin_set,
    .add = add_file,
    .close = close_set,
    .fetch = rmq_attach_fetch,
    .release = rmq_attach_release,
    .count = count_sets,
    .refer = rmq_attach_refer};
