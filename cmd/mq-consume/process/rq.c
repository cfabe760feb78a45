#include "process.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/id.h"
#include "base/xalloc.h"
#include "message/json.h"

/* NULL: there is no such variable. */
static const char *
variable(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (; *environment != NULL; environment++)
		if (strncmp(*environment, name, n) == 0 &&
		    (*environment)[n] == '=')
			return *environment + n + 1;
	return NULL;
}

/* When the message was to run first, unix seconds. */
static int64_t
due_of(char *const *environment)
{
	const char *due = variable(environment, "MQ_HEADER_MQ_DUE");
	const char *id = variable(environment, "RQ_MSG_ID");
	int64_t at = 0;

	if (due != NULL)
		at = strtoll(due, NULL, 10) / 1000;
	else if (id != NULL && mq_id_valid(id, strlen(id)))
		at = (int64_t)(mq_id_time(id) / 1000000);
	return at > 0 ? at : (int64_t)time(NULL);
}

static void
format_message(char *const *environment, struct mq_buf *text)
{
	/* Text, but for the numbers. */
	static const char *const members[][2] = {{"msg_id", "RQ_MSG_ID"},
	    {"dest", "RQ_DEST_QUEUE"}, {"orig_msg_id", "RQ_ORIG_MSG_ID"},
	    {"count", "RQ_COUNT"}, {"max_count", "MQ_ATTEMPTS"},
	    {"param1", "RQ_PARAM1"}, {"param2", "RQ_PARAM2"},
	    {"param3", "RQ_PARAM3"}, {"param4", "RQ_PARAM4"}};
	json_t *v =
	    mq_json_pack("{s:s, s:s, s:s, s:I}", "src", "mq-tools", "status",
		"run", "state", "run", "due", (json_int_t)due_of(environment));
	const char *value;
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		value = variable(environment, members[i][1]);
		/* RQ leaves out what was not given. */
		if (value != NULL && *value != '\0')
			json_object_set_new(v, members[i][0],
			    i == 3 || i == 4 ?
				json_integer(strtoll(value, NULL, 10)) :
				mq_json_text(value));
	}
	/* The queue that is meant, but of what is to be relayed its URL. */
	value = variable(environment, "MQ_HEADER_MQ_DEST");
	if (value != NULL)
		json_object_set_new(v, "dest", mq_json_text(value));
	mq_json_dump(v, text);
	json_decref(v);
}

static int
write_message(const char *path, char *const *environment)
{
	struct mq_buf text = {0};
	int fd, rv = -1;

	format_message(environment, &text);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd != -1 && write(fd, text.data, text.len) == (ssize_t)text.len)
		rv = 0;
	if (fd != -1 && close(fd) == -1)
		rv = -1;
	mq_buf_free(&text);
	return rv;
}

/* The directory to which the attachments come, if there are any. */
static int
make_attach(const char *path, const char *files)
{
	if (unlink(path) == -1)
		(void)rmdir(path);
	return files == NULL ? 0 : symlink(files, path);
}

int
rq_fill_dir(const char *job, char *const *environment)
{
	int n = (int)(strlen(job) - strlen("job")), rv;
	char *msg = mq_xasprintf("%.*smsg", n, job);
	char *attach = mq_xasprintf("%.*sattach", n, job);

	rv = write_message(msg, environment);
	if (rv == 0)
		rv =
		    make_attach(attach, variable(environment, "MQ_ATTACH_DIR"));
	free(msg);
	free(attach);
	return rv;
}

void
rq_empty_dir(const char *dir)
{
	static const char *const names[] = {"job", "msg", "attach"};
	char *path;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path = mq_xasprintf("%s/%s", dir, names[i]);
		if (unlink(path) == -1)
			(void)rmdir(path);
		free(path);
	}
}
