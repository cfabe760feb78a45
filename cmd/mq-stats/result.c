/*
 * --id of a message that is no more: what was told of its end, while that is
 * kept.
 */
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "message/json.h"
#include "message/result.h"
#include "one.h"
#include "queue/calls.h"

static void
check(struct look *look, bool ok)
{
	if (!ok)
		mq_die(look->redis->status, "%s", look->redis->error);
}

static void
print(const char *queue, const struct mq_ending *e)
{
	char at[40];

	show_line("id", e->id);
	show_line("queue", queue);
	show_line("state", mq_end_name(e->state));
	show_line("to", e->to);
	if (e->finished_ms > 0) {
		show_time(at, e->finished_ms);
		show_line("finished", at);
	}
	printf("%-12s%ld\n", "attempts", e->attempts);
	show_line("host", e->host);
	show_line("signal", e->signal);
	if (e->signal == NULL && e->status >= 0)
		printf("%-12s%d\n", "status", e->status);
	show_line("text", e->text);
}

static void
print_json(const char *queue, const struct mq_ending *e)
{
	struct mq_buf out = {0};
	json_t *v = json_object();

	mq_json_must(v != NULL &&
	    json_object_set_new(v, "id", mq_json_text(e->id)) == 0 &&
	    json_object_set_new(v, "queue", mq_json_text(queue)) == 0 &&
	    json_object_update(v, e->json) == 0);
	mq_json_dump(v, &out);
	json_decref(v);
	show_json(out.data, out.len);
	putchar('\n');
	mq_buf_free(&out);
}

bool
look_result(struct look *look, const char *id)
{
	struct mq_ending e;
	struct mq_stats stats;
	const char *where;

	if (!(look->layout->has & MQ_HAS_RESULTS))
		return false;
	check(look,
	    look->layout->stats(
		look->redis, look->queues, look->count, 0, &stats) == 0);
	check(look,
	    mq_queue_ending(
		look->redis, look->layout, &stats, id, &e, &where) == 0);
	if (where != NULL && look->json)
		print_json(where, &e);
	else if (where != NULL)
		print(where, &e);
	mq_ending_free(&e);
	mq_stats_free(&stats);
	return where != NULL;
}
