/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Processes of this host, by texts that others can read on it: BOOT:PIDNS:TIMENS, the kernel's
 * random boot_id and the numbers of the namespaces of processes and of time, and behind a colon
 * USER:SESSION:GROUP:PID:START, as /proc/PID/stat has them.  No other process has the text, on
 * any host, at any time.  Only Linux tells of all this. */
#ifndef MQ_PROC_H
#define MQ_PROC_H

#include <stdbool.h>

#include "names.h"

#define MQ_PROC_MAX 192

/* The text of this process; empty if /proc does not tell it. */
void mq_proc_self(char text[MQ_PROC_MAX]);

/* Whether the process of a text has ended.  False, too, if this process cannot know: the text is
 * of another boot, namespace or user (root knows of all users), or of none, or /proc does not
 * tell. */
bool mq_proc_ended(const char *text);

/* Drops names whose process, of the text in place of the queue, has ended, but has left a
 * process in the group of a worker; waits up to half a second for its end. */
void mq_proc_drop_unfinished(struct mq_names *);

#endif
