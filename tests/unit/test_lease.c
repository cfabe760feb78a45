/*
 * cmd/mq-consume/session/lease.c.  Time goes by as the test sets the moments back that
 * the lease remembers.
 */
#include "mq-consume/session/session.h"
#include "record.h"
#include "redis/async.h"

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
	(void)k;
	assert_true(anew);
	return house->away > 0 && house->away-- > 0 ? "away" : NULL;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	(void)k;
	return house->heard;
}

void
mq_consumer_renew(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	(void)k;
	record("renew");
	house->renewed = fn;
	house->renewed_arg = arg;
}

struct mq_command
mq_async_command(const struct mq_async *a)
{
	(void)a;
	return (struct mq_command){.cluster = house->cluster};
}

static void
on_lost(void *arg)
{
	(void)arg;
	record("lost");
}

static void
on_refused(void *arg, const char *error)
{
	(void)arg;
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
	(void)state;
	free(house);
	record_clear();
	return 0;
}

/* --- tests --- */

#define TEST_OF(fn) TEST_WITH(fn, struct lease *l, setup, teardown)

TEST_OF(three_quarters_of_it_are_used)
{
	lease_begin_join(l);
	lease_confirm(l, 60000);
	go_by(l, 50);
	assert_true(lease_lapsed_s(l) == 0);
	join(l, 60000);
	go_by(l, 44.9);
	assert_true(lease_lapsed_s(l) == 0);
	go_by(l, 0.2);
	assert_true(lease_lapsed_s(l) == 45);
}

TEST_OF(it_counts_from_the_question)
{
	assert_false(lease_was_asked(l));
	lease_begin_join(l);
	assert_true(lease_was_asked(l));
	assert_false(lease_is_joined(l));
	go_by(l, 10);
	lease_confirm(l, 60000);
	lease_joined(l);
	assert_true(lease_is_joined(l));
	go_by(l, 35.1);
	assert_true(lease_lapsed_s(l) == 45);
}

TEST_OF(with_messages_it_is_renewed_every_four_seconds)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 3.4, false), "");
	assert_string_equal(kept_after(l, 0.2, false), "renew");
	assert_true(lease_is_renewing(l));
	assert_string_equal(kept_after(l, 4, false), "");
}

TEST_OF(without_messages_it_is_renewed_every_fifteen_seconds)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 14.4, true), "");
	assert_string_equal(kept_after(l, 0.2, true), "renew");
}

TEST_OF(a_short_one_is_renewed_in_parts_of_it)
{
	join(l, 12000);
	assert_string_equal(kept_after(l, 1.4, false), "");
	assert_string_equal(kept_after(l, 0.2, false), "renew");
	join(l, 12000);
	l->renewal_sent = 0;
	assert_string_equal(kept_after(l, 2.4, true), "");
	assert_string_equal(kept_after(l, 0.2, true), "renew");
}

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

TEST_OF(it_holds_from_when_the_renewal_was_sent)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 4, false), "renew");
	go_by(l, 10);
	answer(&(struct mq_answer){0}, 40000);
	assert_false(lease_is_renewing(l));
	go_by(l, 19.9);
	assert_true(lease_lapsed_s(l) == 0);
	go_by(l, 0.2);
	assert_true(lease_lapsed_s(l) == 30);
}

TEST_OF(a_renewal_that_fails_changes_nothing)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 4, false), "renew");
	answer(&(struct mq_answer){.error = "no"}, 0);
	assert_string_equal(recorded(), "refused:no");
	assert_string_equal(kept_after(l, 0, false), "renew");
	answer(NULL, 0);
	assert_string_equal(kept_after(l, 0, false), "renew");
	answer(&(struct mq_answer){0}, 0);
	assert_string_equal(recorded(), "lost");
	go_by(l, 41.1);
	assert_true(lease_lapsed_s(l) == 45);
}

TEST_OF(an_answer_about_a_former_name_is_none)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 4, false), "renew");
	lease_new_name(l, "tag", &house->ids);
	answer(&(struct mq_answer){0}, 0);
	assert_string_equal(recorded(), "");
}

TEST_OF(a_connection_without_an_answer_is_given_up)
{
	join(l, 60000);
	assert_string_equal(kept_after(l, 4, false), "renew");
	assert_string_equal(kept_after(l, 19.9, false), "");
	go_by(l, 0.2);
	assert_false(lease_keep(l, false));
	/* A large message may be before it. */
	house->heard = true;
	assert_true(lease_keep(l, false));
	house->heard = false;
	assert_string_equal(kept_after(l, 19.9, false), "");
	go_by(l, 0.2);
	assert_false(lease_keep(l, false));
	lease_begin_connection(l);
	assert_string_equal(kept_after(l, 0, false), "renew");
}

TEST_OF(on_a_cluster_it_is_given_up_sooner)
{
	house->cluster = true;
	join(l, 60000);
	assert_string_equal(kept_after(l, 4, false), "renew");
	assert_string_equal(kept_after(l, 14.9, false), "");
	go_by(l, 0.2);
	assert_false(lease_keep(l, false));
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

TEST_OF(a_name_that_has_not_joined_has_no_messages)
{
	assert_true(lease_move(l, "tag", &house->ids));
	assert_null(lease_moved(l));
	join(l, 60000);
	assert_true(lease_move(l, "tag", &house->ids));
	lease_new_name(l, "tag", &house->ids);
	assert_null(lease_moved(l));
}
