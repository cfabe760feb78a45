/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "verdict.h"

#include <sys/wait.h>

#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/text.h"

#define ERRORS_LINE 200 /* bytes of a line of stderr in a reason */

/* The verdict of each final verb if the run ends well, and the name of the verb. */
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

void
mq_verdict_stopped(int status, struct mq_verdict *out)
{
	*out =
	    (struct mq_verdict){.kind = MQ_VERDICT_STOPPED, .status = status};
	strlcpy(out->text, "stopped by an operator", sizeof(out->text));
}

void
mq_verdict_end(int status, char *out, size_t size)
{
	const char *name;

	if (!WIFSIGNALED(status)) {
		snprintf(out, size, "exit status %d", WEXITSTATUS(status));
		return;
	}
	name = mq_signal_name(WTERMSIG(status));
	if (name != NULL)
		snprintf(out, size, "killed by SIG%s", name);
	else
		snprintf(out, size, "killed by signal %d", WTERMSIG(status));
}

static void
set_verdict(struct mq_verdict *out, enum mq_verdict_kind kind, const char *text,
    const char *how)
{
	out->kind = kind;
	out->resend_s = 0;
	strlcpy(out->text, text, sizeof(out->text));
	strlcpy(out->how, how, sizeof(out->how));
}

/* An unknown verb, as a slip for err, must not end well.  end: how the run ended; empty:
 * exit status 0. */
static void
set_unknown(
    struct mq_verdict *out, const char *verb, const char *text, const char *end)
{
	set_verdict(out, MQ_VERDICT_ERR, text, "");
	snprintf(out->how, sizeof(out->how), "%s%sunknown verb %s", end,
	    *end != '\0' ? " after " : "", verb);
}

static enum mq_verdict_kind
kind_of_status(int status, bool spoke, enum mq_strict strict)
{
	if (!WIFEXITED(status) || strict == MQ_STRICT_RQ || (strict && spoke))
		return MQ_VERDICT_ERR;
	switch (WEXITSTATUS(status)) {
	case 0:
		return strict ? MQ_VERDICT_ERR : MQ_VERDICT_DONE;
	case MQ_EXIT_AGAIN:
		return MQ_VERDICT_RETRY;
	case 126:
	case 127:
		return MQ_VERDICT_BROKEN;
	default:
		return MQ_VERDICT_ERR;
	}
}

void
mq_verdict(const struct mq_verbs *v, int status, bool timed_out,
    enum mq_strict strict, struct mq_verdict *out)
{
	enum mq_verdict_kind kind = effects[v->final].kind;
	char end[32] = "";

	out->status = status;
	if (status != 0)
		mq_verdict_end(status, end, sizeof(end));
	if (v->final == MQ_FINAL_ERR) {
		/* With a text, the end of the run is no part of the reason. */
		set_verdict(out, MQ_VERDICT_ERR, v->text,
		    v->text[0] == '\0' ? end : "");
	} else if (timed_out && (v->final == MQ_FINAL_NONE || status != 0)) {
		set_verdict(out, MQ_VERDICT_ERR, v->text, "timed out");
	} else if (v->final != MQ_FINAL_NONE && status != 0) {
		set_verdict(out, MQ_VERDICT_ERR, v->text, "");
		snprintf(out->how, sizeof(out->how), "%s after %s", end,
		    effects[v->final].name);
	} else if (v->final != MQ_FINAL_NONE) {
		set_verdict(out, kind, v->text, "");
		out->resend_s = v->resend_s;
	} else if (v->unknown[0] != '\0') {
		set_unknown(out, v->unknown, v->text, end);
	} else {
		kind = kind_of_status(status, v->spoke, strict);
		if (status == 0 && kind == MQ_VERDICT_ERR)
			strlcpy(end, "no final verb", sizeof(end));
		set_verdict(out, kind, v->text, end);
	}
}

void
mq_verdict_one(const struct mq_verbs *v, int which, int status, bool timed_out,
    enum mq_strict strict, struct mq_verdict *out)
{
	const struct mq_verb_one *one = &v->ones[which];
	const char *text = one->text != NULL ? one->text : "";
	char end[32] = "";

	out->status = status;
	if (status != 0)
		mq_verdict_end(status, end, sizeof(end));
	if (one->final == MQ_FINAL_ERR) {
		set_verdict(
		    out, MQ_VERDICT_ERR, text, *text == '\0' ? end : "");
	} else if (WIFSIGNALED(status) && !timed_out &&
	    v->final != MQ_FINAL_ERR) {
		set_verdict(out, MQ_VERDICT_RETRY, text, end);
	} else if (one->final != MQ_FINAL_NONE) {
		set_verdict(out, effects[one->final].kind, text, "");
		out->resend_s = one->resend_s;
	} else if (one->unknown[0] != '\0' && v->final == MQ_FINAL_NONE) {
		set_unknown(out, one->unknown, text, end);
	} else {
		mq_verdict(v, status, timed_out, strict, out);
		if (out->kind != MQ_VERDICT_DONE && out->text[0] == '\0')
			strlcpy(out->text, text, sizeof(out->text));
		if (v->stray && v->final != MQ_FINAL_ERR && status == 0)
			set_verdict(out, MQ_VERDICT_ERR, "",
			    "a verb names no message of the batch");
	}
}

/* --- the reason --------------------------------------------------------------- */

/* Copies a line from p to end, in whole characters, without escape sequences and the blanks
 * around it; returns its length. */
static size_t
plain_line(const char *p, const char *end, char *out, size_t size)
{
	size_t n = 0;
	char c;

	while (p < end && mq_utf8_inside(*p))
		p++;
	while (p < end && n < size - 1) {
		c = *p++;
		if (c == '\033') {
			/* An escape sequence, such as a colour. */
			if (p == end || *p != '[')
				continue;
			for (p++; p < end && (*p < '@' || *p > '~'); p++)
				;
			p += p < end;
			continue;
		}
		if (c == '\t')
			c = ' ';
		if (c != ' ' || n > 0)
			out[n++] = (c >= 0 && c < ' ') || c == 127 ? '?' : c;
	}
	if (p < end && mq_utf8_inside(*p)) {
		while (n > 0 && mq_utf8_inside(out[n - 1]))
			n--;
		n -= n > 0;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return n;
}

void
mq_verdict_reason(
    const struct mq_verdict *v, const char *errors, char *out, size_t size)
{
	const char *how = v->how, *why = v->text;
	const char *end = errors, *start;
	char line[ERRORS_LINE + 1] = "";
	size_t room = size - strlen(how) - sizeof(" ()");

	if (*why == '\0')
		end += strlen(errors);
	/* The last line that is not blank; lines of progress end in a carriage return. */
	for (; end > errors && *why == '\0';
	     end = start > errors ? start - 1 : start) {
		for (start = end;
		     start > errors && strchr("\r\n", start[-1]) == NULL;
		     start--)
			;
		if (plain_line(start, end, line, sizeof(line)) > 0)
			why = line;
	}
	if (*why == '\0')
		why = *how == '\0' && v->kind == MQ_VERDICT_ERR ? "err" : how;
	if (why == how || *how == '\0')
		snprintf(out, size, "%s", why);
	else
		snprintf(out, size, "%.*s (%s)", (int)room, why, how);
}
