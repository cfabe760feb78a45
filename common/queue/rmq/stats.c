/*
 * The rmq layout: what is in the queues, how long it has been waiting, which connections
 * have it, and what runs there.
 *
 * There may be thousands of them, so only what the answers so far leave open
 * is asked: first how many keys they have, then what these are, and the ages of the
 * messages there are.
 *
 * On a cluster, a queue's messages are on one node.  What connections hold is on those of
 * the queues, but which queues a connection has, and its heartbeat, can be on any; what is
 * not known, as a node is lost, is told.
 */
#include "rmq.h"

/* Queues in one command, and for their keys in the other form; and how many keys one call
 * of a script looks at: on a cluster one, as they may be anywhere. */
#define TOGETHER	25
#define OTHERS_TOGETHER 100
#define AGES_TOGETHER	50

/* To scan this many keys takes 3 ms of the server's time.  With more keys, only
 * the cleaners scan, and list again what is not listed. */
#define MANY_KEYS 20000
/* For MQ_STATS_FEW: with more connections, or queues that they consume, what they have is
 * not known. */
#define FEW_CONNECTIONS 100
#define FEW_LINKS	500
/* With more names of queues, each connection is asked which queues it has. */
#define NAMED 4

/* The questions about a queue: OUTGOING, and the right to it, is of clusters only, NOW the
 * time of its node; then the ages of its messages; and the questions about a connection. */
enum { READY, REJECTED, OURS, COUNTS, PRIORITY, DELAYED, CLOCK, PAUSED };
enum { OUTGOING = PAUSED + 1, KNOWN, NOW };
enum { READY_AGE = NOW + 1, PRIORITY_AGE, DELAYED_AGE };
enum { QUEUES = DELAYED_AGE + 1, LEASE, INFO };

static const char *const asked[] = {[READY] = "LLEN Q:ready",
    [REJECTED] = "LLEN Q:rejected",
    [COUNTS] = "HMGET Q:counters",
    [PRIORITY] = "ZCARD Q:priority",
    [DELAYED] = "ZCARD Q:delayed",
    [CLOCK] = "GET Q:clock",
    [PAUSED] = "PTTL Q:paused",
    [OUTGOING] = "HLEN Q:outgoing",
    [KNOWN] = ("SISMEMBER A:" RMQ_QUEUES " %n"),
    [NOW] = "TIME @",
    [QUEUES] = "SMEMBERS C:queues",
    [LEASE] = "PTTL C:heartbeat",
    [INFO] = "HMGET C:info host pid lease"};

struct known {
	int left;    /* keys that are ours, and not asked about */
	bool sorted; /* it has messages of a priority */
	/* How far the clock of its node is before out->now_ms: what is found is told by
	 * the latter. */
	int64_t ahead;
};

struct gather {
	struct mq_stats *out;
	int wanted;
	unsigned char *keys; /* of each queue, an enum rmq_found, ... */
	struct known *known; /* ... and what else is known */
	int *row;	     /* the queues that are asked about */
	size_t rows;
	int first; /* of the questions about each */
	size_t questions;
	size_t batch; /* for ages, queues in one command */
	struct mq_links links;
	struct mq_names lists; /* unacked lists, as far as they were found */
	bool other; /* of links, the keys in the other form are asked about */
};

static int
list_rows(
    struct mq_redis *r, const char *const *queues, int count, struct gather *g)
{
	struct mq_stats *out = g->out;
	struct mq_names names = {0};
	int i, rv = 0;

	for (i = 0; i < count; i++)
		mq_names_add(&names, queues[i], NULL);
	if (count == 0) {
		rv = rmq_call_names(r, RMQ_QUEUES, &names, &out->odd);
		out->part =
		    rv == -1 && rmq_missed(r, "GET A:" RMQ_QUEUES, NULL, NULL);
		if (out->part)
			rv = rmq_find_names(r, false, 0, &names);
		else if (g->wanted & MQ_STATS_FEW && names.n > MQ_FEW_QUEUES)
			mq_names_free(&names);
	}
	/* Where there is no answer, a queue counts as known. */
	mq_rows_make(out, &names, true);
	return rv;
}

/* What only these tools make; of a scattered queue, there is nothing of it. */
static void
add_ours(struct mq_command *c, const char *queue)
{
	rmq_key_queue(c, queue,
	    rmq_is_scattered(c, queue) ? "counters" :
		c->cluster ? "priority delayed clock paused counters outgoing" :
			     "priority delayed clock paused counters");
}

/* --- which have anything ------------------------------------------------------- */

static void
add_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;

	rmq_key_queue(c, out->queues[i].name, "ready rejected");
	add_ours(c, out->queues[i].name);
}

/* On a cluster, no command asks about several keys in the other form. */
static void
add_others(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;
	const char *queue = out->queues[c->cluster ? i / 2 : i].name;

	rmq_keys(c, NULL, queue,
	    !c->cluster	   ? "O:ready O:rejected" :
		i % 2 == 0 ? "O:ready" :
			     "O:rejected");
}

/* Nearly no queue has any keys in the other form; on a cluster, only those are asked about
 * that have nothing else.  A user without the right to look is told nothing. */
static int
find_others(struct mq_redis *r, struct mq_stats *out)
{
	size_t each = mq_redis_command(r).cluster ? 2 : 1, i;
	size_t n = each * (size_t)out->count;
	struct rmq_exists look = {.r = r,
	    .add = add_others,
	    .arg = out,
	    .keys = mq_xcalloc(n + 1, 1)};
	struct mq_queue_stats *q;
	int rv;

	for (i = 0; i < n; i++) {
		q = &out->queues[i / each];
		if (each == 2 &&
		    (q->ready != 0 || q->rejected != 0 || q->counted))
			look.keys[i] = RMQ_NONE;
	}
	rv = rmq_exists(&look, RMQ_ANY, n, each == 2 ? 1 : OTHERS_TOGETHER);
	if (rv == 0 && each == 1)
		rv = rmq_exists(&look, RMQ_SOME, n, 1);
	for (i = 0; i < n; i++)
		out->queues[i / each].other |= look.keys[i] == RMQ_SOME;
	free(look.keys);
	return rv;
}

/* --- what each has ------------------------------------------------------------- */

static void
ask_row(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	int question = g->first + (int)(i % g->questions);
	const char *queue = g->out->queues[g->row[i / g->questions]].name;

	if (question == OURS) {
		mq_command_plain(c, "EXISTS");
		add_ours(c, queue);
		return;
	}
	rmq_ask(c, asked[question], queue, NULL);
	if (question == COUNTS)
		mq_counts_ask(c, g->wanted);
}

static int
take_row(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	int question = g->first + (int)(i % g->questions);
	int row = g->row[i / g->questions], rv;
	struct mq_queue_stats *q = &g->out->queues[row];
	long long n = reply->integer;

	if (reply->type == REDIS_REPLY_ERROR) {
		q->wrong = true;
		return 0;
	}
	if (question == COUNTS) {
		rv = mq_counts_take(reply, g->out->now_ms, q);
		g->known[row].left -= q->counted;
		return rv;
	}
	if (question == NOW) {
		rv = mq_reply_time(reply, &g->known[row].ahead);
		g->known[row].ahead -= g->out->now_ms;
		return rv;
	}
	if (question == CLOCK && reply->type == REDIS_REPLY_STRING)
		q->tick = strtoll(reply->str, NULL, 10);
	else if (question == CLOCK)
		return reply->type == REDIS_REPLY_NIL ? 0 : -1;
	else if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	else if (question == READY)
		q->ready = n;
	else if (question == REJECTED)
		q->rejected = n;
	else if (question == OURS)
		g->known[row].left = (int)n;
	else if (question == PRIORITY)
		q->ready += n;
	else if (question == DELAYED)
		q->delayed = n;
	else if (question == OUTGOING)
		q->leaving = n;
	else if (question == KNOWN)
		q->known = n != 0;
	else if (n >= -1)
		q->paused_ms = n >= 0 ? g->out->now_ms + n : -1;
	g->known[row].sorted |= question == PRIORITY && n > 0;
	return 0;
}

static void
choose_rows(struct gather *g, int question)
{
	const struct mq_queue_stats *q;
	bool asks;
	int i;

	g->first = question;
	g->rows = 0;
	for (i = 0; i < g->out->count; i++) {
		q = &g->out->queues[i];
		asks = question == KNOWN     ? true :
		    q->wrong		     ? false :
		    question == READY	     ? g->keys[i] != RMQ_NONE :
		    question == NOW	     ? q->ready > 0 || q->delayed > 0 :
		    question == READY_AGE    ? q->ready > 0 :
		    question == PRIORITY_AGE ? g->known[i].sorted :
		    question == DELAYED_AGE  ? q->delayed > 0 :
					       g->known[i].left > 0;
		if (asks)
			g->row[g->rows++] = i;
	}
}

static int
ask_rows(struct mq_redis *r, struct gather *g, int first, int end)
{
	choose_rows(g, first);
	g->questions = (size_t)(end - first);
	return mq_ask_typed(
	    r, g->rows * g->questions, ask_row, take_row, g, &g->out->wrong);
}

/* --- ages ---------------------------------------------------------------------- */

static void
ask_ages(void *arg, size_t i, struct mq_command *c)
{
	const struct gather *g = arg;
	size_t at = i * g->batch, end = MIN(at + g->batch, g->rows);
	const char *key = g->first == DELAYED_AGE ? "delayed" :
	    g->first == PRIORITY_AGE		  ? "priority" :
						    "ready";

	mq_command_script(
	    c, g->first == DELAYED_AGE ? &rmq_script_due : &rmq_script_oldest);
	for (; at < end; at++)
		rmq_key_queue(c, g->out->queues[g->row[at]].name, key);
	if (g->first != DELAYED_AGE)
		mq_command_str(c, key);
}

static int64_t
since_ms(const redisReply *header)
{
	struct mq_envelope e;
	const char *why;
	int64_t ms;

	if (mq_envelope_parse(header->str, header->len, &e, &why) == -1)
		return -1;
	ms = mq_message_since_ms(&e);
	mq_envelope_free(&e);
	return ms > 0 ? ms : -1;
}

static int
take_age(const struct gather *g, int row, redisReply *const *e)
{
	struct mq_queue_stats *q = &g->out->queues[row];
	int64_t ahead = g->known[row].ahead, ms = 0;
	double score;
	bool there = e[0]->type == REDIS_REPLY_STRING;

	if (!there && e[0]->type != REDIS_REPLY_NIL)
		return -1;
	if (g->first == READY_AGE) {
		q->oldest_ms = there ? since_ms(e[0]) : -1;
		if (q->oldest_ms > ahead)
			q->oldest_ms -= ahead;
		return 0;
	}
	/* Any number can be a score; ours are unix milliseconds.  What is known is at least
	 * 1, however far ahead the clock is that it is of. */
	if (there) {
		score = strtod(e[0]->str, NULL) - (double)ahead;
		ms = score >= 9e15 ? INT64_C(9000000000000000) :
		    score >= 1	   ? (int64_t)score :
				     1;
	}
	if (g->first == DELAYED_AGE) {
		if (e[1]->type != REDIS_REPLY_INTEGER)
			return -1;
		q->in_line = e[1]->integer;
		if (there)
			q->next_due_ms = ms;
		there &= q->next_due_ms <= g->out->now_ms;
	}
	/* Of two that are known, the older one counts. */
	if (there && (q->oldest_ms <= 0 || ms < q->oldest_ms))
		q->oldest_ms = ms;
	return 0;
}

static int
take_ages(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	size_t each = g->first == DELAYED_AGE ? 2 : 1, at = i * g->batch, k;
	size_t n = MIN(g->batch, g->rows - at);

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != each * n)
		return -1;
	for (k = 0; k < n; k++)
		if (take_age(g, g->row[at + k], reply->element + k * each) ==
		    -1)
			return -1;
	return 0;
}

/* When messages are due, and since when they have been claimable, in the rows
 * whose numbers of messages are known. */
static int
find_ages(struct mq_redis *r, struct gather *g)
{
	bool cluster = mq_redis_command(r).cluster;
	int question, rv = cluster ? ask_rows(r, g, NOW, READY_AGE) : 0;

	g->batch = cluster ? 1 : AGES_TOGETHER;
	for (question = READY_AGE; question <= DELAYED_AGE && rv == 0;
	     question++) {
		choose_rows(g, question);
		rv = mq_ask_all(r, (g->rows + g->batch - 1) / g->batch,
		    ask_ages, take_ages, g);
	}
	return rv;
}

static int
ask_queues(struct mq_redis *r, struct gather *g)
{
	bool cluster = mq_redis_command(r).cluster;
	const int phases[] = {
	    READY, COUNTS, PRIORITY, cluster ? KNOWN : OUTGOING};
	size_t i, n = (size_t)g->out->count;
	bool many = n > TOGETHER && !cluster;
	struct rmq_exists look = {.r = r,
	    .add = add_keys,
	    .arg = g->out,
	    .keys = mq_xcalloc(n + 1, 1)};
	int rv = 0;

	g->keys = look.keys;
	g->row = mq_xcalloc(n + 1, sizeof(*g->row));
	g->known = mq_xcalloc(n + 1, sizeof(*g->known));
	if (g->links.named)
		rv = ask_rows(r, g, KNOWN, NOW);
	/* Many queues may have nothing at all: if the first ones do not, the others are
	 * asked about together, too; and always for whoever asks every minute. */
	if (rv == 0 && many)
		rv = rmq_exists(&look, RMQ_ANY, TOGETHER, TOGETHER);
	if (rv == 0 && many &&
	    (g->keys[0] == RMQ_NONE || (g->wanted & MQ_STATS_FEW)))
		rv = rmq_exists(&look, RMQ_ANY, n, TOGETHER);
	/* First what is asked about every queue that may have anything, then about keys of
	 * ours: the counts, and as most have nothing else, the others. */
	for (i = 0; rv == 0 && i < 3; i++)
		rv = ask_rows(r, g, phases[i], phases[i + 1]);
	if (rv == 0)
		rv = find_ages(r, g);
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = find_others(r, g->out);
	free(g->keys);
	free(g->row);
	free(g->known);
	return rv;
}

/* --- connections --------------------------------------------------------------- */

static int
list_connections(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	bool cluster = mq_redis_command(r).cluster;
	redisReply none = {.type = REDIS_REPLY_ARRAY}, *names = &none;
	redisReply *all = mq_call_members(r, RMQ_CONNECTIONS);
	const char *queues[NAMED];
	int i, rv = 0;

	if (all != NULL)
		names = all;
	else if (!rmq_missed(r, "GET A:" RMQ_CONNECTIONS, NULL, NULL))
		return -1;
	/* Unless connections are to be shown, those that have nothing of some named
	 * queues change nothing. */
	if (g->links.named && !g->links.wanted &&
	    out->count <= (cluster ? 1 : NAMED)) {
		for (i = 0; i < out->count; i++)
			queues[i] = out->queues[i].name;
		rv = rmq_keep_holders(r, queues, out->count, !cluster, names);
	}
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = rmq_find_names(r, true, MANY_KEYS, &g->lists);
	mq_rows_connections(out, names, &g->lists);
	freeReplyObject(all);
	return rv;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	const char *name = g->out->connections[i / g->questions].name;

	rmq_ask(c, asked[QUEUES + i % g->questions], name, NULL);
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_connection_stats *c = &g->out->connections[i / g->questions];
	int question = QUEUES + (int)(i % g->questions);
	struct mq_names queues = {0};
	const struct mq_name *list;
	size_t k, n;

	if (reply->type == REDIS_REPLY_ERROR)
		return 0;
	if (question == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (question == INFO) {
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
			return -1;
		mq_links_about(c, reply->element);
		if (c->by_receipt)
			c->ttl_ms = MAX(c->ttl_ms - RMQ_CUT_MS, 0);
		return 0;
	}
	/* With the queues of which the connection holds messages without being listed
	 * as their consumer. */
	if (!mq_reply_is(reply, ""))
		return -1;
	mq_rows_list(&queues, reply, &g->out->odd);
	list = mq_names_find(&g->lists, c->name, &n);
	for (k = 0; k < n; k++)
		mq_names_add(&queues, list[k].queue, NULL);
	mq_names_sort(&queues);
	c->consumed = mq_xcalloc(queues.n + 1, sizeof(*c->consumed));
	for (k = 0; k < queues.n; k++)
		mq_links_add(&g->links, c, queues.list[k].name, 0);
	mq_names_free(&queues);
	return 0;
}

/* By turns about its unacked messages and its consumers there; those of the other form the
 * other way round. */
static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	static const char *const questions[][2] = {
	    {"LLEN B:unacked", "SCARD B:consumers"},
	    {"EXISTS O:consumers", "EXISTS O:unacked"}};
	const struct gather *g = arg;
	const struct mq_consuming *link = &g->links.list[i / 2];

	rmq_ask(c, questions[g->other][i % 2], link->connection->name,
	    link->consumed->queue);
}

static int
take_link(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	const struct mq_consuming *link = &g->links.list[i / 2];
	struct mq_queue_stats *row = link->row;
	long long n = reply->integer;
	bool unacked = (i % 2 == 0) != g->other;

	if (row != NULL)
		row->wrong |= reply->type == REDIS_REPLY_ERROR;
	if (reply->type == REDIS_REPLY_ERROR)
		n = -1;
	else if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (g->other) {
		if (n > 0)
			mq_names_add(
			    &g->out->cluster, link->connection->name, NULL);
		return 0;
	}
	*(unacked ? &link->consumed->unacked : &link->consumed->consumers) = n;
	if (row != NULL)
		*(unacked			     ? &row->unacked :
			link->connection->ttl_ms > 0 ? &row->consumers :
						       &row->dead_consumers) +=
		    n;
	return 0;
}

/* On a cluster: sets the nodes of connections and what they consume; and what is not
 * known, as a node is lost. */
static void
find_link_nodes(const struct mq_redis *r, struct mq_links *l)
{
	struct mq_queue_stats *q = l->out->queues;
	struct mq_connection_stats *of = l->out->connections;
	struct mq_consuming *link;
	bool part; /* the queues of some connections are not known */

	if (!mq_redis_command(r).cluster)
		return;
	part = rmq_missed(r, "GET A:" RMQ_CONNECTIONS, NULL, NULL);
	for (int i = 0; i < l->out->connection_count; i++, of++) {
		part |= rmq_missed(r, "GET C:queues", of->name, NULL);
		of->unsure =
		    rmq_missed(r, "GET C:heartbeat", of->name, &of->node);
	}
	for (link = l->list; link < l->list + l->n; link++) {
		if (rmq_missed(r, "GET Q:ready", link->consumed->queue,
			&link->consumed->node))
			link->consumed->unacked = link->consumed->consumers =
			    -1;
		if (link->row != NULL && link->connection->unsure)
			link->row->consumers = link->row->dead_consumers =
			    link->row->connections = -1;
	}
	for (int i = 0; part && i < l->out->count; i++, q++)
		q->unacked = q->consumers = q->dead_consumers = q->connections =
		    -1;
}

static int
ask_connections(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	struct mq_links *l = &g->links;
	const struct mq_consumed *consumed;
	bool few = g->wanted & MQ_STATS_FEW, many;
	size_t k, n = 0;
	int i, rv = list_connections(r, g);

	many = few && out->connection_count > FEW_CONNECTIONS;
	/* Without rows for connections, their queues and leases are enough. */
	g->questions = l->wanted ? 3 : 2;
	if (rv == 0 && !many) {
		rv = mq_ask_typed(r,
		    g->questions * (size_t)out->connection_count, ask_about,
		    take_about, g, &out->wrong);
		mq_links_list(l);
		many = few && l->n > FEW_LINKS;
	}
	if (rv == 0 && !many)
		rv = mq_ask_typed(
		    r, 2 * l->n, ask_link, take_link, g, &out->wrong);
	if (rv == 0 && !many) {
		find_link_nodes(r, l);
		/* A program that uses the other form of the keys seems to have no
		 * consumers and messages: those links are asked about again. */
		for (k = 0; k < l->n; k++) {
			consumed = l->list[k].consumed;
			if (consumed->unacked == 0 && consumed->consumers == 0)
				l->list[n++] = l->list[k];
		}
		l->n = n;
		g->other = true;
		rv = mq_ask_all(r, 2 * l->n, ask_link, take_link, g);
		mq_names_sort(&out->cluster);
		mq_names_sort(&out->odd);
	}
	for (i = 0; many && i < out->count; i++)
		out->queues[i].unacked = out->queues[i].consumers = -1;
	mq_links_end(l);
	mq_names_free(&g->lists);
	return rv;
}

int
rmq_stats(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	struct gather g = {.out = out,
	    .wanted = wanted,
	    .links = {.out = out,
		.wanted = wanted & MQ_STATS_CONNECTIONS,
		.named = count > 0}};
	const struct mq_command c = mq_redis_command(r);
	int rv;

	*out = (struct mq_stats){0};
	mq_partial_begin(r);
	rv = mq_server_time(r, &out->now_ms) == -1 ||
		list_rows(r, queues, count, &g) == -1 ||
		ask_queues(r, &g) == -1 || ask_connections(r, &g) == -1 ?
	    -1 :
	    0;
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == -1)
		mq_stats_free(out);
	/* On a cluster: the nodes; and what is not known, as a node is lost. */
	for (int i = 0; c.cluster && i < out->count; i++) {
		struct mq_queue_stats *q = &out->queues[i];

		q->scattered = rmq_is_scattered(&c, q->name);
		if (rmq_missed(r, "GET Q:ready", q->name, &q->node))
			mq_rows_unknown(q);
	}
	return rv;
}

/* --- what runs there ---------------------------------------------------------- */

int
rmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {rmq_ask,
	    {{MQ_RUN_LEASE, "PTTL C:heartbeat"}, {MQ_RUN_TEXT, "GET C:running"},
		{MQ_RUN_HOST, "HGET C:info host"}},
	    3};

	mq_partial_begin(r);
	return mq_runs_ask(
	    r, mq_call_members(r, RMQ_CONNECTIONS), &source, NULL, out);
}
