/*
 * Messages from a descriptor, as a framing says.
 */
#ifndef READ_H
#define READ_H

#include "message.h"

struct reader {
	struct messages *messages;
	struct batcher *batches;
	struct outcome *outcome;
	enum mq_framing framing;
	bool raw;     /* messages cannot have headers */
	bool settles; /* messages have to be safe while input is waited for */
};

/* Publishes what comes, to its end.  Ends the program, with what came before
 * published, if that makes no sense or cannot be read. */
void read_messages(struct reader *, int fd);

#endif
