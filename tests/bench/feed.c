/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * feed COUNT WORKERS WINDOW EACH COMMAND [ARG...]
 *
 * What feeding workers through pipes costs at the least: writes COUNT lines of
 * 100 bytes to WORKERS processes, each with at most WINDOW lines that it has not
 * answered, and reads their lines on descriptor 3.  After EACH lines, a worker's
 * stdin is closed, and another worker takes its place.  No Redis.
 */
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE  101
#define LINES 500

extern char **environ;

struct worker {
	int in, out;
	long open, given; /* lines: not answered, and all */
	size_t cut;	  /* bytes of a line that are written already */
};

static char lines[LINE * LINES];
static long left, unanswered, window, each;

static void
start(struct worker *w, char *argv[])
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2], error;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1)
		err(70, "pipe2");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	/* To itself would leave it closed at exec. */
	if (out[1] == 3)
		out[1] = fcntl(3, F_DUPFD_CLOEXEC, 10);
	posix_spawn_file_actions_adddup2(&actions, out[1], 3);
	error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	if (error != 0)
		errx(70, "%s: %s", argv[0], strerror(error));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	w->in = in[1];
	w->out = out[0];
	fcntl(w->in, F_SETFL, O_NONBLOCK);
}

/* Writes the rest of a line that is cut, and n more. */
static void
feed(struct worker *w, long n)
{
	size_t from = w->cut, end = (size_t)n * LINE + (from > 0 ? LINE : 0);
	long begun;
	ssize_t wrote;

	if (end > sizeof(lines))
		end = sizeof(lines);
	wrote = write(w->in, lines + from, end - from);
	if (wrote <= 0)
		return;
	begun = (long)((from + (size_t)wrote + LINE - 1) / LINE) - (from > 0);
	w->cut = (from + (size_t)wrote) % LINE;
	w->open += begun;
	w->given += begun;
	left -= begun;
}

/* Counts answers; false: the worker has ended. */
static bool
answers(struct worker *w)
{
	char buf[65536];
	ssize_t i, n = read(w->out, buf, sizeof(buf));

	for (i = 0; i < n; i++) {
		w->open -= buf[i] == '\n';
		unanswered -= buf[i] == '\n';
	}
	return n > 0;
}

/* A worker that has had its lines ends, and another one follows. */
static void
end_input(struct worker *w)
{
	if (w->in != -1 && w->given == each && w->cut == 0) {
		close(w->in);
		w->in = -1;
	}
}

static long
room(const struct worker *w, long left)
{
	long n = window - w->open;

	if (n > each - w->given)
		n = each - w->given;
	return n < left ? n : left;
}

static void
turn(struct worker *w, struct pollfd fds[2], char *argv[])
{
	if (fds[0].revents != 0 && !answers(w)) {
		close(w->out);
		if (w->given != each || wait(NULL) == -1)
			errx(1, "a worker has ended");
		*w = (struct worker){.in = -1, .out = -1};
		if (left > 0)
			start(w, argv);
	} else if (fds[1].revents != 0) {
		feed(w, room(w, left));
		end_input(w);
	}
}

int
main(int argc, char *argv[])
{
	struct worker *workers, *w;
	struct pollfd *fds;
	long count, i;

	if (argc < 6)
		return 64;
	left = unanswered = atol(argv[1]);
	count = atol(argv[2]);
	window = atol(argv[3]);
	each = atol(argv[4]);
	workers = calloc((size_t)count, sizeof(*workers));
	fds = calloc(2 * (size_t)count, sizeof(*fds));
	if (workers == NULL || fds == NULL)
		err(70, "calloc");
	memset(lines, 'x', sizeof(lines));
	for (i = LINE; i <= (long)sizeof(lines); i += LINE)
		lines[i - 1] = '\n';
	for (i = 0; i < count; i++)
		start(&workers[i], argv + 5);
	while (unanswered > 0) {
		for (i = 0; i < count; i++) {
			w = &workers[i];
			fds[2 * i] =
			    (struct pollfd){.fd = w->out, .events = POLLIN};
			fds[2 * i + 1] = (struct pollfd){
			    .fd = room(w, left) > 0 || w->cut > 0 ? w->in : -1,
			    .events = POLLOUT};
		}
		if (poll(fds, 2 * (nfds_t)count, -1) == -1)
			err(70, "poll");
		for (i = 0; i < count; i++)
			turn(&workers[i], fds + 2 * i, argv + 5);
	}
	for (i = 0; i < count; i++)
		close(workers[i].in);
	while (wait(NULL) > 0)
		;
	free(workers);
	free(fds);
	return 0;
}
