#include "parts.h"

#include <errno.h>
#include <string.h>

#include "base/say.h"
#include "base/visible.h"

void
gather_init(struct gather *g, struct target *target, enum output_form form)
{
	g->target = target;
	g->form = form;
}

void
gather_label(struct gather *g, const char *label)
{
	strlcpy(g->label, label, sizeof(g->label));
}

bool
gather_waits(const struct gather *g)
{
	return g->form != OUTPUT_RUNS && !target_ready(g->target);
}

/* Lets go of what is kept. */
static void
release_kept(struct gather *g)
{
	if (g->kept != NULL)
		target_move(g->target, g->kept);
	g->kept = NULL;
	g->open_line = false;
}

/* If no file can be had, the output comes in pieces. */
static void
keep(struct gather *g, const char *p, size_t n)
{
	if (n == 0)
		return;
	if (g->kept == NULL)
		g->kept = spill_new();
	g->open_line = p[n - 1] != '\n';
	if (spill_add(g->kept, p, n))
		return;
	if (!g->target->full)
		mq_say("--output: temporary file: %s; output comes in pieces",
		    strerror(errno));
	g->target->full = true;
	release_kept(g);
	target_put(g->target, p, n);
	if (p[n - 1] != '\n' && g->form == OUTPUT_LINES)
		target_put(g->target, "\n", 1);
}

static void
add_label(const struct gather *g, struct mq_buf *out)
{
	mq_buf_addstr(out, g->label);
	mq_buf_add(out, "\t", 1);
}

/* Whole lines go on, and the begun one is kept. */
static void
put_lines(struct gather *g, const char *p, size_t n)
{
	struct mq_buf out = {0};
	const char *end = p + n, *newline;

	for (; (newline = memchr(p, '\n', (size_t)(end - p))) != NULL;
	     p = newline + 1) {
		if (g->kept != NULL) {
			keep(g, p, (size_t)(newline + 1 - p));
			release_kept(g);
			continue;
		}
		add_label(g, &out);
		mq_buf_add(&out, p, (size_t)(newline + 1 - p));
	}
	target_put(g->target, out.data, out.len);
	mq_buf_clear(&out);
	if (p < end && g->kept == NULL)
		add_label(g, &out);
	mq_buf_add(&out, p, (size_t)(end - p));
	keep(g, out.data, out.len);
	mq_buf_free(&out);
}

static void
put_bytes(struct gather *g, const char *p, size_t n)
{
	if (g->form == OUTPUT_LINES)
		put_lines(g, p, n);
	else
		keep(g, p, n);
}

/* How many of n bytes do not belong to a character that goes on behind them. */
static size_t
whole_characters(const char *p, size_t n)
{
	unsigned char c;
	size_t back;

	for (back = 1; back <= 3 && back <= n; back++) {
		c = (unsigned char)p[n - back];
		if (c >= 0xc0)
			return back < (c >= 0xf0	? 4u :
					      c >= 0xe0 ? 3u :
							  2u) ?
			    n - back :
			    n;
		if (c < 0x80)
			break;
	}
	return n;
}

/* For a terminal: escapes control bytes.  last: no bytes follow. */
static void
put_visible(struct gather *g, const char *p, size_t n, bool last)
{
	struct mq_buf raw = {0}, shown = {0};
	size_t whole;

	mq_buf_add(&raw, g->cut, g->cut_len);
	mq_buf_add(&raw, p, n);
	whole = last ? raw.len : whole_characters(raw.data, raw.len);
	g->cut_len = raw.len - whole;
	memcpy(g->cut, raw.data + whole, g->cut_len);
	mq_add_visible(&shown, raw.data, whole);
	put_bytes(g, shown.data, shown.len);
	mq_buf_free(&raw);
	mq_buf_free(&shown);
}

void
gather_put(struct gather *g, const char *p, size_t n)
{
	if (g->form == OUTPUT_LIVE)
		target_put(g->target, p, n);
	else if (g->target->terminal)
		put_visible(g, p, n, false);
	else
		put_bytes(g, p, n);
}

/* Ends a line that has begun. */
static void
end_line(struct gather *g)
{
	if (g->cut_len > 0)
		put_visible(g, "", 0, true);
	if (g->form == OUTPUT_LIVE && g->target->open_line)
		target_put(g->target, "\n", 1);
	else if (g->open_line)
		put_bytes(g, "\n", 1);
}

void
gather_say(struct gather *g, const char *line)
{
	end_line(g);
	if (g->form == OUTPUT_RUNS)
		keep(g, line, strlen(line));
	else
		target_put(g->target, line, strlen(line));
}

void
gather_end(struct gather *g)
{
	if (g->form == OUTPUT_LIVE)
		return;
	if (g->form == OUTPUT_LINES)
		end_line(g);
	else if (g->cut_len > 0)
		put_visible(g, "", 0, true);
	release_kept(g);
	g->form = OUTPUT_LINES;
}
