/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "service.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

/* Microseconds; a shorter watchdog would keep the loop busy. */
#define WATCHDOG_MIN_US 10000

void
service_init(struct service *s)
{
	const char *name = getenv("NOTIFY_SOCKET");
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID"), *error;
	size_t n = name != NULL ? strlen(name) : 0;
	long long us = 0;

	*s = (struct service){.fd = -1};
	errno = EINVAL;
	/* sd_notify(3): a path, or an abstract name behind "@". */
	if (n >= 2 && (name[0] == '/' || name[0] == '@') &&
	    n < sizeof(s->address.sun_path)) {
		s->address.sun_family = AF_UNIX;
		memcpy(s->address.sun_path, name, n);
		/* An abstract name begins with a NUL, and ends without one. */
		if (name[0] == '@')
			s->address.sun_path[0] = '\0';
		s->address_len =
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
		s->fd = socket(
		    AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (s->fd == -1 && name != NULL)
		mq_say("NOTIFY_SOCKET: %s: %s; the service manager is not "
		       "notified",
		    name, strerror(errno));
	/* The watchdog may be meant for another process, by its pid. */
	if (usec != NULL &&
	    (pid == NULL || strtonum(pid, 1, INT_MAX, &error) == getpid()))
		us = strtonum(usec, 1, LLONG_MAX, &error);
	if (s->fd != -1 && us > 0)
		s->watchdog_s =
		    (double)(us > WATCHDOG_MIN_US ? us : WATCHDOG_MIN_US) / 1e6;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* Returns whether the text was sent: if the manager is busy, the caller tries again. */
static bool
send_text(struct service *s, const char *text)
{
	bool sent =
	    sendto(s->fd, text, strlen(text), MSG_NOSIGNAL,
		(const struct sockaddr *)&s->address, s->address_len) != -1;

	if (!sent && errno != EAGAIN && !s->failing)
		mq_say("NOTIFY_SOCKET: %s; the service manager is not notified",
		    strerror(errno));
	s->failing = !sent;
	return sent;
}

static void
on_watchdog(void *service)
{
	(void)send_text(service, "WATCHDOG=1");
}

void
service_start(struct service *s, struct ev_loop *loop)
{
	if (s->watchdog_s == 0)
		return;
	mq_timer_init(&s->watchdog, loop, on_watchdog, s);
	mq_timer_start(&s->watchdog, 0, s->watchdog_s / 2);
}

void
service_report(struct service *s, bool up, int running, struct mq_counts n)
{
	char status[sizeof(s->status)] = "not connected", text[256];
	bool ready = up && !s->ready;

	if (s->fd == -1)
		return;
	if (up)
		snprintf(status, sizeof(status),
		    "%d running, %lld done, %lld rejected, %lld to be tried "
		    "again",
		    running, n.done, n.failed, n.retried);
	snprintf(text, sizeof(text), "%sSTATUS=%s", ready ? "READY=1\n" : "",
	    status);
	if ((!ready && strcmp(status, s->status) == 0) || !send_text(s, text))
		return;
	s->ready |= ready;
	strlcpy(s->status, status, sizeof(s->status));
}

void
service_stop(struct service *s)
{
	if (s->fd != -1 && !s->stopping)
		s->stopping = send_text(s, "STOPPING=1");
}
