/*
 * The floor common/process: child processes, and their descriptors.  Files here may
 * call common/base and nothing else of ours: no queue, no server, no message.
 * Nothing here prints or decides what becomes of a message.
 *
 * Starting a worker.
 */
#ifndef MQ_WORKER_H
#define MQ_WORKER_H

#include <sys/resource.h>
#include <sys/types.h>

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* The descriptors of the worker contract. */
#define MQ_WORKER_WRITE 3 /* the script writes its verbs here */
#define MQ_WORKER_READ	4 /* and reads the answers here */

/* The state of this process that workers do not inherit. */
struct mq_worker_setup {
	sigset_t reset; /* signals a worker gets back at their default */
	pid_t self;	/* the process that starts workers */
	bool limited;	/* a worker gets back this limit of descriptors */
	struct rlimit files;
	bool no_core; /* a worker gets back this limit of core dumps */
	struct rlimit core;
};

/*
 * Must be called first of all.  Makes sure that descriptors 0 to 4 are taken, so
 * that nothing opened later needs moving out of the way, and that no
 * inherited descriptor beyond them reaches a worker.  Unblocks all signals, ignores
 * SIGPIPE and SIGXFSZ, and does not ignore SIGCHLD.  Returns 0, or -1 with errno.
 */
int mq_worker_prepare(struct mq_worker_setup *);

/*
 * Raises the limit of descriptors of this process to n, as far as that is allowed.
 * Workers get the limit from before, and the limit of core dumps that was in force in
 * mq_worker_prepare().  Can be called again, for more.
 */
void mq_worker_limits(struct mq_worker_setup *, int n);

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
	/* To be called in the process, with its descriptors, before it becomes
	 * the command; may wait.  Returns -1, or the status with which the
	 * process ends instead.  NULL: nothing. */
	int (*before)(void *arg);
	void *arg;
	int failure; /* with `before`: where the errno of a command that cannot
		      * be executed then is written, as an int */
};

/*
 * Starts a worker: in a process group of its own, with default signals, fds
 * 0 to 4 and no other, and killed by the kernel when this process dies.
 * Returns its pid, or -1 with errno: the one of vfork(2), of execve(2), or of
 * chdir(2).  A script without "#!" is run by /bin/sh, as the shell does.
 */
pid_t mq_worker_start(const struct mq_worker_setup *, const struct mq_worker *);

/*
 * A descriptor from which n bytes can be read, and sought; close(2) it.
 * -1 with errno when there is no memory or no descriptor.
 */
int mq_worker_payload(const void *, size_t n);

#endif
