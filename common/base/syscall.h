/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* System calls of Linux that libraries before glibc 2.36 and musl do not wrap.  Their
 * numbers are the same on all machines. */
#ifndef MQ_SYSCALL_H
#define MQ_SYSCALL_H

#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

/* close_range(2), Linux 5.9, for all descriptors from this one on. */
static inline int
mq_close_from(int first, unsigned int flags)
{
	return (int)syscall(436, first, ~0U, flags);
}

#endif
