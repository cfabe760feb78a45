/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The floor common/process: child processes and their descriptors; no queue, no server, no
 * message.  Most users need the includes, too. */
#ifndef MQ_PROCESS_H
#define MQ_PROCESS_H

#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "base/buf.h"
#include "base/xalloc.h"

/* --- children ----------------------------------------------------------- */

LIST_HEAD(mq_child_list, mq_child);

struct mq_children {
	struct mq_child_list list; /* watched ones */
	ev_signal signal;
};

/* Gets the status of waitpid(2). */
typedef void mq_child_ended(void *arg, int status);

struct mq_child {
	LIST_ENTRY(mq_child) link;
	pid_t pid;
	mq_child_ended *ended;
	void *arg;
};

/* Handles SIGCHLD.  Also reaps children that nobody watches, as process 1 of a container
 * must. */
void mq_children_init(struct mq_children *, struct ev_loop *);

/* Calls ended() after the child has ended and was reaped. */
void mq_child_watch(struct mq_children *, struct mq_child *, pid_t,
    mq_child_ended *ended, void *arg);

/* --- worker ------------------------------------------------------------- */

/* The descriptors of the worker contract. */
#define MQ_WORKER_WRITE 3 /* the script writes its verbs here */
#define MQ_WORKER_READ	4 /* the script reads answers here */

/* State before mq_worker_prepare() that workers get back. */
struct mq_worker_setup {
	sigset_t reset; /* signals to be at their default */
	pid_t self;	/* the process that starts workers */
	struct rlimit files, core;
};

/* Must be the first call of a program.  Occupies descriptors 0 to 4, so that no later one
 * is in a worker's way, and keeps inherited ones beyond them from workers.  Unblocks all
 * signals, ignores SIGPIPE and SIGXFSZ, and does not ignore SIGCHLD.  Returns 0, or -1
 * with errno. */
int mq_worker_prepare(struct mq_worker_setup *);

struct mq_worker {
	const char *path; /* the command's file */
	char *const *argv;
	char *const *envp;
	const char *dir; /* working directory; NULL: ours */
	int input;	 /* becomes fd 0 */
	int output;	 /* becomes fd 1; -1: ours */
	int errors;	 /* becomes fd 2; -1: ours */
	int verbs;	 /* becomes fd 3 */
	int answers;	 /* becomes fd 4 */
	/* NULL, or called in the process, with its descriptors, before it becomes the
	 * command; may wait.  Returns -1, or the status with which the process ends. */
	int (*before)(void *arg);
	void *arg;
	int failure; /* with `before`: gets the errno of execve(2) as an int */
};

/* Starts a worker in a process group of its own, with default signals and only the fds 0 to
 * 4; the kernel kills it when this process dies.  Returns its pid, or -1 with the errno of
 * vfork(2), execve(2) or chdir(2).  A script without "#!" is run by /bin/sh. */
pid_t mq_worker_start(const struct mq_worker_setup *, const struct mq_worker *);

/* A seekable descriptor with n bytes, for the caller to close; -1 with errno when there is
 * no memory or no descriptor. */
int mq_worker_payload(const void *, size_t n);

/* --- helper ------------------------------------------------------------- */

/* A helper is a forked child for work that waits: the event loop is not blocked, and the
 * code is that of programs that wait. */

/* Called in the child: fills in the result, which is zeroed before. */
typedef void mq_helper_work(void *arg, void *result);

/* Called in the parent; result NULL: the child died without one. */
typedef void mq_helper_done(void *arg, const void *result);

/* Starts zeroed. */
struct mq_helper {
	pid_t pid; /* 0: none runs */
	int fd;
	size_t size;
	mq_helper_done *done;
	void *arg;
	struct mq_child child;
};

/* Starts a child whose result has `size` bytes, at most PIPE_BUF, unless one runs already.
 * Returns 0, or -1 with errno. */
int mq_helper_start(struct mq_helper *, struct mq_children *, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg);

/* Kills the child, if one runs: done() is not called. */
void mq_helper_kill(struct mq_helper *);

/* --- answers ------------------------------------------------------------ */

/* Answers to a worker, on its descriptor 4, which the worker may never read, or have closed:
 * nothing waits for it, and memory is bounded.  Starts with its loop, and fd -1. */
struct mq_answers {
	struct ev_loop *loop;
	int fd;		      /* -1: closed */
	int worker_fd;	      /* the worker's end; open as long as fd */
	bool used;	      /* an answer was written */
	struct mq_buf unread; /* answers that the pipe did not take */
	ev_io room;	      /* active while there are unread answers */
};

/* Makes the pipe for the next worker, unless one was kept.  Returns the worker's end, which
 * stays ours; -1 with errno. */
int mq_answers_open(struct mq_answers *);

void mq_answers_close(struct mq_answers *);

/* After a worker that has left no process behind: keeps an unused pipe for the next worker,
 * since most ask for nothing. */
void mq_answers_keep(struct mq_answers *);

/* Sends a line; control characters become '?'. */
void mq_answers_say(struct mq_answers *, const char *text);

#endif
