/*
 * The rsmq layout: walks through the messages at a place.
 *
 * Messages are gone through in the order in which they can be received.  The walk
 * goes on behind the last message that it came to, by its score and id, so it
 * does not matter what has become of that one.
 */
#include "rsmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/xalloc.h"
#include "queue/layout.h"

/* How much one slice has; the server is kept for a millisecond or two. */
#define SLICE_COUNT 500
#define SLICE_BYTES (1 << 20)

/* As lua/walk.lua has them; then three of each message. */
enum { SCORE, ID, LOOKED, FOUND, SKIP, LEFT, ITEMS };
#define FORM "$$####"
#define EACH 3

char *
rsmq_place_queue(const struct mq_place *place)
{
	return mq_xasprintf("%s%s", place->queue,
	    place->state == MQ_REJECTED ? RSMQ_REJECTED : "");
}

/* --- who has a message ------------------------------------------------------------ */

static void
ask_held(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_scan *s = arg;

	rsmq_ask_holding(
	    c, s->walk->connections->element[i]->str, s->place.queue);
}

static int
take_held(void *arg, size_t i, redisReply *reply)
{
	struct mq_scan *s = arg;
	size_t k;

	if (!rsmq_is(reply, ""))
		return -1;
	for (k = 0; k < reply->elements; k++)
		mq_names_add(s->walk->held, reply->element[k]->str,
		    s->walk->connections->element[i]->str);
	return 0;
}

/* Messages that our own connections hold; programs of RSMQ leave no name. */
static int
list_held(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = s->walk;

	if (s->place.state != MQ_UNACKED || w->held != NULL)
		return 0;
	w->held = mq_xcalloc(1, sizeof(*w->held));
	w->connections = rsmq_connections(r, s->place.queue);
	if (w->connections == NULL ||
	    mq_ask_all(r, w->connections->elements, ask_held, take_held, s) ==
		-1)
		return -1;
	mq_names_sort(w->held);
	return 0;
}

/* Whether a message is of the connection that is meant; *whose it is. */
static bool
is_meant(const struct mq_scan *s, const redisReply *id, const char **whose)
{
	const char *meant = s->place.connection;

	*whose = NULL;
	if (s->place.state != MQ_UNACKED)
		return true;
	*whose = mq_names_of(s->walk->held, id->str);
	if (meant == NULL)
		return true;
	return *whose != NULL ? strcmp(*whose, meant) == 0 :
				strcmp(meant, RSMQ_NOBODY) == 0;
}

/* --- a slice ------------------------------------------------------------------------ */

static void
build_walk(struct mq_command *c, const struct mq_scan *s)
{
	const struct mq_walk *w = s->walk;
	char *queue = rsmq_place_queue(&s->place);
	const char *id = w->anchor.len > 0 ? w->anchor.data : "";
	size_t score = strlen(id), skip = score + (w->anchor.len > 0);

	mq_command_script(c, &rsmq_script_walk);
	rsmq_queue_keys(c, queue);
	mq_command_str(c, mq_state_name(s->place.state));
	mq_command_arg(c, id, score);
	mq_command_arg(c, id + skip, w->anchor.len - skip);
	mq_command_int(c, s->skip);
	mq_command_int(c,
	    w->part_left > 0 && w->part_left < SLICE_COUNT ? w->part_left :
							     SLICE_COUNT);
	mq_command_int(c, SLICE_BYTES);
	mq_command_str(c, s->needle != NULL ? s->needle : "");
	free(queue);
}

/* Score and id, with a NUL between them. */
static void
set_anchor(struct mq_scan *s, redisReply *const *e)
{
	mq_buf_set(&s->walk->anchor, e[SCORE]->str, e[SCORE]->len + 1);
	mq_buf_add(&s->walk->anchor, e[ID]->str, e[ID]->len);
}

/* The id and score of each are in front of it in the reply, for taking it. */
static void
set_items(struct mq_scan *s)
{
	redisReply **e = s->walk->reply->element + ITEMS;
	size_t i, n = (s->walk->reply->elements - ITEMS) / EACH;
	const char *whose;

	mq_walk_reserve(s, n);
	for (i = 0; i < n; i++, e += EACH) {
		if (!is_meant(s, e[0], &whose))
			continue;
		s->items[s->count++] = (struct mq_item){.element = e[2]->str,
		    .len = e[2]->len,
		    .due_ms = s->place.state == MQ_DELAYED ? rsmq_ms(e[1]) : 0,
		    .connection = whose,
		    .prefix = i};
	}
}

static int
read_slice(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = s->walk;
	struct mq_command c = {0};
	redisReply **e;

	build_walk(&c, s);
	w->reply = rsmq_call(r, &c, FORM);
	mq_command_free(&c);
	if (w->reply == NULL)
		return -1;
	if ((w->reply->elements - ITEMS) % EACH != 0)
		return mq_nonsense(r);
	e = w->reply->element;
	set_anchor(s, e);
	s->skip = (long)e[SKIP]->integer;
	/* A message that comes while others are taken away is not meant. */
	if (w->part_left == 0)
		w->part_left = e[LOOKED]->integer + e[LEFT]->integer;
	w->part_left -= e[LOOKED]->integer;
	s->end = e[LEFT]->integer == 0 || w->part_left <= 0;
	set_items(s);
	w->span = s->place.connection != NULL ? s->count : e[FOUND]->integer;
	s->seen += (long)w->span;
	return 0;
}

int
rsmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = mq_walk_of(s);

	/* Taking leaves the others where they are. */
	if (s->over)
		return 0;
	s->count = 0;
	w->span = 0;
	if (list_held(r, s) == -1)
		return -1;
	while (!s->end && w->span == 0) {
		mq_walk_drop_slice(s);
		if (read_slice(r, s) == -1)
			return -1;
	}
	return 0;
}

redisReply **
rsmq_walked(const struct mq_scan *s, int i)
{
	return s->walk->reply->element + ITEMS + EACH * s->items[i].prefix;
}
