/* The floor common/process: child processes, and their descriptors; no queue, no server,
 * no message.  Includes what most users need. */
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
	struct mq_child_list list; /* that are watched */
	ev_signal signal;
};

/* Has the status of waitpid(2). */
typedef void mq_child_ended(void *arg, int status);

struct mq_child {
	LIST_ENTRY(mq_child) link;
	pid_t pid;
	mq_child_ended *ended;
	void *arg;
};

/* Takes SIGCHLD.  Children that nobody watches are reaped, too, as an init has them. */
void mq_children_init(struct mq_children *, struct ev_loop *);

/* Calls ended() when the child has, and has been reaped. */
void mq_child_watch(struct mq_children *, struct mq_child *, pid_t,
    mq_child_ended *ended, void *arg);

/* --- worker ------------------------------------------------------------- */

/* The descriptors of the worker contract. */
#define MQ_WORKER_WRITE 3 /* the script writes its verbs here */
#define MQ_WORKER_READ	4 /* and reads the answers here */

/* The state of this process that workers do not inherit. */
struct mq_worker_setup {
	sigset_t reset; /* signals a worker gets back at their default */
	pid_t self;	/* the process that starts workers */
	struct rlimit files, core; /* limits that a worker gets back */
};

/* Must be called first of all.  Makes sure that descriptors 0 to 4 are taken, so
 * that nothing opened later needs moving out of the way, and that no
 * inherited descriptor beyond them reaches a worker.  Unblocks all signals, ignores
 * SIGPIPE and SIGXFSZ, and does not ignore SIGCHLD.  Workers get the limits of
 * descriptors and core dumps that are in force now.  Returns 0, or -1 with errno. */
int mq_worker_prepare(struct mq_worker_setup *);

struct mq_worker {
	const char *path; /* what to execute */
	char *const *argv;
	char *const *envp;
	const char *dir; /* where to run; NULL: here */
	int input;	 /* becomes fd 0 */
	int output;	 /* becomes fd 1; -1: ours */
	int errors;	 /* becomes fd 2; -1: ours */
	int verbs;	 /* becomes fd 3 */
	int answers;	 /* becomes fd 4 */
	/* Called in the process, with its descriptors, before it becomes the command;
	 * may wait.  Returns -1, or the status with which the process ends instead.  NULL:
	 * nothing is. */
	int (*before)(void *arg);
	void *arg;
	int failure; /* with `before`: where the errno of a command that cannot
		      * be executed then is written, as an int */
};

/* Starts a worker: in a process group of its own, with default signals, fds
 * 0 to 4 and no other, and killed by the kernel when this process dies.
 * Returns its pid, or -1 with errno: the one of vfork(2), of execve(2), or of
 * chdir(2).  A script without "#!" is run by /bin/sh, as the shell does. */
pid_t mq_worker_start(const struct mq_worker_setup *, const struct mq_worker *);

/* A descriptor from which n bytes can be read, and sought; close(2) it.  -1 with errno
 * when there is no memory or no descriptor. */
int mq_worker_payload(const void *, size_t n);

/* --- helper ------------------------------------------------------------- */

/* Work that must wait is done the plain way in a forked child, so that an event loop is
 * never blocked and the code is the same as in programs that wait. */

/* In the child: fills in the result, which is zeroed before. */
typedef void mq_helper_work(void *arg, void *result);

/* Back in the parent; NULL: the child died without a result. */
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

/* Starts a child whose result has so many bytes, at most PIPE_BUF.  If one runs already,
 * nothing is done.  Returns 0, or -1 with errno. */
int mq_helper_start(struct mq_helper *, struct mq_children *, size_t size,
    mq_helper_work *work, mq_helper_done *done, void *arg);

/* Kills the child, if one runs: done() is not called. */
void mq_helper_kill(struct mq_helper *);

/* --- answers ------------------------------------------------------------ */

/* Answers to a worker, on its descriptor 4.  The worker may never read, or have closed it:
 * nothing here waits for that, and nothing grows without an end.  Starts with its loop, and
 * fd -1. */
struct mq_answers {
	struct ev_loop *loop;
	int fd;		      /* -1: nobody reads */
	int worker_fd;	      /* the worker's end; open as long as fd */
	bool used;	      /* there was an answer */
	struct mq_buf unread; /* what the pipe did not take */
	ev_io room; /* the pipe takes more; active while unread has some */
};

/* Makes the pipe for the next worker, or takes the one that was kept.  Returns the
 * worker's end, which stays ours; -1 with errno. */
int mq_answers_open(struct mq_answers *);

void mq_answers_close(struct mq_answers *);

/* The worker has left no process behind: keeps the pipe for the next one, if it is
 * as new.  Most workers ask for nothing, and this saves them a pipe. */
void mq_answers_keep(struct mq_answers *);

/* Sends a line; control characters become '?'. */
void mq_answers_say(struct mq_answers *, const char *text);

#endif
