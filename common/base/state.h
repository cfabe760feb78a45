/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The folder of a user's state, ~/.local/state/mq: private servers, and messages for servers that
 * are away. */
#ifndef MQ_STATE_H
#define MQ_STATE_H

#include <sys/types.h>

/* $XDG_STATE_HOME/mq, or ~/.local/state/mq; the caller frees.  NULL: no home is known. */
char *mq_state_dir(void);

/* Makes a folder with this mode, and those above it with 0755: 0, also if it is there; or -1 with
 * errno.  Changes the text, but not for longer than the call. */
int mq_make_dirs(char *path, mode_t mode);

#endif
