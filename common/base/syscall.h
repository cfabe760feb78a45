/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Linux where a libc may lack it: system calls that glibc before 2.36 or musl does not wrap, or
 * refuses, and constants from the headers of the kernel. */
#ifndef MQ_SYSCALL_H
#define MQ_SYSCALL_H

#include <sys/param.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <sched.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

/* The driver of /dev/null and /dev/full, of linux/major.h. */
#define MQ_MEM_MAJOR 1

/* close_range(2), Linux 5.9, for all descriptors from this one on. */
static inline int
mq_close_from(int first, unsigned int flags)
{
	/* The number is the same on all machines. */
	return (int)syscall(436, first, ~0U, flags);
}

/* Bytes of arguments and environment that execve(2) takes, as the kernel counts: sysconf(3) of
 * musl knows the least only. */
static inline size_t
mq_arg_max(void)
{
	const rlim_t least = 131072, most = 6 * 1024 * 1024;
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) == -1)
		return least;
	return MAX(least, MIN(stack.rlim_cur / 4, most));
}

/* Gives this process the scheduling of processors and disks that a login has.  The policy of
 * processors needs the bare call, as musl refuses sched_setscheduler(2).  1, 0 and 0 are
 * IOPRIO_WHO_PROCESS, this process and IOPRIO_CLASS_NONE of linux/ioprio.h, Linux 5.15. */
static inline void
mq_schedule_usual(void)
{
	const struct sched_param none = {0};

	(void)syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
	(void)syscall(SYS_ioprio_set, 1, 0, 0);
}

#endif
