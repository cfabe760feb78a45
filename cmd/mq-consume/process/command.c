#include "process.h"

#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "parts.h"

/* Bytes of a command line that people read. */
#define COMMAND_LINE_MAX 200

char *
command_find(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char *candidate;

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0 ? mq_xstrdup(name) : NULL;
	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		candidate = mq_xasprintf("%.*s%s%s", (int)(end - path), path,
		    end == path ? "./" : "/", name);
		if (access(candidate, X_OK) == 0)
			return candidate;
		free(candidate);
		if (*end == '\0')
			return NULL;
	}
}

void
command_add_word(struct mq_buf *line, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=:,./@%^";
	const char *quote;

	if (line->len > 0)
		mq_buf_add(line, " ", 1);
	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		mq_buf_addstr(line, word);
		return;
	}
	mq_buf_addstr(line, "'");
	for (; (quote = strchr(word, '\'')) != NULL; word = quote + 1) {
		mq_buf_add(line, word, (size_t)(quote - word));
		mq_buf_addstr(line, "'\\''");
	}
	mq_buf_addstr(line, word);
	mq_buf_addstr(line, "'");
}

/* The command as it was given, in one line, and cut. */
static char *
format_line(char *const *argv)
{
	struct mq_buf line = {0};
	size_t n, i;

	for (; *argv != NULL && line.len <= COMMAND_LINE_MAX; argv++)
		command_add_word(&line, *argv);
	n = line.len;
	if (n > COMMAND_LINE_MAX) {
		for (n = COMMAND_LINE_MAX; (line.data[n] & 0xc0) == 0x80;)
			n--;
		line.len = n;
		mq_buf_addstr(&line, "...");
	}
	for (i = 0; i < n; i++)
		if (iscntrl((unsigned char)line.data[i]))
			line.data[i] = ' ';
	(void)mq_buf_str(&line);
	return line.data;
}

/* RQ_SCRIPT: absolute, since scripts go to its directory, but not resolved. */
static char *
absolute_path(const char *path)
{
	char here[PATH_MAX];

	if (*path == '/' || getcwd(here, sizeof(here)) == NULL)
		return mq_xstrdup(path);
	return mq_xasprintf("%s/%s", here, path);
}

/* For RQ the script is what stands last, if that is a path of one.  The command gets
 * its whole path, as it runs elsewhere. */
static char *
find_script(char **argv, const char *path)
{
	size_t n;

	for (n = 0; argv[n + 1] != NULL; n++)
		;
	if (n == 0 || strchr(argv[n], '/') == NULL ||
	    access(argv[n], X_OK) == -1)
		return mq_xstrdup(path);
	return argv[n] = absolute_path(argv[n]);
}

void
command_init(struct command *c, char **argv, const char *work_dir, bool rq)
{
	char *path = command_find(argv[0]);

	if (path == NULL)
		mq_die(MQ_EXIT_CONFIG, "%s: %s", argv[0],
		    strchr(argv[0], '/') != NULL ? strerror(errno) :
						   "command not found");
	c->argv = argv;
	c->work_dir = work_dir;
	c->path = absolute_path(path);
	c->line = format_line(argv);
	c->rq = rq;
	c->script = rq ? find_script(argv, c->path) : mq_xstrdup(c->path);
	free(path);
	c->here = getcwd(NULL, 0);
	if (c->here == NULL)
		mq_die(errno == ENOMEM ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
		    "current directory: %s", strerror(errno));
}

void
command_end(struct command *c)
{
	free(c->path);
	free(c->script);
	free(c->line);
	free(c->here);
}

int
command_make_dir(const struct command *c, const char *id, char **dir)
{
	*dir = NULL;
	if (c->work_dir == NULL)
		return 0;
	*dir = mq_xasprintf("%s/%s", c->work_dir, id);
	if (mkdir(*dir, 0700) == -1 && errno != EEXIST)
		return -1;
	return c->rq ? rq_make_dir(dir) : 0;
}

void
command_remove_dir(const struct command *c, const char *id)
{
	char *dir;

	if (c->work_dir == NULL)
		return;
	dir = mq_xasprintf("%s/%s", c->work_dir, id);
	if (c->rq)
		rq_empty_dir(dir);
	(void)rmdir(dir);
	free(dir);
}
