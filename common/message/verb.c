/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

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

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* RQ reads DUE with Ruby's String#to_i: the leading number, or 0. */
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

int
mq_verb_percent(const char *text)
{
	size_t n = strspn(text, "0123456789");
	int64_t percent = n <= 3 ? mq_number(text, n, 101) : -1;

	if (text[n] != '%' || percent > 100 ||
	    (text[n + 1] != '\0' && !is_blank(text[n + 1])))
		return -1;
	return (int)percent;
}

static bool
is_tick(const char *s)
{
	return strcspn(s, "-" BLANKS) == 4 && strncmp(s, "tick", 4) == 0;
}

/* The index of the message that the text names, whose number is cut off.  -1: none is named;
 * count: the message does not exist. */
static int
parse_index(struct mq_verbs *v, char *text)
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
	end += strspn(end, BLANKS);
	memmove(text, end, strlen(end) + 1);
	return (int)(n - 1);
}

static void
note_unknown(char unknown[static MQ_VERB_WORD + 1], const char *verb)
{
	size_t i;

	for (i = 0; i < MQ_VERB_WORD && verb[i] != '\0'; i++)
		unknown[i] = verb[i] > ' ' && verb[i] < 0x7f ? verb[i] : '?';
	unknown[i] = '\0';
}

/* Whether the text of a verb is a DUE and nothing else. */
static bool
is_due_alone(const char *text)
{
	const char *behind = text + strcspn(text, "-" BLANKS);

	behind += strspn(behind, BLANKS);
	return (is_digit(text[*text == '+']) || is_tick(text)) &&
	    (*behind == '\0' || strcmp(behind, "-") == 0);
}

/* Stores a verb and its text, for the message that it is about, or for all. */
static void
store_verb(struct mq_verbs *v, enum mq_verb_final final, const char *text)
{
	struct mq_verb_one *one = v->about > 0 ? &v->ones[v->about - 1] : NULL;
	enum mq_verb_final *first = one != NULL ? &one->final : &v->final;
	bool due = final == MQ_FINAL_RESEND || final == MQ_FINAL_PAUSE;
	/* A DUE alone is not shown. */
	const char *shown = due && is_due_alone(text) ? "" : text;

	if (one != NULL) {
		free(one->text);
		one->text = mq_xstrdup(shown);
	} else {
		strlcpy(v->text, shown, sizeof(v->text));
		v->spoke = true;
	}
	if (*first != MQ_FINAL_NONE)
		return;
	*first = final;
	if (final == MQ_FINAL_RESEND && is_tick(text))
		*first = MQ_FINAL_TICK;
	else if (due)
		*(one != NULL ? &one->resend_s : &v->resend_s) =
		    mq_verb_due(text);
}

static enum mq_verb_final
final_of(const char *verb)
{
	size_t i;

	for (i = 0; i < sizeof(finals) / sizeof(finals[0]); i++)
		if (*verb == *finals[i].verb &&
		    strcmp(verb, finals[i].verb) == 0)
			return finals[i].final;
	return MQ_FINAL_NONE;
}

static char *
skip_blanks(char *p)
{
	while (is_blank(*p))
		p++;
	return p;
}

static void
parse_line(struct mq_verbs *v)
{
	bool whole = v->line_len < MQ_VERB_LINE;
	enum mq_verb_final final;
	char *verb, *text;
	size_t i, len;
	int which;

	for (i = 0; i < v->line_len; i++)
		if (v->line[i] == '\0')
			v->line[i] = '?';
	v->line[v->line_len] = '\0';
	v->line_len = 0;
	verb = skip_blanks(v->line);
	if (*verb == '\0')
		return;
	for (text = verb; *text != '\0' && !is_blank(*text);)
		text++;
	if (*text != '\0') {
		*text++ = '\0';
		text = skip_blanks(text);
	}
	final = final_of(verb);
	which = parse_index(v, text);
	if (strcmp(verb, "dup") == 0) {
		/* The text is shown, but a URL in it may have a password. */
		len = strlen(text);
		if (len > 0 && text[len - 1] == '\r')
			text[len - 1] = '\0';
		if (v->on_dup != NULL)
			v->on_dup(v->arg, which, whole ? text : NULL);
		mq_password_hide(text);
		if (!whole)
			text[0] = '\0';
	} else if (final == MQ_FINAL_NONE && strcmp(verb, "run") != 0) {
		note_unknown(which >= 0 && which < v->count ?
			v->ones[which].unknown :
			v->unknown,
		    verb);
	}
	v->about = which < v->count ? which + 1 : 0;
	store_verb(v, final, text);
}

size_t
mq_verbs_feed_line(struct mq_verbs *v, const char *p, size_t n)
{
	const char *nl = memchr(p, '\n', n);
	size_t piece = nl != NULL ? (size_t)(nl - p) : n;
	size_t room = MQ_VERB_LINE - v->line_len;

	if (room > piece)
		room = piece;
	memcpy(v->line + v->line_len, p, room);
	v->line_len += room;
	if (nl == NULL)
		return n;
	parse_line(v);
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
	v->unknown[0] = '\0';
	v->resend_s = 0;
	v->text[0] = '\0';
}

void
mq_verbs_begin(struct mq_verbs *v)
{
	mq_verbs_next(v);
	v->stray = false;
	v->ones = NULL;
	v->count = v->about = 0;
	v->line_len = 0;
	v->on_dup = NULL;
	v->arg = NULL;
}
