/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * An outbox, with the hand of hand.h, and a server that records what it is sent.
 */
#include "mq-consume/outbox/parts.h"
#include "hand.h"

/* --- a test a row ---------------------------------------------------------- */

static const struct row together_rows[] = {
    /* Somebody may wait for a key or a group. */
    {"what holds waits less",
	{"run a1 a2", "group a2", "ack a1", "timer -> 50", "ack a2",
	    "timer -> 20"}},
    /* In fork mode, a killed consumer repeats no more than twice its slots. */
    {"as many wait as there are slots",
	{"slots 2", "run a1 a2 a3", "ack a1 a2",
	    "ack a3 -> ack:a1 ack:a2 ack:a3"}},
    {"acks wait for others",
	{"run a1 a2 a3", "ack a2 a1 a3", "waits -> yes", "settling -> 3",
	    "flush -> ack:a2 ack:a1 ack:a3", "waits -> no",
	    "settled -> done:a2", "settling -> 2"}},
    {"acks wait a little, and then for the next turn",
	{"run a1", "ack a1", "flush-enough", "loop", "woken -> yes",
	    "flush-enough -> ack:a1"}},
    {"some wait for all that hold",
	{"run a1 a2 b1", "ack a1", "flush-holders", "group a2", "ack a2",
	    "flush-holders -> ack:a1 ack:a2", "ack b1", "flush-holders"}},
    {"the oldest go together",
	{"run a1 a2 a3 a4 a5", "ack a4 a2 a1 a3",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "settled -> done:a1 done:a2 done:a3 done:a4"}},
    {"others may be between",
	{"run a1 a2 a3 a4 a5 a6 a7 b1 b2 b3 b4 b5 b6 b7",
	    "ack a2 a3 a6 a5 b1 b2 b3 b4 b6 b7",
	    "flush -> oldest:a( a2@2 a3@3 a5@5 a6@6 ) "
	    "oldest:b( b1 b2 b3 b4 b6@6 b7@7 )"}},
    {"equal ones are no part of it",
	{"run a1 a2 a3 a4 a5 a6 a7 a3", "ack a1 a2 a3 a4 a5",
	    "flush -> oldest:a( a1 a2 a4@4 a5@5 ) ack:a3", "in-order a -> no",
	    "in-order b -> yes"}},
    {"what the server has lost has no place",
	{"run a1 a2 a3 a4 a5 a6 a7 a8", "reject a3 -> reject:a3", "lost a1",
	    "gone a5", "ack a4 a6 a7 a8",
	    "flush -> oldest:a( a4@2 a6@3 a7@4 a8@5 )", "oldest -> a2"}},
    /* The engine has yet to forget the message. */
    {"what is settled has no place",
	{"run a1 a2 a3 a4 a5 a6", "reject a1 -> reject:a1", "ack a3 a4 a5 a6",
	    "blind", "settled", "flush -> oldest:a( a3@2 a4@3 a5@4 a6@5 )",
	    "oldest -> a2"}},
    /* Others, which would be costly now, wait until those between have ended. */
    {"many wait for those between",
	{"enough 6", "run a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3 b4 b5",
	    "ack a2 a3 a4 a5", "flush-enough", "ack a9 b5",
	    "flush-enough -> oldest:a( a2@2 a3@3 a4@4 a5@5 )", "waits -> yes",
	    "ack b1 b2 b3", "flush-enough", "loop",
	    "flush-enough -> oldest:b( b1 b2 b3 b5@5 ) ack:a9"}},
    /* A claim takes along what costs little, and of few slots all. */
    {"a claim does not wait for those between",
	{"run a1 a2 a3 a4 a5 a6 a7 a8 a9", "ack a1 a2 a3 a4 a9",
	    "flush-claim -> oldest:a( a1 a2 a3 a4 a9@9 )", "waits -> no"}},
    {"but if many end at a time, those behind others do",
	{"many", "run a1 a2 a3 a4 a5 a6 a7 a8 a9", "ack a1 a2 a3 a4 a9",
	    "flush-claim -> oldest:a( a1 a2 a3 a4 )", "waits -> yes", "loop",
	    "flush-claim -> ack:a9"}},
    /* Not if nothing can be sent cheaply, and not if one may hold a key. */
    {"many do not wait in vain",
	{"enough 4", "run a1 a2 a3 a4 a5 a6 a7 a8", "ack a2 a4 a6 a8",
	    "flush-enough -> oldest:a( a2@2 a4@4 a6@6 a8@8 )", "key b1",
	    "run b2 b3 b4 b5 b6", "ack b1 b2 b3 b4 b6",
	    "flush-enough -> oldest:b:holds( b1 b2 b3 b4 b6@6 )"}},
    {"what is sent before is older",
	{"run a1 a2 a3 a4 a5", "reject a1 -> reject:a1", "ack a2 a3 a4 a5",
	    "flush -> oldest:a( a2 a3 a4 a5 )"}},
    {"acks out of order go alone",
	{"run a1 a2 a3 a4", "disorder a", "ack a1 a2 a3 a4",
	    "flush -> ack:a1 ack:a2 ack:a3 ack:a4"}},
    {"keys are a batch of their own",
	{"key a1", "run a2 a3 a4 a5", "ack a1 a2 a3 a4", "holds -> yes",
	    "flush -> oldest:a:holds( a1 a2 a3 a4 )", "holds -> no"}},
    {"an awaited one goes at once and alone",
	{"run a1 a2 a3 a4", "awaited a4", "ack a1 a2 a3",
	    "ack a4 -> ack:a1 ack:a2 ack:a3 ack:a4:result"}},
    {"what somebody hears of goes alone",
	{"run a1 a2 a3 a4 a5 a6", "kept a2", "notified a3",
	    "ack a1 a2 a3 a4 a5 a6",
	    "flush -> oldest:a( a1 a4@4 a5@5 a6@6 ) ack:a2:result "
	    "ack:a3:notice"}},
    {"nobody hears of what stays",
	{"run a1 a2 a3", "kept a1 a2 a3", "notified a3", "again a1 -> again:a1",
	    "front a2 -> front:a2", "reject a3 -> reject:a3:result:notice",
	    "settled -> done:a1", "settled -> done:a2",
	    "refuse wrong-type -> front:a3 wrong-key"}},
    {"a batch that is not the oldest goes one by one",
	{"run a1 a2 a3 a4", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "settled lost -> ack:a1 ack:a2 ack:a3 ack:a4", "in-order a -> no",
	    "refused -> no"}},
    {"a refused batch is repeated one by one",
	{"run a1 a2 a3 a4", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "refuse again -> refused:no refused:no refused:no refused:no",
	    "send-again -> ack:a1 ack:a2 ack:a3 ack:a4"}},
};

static const struct row next_rows[] = {
    {"an ack brings the next of the group of the one before",
	{"run a1 a2", "group a1 a2", "ack a1", "follows -> none",
	    "flush-next -> ack:a1", "leads -> a", "settled -> done:a1",
	    "ack a2", "follows -> a", "flush-next -> ack:a2:next",
	    "brings -> yes", "leads", "next a3 -> brought:a done:a2",
	    "brings -> no", "leads", "all -> a3"}},
    {"without a next one, the queue may have others",
	{"run a1 a2", "group a1 a2", "ack a1", "flush -> ack:a1", "ack a2",
	    "flush-next -> ack:a2:next", "leads -> a", "settled -> done:a1",
	    "settled -> done:a2", "brings -> no", "leads -> a"}},
    {"an ack brings one only if it may",
	{"run a1 a2 a3", "group a1 a2 a3", "ack a1", "flush -> ack:a1",
	    "ack a2", "flush -> ack:a2", "ack a3", "flush-claim -> ack:a3"}},
    {"a refused or lost ack brings none",
	{"run a1 a2 a3", "group a1 a2 a3", "ack a1", "flush -> ack:a1",
	    "settled -> done:a1", "ack a2", "flush-next -> ack:a2:next",
	    "refuse again -> refused:no", "brings -> no",
	    "send-again -> ack:a2", "settled -> done:a2", "ack a3",
	    "flush-next -> ack:a3:next", "lose", "brings -> no",
	    "up -> ack:a3"}},
    {"a lost message's ack brings one all the same",
	{"run a1 a2", "group a1 a2", "ack a1", "flush -> ack:a1",
	    "settled -> done:a1", "ack a2", "flush-next -> ack:a2:next",
	    "lost a2", "next a3 -> brought:a over:a2", "all -> a3"}},
    {"only one ack that waits alone brings one",
	{"run a1 a2 a3 a4", "group a1 a2 a3", "ack a1", "flush -> ack:a1",
	    "ack a2 a3", "follows -> none", "flush -> ack:a2 ack:a3", "ack a4",
	    "follows -> none", "flush-next -> ack:a4"}},
    {"a group is a queue's",
	{"run a1 b1", "group a1 b1", "ack a1", "flush -> ack:a1", "ack b1",
	    "follows -> none", "flush -> ack:b1"}},
    {"what somebody hears of brings none",
	{"run a1 a2", "group a1 a2", "ack a1", "flush -> ack:a1", "kept a2",
	    "ack a2", "flush-next -> ack:a2:result", "brings -> no",
	    "leads -> a"}},
    {"what has no connection brings none",
	{"run a1 a2", "group a1 a2", "ack a1", "flush -> ack:a1",
	    "settled -> done:a1", "deaf", "ack a2", "flush-next -> ack:a2:next",
	    "brings -> no"}},
};

static const struct row equal_rows[] = {
    {"of equal ones, one settlement is under way",
	{"run a1 a1 a1 a1 b1", "reject a1", "flush-enough -> reject:a1",
	    "ack a1#2", "again a1#3", "flush", "reject b1 -> reject:b1",
	    "refused -> no", "settled -> done:a1",
	    "flush-enough -> equal:a( again:a1 ack:a1 )", "settled -> done:b1",
	    "settled -> done:a1 done:a1", "settling -> 0"}},
    {"equal ones that are not there go one by one",
	{"run a1 a1", "reject a1 a1#2",
	    "flush -> equal:a( reject:a1 reject:a1 )", "settled lost",
	    "flush-enough -> reject:a1", "settled -> done:a1",
	    "flush-enough -> reject:a1", "settled lost -> over:a1"}},
    {"what asks for more goes alone",
	{"run a1 a1 a1", "pause a1#2", "to-b a1#3", "reject a1", "again a1#2",
	    "push a1#3", "flush-enough -> reject:a1", "settled -> done:a1",
	    "flush-enough -> pause:a:5000 again:a1", "paused lost",
	    "settled -> done:a1", "flush-enough -> push:a1"}},
    {"of equal ones, what is heard of goes alone",
	{"run a1 a1 a1 a1", "kept a1#3", "reject a1 a1#2 a1#3 a1#4",
	    "flush-enough -> equal:a( reject:a1 reject:a1 )",
	    "settled -> done:a1 done:a1", "flush-enough -> reject:a1:result",
	    "settled -> done:a1", "flush-enough -> reject:a1"}},
    /* A turn may come between. */
    {"equal ones wait until a lost answer is made up",
	{"run a1 a1 a1", "reject a1 a1#2", "kept a1#2",
	    "flush-enough -> reject:a1", "break", "ack a1#3", "flush",
	    "send-back", "down", "confirm a1 -> done:a1",
	    "up -> reject:a1:result", "settled -> done:a1", "flush -> ack:a1"}},
    {"equal ones wait for what goes back",
	{"run a1 a1 a1 a1 a1 a1", "reject a1", "keep a1#6 a1#5 a1#4 a1#3",
	    "flush-enough -> reject:a1", "send-back", "settled -> done:a1",
	    "send-back -> back:a:each( a1 a1 a1 a1 )", "reject a1",
	    "flush-enough", "went 4 -> done:a1 done:a1 done:a1 done:a1",
	    "flush-enough -> reject:a1"}},
    {"equal ones that were not started go back together",
	{"add a1 a1 a1 a1", "keep a1#4 a1#3 a1#2 a1#1",
	    "send-back -> back:a:each( a1 a1 a1 a1 )", "went 0",
	    "flush -> equal:a( front:a1 front:a1 front:a1 front:a1 )"}},
};

static const struct row once_more_rows[] = {
    {"a refused one is repeated",
	{"run a1 a2 a3", "reject a1 a2 a3 -> reject:a1 reject:a2 reject:a3",
	    "refuse again -> refused:no", "settled -> done:a2",
	    "refused -> yes", "sent a1 -> no", "in-order a -> no",
	    "send-again -> reject:a1", "refused -> no", "settled -> done:a3",
	    "settled -> done:a1", "unanswered -> 0"}},
    {"the oldest is given back last",
	{"run a1 a2 a3 a4 a5", "front a5 a4 a2 -> front:a5 front:a4 front:a2",
	    "reject a1 a3 -> reject:a1 reject:a3", "lose", "refused -> yes",
	    "up -> reject:a1 reject:a3 front:a5 front:a4 front:a2"}},
    {"without a connection nothing is sent",
	{"run a1 a2 a3", "ack a1", "down", "ack a2", "front a3", "flush",
	    "send-again", "up -> ack:a1 ack:a2 front:a3", "waits -> no",
	    "refused -> no"}},
    {"acks do not fall due without a connection",
	{"run a1", "ack a1", "down", "timer -> 0", "up -> ack:a1"}},
    {"what there is no connection for is not sent",
	{"run a1 a2 a3 a4 a5", "deaf", "reject a1 -> reject:a1",
	    "sent a1 -> no", "in-flight a1 -> no", "refused -> yes",
	    "ack a2 a3 a4 a5", "flush -> oldest:a( a2@2 a3@3 a4@4 a5@5 )",
	    "sent a2 -> no", "copying -> 0", "hears", "down",
	    "up -> reject:a1 ack:a2 ack:a3 ack:a4 ack:a5", "refused -> no"}},
    {"but it may have arrived before",
	{"run a1", "reject a1 -> reject:a1", "break", "deaf",
	    "send-again -> reject:a1", "sent a1 -> yes", "hears", "down",
	    "confirm a1 -> done:a1"}},
    /* Else the next turn, which may come before the end of the session, would send another
     * one of equal messages. */
    {"a lost answer wakes nobody",
	{"run a1 a2 a3 a4 b1", "reject b1 -> reject:b1", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )", "lose", "woken -> no",
	    "sent a1 -> yes", "up -> ack:a1 ack:a2 ack:a3 ack:a4 reject:b1",
	    "settled -> done:a1", "woken -> yes"}},
    {"a wrong key gives back",
	{"run a1 a2", "again a1 -> again:a1",
	    "refuse wrong-type -> front:a1 wrong-key",
	    "refuse wrong-type -> refused:no"}},
    {"a pause is sent first",
	{"run a1", "pause a1", "again a1 -> pause:a:5000 again:a1",
	    "pausing a -> yes", "pausing b -> no", "paused -> paused:a",
	    "pausing a -> no", "lose", "up -> pause:a:5000 again:a1",
	    "pausing a -> yes", "paused lost", "pausing a -> no"}},
    {"a queue waits for all of its pauses",
	{"run a1 a2", "pause a1 a2",
	    "again a1 a2 -> pause:a:5000 again:a1 pause:a:5000 again:a2",
	    "paused refused -> refused:no", "pausing a -> yes",
	    "paused -> paused:a", "pausing a -> no"}},
    {"a lost answer is made up",
	{"run a1", "again a1 -> again:a1", "lose", "confirm a1 -> done:a1",
	    "refused -> no", "up",
	    "counters -> a:done=0,failed=0,retried=1,lost=0"}},
    /* Nothing but acks, until there is room. */
    {"what copies waits for room",
	{"run a1 a2 b1", "full", "again a1 b1", "ack a2", "flush -> ack:a2",
	    "refused -> yes", "send-again", "room",
	    "send-again -> again:a1 again:b1", "refused -> no", "copying -> 4",
	    "settled -> done:a2", "settled -> done:a1", "settled -> done:b1",
	    "copying -> 0"}},
    /* If its connection is lost then, a message that is missing was not settled. */
    {"what waits for room after a refusal is not sent",
	{"run a1 a2 a3 a4", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )", "full",
	    "went 0", "sent a1 -> no", "in-flight a1 -> no", "room",
	    "send-again -> front:a4 front:a3 front:a2 front:a1"}},
};

static const struct row back_rows[] = {
    {"a connection that takes nothing is not tried for ever",
	{"run a1 a2 a3 a4", "deaf", "keep a4 a3 a2 a1", "woken -> yes",
	    "send-back -> back:a( a4 a3 a2 a1 )", "woken -> no",
	    "sent a1 -> no", "hears", "send-back -> back:a( a4 a3 a2 a1 )",
	    "went 4 -> done:a4 done:a3 done:a2 done:a1"}},
    {"the newest go back together",
	{"run a1 a2 a3 a4 b1 b2 b3 b4",
	    "back a4 a3 a2 a1 b4 b3 b2 b1 -> back:a( a4 a3 a2 a1 )",
	    "gives-back a -> yes", "send-back", "refused -> no",
	    "went 4 -> done:a4 done:a3 done:a2 done:a1", "gives-back a -> no",
	    "send-back -> back:b( b4 b3 b2 b1 )",
	    "went 3 -> done:b4 done:b3 done:b2", "send-back -> front:b1",
	    "settled -> done:b1", "settling -> 0"}},
    {"what is behind others goes back alone",
	{"run a1 a2 a3 a4 a5", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )",
	    "went 0 -> front:a4 front:a3 front:a2 front:a1",
	    "gives-back a -> no", "settled -> done:a4",
	    "settled lost -> over:a3"}},
    {"those that look alike are all named",
	{"run a1 a1 a2 a3 b1 b2 b3 b4", "keep a1#2",
	    "back a3 a2 a1 -> back:a:each( a3 a2 a1 a1 )",
	    "went 4 -> done:a3 done:a2 done:a1 done:a1", "disorder b",
	    "back b1 b2 b3 b4 -> back:b:each( b4 b3 b2 b1 )"}},
    {"one more goes back behind the others",
	{"run a1 a2 a3 a4 a5 a6 b1",
	    "back a6 a5 a4 a3 -> back:a( a6 a5 a4 a3 )",
	    "front a1 a2 b1 -> front:b1",
	    "went 4 -> done:a6 done:a5 done:a4 done:a3",
	    "send-back -> front:a2 front:a1"}},
    /* The server had done a part of it. */
    {"what goes back survives a lost connection",
	{"run a1 a2 a3 a4 a5", "back a5 a4 a3 a2 -> back:a( a5 a4 a3 a2 )",
	    "lost a4", "lose -> over:a4", "sent a3 -> yes",
	    "confirm a5 -> done:a5", "refused -> no", "back a1",
	    "up -> front:a3 front:a2 front:a1", "send-again", "settling -> 3"}},
    {"what is refused together goes back alone",
	{"run a1 a2 a3 a4", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )",
	    "back-refused -> front:a4 front:a3 front:a2 front:a1",
	    "refuse no-permission -> refused:no", "refused -> yes",
	    "send-again -> front:a4"}},
};

/* In which queues a settlement may make a message ready. */
static const struct row lead_rows[] = {
    {"what goes back leads to a claim",
	{"run a1 b1 c1", "leads", "again b1 -> again:b1",
	    "front a1 -> front:a1", "leads -> b a", "leads",
	    "reject c1 -> reject:c1", "leads"}},
    {"what goes back together does, once",
	{"run b1 b2 b3 b4", "back b4 b3 b2 b1 -> back:b( b4 b3 b2 b1 )",
	    "leads -> b"}},
    {"an ack does if it releases a group",
	{"run a1 b1 b2 b3 b4", "group b3", "ack a1 b1 b2 b3 b4",
	    "flush -> oldest:b:holds( b1 b2 b3 b4 ) ack:a1", "leads -> b"}},
    {"a push does in the other queue, if that is ours",
	{"run a1 a2 a3", "to-b a1", "to-z a2", "push a1 a2 -> push:a1 push:a2",
	    "leads -> b", "group a3", "to-c a3", "push a3 -> push:a3",
	    "leads -> c a"}},
    {"what waits does not yet",
	{"run a1 a1", "again a1 a1#2", "leads",
	    "flush -> equal:a( again:a1 again:a1 )", "leads -> a"}},
};

static const struct row ends_rows[] = {
    {"ends are told",
	{"run a1 a2 a3", "reject a1 a2 a3 -> reject:a1 reject:a2 reject:a3",
	    "settled -> done:a1", "settled lost -> over:a2",
	    "settled gone -> over:a3",
	    "counters -> a:done=0,failed=1,retried=0,lost=1", "settling -> 0"}},
    {"what is lost in flight is over",
	{"run a1 a2", "reject a1 a2 -> reject:a1 reject:a2", "lost a1 a2",
	    "settled -> over:a1", "lose -> over:a2", "counters"}},
    {"pushed ones are counted where they went",
	{"run a1 a2 a3", "to-c a1 a2", "to-b a3",
	    "push a1 a2 a3 -> push:a1 push:a2 push:a3", "settled -> done:a1",
	    "settled -> done:a2",
	    "settled -> c:done=0,failed=0,retried=0,lost=0:2 done:a3",
	    "counters -> b:done=0,failed=0,retried=0,lost=0:1 "
	    "a:done=3,failed=0,retried=0,lost=0"}},
    {"what goes out last is dropped",
	{"run a1 a2", "ack a1", "reject a2 -> reject:a2",
	    "refuse again -> refused:no", "drop a1 a2", "waits -> no",
	    "refused -> no", "flush", "send-again"}},
    {"too long to be pushed",
	{"run a1", "to-b a1", "push a1 -> push:a1",
	    "settled too-long -> too-long:a1", "settling -> 0", "refused -> no",
	    "reject a1 -> reject:a1", "settled -> done:a1"}},
};

/* --- the server --- */

struct house {
	struct fixture f;
	struct mq_counts counted; /* the last of a queue */
	char oldest[64];	  /* that the last batch of acks named */
	struct outbox *outbox;
	struct mq_server server;
	bool full;  /* its disk */
	bool blind; /* the engine takes no facts */
	bool woken; /* the engine was, since the last question */
	bool deaf;  /* the connection takes no more, although it is up */
	struct {
		mq_answer_fn *fn;
		void *arg;
	} sent[64]; /* without an answer, in order */
	int sent_count;
	mq_answer_fn *paused_fn;
	void *paused_arg;
	mq_answer_fn *back_fn; /* NULL: nothing goes back */
	void *back_arg;
};

static struct house *house;

int
mq_server_room(
    const struct mq_server *s, size_t bytes, char *error, size_t error_size)
{
	return house->full;
}

static const char *const outcomes[] = {
    "ack", "reject", "front", "again", "push"};

static void
await_answer(mq_answer_fn *fn, void *arg)
{
	if (house->deaf) {
		fn(arg, NULL);
		return;
	}
	assert_between(house->sent_count, 0, COUNT(house->sent) - 1);
	house->sent[house->sent_count].fn = fn;
	house->sent[house->sent_count++].arg = arg;
}

void
mq_consumer_settle(struct mq_consumer *k, int queue,
    const struct mq_settlement *how, int n, mq_answer_fn *fn, void *arg)
{
	int i;

	if (n > 1)
		record("equal:%s(", queue_names[queue]);
	for (i = 0; i < n; i++)
		record("%s:%s%s%s%s", outcomes[how[i].outcome],
		    payload_of(how[i].element, how[i].len),
		    how[i].next ? ":next" : "",
		    how[i].result != NULL ? ":result" : "",
		    how[i].notice != NULL ? ":notice" : "");
	if (n > 1)
		record(")");
	await_answer(fn, arg);
}

void
mq_consumer_ack_oldest(struct mq_consumer *k, int queue,
    const struct mq_acks *acks, mq_answer_fn *fn, void *arg)
{
	int i;

	snprintf(house->oldest, sizeof(house->oldest), "%s",
	    payload_of(acks->oldest.p, acks->oldest.n));
	record("oldest:%s%s(", queue_names[queue], acks->holds ? ":holds" : "");
	for (i = 0; i < acks->n; i++)
		record("%s%s%.0d",
		    payload_of(acks->elements[i].p, acks->elements[i].n),
		    acks->places[i] > i + 1 ? "@" : "",
		    acks->places[i] > i + 1 ? acks->places[i] : 0);
	record(")");
	await_answer(fn, arg);
}

void
mq_consumer_give_back(struct mq_consumer *k, int queue,
    const struct mq_newest *newest, mq_answer_fn *fn, void *arg)
{
	int i;

	record("back:%s%s(", queue_names[queue], newest->each ? ":each" : "");
	for (i = 0; i < newest->n; i++)
		record("%s",
		    payload_of(newest->elements[i].p, newest->elements[i].n));
	record(")");
	if (house->deaf) {
		fn(arg, NULL);
		return;
	}
	assert_null(house->back_fn);
	house->back_fn = fn;
	house->back_arg = arg;
}

void
mq_consumer_pause(struct mq_consumer *k, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg)
{
	record("pause:%s:%d", queue, (int)ms);
	house->paused_fn = fn;
	house->paused_arg = arg;
}

void
mq_consumer_count(struct mq_consumer *k, const char *queue,
    const struct mq_counts *n, mq_answer_fn *fn, void *arg)
{
	house->counted = *n;
	record("%s:done=%lld,failed=%lld,retried=%lld,lost=%lld%s%.0lld", queue,
	    n->done, n->failed, n->retried, n->lease_lost,
	    n->published > 0 ? ":" : "", n->published);
}

void
mq_consumer_tell_running(struct mq_consumer *k, const struct mq_buf *text,
    mq_answer_fn *fn, void *arg)
{
}

/* The oldest sending is answered; NULL: the connection was lost. */
static void
answer_with(const struct mq_answer *answer, enum mq_settled how)
{
	mq_answer_fn *fn = house->sent[0].fn;
	void *arg = house->sent[0].arg;
	struct mq_answer with =
	    answer != NULL ? *answer : (struct mq_answer){0};

	with.n = how;
	assert_true(house->sent_count > 0);
	memmove(house->sent, house->sent + 1,
	    (size_t)--house->sent_count * sizeof(house->sent[0]));
	fn(arg, answer != NULL ? &with : NULL);
}

/* The oldest ack has brought another message. */
static void
answer_next(const char *name)
{
	struct mq_element next = {mq_xstrdup(name), strlen(name)};
	struct mq_claimed claimed = {.elements = &next, .n = 1};

	answer_with(&(struct mq_answer){.claimed = &claimed}, MQ_SETTLED);
	assert_null(next.data);
}

/* What goes back is answered: so many of it went. */
static void
answer_back(const struct mq_answer *answer, int n)
{
	mq_answer_fn *fn = house->back_fn;
	struct mq_answer with =
	    answer != NULL ? *answer : (struct mq_answer){0};

	with.n = n;
	assert_non_null(fn);
	house->back_fn = NULL;
	fn(house->back_arg, answer != NULL ? &with : NULL);
}

/* No answer comes any more, of which the session has yet to tell. */
static void
break_connection(struct house *h)
{
	if (h->back_fn != NULL)
		answer_back(NULL, 0);
	while (h->sent_count > 0)
		answer_with(NULL, MQ_SETTLED_LOST);
}

static void
lose_connection(struct house *h)
{
	break_connection(h);
	outbox_down(h->outbox);
}

/* --- the engine --- */

/* Writes down what the outbox tells. */
static void
take_facts(struct house *h)
{
	struct fact f;

	for (; fact_take(h->f.facts, &f); fact_free(&f)) {
		h->woken = true;
		if (f.kind == FACT_SETTLED) {
			assert_int_equal(f.message->state, MESSAGE_SETTLED);
			record("%s:%s", f.yes ? "done" : "over",
			    name_of(f.message));
			hand_forget(h->f.hand, f.message);
		} else if (f.kind == FACT_TOO_LONG) {
			assert_int_equal(f.message->state, MESSAGE_ENDED);
			record("too-long:%s", name_of(f.message));
		} else if (f.kind == FACT_MUST_END) {
			assert_int_equal(f.status, MQ_EXIT_WRONGTYPE);
			record("wrong-key");
		} else if (f.kind == FACT_COMPLAINT) {
			record("refused:%s", f.text);
		} else if (f.kind == FACT_BROUGHT) {
			record("brought:%s", queue_names[f.queue]);
		} else if (f.kind == FACT_PAUSE_SET) {
			record("paused:%s", queue_names[f.queue]);
		} else {
			assert_true(
			    f.kind == FACT_WAKE || f.kind == FACT_NO_ROOM);
		}
	}
	hand_sweep(h->f.hand);
}

static void
start_all(struct house *h)
{
	struct message *m;
	const char *bad;

	while ((m = hand_next(h->f.hand, -1)) != NULL) {
		assert_int_equal(
		    mq_envelope_parse(m->element, m->len, &m->envelope, &bad),
		    0);
		hand_start(h->f.hand, m);
	}
}

/* All of them are started. */
static void
run(struct house *h, const char *names)
{
	add(&h->f, names);
	start_all(h);
}

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));
	struct fixture *f = &h->f;

	fixture_init(f);
	h->outbox = outbox_new(f->loop, &f->opt, f->hand, f->facts, &f->server,
	    &h->server, &f->ids, false);
	outbox_up(h->outbox);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	lose_connection(h);
	outbox_free(h->outbox);
	fixture_free(&h->f);
	free(h);
}

/* --- what happens --- */

/* Its run, if it has one, is over. */
static void
end_run(struct house *h, struct message *m)
{
	if (m->state == MESSAGE_RUNNING)
		hand_end(h->f.hand, m);
}

static void
settle(struct house *h, struct message *m, enum mq_outcome outcome)
{
	end_run(h, m);
	m->outcome = outcome;
	outbox_settle(h->outbox, m);
}

static void
give_back(struct house *h, struct message *m)
{
	end_run(h, m);
	outbox_give_back(h->outbox, m);
}

/* As the verdict does. */
static void
make_heard(struct message *m, int64_t keep_ms, const char *notified)
{
	mq_buf_clear(&m->result);
	mq_buf_printf(&m->result, "{}");
	m->keep_ms = MAX(m->keep_ms, keep_ms);
	m->notified = mq_xstrdup(notified);
}

static bool
do_to(struct house *h, const char *word, struct message *m)
{
	struct outbox *o = h->outbox;
	size_t i;

	for (i = 0; i < COUNT(outcomes); i++)
		WORD(outcomes[i], settle(h, m, (enum mq_outcome)i));
	WORD("keep", give_back(h, m));
	WORD("back", give_back(h, m));
	WORD("drop", outbox_drop(o, m));
	WORD("lost", hand_lose(h->f.hand, m, false));
	WORD("gone", hand_lose(h->f.hand, m, true));
	WORD("group", mq_envelope_set(&m->envelope, MQ_HEADER_GROUP, "g"));
	WORD("awaited", m->awaited = true; make_heard(m, 1000, NULL));
	WORD("kept", make_heard(m, 1000, NULL));
	WORD("notified", make_heard(m, 0, "c"));
	WORD("pause", m->pause_ms = 5000);
	WORD("to-b", m->to = mq_xstrdup("b"));
	WORD("to-c", m->to = mq_xstrdup("c"));
	WORD("to-z", m->to = mq_xstrdup("z"));
	WORD("confirm", outbox_confirm(o, m));
	WORD("sent", answers(m->sent));
	WORD("in-flight", answers(m->in_flight));
	return false;
}

static void
record_leads(struct house *h)
{
	double since;
	int queue;

	while (outbox_makes_ready(h->outbox, &queue, &since)) {
		assert_true(since > 0 && since <= mq_clock_steady_s());
		record("%s", queue_names[queue]);
	}
}

/* What is said of the outbox itself. */
static bool
ask(struct house *h, const char *word, const char *about)
{
	struct outbox *o = h->outbox;
	const struct hand *hand = h->f.hand;
	double waits_s = mq_timer_runs(&o->timer) ?
	    ev_timer_remaining(h->f.loop, &o->timer.ev) :
	    0;

	WORD("waits", answers(o->in_line[LINE_ACKS] > 0));
	WORD("holds", answers(o->holding));
	WORD("woken", answers(h->woken); h->woken = false);
	WORD("refused", answers(outbox_refused(o)));
	WORD("gives-back", answers(outbox_gives_back(o, queue_of(about))));
	WORD("brings", answers(outbox_brings(o)));
	WORD("follows",
	    record("%s",
		outbox_follows(o) == -1 ? "none" :
					  queue_names[outbox_follows(o)]));
	WORD("all", record_all(hand, -1));
	WORD("in-order", answers(hand_in_order(hand, queue_of(about))));
	WORD("pausing",
	    answers(hand_barred(hand, queue_of(about), BAR_PAUSING)));
	WORD("settling", record("%d", hand_count(hand, -1, MESSAGE_SETTLING)));
	WORD("leads", record_leads(h));
	WORD("copying", record("%d", (int)outbox_copying(o)));
	WORD("timer", record("%d", (int)(waits_s * 1000 + 0.5)));
	WORD("unanswered", record("%d", h->sent_count));
	WORD("oldest", record("%s", h->oldest));
	return false;
}

static enum mq_settled
settled_of(const char *word)
{
	return is(word, "lost")	 ? MQ_SETTLED_LOST :
	    is(word, "gone")	 ? MQ_SETTLED_GONE :
	    is(word, "too-long") ? MQ_SETTLED_TOO_LONG :
				   MQ_SETTLED;
}

static int
status_of(const char *word)
{
	return is(word, "again")   ? MQ_EXIT_AGAIN :
	    is(word, "wrong-type") ? MQ_EXIT_WRONGTYPE :
				     MQ_EXIT_NOPERM;
}

/* What the server answers, or the connection does. */
static bool
hear(struct house *h, const char *word, const char *about)
{
	const struct mq_answer no = {.error = "no", .status = MQ_EXIT_NOPERM};
	const struct mq_answer yes = {0};

	WORD("next", answer_next(about));
	WORD("settled", answer_with(&yes, settled_of(about)));
	WORD("refuse",
	    answer_with(
		&(struct mq_answer){.error = "no", .status = status_of(about)},
		MQ_SETTLED_LOST));
	WORD("went", answer_back(&yes, atoi(about)));
	WORD("back-refused", answer_back(&no, 0));
	WORD("paused",
	    h->paused_fn(h->paused_arg,
		is(about, "lost")	 ? NULL :
		    is(about, "refused") ? &no :
					   &yes));
	WORD("break", break_connection(h));
	WORD("lose", lose_connection(h));
	WORD("down", outbox_down(h->outbox));
	WORD("up", outbox_up(h->outbox));
	WORD("deaf", h->deaf = true);
	WORD("hears", h->deaf = false);
	WORD("full", h->full = true);
	WORD("room", h->full = false);
	return false;
}

static void
give_slots(struct house *h, int n)
{
	h->f.opt.given.slots = n;
	rules_free(&h->f.opt);
	rules_init(&h->f.opt);
}

/* What the engine has the outbox do. */
static bool
engine(struct house *h, const char *word, const char *about)
{
	struct outbox *o = h->outbox;

	WORD("blind", h->blind = true);
	WORD("add", add(&h->f, about));
	WORD("run", run(h, about));
	WORD("key", add_with(&h->f, about, MQ_HEADER_KEY, "k"));
	WORD("disorder", hand_disorder(h->f.hand, queue_of(about)));
	WORD("slots", give_slots(h, atoi(about)));
	WORD("enough", o->enough = atoi(about));
	WORD("many", o->many = true);
	WORD("flush", outbox_flush(o, OUTBOX_ALL));
	WORD("flush-next", outbox_flush(o, OUTBOX_NEXT));
	WORD("flush-holders", outbox_flush(o, OUTBOX_HOLDERS));
	WORD("flush-claim", outbox_flush(o, OUTBOX_CLAIM));
	WORD("flush-enough", outbox_flush(o, OUTBOX_ENOUGH));
	WORD("send-again", outbox_send_again(o));
	WORD("send-back", outbox_send_back(o));
	WORD("loop", ev_run(h->f.loop, EVRUN_ONCE));
	WORD("counters", counters_send(o));
	return false;
}

/* Another word is for each of the messages behind it. */
static bool
do_step(struct house *h, const char *word, const char *about)
{
	char name[64];
	bool known = false;

	if (ask(h, word, about) || hear(h, word, about) ||
	    engine(h, word, about))
		return true;
	while (next_word(&about, name))
		known = do_to(h, word, find(&h->f, name));
	if (is(word, "back"))
		outbox_send_back(h->outbox);
	return known;
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	bool known = do_step(h, word, about);

	if (!h->blind)
		take_facts(h);
	return known;
}

TEST_ROWS(together)
TEST_ROWS(next)
TEST_ROWS(equal)
TEST_ROWS(once_more)
TEST_ROWS(back)
TEST_ROWS(lead)
TEST_ROWS(ends)

/* --- and those that count or measure ---------------------------------------------- */

TEST_OF(enough_go_at_once, struct house *h)
{
	char name[8];
	int i;

	for (i = 0; i < 65; i++) {
		assert_int_equal(h->outbox->in_line[LINE_ACKS] > 0, i > 0);
		snprintf(name, sizeof(name), "%c%d", i < 60 ? 'a' : 'b', i);
		take(h, "run", name);
		take(h, "ack", name);
	}
	assert_non_null(
	    strstr(recorded(), " a59 ) oldest:b( b60 b61 b62 b63 b64 )"));
	assert_int_equal(h->outbox->in_line[LINE_ACKS], 0);
}

TEST_OF(what_went_back_is_counted, struct house *h)
{
	struct mq_counts n;
	long returned = -1;

	take(h, "run", "a1 a2");
	take(h, "front", "a1");
	take(h, "reject", "a2");
	take(h, "settled", "");
	take(h, "settled", "");
	take(h, "counters", "");
	n = counters_totals(h->outbox, &returned);
	assert_int_equal(returned, 1);
	assert_int_equal(n.failed, 1);
	assert_int_equal(counters_totals(h->outbox, NULL).done, 0);
}

TEST_OF(runs_are_counted_by_their_time, struct house *h)
{
	const struct mq_counts *n = &h->counted;

	counters_ran(h->outbox, 0, 0.0004);
	counters_ran(h->outbox, 0, 0.0004);
	counters_send(h->outbox);
	assert_int_equal(n->run_ms, 0);
	assert_int_equal(n->bucket[0], 2);
	counters_ran(h->outbox, 0, 0.0004);
	counters_ran(h->outbox, 0, mq_bucket_s[1]);
	counters_ran(h->outbox, 0, 1e6);
	counters_send(h->outbox);
	assert_int_equal(n->bucket[0], 1);
	assert_int_equal(n->bucket[1], 1);
	assert_int_equal(n->bucket[MQ_BUCKETS - 1], 1);
	assert_int_equal(n->runs, 3);
	assert_between(n->run_ms, 1000000001, 1000002000);
}

/* Of queue a the server has handed out so many, and holds n, all of them alike. */
static void
reconcile(struct house *h, int received, int n)
{
	struct mq_element elements[5];
	struct mq_held held = {received, elements, n};
	struct message *m = NULL;
	int i;

	for (i = 0; i < n; i++)
		elements[i] = (struct mq_element){mq_xstrdup("a1"), 2};
	hand_compare(h->f.hand, 0, &held);
	for (i = 0; i < n; i++)
		free(elements[i].data);
	/* As the engine does. */
	while ((m = hand_missing(h->f.hand, 0, m)) != NULL)
		if (m->state != MESSAGE_SETTLING)
			record("taken:%s", name_of(m));
		else if (m->sent)
			outbox_confirm(h->outbox, m);
	take_facts(h);
}

/*
 * Of four equal messages, one or two run, and a step with the others loses its answer.
 * The step has taken effect, or not, and so has a claim of a fifth one, whose answer is
 * lost, too.
 */
static void
check_lost_answer(
    const char *step, const char *which, bool took_effect, bool claimed)
{
	int settled = is(which, "a1#4 a1#3 a1#2") ? 3 : 2;
	struct house *h = setup();

	reconcile(h, 4, 4);
	start_all(h);
	take(h, step, which);
	take(h, "flush", "");
	(void)recorded();
	lose_connection(h);
	reconcile(h, 4 + claimed, 4 + claimed - (took_effect ? settled : 0));
	assert_int_equal(hand_count(h->f.hand, -1, MESSAGE_SETTLING),
	    took_effect ? 0 : settled);
	assert_int_equal(hand_count(h->f.hand, -1, MESSAGE_UNSTARTED), claimed);
	assert_string_equal(recorded(),
	    !took_effect     ? "" :
		settled == 3 ? "done:a1 done:a1 done:a1" :
			       "done:a1 done:a1");
	teardown(h);
}

TEST(of_equal_ones_a_lost_answer_is_made_up)
{
	int i;

	for (i = 0; i < 4; i++) {
		check_lost_answer("ack", "a1#4 a1#3 a1#2", i & 1, i & 2);
		check_lost_answer("back", "a1#4 a1#3 a1#2", i & 1, i & 2);
		check_lost_answer("reject", "a1#4 a1#3", i & 1, i & 2);
		check_lost_answer("again", "a1#4 a1#3", i & 1, i & 2);
	}
}
