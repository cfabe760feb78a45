#include "parts.h"

#include <time.h>

#include "base/clock.h"
#include "base/exit.h"

#define FAILOVER_S 30
#define PAUSE_MS   100

void
mq_failover_begin(struct mq_failover *f, const struct mq_server *server)
{
	int s = server->failover_s;

	if (f->until == 0)
		f->until = mq_clock_steady_s() + (s != 0 ? s : FAILOVER_S);
}

void
mq_failover_pause(const struct mq_redis *r)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

	if (r->wait != NULL)
		(void)r->wait(r->wait_arg, -1, PAUSE_MS);
	else
		nanosleep(&pause, NULL);
}

bool
mq_failover_again(struct mq_failover *f, struct mq_redis *r)
{
	f->failed = true;
	if (mq_clock_steady_s() < f->until) {
		mq_failover_pause(r);
		return true;
	}
	r->status = f->due ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE;
	return false;
}
