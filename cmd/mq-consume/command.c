/*
 * What a command needs around it: where it is, where it runs, where its output
 * goes.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"

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

/* RQ_SCRIPT: absolute, since scripts go to its directory, but not resolved. */
char *
command_absolute(const char *path)
{
	char here[PATH_MAX];

	if (*path == '/' || getcwd(here, sizeof(here)) == NULL)
		return mq_xstrdup(path);
	return mq_xasprintf("%s/%s", here, path);
}

/*
 * The script's own directory, made when it is not there.  It is kept over
 * attempts, and removed after the last when the script left nothing in it.
 */
char *
command_work_dir(struct consumer *c, const struct message *m)
{
	char *dir = mq_xasprintf("%s/%s", c->opt->work_dir, m->id);

	int error;

	if (mkdir(dir, 0700) == -1 && errno != EEXIST) {
		error = errno;
		if (!c->starving)
			mq_say("%s: %s", dir, strerror(error));
		free(dir);
		errno = error;
		return NULL;
	}
	return dir;
}

void
command_remove_work_dir(struct consumer *c, const struct message *m)
{
	char *dir;

	if (c->opt->work_dir == NULL)
		return;
	dir = mq_xasprintf("%s/%s", c->opt->work_dir, m->id);
	(void)rmdir(dir);
	free(dir);
}

void
command_log_start(const struct slot *s)
{
	const struct message *m = slot_on(s);
	char what[MQ_ID_MAX + 32];

	if (m == NULL)
		snprintf(what, sizeof(what), "worker");
	else if (s->ones != NULL)
		snprintf(what, sizeof(what), "batch of %d", s->count);
	else
		snprintf(what, sizeof(what), "%s attempt %ld", m->id,
		    m->attempts + 1);
	logs_begin(
	    &s->c->outputs, m != NULL ? m->queue : 0, what, s->c->script);
}
