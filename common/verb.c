#include "verb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "exit.h"
#include "url.h"
#include "xalloc.h"

#define RESEND_MAX (3650LL * 24 * 60 * 60)
#define BLANKS	   " \t\r"

static const struct {
	const char *verb;
	enum mq_verb_final final;
} finals[] = {
    {"done", MQ_FINAL_DONE},
    {"relayed", MQ_FINAL_DONE},
    {"err", MQ_FINAL_ERR},
    {"fail", MQ_FINAL_ERR},
    {"fails", MQ_FINAL_ERR},
    {"resend", MQ_FINAL_RESEND},
    {"pause", MQ_FINAL_PAUSE},
    {"push", MQ_FINAL_PUSH},
};

/* What follows from one, when the run ends well, and its name. */
static const struct {
	enum mq_verdict_kind kind;
	const char *name;
} effects[] = {
    [MQ_FINAL_DONE] = {MQ_VERDICT_DONE, "done"},
    [MQ_FINAL_RESEND] = {MQ_VERDICT_RESEND, "resend"},
    [MQ_FINAL_TICK] = {MQ_VERDICT_TICK, "resend"},
    [MQ_FINAL_PAUSE] = {MQ_VERDICT_PAUSE, "pause"},
    [MQ_FINAL_PUSH] = {MQ_VERDICT_PUSH, "push"},
};

static enum mq_verb_final
final_of(const char *verb, size_t n)
{
	size_t i;

	for (i = 0; i < sizeof(finals) / sizeof(finals[0]); i++)
		if (strlen(finals[i].verb) == n &&
		    memcmp(finals[i].verb, verb, n) == 0)
			return finals[i].final;
	return MQ_FINAL_NONE;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * DUE as RQ reads it, with Ruby's String#to_i: as far as it looks like a
 * number, 0 when it does not.
 */
int64_t
mq_verb_due(const char *s)
{
	int64_t v = 0;

	if (*s == '+')
		s++;
	for (; is_digit(*s); s++) {
		v = v * 10 + (*s - '0');
		if (v > RESEND_MAX)
			return RESEND_MAX;
		if (s[1] == '_')
			s++;
	}
	return v;
}

static bool
is_tick(const char *s)
{
	return strcspn(s, "-" BLANKS) == 4 && strncmp(s, "tick", 4) == 0;
}

/* How many bytes at p, of n, are blanks (or, without blanks, are none). */
static size_t
span(const char *p, size_t n, bool blanks)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((p[i] != '\0' && strchr(BLANKS, p[i]) != NULL) != blanks)
			break;
	return i;
}

static void
copy_text(char *text, const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		text[i] = p[i] == '\0' ? '?' : p[i];
	text[n] = '\0';
}

/*
 * Which of several messages the text names, which is then cut off it; -1: none;
 * as many as there are: one that there is not.
 */
static int
take_number(struct mq_verbs *v, char *text)
{
	long n = 0;
	char *p = text + 1, *end = p;

	if (v->ones == NULL || text[0] != '#')
		return -1;
	if (is_digit(*p))
		n = strtol(p, &end, 10);
	if (n < 1 || n > v->count ||
	    (*end != '\0' && strchr(BLANKS, *end) == NULL)) {
		v->stray = true;
		return v->count;
	}
	end += span(end, strlen(end), true);
	memmove(text, end, strlen(end) + 1);
	return (int)(n - 1);
}

/* Its text is shown like any other, but a URL in it may have a password. */
static void
take_dup(const struct mq_verbs *v, int which, char *text, bool whole)
{
	size_t n = strlen(text);

	if (n > 0 && text[n - 1] == '\r')
		text[n - 1] = '\0';
	if (v->on_dup != NULL)
		v->on_dup(v->arg, which, whole ? text : NULL);
	mq_url_hide_password(text);
	if (!whole)
		text[0] = '\0';
}

static void
take_final(const char *text, enum mq_verb_final *final, int64_t *resend_s)
{
	if (*final == MQ_FINAL_RESEND && is_tick(text))
		*final = MQ_FINAL_TICK;
	else if (*final == MQ_FINAL_RESEND || *final == MQ_FINAL_PAUSE)
		*resend_s = mq_verb_due(text);
}

/* A verb about one of several. */
static void
take_one(struct mq_verb_one *one, enum mq_verb_final final, const char *text)
{
	free(one->text);
	one->text = mq_xstrdup(text);
	if (one->final != MQ_FINAL_NONE)
		return;
	one->final = final;
	take_final(text, &one->final, &one->resend_s);
}

/* A verb about all, or all that are left. */
static void
take_plain(struct mq_verbs *v, enum mq_verb_final final, const char *text)
{
	strlcpy(v->text, text, sizeof(v->text));
	v->spoke = true;
	if (v->final != MQ_FINAL_NONE)
		return;
	v->final = final;
	take_final(text, &v->final, &v->resend_s);
}

static void
take_line(struct mq_verbs *v)
{
	size_t start = span(v->line, v->line_len, true);
	const char *verb = v->line + start;
	size_t left = v->line_len - start;
	size_t n = span(verb, left, false);
	size_t gap = span(verb + n, left - n, true);
	bool whole = v->line_len < sizeof(v->line);
	char text[MQ_VERB_LINE + 1];
	int which;

	v->line_len = 0;
	if (n == 0)
		return;
	copy_text(text, verb + n + gap, left - n - gap);
	which = take_number(v, text);
	if (n == 3 && memcmp(verb, "dup", 3) == 0)
		take_dup(v, which, text, whole);
	v->about = which < v->count ? which + 1 : 0;
	if (v->about > 0)
		take_one(&v->ones[which], final_of(verb, n), text);
	else
		take_plain(v, final_of(verb, n), text);
}

const char *
mq_verbs_text(const struct mq_verbs *v)
{
	return v->about > 0 ? v->ones[v->about - 1].text : v->text;
}

size_t
mq_verbs_feed_line(struct mq_verbs *v, const char *p, size_t n)
{
	const char *nl = memchr(p, '\n', n);
	size_t piece = nl != NULL ? (size_t)(nl - p) : n;
	size_t room = sizeof(v->line) - v->line_len;

	if (room > piece)
		room = piece;
	memcpy(v->line + v->line_len, p, room);
	v->line_len += room;
	if (nl == NULL)
		return n;
	take_line(v);
	return piece + 1;
}

void
mq_verbs_feed(struct mq_verbs *v, const char *p, size_t n)
{
	size_t took;

	for (; n > 0; p += took, n -= took)
		took = mq_verbs_feed_line(v, p, n);
}

void
mq_verbs_next(struct mq_verbs *v)
{
	v->final = MQ_FINAL_NONE;
	v->spoke = false;
	v->resend_s = 0;
	v->text[0] = '\0';
}

void
mq_verbs_begin(struct mq_verbs *v)
{
	v->final = MQ_FINAL_NONE;
	v->spoke = v->stray = false;
	v->ones = NULL;
	v->count = 0;
	v->resend_s = 0;
	v->text[0] = '\0';
	v->line_len = 0;
	v->on_dup = NULL;
	v->arg = NULL;
}

void
mq_verbs_end(struct mq_verbs *v)
{
	take_line(v);
}

/* How the run ended, in words. */
static void
describe(int status, char *out, size_t size)
{
	const char *name;

	if (!WIFSIGNALED(status)) {
		snprintf(out, size, "exit status %d", WEXITSTATUS(status));
		return;
	}
	name = sigabbrev_np(WTERMSIG(status));
	if (name != NULL)
		snprintf(out, size, "killed by SIG%s", name);
	else
		snprintf(out, size, "killed by signal %d", WTERMSIG(status));
}

static void __attribute__((format(printf, 3, 4)))
judge(struct mq_verdict *out, enum mq_verdict_kind kind, const char *fmt, ...)
{
	va_list ap;

	out->kind = kind;
	out->resend_s = 0;
	va_start(ap, fmt);
	vsnprintf(out->reason, sizeof(out->reason), fmt, ap);
	va_end(ap);
}

static void
judge_err(const char *text, struct mq_verdict *out)
{
	judge(out, MQ_VERDICT_ERR, "%s", *text != '\0' ? text : "err");
}

/* A final verb but err was said; only an exit status of 0 confirms it. */
static void
judge_final(const struct mq_verbs *v, int status, struct mq_verdict *out)
{
	char how[64];

	if (status != 0) {
		describe(status, how, sizeof(how));
		judge(out, MQ_VERDICT_ERR, "%s after %s", how,
		    effects[v->final].name);
		return;
	}
	judge(out, effects[v->final].kind, "%s", v->text);
	out->resend_s = v->resend_s;
}

static void
judge_unfinished(const struct mq_verbs *v, int status, struct mq_verdict *out)
{
	char how[64] = "no final verb";

	if (status != 0)
		describe(status, how, sizeof(how));
	judge(out, MQ_VERDICT_ERR, "%s%s%s", how, *v->text != '\0' ? ": " : "",
	    v->text);
}

static void
judge_silent(int status, bool strict, struct mq_verdict *out)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	char how[64];

	if (code == 0) {
		judge(out, strict ? MQ_VERDICT_ERR : MQ_VERDICT_DONE, "%s",
		    strict ? "no final verb" : "");
		return;
	}
	describe(status, how, sizeof(how));
	if (code == MQ_EXIT_AGAIN)
		judge(out, MQ_VERDICT_RETRY, "%s", how);
	else if (code == 126 || code == 127)
		judge(out, MQ_VERDICT_STOP, "%s: the command cannot run", how);
	else
		judge(out, MQ_VERDICT_ERR, "%s", how);
}

void
mq_verdict(const struct mq_verbs *v, int status, bool timed_out, bool strict,
    struct mq_verdict *out)
{
	bool confirmed = v->final != MQ_FINAL_NONE && status == 0;

	out->status = status;
	if (v->final == MQ_FINAL_ERR)
		judge_err(v->text, out);
	else if (timed_out && !confirmed)
		judge(out, MQ_VERDICT_ERR, "timed out");
	else if (v->final != MQ_FINAL_NONE)
		judge_final(v, status, out);
	else if (v->spoke)
		judge_unfinished(v, status, out);
	else
		judge_silent(status, strict, out);
}

void
mq_verdict_one(const struct mq_verbs *v, int which, int status, bool timed_out,
    bool strict, struct mq_verdict *out)
{
	const struct mq_verb_one *one = &v->ones[which];
	char how[64];

	out->status = status;
	if (one->final == MQ_FINAL_ERR) {
		judge_err(one->text, out);
	} else if (WIFSIGNALED(status) && !timed_out &&
	    v->final != MQ_FINAL_ERR) {
		describe(status, how, sizeof(how));
		judge(out, MQ_VERDICT_RETRY, "%s", how);
	} else if (one->final != MQ_FINAL_NONE) {
		judge(out, effects[one->final].kind, "%s", one->text);
		out->resend_s = one->resend_s;
	} else {
		mq_verdict(v, status, timed_out, strict, out);
		if (v->stray && v->final != MQ_FINAL_ERR && status == 0)
			judge(out, MQ_VERDICT_ERR,
			    "a verb was about no message of the batch");
	}
}
