/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-set: show and change the settings of a queue, which consumers and publishers obey unless
 * an option of their own wins. */
#include "queue/settings.h"
#include "shared/options.h"

static const char usage[] =
    "usage: mq-set [options] QUEUE [NAME | NAME=VALUE...]\n"
    "\n"
    "Changes settings of a queue, or shows them.  They apply to its consumers and\n"
    "publishers at once, unless an option of their own overrides them.  NAME=\n"
    "removes a setting, NAME prints its value.  Exit status 1: no such queue, or\n"
    "the setting is not set.\n"
    "\n"
    "  mq-set mails attempts=5 backoff=10s..1h rate-shared=20/s\n"
    "  mq-set mails max-length=100000 rate-shared=\n"
    "  mq-set mails slots\n"
    "\n"
    "attempts=N  backoff=MIN..MAX  timeout=DUR  retry-on=err  slots=N\n"
    "rate-shared=N/s[:BURST]  push=QUEUE  notify=QUEUE  keep=DUR\n"
    "max-length=N[:HIGH]  group-slots=N  slots-shared=N\n"
    "keep-rejected=DUR[:N]|N\n"
    "With -L rsmq, also: vt=DUR  delay=DUR  maxsize=N\n"
    "\n";

struct setter {
	struct mq_shared shared;
	struct mq_server server;
	struct mq_redis redis;
	const struct mq_layout *layout;
	const char *queue;
	bool json;
	const char *asked; /* the only setting to show; NULL: all */
	struct mq_setting_texts texts;
	const char *push, *notify; /* queues to make; NULL: none */
	struct mq_attributes attributes;
	bool settings;	 /* change settings */
	bool attributed; /* change attributes */
};

static const struct mq_option makes[] = {
    {.help = "+      --new, --create    make the queue if it does not exist"},
    {0, "--new", NULL, NULL, MQ_FLAG(struct mq_shared, fresh)},
    /* The former name. */
    {0, "--create", NULL, NULL, MQ_FLAG(struct mq_shared, fresh)},
    {0, "--existing", NULL, "make no queue for push and notify, either",
	MQ_FLAG(struct mq_shared, existing)},
    {0},
};
static const struct mq_option form[] = {
    {0, "--json", NULL, "+show the settings as a JSON object",
	MQ_FLAG(struct setter, json)},
    {0},
};

/* --- the command line ------------------------------------------------------- */

static bool
is_name(const char *arg, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(arg, name, n) == 0;
}

/* The setting with this name of n bytes, or that former name; -1: there is none. */
static int
find_setting(const char *name, size_t n)
{
	const char *called;
	int i;

	for (i = 0; i < MQ_SETTINGS; i++) {
		called = mq_setting_list[i].name;
		if (is_name(name, n, called) ||
		    (is_name(name, n, "rate") &&
			strcmp(called, "rate-shared") == 0))
			return i;
	}
	return -1;
}

/* The member for an attribute of RSMQ; NULL: there is no such attribute. */
static long *
find_attribute(struct mq_attributes *a, const char *arg, size_t n)
{
	return is_name(arg, n, "vt")   ? &a->vt_s :
	    is_name(arg, n, "delay")   ? &a->delay_s :
	    is_name(arg, n, "maxsize") ? &a->maxsize :
					 NULL;
}

/* Checks a value, and returns the one to store: a queue's name has its namespace. */
static char *
check_value(struct setter *s, int which, const char *arg, const char *value)
{
	struct mq_settings one = MQ_SETTINGS_NONE;
	char *kept;

	if (strcmp(mq_setting_list[which].name, "group-slots") == 0)
		mq_option_needs(&s->shared, "group-slots", MQ_HAS_GROUPS);
	forbid(strcmp(mq_setting_list[which].name, MQ_KEEP_REJECTED) == 0 &&
		!(s->layout->has & MQ_HAS_BATCHES),
	    MQ_KEEP_REJECTED ": with the layout %s, rejected messages go to a "
			     "queue of their own",
	    s->layout->name);
	if (*value == '\0')
		return mq_xstrdup(value);
	forbid(!mq_setting_parse(&one, which, value, false), "%s: must be %s",
	    arg, mq_setting_list[which].form);
	if (one.notify != NULL || one.keep_ms != -1)
		mq_option_needs(
		    &s->shared, mq_setting_list[which].name, MQ_HAS_RESULTS);
	if (one.push != NULL || one.notify != NULL) {
		value = mq_option_queue(&s->shared, &s->server, value);
		forbid(strcmp(value, s->queue) == 0,
		    "%s: must be another queue", arg);
	}
	kept = mq_xstrdup(value);
	if (one.push != NULL)
		s->push = kept;
	else if (one.notify != NULL)
		s->notify = kept;
	return kept;
}

static void
take_change(struct setter *s, const char *arg)
{
	const char *equals = strchr(arg, '=');
	size_t n = equals != NULL ? (size_t)(equals - arg) : 0;
	struct mq_buf names = {0};
	long *attribute;
	char *name;
	int which;

	if (equals == NULL)
		mq_die(MQ_EXIT_USAGE,
		    find_setting(arg, strlen(arg)) == -1 ?
			"%s: not of the form NAME=VALUE" :
			"%s: add =VALUE, or name this setting alone",
		    arg);
	attribute = find_attribute(&s->attributes, arg, n);
	if (attribute != NULL) {
		name = mq_xstrndup(arg, n);
		mq_option_needs(&s->shared, name, MQ_HAS_ATTRIBUTES);
		forbid(
		    *attribute != MQ_ATTRIBUTE_NONE, "%s: given twice", name);
		*attribute = mq_option_attribute(
		    name, equals + 1, attribute == &s->attributes.maxsize);
		s->attributed = true;
		free(name);
		return;
	}
	which = find_setting(arg, n);
	if (which == -1) {
		for (which = 0; which < MQ_SETTINGS; which++)
			mq_buf_printf(
			    &names, " %s", mq_setting_list[which].name);
		mq_die(MQ_EXIT_USAGE, "%s: no such setting; the settings are%s",
		    arg, mq_buf_str(&names));
	}
	forbid(s->texts.text[which] != NULL, "%s: given twice",
	    mq_setting_list[which].name);
	s->texts.text[which] = check_value(s, which, arg, equals + 1);
	s->settings = true;
}

/* Whether the only operand behind the queue is the name of a setting to show. */
static bool
take_question(struct setter *s, const char *arg)
{
	int which = find_setting(arg, strlen(arg));

	if (which != -1)
		s->asked = mq_setting_list[which].name;
	else if (s->layout->has & MQ_HAS_ATTRIBUTES &&
	    find_attribute(&s->attributes, arg, strlen(arg)) != NULL)
		s->asked = arg;
	return s->asked != NULL;
}

static void
parse_options(struct setter *s, int argc, char *argv[])
{
	const struct mq_options tables[] = {{makes, &s->shared}, {form, s},
	    {mq_shared_options, &s->shared}, {0}};
	const char *equals;

	mq_option_read(&s->shared, tables, argc, argv);
	mq_option_rights(&s->shared,
	    MQ_SETS | (s->shared.fresh ? MQ_CREATES : 0), argv + optind,
	    optind < argc ? 1 : 0);
	forbid(optind == argc, "no queue given (try --help)");
	equals = strchr(argv[optind], '=');
	forbid(equals != NULL &&
		find_setting(argv[optind], (size_t)(equals - argv[optind])) !=
		    -1,
	    "%s: name the queue before the settings", argv[optind]);
	forbid(s->json && optind + 1 < argc, "--json cannot be used with %s",
	    argv[optind + 1]);
}

/* --- the server ------------------------------------------------------------- */

static void
make_queue(
    struct setter *s, const char *queue, const struct mq_attributes *attributes)
{
	bool made;

	mq_option_must(&s->redis,
	    mq_queue_make(
		&s->redis, s->layout, queue, attributes, MQ_MAKE, &made));
	if (made)
		mq_option_made(&s->shared, &s->redis, queue);
}

static void __attribute__((noreturn))
end_unknown(struct setter *s, const char *queue)
{
	mq_option_unknown(&s->redis, s->layout, queue);
	exit(MQ_EXIT_NO);
}

static bool
is_known(struct setter *s, const char *queue)
{
	bool known = false;

	if (mq_queue_known(&s->redis, s->layout, queue, &known) == -1 &&
	    (!s->shared.fresh ||
		mq_queue_unlisted(&s->redis, s->layout, queue) == NULL))
		mq_option_must(&s->redis, -1);
	return known;
}

/* Makes the queue of push or notify; NULL: none. */
static void
make_target(struct setter *s, const char *queue)
{
	static const struct mq_attributes none = MQ_ATTRIBUTES_NONE;

	if (queue == NULL)
		return;
	if (s->shared.existing && !is_known(s, queue))
		end_unknown(s, queue);
	make_queue(s, queue, &none);
}

/* --- showing ---------------------------------------------------------------- */

/* Shows settings in the form that mq-set accepts, or as another program has written them.
 * Returns the exit status. */
static int
show_settings(struct setter *s)
{
	json_t *shown = json_object(), *value;
	struct mq_setting_texts t;
	struct mq_attributes a;
	struct mq_buf out = {0};
	const char *name;
	bool missing;
	int i;

	mq_option_must(
	    &s->redis, mq_settings_get(&s->redis, s->layout, s->queue, &t));
	for (i = 0; i < MQ_SETTINGS; i++)
		mq_json_set(
		    shown, mq_setting_list[i].name, mq_json_text(t.text[i]));
	mq_setting_texts_free(&t);
	if (s->layout->has & MQ_HAS_ATTRIBUTES) {
		mq_option_must(&s->redis,
		    mq_queue_attributes(&s->redis, s->layout, s->queue, &a));
		mq_json_set(shown, "vt", json_sprintf("%lds", a.vt_s));
		mq_json_set(shown, "delay", json_sprintf("%lds", a.delay_s));
		mq_json_set(shown, "maxsize", json_sprintf("%ld", a.maxsize));
	}
	missing = s->asked != NULL && json_object_get(shown, s->asked) == NULL;
	if (s->json) {
		output_json_line(json_incref(shown));
	} else {
		json_object_foreach(shown, name, value) {
			if (s->asked != NULL && strcmp(name, s->asked) != 0)
				continue;
			if (s->asked == NULL)
				mq_buf_printf(&out, "%s=", name);
			mq_buf_visible(&out, json_string_value(value),
			    json_string_length(value));
			mq_buf_add(&out, "\n", 1);
		}
	}
	fputs(mq_buf_str(&out), stdout);
	mq_buf_free(&out);
	json_decref(shown);
	return missing ? MQ_EXIT_NO : MQ_EXIT_OK;
}

int
main(int argc, char *argv[])
{
	struct setter s = {
	    .shared = {.usage = usage}, .attributes = MQ_ATTRIBUTES_NONE};
	int i, status = MQ_EXIT_OK;
	bool there;

	mq_option_begin();
	parse_options(&s, argc, argv);
	mq_option_prints(optind + 1 == argc ||
	    (optind + 2 == argc && strchr(argv[optind + 1], '=') == NULL));
	s.layout = mq_option_server(&s.shared, &s.server);
	s.queue = mq_option_queue(&s.shared, &s.server, argv[optind]);
	if (optind + 2 != argc || !take_question(&s, argv[optind + 1]))
		for (i = optind + 1; i < argc; i++)
			take_change(&s, argv[i]);
	mq_option_must(&s.redis, mq_redis_open(&s.redis, &s.server));
	if (!is_known(&s, s.queue)) {
		if (!s.shared.fresh)
			end_unknown(&s, s.queue);
		make_queue(&s, s.queue, &s.attributes);
	}
	make_target(&s, s.push);
	make_target(&s, s.notify);
	if (s.attributed)
		mq_option_must(&s.redis,
		    mq_queue_make(&s.redis, s.layout, s.queue, &s.attributes,
			MQ_MAKE_SET, &there));
	if (s.settings)
		mq_option_must(&s.redis,
		    mq_settings_put(&s.redis, s.layout, s.queue, &s.texts));
	if (!s.settings && !s.attributed)
		status = show_settings(&s);
	mq_setting_texts_free(&s.texts);
	mq_option_end(&s.shared, &s.server, &s.redis);
	mq_close_stdout();
	return status;
}
