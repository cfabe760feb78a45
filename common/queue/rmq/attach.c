/*
 * The rmq layout: publishing attachments.
 */
#include "queue/attach.h"

#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach_keys.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "scripts.h"

/* When a long upload begins the hour of its chunks anew. */
#define RENEW_S 1200.0

static void
begin_set(struct mq_attach *a)
{
	struct mq_idgen ids = {0};

	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), a->set);
	a->renewed_s = mq_clock_s(CLOCK_MONOTONIC);
}

static int
put_chunk(struct mq_attach *a, const char *p, size_t n)
{
	struct mq_redis *r = a->redis;
	struct mq_command c = mq_redis_command(r);
	char number[24];

	r->status = mq_server_room(r->server, n, r->error, sizeof(r->error));
	if (r->status != 0)
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

static int
add_file(struct mq_attach *a, const char *name, int fd)
{
	char *buf = mq_xcalloc(1, RMQ_ATTACH_CHUNK);
	long long first = a->chunks, bytes = 0;
	SHA2_CTX sum;
	ssize_t n;
	int rv = 0;

	SHA256Init(&sum);
	while (rv == 0 && (n = read_chunk(fd, buf)) != 0) {
		if (n == -1) {
			rv = mq_redis_fail(a->redis, MQ_EXIT_IO, "%s: %s", name,
			    strerror(errno));
			break;
		}
		SHA256Update(&sum, (uint8_t *)buf, (size_t)n);
		bytes += n;
		rv = put_chunk(a, buf, (size_t)n);
		if (rv == 0)
			rv = renew_chunks(a);
	}
	free(buf);
	return rv == 0 ? put_file(a, name, first, bytes, &sum) : -1;
}

static int
keep_set(struct mq_attach *a, const char *id)
{
	struct mq_redis *r = a->redis;
	struct mq_command c = mq_redis_command(r);
	long long done, chunks = 0, files = 0, refs = 0;

	rmq_attach_refer(&c, a->set, id, true);
	if (mq_call_number(r, &c, &done) == -1)
		return -1;
	/* From here on a cleaner finds the set, and lets all of it expire. */
	rmq_attach_sets(&c, "SADD", a->set);
	if (mq_call_done(r, &c) == -1 ||
	    rmq_attach_one(r, a->set, "PERSIST", "refs", &refs) == -1 ||
	    rmq_attach_each(r, a->set, "PERSIST", a->chunks, &chunks) == -1 ||
	    rmq_attach_one(r, a->set, "PERSIST", "files", &files) == -1)
		return -1;
	if (chunks != a->chunks || files != 1 || refs != 1)
		return mq_redis_fail(r, MQ_EXIT_AGAIN,
		    "some of the attachments are gone; publish them again");
	return 0;
}

const struct mq_attachments rmq_attachments = {.begin = begin_set,
    .add = add_file,
    .keep = keep_set,
    .fetch = rmq_attach_fetch,
    .release = rmq_attach_release,
    .sweep = rmq_attach_sweep,
    .note = rmq_attach_note,
    .refer = rmq_attach_refer};
