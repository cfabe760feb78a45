/*
 * feed COUNT WORKERS WINDOW COMMAND [ARG...]
 *
 * What feeding workers through pipes costs at the least: writes COUNT lines of
 * 100 bytes to WORKERS processes, each with at most WINDOW lines that it has not
 * answered, and reads their lines on descriptor 3.  No Redis.
 */
#include <sys/wait.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE  101
#define LINES 500

extern char **environ;

struct worker {
	int in, out;
	long open;
	size_t cut; /* bytes of a line that are written already */
};

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

/* Writes what the window has room for; returns how many lines were begun. */
static long
feed(struct worker *w, const char *lines, long room)
{
	size_t from = w->cut, end;
	long begun;
	ssize_t n;

	if (room > LINES)
		room = LINES;
	end = (size_t)room * LINE + (from > 0 ? LINE : 0);
	if (end > LINE * (size_t)LINES)
		end = LINE * (size_t)LINES;
	if (end <= from)
		return 0;
	n = write(w->in, lines + from, end - from);
	if (n <= 0)
		return 0;
	begun = (long)((from + (size_t)n + LINE - 1) / LINE) - (from > 0);
	w->cut = (from + (size_t)n) % LINE;
	w->open += begun;
	return begun;
}

static long
answers(struct worker *w)
{
	char buf[65536];
	ssize_t i, n = read(w->out, buf, sizeof(buf));
	long count = 0;

	if (n <= 0)
		errx(1, "a worker has ended");
	for (i = 0; i < n; i++)
		count += buf[i] == '\n';
	w->open -= count;
	return count;
}

int
main(int argc, char *argv[])
{
	static char lines[LINE * LINES];
	struct worker *workers;
	struct pollfd *fds;
	long left, unanswered, count, window, i, room;

	if (argc < 5)
		return 64;
	left = unanswered = atol(argv[1]);
	count = atol(argv[2]);
	window = atol(argv[3]);
	workers = calloc((size_t)count, sizeof(*workers));
	fds = calloc(2 * (size_t)count, sizeof(*fds));
	if (workers == NULL || fds == NULL)
		err(70, "calloc");
	memset(lines, 'x', sizeof(lines));
	for (i = LINE; i <= (long)sizeof(lines); i += LINE)
		lines[i - 1] = '\n';
	for (i = 0; i < count; i++)
		start(&workers[i], argv + 4);
	while (unanswered > 0) {
		for (i = 0; i < count; i++) {
			room = window - workers[i].open;
			if (room > left)
				room = left;
			fds[2 * i] = (struct pollfd){
			    .fd = workers[i].out, .events = POLLIN};
			fds[2 * i + 1] = (struct pollfd){
			    .fd = room > 0 || workers[i].cut > 0 ?
				workers[i].in :
				-1,
			    .events = POLLOUT};
		}
		if (poll(fds, 2 * (nfds_t)count, -1) == -1)
			err(70, "poll");
		for (i = 0; i < count; i++) {
			if (fds[2 * i].revents != 0)
				unanswered -= answers(&workers[i]);
			room = window - workers[i].open;
			if (fds[2 * i + 1].revents != 0)
				left -= feed(&workers[i], lines,
				    room < left ? room : left);
		}
	}
	for (i = 0; i < count; i++)
		close(workers[i].in);
	while (wait(NULL) > 0)
		;
	free(workers);
	free(fds);
	return 0;
}
