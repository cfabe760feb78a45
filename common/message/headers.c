#include "headers.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "history.h"

const char *
mq_message_id(const struct mq_envelope *e)
{
	const char *id = mq_envelope_get(e, MQ_HEADER_ID);

	return id != NULL && mq_id_valid(id, strlen(id)) ? id : NULL;
}

const char *
mq_message_name(const struct mq_envelope *e)
{
	const char *id = mq_envelope_get(e, MQ_HEADER_ID);

	if (id == NULL || !mq_id_safe(id, strlen(id)))
		id = mq_envelope_get(e, MQ_HEADER_NAME);
	return id != NULL && mq_id_safe(id, strlen(id)) ? id : NULL;
}

bool
mq_message_plain(const char *element, size_t len, char id[MQ_ID_LEN + 1],
    struct mq_envelope *e)
{
	/* No strings: a NUL is among the first. */
	static const char head[] = "\xff\0\xbe\xbe"
				   "J{\"Mq-Id\":[\"";
	static const char tail[] = "\"]}\n";
	const size_t before = sizeof(head) - 1, after = sizeof(tail) - 1;
	size_t skip = before + MQ_ID_LEN + after;

	id[0] = '\0';
	if (len == 0 || element[0] != head[0])
		skip = 0;
	else if (len < skip || memcmp(element, head, before) != 0 ||
	    memcmp(element + before + MQ_ID_LEN, tail, after) != 0 ||
	    !mq_id_valid(element + before, MQ_ID_LEN))
		return false;
	if (skip > 0) {
		memcpy(id, element + before, MQ_ID_LEN);
		id[MQ_ID_LEN] = '\0';
	}
	*e = (struct mq_envelope){NULL, element + skip, len - skip};
	return true;
}

void
mq_message_record(
    struct mq_envelope *e, const char *id, long attempts, const char *error)
{
	char number[24], cut[MQ_ERROR_MAX + 1];

	snprintf(number, sizeof(number), "%ld", attempts);
	mq_envelope_set(e, MQ_HEADER_ID, id);
	mq_envelope_set(e, MQ_HEADER_ATTEMPT, number);
	if (error == NULL)
		return;
	snprintf(cut, sizeof(cut), "%s", error);
	mq_envelope_set(e, MQ_HEADER_ERROR, cut);
}

int64_t
mq_message_since_ms(const struct mq_envelope *e)
{
	const char *id = mq_message_id(e);
	int64_t published = id != NULL ? (int64_t)mq_id_time(id) / 1000 : 0;
	int64_t due = mq_envelope_get_long(e, MQ_HEADER_DUE, 0);

	return due > published ? due : published;
}

bool
mq_message_holds(const struct mq_envelope *e)
{
	return mq_envelope_get(e, MQ_HEADER_GROUP) != NULL ||
	    mq_envelope_get(e, MQ_HEADER_KEY) != NULL;
}

bool
mq_message_unique_good(const struct mq_envelope *e)
{
	const char *unique = mq_envelope_get(e, MQ_HEADER_UNIQUE);
	long ms = mq_envelope_get_long(e, MQ_HEADER_UNIQUE, 0);

	return unique == NULL || strcmp(unique, "queued") == 0 ||
	    strcmp(unique, "done") == 0 || (ms > 0 && ms <= 1L << 48);
}

bool
mq_message_special(const struct mq_envelope *e)
{
	static const char *const names[] = {MQ_HEADER_PRIORITY, MQ_HEADER_GROUP,
	    MQ_HEADER_KEY, MQ_HEADER_FROM_TICK, MQ_HEADER_UNTIL_TICK,
	    MQ_HEADER_EXPIRES, MQ_HEADER_REPLY_TO};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (mq_envelope_get(e, names[i]) != NULL)
			return true;
	return false;
}

void
mq_message_duplicate(const struct mq_envelope *from,
    const struct mq_duplicate *how, struct mq_envelope *e)
{
	static const char *const gone[] = {MQ_HEADER_ATTEMPT, MQ_HEADER_ERROR,
	    MQ_HEADER_HISTORY, MQ_HEADER_DUE, MQ_HEADER_KEY, MQ_HEADER_UNIQUE,
	    MQ_HEADER_REPLY_TO, MQ_HEADER_DEST, MQ_HEADER_COPY};
	char due[24];
	size_t i;

	*e = (struct mq_envelope){NULL, from->payload, from->payload_len};
	if (from->headers == NULL && !how->stamped && how->web == NULL)
		return;
	if (from->headers != NULL)
		e->headers = json_deep_copy(from->headers);
	mq_envelope_set(e, MQ_HEADER_ID, how->id);
	for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		json_object_del(e->headers, gone[i]);
	if (how->origin != NULL && mq_envelope_get(e, MQ_HEADER_ORIGIN) == NULL)
		mq_envelope_set(e, MQ_HEADER_ORIGIN, how->origin);
	if (how->web != NULL)
		mq_envelope_set(e, MQ_HEADER_DEST, how->web);
	if (how->due_ms > 0) {
		snprintf(due, sizeof(due), "%jd", (intmax_t)how->due_ms);
		mq_envelope_set(e, MQ_HEADER_DUE, due);
	}
}

bool
mq_message_over(const struct mq_envelope *e, int64_t now_ms, int64_t tick,
    char *why, size_t size)
{
	long expires = mq_envelope_get_long(e, MQ_HEADER_EXPIRES, 0);
	long last = mq_envelope_get_long(e, MQ_HEADER_UNTIL_TICK, LONG_MAX);

	if (expires > 0 && now_ms > expires)
		snprintf(why, size, "expired");
	else if (last < tick)
		snprintf(why, size, "stale: tick %ld is over", last);
	else
		return false;
	return true;
}
