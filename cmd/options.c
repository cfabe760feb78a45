#include "options.h"

#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "duration.h"
#include "exit.h"
#include "rights.h"
#include "say.h"
#include "url.h"
#include "xalloc.h"

static void *
get(size_t n)
{
	return mq_xreallocarray(NULL, n, 1);
}

#if HIREDIS_MAJOR >= 1
static void *
get_more(void *p, size_t n)
{
	return mq_xreallocarray(p, n, 1);
}
#endif

void
mq_option_memory(void)
{
#if HIREDIS_MAJOR >= 1
	hiredisAllocFuncs all = {get, mq_xcalloc, get_more, mq_xstrdup, free};

	hiredisSetAllocators(&all);
#endif
	json_set_alloc_funcs(get, free);
}

void
mq_option_begin(void)
{
	int fd;

	mq_option_memory();
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)open("/dev/null",
			    fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static void
print_and_exit(const char *text)
{
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
	mq_url_find_password(arg, &start, &len);
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

static void
bad_option(int ch, char *const argv[])
{
	char short_name[] = {'-', (char)optopt, '\0'};
	const char *name = short_name;

	if (optopt == 0 || optopt > 127 ||
	    strncmp(argv[optind - 1], "--", 2) == 0)
		name = argv[optind - 1];
	/* What is behind a '=' may be a password. */
	mq_die(MQ_EXIT_USAGE, "%.*s: %s (try --help)", (int)strcspn(name, "="),
	    name,
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
		bad_option(ch, argv);
		return true;
	default:
		return false;
	}
}

bool
mq_option_framing(enum mq_framing *framing, int ch)
{
	switch (ch) {
	case 'l':
		*framing = MQ_FRAME_LINES;
		return true;
	case '0':
		*framing = MQ_FRAME_NULL;
		return true;
	case MQ_OPT_NETSTRING:
		*framing = MQ_FRAME_NETSTRING;
		return true;
	case MQ_OPT_JSONL:
		*framing = MQ_FRAME_JSONL;
		return true;
	default:
		return false;
	}
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
