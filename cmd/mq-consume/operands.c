/*
 * Checks of the queues of the command line.  A name can be new, or mistyped; or
 * the name is the command, and the "--" before it was forgotten.
 */
#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/process/process.h"
#include "options.h"
#include "queue/calls.h"
#include "shared/options.h"

/* --- a forgotten "--" --------------------------------------------------------- */

/*
 * The path of the program that an operand names, or NULL.  Only the first word
 * counts: 'gzip -9' was meant for a shell.  A program of this directory counts
 * even without "./".
 */
static char *
program_of(const char *operand)
{
	char *word = mq_xstrndup(operand, strcspn(operand, " \t"));
	char *path = *word != '\0' ? command_find(word) : NULL;
	struct stat st;

	if (path == NULL && access(word, X_OK) == 0)
		path = mq_xasprintf("./%s", word);
	free(word);
	if (path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return path;
	free(path);
	return NULL;
}

static bool
is_program(const char *operand)
{
	char *path = program_of(operand);

	free(path);
	return path != NULL;
}

static bool
is_path(const char *operand)
{
	return *operand == '/' || strncmp(operand, "./", 2) == 0 ||
	    strncmp(operand, "../", 3) == 0;
}

/* The operand as it belongs after the "--". */
static char *
format_command(const char *operand)
{
	char *path = program_of(operand);
	bool here = path != NULL && strncmp(path, "./", 2) == 0 &&
	    strncmp(operand, "./", 2) != 0;

	free(path);
	return mq_xasprintf("%s%s", here ? "./" : "", operand);
}

static void __attribute__((noreturn))
refuse_operand(const struct options *o, const char *operand)
{
	struct mq_buf line = {0};
	char **word, *command;

	if (o->typed != NULL && operand == o->typed[0])
		mq_die(MQ_EXIT_USAGE,
		    "%s: a command, not a queue; write QUEUE -- COMMAND",
		    operand);

	for (word = o->words; *word != NULL; word++) {
		if (*word == operand) {
			mq_buf_add_word(&line, "--");
			command = format_command(operand);
			mq_buf_add_word(&line, command);
			free(command);
		} else {
			mq_buf_add_word(&line, *word);
		}
	}
	mq_die(MQ_EXIT_USAGE,
	    "%s: a command, not a queue; put -- before it: %s", operand,
	    mq_buf_str(&line));
}

void
operands_forgotten(const struct options *o)
{
	char **word = o->words;
	const char *found = NULL;

	/* The first operand is a queue; what follows an option may be its value. */
	for (word += *word != NULL; *word != NULL && found == NULL; word++)
		if (**word != '-' && word - o->words > 1 && *word[-1] != '-' &&
		    is_program(*word))
			found = *word;
	for (; found != NULL && *word != NULL; word++)
		if (**word == '-')
			refuse_operand(o, found);
}

void
operands_check(const struct options *o, const char *ns)
{
	const char *why;
	bool good = true;
	char *name;
	int i;

	for (i = 1; i < o->queue_count && o->command == NULL; i++) {
		name = mq_layout_queue(o->layout, ns, o->typed[i], &why);
		good &= name != NULL;
		free(name);
	}
	/* A later operand that is no queue name may be an argument. */
	for (i = 1; i < o->queue_count && !good; i++)
		if (is_path(o->typed[i]) || is_program(o->typed[i]))
			refuse_operand(o, o->typed[i]);
}

/*
 * A queue may have the name of a program in PATH; the first queue even before it
 * exists.  A queue named like the path of a program was made by an earlier slip.
 */
static void
check_commands(const struct options *o, const bool *exists)
{
	const char *operand;
	bool path, program;
	int i;

	for (i = 0; i < o->queue_count && o->command == NULL; i++) {
		operand = o->typed[i];
		path = is_path(operand);
		program = is_program(operand);
		if (i == 0 || exists[i] ? path && program : path || program)
			refuse_operand(o, operand);
	}
}

/* --- equal names ---------------------------------------------------------------- */

static void
check_target(const char *option, const char *queue, const char *target)
{
	if (target != NULL && strcmp(queue, target) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "%s: %s: this queue is being consumed; name another",
		    option, target);
}

void
operands_differ(const struct options *o)
{
	int i, j;

	for (i = 0; i < o->queue_count; i++) {
		for (j = 0; j < i; j++)
			if (strcmp(o->queues[i], o->queues[j]) == 0)
				mq_die(MQ_EXIT_USAGE, "%s: given twice",
				    o->queues[i]);
		/* A pushed message would come back, and never run out of
		 * attempts. */
		check_target("--push", o->queues[i], o->given.push);
		check_target("--notify", o->queues[i], o->given.notify);
	}
	/* One queue would have two kinds of messages. */
	if (o->given.push != NULL && o->given.notify != NULL &&
	    strcmp(o->given.push, o->given.notify) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "--push and --notify: both are %s; name two queues",
		    o->given.notify);
}

/* --- no such queue ------------------------------------------------------------- */

/* As mq_option_made(), of a queue that is about to be made: what is not, is an answer. */
static void
say_missing(const struct options *o, struct mq_redis *r, int i)
{
	bool push = i == o->queue_count && o->given.push != NULL;
	const char *name = i < o->queue_count ? o->queues[i] :
	    push			      ? o->given.push :
						o->given.notify;
	const char *what = push ? "--push creates it" :
	    i >= o->queue_count ? "--notify creates it" :
				  "waiting for it";
	char *hint;

	if (o->existing || (o->drain && i < o->queue_count) ||
	    mq_queue_unlisted(r, o->layout, name) != NULL) {
		mq_option_unknown(r, o->layout, name);
		return;
	}
	if (o->fresh)
		return;
	if (i < o->queue_count && strcmp(o->typed[i], "help") == 0)
		mq_die(MQ_EXIT_USAGE,
		    "help: no such queue; try --help, or --new for a queue of "
		    "that name");
	hint = mq_known_hint(r, o->layout, name);
	if (o->verbose || *hint != '\0' || isatty(STDERR_FILENO))
		mq_say("%s: no such queue yet; %s%s", name, what, hint);
	free(hint);
}

/* Whether all queues exist. */
static bool
check_exist(const struct options *o, struct mq_redis *r, const bool *exists)
{
	int i,
	    n = o->queue_count + (o->given.push != NULL) +
	    (o->given.notify != NULL);
	bool all = true;

	for (i = 0; i < n; i++) {
		if (exists[i])
			continue;
		all = false;
		if (!o->quiet)
			say_missing(o, r, i);
	}
	if (o->existing && !all)
		exit(mq_queue_unlisted(r, o->layout, o->queues[0]) != NULL ?
			MQ_EXIT_UNAVAILABLE :
			MQ_EXIT_NO);
	return all;
}

bool
operands_look(const struct options *o, struct mq_redis *r)
{
	struct mq_idgen ids = {0};
	char connection[NAME_SIZE], random[7];
	const struct mq_session session = {.connection = connection,
	    .queues = o->queues,
	    .queue_count = o->queue_count,
	    .push = o->given.push,
	    .notify = o->given.notify};
	struct mq_known known = {0};
	bool all = false;

	mq_id_random(&ids, random, 6);
	snprintf(connection, sizeof(connection), "%s-%s", o->tag, random);
	if (mq_known_ask(r, o->layout, &session, &known) == -1)
		mq_die(r->status, "%s", r->error);
	check_commands(o, known.there);
	if (known.status == 0 || o->existing)
		all = check_exist(o, r, known.there);
	if (known.status != 0)
		mq_die(known.status, "%s", known.error);
	free(known.there);
	return all || !o->drain;
}
