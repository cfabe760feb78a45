#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "redis/connection.h"

static void
end_by_signal(int sig)
{
	_exit(128 + sig);
}

/* The kernel gives the first process of a container only those signals that it
 * catches. */
static void
catch_as_first(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction old;
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			signal(ends[i], end_by_signal);
}

void
mq_option_begin(void)
{
	static const int stand_ins[] = {O_WRONLY, O_RDONLY, O_RDWR};
	int fd;

	mq_redis_memory();
	json_set_alloc_funcs(mq_xmalloc, free);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)open("/dev/null", stand_ins[fd]);
	/* Jansson itself would open /dev/urandom. */
	json_object_seed(arc4random());
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (getpid() == 1)
		catch_as_first();
}

static bool
is_open(int fd, int mode)
{
	int flags = fcntl(fd, F_GETFL);

	return (flags & O_ACCMODE) == mode || (flags & O_ACCMODE) == O_RDWR;
}

void
mq_option_reads(void)
{
	if (!is_open(STDIN_FILENO, O_RDONLY))
		mq_die(MQ_EXIT_IO,
		    "standard input: not open for reading; nothing was done");
}

void
mq_option_prints(bool results)
{
	int fd;

	if (is_open(STDOUT_FILENO, O_WRONLY))
		return;
	if (results)
		mq_die(MQ_EXIT_IO,
		    "standard output: not open for writing; nothing was done");
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd == -1 || dup2(fd, STDOUT_FILENO) == -1)
		mq_die(MQ_EXIT_AGAIN, "/dev/null: %s", strerror(errno));
	close(fd);
}

void
mq_option_print(const char *text)
{
	mq_option_prints(true);
	fputs(text, stdout);
	mq_close_stdout();
	exit(MQ_EXIT_OK);
}
