/*
 * The rmq layout: the locks of one queue.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "rmq.h"

/* How many are let go of in one step. */
#define FREE_COUNT 100

static char *
copy_text(const redisReply *s)
{
	char *p = mq_xcalloc(1, s->len + 1);

	memcpy(p, s->str, s->len);
	return p;
}

static bool
is_number(const char *p)
{
	return *p != '\0' && strspn(p, "0123456789") == strcspn(p, " ");
}

/*
 * A group's is "ID STAMP", a key's "ID MODE STAMP"; a mode that is a time means
 * that it is kept until then, whoever holds it.
 */
static void
add_lock(struct rmq_locks *l, const redisReply *field, const redisReply *value)
{
	bool key = field->len > 0 && field->str[0] == 'k', timed = false;
	struct rmq_lock *lock;

	if (value->len < MQ_ID_LEN)
		return;
	if (key && value->len > MQ_ID_LEN)
		timed = is_number(value->str + MQ_ID_LEN + 1);
	if (timed && strtoll(value->str + MQ_ID_LEN + 1, NULL, 10) > l->now)
		return;
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 64 : l->cap * 2;
		l->list = mq_xreallocarray(l->list, l->cap, sizeof(*l->list));
	}
	lock = &l->list[l->n++];
	*lock = (struct rmq_lock){.field = copy_text(field),
	    .value = copy_text(value),
	    .field_len = field->len,
	    .value_len = value->len,
	    .over = timed};
	memcpy(lock->id, value->str, MQ_ID_LEN);
	l->held += !timed;
}

/* A field that is no lock tells when the first message is too late. */
static void
take_field(
    struct rmq_locks *l, const redisReply *field, const redisReply *value)
{
	long long bound;

	if (field->len == 0)
		return;
	if (field->str[0] == 'g' || field->str[0] == 'k') {
		add_lock(l, field, value);
		return;
	}
	bound = strtoll(value->str, NULL, 10);
	if (strchr("eE", field->str[0]) != NULL)
		l->late |= bound < l->now;
	else if (strchr("tT", field->str[0]) != NULL)
		l->late |= bound < l->tick;
}

static int
take_fields(void *locks, redisReply *some)
{
	size_t i;

	for (i = 0; i + 1 < some->elements; i += 2)
		take_field(locks, some->element[i], some->element[i + 1]);
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	const struct rmq_lock *x = a, *y = b;

	return memcmp(x->id, y->id, MQ_ID_LEN);
}

int
rmq_locks_load(struct rmq_cleaner *w, const char *queue, struct rmq_locks *l)
{
	int rv = rmq_cleaner_fields(w, queue, "locks", take_fields, l);

	if (l->n > 0)
		qsort(l->list, l->n, sizeof(*l->list), by_id);
	return rv;
}

void
rmq_locks_seen(struct rmq_locks *l, const char *id)
{
	size_t low = 0, high = l->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (memcmp(l->list[middle].id, id, MQ_ID_LEN) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < l->n && memcmp(l->list[low].id, id, MQ_ID_LEN) == 0; low++)
		l->list[low].seen = true;
}

bool
rmq_locks_unseen(const struct rmq_locks *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (!l->list[i].seen && !l->list[i].over)
			return true;
	return false;
}

int
rmq_locks_free(struct rmq_cleaner *w, const char *queue,
    const struct rmq_locks *l, bool over, long *n)
{
	const struct rmq_lock *lock;
	struct mq_command c = mq_redis_command(w->round.r);
	int many = 0, rv = 0;
	size_t i;

	*n = 0;
	for (i = 0; i < l->n && rv == 0; i++) {
		lock = &l->list[i];
		if (lock->seen || lock->over != over)
			continue;
		if (many++ == 0) {
			mq_command_script(&c, &rmq_script_repair);
			rmq_queue_keys(&c, queue);
			mq_command_str(&c, "free");
			mq_command_str(&c, w->how->dry_run ? "1" : "0");
		}
		mq_command_arg(&c, lock->field, lock->field_len);
		mq_command_arg(&c, lock->value, lock->value_len);
		if (many == FREE_COUNT) {
			rv = mq_round_add(&w->round, &c, n);
			many = 0;
		}
	}
	return rv == 0 && many > 0 ? mq_round_add(&w->round, &c, n) : rv;
}

void
rmq_locks_clear(struct rmq_locks *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		free(l->list[i].field);
		free(l->list[i].value);
	}
	free(l->list);
	*l = (struct rmq_locks){0};
}
