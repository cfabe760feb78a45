/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

#include <sys/resource.h>

#include <getopt.h>
#include <strings.h>

#include "base/duration.h"

#define OPTION_LEN  32	/* bytes of the longest name of an option */
#define FIRST_ROW   256 /* getopt_long(3): a letter, or FIRST_ROW + row */
#define HELP_COLUMN 25	/* where the help of an option begins */

/* Bounds of RSMQ for node. */
#define MAXSIZE_MIN 1024
#define MAXSIZE_MAX 65536

#define OPTIONAL_DURATION "[=DUR]"

/* --- rows --------------------------------------------------------------------- */

/* The option behind row (NULL: the first one), in *table or a later one; NULL: there is
 * none. */
static const struct mq_option *
next_row(const struct mq_options **table, const struct mq_option *row)
{
	row = row != NULL ? row + 1 : (*table)->rows;
	while (row != NULL && row->name == NULL)
		row = row->help != NULL ? row + 1 : (++*table)->rows;
	return row;
}

static bool
may_lack(const struct mq_option *row)
{
	return row->arg != NULL && *row->arg == '[';
}

/* The row of ch, as getopt_long(3) returns it. */
static const struct mq_option *
find_row(const struct mq_options *tables, int ch, void **into)
{
	const struct mq_option *row = NULL;
	int n = FIRST_ROW;

	while ((row = next_row(&tables, row)) != NULL && ch != n &&
	    ch != row->letter)
		n++;
	*into = tables->into;
	return row;
}

/* The options for getopt_long(3); the caller frees. */
static struct option *
long_options(const struct mq_options *tables)
{
	const struct mq_option *row = NULL;
	struct option *all = NULL;
	int n = 0;

	while ((row = next_row(&tables, row)) != NULL) {
		all = mq_xreallocarray(all, (size_t)n + 2, sizeof(*all));
		all[n] = (struct option){row->name + 2,
		    row->arg == NULL  ? no_argument :
			may_lack(row) ? optional_argument :
					required_argument,
		    NULL, FIRST_ROW + n};
		all[++n] = (struct option){0};
	}
	return all;
}

/* --- wrong options ------------------------------------------------------------ */

/* The first option from o on whose name begins with name; NULL: none. */
static const struct option *
next_candidate(const struct option *o, const char *name, size_t len)
{
	for (; o->name != NULL; o++)
		if (strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

/* The number of letters to add, remove or change to turn a into b.  lb: at most
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

static void __attribute__((noreturn))
refuse_long(const struct option *all, const char *arg)
{
	/* A password may follow a '='. */
	const int len = (int)strcspn(arg, "=");
	const size_t n = (size_t)len - 2;
	const struct option *first = next_candidate(all, arg + 2, n), *next;
	const char *nearest = NULL;
	size_t least = n < 6 ? 2 : 3, edits;
	struct mq_buf text = {0};

	/* Suggests the name that is at most two letters away. */
	for (; first == NULL && all->name != NULL; all++) {
		edits = count_edits(arg + 2, n, all->name, strlen(all->name));
		if (edits < least) {
			least = edits;
			nearest = all->name;
		}
	}
	if (nearest != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "%.*s: unknown option; did you mean --%s?", len, arg,
		    nearest);
	if (first == NULL)
		mq_die(MQ_EXIT_USAGE, "%.*s: unknown option (try --help)", len,
		    arg);
	if (optopt != 0)
		mq_die(MQ_EXIT_USAGE,
		    arg[len] == '=' ? "%.*s: takes no argument (try --help)" :
				      "%.*s: needs an argument (try --help)",
		    len, arg);
	mq_buf_printf(&text, "--%s", first->name);
	while ((next = next_candidate(first + 1, arg + 2, n)) != NULL) {
		mq_buf_printf(&text, "%s--%s",
		    next_candidate(next + 1, arg + 2, n) != NULL ? ", " :
								   " or ",
		    next->name);
		first = next;
	}
	mq_die(
	    MQ_EXIT_USAGE, "%.*s: ambiguous: %s", len, arg, mq_buf_str(&text));
}

void
mq_option_refuse(const struct mq_options *tables, char *argv[])
{
	void *into;

	if (optopt == 0 || optopt >= FIRST_ROW)
		refuse_long(long_options(tables), argv[optind - 1]);
	mq_die(MQ_EXIT_USAGE, "-%c: %s (try --help)", optopt,
	    find_row(tables, optopt, &into) != NULL ? "needs an argument" :
						      "unknown option");
}

/* --- the help ----------------------------------------------------------------- */

/* Prints a text, and ends the program with status 0. */
static void
print_text(const char *text)
{
	mq_option_prints(true);
	fputs(text, stdout);
	mq_close_stdout();
	exit(MQ_EXIT_OK);
}

static void
add_help(struct mq_buf *out, const struct mq_option *row, bool all)
{
	const char *line = row->help, *next;
	bool often = line != NULL && *line == '+';
	size_t begin = out->len;

	if (line == NULL || (!all && !often))
		return;
	if (row->name != NULL) {
		if (row->letter != 0)
			mq_buf_printf(out, "  -%c, %s", row->letter, row->name);
		else
			mq_buf_printf(out, "      %s", row->name);
		if (row->arg != NULL)
			mq_buf_printf(
			    out, "%s%s", may_lack(row) ? "" : " ", row->arg);
		if (out->len - begin >= HELP_COLUMN) {
			mq_buf_addstr(out, "\n");
			begin = out->len;
		}
		mq_buf_printf(
		    out, "%*s", (int)(HELP_COLUMN - (out->len - begin)), "");
	}
	for (line += often; (next = strchr(line, '\n')) != NULL;
	     line = next + 1) {
		mq_buf_add(out, line, (size_t)(next - line));
		mq_buf_printf(out, "\n%*s", HELP_COLUMN, "");
	}
	mq_buf_printf(out, "%s\n", line);
}

static void
take_help(void *into, const struct mq_given *given)
{
	const struct mq_shared *o = into;
	bool all = given->arg != NULL;
	struct mq_buf out = {0};
	const struct mq_options *table;
	const struct mq_option *row;

	if (all)
		forbid(strcmp(given->arg, "all") != 0,
		    "--help: %s: must be all, or left out", given->arg);
	mq_buf_addstr(&out, o->usage);
	for (table = o->options; table->rows != NULL; table++)
		for (row = table->rows; row->name != NULL || row->help != NULL;
		     row++)
			add_help(&out, row, all);
	if (!all)
		mq_buf_printf(&out,
		    "      --help=all         all options; man %s has more\n",
		    getprogname());
	print_text(mq_buf_str(&out));
}

/* --- reading ------------------------------------------------------------------ */

static void
store_argument(void *into, const struct mq_given *given)
{
	const struct mq_option *o = given->option;
	void *to = (char *)into + o->at;

	switch (o->kind) {
	case MQ_OPTION_TAKEN:
		o->take(to, given);
		break;
	case MQ_OPTION_FLAG:
		*(bool *)to = true;
		break;
	case MQ_OPTION_TEXT:
		forbid(o->high > 0 && strlen(given->arg) > (size_t)o->high,
		    "%s: longer than %ld bytes", given->name, o->high);
		*(const char **)to = given->arg;
		break;
	case MQ_OPTION_INT:
		*(int *)to = (int)mq_option_number(
		    given->name, given->arg, o->low, o->high);
		break;
	case MQ_OPTION_LONG:
		*(long *)to =
		    mq_option_number(given->name, given->arg, o->low, o->high);
		break;
	case MQ_OPTION_DURATION:
		*(int64_t *)to = o->high;
		if (given->arg == NULL)
			break;
		*(int64_t *)to = mq_option_duration(given->name, given->arg);
		forbid(*(int64_t *)to<o->low, o->low> 1 ?
			"%s: %s: must be at least %ld ms" :
			"%s: %s: must be greater than 0",
		    given->name, given->arg, o->low);
		break;
	case MQ_OPTION_RATE:
		forbid(mq_rate_parse(given->arg, to) == -1,
		    "%s: %s: not a rate such as 10, 10/s, 90/m or 5/h:20",
		    given->name, given->arg);
		break;
	}
}

/* The duration behind the option that was read last, if the next of all words is one; else NULL.
 * getopt_long(3) of musl has moved operands before it: it is moved back. */
static char *
take_duration(char *const words[], char *argv[])
{
	int64_t ms;
	char *word;
	int at = 0;

	while (words[at] != argv[optind - 1])
		at++;
	word = words[at + 1];
	if (word == NULL || mq_duration_parse(word, &ms) == -1)
		return NULL;
	for (at = optind; argv[at] != word;)
		at++;
	memmove(&argv[optind + 1], &argv[optind],
	    (size_t)(at - optind) * sizeof(*argv));
	argv[optind++] = word;
	return word;
}

bool
mq_option_try(struct mq_shared *o, const struct mq_options *tables, int argc,
    char *argv[])
{
	struct option *longs = long_options(tables);
	struct mq_buf letters = {0};
	const struct mq_options *t = tables;
	const struct mq_option *row = NULL;
	struct mq_given given;
	char letter[] = "-x";
	char **words = mq_xcalloc((size_t)argc + 1, sizeof(*words));
	void *into;
	size_t i;
	int ch;

	memcpy(words, argv, (size_t)argc * sizeof(*words));
	mq_buf_addstr(&letters, ":");
	while ((row = next_row(&t, row)) != NULL)
		if (row->letter != 0)
			mq_buf_printf(&letters, "%c%s", row->letter,
			    row->arg != NULL && !may_lack(row) ? ":" : "");
	o->options = tables;
	opterr = 0;
	optind = 0;
	while ((ch = getopt_long(
		    argc, argv, mq_buf_str(&letters), longs, NULL)) != -1 &&
	    ch != '?' && ch != ':') {
		row = find_row(tables, ch, &into);
		letter[1] = row->letter;
		given = (struct mq_given){
		    row, ch < FIRST_ROW ? letter : row->name, optarg};
		if (row->arg != NULL &&
		    strcmp(row->arg, OPTIONAL_DURATION) == 0 && optarg == NULL)
			given.arg = take_duration(words, argv);
		for (i = 0; i < MQ_NEEDS; i++)
			if (row->needs & 1U << i && o->needing[i] == NULL)
				o->needing[i] = row->name;
		store_argument(into, &given);
	}
	mq_buf_free(&letters);
	free(words);
	free(longs);
	forbid(o->existing && o->fresh,
	    "--existing and --new cannot be used together");
	return ch == -1;
}

void
mq_option_read(struct mq_shared *o, const struct mq_options *tables, int argc,
    char *argv[])
{
	if (!mq_option_try(o, tables, argc, argv))
		mq_option_refuse(tables, argv);
}

/* --- options of several tools ------------------------------------------------- */

/* Copies the URL, and hides its password from ps(1). */
static void
take_url(void *into, const struct mq_given *given)
{
	struct mq_shared *o = into;
	size_t start, len;

	free(o->url);
	o->url = mq_xstrdup(given->arg);
	mq_password_find(given->arg, &start, &len);
	memset(given->arg + start, '*', len);
}

static void
take_layout(void *into, const struct mq_given *given)
{
	struct mq_shared *o = into;

	o->layout = mq_layout_find(given->arg);
	forbid(o->layout == NULL, "%s: %s: must be rmq or rsmq", given->name,
	    given->arg);
}

static void
take_version(void *into, const struct mq_given *given)
{
	(void)into;
	(void)given;
	print_text("mq-tools " MQ_VERSION "\nfeatures: " MQ_TLS_FEATURES "\n");
}

const struct mq_option mq_shared_options[] = {
    {'u', "--url", "URL",
	"+where the server is: redis[s]://, unix://,\n"
	"private: (default: MQ_URL, mq/env, private:)",
	.take = take_url},
    {'L', "--layout", "LAYOUT", "queue format: rmq (default) or rsmq",
	.take = take_layout},
    {'q', "--quiet", NULL, "say less", MQ_FLAG(struct mq_shared, quiet)},
    {'v', "--verbose", NULL, "say more", MQ_FLAG(struct mq_shared, verbose)},
    {'h', "--help", "[=all]", "show the options that matter most, or all",
	.take = take_help},
    {'V', "--version", NULL, "show the version", .take = take_version},
    {0, "--print-acl", NULL, "print what a user needs, for ACL SETUSER",
	MQ_FLAG(struct mq_shared, print_acl)},
    {0},
};

const struct mq_option mq_makes_options[] = {
    {0, "--existing", NULL, "exit 1 if there is no such queue, make none",
	MQ_FLAG(struct mq_shared, existing)},
    {0, "--new", NULL, "a new queue is meant: do not note that it is",
	MQ_FLAG(struct mq_shared, fresh)},
    {0},
};

const char *
mq_option_framing_name(enum mq_framing framing)
{
	static const char *const names[] = {[MQ_FRAME_LINES] = "--lines",
	    [MQ_FRAME_NULL] = "--null",
	    [MQ_FRAME_NETSTRING] = "--netstring",
	    [MQ_FRAME_JSONL] = "--jsonl"};

	return names[framing];
}

void
mq_option_framing(void *into, const struct mq_given *given)
{
	enum mq_framing *framing = into,
			other = (enum mq_framing)given->option->which;

	forbid(*framing != MQ_FRAME_WHOLE && *framing != other,
	    "%s and %s cannot be used together",
	    mq_option_framing_name(*framing), given->option->name);
	*framing = other;
}

/* --- arguments ---------------------------------------------------------------- */

long
mq_option_number(const char *name, const char *arg, long min, long max)
{
	const char *why;
	long n = (long)strtonum(arg, min, max, &why);

	forbid(why != NULL && max == LONG_MAX,
	    "%s: %s: must be a number, at least %ld", name, arg, min);
	forbid(why != NULL, "%s: %s: must be a number from %ld to %ld", name,
	    arg, min, max);
	return n;
}

size_t
mq_option_size(const char *text, const char **rest)
{
	size_t digits = strspn(text, "0123456789");
	int64_t n = digits > 0 ? mq_number(text, digits, INT32_MAX) : 0;

	*rest = text + digits;
	if (digits > 0 && (**rest == 'K' || **rest == 'M'))
		n <<= *(*rest)++ == 'K' ? 10 : 20;
	return (size_t)n;
}

int64_t
mq_option_duration(const char *name, const char *arg)
{
	int64_t ms;

	forbid(mq_duration_parse(arg, &ms) == -1,
	    "%s: %s: not a duration (500ms, 10s, 5m, 1h30m, 1d, 1w)", name,
	    arg);
	return ms;
}

long
mq_option_attribute(const char *name, const char *arg, bool maxsize)
{
	int64_t ms;

	if (maxsize && strcmp(arg, "-1") == 0)
		return -1;
	if (maxsize)
		return mq_option_number(name, arg, MAXSIZE_MIN, MAXSIZE_MAX);
	ms = mq_option_duration(name, arg);
	forbid(ms % 1000 != 0 || ms / 1000 > MQ_ATTRIBUTE_SECONDS_MAX,
	    "%s: %s: not whole seconds, %d of them at most", name, arg,
	    MQ_ATTRIBUTE_SECONDS_MAX);
	return (long)(ms / 1000);
}

void
mq_option_free(struct mq_shared *o)
{
	mq_names_free(&o->names);
	free(o->url);
}

void
mq_option_end(
    struct mq_shared *shared, struct mq_server *server, struct mq_redis *r)
{
	mq_redis_close(r);
	mq_server_free(server);
	mq_option_free(shared);
}

/* --- operands ----------------------------------------------------------------- */

/* Sets the layout from -L, the URL, MQ_LAYOUT, the env file, or else rmq.  False: there is no
 * such layout. */
static bool
find_layout(struct mq_shared *o, struct mq_server *server)
{
	const char *name = server->url.layout, *where = server->name;

	if (o->layout != NULL)
		return true;
	if (name == NULL) {
		where = "MQ_LAYOUT";
		name = getenv(where);
	}
	if ((name == NULL || *name == '\0') && server->layout != NULL) {
		where = server->layout_from;
		name = server->layout;
	}
	if (name == NULL || *name == '\0')
		name = "rmq";
	o->layout = mq_layout_find(name);
	if (o->layout == NULL)
		snprintf(server->error, sizeof(server->error),
		    "%s: unknown layout %s; use rmq or rsmq", where, name);
	return o->layout != NULL;
}

int
mq_option_find(struct mq_shared *o, struct mq_server *server)
{
	int status = mq_server_find(server, o->url);
	const struct mq_url *u = &server->url;
	struct rlimit core;

	if (status != 0)
		return status;
	/* A core dump would contain the password. */
	if (u->password != NULL && getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &core);
	}
	if (server->note[0] != '\0' && !o->quiet)
		mq_say("%s", server->note);
	if (!find_layout(o, server))
		return MQ_EXIT_CONFIG;
	if (u->ns != NULL && o->layout->ns == NULL) {
		snprintf(server->error, sizeof(server->error),
		    "%s: the layout %s has no namespaces; remove ns=",
		    server->name, o->layout->name);
		return MQ_EXIT_CONFIG;
	}
	/* A namespace in braces puts all keys of the layout rsmq into one slot. */
	if (u->kind == MQ_URL_CLUSTER && o->layout->ns != NULL &&
	    (u->ns == NULL || u->ns[0] != '{' || u->ns[1] == '}' ||
		strchr(u->ns, '}') == NULL)) {
		snprintf(server->error, sizeof(server->error),
		    "%s: on a cluster, the layout %s needs a namespace in "
		    "braces; add ?ns={%s}",
		    server->name, o->layout->name, o->layout->ns);
		return MQ_EXIT_CONFIG;
	}
	if (o->verbose && o->names_server)
		mq_say("%s, layout %s", server->name, o->layout->name);
	return 0;
}

const struct mq_layout *
mq_option_server(struct mq_shared *o, struct mq_server *server)
{
	int status = mq_option_find(o, server);

	if (status != 0)
		mq_die(status, "%s", server->error);
	return o->layout;
}

char *
mq_option_queue(
    struct mq_shared *o, const struct mq_server *server, const char *queue)
{
	const char *why;
	char *name = mq_layout_queue(o->layout, server->url.ns, queue, &why);

	if (name == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s", queue, why);
	mq_names_add(&o->names, name, NULL);
	free(name);
	return o->names.list[o->names.n - 1].name;
}

void
mq_option_queues(struct mq_shared *o, const struct mq_server *server,
    char *operands[], int count)
{
	int i;

	for (i = 0; i < count; i++)
		operands[i] = mq_option_queue(o, server, operands[i]);
}

void
mq_option_target(struct mq_shared *o, const char *queue)
{
	if (queue != NULL)
		o->targets[o->target_count++] = queue;
}

void
mq_option_rights(
    struct mq_shared *o, unsigned tool, char *operands[], int count)
{
	struct mq_buf rules = {0};
	struct mq_server server;
	int i;

	if (!o->print_acl)
		return;
	(void)mq_option_server(o, &server);
	if (server.url.kind == MQ_URL_CLUSTER)
		tool |= MQ_ON_CLUSTER;
	if (count == 0)
		mq_rights_add(&rules, o->layout, tool, NULL, server.url.ns);
	for (i = 0; i < count; i++)
		mq_rights_add(&rules, o->layout, tool,
		    mq_option_queue(o, &server, operands[i]), NULL);
	for (i = 0; i < o->target_count; i++)
		mq_rights_add(&rules, o->layout,
		    MQ_TARGETS | (tool & MQ_ON_CLUSTER),
		    mq_option_queue(o, &server, o->targets[i]), NULL);
	mq_rights_end(&rules, server.url.kind == MQ_URL_CLUSTER, server.url.db);
	mq_buf_addstr(&rules, "\n");
	print_text(mq_buf_str(&rules));
}

/* If a node has a reason why it has not listed a queue, says so. */
static bool
report_unlisted(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	const char *why = mq_queue_unlisted(r, layout, queue);

	if (why != NULL)
		mq_say("%s: not listed yet: %s", queue, why);
	return why != NULL;
}

void
mq_option_unknown(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	char *hint;

	if (report_unlisted(r, layout, queue))
		return;
	hint = mq_known_hint(r, layout, queue);
	mq_say("%s: no such queue%s", queue, hint);
	free(hint);
}

void
mq_option_made(const struct mq_shared *o, struct mq_redis *r, const char *queue)
{
	char *hint;

	if (o->quiet || report_unlisted(r, o->layout, queue) || o->fresh)
		return;
	hint = mq_known_hint(r, o->layout, queue);
	if (o->verbose || *hint != '\0' || isatty(STDERR_FILENO))
		mq_say("%s: made a new queue%s", queue, hint);
	free(hint);
}

void
mq_option_needs(const struct mq_shared *o, const char *option, unsigned what)
{
	static const char *const names[] = {"keys", "groups", "ticks",
	    "priorities below 0", "results", "attributes of queues",
	    "notifications of new messages",
	    "ids without headers", [11] = "batches"};

	forbid(!(o->layout->has & what), "%s: the layout %s has no %s", option,
	    o->layout->name, names[ffs((int)what) - 1]);
}
