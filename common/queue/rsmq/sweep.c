/*
 * The rsmq layout: a cleaner's way through the messages of all queues, and
 * through what belongs to them, many queues at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "rsmq.h"

/* How many steps are sent at a time: the server takes them one by one, and each
 * may take it a millisecond or two. */
#define MANY 16

/* One walk: through the messages, or one of the keys that belong to them. */
struct walk {
	const char *kind; /* of lua/orphans.lua; NULL: the messages */
	char *queue;
	struct mq_buf at, id; /* score and id, or a cursor and nothing */
	bool over;
};

static void
build_step(struct rsmq_cleaner *w, struct walk *k, const char *bare,
    struct mq_command *c)
{
	if (k->kind != NULL) {
		mq_command_script(c, &rsmq_script_orphans);
		rsmq_queue_keys(c, k->queue);
		mq_command_str(c, k->kind);
		mq_command_str(c, k->at.len > 0 ? mq_buf_str(&k->at) : "0");
		mq_command_int(c, w->how->dry_run);
		return;
	}
	mq_command_script(c, &rsmq_script_sweep);
	rsmq_queue_keys(c, k->queue);
	rsmq_key(c, k->queue, ":Xcounters");
	rsmq_key(c, k->queue, ":Xlater");
	mq_command_arg(c, k->at.data, k->at.len);
	mq_command_arg(c, k->id.data, k->id.len);
	mq_command_int(c, RSMQ_LOOKS / 2);
	mq_command_int(c, w->how->limit);
	mq_command_int(c, mq_names_have(&w->consumed, bare));
	mq_command_int(c, w->how->dry_run);
}

static int
take_messages(struct rsmq_cleaner *w, struct walk *k, redisReply *reply)
{
	redisReply **e = reply->element;
	size_t i;

	/* The numbers in it are integers. */
	if (reply->elements < 4 || (reply->elements - 4) % 3 != 0)
		return 0;
	for (i = 0; i < reply->elements; i++)
		if (e[i]->type !=
		    (i == 2 || i == 3 || (i > 4 && (i - 4) % 3 == 1) ?
			    REDIS_REPLY_INTEGER :
			    REDIS_REPLY_STRING))
			return 0;
	mq_buf_set(&k->at, e[0]->str, e[0]->len);
	mq_buf_set(&k->id, e[1]->str, e[1]->len);
	k->over = e[2]->integer == 0;
	w->out->orphans += (long)e[3]->integer;
	return rsmq_reject(w, k->queue, e + 4, (reply->elements - 4) / 3);
}

static void
take_orphans(struct rsmq_cleaner *w, struct walk *k, redisReply *reply)
{
	redisReply **e = reply->element;

	if (!rsmq_is(reply, "$##"))
		return;
	mq_buf_set(&k->at, e[0]->str, e[0]->len);
	k->over = strcmp(e[0]->str, "0") == 0;
	w->out->orphans += (long)e[1]->integer;
	w->out->adopted += (long)e[2]->integer;
}

/* A reply that makes no sense ends its walk. */
static int
take_reply(struct rsmq_cleaner *w, struct walk *k, redisReply *reply)
{
	k->over = true;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY))
		return 0;
	if (k->kind == NULL)
		return take_messages(w, k, reply);
	take_orphans(w, k, reply);
	return 0;
}

struct step {
	struct rsmq_cleaner *w;
	struct walk *walks[MANY]; /* those that are not over */
	const char *names[MANY];
	redisReply *replies[MANY];
	size_t n;
};

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct step *s = arg;

	build_step(s->w, s->walks[i], s->names[i], c);
}

/* Replies wait until all are there: some ask for more commands. */
static int
keep_reply(void *arg, size_t i, redisReply *reply)
{
	((struct step *)arg)->replies[i] = reply;
	return MQ_KEEP;
}

/* One more step for those of n walks that are not over; *more: whether any was
 * not. */
static int
step_walks(struct rsmq_cleaner *w, struct walk *walks,
    const struct mq_name *names, size_t n, bool *more)
{
	struct step s = {.w = w};
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		if (!walks[i].over) {
			s.walks[s.n] = &walks[i];
			s.names[s.n++] = names[i].name;
		}
	*more = s.n > 0;
	rv = mq_ask_each(w->round.r, s.n, ask_step, keep_reply, &s);
	for (i = 0; i < s.n; i++) {
		if (rv == 0)
			rv = take_reply(w, s.walks[i], s.replies[i]);
		if (s.replies[i] != NULL)
			freeReplyObject(s.replies[i]);
	}
	return rv;
}

static int
walk_queues(struct rsmq_cleaner *w, const struct mq_name *names, size_t n,
    const char *kind)
{
	struct walk walks[MANY] = {0};
	bool more = true;
	size_t i;
	int rv = 0;

	for (i = 0; i < n; i++) {
		walks[i].kind = kind;
		walks[i].queue = rsmq_name(w->round.r, names[i].name);
	}
	while (rv == 0 && more)
		rv = step_walks(w, walks, names, n, &more);
	for (i = 0; i < n; i++) {
		free(walks[i].queue);
		mq_buf_free(&walks[i].at);
		mq_buf_free(&walks[i].id);
	}
	return rv;
}

/* The hash before the others: what becomes a message again keeps its own. */
int
rsmq_sweep(struct rsmq_cleaner *w, const struct mq_name *queues, size_t total)
{
	static const char *const kinds[] = {"h", "x", "d", NULL};
	size_t i, k, n;
	int rv = 0;

	for (i = 0; i < total && rv == 0; i += n) {
		n = total - i < MANY ? total - i : MANY;
		for (k = 0; k < 4 && rv == 0; k++)
			rv = walk_queues(w, queues + i, n, kinds[k]);
	}
	return rv;
}
