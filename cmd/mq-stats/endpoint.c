#include "stats.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <netinet/in.h>

#define REFRESH_S 5
/* Connections that are served at a time; the others wait. */
#define CHILDREN 64

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"

/* Exit status 1 of what is about several things says that one is not there; 1 of a
 * check is a warning. */
static const struct resource {
	const char *path; /* with a slash at the end, a name is behind it */
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

/* Returns in the process of a connection, which is its stdin and stdout. */
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
endpoint_serve(struct stats_options *o)
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
	/* What is behind the path of the view is a name, or nothing. */
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
	/* The page can ask for itself here. */
	if (o->refresh == 0)
		o->refresh = REFRESH_S;
	if (v->subject == SUBJECT_HEALTH && o->checks != NULL)
		o->format = FORMAT_CHECK;
	o->name = mq_xstrdup(name);
	if (v->subject == SUBJECT_ONE)
		o->list.filter.id = o->name;
	if (v->subject == SUBJECT_CONTENTS) {
		/* If queues were named, others are not served. */
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
