/*
 * The inside of the engine, for engine*.c, turn.c and *-events.c only.
 */
#ifndef MQ_CONSUME_ENGINE_PARTS_H
#define MQ_CONSUME_ENGINE_PARTS_H

#include "bar.h"
#include "comparison.h"
#include "mq-consume/executor/executor.h"
#include "mq-consume/outbox/outbox.h"
#include "mq-consume/process/process.h"
#include "mq-consume/session/session.h"
#include "policy.h"
#include "rules.h"
#include "service.h"
#include "verdict.h"

struct engine {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct service *service;
	struct mq_idgen ids;
	struct mq_children children;
	struct process process;
	struct joblog joblog;
	struct policy policy;
	struct session session;
	struct inbox inbox;
	struct counters counters;
	struct result_rules results;
	struct outbox outbox;
	struct verdict_rules verdicts;
	struct duplicates duplicates;
	struct attachments attachments;
	struct slots slots;
	struct printer printer;
	struct executor executor;
	struct comparison comparison;
	struct cleaning cleaning;
	struct transfers transfers;
	struct drain drain;
	struct survey survey;
	struct bar bar;
	struct running_report running;
	ev_prepare turn;
	bool marked;	    /* something has happened since the last turn */
	bool lacks_room;    /* since the last tick, the server had no room */
	double lacks_since; /* nor before; steady time; 0: it had */
	bool ending;	    /* nothing more is decided */
};

/* Makes the engine decide before the loop sleeps again. */
void engine_mark(void *engine);
/* Notes that a message came or went. */
void engine_note_activity(void *engine);
/* Settles a message that neither inbox nor executor has any more. */
void engine_settle(struct engine *, struct message *, enum mq_outcome);
/* Gives back the messages held of a queue. */
void engine_give_back(struct engine *, int queue);
/* Whether no module has a message, and no claim is under way. */
bool engine_has_nothing(const struct engine *);
/* Ends the loop; nothing more is decided. */
void engine_end(void *engine);

/* Decides what is next, after all callbacks of a turn of the loop. */
void engine_take_turn(struct engine *);

extern const struct session_events engine_session_events;
extern const struct inbox_events engine_inbox_events;
extern const struct outbox_events engine_outbox_events;
extern const struct slots_events engine_slots_events;
extern const struct printer_events engine_printer_events;
extern const struct policy_events engine_policy_events;

/* Events of the comparison and of --drain. */
void engine_on_taken(void *engine, struct message *);
void engine_on_drained(void *engine);
bool engine_is_online(void *engine);
void engine_on_counted(void *engine, long long ready);

/* What has been done since the start, and how much is in our hands. */
struct mq_counts engine_totals(void *engine);
int engine_in_hand(const struct engine *);

#endif
