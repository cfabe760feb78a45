#include "parts.h"

#include <sys/stat.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/say.h"
#include "base/xalloc.h"

/* Whether our standard output and error are the same file, pipe or terminal. */
static bool
are_same(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 &&
	    fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
	    out.st_ino == err.st_ino;
}

void
outputs_init(struct outputs *o, struct ev_loop *loop, enum output_form form)
{
	bool gathers = form != OUTPUT_LIVE;

	run_outputs_init(&o->runs, loop, form);
	target_init(&o->errors.target, loop, STDERR_FILENO, gathers);
	output_target_init(&o->errors, &o->runs);
	o->apart = gathers && !are_same();
	if (o->apart)
		target_init(&o->standard.target, loop, STDOUT_FILENO, gathers);
	if (o->apart)
		output_target_init(&o->standard, &o->runs);
	o->stream = target_stream(&o->errors.target);
	/* Our own lines must not block the loop either. */
	mq_say_to(o->stream);
}

void
outputs_log(struct outputs *o, int i, int n, int fd, const char *path)
{
	struct output_target *t;

	if (o->logs == NULL)
		o->logs = mq_xcalloc((size_t)n, sizeof(*o->logs));
	o->log_count = n;
	t = &o->logs[i];
	if (t->target.sink.loop == NULL) {
		target_init_log(&t->target, o->runs.loop, fd, path,
		    o->runs.form != OUTPUT_LIVE);
		output_target_init(t, &o->runs);
		return;
	}
	/* Earlier output belongs into the old file. */
	run_outputs_copy(&o->runs, t);
	sink_move(&t->target.sink, fd);
}

struct run_output *
outputs_open_run(struct outputs *o, int i, int ends[2])
{
	struct run_output *r;

	ends[0] = ends[1] = -1;
	if (o->logs != NULL)
		r = run_output_open(&o->runs, &o->logs[i], NULL, ends);
	else
		r = run_output_open(
		    &o->runs, &o->errors, o->apart ? &o->standard : NULL, ends);
	if (r != NULL && ends[1] == -1 &&
	    (o->logs != NULL || o->runs.form != OUTPUT_LIVE))
		ends[1] = ends[0];
	return r;
}

bool
outputs_has_logs(const struct outputs *o)
{
	return o->logs != NULL;
}

bool
outputs_clogged(const struct outputs *o)
{
	int i;

	for (i = 0; i < o->log_count; i++)
		if (target_clogged(&o->logs[i].target))
			return true;
	return target_clogged(&o->errors.target) ||
	    (o->apart && target_clogged(&o->standard.target));
}

void
outputs_end(struct outputs *o)
{
	int i;

	run_outputs_end(&o->runs);
	for (i = 0; i < o->log_count; i++)
		target_end(&o->logs[i].target);
	free(o->logs);
	mq_say_to(NULL);
	fclose(o->stream);
	if (o->apart)
		target_end(&o->standard.target);
	target_end(&o->errors.target);
}
