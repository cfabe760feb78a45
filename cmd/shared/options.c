#include "options.h"

#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/password.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "queue/known.h"
#include "queue/rights.h"

static void
end(int sig)
{
	_exit(128 + sig);
}

/* The kernel gives the first process of a container only those signals that it
 * catches. */
static void
catch_as_first(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction old;
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			signal(ends[i], end);
}

void
mq_option_begin(void)
{
	static const int stand_ins[] = {O_WRONLY, O_RDONLY, O_RDWR};
	int fd;

	mq_redis_memory();
	json_set_alloc_funcs(mq_xmalloc, free);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)open("/dev/null", stand_ins[fd]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (getpid() == 1)
		catch_as_first();
}

static bool
is_open(int fd, int mode)
{
	int flags = fcntl(fd, F_GETFL);

	return (flags & O_ACCMODE) == mode || (flags & O_ACCMODE) == O_RDWR;
}

void
mq_option_reads(void)
{
	if (!is_open(STDIN_FILENO, O_RDONLY))
		mq_die(MQ_EXIT_IO,
		    "standard input: not open for reading; nothing was done");
}

void
mq_option_prints(bool results)
{
	int fd;

	if (is_open(STDOUT_FILENO, O_WRONLY))
		return;
	if (results)
		mq_die(MQ_EXIT_IO,
		    "standard output: not open for writing; nothing was done");
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd == -1 || dup2(fd, STDOUT_FILENO) == -1)
		mq_die(MQ_EXIT_AGAIN, "/dev/null: %s", strerror(errno));
	close(fd);
}

static void
print_and_exit(const char *text)
{
	mq_option_prints(true);
	fputs(text, stdout);
	mq_close_stdout();
	exit(MQ_EXIT_OK);
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
		mq_die(
		    MQ_EXIT_USAGE, "--layout: %s: neither rmq nor rsmq", arg);
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

static void
bad_long_option(const struct mq_shared *o, int ch, const char *arg)
{
	/* What is behind a '=' may be a password. */
	const size_t len = strcspn(arg, "=");
	const char *name = arg + 2;
	const struct option *first = next_candidate(o->options, name, len - 2);
	const struct option *next;
	struct mq_buf text = {0};

	if (ch == ':')
		mq_die(MQ_EXIT_USAGE, "%.*s: needs an argument (try --help)",
		    (int)len, arg);
	if (first == NULL)
		mq_die(MQ_EXIT_USAGE,
		    "%.*s: not an option of this tool (try --help)", (int)len,
		    arg);
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
	    ch == ':' ? "needs an argument" : "not an option of this tool");
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
		print_and_exit(o->help);
		return true;
	case 'V':
		print_and_exit("mq-tools " MQ_VERSION "\n");
		return true;
	case MQ_OPT_PRINT_ACL:
		o->print_acl = true;
		return true;
	case ':':
	case '?':
		bad_option(o, ch, argv);
		return true;
	default:
		return false;
	}
}

bool
mq_option_framing(enum mq_framing *framing, int ch)
{
	static const struct {
		int ch;
		const char *name;
	} framings[] = {[MQ_FRAME_LINES] = {'l', "--lines"},
	    [MQ_FRAME_NULL] = {'0', "--null"},
	    [MQ_FRAME_NETSTRING] = {MQ_OPT_NETSTRING, "--netstring"},
	    [MQ_FRAME_JSONL] = {MQ_OPT_JSONL, "--jsonl"}};
	enum mq_framing f;

	for (f = MQ_FRAME_LINES; f <= MQ_FRAME_JSONL; f++)
		if (framings[f].ch == ch)
			break;
	if (f > MQ_FRAME_JSONL)
		return false;
	if (*framing != MQ_FRAME_WHOLE && *framing != f)
		mq_die(MQ_EXIT_USAGE, "%s and %s exclude each other",
		    framings[*framing].name, framings[f].name);
	*framing = f;
	return true;
}

void
mq_option_no_duration(const char *name, char *const argv[])
{
	const char *next = argv[optind];
	int64_t ms;

	if (optarg == NULL && next != NULL && mq_duration_parse(next, &ms) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "%s %s: write %s=%s (or %s -- %s, if that is a name)", name,
		    next, name, next, name, next);
}

long
mq_option_number(const char *name, const char *arg, long min, long max)
{
	const char *why;
	long n = (long)strtonum(arg, min, max, &why);

	if (why != NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s: not a number from %ld to %ld",
		    name, arg, min, max);
	return n;
}

int64_t
mq_option_duration(const char *name, const char *arg)
{
	int64_t ms;

	if (mq_duration_parse(arg, &ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: not a duration (500ms, 10s, 5m, 2h, 1d)", name,
		    arg);
	return ms;
}

/* The layout that was given last in this order; rmq if none was. */
static int
find_layout(struct mq_shared *o, const struct mq_server *server, char *error,
    size_t error_size)
{
	const char *name = server->url.layout, *where = server->name;

	if (o->layout != NULL)
		return 0;
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
	if (o->layout != NULL)
		return 0;
	snprintf(error, error_size, "%s: the layout %s is neither rmq nor rsmq",
	    where, name);
	return MQ_EXIT_CONFIG;
}

/* A core dump would have the password in it. */
static void
no_core(void)
{
	struct rlimit core;

	if (getrlimit(RLIMIT_CORE, &core) == -1)
		return;
	core.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &core);
}

int
mq_option_find(struct mq_shared *o, struct mq_server *server, char *error,
    size_t error_size)
{
	int status = mq_server_find(server, o->url, error, error_size);

	if (status == 0 && server->url.password != NULL)
		no_core();
	if (status == 0 && server->note[0] != '\0' && !o->quiet)
		mq_say("%s", server->note);
	if (status == 0)
		status = find_layout(o, server, error, error_size);
	if (status == 0 && server->url.ns != NULL && o->layout->ns == NULL) {
		snprintf(error, error_size,
		    "%s: the layout %s has no namespaces", server->name,
		    o->layout->name);
		status = MQ_EXIT_CONFIG;
	}
	return status;
}

const struct mq_layout *
mq_option_server(struct mq_shared *o, struct mq_server *server)
{
	char error[512];
	int status = mq_option_find(o, server, error, sizeof(error));

	if (status != 0)
		mq_die(status, "%s", error);
	return o->layout;
}

const char *
mq_option_queue(
    struct mq_shared *o, const struct mq_server *server, const char *queue)
{
	const char *why;
	char *name = mq_layout_queue(o->layout, server->url.ns, queue, &why);

	if (name == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s", queue, why);
	o->names =
	    mq_xreallocarray(o->names, o->name_count + 1, sizeof(*o->names));
	o->names[o->name_count++] = name;
	return name;
}

void
mq_option_queues(struct mq_shared *o, const struct mq_server *server,
    char *operands[], int count)
{
	int i;

	for (i = 0; i < count; i++) {
		(void)mq_option_queue(o, server, operands[i]);
		operands[i] = o->names[o->name_count - 1];
	}
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
	if (count == 0)
		mq_rights_add(&rules, o->layout, tool, NULL, server.url.ns);
	for (i = 0; i < count; i++)
		mq_rights_add(&rules, o->layout, tool,
		    mq_option_queue(o, &server, operands[i]), NULL);
	if (server.url.db != 0)
		mq_rights_rule(&rules, "+select");
	mq_buf_addstr(&rules, "\n");
	print_and_exit(mq_buf_str(&rules));
}

void
mq_option_unknown(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	mq_say(
	    "%s: no such queue%s", queue, mq_known_elsewhere(r, layout, queue));
}

void
mq_option_made(const struct mq_shared *o, struct mq_redis *r, const char *queue)
{
	if (!o->quiet && (o->verbose || isatty(STDERR_FILENO)))
		mq_say("%s: made a new queue%s", queue,
		    mq_known_elsewhere(r, o->layout, queue));
}

void
mq_option_needs(const struct mq_shared *o, const char *option, unsigned what)
{
	static const char *const names[] = {"keys", "groups", "ticks",
	    "priorities below 0", "results", "attributes of queues",
	    "news of messages", "ids without headers"};
	size_t i = 0;

	if (o->layout->has & what)
		return;
	while (!(what & 1U << i))
		i++;
	mq_die(MQ_EXIT_USAGE, "%s: the layout %s has no %s", option,
	    o->layout->name, names[i]);
}

void
mq_option_note(struct mq_shared *o, const struct mq_need *needs, int ch)
{
	unsigned i;

	for (i = 0; needs[i].option != NULL; i++)
		if (needs[i].ch == ch)
			o->noted |= 1U << i;
}

void
mq_option_check(const struct mq_shared *o, const struct mq_need *needs)
{
	unsigned i;

	for (i = 0; needs[i].option != NULL; i++)
		if (o->noted & 1U << i)
			mq_option_needs(o, needs[i].option, needs[i].what);
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
