/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "say.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vis.h>
#include <wchar.h>
#include <wctype.h>

#include "exit.h"

/* A terminal's text is escaped by the first byte of a character, or by vis(3), which
 * writes "\000" if the next character's number ends like that of a digit, else "\0". */
enum { BY_BYTE = 1, BY_VIS, BY_VIS_BEFORE_DIGIT };

/* The locale says what is printable.  vis(3) would write the number of an unprintable
 * character, not its bytes.  Characters that turn the direction of text would turn our own
 * columns on the line, too. */
static size_t
look_terminal(const char *p, size_t n, uint32_t *odd)
{
	mbstate_t state = {0};
	size_t len;
	wchar_t c, next = 0;

	*odd = 0;
	if (*p >= ' ' && *p <= '~' && *p != '\\')
		return 1;
	/* Loading the locale costs time that a run without messages need not spend.  A locale
	 * of single bytes is loaded for each such character. */
	if (MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "");
	len = mbrtowc(&c, p, n, &state);
	if (len == (size_t)-1 || len == (size_t)-2 ||
	    (c > 0x7f && !iswprint((wint_t)c)) ||
	    (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)) {
		*odd = BY_BYTE;
		return 1;
	}
	len = len > 0 ? len : 1;
	(void)mbrtowc(&next, p + len, n - len, &(mbstate_t){0});
	if (c <= 0x7f || !iswgraph((wint_t)c))
		*odd = iswprint((wint_t)next) && (next & 0xff) >= '0' &&
			(next & 0xff) <= '7' ?
		    BY_VIS_BEFORE_DIGIT :
		    BY_VIS;
	return len;
}

static size_t
look_lines(const char *p, size_t n, uint32_t *odd)
{
	*odd = 0;
	return *p == '\n' || *p == '\t' ? 1 : look_terminal(p, n, odd);
}

static char *
escape_terminal(char *to, const char *p, size_t n, uint32_t odd)
{
	char one[MB_LEN_MAX + 2] = "";
	size_t digit = odd == BY_VIS_BEFORE_DIGIT;

	if (odd == BY_BYTE)
		return to + sprintf(to, "\\%03o", (unsigned char)*p);
	memcpy(one, p, n);
	if (digit > 0)
		one[n] = '0';
	return to - digit +
	    strvisx(
		to, one, n + digit, VIS_CSTYLE | VIS_OCTAL | VIS_NL | VIS_TAB);
}

static const struct mq_view terminal = {look_terminal, "", escape_terminal};
const struct mq_view mq_lines = {look_lines, "", escape_terminal};

/* NULL: no memory. */
static char *
show(const struct mq_view *view, const char *p, size_t n)
{
	char *out = reallocarray(NULL, n + 1, MQ_ESCAPED_MAX), *to = out;
	uint32_t odd;
	size_t len;

	if (out == NULL)
		return NULL;
	for (; n > 0; p += len, n -= len) {
		len = view->look(p, n, &odd);
		if (odd != 0 ||
		    (*p != '\0' && strchr(view->special, *p) != NULL))
			to = view->escape(to, p, len, odd);
		else
			to = mempcpy(to, p, len);
	}
	*to = '\0';
	return out;
}

char *
mq_show(const struct mq_view *view, const char *p, size_t n)
{
	char *text = show(view, p, n);

	if (text == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	return text;
}

char *
mq_visible(const char *p, size_t n)
{
	return mq_show(&terminal, p, n);
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
		shown = show(&terminal, text, (size_t)n);
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
