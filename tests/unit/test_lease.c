/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * cmd/mq-consume/session/lease.c.  Time goes by as the test sets the moments back that
 * the lease remembers.
 */
#include "mq-consume/session/parts.h"
#include "record.h"

struct house {
	struct mq_consumer server;
	struct mq_idgen ids;
	struct facts *facts;
	struct lease lease;
	bool cluster, heard;
	int away; /* so many names are on nodes that are away */
	char first[NAME_SIZE], own[NAME_SIZE]; /* names, as it began */
	mq_answer_fn *renewed;
	void *renewed_arg;
};

static struct house *house;

/* --- the neighbours --- */

const char *
mq_consumer_away(const struct mq_consumer *k, int queue)
{
	assert_int_equal(queue, MQ_NEW_NAME);
	return house->away > 0 && house->away-- > 0 ? "away" : NULL;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	return house->heard;
}

void
mq_consumer_renew(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("renew");
	house->renewed = fn;
	house->renewed_arg = arg;
}

struct mq_command
mq_redis_command(const struct mq_redis *a)
{
	return (struct mq_command){.cluster = house->cluster};
}

/* --- what happens --- */

static void
go_by(struct lease *l, double s)
{
	l->asked -= s;
	l->sent -= s;
	l->heard_at -= s;
	if (l->renewal_sent > 0)
		l->renewal_sent -= s;
}

/* The server gives a lease of so many ms. */
static void
join(struct lease *l, int64_t ms, bool without_chance)
{
	lease_begin_join(l);
	l->ms = ms;
	lease_joined(l);
	if (without_chance) {
		l->early = 0.5;
		l->spread = 0;
	}
}

static void
answer(const struct mq_answer *a, long long ms)
{
	struct mq_answer with = a != NULL ? *a : (struct mq_answer){0};

	with.n = ms;
	house->renewed(house->renewed_arg, a != NULL ? &with : NULL);
}

static void
record_facts(void)
{
	struct fact f;

	while (fact_take(house->facts, &f)) {
		if (f.kind == FACT_COMPLAINT)
			record("refused:%s", f.text);
		else
			record(f.kind == FACT_LEASE_GONE ? "lost" : "?");
		fact_free(&f);
	}
}

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	h->facts = facts_new();
	h->lease = (struct lease){.server = &h->server, .facts = h->facts};
	lease_new_name(&h->lease, "tag", &h->ids);
	assert_null(h->server.session.former);
	strlcpy(h->first, h->lease.connection, sizeof(h->first));
	strlcpy(h->own, h->lease.name, sizeof(h->own));
	return &h->lease;
}

static void
teardown(void *arg)
{
	facts_free(house->facts);
	free(house);
	record_clear();
}

/* --- tests --- */

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
	    "busy 19.9", "after 0.2", "given-up -> yes", "no-answer",
	    "busy 0 -> renew"}},
    {"on a cluster it is given up sooner",
	{"cluster", "join 60000", "busy 4 -> renew", "busy 14.9", "after 0.2",
	    "given-up -> yes"}},
    {"a name that has not joined has no messages",
	{"move -> yes", "moved -> none", "join 60000", "move -> yes",
	    "moved -> another", "new-name", "moved -> none"}},
    {"a name is used once",
	{"name -> first", "join 60000", "listed", "new-name", "name -> another",
	    "former -> first", "former-until -> yes", "listed-is -> no",
	    "joined -> no"}},
    {"it moves to a name whose nodes answer",
	{"join 60000", "moved -> none", "away 999", "move -> yes",
	    "still-away -> 0", "moved -> first", "former -> first",
	    "name -> another", "joined -> no",
	    /* The server holds the messages under the former name, since then. */
	    "after 20", "begin", "after 25.1", "lapsed -> 45", "is-joined",
	    "moved -> none", "lapsed -> 0"}},
    {"there may be no such name",
	{"join 60000", "away 1000", "move -> no", "name -> first",
	    "moved -> none", "joined -> yes"}},
    {"the first of idle ones come at different times",
	{"join 60000", "spread 10", "busy 3.4", "idle 1", "idle 0.2 -> renew",
	    "answer 60000", "spread-is -> 0"}},
};

static void
record_name(const char *name)
{
	record("%s",
	    name == NULL			? "none" :
		strcmp(name, house->first) == 0 ? "first" :
						  "another");
}

static void
keep_after(struct lease *l, double s, bool idle)
{
	go_by(l, s);
	assert_true(lease_keep(l, idle));
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct lease *l = arg;

	WORD("answer", answer(&(struct mq_answer){0}, atoi(about)),
	    record_facts());
	WORD("refuse", answer(&(struct mq_answer){.error = "no"}, 0),
	    record_facts());
	WORD("no-answer", answer(NULL, 0), record_facts());
	WORD("begin", lease_begin_join(l));
	WORD("confirm", l->ms = atoi(about));
	WORD("is-joined", lease_joined(l));
	WORD("join", join(l, atoi(about), true));
	WORD("after", go_by(l, atof(about)));
	WORD("busy", keep_after(l, atof(about), false));
	WORD("idle", keep_after(l, atof(about), true));
	WORD("answered", l->renewal_sent = 0);
	WORD("new-name", lease_new_name(l, "tag", &house->ids));
	WORD("listed", house->server.session.listed = true);
	WORD("away", house->away = atoi(about));
	WORD("spread", l->spread = atof(about));
	WORD("cluster", house->cluster = true);
	WORD("heard", house->heard = true);
	WORD("unheard", house->heard = false);
	WORD("asked", answers(l->sent > 0));
	WORD("joined", answers(l->joined));
	WORD("renewing", answers(l->renewal_sent > 0));
	WORD("given-up", answers(!lease_keep(l, false)));
	WORD("moved", record_name(l->old_name[0] != '\0' ? l->old_name : NULL));
	WORD("name", record_name(l->connection));
	WORD("former", record_name(house->server.session.former));
	WORD(
	    "former-until", answers(house->server.session.former_s == l->sent));
	WORD("listed-is", answers(house->server.session.listed));
	WORD("still-away", record("%d", house->away));
	WORD("spread-is", record("%g", l->spread));
	WORD("move", answers(lease_rename(l, "tag", &house->ids)));
	WORD("lapsed", record("%g", lease_lapsed_s(l)));
	return false;
}

TEST_ROWS(lease)

TEST_OF(names_and_chance, struct lease *l)
{
	join(l, 60000, false);
	assert_true(l->early >= 0.5 && l->early <= 1.5);
	assert_true(l->spread >= 0 && l->spread <= 15);
	assert_memory_equal(l->connection, "tag-", 4);
	assert_int_equal(strlen(l->connection), 10);
	lease_new_name(l, "tag", &house->ids);
	assert_string_not_equal(l->name, house->own);
	assert_string_not_equal(l->name, l->connection);
}
