#include "interrupt.h"

#include <poll.h>
#include <signal.h>

#include "base/say.h"

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	/* The second one ends us in any case. */
	if (interrupted)
		mq_end_by(sig);
	interrupted = sig;
}

void
interrupt_catch(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int
interrupt_signal(void)
{
	return interrupted;
}

int
interrupt_wait(int fd, int64_t ms)
{
	const struct timespec timeout = {ms / 1000, ms % 1000 * 1000000};
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	sigset_t ours, before;
	int n;

	/* Blocked, so that none can come between the look and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	n = interrupted ? -1 :
			  ppoll(&pfd, 1, ms == -1 ? NULL : &timeout, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (n == -1 && interrupted)
		return -1;
	return n != 0;
}
