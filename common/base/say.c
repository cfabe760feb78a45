#include "say.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vis.h>
#include <wchar.h>
#include <wctype.h>

#include "exit.h"

/* How many of the n bytes from p on are characters of the locale, fit to be shown.  vis(3)
 * would write the number of one that cannot be printed, not its bytes; and some turn the
 * direction of what follows on the line, columns and text of ours included. */
static size_t
valid_run(const char *p, size_t n)
{
	mbstate_t state = {0};
	size_t at = 0, len;
	wchar_t c;

	for (; at<n; at += len> 0 ? len : 1) {
		len = mbrtowc(&c, p + at, n - at, &state);
		if (len == (size_t)-1 || len == (size_t)-2 ||
		    (c > 0x7f && !iswprint((wint_t)c)) ||
		    (c >= 0x202a && c <= 0x202e) ||
		    (c >= 0x2066 && c <= 0x2069))
			break;
	}
	return at;
}

/* NULL: no memory. */
static char *
make_visible(const char *p, size_t n)
{
	size_t run = 0;
	char *out, *to;

	/* What vis(3) leaves as it is in every locale. */
	while (run < n && p[run] >= ' ' && p[run] <= '~' && p[run] != '\\')
		run++;
	if (run == n)
		return strndup(p, n);
	/* Here, not in each main: a run without messages need not load the locale. */
	setlocale(LC_CTYPE, "");
	/* An encoded byte takes at most four characters. */
	out = to = calloc(n + 1, 4);
	while (out != NULL && n > 0) {
		run = valid_run(p, n);
		to += strvisx(
		    to, p, run, VIS_CSTYLE | VIS_OCTAL | VIS_NL | VIS_TAB);
		p += run;
		n -= run;
		/* vis(3) leaves some of these as they are. */
		if (n > 0) {
			to += sprintf(to, "\\%03o", (unsigned char)*p++);
			n--;
		}
	}
	return out;
}

char *
mq_visible(const char *p, size_t n)
{
	char *text = make_visible(p, n);

	if (text == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	return text;
}

static FILE *stream; /* NULL: stderr */

void
mq_say_to(FILE *f)
{
	stream = f;
}

static void
vsay(const char *fmt, va_list ap)
{
	char *text = NULL, *shown = NULL;
	int n;

	n = vasprintf(&text, fmt, ap);
	if (n != -1)
		shown = make_visible(text, (size_t)n);
	else
		text = NULL;
	fprintf(stream != NULL ? stream : stderr, "%s: %s\n",
	    program_invocation_short_name,
	    shown != NULL ? shown : "out of memory");
	free(shown);
	free(text);
}

void
mq_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(fmt, ap);
	va_end(ap);
}

void
mq_die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(fmt, ap);
	va_end(ap);
	exit(status);
}

void
mq_end_by(int sig)
{
	sigset_t none;

	sigemptyset(&none);
	signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	raise(sig);
	_exit(128 + sig);
}

static const struct {
	int sig;
	const char *name;
} signals[] = {{SIGHUP, "HUP"}, {SIGINT, "INT"}, {SIGQUIT, "QUIT"},
    {SIGILL, "ILL"}, {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},
    {SIGFPE, "FPE"}, {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"},
    {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
#ifdef SIGSTKFLT
    {SIGSTKFLT, "STKFLT"},
#endif
    {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"}, {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
    {SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"}, {SIGURG, "URG"}, {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"},
    {SIGWINCH, "WINCH"}, {SIGPOLL, "POLL"}, {SIGPWR, "PWR"}, {SIGSYS, "SYS"}};

const char *
mq_signal_name(int sig)
{
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i].sig == sig)
			return signals[i].name;
	return NULL;
}

void
mq_close_stdout(void)
{
	int failed = ferror(stdout);

	if (fclose(stdout) == 0 && !failed)
		return;
	if (errno == EPIPE)
		_Exit(MQ_EXIT_IO);
	mq_die(MQ_EXIT_IO, "standard output: %s", strerror(errno));
}
