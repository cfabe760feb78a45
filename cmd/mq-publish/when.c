#include "publish.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/say.h"

/* A time that is over for longer was not meant to be now. */
#define PAST_MS 60000
#define DIGITS	".0123456789"

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

static bool
is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/*
 * touch(1) takes for times what are rather slips: an empty text, digits alone (a date
 * or an hour), and a single letter (a military time zone: "2h" is in the zone H).
 */
static bool
has_words(const char *s)
{
	size_t n, found = 0;

	if (s[strspn(s, " " DIGITS)] == '\0')
		return false;
	for (; *s != '\0'; s += n) {
		/* "a.m." is a word. */
		for (n = 0; is_letter(s[n]) || (n > 0 && s[n] == '.'); n++)
			;
		if (n == 1 && strchr("Tt", *s) == NULL)
			return false;
		found += n > 0 ? n : (*s >= '0' && *s <= '9');
		n += n == 0;
	}
	return found > 1;
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

/* Words mean a time to come; other times may be those of a program. */
static void
check_past(const char *at, int64_t ms, int64_t now_ms, bool quiet)
{
	int64_t exact;

	if (ms >= now_ms - PAST_MS)
		return;
	if (mq_time_parse(at, now_ms, &exact) == -1)
		mq_die(MQ_EXIT_USAGE, "--at: %s: that time is over", at);
	if (!quiet)
		mq_say("--at: %s: that time is over; published at once", at);
}

int64_t
when_parse(const char *at, int64_t now_ms)
{
	int64_t ms;

	if (mq_time_parse(at, now_ms, &ms) == 0)
		return ms;
	if (at[strspn(at, DIGITS)] != '\0' && mq_duration_parse(at, &ms) == 0)
		mq_die(MQ_EXIT_USAGE,
		    "--at: %s: not a time but a duration; use -d %s", at, at);
	if (time_in_words(at, now_ms, &ms) == -1)
		mq_die(MQ_EXIT_USAGE,
		    "--at: %s: not a time (RFC 3339, HH:MM, @SECONDS since "
		    "1970, or words of date(1))",
		    at);
	return ms;
}

struct mq_when
when_decide(struct mq_when when, const char *at, int64_t now_ms, bool quiet)
{
	when.said = when.kind != MQ_WHEN_NOW;
	if (at != NULL) {
		when.ms = when_parse(at, now_ms);
		check_past(at, when.ms, now_ms, quiet);
	}
	if ((when.kind == MQ_WHEN_IN && when.ms == 0) ||
	    (when.kind == MQ_WHEN_AT && when.ms <= now_ms))
		when.kind = MQ_WHEN_NOW;
	return when;
}
