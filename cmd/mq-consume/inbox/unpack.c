#include "inbox.h"

#include <string.h>

#include "base/clock.h"
#include "message/headers.h"
#include "message/result.h"

static void
take_id(struct message *m, bool ids, struct mq_idgen *idgen)
{
	const char *id =
	    ids ? mq_message_name(&m->envelope) : mq_message_id(&m->envelope);

	if (id != NULL)
		strlcpy(m->id, id, sizeof(m->id));
	else
		mq_id_make(idgen, (uint64_t)mq_clock_unix_us(), m->id);
}

bool
unpack(struct message *m, const struct unpack_limits *limits,
    struct mq_idgen *ids, struct unfit *unfit)
{
	const char *bad;

	/* Most messages have only an id: they need no parser. */
	if (mq_message_plain(m->element, m->len, m->id, &m->envelope)) {
		if (m->id[0] == '\0' && limits->named)
			mq_id_make(ids, (uint64_t)mq_clock_unix_us(), m->id);
		return true;
	}
	if (mq_envelope_parse(m->element, m->len, &m->envelope, &bad) == -1) {
		m->envelope = (struct mq_envelope){0};
		unfit->kind = UNFIT_HEADER;
		strlcpy(unfit->why, bad, sizeof(unfit->why));
		return false;
	}
	m->attempts = mq_envelope_get_long(&m->envelope, MQ_HEADER_ATTEMPT, 0);
	m->awaited = mq_result_wanted(&m->envelope);
	take_id(m, limits->ids, ids);
	if (!limits->files &&
	    mq_envelope_get(&m->envelope, MQ_HEADER_ATTACH) != NULL) {
		unfit->kind = UNFIT_FILES;
		strlcpy(unfit->why,
		    "attachments need a COMMAND for each message",
		    sizeof(unfit->why));
		return false;
	}
	if (mq_message_over(&m->envelope, limits->now_ms, limits->tick,
		unfit->why, sizeof(unfit->why))) {
		unfit->kind = UNFIT_EXPIRED;
		return false;
	}
	unfit->kind = UNFIT_CRASHED;
	return limits->attempts == 0 || m->attempts < limits->attempts;
}
