/*
 * cmd/mq-consume/session/lease.c.  Time goes by as the test sets the moments back that
 * the lease remembers.
 */
#include "mq-consume/session/session.h"
#include "redis/async.h"
#include "steps.h"

struct house {
	struct mq_consumer server;
	struct mq_idgen ids;
	struct lease lease;
	bool cluster, heard;
	int away; /* so many names are on nodes that are away */
	mq_number_fn *renewed;
	void *renewed_arg;
};

static struct house *house;

/* --- the neighbours --- */

const char *
mq_consumer_away(const struct mq_consumer *k, bool anew)
{
	assert_true(anew);
	return house->away > 0 && house->away-- > 0 ? "away" : NULL;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	return house->heard;
}

void
mq_consumer_renew(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	record("renew");
	house->renewed = fn;
	house->renewed_arg = arg;
}

struct mq_command
mq_async_command(const struct mq_async *a)
{
	return (struct mq_command){.cluster = house->cluster};
}

static void
on_lost(void *arg)
{
	record("lost");
}

static void
on_refused(void *arg, const char *error)
{
	record("refused:%s", error);
}

static const struct lease_events events = {
    .lost = on_lost, .refused = on_refused};

/* --- what happens --- */

static void
go_by(struct lease *l, double s)
{
	l->asked -= s;
	l->sent -= s;
	l->moved_at -= s;
	if (l->renewal_sent > 0)
		l->renewal_sent -= s;
}

/* The server gives a lease of so many ms.  Chance is left out. */
static void
join(struct lease *l, int64_t ms)
{
	lease_begin_join(l);
	lease_confirm(l, ms);
	lease_joined(l);
	l->early = 0.5;
	l->spread = 0;
}

/* As the lease is after that time, without an answer since. */
static const char *
kept_after(struct lease *l, double s, bool idle)
{
	go_by(l, s);
	assert_true(lease_keep(l, idle));
	return recorded();
}

static void
answer(const struct mq_answer *a, long long ms)
{
	house->renewed(house->renewed_arg, a, ms);
}

static int
setup(void **state)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	h->lease.server = &h->server;
	h->lease.events = &events;
	lease_new_name(&h->lease, "tag", &h->ids);
	*state = &h->lease;
	return 0;
}

static int
teardown(void **state)
{
	free(house);
	record_clear();
	return 0;
}

/* --- tests --- */

#define TEST_OF(fn) TEST_WITH(fn, struct lease *l, setup, teardown)

/* Steps: seconds go by, "busy" and "idle" keep it after as many. */
static const struct row lease_rows[] = {
    {"three quarters of it are used",
	{"begin", "confirm 60000", "after 50", "lapsed -> 0", "join 60000",
	    "after 44.9", "lapsed -> 0", "after 0.2", "lapsed -> 45"}},
    {"it counts from the question",
	{"asked -> no", "begin", "asked -> yes", "joined -> no", "after 10",
	    "confirm 60000", "is-joined", "joined -> yes", "after 35.1",
	    "lapsed -> 45"}},
    {"with messages it is renewed every four seconds",
	{"join 60000", "busy 3.4", "busy 0.2 -> renew", "renewing -> yes",
	    "busy 4"}},
    {"without messages it is renewed every fifteen seconds",
	{"join 60000", "idle 14.4", "idle 0.2 -> renew"}},
    {"a short one is renewed in parts of it",
	{"join 12000", "busy 1.4", "busy 0.2 -> renew", "join 12000",
	    "answered", "idle 2.4", "idle 0.2 -> renew"}},
    {"it holds from when the renewal was sent",
	{"join 60000", "busy 4 -> renew", "after 10", "answer 40000",
	    "renewing -> no", "after 19.9", "lapsed -> 0", "after 0.2",
	    "lapsed -> 30"}},
    {"a renewal that fails changes nothing",
	{"join 60000", "busy 4 -> renew", "refuse -> refused:no",
	    "busy 0 -> renew", "no-answer", "busy 0 -> renew",
	    "answer 0 -> lost", "after 41.1", "lapsed -> 45"}},
    {"an answer about a former name is none",
	{"join 60000", "busy 4 -> renew", "new-name", "answer 0"}},
    /* A large message may be before the answer. */
    {"a connection without an answer is given up",
	{"join 60000", "busy 4 -> renew", "busy 19.9", "after 0.2",
	    "given-up -> yes", "heard", "given-up -> no", "unheard",
	    "busy 19.9", "after 0.2", "given-up -> yes", "connect",
	    "busy 0 -> renew"}},
    {"on a cluster it is given up sooner",
	{"cluster", "join 60000", "busy 4 -> renew", "busy 14.9", "after 0.2",
	    "given-up -> yes"}},
    {"a name that has not joined has no messages",
	{"move -> yes", "moved -> no", "join 60000", "move -> yes",
	    "moved -> yes", "new-name", "moved -> no"}},
};

static bool
ask(struct lease *l, const char *word)
{
	if (is(word, "asked"))
		answers(lease_was_asked(l));
	else if (is(word, "joined"))
		answers(lease_is_joined(l));
	else if (is(word, "renewing"))
		answers(lease_is_renewing(l));
	else if (is(word, "given-up"))
		answers(!lease_keep(l, false));
	else if (is(word, "moved"))
		answers(lease_moved(l) != NULL);
	else if (is(word, "move"))
		answers(lease_move(l, "tag", &house->ids));
	else if (is(word, "lapsed"))
		record("%g", lease_lapsed_s(l));
	else
		return false;
	return true;
}

static void
take(void *arg, const char *word, const char *about)
{
	struct lease *l = arg;

	if (ask(l, word))
		return;
	if (is(word, "begin"))
		lease_begin_join(l);
	else if (is(word, "confirm"))
		lease_confirm(l, atoi(about));
	else if (is(word, "is-joined"))
		lease_joined(l);
	else if (is(word, "join"))
		join(l, atoi(about));
	else if (is(word, "after"))
		go_by(l, atof(about));
	else if (is(word, "busy") || is(word, "idle")) {
		go_by(l, atof(about));
		assert_true(lease_keep(l, is(word, "idle")));
	} else if (is(word, "answered"))
		l->renewal_sent = 0;
	else if (is(word, "answer"))
		answer(&(struct mq_answer){0}, atoi(about));
	else if (is(word, "refuse"))
		answer(&(struct mq_answer){.error = "no"}, 0);
	else if (is(word, "no-answer"))
		answer(NULL, 0);
	else if (is(word, "new-name"))
		lease_new_name(l, "tag", &house->ids);
	else if (is(word, "connect"))
		lease_begin_connection(l);
	else if (is(word, "cluster"))
		house->cluster = true;
	else if (is(word, "heard") || is(word, "unheard"))
		house->heard = is(word, "heard");
	else
		fail_msg("%s: what is that?", word);
}

TEST_ROWS(lease, setup, teardown, take)

TEST_OF(the_first_of_idle_ones_come_at_different_times)
{
	lease_begin_join(l);
	lease_confirm(l, 60000);
	lease_joined(l);
	assert_true(l->early >= 0.5 && l->early <= 1.5);
	assert_true(l->spread >= 0 && l->spread <= 15);
	l->early = 0.5;
	l->spread = 10;
	assert_string_equal(kept_after(l, 3.4, false), "");
	assert_string_equal(kept_after(l, 1, true), "");
	assert_string_equal(kept_after(l, 0.2, true), "renew");
	answer(&(struct mq_answer){0}, 60000);
	assert_true(l->spread == 0);
}

TEST_OF(a_name_is_used_once)
{
	char first[NAME_SIZE], own[NAME_SIZE];

	assert_memory_equal(l->connection, "tag-", 4);
	assert_int_equal(strlen(l->connection), 10);
	assert_null(house->server.session.former);
	strlcpy(first, l->connection, sizeof(first));
	strlcpy(own, l->name, sizeof(own));
	join(l, 60000);
	house->server.session.listed = true;
	lease_new_name(l, "tag", &house->ids);
	assert_string_not_equal(l->connection, first);
	assert_string_not_equal(l->name, own);
	assert_string_not_equal(l->name, l->connection);
	assert_string_equal(house->server.session.former, first);
	assert_true(house->server.session.former_s == l->sent);
	assert_false(house->server.session.listed);
	assert_false(lease_is_joined(l));
}

TEST_OF(it_moves_to_a_name_whose_nodes_answer)
{
	char first[NAME_SIZE];

	strlcpy(first, l->connection, sizeof(first));
	join(l, 60000);
	assert_null(lease_moved(l));
	house->away = 999;
	assert_true(lease_move(l, "tag", &house->ids));
	assert_int_equal(house->away, 0);
	assert_string_equal(lease_moved(l), first);
	assert_string_equal(house->server.session.former, first);
	assert_string_not_equal(l->connection, first);
	assert_false(lease_is_joined(l));
	/* The server holds the messages under the former name, since then. */
	go_by(l, 20);
	lease_begin_join(l);
	go_by(l, 25.1);
	assert_true(lease_lapsed_s(l) == 45);
	lease_joined(l);
	assert_null(lease_moved(l));
	assert_true(lease_lapsed_s(l) == 0);
}

TEST_OF(there_may_be_no_such_name)
{
	char first[NAME_SIZE];

	strlcpy(first, l->connection, sizeof(first));
	join(l, 60000);
	house->away = 1000;
	assert_false(lease_move(l, "tag", &house->ids));
	assert_string_equal(l->connection, first);
	assert_null(lease_moved(l));
	assert_true(lease_is_joined(l));
}
