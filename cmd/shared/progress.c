#include "options.h"

#include <unistd.h>

#include <sys/ioctl.h>

#define BAR_MIN 10 /* columns */

bool
progress_can_draw(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0;
}

/* One column stays free: some terminals begin a new line after the last. */
int
progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return 79;
	return size.ws_col < PROGRESS_LINE ? size.ws_col - 1 :
					     PROGRESS_LINE - 1;
}

void
progress_line(char line[static PROGRESS_LINE], const char *text, double part)
{
	int room, full, n, width = progress_columns();

	n = snprintf(line, (size_t)width + 1, "%s", text);
	room = width - n - 2;
	if (part < 0 || room < BAR_MIN)
		return;
	full = (int)(part * room);
	line[n] = '[';
	memset(line + n + 1, '#', (size_t)full);
	memset(line + n + 1 + full, '.', (size_t)(room - full));
	line[width - 1] = ']';
	line[width] = '\0';
}

void
progress_time(char out[static PROGRESS_TIME], double seconds)
{
	long s = (long)seconds;

	if (s < 60)
		snprintf(out, PROGRESS_TIME, "%lds", s);
	else if (s < 3600)
		snprintf(out, PROGRESS_TIME, "%ldm%02lds", s / 60, s % 60);
	else
		snprintf(
		    out, PROGRESS_TIME, "%ldh%02ldm", s / 3600, s / 60 % 60);
}
