/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * hold FIFO
 *
 * A message that begins with "h" stays in its slot until one that begins with
 * "r" releases all of them; any other is done at once.
 */
#include <fcntl.h>
#include <unistd.h>

int
main(int argc, char *argv[])
{
	char what = '\0';

	if (argc < 2 || read(STDIN_FILENO, &what, 1) == -1)
		return 1;
	if (what == 'h' && open(argv[1], O_RDONLY) == -1)
		return 1;
	/* Nobody may be there to be released. */
	if (what == 'r')
		(void)open(argv[1], O_WRONLY | O_NONBLOCK);
	return 0;
}
