/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "process.h"

#include <ctype.h>

#include "base/syscall.h"
#include "message/json.h"

/* --- command ------------------------------------------------------------- */

/* Bytes of a command line that people read. */
#define COMMAND_LINE_MAX 200

/* Whether a path can be executed; false with errno.  Folders can be by their modes, too. */
static bool
is_program(const char *path)
{
	struct stat st;

	if (access(path, X_OK) == -1 || stat(path, &st) == -1)
		return false;
	errno = EISDIR;
	return !S_ISDIR(st.st_mode);
}

char *
command_find(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char *candidate;

	if (strchr(name, '/') != NULL)
		return is_program(name) ? mq_xstrdup(name) : NULL;
	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		candidate = mq_xasprintf("%.*s%s%s", (int)(end - path), path,
		    end == path ? "./" : "/", name);
		if (is_program(candidate))
			return candidate;
		free(candidate);
		if (*end == '\0')
			return NULL;
	}
}

/* The command as given, in one line; free().  If longer than max bytes, the line is cut, and "..."
 * added. */
static char *
command_line(char *const *argv, size_t max)
{
	struct mq_buf line = {0};
	size_t n, i;

	for (; *argv != NULL && line.len <= max; argv++)
		mq_buf_add_word(&line, *argv);
	n = line.len;
	if (n > max) {
		for (n = max; (line.data[n] & 0xc0) == 0x80;)
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

/* Links are not resolved: scripts find their own directory by RQ_SCRIPT. */
static char *
absolute_path(const char *here, const char *path)
{
	return *path == '/' ? mq_xstrdup(path) :
			      mq_xasprintf("%s/%s", here, path);
}

/* --- arguments ----------------------------------------------------------- */

/* Bytes of the longest argument, with its NUL: the kernel's MAX_ARG_STRLEN. */
#define ARGUMENT_MAX (32 * (size_t)sysconf(_SC_PAGESIZE))

static size_t
without_newline(const char *payload, size_t n)
{
	return n > 0 && payload[n - 1] == '\n' ? n - 1 : n;
}

const char *
arguments_refuse(const char *payload, size_t n)
{
	if (memchr(payload, '\0', n) != NULL)
		return "its payload has a NUL byte, which no argument can have";
	if (without_newline(payload, n) >= ARGUMENT_MAX)
		return "its payload is too long for an argument";
	return NULL;
}

/* The command line with the payload, less a last newline, in place of each token; the name of the
 * command stays.  free() it, then text, which has the arguments.  NULL with errno E2BIG: too
 * long for the kernel; text is freed. */
static char **
fill_arguments(char *const *argv, const char *token, const char *payload,
    size_t n, struct mq_buf *text)
{
	size_t max = ARGUMENT_MAX, most = mq_arg_max(), count, start, i;
	const char *from, *at;
	char **filled, *p;

	n = without_newline(payload, n);
	for (count = 1; argv[count] != NULL; count++) {
		start = text->len;
		for (from = argv[count]; (at = strstr(from, token)) != NULL;
		     from = at + strlen(token)) {
			mq_buf_add(text, from, (size_t)(at - from));
			mq_buf_add(text, payload, n);
		}
		mq_buf_add(text, from, strlen(from) + 1);
		if (text->len - start > max || text->len >= most) {
			mq_buf_free(text);
			errno = E2BIG;
			return NULL;
		}
	}
	filled = mq_xcalloc(count + 1, sizeof(*filled));
	filled[0] = argv[0];
	for (i = 1, p = text->data; i < count; i++, p += strlen(p) + 1)
		filled[i] = p;
	return filled;
}

/* --- environment -------------------------------------------------------- */

/* Whether an inherited variable may be that of an outer consumer. */
static bool
is_ours(const char *variable)
{
	static const char *const names[] = {
	    "MQ_ID=", "MQ_QUEUE=", "MQ_BATCH=", "MQ_ATTEMPT=", "MQ_ATTEMPTS=",
	    "MQ_WRITE=", "MQ_READ=", "MQ_HEADER_", "MQ_PARAM1=", "MQ_PARAM2=",
	    "MQ_PARAM3=", "MQ_PARAM4=", "TRACEPARENT=", "MQ_ATTACH_DIR="};
	size_t i;

	if (strncmp(variable, "RQ_", 3) == 0)
		return strncmp(variable, "RQ_ENV=", 7) != 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Each run has many variables: printf(3) would be too slow. */
static void
put_bytes(struct mq_buf *text, const char *name, const char *value, size_t len)
{
	size_t n = strlen(name);
	char *to = mq_buf_reserve(text, n + len + 2);

	memcpy(to, name, n);
	to[n] = '=';
	memcpy(to + n + 1, value, len);
	to[n + 1 + len] = '\0';
	text->len += n + len + 2;
}

static void
put_string(struct mq_buf *text, const char *name, const char *value)
{
	put_bytes(text, name, value, strlen(value));
}

/* value: not negative. */
static void
put_long(struct mq_buf *text, const char *name, long value)
{
	char digits[24], *p = digits + sizeof(digits);

	do
		*--p = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	put_bytes(text, name, p, (size_t)(digits + sizeof(digits) - p));
}

/* The URL of a message, or, without id, of its queue; start: the variable and "=http://". */
static void
put_url(struct mq_buf *text, const char *start, const char *host,
    const struct message *m, const char *id)
{
	mq_buf_addstr(text, start);
	mq_buf_addstr(text, host);
	mq_buf_addstr(text, "/q/");
	mq_buf_addstr(text, m->queue_name);
	mq_buf_addstr(text, "/");
	mq_buf_add(text, id, strlen(id) + 1);
}

/* All values, joined by ", " as in HTTP; no variable if a value has a NUL. */
static void
put_header(struct mq_buf *text, const char *name, json_t *values)
{
	bool fits = json_is_array(values) && json_array_size(values) > 0;
	size_t start = text->len, i;
	json_t *value;
	char *to;

	/* A history may be too long for a variable. */
	if (strcmp(name, MQ_HEADER_HISTORY) == 0)
		return;
	if (strcasecmp(name, "traceparent") == 0) {
		mq_buf_addstr(text, "TRACEPARENT");
	} else {
		mq_buf_addstr(text, "MQ_HEADER_");
		to = mq_buf_reserve(text, strlen(name));
		for (; *name != '\0'; name++, text->len++)
			*to++ = isascii((unsigned char)*name) &&
				isalnum((unsigned char)*name) ?
			    (char)toupper((unsigned char)*name) :
			    '_';
	}
	mq_buf_add(text, "=", 1);
	json_array_foreach(values, i, value) {
		fits = fits &&
		    strlen(json_string_value(value)) ==
			json_string_length(value);
		if (i > 0)
			mq_buf_addstr(text, ", ");
		mq_buf_add(
		    text, json_string_value(value), json_string_length(value));
	}
	mq_buf_add(text, "", 1);
	if (!fits)
		text->len = start;
}

static void
put_message(struct mq_buf *text, const char *host, const struct message *m,
    const char *files)
{
	static const char *const params[][3] = {
	    {MQ_HEADER_PARAM "1", "MQ_PARAM1", "RQ_PARAM1"},
	    {MQ_HEADER_PARAM "2", "MQ_PARAM2", "RQ_PARAM2"},
	    {MQ_HEADER_PARAM "3", "MQ_PARAM3", "RQ_PARAM3"},
	    {MQ_HEADER_PARAM "4", "MQ_PARAM4", "RQ_PARAM4"}};
	const char *origin = mq_envelope_get(&m->envelope, MQ_HEADER_ORIGIN);
	/* A message to be relayed has a header with the URL of its queue. */
	const char *dest = mq_envelope_get(&m->envelope, MQ_HEADER_DEST);
	const char *there = dest != NULL ? strstr(dest, "/q/") : NULL;
	const char *name = there != NULL ? there + 3 : m->queue_name, *value;
	json_t *values;
	size_t i;

	put_string(text, "MQ_ID", m->id);
	put_long(text, "MQ_ATTEMPT", m->attempts + 1);
	put_string(text, "RQ_MSG_ID", m->id);
	if (files != NULL)
		put_string(text, "MQ_ATTACH_DIR", files);
	put_url(text, "RQ_FULL_MSG_ID=http://", host, m, m->id);
	if (origin != NULL)
		put_string(text, "RQ_ORIG_MSG_ID", origin);
	else
		put_url(text, "RQ_ORIG_MSG_ID=http://", host, m, m->id);
	if (dest != NULL)
		put_string(text, "RQ_DEST", dest);
	else
		put_url(text, "RQ_DEST=http://", host, m, "");
	put_bytes(text, "RQ_DEST_QUEUE", name,
	    there != NULL ? strcspn(name, "/") : strlen(name));
	put_long(text, "RQ_COUNT", m->attempts);
	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		value = mq_envelope_get(&m->envelope, params[i][0]);
		put_string(text, params[i][1], value != NULL ? value : "");
		put_string(text, params[i][2], value != NULL ? value : "");
	}
	json_object_foreach(m->envelope.headers, name, values)
		put_header(text, name, values);
	if (message_is_stamped(m))
		put_string(text, "MQ_HEADER_MQ_ID", m->id);
}

/* The environment of one run, valid until the next call.  real: path of the script, without links;
 * dir: its working directory, or NULL. */
static char *const *
make_environment(struct process *p, const struct run_info *run,
    const char *real, const char *dir)
{
	struct mq_buf *text = &p->variables;
	const struct message *m = run->message;
	int queue = m != NULL ? m->queue : 0;
	size_t n = p->inherited;
	const char *v;

	mq_buf_clear(text);
	put_string(text, "MQ_WRITE", "3");
	put_string(text, "MQ_READ", "4");
	put_string(text, "RQ_VER", "3.0.0");
	put_string(text, "RQ_SCRIPT", p->command.script);
	mq_buf_addstr(text, "RQ_HOST=http://");
	mq_buf_addstr(text, p->host);
	mq_buf_add(text, "/", sizeof("/"));
	put_string(text, "RQ_PORT", "80");
	put_string(text, "RQ_WRITE", "3");
	put_string(text, "RQ_PIPE", "3");
	put_string(text, "RQ_READ", "4");
	put_long(text, "MQ_ATTEMPTS", rules_of(p->opt, queue)->attempts);
	put_string(text, "RQ_REALSCRIPT", real);
	put_string(text, "RQ_MSG_DIR", dir != NULL ? dir : p->command.here);
	if (run->batch > 0)
		put_long(text, "MQ_BATCH", run->batch);
	/* A stream worker has the messages of all queues. */
	if (m != NULL || p->opt->queue_count == 1)
		put_string(text, "MQ_QUEUE", p->opt->queues[queue]);
	if (m != NULL && run->batch == 0)
		put_message(text, p->host, m, run->files);
	for (v = text->data; v < text->data + text->len; v += strlen(v) + 1) {
		if (n + 1 >= p->cap) {
			p->cap = 2 * p->cap + 64;
			p->environment = mq_xreallocarray(
			    p->environment, p->cap, sizeof(*p->environment));
		}
		p->environment[n++] = v;
	}
	p->environment[n] = NULL;
	return (char *const *)(uintptr_t)p->environment;
}

static void
inherit_environment(struct process *p)
{
	size_t n;

	for (n = 0; environ[n] != NULL; n++)
		;
	(void)gethostname(p->host, sizeof(p->host) - 1);
	p->cap = n + 2;
	p->environment = mq_xcalloc(p->cap, sizeof(*p->environment));
	for (n = 0; environ[n] != NULL; n++)
		if (!is_ours(environ[n]))
			p->environment[p->inherited++] = environ[n];
	if (getenv("RQ_ENV") == NULL)
		p->environment[p->inherited++] = "RQ_ENV=production";
}

/* --- --rq ----------------------------------------------------------------- */

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

/* The message, as RQ writes it, from the environment of its run. */
static void
format_message(char *const *environment, struct mq_buf *text)
{
	static const char *const members[][2] = {{"msg_id", "RQ_MSG_ID"},
	    {"dest", "RQ_DEST_QUEUE"}, {"orig_msg_id", "RQ_ORIG_MSG_ID"},
	    {"count", "RQ_COUNT"}, {"max_count", "MQ_ATTEMPTS"},
	    {"param1", "RQ_PARAM1"}, {"param2", "RQ_PARAM2"},
	    {"param3", "RQ_PARAM3"}, {"param4", "RQ_PARAM4"}};
	const char *due = variable(environment, "MQ_HEADER_MQ_DUE");
	const char *value = variable(environment, "RQ_MSG_ID");
	json_int_t at = 0;
	json_t *v;
	size_t i;

	/* Unix seconds at which the message was to run first. */
	if (due != NULL)
		at = strtoll(due, NULL, 10) / 1000;
	else if (value != NULL && mq_id_valid(value, strlen(value)))
		at = (json_int_t)(mq_id_time(value) / 1000000);
	v = json_pack("{s:s, s:s, s:s, s:I}", "src", "mq-tools", "status",
	    "run", "state", "run", "due", at > 0 ? at : (json_int_t)time(NULL));
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		value = variable(environment, members[i][1]);
		/* RQ leaves out empty members. */
		if (value != NULL && *value != '\0')
			json_object_set_new(v, members[i][0],
			    i == 3 || i == 4 ?
				json_integer(strtoll(value, NULL, 10)) :
				mq_json_text(value));
	}
	/* The member dest is a queue, but a URL if the message is to be relayed. */
	value = variable(environment, "MQ_HEADER_MQ_DEST");
	if (value != NULL)
		json_object_set_new(v, "dest", mq_json_text(value));
	mq_json_dump(v, text);
	json_decref(v);
}

static void
remove_name(const char *path)
{
	if (unlink(path) == -1)
		(void)rmdir(path);
}

/* Writes the files beside DIR/ID/job: "msg", and with attachments a link "attach" to them.
 * Returns 0, or -1 with errno. */
static int
fill_rq_dir(const char *job, char *const *environment)
{
	const char *files = variable(environment, "MQ_ATTACH_DIR");
	int n = (int)(strlen(job) - strlen("job")), rv = -1, fd;
	char *msg = mq_xasprintf("%.*smsg", n, job);
	char *attach = mq_xasprintf("%.*sattach", n, job);
	struct mq_buf text = {0};

	format_message(environment, &text);
	(void)unlink(msg);
	fd = open(msg, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd != -1 && write(fd, text.data, text.len) == (ssize_t)text.len)
		rv = 0;
	if (fd != -1 && close(fd) == -1)
		rv = -1;
	if (rv == 0) {
		remove_name(attach);
		if (files != NULL)
			rv = symlink(files, attach);
	}
	mq_buf_free(&text);
	free(msg);
	free(attach);
	return rv;
}

void
process_open_logs(struct process *p)
{
	const struct options *opt = p->opt;
	bool first = p->logs == NULL;
	struct mq_buf path = {0};
	struct stat st;
	const char *c;
	int i, fd;

	for (i = 0; opt->log_dir != NULL && i < opt->queue_count; i++) {
		/* The file is named for the queue, with %XX for '/', '%' and a leading dot. */
		mq_buf_clear(&path);
		mq_buf_printf(&path, "%s/", opt->log_dir);
		for (c = opt->queues[i]; *c != '\0'; c++)
			if (*c == '/' || *c == '%' ||
			    (*c == '.' && c == opt->queues[i]))
				mq_buf_printf(
				    &path, "%%%02X", (unsigned char)*c);
			else
				mq_buf_add(&path, c, 1);
		mq_buf_addstr(&path, ".log");
		fd = open(mq_buf_str(&path),
		    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC,
		    0640);
		/* A pipe without a reader would block us. */
		if (fd != -1 &&
		    (fstat(fd, &st) == -1 || S_ISFIFO(st.st_mode) ||
			fcntl(fd, F_SETFL, O_APPEND) == -1)) {
			close(fd);
			fd = -1;
			errno = ENOTSUP;
		}
		if (fd == -1 && first)
			mq_die(
			    MQ_EXIT_IO, "%s: %s", path.data, strerror(errno));
		if (fd == -1)
			mq_say("%s: %s; going on with the old file", path.data,
			    strerror(errno));
		else
			outputs_log(p, i, fd, path.data);
	}
	mq_buf_free(&path);
	if (opt->joblog != NULL)
		joblog_open(&p->joblog);
}

/* --- starting --------------------------------------------------------------- */

static void
close_if_open(int fd)
{
	if (fd != -1)
		close(fd);
}

/* Our reads do not block; the command's writes must.  Returns 0, or -1 with errno. */
static int
open_pipe(int *ours, int *theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ours = fds[0];
	*theirs = fds[1];
	return 0;
}

/* Returns 0, or -1 with errno. */
static int
start_worker(struct process *p, const struct run_info *info, struct run *run,
    struct mq_worker *w)
{
	const struct message *m = info->message;
	char real[PATH_MAX], other[PATH_MAX], *script = real, **filled = NULL;
	struct mq_buf text = {0};
	int ends[2];

	run->result = run_result_new(p->opt, m);
	run->output =
	    run_output_open(p, m != NULL ? m->queue : 0, run->result, ends);
	w->errors = ends[0];
	w->output = ends[1];
	/* A link to the script may be moved between two runs. */
	if (run->output == NULL || open_pipe(&run->verbs, &w->verbs) == -1 ||
	    (w->before != NULL &&
		open_pipe(&run->failure, &w->failure) == -1) ||
	    realpath(p->command.path, real) == NULL)
		return -1;
	if (p->command.script != p->command.path)
		script = realpath(p->command.script, other);
	if (script == NULL)
		return -1;
	w->envp = make_environment(p, info, script, w->dir);
	if (p->opt->rq && w->dir != NULL && fill_rq_dir(w->dir, w->envp) == -1)
		return -1;
	if (p->opt->replace != NULL && m != NULL) {
		filled = fill_arguments(w->argv, p->opt->replace,
		    m->envelope.payload, m->envelope.payload_len, &text);
		if (filled == NULL)
			return -1;
		w->argv = filled;
	}
	w->path = real;
	run->pid = mq_worker_start(p->setup, w);
	w->path = NULL; /* real ends with this function */
	free(filled);
	mq_buf_free(&text);
	if (run->pid == -1)
		return -1;
	run_output_label(run->output, info, run->pid);
	return 0;
}

/* Makes the directory of a message, unless an earlier attempt did.  *dir: its name, free(); with
 * --rq, that of the directory "job" in it.  Returns 0, or -1 with errno. */
static int
make_dir(const struct options *opt, const struct message *m, char **dir)
{
	if (opt->work_dir == NULL)
		return 0;
	*dir = mq_xasprintf("%s/%s", opt->work_dir, m->id);
	if (mkdir(*dir, 0700) == -1 && errno != EEXIST)
		return -1;
	if (!opt->rq)
		return 0;
	free(*dir);
	*dir = mq_xasprintf("%s/%s/job", opt->work_dir, m->id);
	return mkdir(*dir, 0700) == -1 && errno != EEXIST ? -1 : 0;
}

int
process_start(struct process *p, const struct run_info *info, int input,
    int answers, struct run *run, char **dir)
{
	struct mq_worker w = {.argv = p->opt->command,
	    .before = info->before,
	    .arg = info->before_arg,
	    .input = input,
	    .output = -1,
	    .errors = -1,
	    .verbs = -1,
	    .failure = -1,
	    .answers = answers};
	int error = 0;

	*run = (struct run){.verbs = -1, .failure = -1};
	*dir = NULL;
	if (input == -1 || answers == -1 ||
	    make_dir(p->opt, info->message, dir) == -1) {
		error = errno;
		close_if_open(input);
		return error;
	}
	w.dir = *dir;
	if (start_worker(p, info, run, &w) == -1)
		error = errno;
	close_if_open(w.input);
	close_if_open(w.verbs);
	close_if_open(w.failure);
	close_if_open(w.errors);
	if (w.output != w.errors)
		close_if_open(w.output);
	if (error != 0) {
		close_if_open(run->verbs);
		close_if_open(run->failure);
		if (run->output != NULL)
			(void)run_output_close(run->output, 0, "");
		run_result_free(run->result);
		run->result = NULL;
		run->pid = 0;
	}
	free(*dir);
	*dir = NULL;
	return error;
}

void
process_remove_dir(const struct process *p, const char *id)
{
	static const char *const names[] = {"job", "msg", "attach"};
	char *dir, *path;
	size_t i;

	if (p->opt->work_dir == NULL)
		return;
	dir = mq_xasprintf("%s/%s", p->opt->work_dir, id);
	for (i = 0; p->opt->rq && i < sizeof(names) / sizeof(names[0]); i++) {
		path = mq_xasprintf("%s/%s", dir, names[i]);
		remove_name(path);
		free(path);
	}
	(void)rmdir(dir);
	free(dir);
}

void
process_allow(struct process *p, int slots)
{
	/* A slot needs descriptors for input, verbs, both ends of answers, output, and
	 * temporary files. */
	rlim_t n = 8 * (rlim_t)slots + (rlim_t)p->opt->queue_count +
	    OUTPUTS_LINGERING_MAX + 128;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == -1 || files.rlim_cur >= n)
		return;
	files.rlim_cur = MIN(n, files.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

void
process_init(struct process *p)
{
	struct command *c = &p->command;
	char **argv = p->opt->command, *path;
	size_t last;

	p->joblog = (struct joblog){.path = p->opt->joblog, .fd = -1, .in = -1};
	process_allow(p, 1);
	outputs_init(p);
	if (argv == NULL)
		return;
	path = command_find(argv[0]);
	if (path == NULL)
		mq_die(MQ_EXIT_CONFIG, "%s: %s", argv[0],
		    strchr(argv[0], '/') != NULL ? strerror(errno) :
						   "command not found");
	c->here = getcwd(NULL, 0);
	if (c->here == NULL)
		mq_die(errno == ENOMEM ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
		    "current directory: %s", strerror(errno));
	c->script = c->path = absolute_path(c->here, path);
	free(path);
	c->line = command_line(argv, COMMAND_LINE_MAX);
	/* --rq: if the last argument is the path of a program, that is the script (bash -lc
	 * ./script).  The command runs elsewhere, so it gets the absolute path. */
	for (last = 0; argv[last + 1] != NULL; last++)
		;
	if (p->opt->rq && last > 0 && strchr(argv[last], '/') != NULL &&
	    access(argv[last], X_OK) == 0)
		c->script = argv[last] = absolute_path(c->here, argv[last]);
	inherit_environment(p);
	p->joblog.host = p->host;
	if (p->opt->joblog != NULL)
		p->joblog.command = command_line(argv, SIZE_MAX);
	process_open_logs(p);
}

void
process_end(struct process *p)
{
	joblog_close(&p->joblog);
	free(p->joblog.command);
	if (p->command.script != p->command.path)
		free(p->command.script);
	free(p->command.path);
	free(p->command.line);
	free(p->command.here);
	free(p->environment);
	mq_buf_free(&p->variables);
	outputs_end(p);
}
