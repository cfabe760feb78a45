/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The map of a cluster, from replies to CLUSTER SLOTS. */
#include <stdlib.h>

#include "redis/parts.h"
#include "unit.h"

/* Each slot has a node of its own: ports from `port` on. */
static int
take_slots(struct mq_topology *t, int port)
{
	static char host[] = "h";
	static redisReply nodes[MQ_SLOTS][7], *of[MQ_SLOTS][5],
	    *ranges[MQ_SLOTS];
	redisReply all = {
	    .type = REDIS_REPLY_ARRAY, .elements = MQ_SLOTS, .element = ranges};
	int slot;

	for (slot = 0; slot < MQ_SLOTS; slot++) {
		redisReply *r = nodes[slot];

		r[0] = r[1] =
		    (redisReply){.type = REDIS_REPLY_INTEGER, .integer = slot};
		r[2] = (redisReply){.type = REDIS_REPLY_STRING, .len = 1};
		r[2].str = host;
		r[3] = (redisReply){
		    .type = REDIS_REPLY_INTEGER, .integer = port + slot};
		of[slot][0] = &r[0];
		of[slot][1] = &r[1];
		of[slot][2] = &r[4];
		of[slot][3] = &r[2];
		of[slot][4] = &r[3];
		r[4] = (redisReply){.type = REDIS_REPLY_ARRAY,
		    .elements = 2,
		    .element = &of[slot][3]};
		r[5] = (redisReply){.type = REDIS_REPLY_ARRAY,
		    .elements = 3,
		    .element = &of[slot][0]};
		ranges[slot] = &r[5];
	}
	return mq_topology_update(t, &all, 0);
}

TEST(more_nodes_than_a_map_takes)
{
	struct mq_topology *t = calloc(1, sizeof(*t));
	char error[] = "MOVED 5 other:7";
	redisReply moved = {.type = REDIS_REPLY_ERROR};
	int slot, to;

	assert_int_equal(mq_topology_node(t, "seed", 1), 0);
	assert_int_equal(take_slots(t, 1), 0);
	/* As many again would be more than the map can count. */
	assert_int_equal(take_slots(t, 20000), -1);
	for (slot = 0; slot < MQ_SLOTS; slot++)
		assert_int_equal(t->owner[slot], slot + 1);
	while (t->count < MQ_NODES)
		(void)mq_topology_node(t, "more", t->count);
	moved.str = error;
	assert_int_equal(
	    mq_topology_redirect(t, &moved, 0, &slot, &to), MQ_LATER);
	free(t->nodes);
	free(t);
}

TEST(what_is_no_place_changes_no_slot)
{
	static char errors[][32] = {"MOVED 99999 other:7", "ASK -7 other:7",
	    "MOVED 6 other", "ASK 6 other:0", "MOVED x"};
	struct mq_topology *t = calloc(1, sizeof(*t));
	redisReply moved = {.type = REDIS_REPLY_ERROR};
	int slot = 5, to;
	size_t i;

	assert_int_equal(mq_topology_node(t, "seed", 1), 0);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		moved.str = errors[i];
		assert_int_equal(
		    mq_topology_redirect(t, &moved, 0, &slot, &to), MQ_LATER);
		assert_int_equal(slot, 5);
	}
	assert_int_equal(t->count, 1);
	free(t->nodes);
	free(t);
}
