/*
 * The command line of mq-publish.  Only main() knows all options; each module has those
 * that concern it.
 */
#ifndef PUBLISH_OPTIONS_H
#define PUBLISH_OPTIONS_H

#include "attachments.h"
#include "message.h"
#include "shared/http.h"
#include "shared/options.h"

/* Needed only while the options are read. */
struct given {
	bool delay, key, unique, queued;
	bool more; /* messages are special, and not just ordered */
	int64_t from_tick, until_tick; /* -1: not given */
};

struct options {
	struct mq_shared shared;
	const char *queue;
	bool low; /* messages have a priority below 0 */
	enum mq_framing framing;
	const char *at;	 /* --at as it was given */
	int64_t wait_ms; /* for so long at most; -1: for ever */
	int64_t tick;	 /* to set the queue's clock to; -1: no */
	struct mq_attributes attributes; /* of the queue, if it is made */
	bool durable;
	bool http; /* the message comes as a request */
	struct http_hosts hosts;
	struct attachments attachments;
	struct message_options message;
	struct mq_publishing how; /* messages go out, but for when */
	struct given given;
};

/* Reads the options; ends with exit 64 when they are wrong.  The operands
 * behind the queue are *count payloads at *payloads. */
void options_parse(
    struct options *, int argc, char *argv[], char ***payloads, int *count);
/* Reads more of them, without operands.  The text of an --at must stay. */
void options_add(struct options *, int argc, char *argv[]);
/* Checks what is not clear before the layout is known. */
void options_use_layout(struct options *, const struct mq_server *);
/* The rights that they need, as of queue/rights.h. */
unsigned options_rights(const struct options *);
void options_free(struct options *);

#endif
