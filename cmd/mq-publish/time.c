/*
 * When messages are to be ready.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/exit.h"
#include "base/say.h"
#include "publish.h"

/* Runs touch(1) on a descriptor that it inherits.  0 when it succeeded. */
static int
run_touch(const char *words, int fd)
{
	char file[32], date[256];
	char touch[] = "touch", keep[] = "-c", from[] = "-r";
	char *const argv[] = {touch, keep, from, file, date, file, NULL};
	posix_spawn_file_actions_t actions;
	int failed, status = -1;
	pid_t pid;

	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (snprintf(date, sizeof(date), "--date=%s", words) >=
	    (int)sizeof(date))
		return -1;
	posix_spawn_file_actions_init(&actions);
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		posix_spawn_file_actions_addopen(
		    &actions, i, "/dev/null", O_RDWR, 0);
	failed = posix_spawnp(&pid, "touch", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		return -1;
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return -1;
	return status;
}

/*
 * Nothing at all would be a time, too, and so would one letter, a time zone of
 * armies: slips rather.
 */
static bool
has_words(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += (*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z') ||
		    (*s >= 'a' && *s <= 'z');
	return n > 1;
}

/*
 * Times in the words of date(1), "tomorrow 9:00".  That goes by the clock of
 * its machine; touch(1) knows the same words, and its "now" can be the time of
 * a file: so it is the server's.
 */
static int
time_in_words(const char *words, int64_t now_ms, int64_t *ms)
{
	const struct timespec now = {.tv_sec = (time_t)(now_ms / 1000),
	    .tv_nsec = (long)(now_ms % 1000) * 1000000};
	const struct timespec both[] = {now, now};
	struct stat st;
	int fd, ok;

	if (!has_words(words))
		return -1;
	fd = memfd_create("time", 0);
	if (fd == -1)
		return -1;
	ok = futimens(fd, both) == 0 && run_touch(words, fd) == 0 &&
	    fstat(fd, &st) == 0 && st.st_mtim.tv_sec >= 0 &&
	    st.st_mtim.tv_sec <= MQ_TIME_MAX / 1000;
	if (ok)
		*ms = (int64_t)st.st_mtim.tv_sec * 1000 +
		    st.st_mtim.tv_nsec / 1000000;
	close(fd);
	return ok ? 0 : -1;
}

int64_t
publish_time(const char *at, int64_t now_ms)
{
	int64_t ms;

	if (mq_time_parse(at, now_ms, &ms) == -1 &&
	    time_in_words(at, now_ms, &ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--at: %s: not a time (RFC 3339, HH:MM, unix seconds, or "
		    "words of date(1))",
		    at);
	return ms;
}

/* What is due already is published as such: any consumer then sees it. */
void
publish_prepare_when(struct publisher *p)
{
	int64_t now_ms = (mq_clock_steady_us() + p->clock_us) / 1000;

	p->when = p->opt->when;
	p->when.said = p->opt->when.kind != MQ_WHEN_NOW;
	if (p->opt->at != NULL)
		p->when.ms = publish_time(p->opt->at, now_ms);
	if ((p->when.kind == MQ_WHEN_IN && p->when.ms == 0) ||
	    (p->when.kind == MQ_WHEN_AT && p->when.ms <= now_ms))
		p->when.kind = MQ_WHEN_NOW;
	p->how.when = p->when;
}
