#include "process.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

/* The kernel's limit of one argument, MAX_ARG_STRLEN, in pages. */
#define ARGUMENT_PAGES 32

/* Bytes of the longest argument, with its NUL. */
static size_t
argument_max(void)
{
	return ARGUMENT_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t
without_newline(const char *payload, size_t n)
{
	return n > 0 && payload[n - 1] == '\n' ? n - 1 : n;
}

bool
arguments_have(char *const *argv, const char *token)
{
	while (*++argv != NULL)
		if (strstr(*argv, token) != NULL)
			return true;
	return false;
}

const char *
arguments_refuse(const char *payload, size_t n)
{
	if (memchr(payload, '\0', n) != NULL)
		return "its payload has a NUL byte, which no argument can have";
	if (without_newline(payload, n) >= argument_max())
		return "its payload is too long for an argument";
	return NULL;
}

/* Copies an argument of the template.  to: NULL to count only.  Returns the length
 * with the NUL. */
static size_t
fill_argument(char *to, const char *from, const char *token,
    const char *payload, size_t n)
{
	const char *at;
	size_t len = 0, plain;

	for (;; from = at + strlen(token)) {
		at = strstr(from, token);
		plain = at != NULL ? (size_t)(at - from) : strlen(from) + 1;
		if (to != NULL)
			memcpy(to + len, from, plain);
		len += plain;
		if (at == NULL)
			return len;
		if (to != NULL)
			memcpy(to + len, payload, n);
		len += n;
	}
}

/* Bytes of all arguments but the command's name; 0: too many. */
static size_t
filled_size(char *const *argv, const char *token, const char *payload, size_t n)
{
	size_t total = 1, len, max = argument_max();
	long most = sysconf(_SC_ARG_MAX);

	while (*++argv != NULL) {
		len = fill_argument(NULL, *argv, token, payload, n);
		total += len;
		if (len > max || (most > 0 && total > (size_t)most))
			return 0;
	}
	return total;
}

char **
arguments_fill(
    char *const *argv, const char *token, const char *payload, size_t n)
{
	size_t text, count, i;
	char **filled, *to;

	n = without_newline(payload, n);
	text = filled_size(argv, token, payload, n);
	if (text == 0) {
		errno = E2BIG;
		return NULL;
	}
	for (count = 0; argv[count] != NULL; count++)
		;
	filled = mq_xmalloc((count + 1) * sizeof(*filled) + text);
	to = (char *)(filled + count + 1);
	filled[0] = argv[0];
	for (i = 1; i < count; i++) {
		filled[i] = to;
		to += fill_argument(to, argv[i], token, payload, n);
	}
	filled[count] = NULL;
	return filled;
}
