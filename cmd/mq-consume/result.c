/*
 * What is told of a message that has come to its end: to those who wait for
 * it (Mq-Reply-To), and with --keep to those who ask later.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "consume.h"
#include "message/headers.h"
#include "message/result.h"

bool
result_wanted(const struct message *m)
{
	return m->id[0] != '\0' && (m->c->opt->keep_ms > 0 || m->awaited);
}

static void
write_result(struct message *m, enum mq_end state, const struct mq_failure *f,
    const char *to)
{
	const char *host = process_host(&m->c->process);
	struct mq_ending e = {.state = state,
	    .text = f != NULL && f->text[0] != '\0' ? f->text : NULL,
	    .status = f != NULL ? f->status : -1,
	    .signal = f != NULL ? f->signal : NULL,
	    .attempts = m->attempts + !m->late,
	    .host = host[0] != '\0' ? host : NULL,
	    .to = to,
	    .finished_ms = mq_clock_unix_us() / 1000};

	strlcpy(e.id, m->id, sizeof(e.id));
	mq_buf_clear(&m->result);
	mq_ending_write(&e, &m->result);
}

void
result_note(struct message *m, enum mq_end state, const struct mq_failure *f)
{
	if (result_wanted(m))
		write_result(m, state, f, NULL);
}

const struct mq_result *
result_of(
    struct message *m, const struct mq_settlement *how, struct mq_result *out)
{
	int64_t asked = m->awaited ? MQ_RESULT_KEEP_MS : 0;
	int64_t keep = m->c->opt->keep_ms;

	if (how->outcome == MQ_OUTCOME_FRONT ||
	    how->outcome == MQ_OUTCOME_AGAIN || !result_wanted(m))
		return NULL;
	/* Who waits need not look elsewhere then. */
	if (how->outcome == MQ_OUTCOME_PUSH &&
	    strcmp(how->push, m->c->opt->queues[m->queue]) == 0)
		return NULL;
	if (how->outcome == MQ_OUTCOME_PUSH)
		write_result(m, MQ_END_PUSHED, NULL, how->push);
	else if (m->result.len == 0)
		write_result(m,
		    how->outcome == MQ_OUTCOME_ACK ? MQ_END_DONE :
						     MQ_END_REJECTED,
		    NULL, NULL);
	*out = (struct mq_result){.id = m->id,
	    .text = m->result.data,
	    .len = m->result.len,
	    .keep_ms = keep > asked ? keep : asked};
	return out;
}
