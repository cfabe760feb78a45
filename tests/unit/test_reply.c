#include "redis.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "layout.h"

/* A server that says this to whatever it is sent, and then hangs up. */
struct says {
	struct mq_server server;
	struct mq_redis r;
};

int
redisBufferWrite(redisContext *c, int *done)
{
	*done = 1;
	return c->err == 0 ? REDIS_OK : REDIS_ERR;
}

static void
says(struct says *s, const char *text)
{
	*s = (struct says){.server = {.name = "server"}};
	s->r.server = &s->server;
	s->r.context = redisConnectFd(open("/dev/null", O_RDWR));
	assert_non_null(s->r.context);
	assert_int_equal(
	    redisReaderFeed(s->r.context->reader, text, strlen(text)),
	    REDIS_OK);
}

#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"

/* Only a call of a script can be made again with its text. */
static void
noscript_for_a_plain_command(void **state)
{
	struct mq_command c = {0};
	struct says s;

	(void)state;
	says(&s, NOSCRIPT);
	mq_command_plain(&c, "PING");
	assert_null(mq_redis_call(&s.r, &c));
	assert_non_null(strstr(s.r.error, "NOSCRIPT"));
	mq_command_free(&c);
	mq_redis_close(&s.r);
}

static void
noscript_for_a_round(void **state)
{
	const struct mq_clean how = {.limit = 3};
	struct mq_cleaned out;
	struct says s;

	(void)state;
	says(&s, "*1\r\n$1\r\nc\r\n" NOSCRIPT);
	assert_int_equal(mq_layout_rmq.clean(&s.r, &how, &out), -1);
	mq_redis_close(&s.r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(noscript_for_a_plain_command),
	    cmocka_unit_test(noscript_for_a_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
