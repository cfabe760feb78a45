/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "xalloc.h"

/* --- /proc ----------------------------------------------------------------------- */

/* Reads the beginning of a file into a text.  False: /proc does not have it. */
static bool
read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, text, size - 1);

	if (fd != -1)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Numbers with a character in front of each; returns how many there are. */
static int
parse_numbers(const char *p, char before, long long *numbers, int most)
{
	char *end;
	int n;

	for (n = 0; n < most && *p == before; n++, p = end) {
		numbers[n] = strtoll(p + 1, &end, 10);
		if (end == p + 1)
			return n;
	}
	return *p == before || *p == '\0' || *p == '\n' ? n : 0;
}

/* Fields 4 to 22 of /proc/PID/stat; see proc_pid_stat(5). */
enum { PARENT, GROUP, SESSION, THREADS = 16, START = 18, STAT_FIELDS };

struct proc {
	char state;
	long long field[STAT_FIELDS];
};

/* False: there is no such process, or /proc hides it. */
static bool
read_stat(long long pid, struct proc *s)
{
	char path[40], text[1024], *p;

	snprintf(path, sizeof(path), "/proc/%lld/stat", pid);
	if (!read_file(path, text, sizeof(text)))
		return false;
	/* The name of a program may hold anything, a parenthesis, too. */
	p = strrchr(text, ')');
	if (p == NULL || p[1] != ' ' || p[2] == '\0')
		return false;
	s->state = p[2];
	return parse_numbers(p + 3, ' ', s->field, STAT_FIELDS) == STAT_FIELDS;
}

/* A process is over before its parent has waited for it, but a first thread that has ended
 * leaves the others running. */
static bool
is_over(const struct proc *s)
{
	return (s->state == 'Z' || s->state == 'X') && s->field[THREADS] <= 1;
}

/* Whether there is a process, and *s tells of it; /proc can hide one that there is, and then the
 * start in *s is -1. */
static bool
is_there(long long pid, struct proc *s)
{
	if (!read_stat(pid, s)) {
		*s = (struct proc){.field[START] = -1};
		return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
	}
	return !is_over(s);
}

/* --- texts ------------------------------------------------------------------------- */

#define HOST_MAX 96

/* The number in the name of a namespace of this process, such as "pid:[4026531836]"; 0: the kernel
 * has no such namespaces. */
static unsigned long long
namespace_of(const char *path)
{
	char name[64];
	ssize_t n = readlink(path, name, sizeof(name) - 1);
	const char *number;

	name[n > 0 ? n : 0] = '\0';
	number = strchr(name, '[');
	return number != NULL ? strtoull(number + 1, NULL, 10) : 0;
}

/* The part that is the same for all processes of this boot and these namespaces; empty if /proc
 * does not tell it. */
static void
host_text(char text[HOST_MAX])
{
	char boot[40], self[24];
	unsigned long long number = namespace_of("/proc/self/ns/pid");

	text[0] = '\0';
	/* A /proc of another namespace has other numbers. */
	if (number == 0 ||
	    !read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) ||
	    !read_file("/proc/self/stat", self, sizeof(self)) ||
	    strtoll(self, NULL, 10) != getpid())
		return;
	boot[strcspn(boot, "\n")] = '\0';
	snprintf(text, HOST_MAX, "%s:%llu:%llu", boot, number,
	    namespace_of("/proc/self/ns/time"));
}

void
mq_proc_self(char text[MQ_PROC_MAX])
{
	char host[HOST_MAX];
	struct proc s;

	host_text(host);
	text[0] = '\0';
	if (*host != '\0' && read_stat(getpid(), &s))
		snprintf(text, MQ_PROC_MAX, "%s:%u:%lld:%lld:%d:%lld", host,
		    (unsigned)getuid(), s.field[SESSION], s.field[GROUP],
		    (int)getpid(), s.field[START]);
}

struct identity {
	long long user, session, group, pid, start;
};

/* False: of a process that this one cannot judge.  Where /proc hides the processes of other users,
 * only root sees their workers. */
static bool
parse_text(const char *text, struct identity *who)
{
	char host[HOST_MAX];
	size_t n;
	long long f[6];

	host_text(host);
	n = strlen(host);
	if (n == 0 || strncmp(text, host, n) != 0 ||
	    parse_numbers(text + n, ':', f, 6) != 5)
		return false;
	*who = (struct identity){f[0], f[1], f[2], f[3], f[4]};
	return who->pid > 0 && who->pid == (pid_t)who->pid && who->start >= 0 &&
	    (getuid() == 0 || getuid() == who->user);
}

bool
mq_proc_ended(const char *text)
{
	struct identity who;
	struct proc s;

	if (!parse_text(text, &who))
		return false;
	if (!is_there(who.pid, &s))
		return true;
	/* Another process has got the pid. */
	return s.field[START] != -1 && s.field[START] != who.start;
}

/* --- workers ------------------------------------------------------------------------- */

/*
 * The kernel kills the workers with their consumer, but not at once, and not their children.  A
 * worker leads a group of its own in the session of its consumer; once that has ended, the group
 * is without its leader, or that is an orphan: a child of process 1, or of one that is in
 * another session.
 */

/* Tries, and nanoseconds between two of them. */
#define TRIES	25
#define WAIT_NS 20000000

static bool
is_orphaned(const struct proc *s)
{
	struct proc leader, parent;

	return !is_there(s->field[GROUP], &leader) ||
	    leader.field[PARENT] <= 1 ||
	    !is_there(leader.field[PARENT], &parent) ||
	    parent.field[SESSION] != leader.field[SESSION];
}

static bool
may_be_of(const struct proc *s, const struct identity *who)
{
	return who->pid > 0 && s->field[SESSION] == who->session &&
	    s->field[GROUP] != who->group && s->field[START] >= who->start;
}

/* Marks the processes that have left another one; a pid of 0 is none.  Returns how many have. */
static size_t
mark_unfinished(const struct identity *who, size_t count, bool *left)
{
	DIR *all = opendir("/proc");
	const struct dirent *e;
	struct proc s;
	size_t i, n = 0;

	memset(left, all == NULL, count);
	while (all != NULL && (e = readdir(all)) != NULL) {
		if (!read_stat(strtoll(e->d_name, NULL, 10), &s) || is_over(&s))
			continue;
		for (i = 0; i < count; i++)
			left[i] = left[i] ||
			    (may_be_of(&s, &who[i]) && is_orphaned(&s));
	}
	if (all != NULL)
		closedir(all);
	for (i = 0; i < count; i++)
		n += left[i];
	return n;
}

void
mq_proc_drop_unfinished(struct mq_names *names)
{
	bool *left = mq_xcalloc(names->n + 1, sizeof(*left));
	struct identity *who = mq_xcalloc(names->n + 1, sizeof(*who));
	size_t i, n = 0;
	int tries = TRIES;

	for (i = 0; i < names->n; i++)
		if (!parse_text(names->list[i].queue, &who[i]))
			who[i].pid = 0;
	while (names->n > 0 && mark_unfinished(who, names->n, left) > 0 &&
	    --tries > 0)
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	for (i = 0; i < names->n; i++)
		if (left[i]) {
			free(names->list[i].name);
			free(names->list[i].queue);
		} else {
			names->list[n++] = names->list[i];
		}
	names->n = n;
	free(who);
	free(left);
}
