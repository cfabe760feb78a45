#include "rights.h"

#include <string.h>

#include "layout.h"

/* A name as a part of a pattern.  No rule can have a blank in it, so there any
 * one byte has to do. */
static void
add_quoted(struct mq_buf *out, const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (strchr("*?[\\", p[i]) != NULL)
			mq_buf_add(out, "\\", 1);
		mq_buf_add(out, p[i] == ' ' ? "?" : &p[i], 1);
	}
}

static void
add_rule(struct mq_buf *out, const char *rule)
{
	const char *p = out->data, *end = out->data + out->len, *stop;
	size_t n = strlen(rule);

	for (; p < end; p = stop + 1) {
		stop = memchr(p, ' ', (size_t)(end - p));
		if (stop == NULL)
			stop = end;
		if ((size_t)(stop - p) == n && memcmp(p, rule, n) == 0)
			return;
	}
	if (out->len > 0)
		mq_buf_add(out, " ", 1);
	mq_buf_addstr(out, rule);
}

/* What a row of a table is for, by its letters. */
static unsigned
tools_of(const struct mq_right *right)
{
	static const char letters[] = "PCLKRDZWEJMSATHONVFBYQUIGX";
	const char *p;
	unsigned tools = 0;

	for (p = right->tools; *p != '\0'; p++)
		tools |= 1U << (strchr(letters, *p) - letters);
	return tools;
}

void
mq_rights_add(struct mq_buf *out, const struct mq_layout *layout, unsigned tool,
    const char *queue, const char *ns)
{
	unsigned elsewhere =
	    tool & MQ_ON_CLUSTER ? MQ_OFF_CLUSTER : MQ_ON_CLUSTER;
	const struct mq_right *right;
	struct mq_buf rule = {0};
	const char *colon, *p;
	size_t n;

	if (ns == NULL)
		ns = layout->ns;
	n = ns == NULL ? 0 : strlen(ns);
	if (ns != NULL && queue != NULL &&
	    (colon = strrchr(queue, ':')) != NULL) {
		ns = queue;
		n = (size_t)(colon - queue);
		queue = colon + 1;
	}
	for (right = layout->rights; right->rule != NULL; right++) {
		if (!(tools_of(right) & tool & ~MQ_ON_CLUSTER) ||
		    tools_of(right) & elsewhere)
			continue;
		rule.len = 0;
		for (p = right->rule; *p != '\0'; p++) {
			if (*p != '%')
				mq_buf_add(&rule, p, 1);
			else if (*++p == 'n')
				add_quoted(&rule, ns, n);
			else if (queue == NULL)
				mq_buf_add(&rule, "*", 1);
			else
				add_quoted(&rule, queue, strlen(queue));
		}
		add_rule(out, mq_buf_str(&rule));
	}
	mq_buf_free(&rule);
}

void
mq_rights_end(struct mq_buf *out, bool cluster, int db)
{
	struct mq_buf rules = {0};
	const char *p, *end;
	bool braces = false;

	if (db != 0)
		add_rule(out, "+select");
	if (!cluster)
		return;
	/* Brackets and braces change places: no name of a queue has any. */
	end = out->data + out->len;
	for (p = out->data; p < end; p++) {
		if (strncmp(p, "::\\[", 4) == 0) {
			mq_buf_addstr(&rules, "::{");
			p += 3;
		} else if (strncmp(p, "::{", 3) == 0) {
			mq_buf_addstr(&rules, "::\\[");
			braces = true;
			p += 2;
		} else if (*p == ']' || (*p == '}' && braces)) {
			mq_buf_addstr(&rules, *p == ']' ? "}" : "]");
			braces = false;
		} else {
			mq_buf_add(&rules, p, 1);
		}
	}
	mq_buf_free(out);
	*out = rules;
	add_rule(out, "+asking");
	add_rule(out, "+cluster|slots");
	add_rule(out, "+cluster|nodes");
}

int
mq_rights_lacking(
    struct mq_redis *r, const struct mq_layout *layout, struct mq_buf *out)
{
	const struct mq_right *right = layout->rights;
	struct mq_command c = mq_redis_command(r);
	char name[32];
	redisReply *reply;
	size_t i;

	mq_command_plain(&c, "COMMAND INFO");
	for (i = 0; right[i].rule != NULL; i++) {
		strlcpy(name, right[i].rule + 1, sizeof(name));
		mq_command_fmt(&c, "%.*s", (int)strcspn(name, "|"), name);
	}
	reply = mq_redis_answer(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	for (i = 0; i < reply->elements && right[i].rule != NULL; i++) {
		strlcpy(name, right[i].rule + 1, sizeof(name));
		name[strcspn(name, "|")] = '\0';
		if (right[i].rule[0] == '+' &&
		    reply->element[i]->type == REDIS_REPLY_NIL)
			add_rule(out, name);
	}
	freeReplyObject(reply);
	return 0;
}
