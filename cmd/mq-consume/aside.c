/*
 * Work that takes several rounds with the server, or must wait for it, is
 * done the plain way in a forked child, so that the loop is never blocked and
 * the code is the same as in the tools that wait.  The child tells its result
 * through a pipe and exits.
 */
#include <sys/prctl.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "consume.h"
#include "redis/connection.h"

/* Between two rounds of cleaning. */
#define CLEAN_S 60.0
/* Between two looks whether others are done as well; a bit less than a tick. */
#define DRAIN_S 0.9

static void
on_exit_of_child(struct child *child)
{
	struct aside *a = child->owner;
	struct aside_result result = {.status = -1};
	ssize_t n;

	do {
		n = read(a->fd, &result, sizeof(result));
	} while (n == -1 && errno == EINTR);
	close(a->fd);
	a->pid = 0;
	if (n != (ssize_t)sizeof(result))
		result = (struct aside_result){.status = -1};
	a->done(a, &result);
}

static void
be_a_child(struct consumer *c)
{
	const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
	size_t i;
	sigset_t none;

	/* The handlers would write into the loop that we share. */
	for (i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		signal(caught[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ctrl-C is for the parent, which then tells us. */
	setpgid(0, 0);
	(void)c;
}

void
aside_start(
    struct consumer *c, struct aside *a, aside_work *work, aside_done *done)
{
	struct aside_result result = {0};
	sigset_t all, old;
	int fds[2];
	pid_t pid;

	if (a->pid != 0 || pipe2(fds, O_CLOEXEC) == -1)
		return;
	a->c = c;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		be_a_child(c);
		work(a, &result);
		_exit(write(fds[1], &result, sizeof(result)) == -1);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fds[1]);
	if (pid == -1) {
		close(fds[0]);
		return;
	}
	a->pid = pid;
	a->fd = fds[0];
	a->done = done;
	child_watch(c, &a->child, pid, on_exit_of_child, a);
	child_lasts(c, &a->child);
}

static void
fail(struct aside_result *result, const struct mq_redis *r)
{
	result->status = r->status;
	snprintf(result->error, sizeof(result->error), "%s", r->error);
}

static void
do_clean(struct aside *a, struct aside_result *result)
{
	struct consumer *c = a->c;
	const struct mq_clean how = {.limit = MQ_ATTEMPTS,
	    .scan_from = c->scan_from,
	    .self = c->connection};
	struct mq_redis r;

	if (mq_redis_open(&r, &c->server) == -1 ||
	    c->layout->clean(&r, &how, &result->cleaned) == -1)
		fail(result, &r);
	mq_redis_close(&r);
}

static void
do_drained(struct aside *a, struct aside_result *result)
{
	struct consumer *c = a->c;
	struct mq_redis r;

	if (mq_redis_open(&r, &c->server) == -1 ||
	    c->layout->drained(&r, c->opt->queues, c->opt->queue_count,
		&result->drained) == -1)
		fail(result, &r);
	mq_redis_close(&r);
}

static void
complain(struct consumer *c, const struct aside_result *result)
{
	if (result->status != 0 && result->error[0] != '\0' && !c->opt->quiet)
		mq_say("%s", result->error);
}

static void
cleaned(struct aside *a, const struct aside_result *result)
{
	struct consumer *c = a->c;
	const struct mq_cleaned *n = &result->cleaned;
	double wait = CLEAN_S;

	/* A round that failed says so only to those who want to know: the
	 * link has its own troubles then, and there is a next round. */
	if (c->opt->verbose)
		complain(c, result);
	if (result->status == 0 && n->next_ms >= 0 &&
	    (double)n->next_ms / 1000 + 0.1 < wait)
		wait = (double)n->next_ms / 1000 + 0.1;
	c->next_clean = mq_clock_steady_s() + wait;
	c->scan_from = n->scan_at;
	if (result->status != 0 || n->connections == 0 || c->opt->quiet)
		return;
	if (c->opt->verbose || n->returned > 0 || n->rejected > 0)
		mq_say("%ld dead %s cleaned up: %ld message%s returned, %ld "
		       "rejected",
		    n->connections,
		    n->connections == 1 ? "connection" : "connections",
		    n->returned, n->returned == 1 ? "" : "s", n->rejected);
}

static void
drained(struct aside *a, const struct aside_result *result)
{
	struct consumer *c = a->c;
	complain(c, result);
	if (result->status != 0 || !result->drained ||
	    !TAILQ_EMPTY(&c->messages)) {
		/* Somebody else has some; the tick asks again. */
		c->next_drained = mq_clock_steady_s() + DRAIN_S;
		return;
	}
	policy_stop(&c->policy, STOP_SOON, MQ_EXIT_OK, 0);
}

void
aside_clean(struct consumer *c)
{
	aside_start(c, &c->cleaner, do_clean, cleaned);
}

bool
aside_cleaned(struct consumer *c)
{
	if (c->opt->clean && c->next_clean == 0)
		aside_clean(c);
	return c->cleaner.pid == 0;
}

void
aside_drained(struct consumer *c)
{
	aside_start(c, &c->drainer, do_drained, drained);
}

void
aside_kill(struct aside *a)
{
	if (a->pid == 0)
		return;
	child_forget(a->c, &a->child);
	kill(a->pid, SIGKILL);
	close(a->fd);
	a->pid = 0;
}

void
aside_end(struct consumer *c)
{
	struct aside *all[] = {&c->finder, &c->cleaner, &c->drainer};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		aside_kill(all[i]);
}
