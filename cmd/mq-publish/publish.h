/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The modules of mq-publish: options, transport to the server with the outcome, messages,
 * and the wait for their ends.
 */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "shared/options.h"

/* --- options ------------------------------------------------------------ */

struct attachment {
	const char *name, *path;
};

/* The files of --attach, which are sent before their message.  Starts zeroed. */
struct attachments {
	struct attachment *list;
	size_t n;
	/* Set while the files are sent. */
	struct mq_attach set;
	char id[MQ_ID_LEN + 1]; /* the message's; empty: not known yet */
};

struct options {
	struct mq_shared shared;
	const char *queue;
	char **payloads; /* the operands behind the queue */
	int count;
	enum mq_framing framing;
	const char *at;	  /* argument of --at */
	int64_t delay_ms; /* -1: not given */
	int64_t wait_ms;  /* at most; -1: for ever; or NO_WAIT of options.c */
	long tick;	  /* for the queue's clock; -1: not given */
	struct mq_attributes attributes; /* for a new queue */
	bool durable;
	bool http; /* the message comes as a request */
	size_t
	    spool_max; /* bytes on this host while the server is away; 0: none */
	bool flush;    /* only publish those */
	struct mq_names hosts;
	struct attachments attachments;
	bool raw;	/* publish without a header */
	bool ids, wait; /* print ids, wait for ends */
	bool awaited;	/* keep the ends for a later question, too */
	bool notes;	/* standard error is a terminal, and not --quiet */
	struct mq_envelope headers;
	int64_t expires_ms;	  /* after the message is ready; 0: never */
	struct mq_publishing how; /* `when` is set by options_when() */
};

/* Reads the options; ends with exit 64 when they are wrong. */
void options_parse(struct options *, int argc, char *argv[]);
/* --http: receives a request, one POST.  Returns in a child process, with the options of its
 * headers and its body on stdin; the program itself responds and ends. */
void options_serve(struct options *);
/* Checks the options that depend on the layout. */
void options_use_layout(struct options *, const struct mq_server *);
/* The time when the messages will be ready, if it is now_ms.  A time that is over becomes
 * none, so that any consumer sees the messages.  If it has been over for a minute, a note
 * says so, unless quiet; a time in words then ends the program with 64. */
struct mq_when options_when(const struct options *, int64_t now_ms);
void options_free(struct options *);

struct transport;
struct spool;
struct spool_head;

/* --- transport ---------------------------------------------------------- */

/*
 * Sends batches, waits for their verdicts, and connects again.  Counts the outcome, prints the
 * ids of accepted messages (with --durable once these are safe), and reports when the
 * program ends, here if the server is lost for good.
 */

struct transport {
	/* Set by the caller before transport_begin(). */
	struct options *opt;
	/* Set by the caller before the first message. */
	struct mq_publishing how; /* for the next batch */
	/* Set by the module; start zeroed. */
	struct mq_redis redis;
	struct mq_publisher publisher;
	int64_t clock_us; /* the server's clock minus the steady one */
	/* Steady time of the first loss since the last verdict; 0: none. */
	int64_t lost_ms;
	int64_t pause_ms; /* before the next attempt to connect */
	/* The outcome. */
	unsigned long count[MQ_PUBLISHED_REPLACED + 1]; /* by verdict */
	bool gap;	      /* a message was refused before later ones */
	unsigned long behind; /* accepted after a refused one */
	bool reported;	      /* each record that was too long */
	bool drawn;	      /* a line of progress is on the terminal */
	struct mq_buf ids;    /* accepted ones, MQ_ID_LEN each, with --wait */
	/* With --spool and --flush only: */
	struct spool *spool;
	bool away; /* the server is: messages go to this host's disk */
	unsigned long spooled; /* messages on disk */
	/* With --durable only: */
	struct mq_durable promise;
	char where[48];		  /* in words: " on disk and 2 replicas" */
	unsigned long safe;	  /* accepted messages that are safe */
	bool unsafe;		  /* some message may not be safe yet */
	bool new_server;	  /* the promise is that of a former server */
	struct mq_buf unsafe_ids; /* printed once their messages are safe */
};

/* Opens the connection, which waits in transport_wait() from then on.  Finds out, before
 * anything is written, what makes messages safe (--durable), and whether the queue can be
 * used; if not, ends the program. */
void transport_begin(struct transport *, struct mq_server *);
/* Instead: all messages go to disk. */
void transport_begin_away(struct transport *);
void transport_free(struct transport *);

/* interrupt_wait(), but a signal ends the program.  False: the time is over. */
bool transport_wait(void *transport, int fd, int64_t ms);

/* Connects again, with as many attempts as needed; *pause_ms is the next pause.  False: not
 * connected until this steady time (-1: no limit). */
bool transport_reconnect(
    struct transport *, int64_t until_ms, int64_t *pause_ms);

/* Draws a line of progress on the terminal, or erases it (NULL), before anything is said. */
void outcome_progress(struct transport *, const char *text, double part);
/* Reports how many messages were accepted, and how many may have been, and exits. */
void outcome_end(struct transport *, int status) __attribute__((noreturn));
/* Reports like outcome_end(), and ends by the signal that was caught. */
void outcome_interrupt(struct transport *) __attribute__((noreturn));
/* After the last message: reports if needed, and returns the exit status. */
int outcome_finish(struct transport *);

/* Messages become batches, which are sent when they are full, or on demand.  If the server
 * refuses one, the program ends, after the replies to all others under way. */

/* Sets how later messages are published, and sends those before. */
void batch_set(struct transport *, struct mq_when, bool has_options);

/* Adds a message.  unique tells delayed messages with equal ids apart: an id, which -i
 * prints, may come with its message, and come again. */
void batch_add(struct transport *, const char unique[MQ_ID_LEN + 1],
    const char *id, const struct mq_buf *header, const char *payload, size_t n);

/* Sends the last batch. */
void batch_cut(struct transport *);
/* batch_cut(), and waits for all verdicts. */
void batch_flush(struct transport *);
/* batch_flush(), and with --durable waits until all messages are safe. */
void batch_settle(struct transport *);

/* Settles, prints the reason, and ends the program with a report. */
void batch_end(struct transport *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

/* --- spool ---------------------------------------------------------------- */

/* Before transport_begin(), for --spool. */
void spool_prepare(struct transport *, const struct mq_server *);
void spool_free(struct transport *);
/* Notes a message of the next batch, in case it must go to disk. */
void spool_copy(struct transport *, const char unique[MQ_ID_LEN + 1],
    const char *id, const struct mq_buf *header, const char *payload, size_t n);
/* Notes that the message of this number, from 1, has its verdict; dropped: without a mark. */
void spool_done(struct transport *, long long number, bool dropped);
/* Notes that the server cannot take the batch with the message of this number. */
void spool_refuse(struct transport *, long long number);
/* The server is away: messages without a verdict go to disk, and later ones follow.  1; 0: they
 * cannot; -1 with errno. */
int spool_take_over(struct transport *);
/* Whether the next batch has `count` messages, or `bytes`. */
bool spool_is_full(const struct transport *, int count, size_t bytes);
/* Writes the next batch: 0, or -1 with errno. */
int spool_cut(struct transport *);
/* Has all that was written on disk: 0, or -1 with errno. */
int spool_sync(struct transport *);

/* Instead of spool_prepare(), for --flush of the file of this name, which stays the caller's.
 * *flushed grows by the messages that the server gets. */
void spool_prepare_flush(struct transport *, const char *name,
    const struct spool_head *, unsigned long *flushed);
/* Notes an attempt, before messages.  head_ms: begun_ms in the file.  0; 1: its marks may be gone, so
 * it is set aside; -1 with errno. */
int spool_attempt(struct transport *, int64_t head_ms);
/* Takes the verdict on the message of this number, from 1, of the publisher. */
void spool_judge(struct transport *, enum mq_published, long long number);
/* Once all that was sent has been answered, keeps what is left of a file: what the server refuses in
 * a file of its own, and what it has yet to take in the place of the file.  Then the marks are not
 * needed any more.  0, or -1 with errno. */
int spool_keep_left(struct transport *);
/* Notes why a file was not published, before the program ends. */
void spool_note(struct transport *, int status, const char *why);

/* --- flush ---------------------------------------------------------------- */

/* Publishes what waits for this server, whatever holds up a queue: the exit status. */
int flush_spool(struct options *, struct mq_server *);
/* flush_spool() before new messages: whether those must go to disk, as the server is away, or behind
 * others of their queue. */
bool flush_first(struct options *, struct mq_server *);

/* --- messages ------------------------------------------------------------- */

/* Sends the attachments, then publishes the payloads, or, without any, the messages on
 * standard input.  If a message makes no sense, or cannot be read, ends the program, with
 * those before published.  If a message is refused, its attachments are removed. */
void publish_messages(struct transport *);

/* --- wait --------------------------------------------------------------- */

/* --wait: waits until the accepted messages have ended, prints how, and returns the exit
 * status.  The server keeps results for a while, so that none is missed that came before the
 * question, or while the connection was lost. */
int wait_for_endings(struct transport *);

#endif
