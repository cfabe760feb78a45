/*
 * mq-stats: what is in the queues.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "exit.h"
#include "layout.h"
#include "options.h"
#include "say.h"
#include "stats-look.h"
#include "xalloc.h"

static const char help[] =
    "usage: mq-stats [options] [QUEUE...]\n"
    "\n"
    "Prints a table of the named queues, or of all: how many messages are\n"
    "ready, delayed, unacked and rejected, and how many consumers there are.\n"
    "Exit status 1: a queue that was named does not exist.\n"
    "\n" MQ_SHARED_HELP;

static const struct option long_options[] = {
    MQ_SHARED_LONG,
    MQ_FRAMING_LONG,
    MQ_FILTER_LONG,
    {"json", no_argument, NULL, 'j'},
    {"list", required_argument, NULL, LOOK_OPT_LIST},
    {"limit", required_argument, NULL, 'n'},
    {"offset", required_argument, NULL, LOOK_OPT_OFFSET},
    {"running", no_argument, NULL, LOOK_OPT_RUNNING},
    {"html", no_argument, NULL, LOOK_OPT_HTML},
    {"refresh", required_argument, NULL, LOOK_OPT_REFRESH},
    {NULL, 0, NULL, 0},
};

#define COLUMNS 5

static const char *const titles[COLUMNS] = {
    "READY", "DELAYED", "UNACKED", "REJECTED", "CONSUMERS"};

struct row {
	char *name; /* fit for a terminal */
	long long cell[COLUMNS];
};

/* How many columns of a terminal a visible name takes. */
static int
width_of(const char *name)
{
	size_t n = mbstowcs(NULL, name, 0);
	wchar_t *wide;
	int width;

	if (n == (size_t)-1)
		return (int)strlen(name);
	wide = mq_xcalloc(n + 1, sizeof(*wide));
	mbstowcs(wide, name, n + 1);
	width = wcswidth(wide, n);
	free(wide);
	return width == -1 ? (int)strlen(name) : width;
}

static void
print_table(const struct row *rows, int count)
{
	int width[COLUMNS], name_width = (int)strlen("QUEUE"), i, j, n;

	for (j = 0; j < COLUMNS; j++)
		width[j] = (int)strlen(titles[j]);
	for (i = 0; i < count; i++) {
		n = width_of(rows[i].name);
		name_width = n > name_width ? n : name_width;
		for (j = 0; j < COLUMNS; j++) {
			n = snprintf(NULL, 0, "%lld", rows[i].cell[j]);
			width[j] = n > width[j] ? n : width[j];
		}
	}
	printf("%-*s", name_width, "QUEUE");
	for (j = 0; j < COLUMNS; j++)
		printf("  %*s", width[j], titles[j]);
	putchar('\n');
	for (i = 0; i < count; i++) {
		printf("%s%*s", rows[i].name,
		    name_width - width_of(rows[i].name), "");
		for (j = 0; j < COLUMNS; j++)
			printf("  %*lld", width[j], rows[i].cell[j]);
		putchar('\n');
	}
}

static void
print_stats(const struct mq_stats *stats)
{
	struct row *rows = mq_xcalloc((size_t)stats->count + 1, sizeof(*rows));
	const struct mq_queue_stats *q;
	int i;

	for (i = 0; i < stats->count; i++) {
		q = &stats->queues[i];
		rows[i] =
		    (struct row){.name = mq_visible(q->name, strlen(q->name)),
			.cell = {q->ready, q->delayed, q->unacked, q->rejected,
			    q->consumers}};
		if (rows[i].name == NULL)
			mq_die(MQ_EXIT_AGAIN, "out of memory");
	}
	print_table(rows, stats->count);
	for (i = 0; i < stats->count; i++)
		free(rows[i].name);
	free(rows);
}

static int
check_known(const struct mq_stats *stats)
{
	int i, status = MQ_EXIT_OK;

	for (i = 0; i < stats->count; i++)
		if (!stats->queues[i].known) {
			mq_say("%s: no such queue", stats->queues[i].name);
			status = MQ_EXIT_NO;
		}
	return status;
}

int
main(int argc, char *argv[])
{
	const struct mq_layout *layout = &mq_layout_rmq;
	struct mq_shared shared = {.help = help};
	struct mq_server server;
	struct mq_redis redis;
	struct mq_stats stats;
	struct look_options lo = {.list.limit = -1};
	bool json = false;
	int ch, i, status;

	mq_option_descriptors();
	opterr = 0;
	while ((ch = getopt_long(argc, argv,
		    ":n:" MQ_SHARED_SHORT MQ_FRAMING_SHORT, long_options,
		    NULL)) != -1)
		if (ch == 'j')
			json = true;
		else if (!look_option(&lo, ch, optarg))
			(void)mq_option_shared(&shared, ch, argv);
	look_check(&lo, json, argc - optind);
	for (i = optind; i < argc; i++)
		mq_option_queue(argv[i]);
	mq_option_server(&shared, &server);
	if (lo.kind != LOOK_NONE) {
		struct look look = {.layout = layout,
		    .redis = &redis,
		    .queues = (const char *const *)argv + optind,
		    .count = argc - optind,
		    .json = json,
		    .quiet = shared.quiet};
		if (mq_redis_open(&redis, &server) == -1)
			mq_die(redis.status, "%s", redis.error);
		status = look_run(&look, &lo);
		mq_redis_close(&redis);
		mq_server_free(&server);
		free(shared.url);
		mq_close_stdout();
		return status;
	}
	if (mq_redis_open(&redis, &server) == -1 ||
	    layout->stats(&redis, (const char *const *)argv + optind,
		argc - optind, false, &stats) == -1)
		mq_die(redis.status, "%s", redis.error);
	mq_redis_close(&redis);
	print_stats(&stats);
	status = check_known(&stats);
	mq_stats_free(&stats);
	mq_server_free(&server);
	free(shared.url);
	mq_close_stdout();
	return status;
}
