#include "publish.h"

#include <string.h>

#include "base/exit.h"
#include "base/xalloc.h"
#include "shared/http.h"

/* A client may say this of its message, and nothing else. */
static const struct {
	const char *header, *option;
} attributes[] = {
    {"Mq-Delay", "--delay="},
    {"Mq-Expires", "--expires="},
    {"Mq-Priority", "--priority="},
    {"Mq-Key", "--key="},
    {"Mq-Unique", "--unique="},
    {"Mq-Group", "--group="},
    {"Mq-Param1", "--param=1="},
    {"Mq-Param2", "--param=2="},
    {"Mq-Param3", "--param=3="},
    {"Mq-Param4", "--param=4="},
    {"Traceparent", "--header=Traceparent: "},
    {"Tracestate", "--header=Tracestate: "},
};

#define OURS "Mq-"
#define USER "Mq-Header-"

/* The option that a header stands for, which the caller frees; NULL: none. */
static char *
option_of(const struct http_header *h)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (strcasecmp(h->name, attributes[i].header) == 0)
			return mq_xasprintf(
			    "%s%s", attributes[i].option, h->value);
	if (strncasecmp(h->name, USER, strlen(USER)) == 0)
		return mq_xasprintf(
		    "--header=%s: %s", h->name + strlen(USER), h->value);
	return NULL;
}

/* A mistyped name is no other program's header. */
static void
check_names(const struct http *h)
{
	const struct http_header *one = h->request.headers;
	const struct http_header *end = one + h->request.header_count;
	char *option, *text;

	for (; one < end; one++) {
		option = option_of(one);
		if (option == NULL &&
		    strncasecmp(one->name, OURS, strlen(OURS)) == 0) {
			text = mq_xasprintf(
			    "%s: not a header of these tools", one->name);
			http_refuse(h, 400, NULL, text);
		}
		free(option);
	}
}

/* What a client says comes behind the command line, and wins. */
static void
add_options(struct options *o, const struct http_request *r)
{
	char **argv = mq_xcalloc(r->header_count + 2, sizeof(*argv));
	int argc = 1;
	size_t i;

	argv[0] = mq_xstrdup("mq-publish");
	for (i = 0; i < r->header_count; i++)
		if ((argv[argc] = option_of(&r->headers[i])) != NULL)
			argc++;
	o->message.ids = !o->message.raw;
	options_add(o, argc, argv);
	while (argc > 0)
		free(argv[--argc]);
	free(argv);
}

static struct http_answer
judge(void *arg, int status)
{
	(void)arg;
	return (struct http_answer){
	    status == MQ_EXIT_OK ? 201 : http_status(status),
	    "text/plain; charset=utf-8", NULL};
}

void
post_serve(struct options *o)
{
	struct http h;

	http_receive(&h, &o->hosts);
	if (h.request.method != METHOD_POST)
		http_refuse(&h, 405, "Allow: POST\r\n", NULL);
	/* A page of some other site, in a browser that can reach us. */
	if (http_request_get(&h.request, "Origin") != NULL)
		http_refuse(&h, 403, NULL, "not from a browser");
	check_names(&h);
	http_receive_body(&h);
	http_work(&h, judge, NULL);
	add_options(o, &h.request);
	http_free(&h);
}
