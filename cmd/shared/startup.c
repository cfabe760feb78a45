/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "options.h"

#include <sys/ioctl.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

void
mq_option_begin(void)
{
	static const int stand_ins[] = {O_WRONLY, O_RDONLY, O_RDWR};
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction sa;
	size_t i;
	int fd;

	mq_redis_memory();
	json_set_alloc_funcs(mq_xmalloc, free);
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)open("/dev/null", stand_ins[fd]);
	/* Otherwise jansson opens /dev/urandom. */
	json_object_seed(arc4random());
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* The kernel ignores signals that the first process of a container does not
	 * catch. */
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]) && getpid() == 1; i++)
		if (sigaction(ends[i], NULL, &sa) == 0 &&
		    sa.sa_handler == SIG_DFL) {
			sa.sa_handler = mq_end_by;
			sigaction(ends[i], &sa, NULL);
		}
}

void
mq_option_prints(bool results)
{
	int fd, mode = fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE;

	if (mode == O_WRONLY || mode == O_RDWR)
		return;
	if (results)
		mq_die(MQ_EXIT_IO,
		    "standard output: not open for writing; nothing was done");
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd == -1 || dup2(fd, STDOUT_FILENO) == -1)
		mq_die(MQ_EXIT_AGAIN, "/dev/null: %s", strerror(errno));
	close(fd);
}

void
mq_option_must(const struct mq_redis *r, int rv)
{
	if (rv == -1)
		mq_die(r->status, "%s", r->error);
}

/* --- interrupt --------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void
on_signal(int sig)
{
	if (interrupted)
		mq_end_by(sig);
	interrupted = sig;
}

void
interrupt_catch(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int
interrupt_signal(void)
{
	return interrupted;
}

int
interrupt_wait(int fd, int64_t ms)
{
	const struct timespec timeout = {ms / 1000, ms % 1000 * 1000000};
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	sigset_t ours, before;
	int n;

	/* No signal may come between the test of `interrupted` and the wait. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &before);
	n = interrupted ? -1 :
			  ppoll(&pfd, 1, ms == -1 ? NULL : &timeout, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (n == -1 && interrupted)
		return -1;
	return n != 0;
}

/* --- output ------------------------------------------------------------------- */

bool
output_all(const char *p, size_t n)
{
	struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done) {
		done = write(STDOUT_FILENO, p, n);
		if (done == -1 && errno == EAGAIN)
			(void)poll(&room, 1, -1);
		else if (done == -1 && errno != EINTR)
			return false;
		if (done == -1)
			done = 0;
	}
	return true;
}

void
output_json(const char *p, size_t n)
{
	const char *from = p, *end = p + n;
	uint32_t c;
	size_t len;

	for (; p < end; p += len) {
		len = mq_utf8_odd(p, (size_t)(end - p), &c);
		if (c == 0)
			continue;
		fwrite(from, 1, (size_t)(p - from), stdout);
		from = p + len;
		if (c >= 0x10000) {
			c -= 0x10000;
			printf("\\u%04x", (unsigned)(0xd800 + (c >> 10)));
			c = 0xdc00 + (c & 0x3ff);
		}
		printf("\\u%04x", (unsigned)c);
	}
	fwrite(from, 1, (size_t)(end - from), stdout);
}

void
output_json_line(json_t *v)
{
	struct mq_buf out = {0};

	mq_json_dump(v, &out);
	json_decref(v);
	output_json(out.data, out.len);
	putchar('\n');
	mq_buf_free(&out);
}

/* --- progress ----------------------------------------------------------------- */

#define BAR_MIN 10 /* columns */

bool
progress_can_draw(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0;
}

/* One column stays free: some terminals begin a new line after the last column. */
int
progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return 79;
	return size.ws_col < PROGRESS_LINE ? size.ws_col - 1 :
					     PROGRESS_LINE - 1;
}

void
progress_line(char line[static PROGRESS_LINE], const char *text, double part)
{
	int room, full, n, width = progress_columns();

	n = snprintf(line, (size_t)width + 1, "%s", text);
	room = width - n - 2;
	if (part < 0 || room < BAR_MIN)
		return;
	full = (int)(part * room);
	line[n] = '[';
	memset(line + n + 1, '#', (size_t)full);
	memset(line + n + 1 + full, '.', (size_t)(room - full));
	line[width - 1] = ']';
	line[width] = '\0';
}

void
progress_time(char out[static PROGRESS_TIME], double seconds)
{
	long s = (long)seconds;

	if (s < 60)
		snprintf(out, PROGRESS_TIME, "%lds", s);
	else if (s < 3600)
		snprintf(out, PROGRESS_TIME, "%ldm%02lds", s / 60, s % 60);
	else
		snprintf(
		    out, PROGRESS_TIME, "%ldh%02ldm", s / 3600, s / 60 % 60);
}
