/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The argument of --at: a time as a program or a person writes it. */
#include "options.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <spawn.h>

#include "base/duration.h"

#define PAST_MS 60000 /* a time that is over for less means now */
#define DIGITS	".0123456789"

/* Runs touch(1) on a descriptor that touch inherits.  Returns 0 after success. */
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

/* Whether the text has words, and is no slip that touch(1) accepts: an empty text, digits
 * alone (a date or an hour), or a single letter (a military time zone: "2h" is in zone H). */
static bool
has_words(const char *s)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz.";
	size_t n, found = 0;

	if (s[strspn(s, " " DIGITS)] == '\0')
		return false;
	for (; *s != '\0'; s += n) {
		/* "a.m." is a word. */
		n = *s == '.' ? 0 : strspn(s, letters);
		if (n == 1 && strchr("Tt", *s) == NULL)
			return false;
		found += n > 0 ? n : (*s >= '0' && *s <= '9');
		n += n == 0;
	}
	return found > 1;
}

/* Parses a time in the words of date(1), "tomorrow 9:00".  date(1) goes by the clock of this
 * machine; touch(1) knows the same words, and takes "now" from a file, here the server's
 * time. */
static int
time_in_words(const char *words, int64_t now_ms, int64_t *ms)
{
	const struct timespec now = {.tv_sec = (time_t)(now_ms / 1000),
	    .tv_nsec = (long)(now_ms % 1000) * 1000000};
	const struct timespec both[] = {now, now};
	struct stat st;
	int fd, ok;

	fd = has_words(words) ? memfd_create("time", 0) : -1;
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
mq_option_time(const char *at, int64_t now_ms)
{
	int64_t ms;

	if (mq_time_parse(at, now_ms, &ms) == 0)
		return ms;
	forbid(
	    at[strspn(at, DIGITS)] != '\0' && mq_duration_parse(at, &ms) == 0,
	    "--at: %s: not a time but a duration; use -d %s", at, at);
	forbid(time_in_words(at, now_ms, &ms) == -1,
	    "--at: %s: not a time (RFC 3339, HH:MM, @SECONDS since 1970, or "
	    "words of date(1))",
	    at);
	return ms;
}

int64_t
mq_option_at(const char *at, int64_t now_ms, const char *past)
{
	int64_t exact, ms = mq_option_time(at, now_ms);

	if (ms >= now_ms - PAST_MS)
		return ms;
	/* People's words mean a time to come; a program's time may be over. */
	forbid(mq_time_parse(at, now_ms, &exact) == -1,
	    "--at: %s: that time is over", at);
	if (past != NULL)
		mq_say("--at: %s: that time is over; %s", at, past);
	return ms;
}
