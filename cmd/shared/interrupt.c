#include "interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "base/say.h"

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	if (interrupted)
		mq_end_by(sig);
	interrupted = sig;
}

void
interrupt_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int
interrupt_signal(void)
{
	return interrupted;
}

void
interrupt_sleep(double seconds)
{
	struct timespec ts = {.tv_sec = (time_t)seconds};
	sigset_t ours, before;

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	/* Blocked, so that none can come between the look and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	if (!interrupted)
		ppoll(NULL, 0, &ts, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
