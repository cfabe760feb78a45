#include "process.h"

#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/id.h"
#include "base/say.h"
#include "base/xalloc.h"

/* --- command ------------------------------------------------------------- */

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

char *
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
find_script(char **argv, char *path)
{
	size_t n;

	for (n = 0; argv[n + 1] != NULL; n++)
		;
	if (n == 0 || strchr(argv[n], '/') == NULL ||
	    access(argv[n], X_OK) == -1)
		return path;
	return argv[n] = absolute_path(argv[n]);
}

/* Ends the program if there is no such command. */
static void
command_init(struct command *c, const struct options *opt)
{
	char **argv = opt->command, *path = command_find(argv[0]);

	if (path == NULL)
		mq_die(MQ_EXIT_CONFIG, "%s: %s", argv[0],
		    strchr(argv[0], '/') != NULL ? strerror(errno) :
						   "command not found");
	c->path = absolute_path(path);
	c->line = command_line(argv, COMMAND_LINE_MAX);
	c->script = opt->rq ? find_script(argv, c->path) : c->path;
	free(path);
	c->here = getcwd(NULL, 0);
	if (c->here == NULL)
		mq_die(errno == ENOMEM ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG,
		    "current directory: %s", strerror(errno));
}

/* --- process ------------------------------------------------------------- */

/* Descriptors that do not depend on the options. */
#define OTHERS 128

/* --- logs ------------------------------------------------------------------- */

/* The log's path: the queue's name without '/' and leading dot. */
static char *
log_name(const char *dir, const char *queue)
{
	struct mq_buf name = {0};
	char *path;

	for (; *queue != '\0'; queue++)
		if (*queue == '/' || *queue == '%' ||
		    (*queue == '.' && name.len == 0))
			mq_buf_printf(&name, "%%%02X", (unsigned char)*queue);
		else
			mq_buf_add(&name, queue, 1);
	path = mq_xasprintf("%s/%s.log", dir, mq_buf_str(&name));
	mq_buf_free(&name);
	return path;
}

/* A pipe is refused: without a reader, it would block us. */
static int
open_log_file(const char *path)
{
	int fd = open(path,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0640);
	struct stat st;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode) &&
	    fcntl(fd, F_SETFL, O_APPEND) == 0)
		return fd;
	close(fd);
	errno = ENOTSUP;
	return -1;
}

void
process_open_logs(struct process *p)
{
	const struct options *opt = p->opt;
	bool first = p->outputs.logs == NULL;
	char *path;
	int i, fd;

	if (opt->log_dir == NULL)
		return;
	for (i = 0; i < opt->queue_count; i++) {
		path = log_name(opt->log_dir, opt->queues[i]);
		fd = open_log_file(path);
		if (fd == -1 && first)
			mq_die(MQ_EXIT_IO, "%s: %s", path, strerror(errno));
		if (fd == -1)
			mq_say("%s: %s; going on with the old file", path,
			    strerror(errno));
		if (fd != -1)
			outputs_log(&p->outputs, i, opt->queue_count, fd, path);
		free(path);
	}
}

/* Writes a line about a run into its log, if there are logs. */
static void
log_line(struct process *p, struct run *run, const char *text)
{
	char stamp[32], *line;
	time_t now = time(NULL);
	struct tm tm;

	if (p->opt->log_dir == NULL)
		return;
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z",
	    localtime_r(&now, &tm));
	line = mq_xasprintf(
	    "--- %s %s%s: %s\n", stamp, run->label, run->what, text);
	run_output_say(run->output, line);
	free(line);
}

/* Names a run, before anything of its output is read. */
static void
label_run(struct process *p, const struct run_info *info, struct run *run)
{
	if (p->opt->output == OUTPUT_LIVE && p->opt->log_dir == NULL)
		return;
	if (info->batch > 1)
		snprintf(run->label, sizeof(run->label), "%s+%d", info->first,
		    info->batch - 1);
	else if (info->first != NULL)
		strlcpy(run->label, info->first, sizeof(run->label));
	else
		snprintf(run->label, sizeof(run->label), "worker %ld",
		    (long)run->pid);
	if (info->batch > 0)
		snprintf(
		    run->what, sizeof(run->what), " batch of %d", info->batch);
	else if (info->id != NULL)
		snprintf(run->what, sizeof(run->what), " attempt %ld",
		    info->attempts + 1);
	run_output_label(run->output, run->label);
	log_line(p, run, p->command.line);
}

void
process_log_end(struct process *p, struct run *run, const char *how)
{
	(void)run_output_ended(run->output);
	log_line(p, run, how);
}

/* --- starting --------------------------------------------------------------- */

static void
close_if_open(int fd)
{
	if (fd != -1)
		close(fd);
}

/* 0, or -1 with errno. */
static int
open_pipe(int flags, int *ours, int *theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | flags) == -1)
		return -1;
	*ours = fds[0];
	*theirs = fds[1];
	return 0;
}

/* As mq_worker_start(), for -I with the payload among the arguments. */
static pid_t
start_filled(
    struct process *p, const struct mq_envelope *e, struct mq_worker *w)
{
	char **filled;
	pid_t pid;

	if (p->opt->replace == NULL)
		return mq_worker_start(p->setup, w);
	filled = arguments_fill(
	    w->argv, p->opt->replace, e->payload, e->payload_len);
	if (filled == NULL)
		return -1;
	w->argv = filled;
	pid = mq_worker_start(p->setup, w);
	w->argv = p->opt->command;
	free(filled);
	return pid;
}

/* 0, or -1 with errno. */
static int
start_worker(struct process *p, const struct run_info *info, struct run *run,
    struct mq_worker *w)
{
	char real[PATH_MAX], other[PATH_MAX], *script = real;
	int ends[2];

	run->output = run_output_open(&p->outputs, info->log, ends);
	w->errors = ends[0];
	w->output = ends[1];
	if (run->output == NULL || open_pipe(0, &run->verbs, &w->verbs) == -1)
		return -1;
	if (w->before != NULL &&
	    open_pipe(O_NONBLOCK, &run->failure, &w->failure) == -1)
		return -1;
	/* A link to the script may be moved between two runs. */
	if (realpath(p->command.path, real) == NULL)
		return -1;
	if (p->command.script != p->command.path)
		script = realpath(p->command.script, other);
	if (script == NULL)
		return -1;
	w->envp = environment_of(&p->environment, info, script,
	    w->dir != NULL ? w->dir : p->command.here);
	if (p->opt->rq && rq_fill_dir(w->dir, w->envp) == -1)
		return -1;
	w->path = real;
	run->pid = start_filled(p, info->envelope, w);
	w->path = NULL; /* real ends with this function */
	if (run->pid == -1)
		return -1;
	label_run(p, info, run);
	return 0;
}

static void
close_run(struct run *run)
{
	close_if_open(run->verbs);
	close_if_open(run->failure);
	if (run->output != NULL)
		(void)run_output_close(run->output);
}

/*
 * Makes the directory of a message, or keeps that of an earlier attempt.  Sets *dir
 * to its name, allocated; with --rq, to that of the directory "job" in it.  0, or -1 with
 * errno.
 */
static int
make_dir(const struct options *opt, const char *id, char **dir)
{
	if (opt->work_dir == NULL)
		return 0;
	*dir = mq_xasprintf("%s/%s", opt->work_dir, id);
	if (mkdir(*dir, 0700) == -1 && errno != EEXIST)
		return -1;
	if (!opt->rq)
		return 0;
	free(*dir);
	*dir = mq_xasprintf("%s/%s/job", opt->work_dir, id);
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
	if (input == -1)
		return errno;
	if (answers == -1 || make_dir(p->opt, info->id, dir) == -1) {
		error = errno;
		close(input);
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
		close_run(run);
		run->pid = 0;
	}
	free(*dir);
	*dir = NULL;
	return error;
}

bool
process_may_run(const struct process *p)
{
	return p->opt->output == OUTPUT_LIVE || !outputs_clogged(&p->outputs);
}

void
process_on_flow(struct process *p, void (*flows)(void *arg), void *arg)
{
	p->outputs.flows = flows;
	p->outputs.arg = arg;
}

void
process_remove_dir(const struct process *p, const char *id)
{
	char *dir;

	if (p->opt->work_dir == NULL)
		return;
	dir = mq_xasprintf("%s/%s", p->opt->work_dir, id);
	if (p->opt->rq)
		rq_empty_dir(dir);
	(void)rmdir(dir);
	free(dir);
}

void
process_show(struct process *p, const char *line)
{
	target_show(&p->outputs.errors, line);
}

const char *
process_script(const struct process *p)
{
	return p->command.path;
}

const char *
process_command(const struct process *p)
{
	return p->command.line;
}

const char *
process_host(const struct process *p)
{
	return p->environment.host;
}

void
process_allow(struct process *p, int slots)
{
	/* Each slot has its process, and pipes for input, verbs, answers with
	 * both ends, and output, with temporary files. */
	mq_worker_limits(p->setup,
	    9 * slots + p->opt->queue_count + OUTPUTS_LINGERING_MAX + OTHERS);
}

void
process_init(struct process *p, struct mq_worker_setup *setup,
    struct ev_loop *loop, const struct options *opt)
{
	p->opt = opt;
	p->setup = setup;
	process_allow(p, 1);
	outputs_init(&p->outputs, loop, opt->output);
	if (opt->command == NULL)
		return;
	command_init(&p->command, opt);
	environment_init(&p->environment, p->command.script);
	process_open_logs(p);
}

void
process_end(struct process *p)
{
	if (p->command.script != p->command.path)
		free(p->command.script);
	free(p->command.path);
	free(p->command.line);
	free(p->command.here);
	environment_end(&p->environment);
	outputs_end(&p->outputs);
}
