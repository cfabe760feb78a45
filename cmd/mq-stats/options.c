/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <netinet/in.h>

static const char usage[] =
    "usage: mq-stats [options] [QUEUE...]\n"
    "\n"
    "Prints a table of the named queues, or of all: messages that are ready,\n"
    "delayed, unacked and rejected, consumers, the age of the oldest claimable\n"
    "message, and messages in and out per second.\n"
    "Exit status 1: a named queue does not exist.\n"
    "\n";

static void
forbid_both(bool both, const char *one, const char *other)
{
	forbid(both, "%s and %s cannot be used together", one, other);
}

static void
take_format(void *into, const struct mq_given *given)
{
	struct stats_options *o = into;
	enum format format = (enum format)given->option->which;

	forbid_both(o->format != FORMAT_TABLE && o->format != format,
	    o->format_name, given->option->name);
	o->format = format;
	o->format_name = given->option->name;
	if (format == FORMAT_CHECK)
		o->checks = given->arg;
}

static void
set_subject(struct stats_options *o, enum subject subject, const char *name)
{
	forbid_both(o->subject != SUBJECT_QUEUES && o->subject != subject,
	    o->subject_name, name);
	o->subject = subject;
	o->subject_name = name;
}

static void
take_subject(void *into, const struct mq_given *given)
{
	struct stats_options *o = into;
	enum subject subject = (enum subject)given->option->which;

	set_subject(o, subject, given->option->name);
	if (subject == SUBJECT_LIST) {
		o->list.ends = strcmp(given->arg, "done") == 0 ? ENDS_DONE :
		    strcmp(given->arg, "ended") == 0	       ? ENDS_ALL :
								 ENDS_NONE;
		forbid(o->list.ends == ENDS_NONE &&
			mq_state_parse(given->arg, &o->list.state) == -1,
		    "%s: %s: must be ready, delayed, unacked, rejected, done "
		    "or ended",
		    given->name, given->arg);
	}
	if (subject != SUBJECT_HTTP)
		return;
	o->port = given->arg == NULL ?
	    -1 :
	    (int)mq_option_number(given->name, given->arg, 0, 65535);
	forbid(o->port == -1 && isatty(STDIN_FILENO),
	    "--http: answers one request on standard input; use --http=8080 "
	    "to serve http://127.0.0.1:8080/");
}

static void
take_sort(void *into, const struct mq_given *given)
{
	struct stats_options *o = into;

	o->order.key = field_by_key(given->arg);
	forbid(o->order.key == NULL || o->order.key->title == NULL,
	    "%s: %s: must be name, ready, delayed, unacked, rejected, "
	    "consumers, age, in or out",
	    given->name, given->arg);
}

static const struct mq_option forms[] = {
    {0, "--connections", NULL, "+a table of connections, and their queues",
	MQ_FLAG(struct stats_options, connections)},
    {0, "--json", NULL, "+everything, as one JSON object", .take = take_format,
	.which = FORMAT_JSON},
    {0, "--prometheus", NULL, "metrics, as text for Prometheus",
	.take = take_format, .which = FORMAT_PROMETHEUS},
    {0, "--check", "LIMITS",
	"be a monitoring plugin (exit status 0 to 3):\n"
	"KEY=CRITICAL or KEY=WARNING:CRITICAL, KEY one of\n"
	"ready, delayed, unacked, rejected, age, consumers,\n"
	"done-within (a time; nothing ever done warns), spool",
	.take = take_format, .which = FORMAT_CHECK},
    {0, "--sort", "KEY",
	"by name, ready, delayed, unacked, rejected,\n"
	"consumers, age, in or out; highest first",
	.take = take_sort},
    {0, "--reverse", NULL, "reverse the order",
	MQ_FLAG(struct stats_options, order.reverse)},
    {0, "--nonempty", NULL, "only queues that have messages",
	MQ_FLAG(struct stats_options, order.nonempty)},
    {'n', "--limit", "N",
	"N queues at most, the others as one line;\n"
	"or N messages or reasons",
	MQ_LONG(struct stats_options, order.limit, 1, LONG_MAX)},
    {0, "--watch", "[=DUR]", "+show the table again every 2 s, or DUR",
	MQ_DURATION(struct stats_options, interval_ms, 100), .high = 2000},
    {0, "--html", NULL, "+everything, as one page for a browser",
	.take = take_subject, .which = SUBJECT_HTML},
    {0, "--refresh", "N", "the page reads itself again every N seconds",
	MQ_LONG(struct stats_options, refresh, 1, 86400)},
    {0, "--http", "[=PORT]",
	"serve browsers at http://127.0.0.1:PORT/, or\n"
	"answer one HTTP request on stdin and stdout: /,\n"
	"/metrics, /queues.json, /queue/NAME, /message/ID,\n"
	"/healthz (503 by --check); see man mq-http",
	.take = take_subject, .which = SUBJECT_HTTP},
    {0},
};
static const struct mq_option subjects[] = {
    {0, "--payloads", NULL, "with --http: show payloads, too",
	MQ_FLAG(struct stats_options, payloads)},
    {0, "--running", NULL, "running scripts, and their last texts",
	.take = take_subject, .which = SUBJECT_RUNNING},
    {0, "--server", NULL, "the state of the server, with warnings",
	.take = take_subject, .which = SUBJECT_SERVER},
    {0, "--spool", NULL, "messages that wait on this host for their server",
	.take = take_subject, .which = SUBJECT_SPOOL},
    {0, "--id", "ID", "+one message, wherever it is, and its history",
	.take = mq_filter_take,
	.at = offsetof(struct stats_options, list.filter)},
    {0, "--output", NULL, "the kept output of --id; with --http, on its page",
	MQ_FLAG(struct stats_options, output)},
    {0, "--result", NULL, "what the run of --id printed (mq-consume --result)",
	MQ_FLAG(struct stats_options, result)},
    {0, "--follow", NULL, "and what follows, until the end of the run",
	MQ_FLAG(struct stats_options, follow)},
    {0, "--batch", "NAME", "how many of a batch of a queue have ended, and how",
	.take = mq_filter_take, .which = 1,
	.at = offsetof(struct stats_options, list.filter)},
    {0, "--list", "STATE",
	"+the ready, delayed, unacked or rejected messages\n"
	"of a queue, the next one first; done, or all ended,\n"
	"the newest first, while --keep keeps them",
	.take = take_subject, .which = SUBJECT_LIST},
    {0, "--reasons", NULL,
	"+why messages of a queue were rejected, in groups\n"
	"with --list or --reasons, only:",
	.take = take_subject, .which = SUBJECT_REASONS},
    {0},
};
static const struct mq_option lists[] = {
    {.help = "                         with --list:"},
    {0, "--newest", NULL, "the newest first; 20, or N",
	MQ_FLAG(struct stats_options, list.newest)},
    {0, "--offset", "N", "skip the first N",
	MQ_LONG(struct stats_options, list.offset, 0, LONG_MAX)},
    {0},
};
static const struct mq_option framings[] = {
    {.help = "                         with --list, whole payloads:"},
    {'l', "--lines", NULL, "one a line", MQ_FRAMING(LINES)},
    {'0', "--null", NULL, "a NUL byte behind each", MQ_FRAMING(NULL)},
    {0, "--netstring", NULL, "as netstrings", MQ_FRAMING(NETSTRING)},
    {0, "--jsonl", NULL, "a JSON object a line, with all that is known",
	MQ_FRAMING(JSONL)},
    {.help = ""},
    {0},
};

/* Whether queues have a line each, in a table or on the page. */
static bool
has_rows(const struct stats_options *o)
{
	return o->subject == SUBJECT_HTML || o->subject == SUBJECT_HTTP ||
	    (o->subject == SUBJECT_QUEUES && o->format == FORMAT_TABLE &&
		!o->connections);
}

/* Refuses options that the subject does not take. */
static void
check_needs(const struct stats_options *o, const char *framing)
{
	enum subject s = o->subject;
	const char *filter = s == SUBJECT_BATCH ? NULL : o->list.filter.option;
	const char *rows = "the table of queues, --watch, --html or --http";
	bool list = s == SUBJECT_LIST, http = s == SUBJECT_HTTP;
	bool of_one = list || s == SUBJECT_REASONS;
	const struct {
		bool given, fits;
		const char *option, *needs;
	} all[] = {
	    {o->list.offset != -1, list, "--offset", "--list"},
	    {o->list.newest, list, "--newest", "--list"},
	    {framing != NULL, list, framing, "--list"},
	    {filter != NULL, of_one, filter, "--list or --reasons"},
	    {o->order.key != NULL, has_rows(o), "--sort", rows},
	    {o->order.reverse, has_rows(o), "--reverse", rows},
	    {o->order.nonempty, has_rows(o), "--nonempty", rows},
	    {o->order.limit != -1, has_rows(o) || of_one, "--limit",
		"the table of queues, --watch, --html, --http, --list or "
		"--reasons"},
	    {o->refresh > 0, http || s == SUBJECT_HTML, "--refresh",
		"--html or --http"},
	    {o->payloads, http, "--payloads", "--http"},
	    {o->output, http || s == SUBJECT_ONE, "--output", "--id or --http"},
	    {o->result, s == SUBJECT_ONE, "--result", "--id"},
	    {o->follow, o->output && s == SUBJECT_ONE, "--follow",
		"--id and --output"},
	    {o->hosts.n > 0, http, "--host", "--http"},
	    {of_one || s == SUBJECT_BATCH, o->count == 1, o->subject_name,
		"one queue (try --help)"},
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		forbid(all[i].given && !all[i].fits, "%s needs %s",
		    all[i].option, all[i].needs);
	forbid((s == SUBJECT_SERVER || s == SUBJECT_SPOOL) && o->count > 0,
	    "%s: takes no queue; remove %s", o->subject_name, o->queues[0]);
}

static void
check_options(const struct stats_options *o)
{
	const char *subject = o->subject_name, *format = o->format_name;
	const char *framing = mq_option_framing_name(o->list.framing);
	bool json = o->format == FORMAT_JSON, watches = o->interval_ms > 0;
	bool of_machine = o->format != FORMAT_TABLE;

	forbid_both(watches && of_machine, "--watch", format);
	forbid_both(
	    o->connections && of_machine && !json, "--connections", format);
	check_needs(o, framing);
	forbid_both(json && framing != NULL, format, framing);
	forbid_both(json && o->output, "--output", format);
	forbid_both(json && o->result, "--result", format);
	forbid_both(o->result && o->output, "--result", "--output");
	if (subject == NULL)
		return;
	forbid_both(of_machine &&
		(o->subject == SUBJECT_HTTP ?
			o->format != FORMAT_CHECK :
			!json || o->subject == SUBJECT_HTML),
	    subject, format);
	forbid_both(
	    watches && o->subject != SUBJECT_RUNNING, subject, "--watch");
	forbid_both(o->connections, subject, "--connections");
}

void
options_parse(struct stats_options *o, int argc, char *argv[])
{
	const struct mq_options tables[] = {{forms, o},
	    {http_options, &o->hosts}, {subjects, o},
	    {mq_filter_options + 2, &o->list.filter}, {lists, o},
	    {framings, &o->list.framing}, {mq_shared_options, &o->shared}, {0}};

	*o = (struct stats_options){
	    .shared = {.usage = usage, .names_server = true},
	    .order.limit = -1,
	    .list.offset = -1};
	mq_option_read(&o->shared, tables, argc, argv);
	mq_option_rights(&o->shared,
	    MQ_LOOKS | (o->subject == SUBJECT_SERVER ? MQ_DESCRIBES : 0) |
		(o->output ? MQ_READS_OUTPUT : 0),
	    argv + optind, argc - optind);
	o->queues = argv + optind;
	o->count = argc - optind;
	/* With --list and --reasons, --id and --batch are filters. */
	if (o->list.filter.id != NULL && o->subject != SUBJECT_LIST &&
	    o->subject != SUBJECT_REASONS)
		set_subject(o, SUBJECT_ONE, "--id");
	if (o->list.filter.batch != NULL && o->subject != SUBJECT_LIST &&
	    o->subject != SUBJECT_REASONS)
		set_subject(o, SUBJECT_BATCH, "--batch");
	check_options(o);
	if (o->list.offset == -1)
		o->list.offset = 0;
}

void
options_free(struct stats_options *o)
{
	mq_filter_free(&o->list.filter);
	mq_names_free(&o->hosts);
	free(o->name);
	mq_option_free(&o->shared);
}

/* --- options of a request ------------------------------------------------------ */

#define REFRESH_S 5
/* Connections that are served at the same time; others wait. */
#define CHILDREN 64

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"

/* partly: exit status 1 is no failure: one of several queues does not exist, or a
 * check warns. */
static const struct resource {
	const char *path; /* with a slash at the end, a name follows */
	enum subject subject;
	enum format format;
	struct http_answer answer;
} views[] = {
    {"/queue/", SUBJECT_CONTENTS, FORMAT_JSON, {200, .type = JSON}},
    {"/message/", SUBJECT_ONE, FORMAT_JSON, {200, .type = JSON}},
    {"/metrics", SUBJECT_QUEUES, FORMAT_PROMETHEUS,
	{200, "text/plain; version=0.0.4; charset=utf-8", .partly = true}},
    {"/queues.json", SUBJECT_QUEUES, FORMAT_JSON, {200, JSON, .partly = true}},
    {"/healthz", SUBJECT_HEALTH, FORMAT_TABLE,
	{200, "text/plain; charset=utf-8", .partly = true, .failed = 503}},
    {"/again", SUBJECT_HTML, FORMAT_TABLE,
	{200, HTML, page_policy, .partly = true}},
    {"/", SUBJECT_HTML, FORMAT_TABLE, {200, HTML, page_policy, .partly = true}},
};

/* Accepts connections, each in a process of its own, where the function returns with
 * the connection as stdin and stdout. */
static void
serve_port(const struct stats_options *o)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons((in_port_t)o->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	int listener = fd, children = 0;
	pid_t pid = -1;

	if (fd == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    bind(fd, (struct sockaddr *)&at, len) == -1 ||
	    listen(fd, SOMAXCONN) == -1 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) == -1)
		mq_die(errno == EACCES ? MQ_EXIT_NOPERM : MQ_EXIT_UNAVAILABLE,
		    "--http=%d: %s", o->port, strerror(errno));
	if (!o->shared.quiet)
		mq_say("serving http://127.0.0.1:%d/", ntohs(at.sin_port));
	while (pid != 0) {
		while (children > 0 &&
		    waitpid(-1, NULL, children < CHILDREN ? WNOHANG : 0) > 0)
			children--;
		fd = accept(listener, NULL, NULL);
		if (fd == -1 && errno != EINTR && errno != ECONNABORTED)
			mq_die(MQ_EXIT_AGAIN, "--http: %s", strerror(errno));
		pid = fd == -1 ? -1 : fork();
		children += pid > 0;
		if (pid == 0 &&
		    (dup2(fd, STDIN_FILENO) == -1 ||
			dup2(fd, STDOUT_FILENO) == -1))
			_exit(MQ_EXIT_AGAIN);
		if (fd != -1)
			close(fd);
	}
	close(listener);
}

void
options_serve(struct stats_options *o)
{
	const struct resource *v = views;
	const struct resource *end = v + sizeof(views) / sizeof(views[0]);
	struct http h;
	const char *name = NULL;
	size_t len;
	int i = 0;

	if (o->port != -1)
		serve_port(o);
	http_receive(&h, &o->hosts);
	if (h.request.method != METHOD_GET && h.request.method != METHOD_HEAD)
		http_refuse(&h, 405, "Allow: GET, HEAD\r\n", NULL);
	/* A name follows a path that ends with a slash; nothing follows the others. */
	for (; v < end; v++) {
		len = strlen(v->path);
		if (strncmp(h.request.path, v->path, len) != 0)
			continue;
		name = h.request.path + len;
		if ((*name == '\0') == (len == 1 || v->path[len - 1] != '/'))
			break;
	}
	if (v == end)
		http_refuse(&h, 404, NULL, NULL);
	o->subject = v->subject;
	o->format = v->format;
	o->requested = true;
	o->again = strcmp(v->path, "/again") == 0;
	/* A page that is served can always refresh itself. */
	if (o->refresh == 0)
		o->refresh = REFRESH_S;
	if (v->subject == SUBJECT_HEALTH && o->checks != NULL)
		o->format = FORMAT_CHECK;
	o->name = mq_xstrdup(name);
	if (v->subject == SUBJECT_ONE)
		o->list.filter.id = o->name;
	if (v->subject == SUBJECT_CONTENTS) {
		/* If queues were named on the command line, only these are served. */
		while (i < o->count && strcmp(o->queues[i], name) != 0)
			i++;
		if (o->count > 0 && i == o->count)
			http_refuse(&h, 404, NULL, NULL);
		o->only = o->name;
		o->queues = &o->only;
		o->count = 1;
	}
	http_work(&h, &v->answer);
	http_request_free(&h.request);
}
