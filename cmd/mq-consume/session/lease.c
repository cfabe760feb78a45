/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "parts.h"

#define LEASE_USE     0.75
#define REPLY_TIMEOUT 20.0
/* On a cluster: leaves enough time to take another name. */
#define NODE_TIMEOUT 15.0
/* Renewals come every RENEW_S seconds, or RENEWALS times in a short lease; and without messages,
 * less often. */
#define RENEW_S	      4.0
#define RENEWALS      6
#define RENEW_IDLE_S  15.0
#define RENEWALS_IDLE 4
/* Names tried, at most. */
#define NAMES 1000

static void
make_name(char name[NAME_SIZE], const char *tag, struct mq_idgen *ids)
{
	char random[7];

	mq_id_random(ids, random, sizeof(random) - 1);
	snprintf(name, NAME_SIZE, "%s-%s", tag, random);
}

static void
leave_name(struct lease *l, const char *name)
{
	strlcpy(l->former, name, sizeof(l->former));
	l->server->session.former = l->former;
	l->server->session.former_s = l->sent;
	l->server->session.listed = false;
	l->joined = false;
}

void
lease_new_name(struct lease *l, const char *tag, struct mq_idgen *ids)
{
	if (l->connection[0] != '\0')
		leave_name(l, l->connection);
	l->old_name[0] = '\0';
	make_name(l->connection, tag, ids);
	make_name(l->name, tag, ids);
}

bool
lease_rename(struct lease *l, const char *tag, struct mq_idgen *ids)
{
	char from[NAME_SIZE];
	int left = NAMES;

	strlcpy(from, l->connection, sizeof(from));
	do
		make_name(l->connection, tag, ids);
	while (mq_consumer_away(l->server, MQ_NEW_NAME) != NULL && --left > 0);
	if (left == 0) {
		strlcpy(l->connection, from, sizeof(l->connection));
		return false;
	}
	if (l->joined)
		strlcpy(l->old_name, from, sizeof(l->old_name));
	leave_name(l, from);
	return true;
}

void
lease_begin_join(struct lease *l)
{
	l->asked = mq_clock_steady_s();
	if (l->old_name[0] == '\0')
		l->sent = l->asked;
}

static double
random_part(void)
{
	return (double)arc4random() / UINT32_MAX;
}

void
lease_joined(struct lease *l)
{
	l->joined = true;
	l->old_name[0] = '\0';
	l->sent = l->asked;
	l->early = 0.5 + random_part();
	/* Idle consumers started together renew at different times. */
	l->spread = RENEW_IDLE_S * random_part();
}

double
lease_lapsed_s(const struct lease *l)
{
	double use = LEASE_USE * (double)l->ms / 1000;
	bool holds = l->joined || l->old_name[0] != '\0';

	return holds && mq_clock_steady_s() - l->sent >= use ? use : 0;
}

static void
on_renewed(void *arg, const struct mq_answer *answer)
{
	struct lease *l = arg;
	double sent = l->renewal_sent;

	l->renewal_sent = 0;
	/* The answer may be about the former name. */
	if (answer == NULL || !l->joined)
		return;
	if (answer->error != NULL) {
		tell(l, FACT_COMPLAINT, .text = mq_xstrdup(answer->error));
	} else if (answer->n == 0) {
		tell(l, FACT_LEASE_GONE);
	} else {
		l->ms = answer->n;
		l->sent = sent;
		l->spread = 0;
		l->early = 0.5 + random_part();
	}
}

bool
lease_keep(struct lease *l, bool idle)
{
	double now = mq_clock_steady_s();
	bool cluster = mq_redis_command(l->server->redis).cluster;
	double most = cluster ? NODE_TIMEOUT : REPLY_TIMEOUT;
	double part = (double)l->ms / 1000 / (idle ? RENEWALS_IDLE : RENEWALS);
	double every = idle ? RENEW_IDLE_S : RENEW_S;
	double early = l->early + (idle ? l->spread : 0);

	/* The answer may be behind a large message: bytes are a sign of life. */
	if (mq_consumer_is_heard(l->server))
		l->heard_at = now;
	if (l->renewal_sent > 0)
		return now - l->renewal_sent <= most ||
		    now - l->heard_at <= most;
	if (now < l->sent + (part < every ? part : every) - early)
		return true;
	l->renewal_sent = now;
	mq_consumer_renew(l->server, on_renewed, l);
	return true;
}
