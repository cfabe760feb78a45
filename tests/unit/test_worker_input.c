#include "mq-consume/executor/executor.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "record.h"

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

struct house {
	struct ev_loop *loop;
	struct worker_input input;
	int worker; /* the end of the pipe that it reads */
	struct message m[3];
};

static void
on_closed(void *arg)
{
	(void)arg;
	record("closed");
}

/* Message i is the line payload. */
static struct message *
put(struct house *h, int i, const char *payload)
{
	h->m[i].envelope = (struct mq_envelope){
	    .payload = payload, .payload_len = strlen(payload)};
	worker_input_write(&h->input, &h->m[i], MQ_FRAME_LINES);
	return &h->m[i];
}

/* The worker reads at most n bytes, 0 to the end of what is there; then that is
 * looked at. */
static const char *
read_some(struct house *h, size_t n)
{
	static char buf[65536];
	ssize_t got;

	if (n == 0)
		n = sizeof(buf) - 1;
	got = read(h->worker, buf, n);
	buf[got > 0 ? got : 0] = '\0';
	worker_input_poll(&h->input);
	return buf;
}

static void
close_worker(struct house *h)
{
	if (h->worker != -1)
		close(h->worker);
	h->worker = -1;
}

static int
setup(void **state)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	signal(SIGPIPE, SIG_IGN);
	h->loop = ev_loop_new(EVFLAG_AUTO);
	h->worker = worker_input_open(&h->input, h->loop, on_closed, h);
	fcntl(h->worker, F_SETFL, O_NONBLOCK);
	*state = h;
	return h->worker == -1;
}

static int
teardown(void **state)
{
	struct house *h = *state;

	worker_input_free(&h->input);
	close_worker(h);
	ev_loop_destroy(h->loop);
	free(h);
	record_clear();
	return 0;
}

TEST_OF(what_is_read_is_known)
{
	struct message *one = put(h, 0, "one"), *two = put(h, 1, "two");

	assert_string_equal(read_some(h, 0), "");
	worker_input_flush(&h->input);
	assert_false(worker_input_partly_read(&h->input, one));
	assert_string_equal(read_some(h, 1), "o");
	assert_true(worker_input_partly_read(&h->input, one));
	assert_false(worker_input_read(&h->input, one));
	assert_string_equal(read_some(h, 3), "ne\n");
	assert_true(worker_input_read(&h->input, one));
	assert_false(worker_input_partly_read(&h->input, two));
	assert_string_equal(read_some(h, 0), "two\n");
	assert_true(worker_input_read(&h->input, two));
}

TEST_OF(the_newest_is_taken_back_unless_it_is_written)
{
	struct message *one = put(h, 0, "one"), *two;

	worker_input_flush(&h->input);
	two = put(h, 1, "two");
	assert_true(worker_input_take_back(&h->input, two));
	assert_false(worker_input_take_back(&h->input, one));
	put(h, 2, "three");
	worker_input_flush(&h->input);
	assert_string_equal(read_some(h, 0), "one\nthree\n");
}

TEST_OF(after_a_cut_all_that_is_unread_is_taken_back)
{
	struct message *one = put(h, 0, "one"), *two = put(h, 1, "two");

	worker_input_flush(&h->input);
	assert_int_equal(read(h->worker, (char[4]){0}, 4), 4);
	worker_input_cut(&h->input);
	assert_true(h->input.cut);
	assert_int_equal(h->input.fd, -1);
	assert_false(worker_input_wants(&h->input));
	assert_true(worker_input_take_back(&h->input, two));
	assert_false(worker_input_take_back(&h->input, one));
	assert_string_equal(recorded(), "");
}

TEST_OF(the_end_is_behind_the_last)
{
	struct message *one = put(h, 0, "one");

	worker_input_last(&h->input);
	assert_false(worker_input_wants(&h->input));
	assert_int_equal(h->input.fd, -1);
	worker_input_poll(&h->input);
	assert_false(worker_input_partly_read(&h->input, one));
	assert_string_equal(read_some(h, 0), "one\n");
	assert_true(worker_input_read(&h->input, one));
	assert_int_equal(read(h->worker, &(char){0}, 1), 0);
}

TEST_OF(a_worker_that_closes_is_noticed)
{
	put(h, 0, "one");
	worker_input_check(&h->input);
	assert_string_equal(recorded(), "");
	close_worker(h);
	worker_input_flush(&h->input);
	assert_string_equal(recorded(), "closed");
	worker_input_check(&h->input);
	assert_string_equal(recorded(), "");
	assert_true(h->input.cut);
}

TEST_OF(an_idle_worker_that_closes_is_noticed)
{
	close_worker(h);
	worker_input_check(&h->input);
	assert_string_equal(recorded(), "closed");
	assert_int_equal(h->input.fd, -1);
}

static char *
make_payload(size_t n)
{
	char *payload = mq_xmalloc(n + 1);

	memset(payload, 'x', n);
	payload[n] = '\0';
	return payload;
}

/* The worker reads the whole message. */
static void
read_message(struct house *h, const struct message *m)
{
	while (!worker_input_read(&h->input, m)) {
		assert_string_not_equal(read_some(h, 0), "");
		ev_run(h->loop, EVRUN_NOWAIT);
	}
}

TEST_OF(a_full_pipe_is_written_as_it_is_read)
{
	char *payload = make_payload(1 << 20);
	struct message *m = put(h, 0, payload);

	assert_false(worker_input_wants(&h->input));
	worker_input_flush(&h->input);
	assert_true(ev_is_active(&h->input.room));
	read_message(h, m);
	assert_true(worker_input_wants(&h->input));
	assert_false(ev_is_active(&h->input.room));
	free(payload);
}

TEST_OF(the_end_waits_until_all_is_written)
{
	char *payload = make_payload(200000);
	struct message *m = put(h, 0, payload);

	worker_input_flush(&h->input);
	assert_true(worker_input_wants(&h->input));
	worker_input_last(&h->input);
	assert_false(worker_input_wants(&h->input));
	assert_int_not_equal(h->input.fd, -1);
	read_message(h, m);
	assert_int_equal(h->input.fd, -1);
	free(payload);
}
