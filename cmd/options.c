#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "exit.h"
#include "layout.h"
#include "say.h"
#include "url.h"
#include "xalloc.h"

void
mq_option_descriptors(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)open("/dev/null",
			    fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
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

void
mq_option_queue(const char *queue)
{
	const char *why = mq_layout_rmq.queue_error(queue);

	if (why != NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s", queue, why);
}

void
mq_option_server(const struct mq_shared *o, struct mq_server *server)
{
	char error[512];
	int status = mq_server_find(server, o->url, error, sizeof(error));

	if (status != 0)
		mq_die(status, "%s", error);
}
