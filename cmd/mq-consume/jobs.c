/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "jobs.h"

#include <process/process.h> /* not that of this folder */

#include "find.h"
#include "shared/options.h"

enum job_kind {
	JOB_CLEAN,
	JOB_KILLED,
	JOB_DRAIN,
	JOB_SURVEY,
	JOB_TRANSFER,
	JOBS
};

struct job {
	struct mq_helper helper;
	struct jobs *all;
	enum job_kind kind;
	double next;	      /* steady time of the next start; 0: at once */
	double failing_since; /* steady time; 0: the last run did well */
};

/* One consumer of a server cleans, about once a minute: all compete for a key of the server.
 * Without the right to that key, or while the node of the key is away, a consumer competes for
 * a key of each of its queues. */
struct cleaning {
	bool by_queue;		      /* competes for the keys of queues, */
	bool away;		      /* only since the node is away */
	bool ours;		      /* some key is ours */
	bool started;		      /* the first competition is over */
	bool looks;		      /* looks again for killed consumers */
	int answers;		      /* missing answers about the keys */
	long long wait_ms;	      /* until the first key may be free */
	unsigned long long scan_from; /* where the next round goes on */
	/* Queues with keep-rejected, of which each consumer drops messages: the user of the one
	 * that cleans may have no right to them. */
	struct mq_names trimmed;
};

/* Another consumer that has messages. */
struct holder {
	char name[128]; /* empty: no such consumer */
	char host[80];	/* empty: unknown */
	int64_t ttl_ms; /* until the lease ends; not above 0: lease over */
	long long unacked;
};

/* --drain waits for the messages of a consumer that no longer renews its lease, and so names
 * that consumer. */
struct survey {
	int waited;	    /* ticks in a row with nothing to do but wait */
	bool waits;	    /* the survey under way looks for a holder, too */
	struct holder last; /* the first lease to end, in the last survey */
	struct holder said;
};

struct jobs {
	const struct options *opt;
	struct facts *facts;
	struct mq_consumer *consumer;
	struct mq_server *server;
	struct mq_children *children;
	struct job jobs[JOBS];
	struct cleaning cleaning;
	struct survey survey;
	bool transfers; /* messages wait for a transfer */
	bool placed;	/* some job has had a connection */
	bool crowded;	/* the server has no connection left for jobs; said */
	bool given_up;	/* crowded for too long */
};

struct job_result {
	bool failed;
	char error[512]; /* failed: why; empty: the helper died */
	struct mq_cleaned cleaned;
	bool drained;
	long long ready;
	struct holder holder;
};

static void begin_job(struct jobs *, enum job_kind);

static bool
is_under_way(const struct jobs *all, enum job_kind kind)
{
	return all->jobs[kind].helper.pid != 0;
}

/* --- cleaning ------------------------------------------------------------ */

/* Seconds between two rounds; the consumer that has cleaned may be GRACE_S late. */
#define CLEAN_S 60.0
#define GRACE_S 5.0
/* Consumers compete at different times, within this many ms. */
#define JITTER_MS 3000
/* Seconds until a killed consumer of this host may have no worker left. */
#define UNFINISHED_S 2.0

static int
run_cleaning(const struct jobs *all, struct mq_redis *r, struct job_result *out)
{
	const struct cleaning *cl = &all->cleaning;
	const struct mq_clean how = {.limit = MQ_ATTEMPTS,
	    .scan_from = cl->scan_from,
	    .self = all->consumer->session.connection,
	    .own_queues = cl->by_queue,
	    .trimmed = &cl->trimmed,
	    .only_trims = !cl->ours};
	const struct options *opt = all->opt;
	int rv = opt->layout->clean(r, &how, &out->cleaned);

	/* If the user may not use the key of the server, only our queues are noted. */
	if (rv == 0 && cl->ours)
		mq_past_note(r, opt->layout, opt->queues,
		    cl->by_queue ? opt->queue_count : 0);
	return rv;
}

/* A consumer that starts may come back for one that was killed on this host, so it looks for that,
 * whichever consumer cleans. */
static int
run_look_for_killed(
    const struct jobs *all, struct mq_redis *r, struct job_result *out)
{
	const struct mq_clean how = {.limit = MQ_ATTEMPTS,
	    .self = all->consumer->session.connection,
	    .killed = true};

	return all->opt->layout->clean(r, &how, &out->cleaned);
}

/* Competes for the keys, for some seconds and GRACE_S. */
static void
compete(struct jobs *all, double seconds, mq_answer_fn *fn)
{
	struct cleaning *cl = &all->cleaning;
	int64_t ms = (int64_t)((seconds + GRACE_S) * 1000);
	int queue = cl->by_queue ? 0 : -1;
	int end = cl->by_queue ? all->opt->queue_count : 0;

	cl->answers = end - queue;
	for (; queue < end; queue++)
		mq_consumer_compete(all->consumer, queue, ms, fn, all);
}

static void
on_kept(void *arg, const struct mq_answer *answer)
{
	struct jobs *all = arg;

	/* If the round took long, another consumer may have the key by now. */
	all->cleaning.ours = mq_answer_good(answer) && answer->n == 0;
	all->cleaning.answers--;
}

static double
until_competition_s(const struct cleaning *cl)
{
	return ((double)cl->wait_ms + arc4random_uniform(JITTER_MS)) / 1000;
}

static void
note_cleaned(struct jobs *all, const struct job_result *round)
{
	const struct mq_cleaned *n = &round->cleaned;
	const struct options *opt = all->opt;

	all->cleaning.looks = n->unfinished;
	all->jobs[JOB_KILLED].next = mq_clock_steady_s() + UNFINISHED_S;
	if (!opt->quiet && !round->failed && n->connections > 0 &&
	    (opt->verbose || n->returned > 0 || n->rejected > 0))
		mq_say("%ld dead %s cleaned up: %ld message%s returned, %ld "
		       "rejected",
		    n->connections,
		    n->connections == 1 ? "connection" : "connections",
		    n->returned, n->returned == 1 ? "" : "s", n->rejected);
}

static void
on_looked_for_killed(struct jobs *all, const struct job_result *round)
{
	note_cleaned(all, round);
	/* The dead one may have been in charge. */
	if (round->cleaned.connections > 0)
		jobs_clean_soon(all);
}

static void
on_cleaned(struct jobs *all, const struct job_result *round)
{
	const struct mq_cleaned *n = &round->cleaned;
	struct cleaning *cl = &all->cleaning;
	double wait = CLEAN_S;

	if (!cl->ours) {
		all->jobs[JOB_CLEAN].next =
		    mq_clock_steady_s() + until_competition_s(cl);
		return;
	}
	if (!round->failed && n->next_ms >= 0 &&
	    (double)n->next_ms / 1000 + 0.1 < wait)
		wait = (double)n->next_ms / 1000 + 0.1;
	compete(all, wait, on_kept);
	all->jobs[JOB_CLEAN].next = mq_clock_steady_s() + wait;
	cl->scan_from = n->scan_at;
	note_cleaned(all, round);
}

static void
find_trimmed(struct jobs *all)
{
	int i;

	mq_names_free(&all->cleaning.trimmed);
	for (i = 0; i < all->opt->queue_count; i++)
		if (rules_of(all->opt, i)->trims)
			mq_names_add(
			    &all->cleaning.trimmed, all->opt->queues[i], NULL);
}

static void
on_competed(void *arg, const struct mq_answer *answer)
{
	struct jobs *all = arg;
	struct cleaning *cl = &all->cleaning;
	bool away = answer != NULL && answer->missing;
	bool refused = answer != NULL && answer->error != NULL &&
	    mq_error_barred(answer->status, answer->error);

	cl->answers--;
	if ((refused || away) && !cl->by_queue) {
		cl->by_queue = true;
		cl->away = away;
		compete(all, CLEAN_S, on_competed);
		return;
	}
	if (answer != NULL && answer->n == 0)
		cl->ours = true;
	else if (answer != NULL && answer->n < cl->wait_ms)
		cl->wait_ms = answer->n;
	if (cl->answers > 0 || answer == NULL)
		return;
	find_trimmed(all);
	if (cl->ours || cl->trimmed.n > 0)
		begin_job(all, JOB_CLEAN);
	else
		all->jobs[JOB_CLEAN].next =
		    mq_clock_steady_s() + until_competition_s(cl);
	/* The layout rsmq gives the messages of a dead consumer back without a cleaner. */
	if (!cl->ours && !cl->started && all->opt->layout->has & MQ_HAS_NODES)
		begin_job(all, JOB_KILLED);
	cl->started = true;
}

static void
begin_competition(struct jobs *all)
{
	struct cleaning *cl = &all->cleaning;

	if (cl->answers > 0 || is_under_way(all, JOB_CLEAN))
		return;
	cl->ours = false;
	if (cl->away)
		cl->by_queue = cl->away = false;
	cl->wait_ms = (long long)(CLEAN_S * 1000);
	compete(all, CLEAN_S, on_competed);
}

bool
jobs_cleaned(struct jobs *all)
{
	const struct job *e = &all->jobs[JOB_CLEAN];

	if (!all->opt->no_clean && e->next == 0)
		begin_competition(all);
	return all->opt->no_clean ||
	    (e->next > 0 && all->cleaning.answers == 0 &&
		!is_under_way(all, JOB_CLEAN) &&
		!is_under_way(all, JOB_KILLED));
}

void
jobs_clean_soon(struct jobs *all)
{
	all->jobs[JOB_CLEAN].next = 0;
}

void
jobs_resign(struct jobs *all)
{
	if (all->cleaning.ours && !all->cleaning.by_queue)
		mq_consumer_compete(all->consumer, -1, 0, NULL, NULL);
}

/* --- drain --------------------------------------------------------------- */

/* Seconds between two looks: a bit less than a tick. */
#define DRAIN_S 0.9

static int
run_look(const struct jobs *all, struct mq_redis *r, struct job_result *out)
{
	return all->opt->layout->drained(
	    r, all->opt->queues, all->opt->queue_count, &out->drained);
}

static void
on_looked(struct jobs *all, const struct job_result *look)
{
	all->jobs[JOB_DRAIN].next = mq_clock_steady_s() + DRAIN_S;
	if (!look->failed && look->drained)
		tell(all, FACT_DRAINED);
}

void
jobs_drain(struct jobs *all)
{
	if (mq_clock_steady_s() >= all->jobs[JOB_DRAIN].next)
		begin_job(all, JOB_DRAIN);
}

void
jobs_drain_soon(struct jobs *all)
{
	all->jobs[JOB_DRAIN].next = 0;
}

/* --- survey -------------------------------------------------------------- */

/* Seconds between two surveys.  A lease that is STALE_MS shorter in the second was not renewed:
 * consumers with messages renew theirs more often. */
#define AGAIN_S	 4.6
#define STALE_MS 4500

/* Finds the holder whose lease ends first: a dead consumer, if there is one. */
static int
run_survey(const struct jobs *all, struct mq_redis *r, struct job_result *out)
{
	const struct mq_connection_stats *c;
	struct holder *h = &out->holder;
	struct mq_stats stats;
	long long unacked;
	int i, j;

	if (all->opt->layout->stats(r, all->opt->queues, all->opt->queue_count,
		all->survey.waits ? MQ_STATS_CONNECTIONS : 0, &stats) == -1)
		return -1;
	for (i = 0; i < stats.count; i++)
		if (stats.queues[i].ready > 0)
			out->ready += stats.queues[i].ready;
	for (i = 0; i < stats.connection_count; i++) {
		c = &stats.connections[i];
		unacked = 0;
		for (j = 0; j < c->count; j++)
			if (c->consumed[j].unacked > 0)
				unacked += c->consumed[j].unacked;
		if (unacked == 0 || c->unknown ||
		    strcmp(c->name, all->consumer->session.connection) == 0 ||
		    (h->name[0] != '\0' && c->ttl_ms >= h->ttl_ms))
			continue;
		*h = (struct holder){.ttl_ms = c->ttl_ms, .unacked = unacked};
		strlcpy(h->name, c->name, sizeof(h->name));
		if (c->host != NULL)
			strlcpy(h->host, c->host, sizeof(h->host));
	}
	mq_stats_free(&stats);
	return 0;
}

static void
on_surveyed(struct jobs *all, const struct job_result *found)
{
	struct survey *s = &all->survey;
	const struct holder *h = &found->holder;
	bool stale = strcmp(h->name, s->last.name) == 0 &&
	    s->last.ttl_ms - h->ttl_ms >= STALE_MS;
	bool over = h->ttl_ms <= 0;
	bool known =
	    strcmp(h->name, s->said.name) == 0 && over == (s->said.ttl_ms <= 0);
	const char *why = !over ? "that consumer does not renew its lease, "
				  "which ends in " :
	    all->opt->no_clean	? "the lease of that consumer is over; run "
				  "mq-clean" :
				  "the lease of that consumer is over; the "
				  "next round of cleaning is within a minute";
	char time[PROGRESS_TIME];

	if (found->failed)
		return;
	tell(all, FACT_COUNTED, .n = found->ready);
	if (!s->waits || all->opt->quiet)
		return;
	if (h->name[0] != '\0' && (over || stale) && !known) {
		progress_time(time, (double)h->ttl_ms / 1000);
		mq_say("waiting for %lld message%s at %s%s%s: %s%s", h->unacked,
		    h->unacked == 1 ? "" : "s", h->name,
		    h->host[0] != '\0' ? " on " : "", h->host, why,
		    over ? "" : time);
		s->said = *h;
	}
	s->last = *h;
}

/* --- transfers ----------------------------------------------------------- */

static int
run_transfers(
    const struct jobs *all, struct mq_redis *r, struct job_result *out)
{
	const struct options *opt = all->opt;
	int i, rv = 0;

	(void)out;
	for (i = 0; i < opt->queue_count && rv == 0; i++)
		rv = opt->layout->finish_pushes(r, opt->queues[i], NULL);
	return rv;
}

static void
begin_transfers(struct jobs *all)
{
	if (!all->transfers || is_under_way(all, JOB_TRANSFER))
		return;
	all->transfers = false;
	begin_job(all, JOB_TRANSFER);
}

static void
on_transferred(struct jobs *all, const struct job_result *round)
{
	bool more = all->transfers;

	all->transfers |= round->failed;
	/* After an error, the next tick tries again. */
	if (more)
		begin_transfers(all);
}

void
jobs_transfer(struct jobs *all)
{
	if (all->opt->layout->finish_pushes == NULL ||
	    all->server->url.kind != MQ_URL_CLUSTER)
		return;
	all->transfers = true;
	begin_transfers(all);
}

/* --- all jobs ------------------------------------------------------------ */

/* Seconds that --drain waits for a connection, if its jobs once had one. */
#define PLACE_S 30.0

/* In the helper process.  Returns 0, or -1 with the error of the connection. */
typedef int job_work(
    const struct jobs *, struct mq_redis *, struct job_result *);
typedef void job_done(struct jobs *, const struct job_result *);

static const struct {
	job_work *work;
	job_done *done;
} kinds[JOBS] = {[JOB_CLEAN] = {run_cleaning, on_cleaned},
    [JOB_KILLED] = {run_look_for_killed, on_looked_for_killed},
    [JOB_DRAIN] = {run_look, on_looked},
    [JOB_SURVEY] = {run_survey, on_surveyed},
    [JOB_TRANSFER] = {run_transfers, on_transferred}};

/* In the helper process. */
static void
run_job(void *arg, void *result)
{
	const struct job *e = arg;
	struct job_result *out = result;
	struct mq_redis r;

	if (mq_redis_open(&r, e->all->server) == -1 ||
	    kinds[e->kind].work(e->all, &r, out) == -1) {
		out->failed = true;
		strlcpy(out->error, find_cause(&r), sizeof(out->error));
	}
	mq_redis_close(&r);
}

/* Says once why jobs of a kind fail; not of cleaning, since the session reports a lost link, nor
 * of surveys, which nobody needs.  If the server has no connection left, a consumer with an end
 * ends: its jobs would never do. */
static void
note_failure(struct job *e, const char *error)
{
	struct jobs *all = e->all;
	const struct options *opt = all->opt;
	bool minor = e->kind == JOB_CLEAN || e->kind == JOB_KILLED ||
	    e->kind == JOB_SURVEY;
	bool crowded = mq_error_crowded(error);
	bool first = crowded ? !all->crowded : e->failing_since == 0;
	double now = mq_clock_steady_s();

	all->crowded |= crowded;
	if (e->failing_since == 0)
		e->failing_since = now;
	all->given_up = crowded && options_have_end(opt) &&
	    (!all->placed ||
		(e->kind == JOB_DRAIN && now - e->failing_since >= PLACE_S));
	if (all->given_up ||
	    (first && (crowded || opt->verbose || !(opt->quiet || minor))))
		mq_say("%s: %s%s", all->server->name, error,
		    all->given_up ? "" : "; trying again");
	if (all->given_up)
		tell(all, FACT_MUST_END, .status = MQ_EXIT_AGAIN);
}

static void
on_job(void *arg, const void *result)
{
	static const struct job_result died = {.failed = true};
	const struct job_result *r = result != NULL ? result : &died;
	struct job *e = arg;

	if (!r->failed) {
		e->failing_since = 0;
		e->all->placed = true;
		e->all->crowded = false;
	} else if (r->error[0] != '\0' && !e->all->given_up) {
		note_failure(e, r->error);
	}
	kinds[e->kind].done(e->all, r);
}

static void
begin_job(struct jobs *all, enum job_kind kind)
{
	struct job_result unable = {.failed = true};
	struct job *e = &all->jobs[kind];

	if (mq_helper_start(&e->helper, all->children, sizeof(unable), run_job,
		on_job, e) == 0)
		return;
	strlcpy(unable.error, strerror(errno), sizeof(unable.error));
	on_job(e, &unable);
}

void
jobs_tick(struct jobs *all, bool counts, bool waits)
{
	struct survey *s = &all->survey;
	double now = mq_clock_steady_s();

	if (!all->opt->no_clean && now >= all->jobs[JOB_CLEAN].next)
		begin_competition(all);
	if (all->cleaning.looks && now >= all->jobs[JOB_KILLED].next)
		begin_job(all, JOB_KILLED);
	begin_transfers(all);
	s->waited = waits ? s->waited + 1 : 0;
	/* Most waits are over with the next tick: the first tick begins no survey. */
	if (now < all->jobs[JOB_SURVEY].next || !(counts || s->waited > 1) ||
	    is_under_way(all, JOB_SURVEY))
		return;
	s->waits = s->waited > 1;
	all->jobs[JOB_SURVEY].next = now + AGAIN_S;
	begin_job(all, JOB_SURVEY);
}

struct jobs *
jobs_new(const struct options *opt, struct facts *facts,
    struct mq_consumer *consumer, struct mq_server *server,
    struct mq_children *children)
{
	struct jobs *all = mq_xcalloc(1, sizeof(*all));
	int i;

	all->opt = opt;
	all->facts = facts;
	all->consumer = consumer;
	all->server = server;
	all->children = children;
	for (i = 0; i < JOBS; i++) {
		all->jobs[i].all = all;
		all->jobs[i].kind = (enum job_kind)i;
	}
	return all;
}

void
jobs_end(struct jobs *all)
{
	struct job *last = &all->jobs[JOB_TRANSFER];
	struct job_result round = {.failed = false};
	bool more = all->transfers || is_under_way(all, JOB_TRANSFER);
	int i;

	for (i = 0; i < JOBS; i++)
		mq_helper_kill(&all->jobs[i].helper);
	if (!more)
		return;
	all->transfers = false;
	run_job(last, &round);
	on_job(last, &round);
}

void
jobs_free(struct jobs *all)
{
	mq_names_free(&all->cleaning.trimmed);
	free(all);
}
