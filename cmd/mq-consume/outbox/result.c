#include "outbox.h"

#include <string.h>

#include "base/clock.h"
#include "mq-consume/rules.h"

/* The queue that hears of the end; NULL: none.  A notice has no other. */
static const char *
notified(const struct result_rules *r, const struct message *m)
{
	return mq_envelope_get(&m->envelope, MQ_HEADER_NOTICE) != NULL ?
	    NULL :
	    rules_of(r->opt, m->queue)->notify;
}

static bool
is_kept(const struct result_rules *r, const struct message *m)
{
	return m->id[0] != '\0' &&
	    (rules_of(r->opt, m->queue)->keep_ms > 0 || m->awaited);
}

bool
result_wanted(const struct result_rules *r, const struct message *m)
{
	return is_kept(r, m) || notified(r, m) != NULL;
}

static void
write_result(const struct result_rules *r, struct message *m, enum mq_end state,
    const struct mq_failure *f, const char *to)
{
	struct mq_ending e = {.state = state,
	    .queue = notified(r, m) != NULL ? m->queue_name : NULL,
	    .text = f != NULL && f->text[0] != '\0' ? f->text : NULL,
	    .status = f != NULL ? f->status : -1,
	    .signal = f != NULL ? f->signal : NULL,
	    .attempts = m->attempts + !m->expired,
	    .host = r->host,
	    .to = to,
	    .finished_ms = mq_clock_unix_us() / 1000};

	strlcpy(e.id, m->id, sizeof(e.id));
	mq_buf_clear(&m->result);
	mq_ending_write(&e, &m->result);
}

void
result_note(const struct result_rules *r, struct message *m, enum mq_end state,
    const struct mq_failure *f)
{
	if (result_wanted(r, m))
		write_result(r, m, state, f, NULL);
}

const struct mq_result *
result_of(const struct result_rules *r, struct message *m,
    const struct mq_settlement *how, struct mq_result *out)
{
	int64_t asked = m->awaited ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep_ms = rules_of(r->opt, m->queue)->keep_ms;

	if (how->outcome == MQ_OUTCOME_FRONT ||
	    how->outcome == MQ_OUTCOME_AGAIN || !result_wanted(r, m))
		return NULL;
	if (how->outcome == MQ_OUTCOME_PUSH)
		write_result(r, m, MQ_END_PUSHED, NULL, how->push);
	else if (m->result.len == 0)
		write_result(r, m,
		    how->outcome == MQ_OUTCOME_ACK ? MQ_END_DONE :
						     MQ_END_REJECTED,
		    NULL, NULL);
	if (!is_kept(r, m))
		return NULL;
	*out = (struct mq_result){.id = m->id,
	    .text = m->result.data,
	    .len = m->result.len,
	    .keep_ms = keep_ms > asked ? keep_ms : asked};
	return out;
}

const struct mq_notice *
result_notice(const struct result_rules *r, const struct message *m,
    const struct mq_settlement *how, struct mq_idgen *ids,
    struct mq_notice *out)
{
	if (how->outcome == MQ_OUTCOME_FRONT ||
	    how->outcome == MQ_OUTCOME_AGAIN || notified(r, m) == NULL)
		return NULL;
	out->queue = notified(r, m);
	mq_id_make(ids, (uint64_t)mq_clock_unix_us(), out->unique);
	mq_notice_write(out->unique, m->queue_name, &m->result, &out->element);
	return out;
}
