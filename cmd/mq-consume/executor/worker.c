#include "parts.h"

#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"

/* Seconds from a bad end to the next worker. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0

/* --- end -------------------------------------------------------------------- */

/* The verdict on the message that a dead worker was on; false: it goes back. */
static bool
last_verdict(
    const struct slot *s, const struct message *m, struct mq_verdict *v)
{
	if (m == NULL || m->lost || s->killed ||
	    (s->worker.timed_out != NULL && s->worker.timed_out != m))
		return false;
	/* A worker that wrote no verb has no endless retries. */
	if (s->worker.judged > 0 &&
	    !worker_input_partly_read(&s->worker.input, m))
		return false;
	mq_verdict(&s->verbs, s->status, s->worker.timed_out != NULL,
	    s->worker.judged == 0 ? s->slots->opt->strict : MQ_NOT_STRICT, v);
	if (s->worker.protocol_error != NULL) {
		v->kind = MQ_VERDICT_ERR;
		strlcpy(v->how, s->worker.protocol_error, sizeof(v->how));
	} else if (v->kind == MQ_VERDICT_DONE) {
		/* Exit status 0 says nothing about a message. */
		if (s->worker.judged > 0 ||
		    policy_level(s->slots->policy) >= STOP_SOON)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(v->how, "worker ended without a verb", sizeof(v->how));
	}
	return true;
}

/* Sets v->how to how a worker ended, for people; false: it ended well. */
static bool
ended_badly(const struct slot *s, struct mq_verdict *v)
{
	const struct mq_verbs silence = {0};
	const char *how = s->worker.protocol_error;

	mq_verdict(&silence, s->status, false, MQ_NOT_STRICT, v);
	if (how == NULL && s->worker.timed_out != NULL)
		how = "timed out";
	if (how == NULL && s->worker.terminated)
		how = "worker did not end in time";
	if (how == NULL && s->status == 0 && s->worker.judged == 0)
		how = "worker ended without a verb";
	if (how != NULL)
		strlcpy(v->how, how, sizeof(v->how));
	return !s->killed && (how != NULL || s->status != 0);
}

static void
on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	s->slots->events->wake(s->slots->arg);
}

/* A worker that judged messages is replaced soon. */
static void
replace_worker(struct slot *s)
{
	struct slots *ss = s->slots;
	struct mq_verdict v;

	if (!ended_badly(s, &v)) {
		s->worker.wait_s = 0;
		return;
	}
	if (s->worker.judged > 0 || s->worker.wait_s == 0)
		s->worker.wait_s = WAIT_MIN;
	else
		s->worker.wait_s = s->worker.wait_s * 2 < WAIT_MAX ?
		    s->worker.wait_s * 2 :
		    WAIT_MAX;
	if (policy_level(ss->policy) >= STOP_SOON)
		return;
	if (!ss->opt->quiet)
		mq_say("%s: %s%s; restarting in %.1f s",
		    process_script(ss->process),
		    strncmp(v.how, "worker ", 7) != 0 ? "worker: " : "", v.how,
		    s->worker.wait_s);
	ev_timer_set(&s->worker.restart, s->worker.wait_s, 0);
	ev_timer_start(ss->loop, &s->worker.restart);
}

/* Judges the message that a dead worker was on, if it has a verdict. */
static void
judge_last(struct slot *s)
{
	struct message *m = slot_message(s);
	struct mq_verdict v;

	if (!last_verdict(s, m, &v))
		return;
	s->ran_s = mq_clock_s(CLOCK_MONOTONIC) - s->started;
	slot_release(s, m);
	stream_verbs_judged(s, m, &v);
}

/* Ends the slot of a dead worker, after its last verb. */
static void
end_worker(struct slot *s)
{
	struct slots *ss = s->slots;

	ss->busy--;
	ss->last_end = mq_clock_steady_s();
	ss->events->judging(ss->arg);
	judge_last(s);
	slot_return_all(s);
	(void)slot_close_output(s);
	worker_input_free(&s->worker.input);
	mq_buf_free(&s->worker.said);
	replace_worker(s);
	ss->events->wake(ss->arg);
}

static void
end_if_answered(struct slot *s)
{
	if (!requests_awaited(&s->requests) && !requests_finish(&s->requests))
		end_worker(s);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;

	ev_timer_stop(s->slots->loop, &s->timer);
	/* The last verbs, and the last look at what was read. */
	stream_verbs_last(s);
	worker_input_cut(&s->worker.input);
	s->pid = 0;
	s->status = status;
	requests_close(&s->requests, false);
	if (requests_awaited(&s->requests))
		return;
	stream_verbs_hear(s);
	end_if_answered(s);
}

/* The requests of the message that the worker is on are answered. */
static void
on_answered(void *arg)
{
	struct slot *s = arg;

	stream_verbs_hear(s);
	if (s->pid != 0)
		stream_verbs_resume(s);
	else
		end_if_answered(s);
}

static void
on_room(void *arg)
{
	stream_verbs_resume(arg);
}

/* --- beginning -------------------------------------------------------------- */

/* A message that it cannot have read may go back, and end elsewhere, before a
 * request for a duplicate of it is answered. */
static void
on_duplicate(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *m = slot_message(s);

	if (m == NULL || worker_input_partly_read(&s->worker.input, m))
		slot_ask_duplicate(s, which, text);
	else
		requests_ask(&s->requests, NULL,
		    "the worker has not read the message", text);
}

static void
reset_worker(struct slot *s)
{
	struct stream_worker *w = &s->worker;

	s->killed = false;
	w->verbs_closed = false;
	w->terminated = false;
	w->timed_out = NULL;
	w->protocol_error = NULL;
	w->silence_said = false;
	w->judged = 0;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = on_duplicate;
	s->verbs.arg = s;
}

bool
worker_start(struct slot *s)
{
	struct slots *ss = s->slots;
	struct worker_input *input = &s->worker.input;

	reset_worker(s);
	if (!slot_start(s,
		worker_input_open(input, ss->loop, worker_input_closed, s))) {
		worker_input_free(input);
		return false;
	}
	ss->busy++;
	worker_init_time(s);
	mq_child_watch(ss->children, &s->child, s->pid, on_ended, s);
	mq_child_poll(&s->child);
	stream_verbs_watch(s);
	run_output_listen(s->output);
	return true;
}

static void
make_slot(struct slot *s)
{
	static const struct request_events events = {
	    .answered = on_answered, .room = on_room};

	requests_init(&s->requests, s->slots->duplicates, &events, s);
	ev_timer_init(&s->worker.restart, on_restart, 0, 0);
	s->worker.restart.data = s;
}

void
worker_init(void *slots)
{
	slots_init(slots, make_slot);
}
