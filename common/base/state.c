/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "state.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xalloc.h"

/* By the XDG rules, a relative value is ignored. */
char *
mq_state_dir(void)
{
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
	struct passwd *pw;

	if (state != NULL && *state == '/')
		return mq_xasprintf("%s/mq", state);
	if (home == NULL || *home == '\0') {
		pw = getpwuid(geteuid());
		home = pw != NULL ? pw->pw_dir : NULL;
	}
	return home != NULL && *home == '/' ?
	    mq_xasprintf("%s/.local/state/mq", home) :
	    NULL;
}

/* Makes one folder, and has its name in the one above it on disk. */
static int
make_dir(char *path, mode_t mode)
{
	char *slash = strrchr(path, '/');
	int fd;

	if (mkdir(path, mode) == -1)
		return errno == EEXIST ? 0 : -1;
	if (slash == NULL || slash == path)
		return 0;
	*slash = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*slash = '/';
	if (fd != -1) {
		(void)fsync(fd);
		close(fd);
	}
	return 0;
}

int
mq_make_dirs(char *path, mode_t mode)
{
	char *slash;
	int rv = make_dir(path, mode);

	slash = strrchr(path, '/');
	if (rv == 0 || errno != ENOENT || slash == NULL || slash == path)
		return rv;
	*slash = '\0';
	rv = mq_make_dirs(path, 0755);
	*slash = '/';
	return rv == 0 ? make_dir(path, mode) : -1;
}
