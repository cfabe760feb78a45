#include "filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"

static void
compile_regex(regex_t *re, int flags, const char *option, const char *arg)
{
	char why[256];
	int fault = regcomp(re, arg, REG_EXTENDED | REG_NOSUB | flags);

	if (fault == 0)
		return;
	regerror(fault, re, why, sizeof(why));
	mq_die(fault == REG_ESPACE ? MQ_EXIT_AGAIN : MQ_EXIT_USAGE,
	    "%s: %s: %s", option, arg, why);
}

static void
set_regex(
    bool *given, regex_t *re, int flags, const char *option, const char *arg)
{
	/* The last one counts, as with all options. */
	if (*given)
		regfree(re);
	compile_regex(re, flags, option, arg);
	*given = true;
}

static int64_t
time_ago(const char *option, const char *arg)
{
	int64_t ms =
	    mq_clock_unix_us() / 1000 - mq_option_duration(option, arg);

	/* 0 would mean that there is no filter. */
	return ms > 0 ? ms : 1;
}

bool
mq_filter_option(struct mq_filter *f, int ch, const char *arg)
{
	switch (ch) {
	case MQ_OPT_MATCH:
		set_regex(&f->match, &f->match_re, 0, "--match", arg);
		return true;
	case MQ_OPT_REASON:
		set_regex(&f->reason, &f->reason_re, 0, "--reason", arg);
		return true;
	case MQ_OPT_STDERR:
		set_regex(
		    &f->errors, &f->errors_re, REG_NEWLINE, "--stderr", arg);
		return true;
	case MQ_OPT_SINCE:
		f->since_ms = time_ago("--since", arg);
		return true;
	case MQ_OPT_OLDER:
		f->older_ms = time_ago("--older-than", arg);
		return true;
	case MQ_OPT_ID:
		f->id = arg;
		return true;
	default:
		return false;
	}
}

void
mq_filter_check(const struct mq_filter *f, const struct mq_layout *l)
{
	size_t n = f->id != NULL ? strlen(f->id) : 0;

	if (f->id == NULL || mq_id_valid(f->id, n) ||
	    (l->has & MQ_HAS_IDS && mq_id_safe(f->id, n)))
		return;
	mq_die(MQ_EXIT_USAGE, "--id: %s: not an id (%s)", f->id,
	    l->has & MQ_HAS_IDS ? "letters, digits, : _ and -, at most 128" :
				  "32 letters and digits");
}

bool
mq_filter_given(const struct mq_filter *f)
{
	return f->id != NULL || f->match || f->reason || f->errors ||
	    f->since_ms != 0 || f->older_ms != 0;
}

/* n bytes at p, which may be NUL or no text at all. */
static bool
matches_regex(const regex_t *re, const char *p, size_t n)
{
#ifdef REG_STARTEND
	regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)n};

	return regexec(re, p, 1, &range, REG_STARTEND) == 0;
#else
	/* musl: what is behind a NUL is not searched. */
	char *text = mq_xstrndup(p, n);
	bool found = regexec(re, text, 0, NULL, 0) == 0;

	free(text);
	return found;
#endif
}

/* Whether it last failed, or became ready, in the time that is meant. */
static bool
in_time(const struct mq_filter *f, const struct mq_envelope *e)
{
	int64_t ms;

	if (f->since_ms == 0 && f->older_ms == 0)
		return true;
	ms = mq_history_last_ms(e);
	if (ms == 0)
		ms = mq_message_since_ms(e);
	return ms != 0 && (f->since_ms == 0 || ms >= f->since_ms) &&
	    (f->older_ms == 0 || ms <= f->older_ms);
}

static bool
has_reason(const struct mq_filter *f, const struct mq_envelope *e)
{
	const char *reason = mq_envelope_get(e, MQ_HEADER_ERROR);

	return !f->reason ||
	    (reason != NULL &&
		matches_regex(&f->reason_re, reason, strlen(reason)));
}

/* Whether the stderr of its last run, of which the end is kept, matches. */
static bool
has_errors(const struct mq_filter *f, const struct mq_envelope *e)
{
	json_t *last, *v;
	bool rv;

	if (!f->errors)
		return true;
	last = mq_history_last(e);
	v = json_object_get(last, "stderr");
	rv = v != NULL &&
	    matches_regex(
		&f->errors_re, json_string_value(v), json_string_length(v));
	json_decref(last);
	return rv;
}

static bool
has_id(const struct mq_filter *f, const struct mq_envelope *e)
{
	const char *id = mq_message_name(e);

	return f->id == NULL || (id != NULL && strcmp(id, f->id) == 0);
}

bool
mq_filter_match(const struct mq_filter *f, const char *element, size_t len)
{
	struct mq_envelope e;
	const char *why;
	bool rv;

	if (mq_envelope_parse(element, len, &e, &why) == -1)
		e = (struct mq_envelope){NULL, element, len};
	rv = has_id(f, &e) && has_reason(f, &e) && has_errors(f, &e) &&
	    in_time(f, &e) &&
	    (!f->match ||
		matches_regex(&f->match_re, e.payload, e.payload_len));
	mq_envelope_free(&e);
	return rv;
}

void
mq_filter_free(struct mq_filter *f)
{
	if (f->match)
		regfree(&f->match_re);
	if (f->reason)
		regfree(&f->reason_re);
	if (f->errors)
		regfree(&f->errors_re);
	*f = (struct mq_filter){0};
}
