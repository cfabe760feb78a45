#include "say.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vis.h>
#include <wchar.h>

#include "exit.h"

/* Whether vis(3) would leave it as it is in every locale. */
static bool
is_plain(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] < ' ' || p[i] > '~' || p[i] == '\\')
			return false;
	return true;
}

/* How many bytes from p on are characters of the locale. */
static size_t
text_len(const char *p, size_t n)
{
	mbstate_t state = {0};
	size_t i, len;

	for (i = 0; i<n; i += len> 0 ? len : 1) {
		len = mbrtowc(NULL, p + i, n - i, &state);
		if (len == (size_t)-1 || len == (size_t)-2)
			break;
	}
	return i;
}

/* vis(3) takes some bytes that are no characters for those of Latin 1. */
static void
encode(char *out, const char *p, size_t n)
{
	size_t len;

	for (; n > 0; p += len, n -= len) {
		len = text_len(p, n);
		if (len > 0) {
			out += strvisx(out, p, len,
			    VIS_CSTYLE | VIS_OCTAL | VIS_NL | VIS_TAB);
		} else {
			len = 1;
			out += sprintf(out, "\\%03o", (unsigned char)*p);
		}
	}
}

char *
mq_visible(const char *p, size_t n)
{
	char *out;

	if (is_plain(p, n))
		return strndup(p, n);
	/* An encoded byte takes at most four characters. */
	out = calloc(n + 1, 4);
	/* Here, not in each main: a run that says nothing need not load it. */
	setlocale(LC_CTYPE, "");
	if (out != NULL)
		encode(out, p, n);
	return out;
}

static void
vsay(const char *fmt, va_list ap)
{
	char *text = NULL, *shown = NULL;
	int n;

	n = vasprintf(&text, fmt, ap);
	if (n != -1)
		shown = mq_visible(text, (size_t)n);
	else
		text = NULL;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
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
mq_close_stdout(void)
{
	int failed = ferror(stdout);

	if (fclose(stdout) == 0 && !failed)
		return;
	if (errno == EPIPE)
		_Exit(MQ_EXIT_IO);
	mq_die(MQ_EXIT_IO, "standard output: %s", strerror(errno));
}
