#include "stats.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/say.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

/* For the handlers, which give the terminal back by themselves: the program may be
 * waiting for a silent server. */
static volatile sig_atomic_t on, taken, redraw;
static struct termios before;
static bool keys; /* standard input is the terminal, and before is set */

static void
write_text(const char *s)
{
	size_t n = strlen(s);
	ssize_t done;

	while (n > 0) {
		done = write(STDOUT_FILENO, s, n);
		if (done <= 0)
			return;
		s += done;
		n -= (size_t)done;
	}
}

/* Handlers call this and the next function, too. */
static void
take_terminal(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	if (!taken)
		write_text(ENTER);
	taken = 1;
}

static void
give_terminal_back(void)
{
	write_text(LEAVE);
	taken = 0;
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void
set_handler(int signo, void (*handler)(int))
{
	struct sigaction action = {
	    .sa_handler = handler, .sa_flags = SA_RESTART};

	sigfillset(&action.sa_mask);
	sigaction(signo, &action, NULL);
}

/* Carries out the default action of a signal at once. */
static void
raise_default(int signo)
{
	sigset_t set;

	set_handler(signo, SIG_DFL);
	raise(signo);
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void
on_end(int signo)
{
	give_terminal_back();
	mq_end_by(signo);
}

static void
on_stop(int signo)
{
	int saved = errno;
	sigset_t set;

	give_terminal_back();
	raise_default(signo);
	/* Here we go on; at once, if there is no shell that could wake us. */
	sigemptyset(&set);
	sigaddset(&set, signo);
	sigprocmask(SIG_BLOCK, &set, NULL);
	set_handler(signo, on_stop);
	take_terminal();
	redraw = 1;
	errno = saved;
}

static void
on_redraw(int signo)
{
	int saved = errno;

	if (signo == SIGCONT && on)
		take_terminal();
	redraw = 1;
	errno = saved;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void
screen_enter(void)
{
	struct sigaction old;
	size_t i;

	keys = tcgetattr(STDIN_FILENO, &before) == 0;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		/* nohup(1) and the like are to be heeded. */
		if (sigaction(ends[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			set_handler(ends[i], on_end);
	set_handler(SIGTSTP, on_stop);
	set_handler(SIGCONT, on_redraw);
	set_handler(SIGWINCH, on_redraw);
	atexit(screen_leave);
	on = 1;
	take_terminal();
}

void
screen_leave(void)
{
	if (!on)
		return;
	on = 0;
	give_terminal_back();
}

/* A key, or -1 when none will ever come. */
static int
read_key(void)
{
	unsigned char key;

	if (read(STDIN_FILENO, &key, 1) == 1)
		return key;
	return -1;
}

int
screen_wait(int64_t ms)
{
	struct pollfd input = {
	    .fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
	const struct timespec time = {
	    .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	sigset_t set, old;
	int n = 0, key;

	/* Neither may come between the look at redraw and the waiting. */
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (!redraw)
		n = ppoll(&input, 1, &time, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (redraw) {
		redraw = 0;
		return 0;
	}
	if (n <= 0)
		return -1;
	key = read_key();
	if (key == -1)
		keys = false;
	return key == -1 ? 0 : key;
}
