/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Whether a process has ended: common/base/proc.c, with processes in all their states. */
#include "base/proc.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

static void
rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Starts a process that lives until it is killed, and gets its text; what the process does first
 * and last is done before and after that. */
static pid_t
start(char text[MQ_PROC_MAX], void (*first)(void), void (*last)(void))
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		first();
		mq_proc_self(text);
		if (write(fds[1], text, MQ_PROC_MAX) != MQ_PROC_MAX)
			_exit(1);
		last();
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], text, MQ_PROC_MAX), MQ_PROC_MAX);
	close(fds[0]);
	close(fds[1]);
	assert_false(mq_proc_ended(text));
	return pid;
}

static void
nothing(void)
{
}

static char
state_of(pid_t pid)
{
	char path[40], text[256] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	p = strrchr(text, ')');
	assert_non_null(p);
	return p[2];
}

static void
await_state(pid_t pid, char state)
{
	while (state_of(pid) != state)
		rest();
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(self_has_not_ended)
{
	char text[MQ_PROC_MAX];

	mq_proc_self(text);
	assert_string_not_equal(text, "");
	assert_false(mq_proc_ended(text));
}

TEST(killed_before_and_after_its_parent_has_waited)
{
	char text[MQ_PROC_MAX];
	pid_t pid = start(text, nothing, nothing);

	kill(pid, SIGKILL);
	await_state(pid, 'Z');
	assert_true(mq_proc_ended(text));
	end(pid);
	assert_true(mq_proc_ended(text));
}

TEST(stopped_has_not_ended)
{
	char text[MQ_PROC_MAX];
	pid_t pid = start(text, nothing, nothing);

	kill(pid, SIGSTOP);
	await_state(pid, 'T');
	assert_false(mq_proc_ended(text));
	end(pid);
}

static void *
stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void
leave_a_thread(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, stay, NULL) == 0)
		syscall(SYS_exit, 0);
}

TEST(the_first_thread_alone_has_ended)
{
	char text[MQ_PROC_MAX];
	pid_t pid = start(text, nothing, leave_a_thread);

	await_state(pid, 'Z');
	assert_false(mq_proc_ended(text));
	end(pid);
	assert_true(mq_proc_ended(text));
}

/* A worker, of which a child stays in its group for some seconds. */
static void
begin_a_worker(void)
{
	pid_t worker = fork();

	if (worker != 0) {
		assert_int_equal(waitpid(worker, NULL, 0), worker);
		return;
	}
	setpgid(0, 0);
	if (fork() != 0)
		_exit(0);
	alarm(5);
	for (;;)
		pause();
}

TEST(worker_is_left)
{
	struct mq_names names = {0};
	char text[MQ_PROC_MAX], other[MQ_PROC_MAX];
	pid_t session = fork(), pid;
	int status;

	/* In a session of its own, to which no other process of this machine belongs. */
	assert_int_not_equal(session, -1);
	if (session == 0) {
		setsid();
		pid = start(text, begin_a_worker, nothing);
		end(pid);
		mq_names_add(&names, "a", text);
		mq_names_add(&names, "b", "of nobody here");
		mq_proc_drop_unfinished(&names);
		if (names.n != 1 || strcmp(names.list[0].name, "b") != 0)
			_exit(1);
		pid = start(other, nothing, nothing);
		end(pid);
		mq_names_add(&names, "c", other);
		mq_proc_drop_unfinished(&names);
		_exit(names.n == 2 ? 0 : 2);
	}
	assert_int_equal(waitpid(session, &status, 0), session);
	assert_int_equal(status, 0);
}
