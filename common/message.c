#include "message.h"

#include <stdio.h>
#include <string.h>

const char *
mq_message_id(const struct mq_envelope *e)
{
	const char *id = mq_envelope_get(e, MQ_HEADER_ID);

	return id != NULL && mq_id_valid(id, strlen(id)) ? id : NULL;
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
