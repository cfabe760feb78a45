/*
 * The engine inside.  Only engine.c, turn.c and the files of what the modules
 * report know it.
 */
#ifndef MQ_CONSUME_ENGINE_PARTS_H
#define MQ_CONSUME_ENGINE_PARTS_H

#include "comparison.h"
#include "executor/executor.h"
#include "executor/printer.h"
#include "executor/slots.h"
#include "outbox/outbox.h"
#include "outbox/running.h"
#include "policy.h"
#include "session/cleaning.h"
#include "session/drain.h"
#include "session/session.h"
#include "verdict.h"

struct engine {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct mq_idgen ids;
	struct mq_children children;
	struct process process;
	struct policy policy;
	struct session session;
	struct inbox inbox;
	struct counters counters;
	struct result_rules results;
	struct outbox outbox;
	struct verdict_rules verdicts;
	struct duplicates duplicates;
	struct slots slots;
	struct printer printer;
	struct executor executor;
	struct comparison comparison;
	struct cleaning cleaning;
	struct drain drain;
	struct running_report running;
	ev_prepare turn;
	bool marked; /* something has happened since the last turn */
	bool ending; /* nothing more is decided */
};

/* Something has happened: the engine decides before the loop sleeps again. */
void engine_mark(void *engine);
/* A message came or went. */
void engine_note_activity(struct engine *);
/* What is to become of a message that is in no other hands. */
void engine_settle(struct engine *, struct message *, enum mq_outcome);
/* What is held of a queue, or of all (-1), goes back. */
void engine_give_back(struct engine *, int queue);
/* Whether no message is in any hands, and none is coming. */
bool engine_has_nothing(const struct engine *);
/* Nothing more is decided; the loop ends. */
void engine_end(struct engine *);

/* Decides what is next, after all callbacks of a turn of the loop: they only
 * noted what happened. */
void engine_take_turn(struct engine *);

extern const struct session_events engine_session_events;
extern const struct inbox_events engine_inbox_events;
extern const struct outbox_events engine_outbox_events;
extern const struct slots_events engine_slots_events;
extern const struct printer_events engine_printer_events;
extern const struct policy_events engine_policy_events;

/* The comparison reports a message that somebody else has now; a look for --drain
 * that the queues have nothing more. */
void engine_on_taken(void *engine, struct message *);
void engine_on_drained(void *engine);
bool engine_is_online(void *engine);

#endif
