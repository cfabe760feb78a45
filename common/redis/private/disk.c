#include "private.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/xalloc.h"

/* Bytes that a server needs for small steps: to join, to reject, to leave. */
#define ROOM 1048576
/* Seconds before a server that could not write is started again. */
#define REST_S 10

/* Allocates, so that a quota counts, too.  The file is empty before and after. */
static int
check_room(struct place *p, int lock)
{
	int e = posix_fallocate(lock, 0, ROOM);

	if (ftruncate(lock, 0) == -1)
		e = errno;
	if (e == ENOSPC || e == EDQUOT || e == EIO)
		return private_fail(p, MQ_EXIT_IO,
		    "private server in %s: not started: %s: it needs %d KiB",
		    p->dir, strerror(e), ROOM / 1024);
	return 0;
}

static bool
is_young(const char *path)
{
	time_t now = time(NULL);
	struct stat st;

	return stat(path, &st) == 0 && st.st_mtime <= now &&
	    now - st.st_mtime < REST_S;
}

/* A server that is started at once could end at once, by the same write. */
static int
check_rest(struct place *p)
{
	char text[4096], *log = mq_xasprintf("%s/redis.log", p->dir);
	bool rests = strstr(private_last_words(p, text, sizeof(text)),
			 "AOF write error") != NULL &&
	    is_young(log);
	int status = 0;

	if (rests)
		status = private_fail(p, MQ_EXIT_AGAIN,
		    "private server in %s: ended: it could not write "
		    "to its disk; it is started again in %d seconds; see %s",
		    p->dir, REST_S, log);
	free(log);
	return status;
}

int
private_may_start(struct place *p, int lock)
{
	int status = check_room(p, lock);

	return status == 0 ? check_rest(p) : status;
}

int
mq_private_room(
    const char *socket_path, size_t bytes, char *error, size_t error_size)
{
	const char *end = strrchr(socket_path, '/');
	char *dir = mq_xstrndup(socket_path, (size_t)(end - socket_path));
	unsigned long long free_bytes;
	struct statvfs fs;
	int status = 0;

	if (statvfs(dir, &fs) == 0) {
		free_bytes = (unsigned long long)fs.f_bavail * fs.f_frsize;
		if (free_bytes < (unsigned long long)bytes + ROOM) {
			snprintf(error, error_size,
			    "private server in %s: %s: %llu KiB are free, and "
			    "%zu KiB are needed",
			    dir, strerror(ENOSPC), free_bytes / 1024,
			    (bytes + ROOM + 1023) / 1024);
			status = MQ_EXIT_IO;
		}
	}
	free(dir);
	return status;
}

void
mq_private_disk(
    const char *socket_path, long long *free_bytes, long long *all_bytes)
{
	struct statvfs fs;

	if (statvfs(socket_path, &fs) == -1)
		return;
	*free_bytes = (long long)fs.f_bavail * (long long)fs.f_frsize;
	*all_bytes = (long long)fs.f_blocks * (long long)fs.f_frsize;
}
