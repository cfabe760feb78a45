/*
 * The rmq layout: fetching attachments, and removing them.
 */
#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "queue/attach.h"
#include "rmq.h"

/* Chunks of a set: 16 TiB.  More are nonsense. */
#define CHUNKS_MAX (1LL << 24)

/* --- the list of files ------------------------------------------------------ */

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
	reply = mq_call_strings(r, &c);
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
	char number[24];
	redisReply *reply;
	int rv = 1;

	snprintf(number, sizeof(number), "%lld", f->first + i);
	mq_command_plain(&c, "GET");
	rmq_attach_key(&c, set, number);
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
fetch_all(struct mq_redis *r, const char *set, const redisReply *files, int dir,
    struct mq_buf *why)
{
	struct file f;
	size_t i;
	int rv = 0;

	for (i = 0; i + 1 < files->elements && rv == 0; i += 2) {
		if (!parse_file(files->element[i], files->element[i + 1], &f)) {
			mq_buf_addstr(why, "their list is damaged");
			return 1;
		}
		rv = fetch_file(r, set, &f, dir);
		if (rv == 1)
			mq_buf_printf(
			    why, "%s is incomplete or damaged", f.name);
	}
	return rv;
}

int
rmq_attach_fetch(struct mq_redis *r, const char *set, const char *id, int dir,
    struct mq_buf *why)
{
	struct mq_command c = mq_redis_command(r);
	long long there, chunks, done;
	redisReply *files;
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
	rv = rmq_attach_one(r, set, "PERSIST", "files", &done);
	if (rv == 0)
		rv = rmq_attach_each(r, set, "PERSIST", chunks, NULL);
	if (rv == 0)
		rv = fetch_all(r, set, files, dir, why);
	freeReplyObject(files);
	return rv;
}

/* --- the end ---------------------------------------------------------------- */

int
rmq_attach_remove(struct mq_redis *r, const char *set)
{
	struct mq_command c = mq_redis_command(r);
	long long chunks, done;
	redisReply *files = rmq_attach_files(r, set, &chunks);

	if (files == NULL)
		return -1;
	freeReplyObject(files);
	if (rmq_attach_each(r, set, "UNLINK", chunks, NULL) == -1 ||
	    rmq_attach_one(r, set, "UNLINK", "files", &done) == -1)
		return -1;
	rmq_attach_sets(&c, "SREM", set);
	return mq_call_done(r, &c);
}

int
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
