#include "publish.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"

void
attachments_note(struct attachments *a, const char *arg)
{
	const char *path = strchr(arg, '='), *why;
	struct attachment *new;
	size_t i;

	if (path == NULL)
		mq_die(MQ_EXIT_USAGE, "--attach: %s: not of the form NAME=FILE",
		    arg);
	a->list = mq_xreallocarray(a->list, a->n + 1, sizeof(*a->list));
	new = &a->list[a->n];
	*new = (struct attachment){
	    mq_xstrndup(arg, (size_t)(path - arg)), path + 1};
	why = mq_attach_name_error(new->name);
	for (i = 0; i < a->n && why == NULL; i++)
		if (strcmp(a->list[i].name, new->name) == 0)
			why = "given twice";
	if (why != NULL)
		mq_die(MQ_EXIT_USAGE, "--attach: %s: %s", new->name, why);
	a->n++;
}

/* A directory can be opened, but not read. */
static int
open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		mq_die(MQ_EXIT_IO, "--attach: %s: %s", path, strerror(EISDIR));
	if (fd == -1)
		mq_die(MQ_EXIT_IO, "--attach: %s: %s", path, strerror(errno));
	return fd;
}

static void __attribute__((noreturn)) end_failed(const struct attachments *a)
{
	const struct mq_redis *r = a->set.redis;

	mq_say("--attach: %s", r->error);
	outcome_end(a->outcome, 0, r->status);
}

void
attachments_send(struct attachments *a, struct mq_redis *r, const char *queue,
    struct mq_envelope *headers)
{
	size_t i;
	int fd;

	a->set.redis = r;
	a->how->begin(&a->set, queue);
	/* What cannot be opened is said before anything is sent. */
	for (i = 0; i < a->n; i++)
		if (access(a->list[i].path, R_OK) == -1)
			(void)open_file(a->list[i].path);
	for (i = 0; i < a->n; i++) {
		fd = open_file(a->list[i].path);
		if (a->how->add(&a->set, a->list[i].name, fd) == -1)
			end_failed(a);
		close(fd);
	}
	mq_envelope_set(headers, MQ_HEADER_ATTACH, a->set.set);
}

void
attachments_close(struct attachments *a, const char *id)
{
	strlcpy(a->id, id, sizeof(a->id));
	if (a->how->close(&a->set, id) == -1)
		end_failed(a);
}

/* What is left when that fails is found by mq-clean. */
void
attachments_drop(void *attachments)
{
	const struct attachments *a = attachments;

	if (a->id[0] != '\0')
		(void)a->how->release(a->set.redis, a->set.set, a->id);
}

void
attachments_free(struct attachments *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		free(a->list[i].name);
	free(a->list);
}
