/*
 * The modules of mq-publish: the command line, the way to the server and what became of
 * the messages, and messages themselves.
 */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "shared/options.h"

/* --- options ------------------------------------------------------------ */

struct attachment {
	const char *name, *path;
};

/* The files of --attach, which go to the server before their message does.  Starts
 * zeroed. */
struct attachments {
	struct attachment *list;
	size_t n;
	/* Set when they are sent. */
	struct mq_attach set;
	char id[MQ_ID_LEN + 1]; /* of the message; empty: not known yet */
};

struct options {
	struct mq_shared shared;
	const char *queue;
	char **payloads; /* the operands behind the queue */
	int count;
	enum mq_framing framing;
	const char *at;	  /* --at as it was given */
	int64_t delay_ms; /* -1: not given */
	int64_t wait_ms;  /* at most; -1: for ever; NO_WAIT of options.c */
	long tick;	  /* to set the queue's clock to; -1: no */
	struct mq_attributes attributes; /* of the queue, if it is made */
	bool durable;
	bool http; /* the message comes as a request */
	struct mq_names hosts;
	struct attachments attachments;
	bool raw;	/* messages have no header */
	bool ids, wait; /* somebody asks for their ids, or for their ends */
	bool awaited;	/* or may ask for their ends later */
	bool notes;	/* somebody reads notes */
	struct mq_envelope headers;
	int64_t expires_ms;	  /* after they are ready; 0: never */
	struct mq_publishing how; /* they go out; when is not final yet */
};

/* Reads the options; ends with exit 64 when they are wrong. */
void options_parse(struct options *, int argc, char *argv[]);
/* --http: receives a request, one POST.  Returns in a child process, with what its headers
 * say in the options and its body on stdin; the program itself answers and ends. */
void options_serve(struct options *);
/* Checks what is not clear before the layout is known. */
void options_use_layout(struct options *, const struct mq_server *);
/* When the messages will be ready, if it is now_ms.  A time that is over is none: any
 * consumer sees such messages.  If it is so for a minute, that is said, unless quiet; in
 * words, it ends the program with 64. */
struct mq_when options_when(const struct options *, int64_t now_ms);
void options_free(struct options *);

/* --- transport ---------------------------------------------------------- */

/*
 * When batches are sent and waited for, and when a lost connection is made again.  And their
 * outcome: counts, and ids of the accepted ones (with --durable once their messages are
 * safe), with a report when the program ends, here if the server is lost for good.
 */

struct transport {
	/* The caller's, set before transport_begin(). */
	struct options *opt;
	/* And before the first message. */
	struct mq_publishing how; /* the next batch goes out */
	/* The module's; they start zeroed. */
	struct mq_redis redis;
	struct mq_publisher publisher;
	int64_t clock_us; /* the server's clock minus the steady one */
	/* When the connection was lost first since the last answer or rest,
	 * CLOCK_BOOTTIME; 0: it was not. */
	int64_t lost_ms;
	int64_t pause_ms; /* the next one */
	/* The outcome. */
	unsigned long count[MQ_PUBLISHED_TOO_LONG + 1]; /* by their verdict */
	/* Some were refused; what is accepted now is behind them. */
	bool gap;
	bool told; /* each record that was too long */
	unsigned long behind;
	struct mq_buf ids; /* of the accepted, MQ_ID_LEN each, with --wait */
	/* With --durable only: */
	struct mq_durable promise;
	char where[48];	    /* in words: " on disk and 2 replicas" */
	unsigned long safe; /* of those accepted */
	bool unsure;	    /* there are others, or duplicates of others */
	bool moved;	    /* the promise is that of another server */
	struct mq_buf held; /* ids that are printed when their messages are */
};

/* Opens the connection, which waits in transport_wait() from then on.  With --durable,
 * finds out when messages will be safe, before anything is written.  Finds out whether the
 * queue can be used.  Ends the program if all this is not so, or nobody knows. */
void transport_begin(struct transport *, struct mq_server *);
void transport_free(struct transport *);

/* As interrupt_wait(), but a signal ends the program.  False: the time is over. */
bool transport_wait(void *transport, int fd, int64_t ms);

/* Connects again, as often as it takes; *pause_ms is the next pause.  False when that was
 * not possible until then, CLOCK_BOOTTIME; -1 is never. */
bool transport_reconnect(
    struct transport *, int64_t until_ms, int64_t *pause_ms);

/* Says how many messages were accepted, and of how many under way nobody knows. */
void outcome_end(struct transport *, int status) __attribute__((noreturn));
/* Ends likewise, by the signal that has come. */
void outcome_interrupt(struct transport *) __attribute__((noreturn));
/* All is done: says what is needed, and returns the exit status. */
int outcome_finish(struct transport *);

/* Messages become batches, which are sent when they are full, or on demand.  A refusal
 * of the server ends the program, once all that is under way is answered. */

/* How the messages that follow are published; sends those before them. */
void batch_set(struct transport *, struct mq_when, bool special);

/* Adds a message.  unique makes it one of its own among the delayed, even when its id,
 * which -i prints, came with it and may come again. */
void batch_add(struct transport *, const char unique[MQ_ID_LEN + 1],
    const char *id, const struct mq_buf *header, const char *payload, size_t n);

/* Sends what is there, and waits until the server has confirmed everything; and
 * until all of it is safe, if it needs to be. */
void batch_flush(struct transport *);
void batch_settle(struct transport *);

/* Settles, says why no more is published, and ends the program with a report. */
void batch_end(struct transport *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/* --- messages ------------------------------------------------------------- */

/* Brings the attachments to the server, and then publishes the payloads, or, without any,
 * the messages on standard input to its end.  Ends the program, with what came before
 * published, if a message makes no sense, or something cannot be read.  The attachments are
 * removed if their message is refused. */
void publish_messages(struct transport *);

/* --- wait --------------------------------------------------------------- */

/* --wait: until the messages that were accepted have come to their end.  Prints how each
 * has ended, and returns the exit status.  The server keeps what became of them for a
 * while: none is missed that ended before we asked, or while the connection was lost. */
int wait_for_endings(struct transport *);

#endif
