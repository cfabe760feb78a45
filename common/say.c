#include "say.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vis.h>

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
		strvisx(out, p, n, VIS_CSTYLE | VIS_OCTAL | VIS_NL | VIS_TAB);
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
