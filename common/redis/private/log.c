#include "log.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/xalloc.h"

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
		reason = "it ended without a word";
	return private_fail(p, status,
	    "private server in %s: did not start: %s; see %s/redis.log", p->dir,
	    reason, p->dir);
}
