#include "private.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/xalloc.h"

int
private_fail(struct place *p, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->error, p->error_size, fmt, ap);
	va_end(ap);
	return status;
}

/* The XDG rules say that a relative value is to be ignored. */
static char *
default_dir(void)
{
	const char *s;
	struct passwd *pw;

	s = getenv("XDG_STATE_HOME");
	if (s != NULL && *s == '/')
		return mq_xasprintf("%s/mq", s);
	s = getenv("HOME");
	if (s == NULL || *s == '\0') {
		pw = getpwuid(geteuid());
		s = pw != NULL ? pw->pw_dir : NULL;
	}
	if (s == NULL || *s != '/')
		return NULL;
	return mq_xasprintf("%s/.local/state/mq", s);
}

static char *
wanted_dir(const char *dir)
{
	char *d;
	size_t n;

	if (dir == NULL || *dir == '\0')
		return default_dir();
	d = mq_xstrdup(dir);
	for (n = strlen(d); n > 1 && d[n - 1] == '/'; n--)
		d[n - 1] = '\0';
	return d;
}

static int
make_dir(char *path, mode_t mode)
{
	char *slash;
	int r;

	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	slash = strrchr(path, '/');
	if (errno != ENOENT || slash == NULL || slash == path)
		return -1;
	*slash = '\0';
	r = make_dir(path, 0755);
	*slash = '/';
	if (r == -1)
		return -1;
	return mkdir(path, mode) == 0 || errno == EEXIST ? 0 : -1;
}

/*
 * A directory that others can write to is refused, not repaired: they may
 * have put a socket of their own there already.
 */
static int
check_dir(struct place *p)
{
	struct stat st;

	if (stat(p->dir, &st) == -1 &&
	    (errno != ENOENT || make_dir(p->dir, 0700) == -1 ||
		stat(p->dir, &st) == -1))
		return private_fail(
		    p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return private_fail(
		    p, MQ_EXIT_CONFIG, "%s: not a directory", p->dir);
	if (st.st_uid != geteuid())
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: belongs to user %lu, not to you", p->dir,
		    (unsigned long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: others can write to it (chmod 700 %s)", p->dir,
		    p->dir);
	return 0;
}

static int
name_socket(struct place *p, char *path, size_t size)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	int n;

	n = snprintf(path, size, "%s/redis.sock", p->dir);
	if (n < 0 || (size_t)n >= size || (size_t)n > most)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "%s: too long for a unix socket (at most %zu bytes); "
		    "choose a shorter directory",
		    p->dir, most - strlen("/redis.sock"));
	p->socket = path;
	return 0;
}

int
private_find_place(struct place *p, const char *dir, char *path, size_t size)
{
	char *absolute;
	int status;

	p->dir = wanted_dir(dir);
	if (p->dir == NULL)
		return private_fail(p, MQ_EXIT_CONFIG,
		    "no home directory: set HOME or XDG_STATE_HOME to an "
		    "absolute path");
	/* A path that is too long fails before anything is made. */
	status = name_socket(p, path, size);
	if (status == 0)
		status = check_dir(p);
	if (status != 0 || *p->dir == '/')
		return status;

	absolute = realpath(p->dir, NULL);
	if (absolute == NULL)
		return private_fail(
		    p, MQ_EXIT_IO, "%s: %s", p->dir, strerror(errno));
	free(p->dir);
	p->dir = absolute;
	return name_socket(p, path, size);
}

/* --- the log -------------------------------------------------------------------- */

static size_t
read_tail(struct place *p, char *text, size_t size)
{
	char *path = mq_xasprintf("%s/redis.log", p->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;
	off_t from;

	free(path);
	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == 0) {
		from = st.st_size - (off_t)size;
		if (from < p->log_start)
			from = p->log_start;
		n = pread(fd, text, size, from);
	}
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* "123:M 01 Jan 2024 10:00:00.000 # Reason" becomes "Reason". */
static char *
without_stamp(char *line)
{
	int n = 0;

	(void)sscanf(
	    line, "%*d:%*c %*d %*s %*d %*d:%*d:%*d.%*d %*1[-.*#] %n", &n);
	return line + n;
}

char *
private_last_words(struct place *p, char *text, size_t size)
{
	size_t n = read_tail(p, text, size - 1);
	char *line;

	while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	return without_stamp(line != NULL ? line + 1 : text);
}

/* The server speaks English whatever our locale is. */
static bool
is_about_the_disk(const char *reason)
{
	static const char *const texts[] = {"No space left on device",
	    "Disk quota exceeded", "Read-only file system",
	    "Input/output error", "File too large"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strstr(reason, texts[i]) != NULL)
			return true;
	return false;
}

int
private_did_not_start(struct place *p)
{
	char text[4096];
	const char *reason = private_last_words(p, text, sizeof(text));
	int status = MQ_EXIT_CONFIG;

	if (is_about_the_disk(reason))
		status = MQ_EXIT_IO;
	else if (*reason == '\0')
		reason = "it ended without a message";
	return private_fail(p, status,
	    "private server in %s: did not start: %s; see %s/redis.log", p->dir,
	    reason, p->dir);
}
