/*
 * mq-consume inside.  One libev loop, which nothing here may block:
 *
 *	consume-link.c	  the connections, joining and leaving
 *	consume-lease.c	  the heartbeat, and what follows when it failed
 *	consume-claim.c	  getting messages
 *	consume-changed.c waking up for them
 *	consume-message.c the states of a message
 *	consume-twins.c	  those with the same bytes
 *	consume-open.c	  taking one apart, if it still may start
 *	consume-slot.c	  where scripts run, and what they have in hand
 *	consume-run.c	  one process per message, or per batch of them
 *	consume-batch.c	  collecting one
 *	consume-stream.c  workers that stay, and are fed
 *	consume-feed.c	  how they are
 *	consume-words.c	  what they say
 *	consume-worker.c  their time, and their end
 *	consume-start.c	  how it is started
 *	consume-verdict.c what follows from how it ended
 *	consume-print.c	  printing instead
 *	consume-pipe.c	  what the reader of that has taken
 *	consume-settle.c  telling the server what became of a message
 *	consume-acks.c	  many that are done at once
 *	consume-result.c  and those who wait for its end
 *	consume-pause.c	  queues that are paused
 *	consume-count.c	  counting what was done
 *	consume-pace.c	  not too fast
 *	consume-options.c what options say
 *	consume-operands.c what the names of queues say
 *	consume-running.c telling others what runs here
 *	consume-stop.c	  knowing when to end, and ending well
 *
 * A message is in exactly one state from its claim until its settlement is
 * confirmed, and the server keeps it in our unacked list all that time.
 */
#ifndef MQ_CONSUME_H
#define MQ_CONSUME_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>

#include "base/id.h"
#include "cleaning.h"
#include "drain.h"
#include "find.h"
#include "options.h"
#include "policy.h"
#include "process.h"
#include "requests.h"
#include "message/envelope.h"
#include "message/frame.h"
#include "message/history.h"
#include "message/result.h"
#include "message/verdict.h"
#include "process/children.h"
#include "process/worker.h"
#include "queue/consumer.h"
#include "queue/dup.h"
#include "queue/queue.h"
#include "redis/async.h"
#include "redis/fence.h"
#include "redis/server.h"
#include "redis/tracking.h"

/* So much waits for a worker that does not read, and then one message more. */
#define FEED_BYTES ((size_t)1 << 18)

#define TWIN_BUCKETS 1024

#define NAME_SIZE (TAG_MAX + 8) /* tag, '-', 6 characters, NUL */

enum state {
	STATE_HELD,    /* claimed, and not started */
	STATE_RUNNING, /* a script has it, or the output buffer */
	STATE_SETTLING /* its outcome is known; the server may not know yet */
};

struct message {
	TAILQ_ENTRY(message) link;
	TAILQ_ENTRY(message) hand; /* held: those of its queue; running: those
				    * of its slot, or that are printed */
	struct consumer *c;
	struct slot *slot;    /* running a command: where; NULL: nowhere */
	unsigned long number; /* of its claim */
	double since;	      /* of a batch: steady time of that */
	enum state state;
	int queue; /* index into the options' queues */
	const char *queue_name;
	char *element; /* as claimed; free() */
	size_t len;
	struct mq_envelope envelope; /* from the start of its run on */
	char id[MQ_ID_MAX + 1];
	long attempts;	    /* runs before this one */
	size_t start, end;  /* printing: its place in the output */
	bool seen;	    /* reconciling: the server has it, too */
	bool lost;	    /* the lease went: its outcome does not count */
	bool gone;	    /* somebody has deleted it: nor does it then */
	bool late;	    /* it may not start any more: it never did */
	bool awaited;	    /* somebody waits for its end */
	unsigned long sent; /* settling: number of its sending; 0: the server
			     * cannot know */
	bool in_flight;	    /* and has not answered yet */
	bool waits;	    /* settling: among those that wait for company */
	LIST_ENTRY(message) twins;
	uint64_t hash;
	bool twin; /* another one of its queue may have the same bytes */
	TAILQ_ENTRY(message) waiting;
	enum mq_outcome outcome;
	int64_t delay_ms;
	int64_t pause_ms;     /* settling: pause its queue for so long */
	struct mq_buf header; /* its new one; empty: unchanged */
	struct mq_buf result; /* as of result.h; empty: none yet */
	struct mq_buf news;   /* settling: to be said when the server has
			       * confirmed its outcome; empty: nothing */
};

TAILQ_HEAD(messages, message);
LIST_HEAD(twins, message);

/* What a worker that stays has still to read. */
struct feed {
	struct slot *s;
	int fd; /* our end of the pipe; -1: nobody reads, or there is no more */
	int other; /* its other end, once ours is closed; -1: not open */
	bool last; /* nothing more is to be put */
	bool deaf; /* nobody can read what is in the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* in all */
	size_t taken;	/* of these, the worker had read when we looked last */
	ev_io room;	/* the pipe takes more; while there is some */
};

/* One place where a script can run. */
struct slot {
	struct consumer *c;
	struct messages hand; /* what its script has, in order; empty: the slot
			       * is free, or its worker waits for more */
	int count;	      /* of them */
	size_t bytes;	      /* and of their elements */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* nothing in hand, and it does not rest: it is listed */
	pid_t pid;    /* 0: none */
	int verbs_fd;
	struct run_output *output;
	double started;
	int64_t started_ms; /* unix time; 0: nobody has asked yet */
	bool timed_out;
	bool ended;    /* we killed it to stop: give its message back */
	int failures;  /* in a row */
	ev_timer rest; /* after them */
	struct mq_child child;
	ev_io verbs_io;
	ev_timer patience; /* until its pipes are watched */
	ev_timer timer;	   /* --timeout, then the KILL after the TERM */
	struct mq_verbs verbs;

	struct requests requests;
	int status;

	struct mq_verb_one *ones; /* a batch: what was said of each */

	/* consume-worker.c: one that stays */
	struct feed feed;
	struct mq_buf said; /* verbs that are not taken apart yet */
	double heard;	    /* when we listened last */
	bool silence_told;  /* it has not said anything since */
	bool urged;	    /* it has taken too long, and has had a TERM */
	const struct message *late; /* for this one; NULL: for none */
	bool mute;		    /* its descriptor 3 has ended */
	const char *broken; /* how it broke the protocol; NULL: it did not */
	long judged;	    /* messages in its life */
	double pace_s;	    /* smoothed time for one; 0: unknown */
	double wait_s;	    /* before the next is started; 0: none */
	ev_timer restart;
};

enum link_state { LINK_DOWN, LINK_FINDING, LINK_OPENING, LINK_UP };

/* One of the queues that are consumed. */
struct queue {
	bool more;  /* there may be more to claim than the last claim has got */
	double due; /* loop time when there may be more to claim, or 0 */
	bool seen;  /* a claim has been answered */
	long long received;	 /* claimed under this name of the connection */
	bool paused;		 /* when we looked last */
	bool there;		 /* when we looked last */
	int pausing;		 /* pauses of our own that are not confirmed */
	int company;		 /* acks that wait */
	struct messages waiting; /* claimed and not started, in order */
	int held;		 /* so many */
	int64_t tick;		 /* of its clock, when we looked last */
	struct mq_counts counts; /* that the server has not been told */
	double run_ms;		 /* what is missing in them: less than 1 */
};

struct consumer {
	struct ev_loop *loop;
	const struct executor *executor;
	int batch_size; /* messages for one script */
	ev_prepare turn;
	bool marked; /* something has happened since the last turn */
	const struct options *opt;
	const struct mq_layout *layout;
	struct mq_server server;
	struct mq_worker_setup setup;
	struct mq_idgen ids;
	struct policy policy;
	struct process process;

	/* consume-link.c */
	enum link_state link;
	struct mq_async main; /* commands */
	struct mq_async wake; /* news of changed keys */
	struct mq_tracking tracking;
	struct mq_fence fence;
	struct mq_consumer self;
	char connection[NAME_SIZE], name[NAME_SIZE];
	char former[NAME_SIZE]; /* connection, whose lease was lost */
	bool make;		/* those queues that there are not */
	bool joined;		/* under this connection name */
	bool ever_joined;	/* under any */
	int answers_wanted;	/* joining: until the link is up */
	int64_t lease_ms;	/* as the server said last */
	double lease_sent; /* boot time when the last good renewal went out */
	double opened_at;
	double moved_at;     /* boot time when anything came last */
	double renewal_sent; /* boot time of the one without answer; 0: none */
	double retry_s;
	char complaint[256]; /* what the server refused last; empty: nothing */
	ev_timer tick, retry;

	/* consume-claim.c */
	struct queue *queues;
	struct named *by_name; /* the queues, sorted; see consume-changed.c */
	bool claiming;	       /* a claim is under way */
	bool in_pass;	       /* from the first queue to the last */
	int claim_queue, claim_max;
	bool claim_empty; /* all the queues that the pass came to had no more */
	bool look_wanted; /* the next pass is to look for pauses, too */
	bool looking;	  /* this one does */
	int64_t server_ahead_ms; /* its unix time less our boot time */
	ev_timer due_timer;
	ev_timer look_timer; /* see consume-pause.c */
	unsigned long moves; /* claims and settlements answered so far */

	ev_timer settle_timer; /* for settlements that wait for company */

	struct messages messages; /* in the order of their claims */
	unsigned long claimed;	  /* so many so far */
	unsigned long sendings;	  /* settlements sent so far */
	struct twins twins[TWIN_BUCKETS];
	struct messages company; /* acks that wait for each other */
	int company_count;
	/* Ours are in the order in which the server has them; not when an
	 * answer was lost and then found out, or a settlement refused. */
	bool in_order;
	int held, running, settling, in_flight;
	size_t held_bytes;

	/* consume-run.c */
	struct slot *slots;
	TAILQ_HEAD(slots, slot) free_slots; /* the last that was busy first */
	int busy; /* of them: have a script, or what it asked for is waited for */
	double run_s;	 /* smoothed duration of a run; 0: unknown */
	double last_end; /* loop time when a slot became free last */
	bool starved;	 /* no process could be started: wait for a tick */
	bool starving;	 /* nor has any since: this has been told */

	struct duplicates duplicates;

	ev_timer batch_timer; /* until some have waited long enough */

	int resting; /* slots */

	/* consume-print.c */
	struct messages printed; /* those that are running, in order */
	struct mq_buf out;
	size_t out_start;   /* bytes of out already written */
	size_t out_written; /* bytes written in all */
	size_t out_read;    /* of these, those that have arrived */
	long out_count;	    /* messages that have */
	bool out_lost;	    /* nothing more can be written */
	ev_io out_io;

	/* consume-pipe.c */
	int out_fd;
	bool out_whole;	    /* writes to it do not block, however long */
	bool out_terminal;  /* it must not be driven by what it shows */
	bool out_piped;	    /* what its reader has taken can be told */
	ev_io out_gone;	    /* there is no reader any more */
	ev_timer out_timer; /* until it is looked what has been taken */
	double out_look_s;  /* for so long */

	bool leaving;

	struct mq_children children;
	struct finder finder;
	struct cleaning cleaning;
	struct drain drain;

	/* consume-count.c */
	struct mq_counts counts; /* of all queues, told */
	long returned;
	long pushed; /* that the server has not been told */
	bool count_refused;

	/* consume-running.c */
	struct mq_buf told; /* what runs here, as the server was told */
	bool told_well;	    /* and has confirmed, or will */
};

/* --- engine.c --- */
void engine_init(struct consumer *);
/* Something has happened: the engine decides before the loop sleeps again. */
void engine_mark(struct consumer *);
/* A message came or went. */
void engine_active(struct consumer *);
/* Nothing more is done; the program ends. */
void engine_end(struct consumer *);
/* Once a second, while the link is up. */
void engine_tick(struct consumer *);

/* --- consume-link.c --- */
void link_start(struct consumer *);
/* The server has found our lease gone: joins under a new name. */
void link_rejoin(struct consumer *);
/* Drops the connections, says why, and connects again later. */
void link_reset(struct consumer *, const char *why);
/* Says what the server refused, once until something works again. */
void link_complain(struct consumer *, const char *error);
void link_leave(struct consumer *);
void link_end(struct consumer *);

/* --- consume-lease.c --- */
/*
 * False when the lease may have lapsed, after doing what follows from that:
 * no message that was ours is, then.  To be asked before anything is settled
 * that may have taken its time.
 */
bool lease_held(struct consumer *);
/* Takes a name that nobody has had. */
void lease_new_name(struct consumer *);
/* Nothing that was ours is, any more; says why, and takes a new name. */
void lease_lost(struct consumer *, const char *why);
/* Once a second: renews, and gives the link up when nothing is answered. */
void lease_keep(struct consumer *);
/* Compares how many messages the server holds for us with what we have. */
void lease_audit(struct consumer *);

/* --- consume-message.c --- */
/* Takes the element, which is freed with it. */
struct message *message_new(
    struct consumer *, int queue, char *element, size_t len);
/* Forgets a message; the server is not told. */
void message_drop(struct message *);
void message_state(struct message *, enum state);
/* It is held again, as if it had not been started; or dropped, if lost. */
void message_unstart(struct message *);
/* What is to be said of it when its outcome stands. */
void message_note(struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* mq_say() with "QUEUE: ID: " in front. */
void message_say(const struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends it, as the framing wants it. */
void message_frame(const struct message *, struct mq_buf *);

/* --- consume-twins.c --- */
/* A message that has come, or goes. */
void twins_add(struct message *);
void twins_remove(struct message *);
/* While reconciling, for a message that is not seen: an equal one that is seen,
 * although its settlement was sent (earlier, if both were) and no answer can
 * come any more.  Of several, the one that was sent first; NULL: none. */
struct message *twins_settled(const struct message *);

/* --- consume-claim.c --- */
void claim_init(struct consumer *);
/* Claims as much as there is room for. */
void claim_more(struct consumer *);
/* Some queues may have more now: look again. */
void claim_wake(struct consumer *);
/* The same, and look whether what we hold has been paused. */
void claim_look(struct consumer *);
/* Whether every queue had nothing when it was asked last, and none is being
 * asked. */
bool claim_nothing(const struct consumer *);
/* Whether a queue is being asked, or is going to be at once. */
bool claim_comes(const struct consumer *, int queue);

/* --- consume-slot.c --- */
/* The message that its script is on, of a batch the first; NULL: none. */
static inline struct message *
slot_on(const struct slot *s)
{
	return TAILQ_FIRST(&s->hand);
}
/* Puts a message into its hand, behind those it has. */
void slot_take(struct slot *, struct message *);
/* Takes one out, if it is in any. */
void slot_release(struct message *);
/* Moves all to another list. */
void slot_empty(struct slot *, struct messages *);
/* A dup with this text, as of verb.h; arg is the slot. */
void slot_dup(void *arg, int which, const char *text);
/* Whether a verdict is a success, or a failure; it may be neither. */
bool slot_is_good(enum mq_verdict_kind);
bool slot_is_bad(enum mq_verdict_kind);
/* The run of a slot was either: it may have to rest now. */
void slot_judged(struct slot *, bool good);
/* It rests now, or no more, or is new. */
void slot_changed(struct slot *);
/* One that has nothing to do; NULL: none. */
struct slot *slot_free(struct consumer *);
/* Whether anything could be started now. */
bool slot_may_start(const struct consumer *);
/* Slots that could start now; may be below 0. */
long slot_idle(const struct consumer *);
/* How many messages are worth having ahead of them. */
int slot_ahead(const struct consumer *);
/*
 * The runs were short when those held were claimed, and now no slot is idle:
 * somebody else may have time for them.  True: they go back, since none has
 * been for too long.
 */
bool slot_return_stale(struct consumer *, bool idle);
/* For executors that have nothing to do then. */
void slot_take_back(struct consumer *, int queue);
bool slot_owes(const struct consumer *);
void slot_stop(struct consumer *);
/* One of them is to start with a message that may be the end of us: what no
 * other can take at once goes back, and must not be claimed with it. */
void slot_stand_alone(struct consumer *);
/* Sends a signal to the process groups of all scripts, whose messages go back
 * if they are not done. */
void slot_kill(struct consumer *, int sig);
/* Kills the script that has the message, and maybe others, which go back;
 * false: none does. */
bool slot_kill_one(const struct message *);

/* --- consume-run.c --- */
void run_init(struct consumer *);
void run_end(struct consumer *);
/* What the requests of a run that ends report; their arg is the slot. */
extern const struct request_events run_requests;
/* The message that is the next to be started; NULL: none may be. */
struct message *run_next(const struct consumer *);
/* Gives a held message to a slot; false: it cannot run, and was settled. */
bool run_take(struct slot *, struct message *);
/* Starts a script for what is in a slot's hand, with n bytes as its input. */
void run_begin(struct slot *, const char *input, size_t n);

/* --- consume-changed.c --- */
void changed_init(struct consumer *);
/* Any of the queues may have more to claim. */
void changed_all(struct consumer *);
/* So may that of a key that has changed.  False: it is none of ours. */
bool changed_key(struct consumer *, const char *key, size_t len);
/* So may those that were to have more by now. */
void changed_due(struct consumer *);
void changed_end(struct consumer *);

/* --- consume-batch.c --- */
void batch_init(struct consumer *);
/* What was said of each is not needed any more. */
void batch_forget(struct slot *);

/* --- consume-feed.c --- */
/* Appends a message, framed, for a script that is to tell it from others.
 * False: its payload cannot be, and it is rejected. */
bool feed_frame(struct message *, struct mq_buf *);
/* Opens a pipe, and returns the end of it that is the worker's; -1 with errno.
 */
int feed_open(struct slot *);
void feed_free(struct feed *);
/* Whether it can take more. */
bool feed_wants(const struct feed *);
/* Puts a message behind the others, to be written by feed_flush(), or later.
 * False: its payload cannot be framed, and it is rejected. */
bool feed_put(struct feed *, struct message *);
void feed_flush(struct feed *);
/* Nothing more comes: the worker is to find the end, behind what it has. */
void feed_last(struct feed *);
/* Nobody reads any more. */
void feed_cut(struct feed *);
/* Finds out whether that is so. */
void feed_check(struct feed *);
/* Finds out how much has been read. */
void feed_look(struct feed *);
/* Whether any of a message, or all of it, had been read when we looked. */
bool feed_begun(const struct feed *, const struct message *);
bool feed_whole(const struct feed *, const struct message *);
/* Those of a hand that nobody can have read any of, or will, are held again. */
void feed_take_back(struct feed *, struct messages *hand);

/* --- consume-words.c --- */
/* Hears what a worker says from now on. */
void words_watch(struct slot *);
/* Once a second: says once of a silence that is long. */
void words_tick(struct slot *);
/* It is dead: reads what it has said. */
void words_last(struct slot *);
/* The message that it has judged has no dups left; or it is dead, and had
 * some, or none. */
void words_over(struct slot *);
/* What the requests of a worker that stays report; their arg is the slot. */
extern const struct request_events words_requests;

/* --- consume-worker.c --- */
void worker_init(struct consumer *);
/* It has been started. */
void worker_watch(struct slot *);
/* The time for the message that it is on begins now. */
void worker_next(struct slot *);
/* It is not waited for, but for its dups. */
void worker_waits(struct slot *);
/* It gets no more, and is to end when it has done what it has. */
void worker_last(struct slot *);
/* Whether it gets no more, and is to end soon. */
bool worker_is_leaving(const struct slot *);
/* It is killed for that. */
void worker_broke(struct slot *, const char *how);
/* Its descriptor 3 has ended. */
void worker_is_mute(struct slot *);
/* Nobody reads its standard input any more. */
void worker_is_deaf(struct slot *);
/* What follows from a verdict on a message that is not in its hand any more. */
void worker_carry_out(
    struct slot *, struct message *, const struct mq_verdict *);
/* It is dead, and everything it has said has been heard. */
void worker_bury(struct slot *);

/* --- consume-open.c --- */
/*
 * Takes the envelope apart and sets id and attempts.  A message with a bad
 * header, or one whose time or last tick is over, is rejected here, and false
 * returned.
 */
bool message_open(struct message *);
/* What a claim or a look said of the time and the tick. */
void message_clock(struct consumer *, int queue, const struct mq_claimed *);

/* --- consume-start.c --- */
/* Starts a script in a slot for what it has in hand.  It gets the descriptor
 * input, which is closed here; -1: none could be opened, and errno says why.
 * False: it could not be started, and what follows from that for the messages
 * has been done. */
bool start_script(struct slot *, int input);

/* --- consume-policy.c --- */
/* Asks for the server's maxmemory-policy, once, and says what is wrong with it. */
void eviction_ask(struct consumer *);

/* --- consume-verdict.c --- */
/* errors is the end of what the run has written. */
void verdict_carry_out(
    struct message *, const struct mq_verdict *, const char *errors);
/* Rejects a message whose script could not be started: records the attempt
 * and the reason, and says so. */
void verdict_reject(struct message *, const char *reason);
/* It is too long for the queue that it was to be pushed to. */
void verdict_too_long(struct message *);

/* --- consume-print.c --- */
void print_init(struct consumer *);
/* The reader may have taken something. */
void print_go_on(struct consumer *);
/* It takes no more. */
void print_reader_gone(struct consumer *);

/* --- consume-pipe.c --- */
void pipe_init(struct consumer *);
/* Finds out how much of what was written has arrived. */
void pipe_look(struct consumer *);
/* Looks again later, if there is a need for it. */
void pipe_watch(struct consumer *);
/* Nothing is written or looked at any more. */
void pipe_end(struct consumer *);

/* --- consume-settle.c --- */
void settle(struct message *, enum mq_outcome, int64_t delay_ms);
/* Sends what the server has not been told, or has not confirmed. */
void settle_unsent(struct consumer *);
/* Sends one; its answer is taken by settle_answered(). */
void settle_send(struct message *);
/* Its settlement goes out now. */
void settle_sent(struct message *);
/* The answer to what was sent about it; NULL: it will not come. */
void settle_answered(
    struct message *, const struct mq_answer *, enum mq_settled);
/* Nothing has been done with it: sends it once more, alone. */
void settle_again(struct message *);

/* --- consume-acks.c --- */
void acks_init(struct consumer *);
/* Waits for others, or goes out with those that have. */
void acks_wait(struct message *);
/* Acks wait for no other one now. */
void acks_send(struct consumer *);
/* It waits for nothing any more, as it is sent or dropped. */
void acks_forget(struct message *);

/* Gives all messages that have not been started back. */
void settle_held(struct consumer *);
/* Those of one queue. */
void settle_held_of(struct consumer *, int queue);
/* Compares one queue's messages with what the server holds for us, of which it
 * keeps those that are new. */
void settle_reconcile(struct consumer *, int queue, struct mq_held *);
/* The server has given our messages away: nothing done with them counts. */
void settle_lost(struct consumer *);

/* --- consume-result.c --- */
/* How a run that ends its message went; f may be NULL. */
void result_note(struct message *, enum mq_end, const struct mq_failure *f);
/* Whether its end is to be told. */
bool result_wanted(const struct message *);
/* What to tell with a settlement, in *out; NULL: nothing.  It is the
 * message's. */
const struct mq_result *result_of(
    struct message *, const struct mq_settlement *, struct mq_result *out);

/* --- consume-pause.c --- */
void pause_init(struct consumer *);
/* Something has changed, maybe a pause. */
void pause_look_soon(struct consumer *);
/* A look has found a queue paused, or not. */
void pause_seen(struct consumer *, int queue, bool paused);
/* Pauses the queue of a message that is being settled, if it asks for that. */
void pause_send(const struct message *);
/* Whether a look can find out something that matters. */
bool pause_matters(const struct consumer *, int queue);

/* --- consume-count.c --- */
void count_run(struct consumer *, int queue, double seconds);
/* The server has confirmed its outcome. */
void count_settled(const struct message *);
void count_lost(const struct message *);
/* Once a second, and before leaving: tells the server. */
void count_tell(struct consumer *);
/* Says what was done, when it is asked for or bad. */
void count_summary(struct consumer *);

/* --- consume-running.c --- */
/* Once a second: tells of the runs that are long, when that has changed. */
void running_tell(struct consumer *);
/* The server may have forgotten what it was told. */
void running_untold(struct consumer *);
void running_end(struct consumer *);

#endif
