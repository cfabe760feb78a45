#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

struct spill *
spill_new(void)
{
	struct spill *s = mq_xcalloc(1, sizeof(*s));

	s->fd = -1;
	return s;
}

void
spill_free(struct spill *s)
{
	if (s == NULL)
		return;
	if (s->fd != -1)
		close(s->fd);
	mq_buf_free(&s->memory);
	free(s);
}

size_t
spill_size(const struct spill *s)
{
	return (size_t)(s->end - s->start);
}

bool
spill_fits(const struct spill *s, size_t n)
{
	return s->fd == -1 && s->memory.len + n <= SPILL_MEMORY;
}

/* Nobody else can open the file, and nothing is left of it after a crash. */
static int
open_file(void)
{
	const char *dir = getenv("TMPDIR");
	char *name;
	int fd;

	if (dir == NULL || *dir == '\0')
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd != -1 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	/* This file system has no files without a name. */
	name = mq_xasprintf("%s/mq-consume.XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd != -1)
		unlink(name);
	free(name);
	return fd;
}

static bool
write_all(int fd, const char *p, size_t n, off_t at)
{
	ssize_t wrote;

	while (n > 0) {
		wrote = pwrite(fd, p, n, at);
		if (wrote == -1 && errno == EINTR)
			continue;
		if (wrote == -1)
			return false;
		p += wrote;
		n -= (size_t)wrote;
		at += wrote;
	}
	return true;
}

/* Moves all bytes from memory into a file. */
static bool
move_to_file(struct spill *s)
{
	int fd = open_file(), error;

	if (fd == -1)
		return false;
	if (!write_all(fd, s->memory.data, s->memory.len, 0)) {
		error = errno;
		close(fd);
		errno = error;
		return false;
	}
	mq_buf_free(&s->memory);
	s->fd = fd;
	return true;
}

bool
spill_add(struct spill *s, const void *p, size_t n)
{
	if (spill_fits(s, n))
		mq_buf_add(&s->memory, p, n);
	else if ((s->fd == -1 && !move_to_file(s)) ||
	    !write_all(s->fd, p, n, s->end))
		return false;
	s->end += (off_t)n;
	return true;
}

size_t
spill_take(struct spill *s, void *to, size_t n)
{
	ssize_t got;

	if (n > spill_size(s))
		n = spill_size(s);
	if (s->fd == -1) {
		memcpy(to, s->memory.data + s->start, n);
		s->start += (off_t)n;
		return n;
	}
	do
		got = pread(s->fd, to, n, s->start);
	while (got == -1 && errno == EINTR);
	if (got <= 0) {
		s->start = s->end;
		return 0;
	}
	s->start += got;
	return (size_t)got;
}
