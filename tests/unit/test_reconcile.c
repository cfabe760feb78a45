#include "inbox.h"

#define TEST_OF(fn)                                                            \
	TEST_WITH(fn, struct fixture *f, fixture_setup, fixture_teardown)

static void
on_missing(void *arg, struct message *m)
{
	struct fixture *f = arg;

	record("missing:%s:%lu", name_of(m), m->number);
	inbox_forget(&f->inbox, m);
}

/* Of queue a the server holds these, the newest first. */
static void
reconcile(struct fixture *f, long long received, const char *names)
{
	struct elements e = make_elements(names);
	struct mq_held held = {received, e.list, e.n};

	inbox_reconcile(&f->inbox, 0, &held, on_missing, f);
	free_elements(&e);
}

TEST_OF(nothing_is_missing)
{
	add(f, "a1 b1 a2 a3");
	start_all(f, 1);
	(void)recorded();
	reconcile(f, 0, "a3 a2 a1");
	assert_string_equal(recorded(), "");
	assert_int_equal(inbox_count(&f->inbox, 0), 3);
	assert_true(inbox_in_order(&f->inbox, 0));
}

TEST_OF(what_the_server_does_not_hold_is_missing)
{
	add(f, "a1 b1 a2 a3 a4 a5");
	find(f, "a2")->in_flight = true;
	find(f, "a3")->lost = true;
	find(f, "a4")->gone = true;
	reconcile(f, 0, "a5");
	assert_string_equal(recorded(), "missing:a1:1");
	assert_int_equal(inbox_count(&f->inbox, 0), 2);
}

TEST_OF(an_answer_that_was_lost_is_made_up)
{
	reconcile(f, 2, "a2 a1");
	reconcile(f, 4, "a4 a3 a2 a1");
	reconcile(f, 4, "a4 a3 a2 a1");
	assert_int_equal(inbox_held(&f->inbox), 4);
	assert_true(inbox_in_order(&f->inbox, 0));
	start_all(f, 0);
	assert_string_equal(recorded(), "a1 a2 a3 a4");
}

TEST_OF(an_answer_that_was_lost_had_an_equal_message)
{
	reconcile(f, 1, "a1");
	reconcile(f, 2, "a1");
	assert_string_equal(recorded(), "missing:a1:1");
	assert_int_equal(inbox_count(&f->inbox, 0), 1);
}

TEST_OF(what_nobody_claimed_is_out_of_order)
{
	reconcile(f, 1, "a1");
	reconcile(f, 1, "a1 a0");
	assert_int_equal(inbox_held(&f->inbox), 2);
	assert_false(inbox_in_order(&f->inbox, 0));
	inbox_forget(&f->inbox, find(f, "a1"));
	assert_false(inbox_in_order(&f->inbox, 0));
	inbox_forget(&f->inbox, find(f, "a0"));
	assert_true(inbox_in_order(&f->inbox, 0));
}

TEST_OF(a_new_name_has_received_nothing)
{
	reconcile(f, 2, "a2 a1");
	inbox_renamed(&f->inbox);
	reconcile(f, 1, "a3");
	assert_string_equal(recorded(), "missing:a1:1 missing:a2:2");
	assert_true(inbox_in_order(&f->inbox, 0));
	start_all(f, 0);
	assert_string_equal(recorded(), "a3");
}

/* Two equal messages, of which one runs, and the settlement of the other is not answered;
 * maybe the claim of a third one is not, either. */
static void
check_equal(struct fixture *f, bool first, bool took_effect, bool claimed)
{
	static const char *const held[] = {"a1", "a1 a1", "a1 a1 a1"};
	struct message *m;
	char missing[32] = "";

	reconcile(f, 2, held[1]);
	m = first ? inbox_first(&f->inbox) : inbox_last(&f->inbox);
	m->sent = true;
	if (took_effect)
		snprintf(missing, sizeof(missing), "missing:a1:%lu", m->number);
	reconcile(f, 2 + claimed, held[1 + claimed - took_effect]);
	assert_string_equal(recorded(), missing);
	assert_int_equal(inbox_count(&f->inbox, 0), 2 + claimed - took_effect);
	/* What had no effect counts as not sent. */
	TAILQ_FOREACH(m, &f->inbox.all, link)
		assert_false(m->sent);
	while (!inbox_empty(&f->inbox))
		inbox_forget(&f->inbox, inbox_first(&f->inbox));
	inbox_renamed(&f->inbox);
}

TEST_OF(of_equal_ones_the_settled_is_missing)
{
	int i;

	for (i = 0; i < 8; i++)
		check_equal(f, i & 1, i & 2, i & 4);
}

TEST_OF(as_many_are_missing_as_were_settled)
{
	reconcile(f, 4, "a1 a1 a1 a1");
	find(f, "a1")->sent = true;
	inbox_last(&f->inbox)->sent = true;
	/* And one was claimed. */
	reconcile(f, 5, "a1 a1 a1");
	assert_string_equal(recorded(), "missing:a1:1 missing:a1:4");
	/* Somebody has taken another one. */
	reconcile(f, 5, "a1 a1");
	assert_string_equal(recorded(), "missing:a1:5");
}

TEST_OF(under_a_new_name_claims_are_counted_anew)
{
	reconcile(f, 2, "a2 a1");
	inbox_renamed(&f->inbox);
	reconcile(f, 1, "a3 a2 a1");
	assert_true(inbox_in_order(&f->inbox, 0));
	assert_int_equal(inbox_held(&f->inbox), 3);
}
