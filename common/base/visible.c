#include "visible.h"

#include <stdlib.h>

#include "exit.h"
#include "say.h"

void
mq_add_visible(struct mq_buf *out, const char *p, size_t n)
{
	const char *end = p + n, *stop;
	char *text;

	for (; p < end; p = stop) {
		for (stop = p; stop < end && *stop != '\n' && *stop != '\t';)
			stop++;
		text = mq_visible(p, (size_t)(stop - p));
		if (text == NULL)
			mq_die(MQ_EXIT_AGAIN, "out of memory");
		mq_buf_addstr(out, text);
		free(text);
		if (stop < end)
			mq_buf_add(out, stop++, 1);
	}
}
