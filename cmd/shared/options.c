#include "options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/password.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "redis/tls.h"
#include "startup.h"

/* No name of an option is longer. */
#define OPTION_LEN 32

/* The option that is being read, if it was given as a letter; "": it was not. */
static struct {
	char letter[3];
	const char *name; /* the long one */
} typed;

static const struct option *
find_option(const struct option *o, int ch)
{
	while (o->name != NULL && o->val != ch)
		o++;
	return o;
}

int
mq_option_next(
    const struct mq_shared *o, int argc, char *argv[], const char *letters)
{
	int ch = getopt_long(argc, argv, letters, o->options, NULL);
	int at = optind - 1;

	typed.letter[0] = '\0';
	if (ch <= ' ' || ch > '~' || ch == ':' || ch == '?')
		return ch;
	/* "-d 5s", not "-d5s". */
	if (at > 1 && argv[at] == optarg)
		at--;
	if (strncmp(argv[at], "--", 2) != 0)
		snprintf(typed.letter, sizeof(typed.letter), "-%c", ch);
	typed.name = find_option(o->options, ch)->name;
	return ch;
}

const char *
mq_option_typed(const char *name)
{
	return typed.letter[0] != '\0' && typed.name != NULL &&
		strncmp(name, "--", 2) == 0 &&
		strcmp(name + 2, typed.name) == 0 ?
	    typed.letter :
	    name;
}

/* Keeps a copy, and takes the password out of what ps(1) shows. */
static void
take_url(struct mq_shared *o, char *arg)
{
	size_t start, len;

	free(o->url);
	o->url = mq_xstrdup(arg);
	mq_password_find(arg, &start, &len);
	memset(arg + start, '*', len);
}

static void
take_layout(struct mq_shared *o, const char *arg)
{
	o->layout = mq_layout_find(arg);
	if (o->layout == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s: must be rmq or rsmq",
		    mq_option_typed("--layout"), arg);
}

/* The first option from o on whose name begins like this; NULL: none. */
static const struct option *
next_candidate(const struct option *o, const char *name, size_t len)
{
	for (; o->name != NULL; o++)
		if (strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

/* How many letters have to be added, removed or changed to make b of a.  lb: at most
 * OPTION_LEN. */
static size_t
count_edits(const char *a, size_t la, const char *b, size_t lb)
{
	size_t row[OPTION_LEN + 1], i, j, diagonal, above;

	for (j = 0; j <= lb; j++)
		row[j] = j;
	for (i = 1; i <= la; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= lb; j++) {
			above = row[j];
			row[j] = diagonal + (a[i - 1] != b[j - 1]);
			if (above + 1 < row[j])
				row[j] = above + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = above;
		}
	}
	return row[lb];
}

/* The option whose name is a letter or two away from this one; NULL: none. */
static const char *
nearest_option(const struct option *o, const char *name, size_t len)
{
	const char *nearest = NULL;
	size_t least = len < 6 ? 2 : 3, n, edits;

	for (; o->name != NULL; o++) {
		n = strlen(o->name);
		edits = count_edits(name, len, o->name, n);
		if (edits < least) {
			least = edits;
			nearest = o->name;
		}
	}
	return nearest;
}

static void __attribute__((noreturn))
unknown_option(const struct option *o, const char *arg, size_t len)
{
	const char *nearest = nearest_option(o, arg + 2, len - 2);

	if (nearest != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "%.*s: unknown option; did you mean --%s?", (int)len, arg,
		    nearest);
	mq_die(
	    MQ_EXIT_USAGE, "%.*s: unknown option (try --help)", (int)len, arg);
}

static void
bad_long_option(const struct mq_shared *o, int ch, const char *arg)
{
	/* A password may follow a '='. */
	const size_t len = strcspn(arg, "=");
	const char *name = arg + 2;
	const struct option *first = next_candidate(o->options, name, len - 2);
	const struct option *next;
	struct mq_buf text = {0};

	if (ch == ':')
		mq_die(MQ_EXIT_USAGE, "%.*s: needs an argument (try --help)",
		    (int)len, arg);
	if (first == NULL)
		unknown_option(o->options, arg, len);
	/* The option was found, but takes no value. */
	if (arg[len] == '=' && optopt != 0)
		mq_die(MQ_EXIT_USAGE, "%.*s: takes no argument (try --help)",
		    (int)len, arg);
	mq_buf_printf(&text, "--%s", first->name);
	while ((next = next_candidate(first + 1, name, len - 2)) != NULL) {
		mq_buf_printf(&text, "%s--%s",
		    next_candidate(next + 1, name, len - 2) != NULL ? ", " :
								      " or ",
		    next->name);
		first = next;
	}
	mq_die(MQ_EXIT_USAGE, "%.*s: ambiguous: %s", (int)len, arg,
	    mq_buf_str(&text));
}

/* Whether getopt_long(3) means a long option by this optopt. */
static bool
is_long(const struct mq_shared *o, const char *arg)
{
	const struct option *known = o->options;

	if (strncmp(arg, "--", 2) != 0)
		return false;
	while (known->name != NULL && known->val != optopt)
		known++;
	return optopt == 0 || known->name != NULL;
}

static void
bad_option(const struct mq_shared *o, int ch, char *const argv[])
{
	if (is_long(o, argv[optind - 1]))
		bad_long_option(o, ch, argv[optind - 1]);
	mq_die(MQ_EXIT_USAGE, "-%c: %s (try --help)", optopt,
	    ch == ':' ? "needs an argument" : "unknown option");
}

/* Whether a line of the help is an option of the table. */
static bool
is_option(const char *line)
{
	size_t blanks = strspn(line + 1, " ");

	return (*line == ' ' || *line == '+') && line[1 + blanks] == '-';
}

/* What is ahead of the table, and in it the options that are marked with '+'. */
static void
add_short(const char *help, struct mq_buf *out)
{
	const char *line, *next;
	bool shown = true;

	for (line = help; *line != '\0'; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (is_option(line))
			shown = *line == '+';
		if (shown)
			mq_buf_add(out, line, (size_t)(next - line));
	}
	mq_buf_addstr(out, "      --help=all         all options; man ");
	mq_buf_addstr(out, getprogname());
	mq_buf_addstr(out, " has more\n");
}

static void __attribute__((noreturn)) show_help(const struct mq_shared *o)
{
	struct mq_buf out = {0};
	size_t i;

	if (optarg != NULL && strcmp(optarg, "all") != 0)
		mq_die(MQ_EXIT_USAGE, "--help: %s: must be all, or left out",
		    optarg);
	if (optarg != NULL)
		mq_buf_addstr(&out, o->help);
	else
		add_short(o->help, &out);
	for (i = 0; i < out.len; i++)
		if (out.data[i] == '+' && (i == 0 || out.data[i - 1] == '\n'))
			out.data[i] = ' ';
	mq_option_print(mq_buf_str(&out));
	exit(MQ_EXIT_OK);
}

bool
mq_option_shared(struct mq_shared *o, int ch, char *const argv[])
{
	switch (ch) {
	case 'u':
		take_url(o, optarg);
		return true;
	case 'L':
		take_layout(o, optarg);
		return true;
	case 'q':
		o->quiet = true;
		return true;
	case 'v':
		o->verbose = true;
		return true;
	case 'h':
		show_help(o);
		return true;
	case 'V':
		mq_option_print(
		    "mq-tools " MQ_VERSION "\nfeatures: " MQ_TLS_FEATURES "\n");
		return true;
	case MQ_OPT_PRINT_ACL:
		o->print_acl = true;
		return true;
	case MQ_OPT_EXISTING:
	case MQ_OPT_NEW:
		o->existing |= ch == MQ_OPT_EXISTING;
		o->fresh |= ch == MQ_OPT_NEW;
		if (o->existing && o->fresh)
			mq_die(MQ_EXIT_USAGE,
			    "--existing and --new cannot be used together");
		return true;
	case ':':
	case '?':
		bad_option(o, ch, argv);
		return true;
	default:
		return false;
	}
}

static const struct {
	int ch;
	const char *name;
} framings[] = {[MQ_FRAME_LINES] = {'l', "--lines"},
    [MQ_FRAME_NULL] = {'0', "--null"},
    [MQ_FRAME_NETSTRING] = {MQ_OPT_NETSTRING, "--netstring"},
    [MQ_FRAME_JSONL] = {MQ_OPT_JSONL, "--jsonl"}};

const char *
mq_option_framing_name(enum mq_framing framing)
{
	return framings[framing].name;
}

bool
mq_option_framing(enum mq_framing *framing, int ch)
{
	enum mq_framing f;

	for (f = MQ_FRAME_LINES; f <= MQ_FRAME_JSONL; f++)
		if (framings[f].ch == ch)
			break;
	if (f > MQ_FRAME_JSONL)
		return false;
	if (*framing != MQ_FRAME_WHOLE && *framing != f)
		mq_die(MQ_EXIT_USAGE, "%s and %s cannot be used together",
		    framings[*framing].name, framings[f].name);
	*framing = f;
	return true;
}

char *
mq_option_next_duration(char *const argv[])
{
	int64_t ms;

	if (optarg != NULL || argv[optind] == NULL ||
	    mq_duration_parse(argv[optind], &ms) == -1)
		return optarg;
	return argv[optind++];
}

long
mq_option_number(const char *name, const char *arg, long min, long max)
{
	const char *why;
	long n = (long)strtonum(arg, min, max, &why);

	if (why != NULL && max == LONG_MAX)
		mq_die(MQ_EXIT_USAGE, "%s: %s: must be a number, at least %ld",
		    mq_option_typed(name), arg, min);
	if (why != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: must be a number from %ld to %ld",
		    mq_option_typed(name), arg, min, max);
	return n;
}

int64_t
mq_option_duration(const char *name, const char *arg)
{
	int64_t ms;

	if (mq_duration_parse(arg, &ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)",
		    mq_option_typed(name), arg);
	return ms;
}

void
mq_option_rate(const char *name, const char *arg, struct mq_rate *rate)
{
	if (mq_rate_parse(arg, rate) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not a rate such as 10, 10/s, 90/m or 5/h:20",
		    mq_option_typed(name), arg);
}

void
mq_option_free(struct mq_shared *o)
{
	size_t i;

	for (i = 0; i < o->name_count; i++)
		free(o->names[i]);
	free(o->names);
	free(o->url);
}
