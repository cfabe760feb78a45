/*
 * brood N [alone]: N processes that do nothing, for two minutes at most, in the
 * process group of the caller; with "alone", each in a session of its own.  They
 * share its memory, so that ten thousand are cheap.  It ends when all are there.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK ((size_t)4096)

static int
wait_for_the_end(void *alone)
{
	if (alone != NULL)
		setsid();
	alarm(120);
	pause();
	_exit(0);
}

int
main(int argc, char *argv[])
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	char *stacks = malloc((size_t)n * STACK);
	void *alone = argc > 2 ? argv : NULL;

	for (; stacks != NULL && n > 0; n--)
		if (clone(wait_for_the_end, stacks + (size_t)n * STACK,
			CLONE_VM | SIGCHLD, alone) == -1)
			return 75;
	return stacks == NULL;
}
