/*
 * The process of the private server.  The server outlives the cron job, the script
 * under limits or the shell that starts it, so it gets nothing of them but the lock.
 */
#include "private.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/syscall.h"
#include "base/xalloc.h"

#define LOCK_FD 3 /* in the server */
/* Room for the 10000 clients that Redis allows unless it is set up otherwise. */
#define FILES 10240
#define STACK ((rlim_t)8 * 1024 * 1024)

/*
 * The functions below run in the child of vfork(2), which shares our memory: only
 * system calls.  A change that is not permitted is left out.
 */

static void
set_limit(int resource, rlim_t wanted)
{
	struct rlimit now, new;

	if (getrlimit(resource, &now) == -1)
		return;
	new.rlim_cur = wanted;
	new.rlim_max = now.rlim_max > wanted ? now.rlim_max : wanted;
	if (setrlimit(resource, &new) == 0)
		return;
	new.rlim_cur = new.rlim_max = now.rlim_max;
	(void)setrlimit(resource, &new);
}

static void
set_limits(void)
{
	set_limit(RLIMIT_NOFILE, FILES);
	set_limit(RLIMIT_STACK, STACK);
	/* A core file would show the messages. */
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_CPU, RLIM_INFINITY);
	set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	set_limit(RLIMIT_DATA, RLIM_INFINITY);
	set_limit(RLIMIT_AS, RLIM_INFINITY);
	set_limit(RLIMIT_NPROC, RLIM_INFINITY);
}

static void
set_priorities(void)
{
	const struct sched_param none = {0};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	cpu_set_t all;
	ssize_t n;

	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all);
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	(void)setpriority(PRIO_PROCESS, 0, 0);
	/* IOPRIO_WHO_PROCESS, this one, IOPRIO_CLASS_NONE: no header has them before
	 * Linux 5.15. */
	(void)syscall(SYS_ioprio_set, 1, 0, 0);
	n = write(fd, "0", 1);
	(void)n;
	close(fd);
}

static void
set_signals(void)
{
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Descriptors 0 to 2 are open, as in all tools.  Standard error goes to the log, for
 * what the server writes before it has opened the log itself.  A descriptor that
 * leaked into the server, say the end of a pipe, would stay open for ever: hence the
 * last line.
 */
static int
set_files(int lock, const char *log)
{
	int null, errors;

	if (lock != LOCK_FD && dup2(lock, LOCK_FD) == -1)
		return -1;
	if (fcntl(LOCK_FD, F_SETFD, 0) == -1)
		return -1;
	null = open("/dev/null", O_RDWR);
	errors = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (null == -1 || errors == -1 || dup2(null, 0) == -1 ||
	    dup2(null, 1) == -1 || dup2(errors, 2) == -1)
		return -1;
	return mq_close_from(LOCK_FD + 1, 0);
}

/* Returns an errno value, if at all. */
static int
become_server(const char **argv, char *const *env, int lock, const char *log)
{
	static const char *const names[] = {"redis-server", "valkey-server"};
	struct rlimit files;
	size_t i;

	/* A session of its own at once: ^C at the starter is not for it. */
	(void)setsid();
	(void)umask(077);
	set_signals();
	set_limits();
	set_priorities();
	if (set_files(lock, log) == -1)
		return errno;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	    files.rlim_cur < PRIVATE_FILES_MIN)
		return EMFILE;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		argv[0] = names[i];
		execvpe(argv[0], (char *const *)argv, env);
		if (errno != ENOENT)
			break;
	}
	return errno;
}

/* In another locale, scripts would compare strings in another order. */
static char **
own_environment(void)
{
	static const char *const kept[] = {"PATH", "HOME", "TZ"};
	const size_t n = sizeof(kept) / sizeof(kept[0]);
	char **env = mq_xcalloc(n + 1, sizeof(*env)), **to = env;
	const char *value;
	size_t i;

	for (i = 0; i < n; i++)
		if ((value = getenv(kept[i])) != NULL)
			*to++ = mq_xasprintf("%s=%s", kept[i], value);
	return env;
}

int
private_exec(const char **argv, int lock, const char *log, pid_t *pid)
{
	char **env = own_environment(), **e;
	volatile int failure = 0;
	sigset_t all, old;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	*pid = vfork();
	if (*pid == 0) {
		failure = become_server(argv, env, lock, log);
		_exit(127);
	}
	if (*pid == -1)
		failure = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	for (e = env; *e != NULL; e++)
		free(*e);
	free(env);
	if (failure != 0 && *pid != -1)
		while (waitpid(*pid, NULL, 0) == -1 && errno == EINTR)
			;
	return failure;
}
